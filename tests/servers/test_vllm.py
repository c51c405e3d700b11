"""A server that answers as vLLM's documentation says, with and without its counts by step."""

from __future__ import annotations

from typing import Any

import pytest

from app.engine.errors import SettingError
from app.engine.fates import Verdict
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace
from app.engine.strategy import NONE, SERVER
from app.engine.types import (
    FinishReason,
    GenerationRequest,
    Message,
    Sampling,
    Verification,
    WholeServer,
)
from app.lab.runs.run_record import RunRecord
from app.servers.client import ServerClient
from app.servers.errors import ServerError
from tests.answers import trace_of
from tests.servers.scripted import Answer, Asked, event, serving

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


CHUNKS = (chunk("One", [1], 1), chunk(" two three four", [2, 3, 4], 4), chunk(" five", [5], 5, "length"))


def vllm(*chunks: dict[str, Any], told: dict[str, Any] | None, counted: bool = False) -> dict[str, Any]:
    """The script of a vLLM that streams these chunks; `told` are its metrics of a request."""
    counts = iter([(10, 5), (16, 7)])
    metrics = {"metrics": {"speculative_decoding": told}} if told is not None else {}

    def complete(asked: Asked) -> Answer:
        if not asked.body.get("stream"):
            return Answer({"choices": [{"text": "a"}], **usage(1), **metrics})
        last = {"choices": [], **usage(5), **metrics}
        return Answer(pieces=[*map(event, chunks), event(last), b"data: [DONE]\n\n"])

    def count(_asked: Asked) -> Answer:
        drafted, accepted = next(counts)
        return Answer(METRICS.format(drafted=drafted, accepted=accepted).encode())

    paths = {
        "/v1/models": Answer(MODELS),
        "/version": Answer({"version": "0.32.0"}),
        "/v1/completions": complete,
        "/v1/chat/completions": complete,
    }
    return paths | ({"/metrics": count} if counted else {})


def answered(script: dict[str, Any], **settings: Any) -> Trace:
    request: dict[str, Any] = {"prompt": "Count.", "strategy": SERVER, "max_tokens": 5, "cold": True}
    with serving(script) as server:
        client = ServerClient(server.address, "", lambda: False)
        return trace_of(list(client.generate(GenerationRequest(**request | settings))))


def drafts(trace: Trace) -> list[tuple[int, int, list[int]]]:
    """(drafted, accepted, emitted ids) of every round"""
    return [
        (len(round.drafted), round.accepted, [token.id for token in round.emitted]) for round in trace.rounds
    ]


def test_counts_by_step_give_the_fates_of_every_round():
    trace = answered(vllm(*CHUNKS, told=DETAILED))

    assert drafts(trace) == [(0, 0, [1]), (3, 2, [2, 3, 4]), (3, 0, [5])]
    assert [token.verdict for token in trace.rounds[1].drafted][-1] is Verdict.REJECTED
    assert trace.text == "One two three four five" and trace.totals.finish_reason is FinishReason.LENGTH
    assert recheck(trace) == []


def test_steps_without_a_draft_are_rounds_of_their_own():
    steps = DETAILED | {"per_step_accepted": [2], "per_step_drafted": [3]}
    trace = answered(vllm(*CHUNKS, told=steps))

    assert drafts(trace) == [(0, 0, [1]), (3, 2, [2, 3, 4]), (0, 0, [5])]


def test_an_answer_that_ends_inside_a_step_is_cut_there():
    steps = DETAILED | {"per_step_accepted": [2, 3], "per_step_drafted": [3, 3]}
    trace = answered(vllm(*CHUNKS, told=steps))

    assert drafts(trace)[-1] == (3, 1, [5])
    assert [token.verdict.value for token in trace.rounds[-1].drafted] == ["accepted", "ignored", "ignored"]


def test_a_step_behind_the_end_of_an_answer_is_no_round():
    steps = DETAILED | {"per_step_accepted": [2, 0, 1], "per_step_drafted": [3, 3, 3]}

    assert drafts(answered(vllm(*CHUNKS, told=steps))) == [(0, 0, [1]), (3, 2, [2, 3, 4]), (3, 0, [5])]


def test_without_counts_by_step_only_the_whole_server_is_counted():
    trace = answered(vllm(*CHUNKS, told=SUMMARY, counted=True))
    record = RunRecord.of(trace)

    assert not trace.header.pair.server.tells_fates
    assert record.whole_server == WholeServer(6, 2) and record.drafted == 0
    assert record.tokens_per_pass is record.draft_share is record.acceptance_rate is None
    assert record.n_tokens == 5 and recheck(trace) == []


def test_a_vllm_that_does_not_draft_is_a_baseline():
    trace = answered(vllm(*CHUNKS, told=None))

    assert trace.header.strategy == NONE and trace.header.pair.server.speculation == ()
    assert trace.header.pair.server.model == "model" and trace.header.pair.server.version == "0.32.0"
    assert trace.header.pair.target.n_ctx == 4096 and trace.header.prompt_tokens == 7


def test_tokens_without_ids_are_counted_by_the_usage():
    chunks = [{**told, "choices": [{**told["choices"][0], "token_ids": None}]} for told in CHUNKS]
    trace = answered(vllm(*chunks, told=DETAILED))

    assert [(drafted, accepted, len(ids)) for drafted, accepted, ids in drafts(trace)] == [
        (0, 0, 1), (3, 2, 3), (3, 0, 1),
    ]  # fmt: skip
    assert trace.text == "One two three four five"


@pytest.mark.parametrize(
    "steps",
    [
        {"per_step_accepted": [4, 0], "per_step_drafted": [3, 3]},
        {"per_step_accepted": [2], "per_step_drafted": [3, 3]},
    ],
)
def test_counts_by_step_that_contradict_each_other_are_refused(steps: dict[str, Any]):
    with pytest.raises(ServerError, match="counts by step contradict"):
        answered(vllm(*CHUNKS, told=DETAILED | steps))


def test_a_chat_goes_to_the_chat_endpoint_with_its_options():
    deltas = [
        {**told, "choices": [{"delta": {"content": told["choices"][0]["text"]}, "finish_reason": finish}]}
        for told, finish in zip(CHUNKS, (None, None, "stop"), strict=True)
    ]
    with serving(vllm(*deltas, told=None)) as server:
        client = ServerClient(server.address, "", lambda: False)
        request = GenerationRequest(
            messages=(Message("user", "Hi"),),
            sampling=Sampling(temperature=0.7, top_k=5, seed=3),
            max_tokens=8,
            template_options={"enable_thinking": False},
        )
        trace = trace_of(list(client.generate(request)))
        (body,) = server.bodies("/v1/chat/completions")

    assert body["messages"] == [{"role": "user", "content": "Hi"}] and body["model"] == "owner/model"
    assert (body["temperature"], body["top_k"], body["seed"]) == (0.7, 5, 3)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert trace.text == "One two three four five" and trace.totals.finish_reason is FinishReason.END
    assert trace.header.verification is Verification.SPECULATIVE


def test_cold_answers_share_no_cache_with_others():
    with serving(vllm(*CHUNKS, told=None)) as server:
        client = ServerClient(server.address, "", lambda: False)
        for cold in (True, True, False):
            list(client.generate(GenerationRequest(prompt="a", max_tokens=5, cold=cold)))
        salts = [body.get("cache_salt") for body in server.bodies("/v1/completions")[1:]]

    assert salts[0] and salts[1] and salts[0] != salts[1] and salts[2] is None


def test_a_sampler_that_vllm_does_not_have_is_refused():
    with pytest.raises(SettingError, match="vLLM has no xtc_probability"):
        answered(vllm(*CHUNKS, told=None), sampling=Sampling(temperature=1, xtc_probability=0.5))
