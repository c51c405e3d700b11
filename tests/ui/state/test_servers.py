"""The servers that the window knows: asked on threads of their own, their keys kept where that was wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.engine.errors import UserError
from app.ui.state.servers import KnownServer, Servers
from tests.quiet import stays
from tests.servers.scripted import Answer, Asked, ScriptedServer, llama_server, serving

KEY = "sk-secret"


@pytest.fixture
def servers(qtbot: QtBot) -> Iterator[Servers]:
    made = Servers()
    yield made
    made.close()


def asked(qtbot: QtBot, servers: Servers, address: str, key: str = "", *, keep: bool = False) -> KnownServer:
    """What is known of a server once it was asked."""
    servers.ask(address, key, keep=keep)
    qtbot.waitUntil(lambda: not servers.known(address).asking, timeout=60_000)
    return servers.known(address)


@contextmanager
def keyed() -> Iterator[ScriptedServer]:
    """A server that wants KEY."""

    def guarded(answer: Answer | Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
        def reply(request: Asked) -> Answer:
            if request.headers.get("authorization") != f"Bearer {KEY}":
                return Answer({"error": {"message": "Invalid API Key"}}, 401)
            return answer(request) if callable(answer) else answer

        return reply

    with serving({path: guarded(answer) for path, answer in llama_server().items()}) as server:
        yield server


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The keys in the system's keyring."""
    keys: dict[str, str] = {}
    monkeypatch.setattr("app.ui.state.servers.keep_key", keys.__setitem__)
    return keys


def test_a_server_tells_what_it_is(qtbot: QtBot, servers: Servers) -> None:
    with serving(llama_server()) as server:
        known = asked(qtbot, servers, server.address)
    assert known.info is not None and known.info.server is not None
    assert known.info.server.speculation == ("draft-simple",) and known.problem is None


def test_a_server_that_wants_a_key_gets_it_and_keeps_no_secret(
    qtbot: QtBot, servers: Servers, kept: dict[str, str]
) -> None:
    with keyed() as server:
        without = asked(qtbot, servers, server.address)
        wrong = asked(qtbot, servers, server.address, "wrong")
        assert servers.key_of(server.address) == "", "a refused key is forgotten"
        right = asked(qtbot, servers, server.address, KEY)
        again = asked(qtbot, servers, server.address)

    assert without.wants_key and "wants a key" in str(without.problem)
    assert wrong.wants_key and "refuses the key" in str(wrong.problem)
    assert right.info is not None and again.info is not None and not again.wants_key
    assert servers.key_of(server.address) == KEY
    assert kept == {}, "it was not asked to keep it"


def test_the_keyring_keeps_an_accepted_key_where_that_was_asked_for(
    qtbot: QtBot, servers: Servers, kept: dict[str, str]
) -> None:
    with keyed() as server:
        asked(qtbot, servers, server.address, "wrong", keep=True)
        assert kept == {}
        asked(qtbot, servers, server.address, KEY, keep=True)
    assert kept == {server.address: KEY}


def test_a_keyring_that_refuses_a_key_is_said_and_the_key_still_serves(
    qtbot: QtBot, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_address: str, _key: str) -> None:
        raise UserError("The keyring did not save the key.")

    monkeypatch.setattr("app.ui.state.servers.keep_key", refuse)
    with keyed() as server:
        known = asked(qtbot, servers, server.address, KEY, keep=True)
    assert known.info is not None and "did not save" in str(known.problem)
    assert servers.key_of(server.address) == KEY


def test_what_cannot_be_a_key_is_not_sent(qtbot: QtBot, servers: Servers) -> None:
    with serving(llama_server()) as server:
        known = asked(qtbot, servers, server.address, "two words")
        assert "not a key" in str(known.problem) and known.wants_key
        assert server.asked == []


def test_a_server_that_is_gone_is_no_longer_known(qtbot: QtBot, servers: Servers) -> None:
    with serving(llama_server()) as server:
        assert asked(qtbot, servers, server.address).info is not None
    known = asked(qtbot, servers, server.address)
    assert known.info is None and "No server answers" in str(known.problem)


def hanging(server: list[ScriptedServer]) -> Callable[[Asked], Answer]:
    def reply(_request: Asked) -> Answer:
        server[0].released.wait(60)
        return Answer({})

    return reply


def test_a_question_to_a_hanging_server_can_be_stopped(qtbot: QtBot, servers: Servers) -> None:
    at: list[ScriptedServer] = []
    script: dict[str, Any] = llama_server() | {"/v1/models": hanging(at)}
    with serving(script) as server:
        at.append(server)
        servers.ask(server.address)
        qtbot.waitUntil(lambda: len(server.asked) == 2, timeout=60_000)
        servers.stop(server.address)
        qtbot.waitUntil(lambda: not servers.known(server.address).asking, timeout=60_000)
    assert servers.known(server.address) == KnownServer()


def test_a_server_that_sends_nothing_is_given_up(qtbot: QtBot) -> None:
    at: list[ScriptedServer] = []
    servers = Servers(patience=0.2)
    with serving(llama_server() | {"/v1/models": hanging(at)}) as server:
        at.append(server)
        known = asked(qtbot, servers, server.address)
    servers.close()
    assert "has sent nothing for 0.2 s" in str(known.problem)


def test_closing_ends_a_question_and_says_nothing_more(qtbot: QtBot) -> None:
    at: list[ScriptedServer] = []
    servers = Servers()
    with serving(llama_server() | {"/v1/models": hanging(at)}) as server:
        at.append(server)
        servers.ask(server.address)
        qtbot.waitUntil(lambda: len(server.asked) == 2, timeout=60_000)
        servers.close()
        assert not any(thread.name == "asking a server" for thread in threading.enumerate())
        assert stays(lambda: servers.known(server.address).asking)
