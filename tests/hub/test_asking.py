"""Search, repositories, the catalogue and the token, asked by the real client."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants, hf_api

from app.engine.errors import UserError
from app.hub.cache import Cache
from app.hub.catalogue import Confirmed, Entry, Pair, confirm, load_catalogue, wanted_pair
from app.hub.errors import HubError, Trouble
from app.hub.fits import Fit, Light, Room, format_size, judge
from app.hub.hub import Hub
from app.hub.repo import read_repo
from app.hub.search import search
from app.hub.token import forget_token, has_token, save_token
from app.paths import find_paths
from tests.hub.server import BAD_TOKEN, SECRET, TOKEN, FakeHub, FakeRepo, Fault

SMALL, LARGE = b"GGUF" * 10, b"GGUF" * 100


@pytest.fixture(autouse=True)
def everything(server: FakeHub) -> None:
    server.repos["owner/Llama-GGUF"] = FakeRepo(
        {"Llama-Q8_0.gguf": LARGE, "Llama-Q4_K_M.gguf": SMALL, "README.md": b"", "mmproj-F16.gguf": SMALL},
        licence="llama3.2",
        downloads=500,
    )
    server.repos["other/Llama-small-GGUF"] = FakeRepo({"a.gguf": SMALL}, gated=True, downloads=900)
    server.repos["owner/Qwen-GGUF"] = FakeRepo({"q.gguf": SMALL})


def trouble(work: Callable[[], object]) -> HubError:
    with pytest.raises(HubError) as raised:
        work()
    return raised.value


# ---------------------------------------------------------------------------------------- search


def test_words_find_repositories_most_downloaded_first(hub: Hub) -> None:
    found = search(hub, " llama ")
    assert [(one.repo, one.gated) for one in found] == [
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
    assert [one.repo for one in search(hub, text)] == ["owner/Llama-GGUF"]


def test_the_beginning_of_a_name_is_searched_for(hub: Hub) -> None:
    assert [one.repo for one in search(hub, "owner/Llama")] == ["owner/Llama-GGUF"]
    error = trouble(lambda: search(hub, "https://huggingface.co/owner/Llama"))
    assert error.trouble is Trouble.NOT_FOUND


def test_no_words() -> None:
    with pytest.raises(UserError, match="nothing to search for"):
        search(Hub(), "  ")


# ---------------------------------------------------------------------------------- repositories


def test_a_repository_has_its_quantisations_smallest_first(hub: Hub, server: FakeHub) -> None:
    repo = read_repo(hub, "owner/Llama-GGUF")
    assert [(one.name, one.size, one.file) for one in repo.quantisations] == [
        ("Q4_K_M", len(SMALL), "Llama-Q4_K_M.gguf"),
        ("Q8_0", len(LARGE), "Llama-Q8_0.gguf"),
    ]
    assert (repo.licence, repo.architecture, repo.context) == ("llama3.2", "llama", 8192)
    assert repo.commit == server.repos["owner/Llama-GGUF"].commit
    assert repo.holding("q4_k_m") is repo.holding("Llama-Q4_K_M.gguf") is repo.quantisations[0]
    error = trouble(lambda: repo.holding("Q2_K"))
    assert "Llama-Q4_K_M.gguf" in error.hint


def test_parts_are_one_and_what_lacks_parts_is_named(hub: Hub, server: FakeHub) -> None:
    names = [f"Q8_0/big-Q8_0-0000{i}-of-00003.gguf" for i in (2, 1, 3)]
    broken = ["half-00001-of-00002.gguf"]
    server.repos["a/b"] = FakeRepo(dict.fromkeys(names + broken, SMALL))
    repo = read_repo(hub, "a/b")
    (one,) = repo.quantisations
    assert [file.name for file in one.files] == sorted(names)
    assert (one.name, one.size, one.file) == ("Q8_0", 3 * len(SMALL), min(names))
    assert repo.notices == ("half is left out: 1 of 2 parts are there.",)


def test_names_that_leave_the_folder_are_left_out(hub: Hub, server: FakeHub) -> None:
    names = ["../../up.gguf", "/abs.gguf", "C:\\x.gguf", "fine.gguf"]
    server.repos["a/b"] = FakeRepo(dict.fromkeys(names, SMALL))
    repo = read_repo(hub, "a/b")
    assert [one.file for one in repo.quantisations] == ["fine.gguf"]
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
    server.always["api"] = Fault(stall=1.0)
    assert "does not answer" in trouble(lambda: search(hub, "llama")).message


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
    (confirmed, _) = confirm(hub, PAIR)
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


# ------------------------------------------------------------------------------------- catalogue

PAIR = Pair(
    "id",
    "title",
    "good for tests",
    (
        Entry("owner/Qwen-GGUF", "q.gguf", 1, role="draft"),
        Entry("owner/Llama-GGUF", "Llama-Q8_0.gguf", 1),
    ),
)


def test_the_catalogue_that_comes_along() -> None:
    pairs = load_catalogue(find_paths().resources / "catalogue.json")
    assert pairs[0].id == "smollm2-1.7b"  # first choice for a laptop
    assert len({pair.id for pair in pairs}) == len(pairs) >= 8
    for pair in pairs:
        assert pair.draft is not None and pair.draft.size < pair.target.size
        assert all(one.licence and one.size and one.file.endswith(".gguf") for one in pair.models)
        assert pair.good_for.endswith(".") and "/" not in pair.id


def test_a_catalogue_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.json"
    path.write_text('{"version": 1, "pairs": [{"id": "a", "title": "", "good_for": "", "models": []}]}')
    with pytest.raises(ValueError, match="a is no pair"):
        load_catalogue(path)


def test_sizes_and_names_are_confirmed(hub: Hub) -> None:
    target, draft = confirm(hub, PAIR)
    assert target.entry.role == "target"
    assert target.quantisation is not None and target.quantisation.size == len(LARGE)
    assert target.replaced == "" and target.problem is None
    wanted = wanted_pair([target, draft])
    assert [(one.repo, one.files[0].name, one.size) for one in wanted] == [
        ("owner/Llama-GGUF", "Llama-Q8_0.gguf", len(LARGE)),
        ("owner/Qwen-GGUF", "q.gguf", len(SMALL)),
    ]


def test_a_renamed_file_is_replaced_by_its_quantisation(hub: Hub, server: FakeHub) -> None:
    files = server.repos["owner/Llama-GGUF"].files
    files["New-Q8_0.gguf"] = files.pop("Llama-Q8_0.gguf")
    target, _ = confirm(hub, PAIR)
    assert target.quantisation is not None and target.quantisation.file == "New-Q8_0.gguf"
    assert target.replaced == "Llama-Q8_0.gguf"


def test_of_several_files_none_is_chosen_by_chance(hub: Hub, server: FakeHub) -> None:
    server.repos["owner/two-GGUF"] = FakeRepo({"base-Q8_0.gguf": SMALL, "instruct-Q8_0.gguf": LARGE})
    repo = read_repo(hub, "owner/two-GGUF")
    assert repo.holding("instruct-Q8_0.gguf").size == len(LARGE)
    error = trouble(lambda: repo.holding("q8_0"))
    assert "2 files" in error.message
    assert "base-Q8_0.gguf, instruct-Q8_0.gguf" in error.hint
    renamed = Entry("owner/two-GGUF", "chat-Q8_0.gguf", 1)
    (confirmed,) = confirm(hub, Pair("p", "", "", (renamed,)))
    assert confirmed.problem is not None and confirmed.quantisation is None


def test_what_is_gone_is_a_problem_of_the_pair(hub: Hub, server: FakeHub) -> None:
    del server.repos["owner/Llama-GGUF"].files["Llama-Q8_0.gguf"]
    target, draft = confirm(hub, PAIR)
    assert target.problem is not None and target.problem.trouble is Trouble.NOT_FOUND
    assert draft.problem is None
    assert trouble(lambda: wanted_pair([draft, target])) is target.problem
    assert isinstance(target, Confirmed)


# ----------------------------------------------------------------------------------------- token


@pytest.fixture
def login_here(server: FakeHub, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Logging in asks the Hub that HF_ENDPOINT named when the client was loaded."""
    monkeypatch.setattr(hf_api.api, "endpoint", server.address)
    yield


@pytest.mark.usefixtures("login_here")
def test_a_token_is_tried_and_kept_where_the_client_keeps_it(
    hub: Hub, home: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    assert not has_token()
    save_token(hub, f" {TOKEN}\n")
    assert has_token()
    assert (home / "token").read_text() == TOKEN
    if os.name == "posix":
        assert (home / "token").stat().st_mode & 0o077 == 0
    forget_token()
    assert not has_token()
    assert TOKEN not in caplog.text + "".join(capfd.readouterr())


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
    assert not has_token()


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
    from app.hub.downloads.item import ItemFile
    from app.hub.downloads.messages import Job

    caplog.set_level(logging.DEBUG)
    (home / "token").write_text(TOKEN)
    search(hub, "llama")
    read_repo(hub, "other/Llama-small-GGUF")
    logging.disable(logging.CRITICAL)  # as the child process does
    try:
        file = (ItemFile("a.gguf", 0),)
        job = Job("other/Llama-small-GGUF", "main", file, str(cache.folder), server.address)
        Fetcher(job, lambda _report: None).run()
    finally:
        logging.disable(logging.NOTSET)
    assert cache.find("other/Llama-small-GGUF", "a.gguf")
    assert SECRET in server.requests("cdn")[-1].path
    assert TOKEN not in caplog.text and SECRET not in caplog.text
    assert caplog.text  # something was logged


# ------------------------------------------------------------------------------------------ fits


def test_the_light_and_its_numbers() -> None:
    room = Room(memory=8_000_000_000, device=4_000_000_000)
    assert judge(3_000_000_000, room).light is Light.GPU
    assert judge(3_600_000_000, room).light is Light.MEMORY  # with its context it does not fit any more
    assert judge(7_500_000_000, Room(8_000_000_000)).light is Light.NOT
    assert judge(3_000_000_000, Room(8_000_000_000)).light is Light.MEMORY
    fit = judge(3_000_000_000, room, 500_000_000)
    assert fit == Fit(Light.GPU, 3_000_000_000, 500_000_000, room)
    assert str(fit) == (
        "fits on the GPU: needs about 3.50 GB (3.00 GB weights, 500 MB context); "
        "free: 4.00 GB on the GPU and 8.00 GB of memory"
    )
    assert judge(1000, room, lambda size: size * 2).needed == 3000


def test_layers_can_lie_on_both() -> None:
    room = Room(memory=8_000_000_000, device=4_000_000_000)
    assert judge(6_900_000_000, room).light is Light.MEMORY
    assert judge(7_500_000_000, room).light is Light.BOTH
    assert judge(10_300_000_000, room).light is Light.BOTH  # with its context 11.3 of 11.4 GB
    assert judge(10_400_000_000, room).light is Light.NOT
    assert judge(7_500_000_000, room).light == "fits on GPU and memory together"
    same = Room(8_000_000_000, 4_000_000_000, shared=True)
    assert judge(7_500_000_000, same).light is Light.NOT
    assert judge(3_000_000_000, same).light is Light.GPU


@pytest.mark.parametrize(
    ("kind", "backend", "shared"),
    [("GPU", "CUDA", False), ("integrated GPU", "Vulkan", True), ("GPU", "MTL", True)],
)
def test_memory_that_a_gpu_shares_is_not_counted_twice(kind: str, backend: str, shared: bool) -> None:
    from app.engine.memory import Device

    devices = (Device("X0", "", kind, backend, 4, 4), Device("CPU", "", "CPU", "CPU", 8, 8))
    assert Room.of(devices) == Room(8, 4, shared)


def test_room_is_what_the_devices_have() -> None:
    from app.engine.memory import Device

    def device(name: str, kind: str, free: int) -> Device:
        return Device(name, "", kind, "", free, free)

    cpu = device("CPU", "CPU", 10)
    assert Room.of([cpu]) == Room(10)
    assert Room.of([device("CUDA0", "GPU", 3), device("CUDA1", "GPU", 4), cpu]) == Room(10, 7)
    assert Room.of([device("BLAS", "accelerator", 5), cpu]) == Room(10)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (999_999, "1.00 MB"),
        (145_000_000, "145 MB"),
        (1_060_000_000, "1.06 GB"),
        (19_900_000_000, "20 GB"),
        (2_500, "2 kB"),
    ],
)
def test_sizes_as_people_read_them(size: int, text: str) -> None:
    assert format_size(size) == text
