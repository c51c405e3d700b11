"""The Hugging Face token: checked, saved, removed, and never shown."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import hf_api

from app.engine.errors import UserError
from app.hub.cache import Cache
from app.hub.errors import Trouble
from app.hub.hub import Hub, forget_token, kept_token, save_token
from app.hub.repo import read_repo, search
from tests.hub.server import BAD_TOKEN, SECRET, TOKEN, FakeHub, Fault
from tests.hub.stock import in_cache, stock, trouble


@pytest.fixture(autouse=True)
def everything(server: FakeHub) -> None:
    stock(server)


@pytest.fixture
def login_here(server: FakeHub, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the login ask this server: it uses the HF_ENDPOINT from when the client was imported."""
    monkeypatch.setattr(hf_api.api, "endpoint", server.address)
    yield


@pytest.mark.usefixtures("login_here")
def test_a_token_is_tried_and_kept_where_the_client_keeps_it(
    hub: Hub, home: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    assert not kept_token()
    save_token(hub, f" {TOKEN}\n")
    assert kept_token()
    assert (home / "token").read_text() == TOKEN
    if os.name == "posix":
        assert (home / "token").stat().st_mode & 0o077 == 0
    forget_token()
    assert not kept_token()
    assert TOKEN not in caplog.text + "".join(capfd.readouterr())


@pytest.mark.usefixtures("login_here")
def test_an_answer_that_the_client_reads_itself_has_an_end(hub: Hub, server: FakeHub) -> None:
    server.always["api"] = Fault(body=b"[" + b" " * 2**21 + b"]")
    assert "it has more than 1 MB" in trouble(lambda: save_token(hub, TOKEN)).message


@pytest.mark.usefixtures("login_here")
def test_a_wrong_token_is_not_kept(hub: Hub, home: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(UserError, match="does not know this token") as raised:
        save_token(hub, BAD_TOKEN)
    assert BAD_TOKEN not in str(raised.value) + caplog.text
    assert raised.value.__cause__ is None and raised.value.__suppress_context__
    assert not (home / "token").exists()


@pytest.mark.usefixtures("login_here")
def test_a_hub_in_trouble_says_nothing_about_the_token(hub: Hub, server: FakeHub) -> None:
    server.always["api"] = Fault(status=503)
    assert trouble(lambda: save_token(hub, TOKEN)).trouble is Trouble.SERVER
    assert not kept_token()


@pytest.mark.parametrize("text", ["", "  ", "hf_ä", "hf_a b"])
def test_what_is_no_token(hub: Hub, server: FakeHub, text: str) -> None:
    with pytest.raises(UserError, match="not a token"):
        save_token(hub, text)
    assert server.asked == []


def test_a_token_of_the_environment_comes_first(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with pytest.raises(UserError, match="HF_TOKEN is set"):
        save_token(hub, "hf_other")


def test_a_gated_repository_is_read_with_the_token(hub: Hub, server: FakeHub, home: Path) -> None:
    (home / "token").write_text(TOKEN)
    assert read_repo(hub, "other/Llama-small-GGUF").gated
    assert server.requests("api")[-1].headers["authorization"] == f"Bearer {TOKEN}"


def test_no_log_holds_a_token_or_a_signature(
    hub: Hub, server: FakeHub, home: Path, cache: Cache, caplog: pytest.LogCaptureFixture
) -> None:
    from app.hub.downloads.fetch import Fetcher
    from app.hub.downloads.item import DownloadJob, ItemFile

    caplog.set_level(logging.DEBUG)
    (home / "token").write_text(TOKEN)
    search(hub, "llama")
    read_repo(hub, "other/Llama-small-GGUF")
    logging.disable(logging.CRITICAL)  # as the child process does
    try:
        file = (ItemFile("a.gguf", 0),)
        job = DownloadJob("other/Llama-small-GGUF", "main", file, str(cache.folder), server.address)
        Fetcher(job, lambda _report: None).run()
    finally:
        logging.disable(logging.NOTSET)
    assert in_cache(cache, "other/Llama-small-GGUF", "a.gguf")
    assert SECRET in server.requests("cdn")[-1].path
    assert TOKEN not in caplog.text and SECRET not in caplog.text
    assert caplog.text  # something was logged
