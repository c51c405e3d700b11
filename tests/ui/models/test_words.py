"""Models and downloads in words."""

from __future__ import annotations

import pytest

from app.hub.downloads.item import Download, ItemFile, State
from app.hub.fits import Room, fit_in
from app.hub.repo import RepoHit
from app.ui.models.entry_rows import fit_words, hit_words, progress_words, room_words, state_words, time_left
from app.ui.models.quantisation_row import light_words


def plain(words: str) -> str:
    return words.replace("\N{NO-BREAK SPACE}", " ")


def item(state: State, **more: object) -> Download:
    files = (ItemFile("a-00001-of-00002.gguf", 600), ItemFile("a-00002-of-00002.gguf", 400))
    return Download("id", "group", "owner/a", "a Q8_0", files, state=state, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (0.2, "1 s left"),
        (42.4, "42 s left"),
        (89.4, "89 s left"),
        (90, "2 min left"),
        (3599, "1 h 00 min left"),
        (3 * 3600 + 290, "3 h 05 min left"),
    ],
)
def test_time_left_is_coarse(seconds: float | None, words: str) -> None:
    assert plain(time_left(seconds)) == words


def test_progress_tells_what_is_known() -> None:
    assert plain(progress_words(item(State.QUEUED))) == "0 B of 1.00 kB · 0 %"
    running = item(State.RUNNING, done=250, speed=2_500_000.0, seconds_left=42.0)
    assert plain(progress_words(running)) == "250 B of 1.00 kB · 25 % · 2.50 MB/s · 42 s left"
    assert plain(progress_words(item(State.DONE))) == "1.00 kB · 2 files"


@pytest.mark.parametrize("state", list(State))
def test_every_state_has_words(state: State) -> None:
    assert state_words(item(state), 4.0)


def test_a_light_tells_the_memory_that_it_is_about() -> None:
    room = Room(memory=8_000_000_000, device=4_000_000_000)
    assert plain(fit_words(fit_in(1_000_000_000, room))) == (
        "Fits on the GPU: needs about 1.20 GB, 4.00 GB free"
    )
    assert plain(fit_words(fit_in(5_000_000_000, room))) == (
        "Fits in memory: needs about 5.50 GB, 8.00 GB free"
    )
    assert plain(fit_words(fit_in(9_000_000_000, room))) == (
        "Fits on GPU and memory together: needs about 9.90 GB, 12.0 GB free"
    )
    assert plain(fit_words(fit_in(20_000_000_000, room))) == (
        "Will not fit: needs about 22.0 GB, 12.0 GB free"
    )
    assert plain(fit_words(fit_in(9_000_000_000, Room(8_000_000_000)))) == (
        "Will not fit: needs about 9.90 GB, 8.00 GB free"
    )
    tight = fit_in(7_000_000_000, Room(8_000_000_000))
    assert plain(fit_words(tight)) == "Too tight: needs about 7.70 GB, 8.00 GB free"
    assert str(tight).endswith("free: 8.00 GB of memory, 5\xa0% of it reserved for other programs")
    assert plain(room_words(room)) == "4.00 GB on the GPU and 8.00 GB of memory free"


def test_the_light_alone_is_short() -> None:
    room = Room(memory=8_000_000_000, device=4_000_000_000)
    sizes = (1_000_000_000, 5_000_000_000, 9_000_000_000, 20_000_000_000)
    words = [light_words(fit_in(size, room)) for size in sizes]
    assert words == ["Fits on the GPU", "Fits in memory", "GPU and memory", "Will not fit"]


def test_a_hit_leaves_out_what_the_hub_does_not_tell() -> None:
    assert plain(hit_words(RepoHit("a/b", 7, 0, True, ""))) == "7 downloads · gated"
    full = RepoHit("a/b", 412_345, 3, False, "mit", "llama", 1_700_000_000)
    assert plain(hit_words(full)) == "1.7B · llama · mit · 412K downloads"
