"""A server's answer as events, from a real HTTP server that answers as llama-server."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx2
import msgspec
import pytest

from app.engine.errors import UserError
from app.engine.process.messages import Event, Finished, RoundFinished, Started, trace_of
from app.engine.record.recheck import recheck
from app.engine.record.trace import line_of, parse_trace
from app.engine.strategy import NONE, SERVER
from app.engine.types import UNTOLD, FinishReason, GenerationRequest, Message, Sampling
from app.lab.runs.record import RunRecord
from app.servers.client import ServerClient
from app.servers.http import Asker, ServerError, of_transport
from tests.samplings import WARM, each_switched_on
from tests.servers.scripted import (
    PROPS,
    Answer,
    Asked,
    ScriptedServer,
    counted,
    ended,
    event,
    llama_server,
    serving,
)
from tests.stopping import stop_limit

CHUNKS = (
    counted(11, "One", 1),
    counted(12, " two", 2, 3, 1),
    counted(13, " three", 3, 3, 1),
    counted(14, " four", 4, 3, 1),
    ended(4, 3, 1),
)
REQUEST = GenerationRequest(prompt="Count.", strategy=SERVER, max_tokens=4, cold=True)


def client_of(
    server: ScriptedServer,
    stopping: Callable[[], bool] = lambda: False,
    key: str = "",
    patience: float = 30.0,
) -> ServerClient:
    return ServerClient(server.address, key, stopping, patience)


def answered(script: dict[str, Any], request: GenerationRequest = REQUEST, key: str = "") -> list[Event]:
    with serving(script) as server:
        return list(client_of(server, key=key).generate(request))


def refusal(script: dict[str, Any], key: str = "", patience: float = 30.0) -> str:
    """The sentence with which an answer fails."""
    with serving(script) as server, pytest.raises(ServerError) as caught:
        list(client_of(server, key=key, patience=patience).generate(REQUEST))
    return str(caught.value).replace(server.address, "ADDRESS")


def test_a_server_s_answer_comes_as_events_of_rounds():
    events = answered(llama_server(*CHUNKS))

    assert [type(event) for event in events] == [Started, *[RoundFinished] * 3, Finished]
    assert [event.text for event in events if isinstance(event, RoundFinished)] == [
        "One", " two three", " four",
    ]  # fmt: skip
    trace = trace_of(events)
    assert trace.text == "One two three four" and trace.token_ids == (11, 12, 13, 14)
    assert trace.totals.finish_reason is FinishReason.LENGTH
    assert (trace.header.strategy, trace.header.prompt_tokens, trace.header.cold) == (SERVER, 3, True)


def test_a_notebook_whose_event_loop_runs_can_ask() -> None:
    """From a plain call within a loop, to its end, left in the middle, and refused."""

    async def cell() -> None:
        with serving(llama_server(*CHUNKS)) as server:
            client = client_of(server)
            assert client.describe().server is not None
            assert trace_of(list(client.generate(REQUEST))).text == "One two three four"
            assert isinstance(next(client.generate(REQUEST)), Started)
        with pytest.raises(ServerError, match="No server answers"):
            client.describe()
        await asyncio.sleep(0)  # the notebook's own loop still runs

    asyncio.run(cell())


def test_a_server_s_trace_is_written_read_and_verified():
    trace = trace_of(answered(llama_server(*CHUNKS)))
    lines = [line_of(trace.header), *map(line_of, trace.rounds), line_of(trace.totals)]

    read = parse_trace(lines)

    assert read.header == trace.header and list(read.rounds) == trace.rounds
    assert recheck(read) == []


@pytest.mark.parametrize("finish", ["eos", "word"])
def test_an_end_inside_a_draft_is_verified(finish: str):
    chunks = (*CHUNKS[:1], counted(12, "", 2, 4, 3), ended(2, 4, 3, finish))
    trace = trace_of(answered(llama_server(*chunks)))

    assert recheck(trace) == []
    assert trace.totals.finish_reason is (FinishReason.END if finish == "eos" else FinishReason.STOP)


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        ({"stop_type": "eos"}, FinishReason.END),
        ({"stop_type": "word"}, FinishReason.STOP),
        ({"truncated": True}, FinishReason.CONTEXT),
        ({"truncated": False}, FinishReason.LENGTH),
        ({}, FinishReason.LENGTH),
    ],
)
def test_an_answer_ends_for_the_reason_that_the_server_tells(said: dict[str, Any], finish: FinishReason):
    last = {name: value for name, value in ended(4, 3, 1).items() if name != "truncated"}
    trace = trace_of(answered(llama_server(*CHUNKS[:-1], last | said)))

    assert trace.totals is not None and trace.totals.finish_reason is finish


def test_recheck_finds_a_changed_verdict_of_a_server():
    trace = trace_of(answered(llama_server(*CHUNKS)))
    trace.rounds[1] = msgspec.structs.replace(trace.rounds[1], drafted=trace.rounds[1].drafted[1:])

    assert any("Round 2" in problem for problem in recheck(trace))


def test_a_record_with_part_of_a_character_holds():
    """A token without a whole character has no id there."""
    part = {**counted(0, "", 2, 3, 0), "tokens": []}
    script = llama_server(counted(1, "a", 1), part, counted(3, "é", 3, 3, 0), ended(3, 3, 0))
    trace = trace_of(answered(script, replace(REQUEST, max_tokens=3)))

    assert [token.id for round in trace.rounds for token in round.emitted] == [1, UNTOLD, 3]
    assert any(round.rejected for round in trace.rounds) and recheck(trace) == []


def test_the_record_of_a_server_has_no_numbers_that_it_does_not_tell():
    record = RunRecord.of(trace_of(answered(llama_server(*CHUNKS))))

    assert (record.drafted, record.accepted, record.acceptance_rate, record.tau) == (3, 1, 1 / 3, 2)
    assert record.tokens_per_pass == 4 / 3 and record.strategy == SERVER
    assert record.target_seconds is record.draft_seconds is record.engine_overhead is None
    assert record.statistics.engine_overhead is None


def test_it_tells_the_model_the_strategies_and_the_settings():
    with serving(llama_server(*CHUNKS, types="none,ngram-mod,draft-simple")) as server:
        info = client_of(server).describe()

    assert info.server.kind == "llama-server" and info.server.address == server.address
    assert info.server.speculation == ("ngram-mod", "draft-simple")
    assert (info.server.model, info.server.slots, info.target.quantisation) == ("target.gguf", 2, "Q4_0")
    assert info.server.settings == {"temperature": 0.8, "top_k": 40}
    assert not info.server.switches_off and info.target.n_params == 30


def test_a_server_that_cannot_draft_says_so_whatever_its_settings():
    script = llama_server(*CHUNKS, slots=Answer([{"speculative": False}]))
    with serving(script) as server:
        assert client_of(server).describe().server.speculation == ()


def test_a_server_that_takes_n_max_0_can_leave_drafting_out():
    def complete(asked: Asked) -> Answer:
        took = {"speculative.types": "draft-simple", "speculative.n_max": asked.body["speculative.n_max"]}
        return Answer({"generation_settings": took})

    with serving(llama_server() | {"/completion": complete}) as server:
        assert client_of(server).describe().server.switches_off


def test_the_baseline_asks_the_server_not_to_draft():
    with serving(llama_server(*CHUNKS)) as server:
        client = client_of(server)
        for strategy in (NONE, SERVER):
            list(client.generate(GenerationRequest(prompt="a", strategy=strategy, max_tokens=4)))
        asked = [body.get("speculative.n_max") for body in server.bodies("/completion") if "stream" in body]

    assert asked == [0, None]


@pytest.mark.parametrize(("seed", "sent"), [(9, 9), (2**32 - 2, 2**32 - 2), (2**32 - 1, 0), (2**33, 2)])
def test_a_seed_is_sent_as_one_that_the_server_keeps(seed: int, sent: int):
    """Its largest seed would be a new one every time."""
    with serving(llama_server(*CHUNKS)) as server:
        request = GenerationRequest(prompt="a", strategy=NONE, max_tokens=4, sampling=Sampling(seed=seed))
        list(client_of(server).generate(request))
        assert server.bodies("/completion")[-1]["seed"] == sent


def test_every_sampler_setting_is_sent():
    sampling = Sampling(temperature=0.5, top_k=7, xtc_probability=0.1, seed=9)
    with serving(llama_server(*CHUNKS)) as server:
        list(client_of(server).generate(GenerationRequest(prompt="a", sampling=sampling, max_tokens=4)))
        body = server.bodies("/completion")[-1]

    assert (body["temperature"], body["top_k"], body["xtc_probability"], body["seed"]) == (0.5, 7, 0.1, 9)
    assert body["dry_sequence_breakers"] == ["\n", ":", '"', "*"]


def test_a_chat_is_written_by_the_server_s_template():
    request = GenerationRequest(
        messages=(Message("user", "Hello"),), max_tokens=4, template_options={"enable_thinking": False}
    )
    with serving(llama_server(*CHUNKS)) as server:
        trace = trace_of(client_of(server).generate(request))
        (templated,) = server.bodies("/apply-template")

    assert templated["messages"] == [{"role": "user", "content": "Hello"}]
    assert templated["chat_template_kwargs"] == {"enable_thinking": False}
    assert trace.header.prompt == "<user>Hello" and server.bodies("/tokenize")[0]["parse_special"]


def test_a_strategy_that_remembers_earlier_answers_is_never_cold():
    trace = trace_of(answered(llama_server(*CHUNKS, types="none,ngram-mod")))

    assert not trace.header.cold


def test_filling_in_the_middle_is_refused_before_anything_is_asked():
    with serving({}) as server:
        with pytest.raises(UserError, match="fill in the middle"):
            list(client_of(server).generate(GenerationRequest(prompt="a", suffix="b")))
        assert not server.asked


def test_stop_ends_a_hanging_answer_within_a_second_and_keeps_what_came():
    stopped = False

    def hanging(asked: Asked) -> Answer:
        if not asked.body.get("stream"):
            return Answer({"generation_settings": {"speculative.types": "none"}})
        return Answer(pieces=then_silence(map(event, CHUNKS[:3])))

    def then_silence(pieces: Iterator[bytes]) -> Iterator[bytes]:
        yield from pieces
        server.released.wait()

    with serving(llama_server() | {"/completion": hanging}) as server:
        client = client_of(server, lambda: stopped)
        events = client.generate(replace(REQUEST, max_tokens=3))
        heard = list(itertools.islice(events, 3))
        stopped, begun = True, time.monotonic()
        heard += events

    assert time.monotonic() - begun < 1 + stop_limit()
    trace = trace_of(heard)
    assert client.stopped and trace.totals.finish_reason is FinishReason.CANCELLED
    assert trace.text == "One two three"
    assert recheck(trace) == [], "though all tokens came, and only the end was missing"


def test_stop_before_the_first_token_has_no_events():
    with serving(llama_server()) as server:
        client = client_of(server, lambda: True)
        assert list(client.generate(REQUEST)) == [] and client.stopped


# ------------------------------------------------------------------ servers that fail, lie and refuse


def test_an_address_where_nothing_listens_is_one_sentence():
    with serving({}) as server:
        pass
    with pytest.raises(ServerError, match="No server answers at http"):
        client_of(server).describe()


def test_the_cause_is_said_without_its_number():
    told = of_transport(httpx2.ConnectError("[Errno -2] Name or service not known"), "http://foo", 5)
    assert told.message == "No server answers at http://foo: name or service not known."


def test_a_server_that_is_silent_too_long_is_one_sentence():
    def silent(_asked: Asked) -> Answer:
        server.released.wait()
        return Answer({})

    with serving({"/props": silent}) as server, pytest.raises(ServerError, match=r"sent nothing for 0\.2 s"):
        client_of(server, patience=0.2).describe()


def test_an_answer_that_is_cut_is_one_sentence():
    script = llama_server() | {"/completion": lambda asked: _streamed(asked, *CHUNKS[:2], cut=True)}

    assert refusal(script) == (
        "The server at ADDRESS stopped in the middle of its answer. Check its log: it may have ended."
    )


def test_an_answer_without_an_end_is_one_sentence():
    assert "stopped in the middle of its answer, after 2 tokens" in refusal(llama_server(*CHUNKS[:2]))


def test_an_error_within_a_stream_is_said_in_the_server_s_words():
    script = llama_server(CHUNKS[0], {"error": {"code": 500, "message": "context\nlost"}})

    assert "(500): context lost" in refusal(script)


@pytest.mark.parametrize("chunk", [b"data: {not json\n\n", b"data: [1]\n\n", b"data: \xff\n\n"])
def test_garbage_in_a_stream_is_one_sentence(chunk: bytes):
    assert "The server at ADDRESS" in refusal(llama_server(CHUNKS[0], chunk))


@pytest.mark.parametrize("change", [{"tokens": ["x"]}, {"tokens_predicted": "4"}, {"timings": [1]}])
def test_a_chunk_of_another_shape_is_one_sentence(change: dict[str, Any]):
    assert "does not answer as a llama-server" in refusal(llama_server({**CHUNKS[0], **change}))


def test_a_chunk_without_counters_is_refused():
    assert "does not send its counters" in refusal(llama_server({**CHUNKS[0], "timings": None}))


def test_the_last_line_may_lack_its_end():
    events = answered(llama_server(*CHUNKS[:-1], event(CHUNKS[-1]).rstrip(b"\n")))

    assert trace_of(events).text == "One two three four"


def test_a_line_without_an_end_is_given_up():
    endless = b"data: " + b"x" * 2**20
    assert "sends a line of more than 1 MB" in refusal(llama_server(endless, endless))


def test_an_answer_without_an_end_of_bytes_is_given_up():
    script = {"/props": Answer(pieces=itertools.repeat(b" " * 2**20))}

    assert "sends more than 16 MB" in refusal(script)


@pytest.mark.parametrize(
    ("chunk", "said"),
    [
        (counted(1, "a", 1, 2_000_000_000), "counts 2,000,000,000 drafted tokens after 0 tokens"),
        (counted(1, "a", 1, 2**64 - 1), "does not answer as a llama-server"),
        (counted(1, "a", 2_000_000_000), "sends more than the 4 tokens asked for"),
        (counted(1, "a", 2**64 - 1), "does not answer as a llama-server"),
        (counted(2**64 - 1, "a", 1), "does not answer as a llama-server"),
        (counted(1, "a" * 5000, 1), "sends more text than 4 tokens have"),
        (b'data: {"tokens": ' + b"[" * 5000 + b"]" * 5000 + b"}\n\n", "it is nested too deep"),
    ],
)
def test_nothing_is_made_of_a_count_before_it_is_checked(chunk: Any, said: str):
    assert said in refusal(llama_server(chunk))


@pytest.mark.parametrize("body", [[], [1], "x", None, {"content": 1}])
def test_a_prompt_that_is_detokenized_to_no_text_is_one_sentence(body: Any):
    request = GenerationRequest(prompt_ids=(1, 2), strategy=SERVER, max_tokens=4)
    with serving(llama_server(*CHUNKS, detokenize=Answer(body))) as server, pytest.raises(ServerError):
        list(client_of(server).generate(request))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"a": ' * 500 + b"1" + b"}" * 500, "it is nested too deep"),
        (b"[" * 100_000, "it is nested too deep"),
        (b"[" + b"[]," * 2**20 + b"0]", "it has too many values"),
        ({**PROPS, "model_path": "x" * 5000}, "does not answer as a llama-server"),
        ({**PROPS, "total_slots": 2**64 - 1}, "does not answer as a llama-server"),
    ],
)
def test_what_a_server_tells_of_itself_is_bounded(body: Any, said: str):
    assert said in refusal(llama_server(props=Answer(body)))


def test_a_compressed_answer_is_refused_before_it_is_unpacked():
    bomb = gzip.compress(gzip.compress(b" " * 2**24))
    script = {"/props": Answer(bomb, headers={"Content-Encoding": "gzip, gzip"})}

    assert "compresses its answer" in refusal(script)


@pytest.mark.parametrize("refuses", [False, True])
def test_an_answer_that_comes_byte_by_byte_is_given_up(refuses: bool):
    def trickle() -> Iterator[bytes]:
        while not server.released.wait(0.05):
            yield b" "

    def refused(asked: Asked) -> Answer:
        return Answer(pieces=trickle(), status=500) if asked.body.get("stream") else Answer({})

    script = llama_server() | ({"/completion": refused} if refuses else {"/props": Answer(pieces=trickle())})
    with (
        serving(script) as server,
        pytest.raises(ServerError, match=r"did not finish its answer within 0\.4 s"),
    ):
        list(client_of(server, patience=0.2).generate(REQUEST))


def test_a_slow_caller_holds_a_few_megabytes_of_a_fast_server():
    line = b"data: " + b" " * 2**19 + b"{}\n"
    heard: list[int] = []

    def fast(asked: Asked) -> Answer:
        if not asked.body.get("stream"):
            return Answer({})
        return Answer(pieces=(line for number in itertools.count() if heard.append(number) is None))

    with serving({"/completion": fast}) as server:
        pieces = Asker(server.address, "", lambda: False).stream("/completion", {"stream": True})
        next(pieces)
        quiet = 0
        while quiet < 10:  # until the server can send nothing more
            before = len(heard)
            server.released.wait(0.05)
            quiet = quiet + 1 if len(heard) == before else 0
        assert len(heard) < 80  # of half a megabyte, with what the system keeps
        pieces.close()  # type: ignore[attr-defined] # a generator


def test_drafts_beyond_all_measure_are_refused_in_the_end():
    chunks = [counted(1, "x", place, 1000 * place, 0) for place in range(1, 5)]

    assert "counts 2,000 drafted tokens after 1 token of its answer" in refusal(llama_server(*chunks))


def test_counters_that_go_back_are_refused():
    script = llama_server(CHUNKS[0], CHUNKS[1], CHUNKS[2], counted(14, "x", 4, 2, 1))

    assert "counters contradict each other: 2 drafted and 1 accepted after 3 and 1" in refusal(script)


def test_more_tokens_than_asked_for_are_refused():
    chunks = [counted(place, "x", place) for place in range(1, 7)]

    assert "sends more than the 4 tokens asked for" in refusal(llama_server(*chunks))


def test_more_tokens_than_counted_are_refused():
    assert "sent more" in refusal(llama_server(CHUNKS[0], CHUNKS[0]))


@pytest.mark.parametrize("status", [401, 403])
def test_a_missing_and_a_wrong_key_are_told_apart(status: int):
    script = {"/props": Answer({"error": {"message": "Invalid API Key"}}, status)}

    assert f"wants a key ({status})" in refusal(script)
    assert f"refuses the key ({status})" in refusal(script, key="secret-key")


def test_the_key_is_sent_and_stands_in_no_message():
    with serving(llama_server(*CHUNKS)) as server:
        list(client_of(server, key="secret-key").generate(REQUEST))
        assert {asked.headers.get("authorization") for asked in server.asked} == {"Bearer secret-key"}
    echo = {"/props": lambda asked: Answer({"error": asked.headers["authorization"]}, 400)}

    assert "secret-key" not in refusal(echo, key="secret-key")


def test_a_redirect_is_not_followed():
    with serving(llama_server(*CHUNKS)) as other:
        script = {"/props": Answer({}, 302, {"Location": f"{other.address}/props"})}
        assert "redirects to http://127.0.0.1" in refusal(script, key="secret-key")
        assert not other.asked


def test_a_server_that_loads_its_model_is_one_sentence():
    script = {"/props": Answer({"error": {"message": "Loading model", "code": 503}}, 503)}

    assert refusal(script) == (
        "The server at ADDRESS is busy or not ready (503): Loading model. Try again soon."
    )


@pytest.mark.parametrize(
    "script", [{}, {"/props": Answer(b"<html>hello</html>")}, {"/props": Answer({"some": "thing"})}]
)
def test_another_service_is_one_sentence(script: dict[str, Any]):
    assert "The server at ADDRESS" in refusal(script) or "What answers at ADDRESS" in refusal(script)


def test_a_long_message_of_a_server_is_shortened():
    script = {"/props": Answer({"error": {"message": "x" * 10_000}}, 500)}

    assert len(refusal(script)) < 400


def test_a_server_without_slots_is_read_all_the_same():
    script = llama_server(*CHUNKS, slots=Answer({"error": {"message": "Start it with --slots"}}, 501))
    with serving(script) as server:
        assert client_of(server).describe().server.speculation == ("draft-simple",)
    assert PROPS["total_slots"] == 2


@pytest.mark.parametrize("status", [404, 501, 500, 503])
def test_slots_that_fail_for_another_reason_are_an_error(status: int):
    with serving(llama_server(*CHUNKS, slots=Answer({"error": {"message": "no"}}, status))) as server:
        if status in (404, 501):
            assert client_of(server).describe().server.speculation == ("draft-simple",)
        else:
            with pytest.raises(ServerError, match=f"\\({status}\\): no"):
                client_of(server).describe()


@pytest.mark.parametrize(
    ("status", "said"),
    [
        *((status, "redirects to a different address") for status in (300, 399)),
        *((status, "does not support this request") for status in (404, 405, 501)),
        *((status, "is busy or not ready") for status in (429, 503)),
        *((status, "refused the request") for status in (400, 402, 500, 502)),
    ],
)
def test_every_refusal_says_what_kind_it_is(status: int, said: str):
    assert said in refusal(dict.fromkeys(("/props", "/v1/models", "/version"), Answer({}, status)))


def _streamed(asked: Asked, *chunks: Any, cut: bool = False) -> Answer:
    if not asked.body.get("stream"):
        return Answer({"generation_settings": {"speculative.types": "none"}})
    return Answer(pieces=map(event, chunks), cut=cut)


def test_a_sampler_setting_that_acts_alone_is_sent() -> None:
    with serving(llama_server(*CHUNKS)) as server:

        def sent(sampling: Sampling) -> set[str]:
            list(client_of(server).generate(replace(REQUEST, sampling=sampling)))
            body: dict[str, Any] = server.bodies("/completion")[-1]
            return {f"{name}: {value}" for name, value in body.items() if name != "seed"}

        usual = sent(WARM)
        for name, sampling in each_switched_on():
            assert sent(sampling) ^ usual, f"{name} has no effect"
