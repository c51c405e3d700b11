"""A server that answers as vLLM's documentation says, with and without its counts by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from app.engine.errors import SettingError
from app.engine.fates import Verdict
from app.engine.process.messages import trace_of
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace
from app.engine.strategy import NONE, SERVER
from app.engine.types import FinishReason, GenerationRequest, Message, Sampling, WholeServer
from app.lab.report.summary import summarise
from app.lab.runs.record import RunRecord
from app.servers.client import ServerClient
from app.servers.http import ServerError
from tests.samplings import WARM, each_switched_on
from tests.servers.recorded_vllm import CHUNKS, DETAILED, METRICS, SUMMARY, chunk, vllm
from tests.servers.scripted import Answer, Asked, serving


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
    assert all(round.untold for round in trace.rounds)
    assert {round.fate_word(token) for round in trace.rounds for token in round.emitted} == {"unknown"}
    again = summarise(0, record.strategy, [record])
    assert again.tokens_per_pass is again.draft_share is None and again.n_tokens == 5


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


@pytest.mark.parametrize(
    ("usage", "said"),
    [(2_000_000_000, "sends more than the 5 tokens"), (2**64 - 1, "does not answer as vLLM")],
)
def test_a_count_of_tokens_is_checked_before_they_are_made(usage: int, said: str):
    lie = {**CHUNKS[1], "usage": {"completion_tokens": usage}}
    lie["choices"] = [{**lie["choices"][0], "token_ids": None}]
    with pytest.raises(ServerError, match=said):
        answered(vllm(CHUNKS[0], lie, told=DETAILED))


def test_tokens_that_wait_for_their_counts_are_no_more_than_asked_for():
    with pytest.raises(ServerError, match="sends more than the 5 tokens"):
        answered(vllm(*CHUNKS[:2] * 1000, told=DETAILED))


@pytest.mark.parametrize("number", ["1e999", "1.2.3", "e", "1e30"])
def test_a_counter_that_is_no_number_is_one_sentence(number: str):
    script = vllm(*CHUNKS, told=SUMMARY, counted=True)
    script["/metrics"] = Answer(f"vllm:spec_decode_num_draft_tokens_total {number}\n".encode())
    with pytest.raises(ServerError, match=r"^The server at http"):
        answered(script)


def test_a_chat_goes_to_the_chat_endpoint_with_its_options():
    with serving(vllm(*CHUNKS[:2], chunk(" five", [5], 5, "stop"), told=None)) as server:
        client = ServerClient(server.address, "", lambda: False)
        request = GenerationRequest(
            messages=(Message("user", "Hi"),),
            sampling=Sampling(temperature=0.7, top_k=5, seed=3),
            max_tokens=8,
            template_options={"enable_thinking": False},
        )
        trace = trace_of(client.generate(request))
        (body,) = server.bodies("/v1/chat/completions")

    assert body["messages"] == [{"role": "user", "content": "Hi"}] and body["model"] == "owner/model"
    assert (body["temperature"], body["top_k"], body["seed"]) == (0.7, 5, 3)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert trace.text == "One two three four five" and trace.totals.finish_reason is FinishReason.END
    assert trace.header.verification == "speculative"


def test_cold_answers_share_no_cache_with_others():
    with serving(vllm(*CHUNKS, told=None)) as server:
        client = ServerClient(server.address, "", lambda: False)
        for cold in (True, True, False):
            list(client.generate(GenerationRequest(prompt="a", max_tokens=5, cold=cold)))
        salts = [body.get("cache_salt") for body in server.bodies("/v1/completions")[1:]]

    assert salts[0] and salts[1] and salts[0] != salts[1] and salts[2] is None


def test_a_text_is_sent_as_text_and_tokens_as_tokens():
    with serving(vllm(*CHUNKS, told=None)) as server:
        client = ServerClient(server.address, "", lambda: False)
        for ids in ((), (7, 8)):
            list(client.generate(GenerationRequest(prompt="a", prompt_ids=ids, max_tokens=5)))
        sent = [body["prompt"] for body in server.bodies("/v1/completions")[1:]]

    assert sent == ["a", [7, 8]]


def test_a_sampler_that_vllm_does_not_have_is_refused():
    with pytest.raises(SettingError, match="vLLM has no xtc_probability"):
        answered(vllm(*CHUNKS, told=None), sampling=Sampling(temperature=1, xtc_probability=0.5))


def test_counters_of_a_server_that_began_anew_are_no_counts():
    script = vllm(*CHUNKS, told=SUMMARY, counted=True)
    for after, counted in [((10, 5), WholeServer(0, 0)), ((16, 7), WholeServer(6, 2)), ((9, 5), None)]:
        counts = iter([(10, 5), after])

        def count(_asked: Asked, counts: Iterator[tuple[int, int]] = counts) -> Answer:
            drafted, accepted = next(counts, after)  # noqa: B023
            return Answer(METRICS.format(drafted=drafted, accepted=accepted).encode())

        assert answered(script | {"/metrics": count}).totals.whole_server == counted


def test_every_sampler_setting_is_sent_or_refused():
    with serving(vllm(*CHUNKS, told=None)) as server:
        client = ServerClient(server.address, "", lambda: False)

        def sent(sampling: Sampling) -> set[str]:
            request = GenerationRequest(prompt="Count.", strategy=SERVER, max_tokens=5, sampling=sampling)
            list(client.generate(request))
            body: dict[str, Any] = server.bodies("/v1/completions")[-1]
            return {f"{name}: {value}" for name, value in body.items() if name != "seed"}

        usual = sent(WARM)
        for name, sampling in each_switched_on():
            try:
                assert sent(sampling) ^ usual, f"{name} has no effect"
            except SettingError as error:
                assert name in str(error)
