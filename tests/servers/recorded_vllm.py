"""The answers of a vLLM, in the shapes that its documentation records, with and without counts by step."""

from __future__ import annotations

from typing import Any

from tests.servers.scripted import Answer, Asked, event

MODELS = {"object": "list", "data": [{"id": "owner/model", "owned_by": "vllm", "max_model_len": 4096}]}
DETAILED = {
    "mean_acceptance_length": 2.0,
    "num_spec_steps": 2,
    "num_accepted_draft_tokens": 2,
    "num_draft_tokens": 6,
    "num_spec_tokens": 3,
    "per_step_accepted": [2, 0],
    "per_step_drafted": [3, 3],
}
SUMMARY = {name: value for name, value in DETAILED.items() if not name.startswith("per_step")}
METRICS = """\
# TYPE vllm:spec_decode_num_draft_tokens_total counter
vllm:spec_decode_num_draft_tokens_total{{engine="0",model_name="m"}} {drafted}.0
vllm:spec_decode_num_accepted_tokens_total{{engine="0",model_name="m"}} {accepted}.0
"""


def usage(completed: int) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": 7, "completion_tokens": completed, "total_tokens": 7 + completed}}


def chunk(text: str, ids: list[int], completed: int, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"text": text, "token_ids": ids, "finish_reason": finish}], **usage(completed)}


def in_a_chat(told: dict[str, Any]) -> dict[str, Any]:
    """The chunk as a chat's stream has it."""
    (choice,) = told["choices"]
    others = {name: choice[name] for name in choice if name != "text"}
    return {**told, "choices": [{"delta": {"content": choice["text"]}, **others}]}


FIRST_OF_A_CHAT = {
    "choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}],
    **usage(0),
}
CHUNKS = (chunk("One", [1], 1), chunk(" two three four", [2, 3, 4], 4), chunk(" five", [5], 5, "length"))


def vllm(*chunks: dict[str, Any], told: dict[str, Any] | None, counted: bool = False) -> dict[str, Any]:
    """The script of a vLLM that streams these chunks; `told` are its metrics of a request."""
    answers = [0]  # that were streamed
    metrics = {"metrics": {"speculative_decoding": told}} if told is not None else {}

    def complete(asked: Asked) -> Answer:
        if not asked.body.get("stream"):
            return Answer({"choices": [{"text": "a"}], **usage(1), **metrics})
        answers[0] += 1
        said = [FIRST_OF_A_CHAT, *map(in_a_chat, chunks)] if "chat" in asked.path else chunks
        last = {"choices": [], **usage(5), **metrics}
        return Answer(pieces=[*map(event, said), event(last), b"data: [DONE]\n\n"])

    def count(_asked: Asked) -> Answer:
        drafted, accepted = 10 + 6 * answers[0], 5 + 2 * answers[0]
        return Answer(METRICS.format(drafted=drafted, accepted=accepted).encode())

    paths = {
        "/v1/models": Answer(MODELS),
        "/version": Answer({"version": "0.32.0"}),
        "/v1/completions": complete,
        "/v1/chat/completions": complete,
    }
    return paths | ({"/metrics": count} if counted else {})
