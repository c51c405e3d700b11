"""Search and repositories, asked by the real client; offline mode."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from huggingface_hub import constants, set_client_factory

from app.engine.errors import UserError
from app.hub.catalogue import confirm
from app.hub.downloads import Wanted
from app.hub.errors import Trouble
from app.hub.hub import Hub, bounded_session, save_token
from app.hub.repo import read_repo, search
from tests.hub.server import TOKEN, FakeHub, FakeRepo, Fault
from tests.hub.stock import LARGE, PAIR, SMALL, stock, trouble


@pytest.fixture(autouse=True)
def everything(server: FakeHub) -> None:
    stock(server)


# ---------------------------------------------------------------------------------------- search


def test_words_find_repositories_most_downloaded_first(hub: Hub) -> None:
    found = search(hub, " llama ")
    assert [(hit.repo, hit.gated) for hit in found] == [
        ("other/Llama-small-GGUF", True),
        ("owner/Llama-GGUF", False),
    ]
    assert (found[1].licence, found[1].architecture, found[1].parameters) == (
        "llama3.2",
        "llama",
        1_700_000_000,
    )
    assert found[1].downloads == 500
    assert found[1].updated is not None and found[1].updated.year == 2026
    assert search(hub, "nothing has this") == ()
    assert len(search(hub, "llama", limit=1)) == 1


def test_only_gguf_repositories_are_asked_for(hub: Hub, server: FakeHub) -> None:
    search(hub, "llama")
    assert "filter=gguf" in server.requests("api")[-1].path
    assert "search=llama" in server.requests("api")[-1].path


@pytest.mark.parametrize(
    "text", ["owner/Llama-GGUF", "https://huggingface.co/owner/Llama-GGUF/blob/main/Llama-Q8_0.gguf"]
)
def test_an_address_finds_its_repository(hub: Hub, text: str) -> None:
    assert [hit.repo for hit in search(hub, text)] == ["owner/Llama-GGUF"]


def test_the_beginning_of_a_name_is_searched_for(hub: Hub) -> None:
    assert [hit.repo for hit in search(hub, "owner/Llama")] == ["owner/Llama-GGUF"]
    error = trouble(lambda: search(hub, "https://huggingface.co/owner/Llama"))
    assert error.trouble is Trouble.NOT_FOUND


def test_no_words() -> None:
    with pytest.raises(UserError, match="nothing to search for"):
        search(Hub(), "  ")


# ---------------------------------------------------------------------------------- repositories


def test_a_repository_has_its_quantisations_smallest_first(hub: Hub, server: FakeHub) -> None:
    repo = read_repo(hub, "owner/Llama-GGUF")
    assert [
        (quantisation.name, quantisation.size, quantisation.file) for quantisation in repo.quantisations
    ] == [("Q4_K_M", len(SMALL), "Llama-Q4_K_M.gguf"), ("Q8_0", len(LARGE), "Llama-Q8_0.gguf")]
    assert (repo.licence, repo.architecture, repo.context) == ("llama3.2", "llama", 8192)
    assert repo.commit == server.repos["owner/Llama-GGUF"].commit
    assert repo.holding("q4_k_m") is repo.holding("Llama-Q4_K_M.gguf") is repo.quantisations[0]
    error = trouble(lambda: repo.holding("Q2_K"))
    assert "Llama-Q4_K_M.gguf" in error.hint


@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        (["m-Q2_K.gguf", "m-Q4_K_M.gguf", "m-Q8_0.gguf"], "m-Q4_K_M.gguf"),
        (["m-Q2_K.gguf", "m-Q8_0.gguf", "m-F16.gguf"], "m-Q8_0.gguf"),
        (["m-F16.gguf", "m-Q2_K.gguf"], "m-Q2_K.gguf"),
    ],
)
def test_an_unnamed_quantisation_is_chosen_as_llama_cpp_does(
    hub: Hub, server: FakeHub, files: list[str], chosen: str
) -> None:
    server.repos["a/b"] = FakeRepo({name: SMALL if "Q2" in name else LARGE for name in files})
    assert read_repo(hub, "a/b").chosen().file == chosen
    server.repos["a/b"] = FakeRepo({"README.md": b""})
    assert "no GGUF file" in trouble(read_repo(hub, "a/b").chosen).message


def test_parts_are_one_and_what_lacks_parts_is_named(hub: Hub, server: FakeHub) -> None:
    names = [f"Q8_0/big-Q8_0-0000{i}-of-00003.gguf" for i in (2, 1, 3)]
    broken = ["half-00001-of-00002.gguf"]
    server.repos["a/b"] = FakeRepo(dict.fromkeys(names + broken, SMALL))
    repo = read_repo(hub, "a/b")
    (quantisation,) = repo.quantisations
    assert [file.name for file in quantisation.files] == sorted(names)
    assert (quantisation.name, quantisation.size, quantisation.file) == ("Q8_0", 3 * len(SMALL), min(names))
    assert repo.notices == ("half is left out: 1 of 2 parts are there.",)


def test_names_that_leave_the_folder_are_left_out(hub: Hub, server: FakeHub) -> None:
    names = ["../../up.gguf", "/abs.gguf", "C:\\x.gguf", "fine.gguf"]
    server.repos["a/b"] = FakeRepo(dict.fromkeys(names, SMALL))
    repo = read_repo(hub, "a/b")
    assert [quantisation.file for quantisation in repo.quantisations] == ["fine.gguf"]
    assert len(repo.notices) == 3


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (Fault(status=404), Trouble.NOT_FOUND, "not on the Hub"),
        (Fault(status=401), Trouble.GATED, "does not let you"),
        (Fault(status=403), Trouble.DENIED, "may not read"),
        (Fault(status=429, headers=(("Retry-After", "31"),)), Trouble.BUSY, "429"),
        (Fault(status=500), Trouble.SERVER, "500"),
        (Fault(status=503), Trouble.SERVER, "503"),
        (Fault(body=b"<html>"), Trouble.SERVER, "cannot be used"),
        (Fault(body=b"[]"), Trouble.SERVER, "cannot be used"),
        (Fault(body=b"{}"), Trouble.SERVER, "cannot be used"),
        (
            Fault(body=b'{"id": "owner/Llama-GGUF", "sha": "../../x", "siblings": []}'),
            Trouble.SERVER,
            "commit",
        ),
    ],
)
def test_refusals_are_sentences(hub: Hub, server: FakeHub, fault: Fault, kind: Trouble, words: str) -> None:
    server.always["api"] = fault
    error = trouble(lambda: read_repo(hub, "owner/Llama-GGUF"))
    assert error.trouble is kind
    assert words in str(error)
    assert error.wait == (31 if kind is Trouble.BUSY else None)


def test_a_hub_that_is_silent(hub: Hub, server: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.hub.hub.ANSWER_SECONDS", 0.3)
    server.always["api"] = Fault(stall=10.0)
    assert "does not answer" in trouble(lambda: search(hub, "llama")).message


_ENDLESS = b"[" + b" " * 2**25 + b"]"
_BOMB = gzip.compress(gzip.compress(b" " * 2**24))
_MANY = b"[" + b"[]," * 2**20 + b"[]]"
_LONG_HEAD = b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 90_000


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(body=_ENDLESS), "it has more than 32 MB"),
        (Fault(body=_MANY), "it has too many values"),
        (Fault(body=_BOMB, headers=(("Content-Encoding", "gzip, gzip"),)), "it is compressed"),
        (Fault(body=_ENDLESS[: 2**21], status=404), "it has more than 1 MB"),
        (Fault(status=302, body=_ENDLESS[: 2**21], headers=(("Location", "/x"),)), "it has more than 1 MB"),
        (Fault(status=500, body=b"[" * 100_000), "it is nested too deep"),
        (Fault(body=_ENDLESS[:100_000], pace=0.1), "has not ended within 0.5 s"),
        (Fault(raw=_LONG_HEAD, pace=0.1), "has not ended within 0.5 s"),
    ],
)
@pytest.mark.parametrize(
    "ask", [lambda hub: search(hub, "llama"), lambda hub: read_repo(hub, "owner/Llama-GGUF")]
)
def test_no_answer_is_endless(
    hub: Hub,
    server: FakeHub,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
    words: str,
    ask: Callable[[Hub], object],
) -> None:
    if fault.pace:
        monkeypatch.setattr("app.hub.hub.WHOLE_SECONDS", 0.5)
    server.always["api"] = fault
    assert words in trouble(lambda: ask(hub)).message


def test_first_questions_on_several_threads_share_an_open_client(hub: Hub) -> None:
    hooks = {"request": bounded_session().event_hooks["request"][:-1]}
    set_client_factory(lambda: httpx2.Client(event_hooks=hooks))  # as before the first question
    with ThreadPoolExecutor(4) as threads:
        clients = list(threads.map(lambda _: bounded_session(), range(4)))
    assert len({id(client) for client in clients}) == 1 and not clients[0].is_closed


def test_a_hub_that_is_not_there() -> None:
    hub = Hub(endpoint="http://127.0.0.1:9")
    assert trouble(lambda: search(hub, "llama")).trouble is Trouble.UNREACHABLE


# ---------------------------------------------------------------------------------- offline mode


def test_offline_nothing_is_asked(server: FakeHub) -> None:
    offline = True
    hub = Hub(lambda: offline, server.address)
    works = [
        lambda: search(hub, "llama"),
        lambda: read_repo(hub, "owner/Llama-GGUF"),
        lambda: save_token(hub, TOKEN),
    ]
    for work in works:
        error = trouble(work)
        assert error.trouble is Trouble.OFFLINE
        assert "Offline mode is on" in error.message
    (confirmed, _) = confirm(hub, PAIR.models)
    assert confirmed.problem is not None and confirmed.problem.trouble is Trouble.OFFLINE
    assert server.asked == []
    offline = False
    assert search(hub, "llama")


def test_the_variable_of_the_client_counts(
    hub: Hub, server: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert hub.is_offline
    assert trouble(lambda: search(hub, "llama")).trouble is Trouble.OFFLINE
    assert server.asked == []


def test_a_hub_that_lists_more_than_was_asked_for(hub: Hub, server: FakeHub) -> None:
    many = [{"id": f"owner/m{number}"} for number in range(50)]
    server.faults["api"].append(Fault(body=json.dumps(many).encode()))
    assert len(search(hub, "m", limit=3)) == 3


def test_a_listing_of_many_names_is_a_sentence(hub: Hub, server: FakeHub) -> None:
    names = [f"m{number:04}-Q8_0.gguf" for number in range(500)] + [
        f"../{number}.gguf" for number in range(500)
    ]
    server.repos["a/b"] = FakeRepo(dict.fromkeys([*names, "x" * 5000 + ".gguf"], b"1"))
    repo = read_repo(hub, "a/b")
    for file in ("Q2_K", "Q8_0"):
        assert len(str(trouble(lambda file=file: repo.holding(file)))) < 1500  # type: ignore[misc]
    assert len(repo.notices) <= 21 and repo.notices[-1] == "481 more files are left out."


def test_a_model_of_two_files_of_one_quantisation_is_titled_by_its_file(hub: Hub, server: FakeHub) -> None:
    server.repos["owner/two"] = FakeRepo({"a-Q4_0.gguf": b"1", "b-Q4_0.gguf": b"12", "c-Q8_0.gguf": b"123"})
    repo = read_repo(hub, "owner/two")
    assert [Wanted.of(repo, quantisation).title for quantisation in repo.quantisations] == [
        "owner/two a-Q4_0.gguf",
        "owner/two b-Q4_0.gguf",
        "owner/two Q8_0",
    ]


def test_an_answer_nested_too_deep_is_one_that_cannot_be_used(hub: Hub, server: FakeHub) -> None:
    deep = b'[{"id": "a/b", "cardData": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}]"
    server.faults["api"].extend([Fault(body=deep), Fault(body=deep[1:-1])])
    assert trouble(lambda: search(hub, "m")).trouble is Trouble.SERVER
    assert trouble(lambda: read_repo(hub, "owner/Llama-GGUF")).trouble is Trouble.SERVER


def test_numbers_that_are_none_are_left_out(hub: Hub, server: FakeHub) -> None:
    listing = {
        "id": "owner/m",
        "sha": "0" * 40,
        "gguf": {"architecture": "x" * 5_000_000, "total": 10**30},
        "siblings": [{"rfilename": "m-Q8_0.gguf", "size": -1}],
    }
    server.faults["api"].append(Fault(body=json.dumps(listing).encode()))
    repo = read_repo(hub, "owner/m")
    assert (repo.quantisations[0].size, repo.parameters, len(repo.architecture)) == (0, None, 60)
    server.faults["api"].append(Fault(body=json.dumps([{"id": "owner/m", "downloads": "many"}]).encode()))
    assert search(hub, "m")[0].downloads == 0
    for name in (5, "../x", "x" * 5000):
        server.faults["api"].append(Fault(body=json.dumps([{"id": name}]).encode()))
        assert trouble(lambda: search(hub, "m")).trouble is Trouble.SERVER
