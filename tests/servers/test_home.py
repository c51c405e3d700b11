"""A server in the place of the engine: the engine's commands, answered by its events."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from app.engine.process.messages import (
    Event,
    Failed,
    Finished,
    Forget,
    Generate,
    Load,
    Loaded,
    Measure,
    RoundFinished,
    SetPace,
    Started,
    Stop,
)
from app.engine.strategy import SERVER
from app.engine.types import FinishReason, GenerationRequest, ModelOptions, Role
from app.servers.home import ServerHome
from tests.servers.scripted import DRAFTING, Answer, Asked, ScriptedServer, event, llama_server, serving

REQUEST = GenerationRequest(prompt="abc", strategy=SERVER, max_tokens=3)
PATIENCE = 60.0


@pytest.fixture
def home() -> Iterator[ServerHome]:
    made = ServerHome(lambda _address: "")
    yield made
    made.close()


def heard(home: ServerHome, *until: type[Event]) -> list[Event]:
    """The events up to one of these kinds."""
    events: list[Event] = []
    deadline = time.monotonic() + PATIENCE
    while not events or not isinstance(events[-1], until):
        assert time.monotonic() < deadline, events
        if (told := home.receive(0.05)) is not None:
            events.append(told)
    return events


def loaded(home: ServerHome, server: ScriptedServer) -> Loaded:
    home.send(Load(1, ModelOptions(server.address)))
    (answer,) = heard(home, Loaded, Failed)
    assert isinstance(answer, Loaded), answer
    return answer


def test_a_server_is_loaded_and_answers_like_an_engine(home: ServerHome):
    with serving(llama_server(*DRAFTING)) as server:
        info = loaded(home, server).pair
        for command in (SetPace(2, True), Forget(3)):  # of no effect
            home.send(command)
        home.send(Generate(4, REQUEST))
        events = heard(home, Finished, Failed)
    assert info.server is not None and info.server.address == server.address
    assert [type(told) for told in events] == [Started, RoundFinished, RoundFinished, Finished]
    assert {told.run for told in events} == {4}


def test_a_server_that_is_not_there_fails_the_target(home: ServerHome):
    home.send(Load(1, ModelOptions("http://127.0.0.1:9")))
    (failed,) = heard(home, Failed)
    assert isinstance(failed, Failed) and "No server answers" in failed.message
    assert failed.role is Role.TARGET and failed.expected and not failed.gone


def test_questions_about_devices_and_memory_are_refused(home: ServerHome):
    home.send(Measure(1, ModelOptions("target.gguf")))
    (failed,) = heard(home, Failed)
    assert isinstance(failed, Failed) and "nothing is loaded here" in failed.message


def test_a_stop_before_the_first_token_ends_the_run_with_a_sentence(home: ServerHome):
    at: list[ScriptedServer] = []

    def hang(_request: Asked) -> Answer:
        at[0].released.wait(PATIENCE)
        return Answer({"tokens": [5]})

    with serving(llama_server(*DRAFTING) | {"/tokenize": hang}) as server:
        at.append(server)
        loaded(home, server)
        home.send(Generate(2, REQUEST))
        home.send(Stop(2))
        (failed,) = heard(home, Failed, Finished)
        server.script = llama_server(*DRAFTING)
        home.send(Generate(3, REQUEST))
        again = heard(home, Finished, Failed)
    assert isinstance(failed, Failed) and "before its first token" in failed.message
    assert isinstance(again[-1], Finished), "the next request is not stopped"


def test_a_stop_in_the_answer_keeps_what_has_come(home: ServerHome):
    at: list[ScriptedServer] = []

    def slow(asked: Asked) -> Answer:
        if not asked.body.get("stream"):
            return Answer({"generation_settings": {"speculative.types": "draft-simple"}})

        def pieces() -> Iterator[bytes]:
            yield event(DRAFTING[0])
            at[0].released.wait(PATIENCE)

        return Answer(pieces=pieces())

    with serving(llama_server() | {"/completion": slow}) as server:
        at.append(server)
        loaded(home, server)
        home.send(Generate(2, REQUEST))
        heard(home, RoundFinished)
        home.send(Stop(2))
        (*_, last) = heard(home, Finished, Failed)
    assert isinstance(last, Finished) and last.totals.finish_reason is FinishReason.CANCELLED
    assert last.totals.text == "a"


def test_an_ended_home_says_that_it_is_gone(home: ServerHome):
    home.end()
    (failed,) = heard(home, Failed)
    assert isinstance(failed, Failed) and failed.gone
