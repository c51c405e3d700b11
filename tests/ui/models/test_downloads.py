"""The queue in the window: progress, pause, resume, cancel, dismiss, messages, restart."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QProgressBar, QPushButton

from app.base.paths import Paths
from app.hub.downloads import State
from app.ui.models.hub_session import HubSession
from tests.hub.server import FakeHub, Fault
from tests.ui.models.shop import FIRST, Shop
from tests.ui.named import named, words_in


def fetch(shop: Shop) -> None:
    """Fetch the first pair, and look at the queue."""
    shop.until(lambda: shop.card().state == "Confirmed with the Hub.")
    shop.click(shop.card().button)
    shop.until(lambda: len(shop.place.downloads.rows) == 2)
    shop.view("Downloads")


def left(home: Path) -> list[str]:
    return [path.name for path in (home / "hub").rglob("*") if path.is_file()]


def test_an_empty_queue_says_what_to_do(shop: Shop) -> None:
    shop.view("Downloads")
    page = shop.place.downloads
    assert page.placeholder.isVisible() and "No downloads" in page.placeholder.text
    shop.click(named(page, "Open the catalogue", QPushButton))
    assert shop.place.view == "Catalogue"


def test_a_pair_stands_together_and_is_used_when_all_of_it_is_here(shop: Shop, stocked: FakeHub) -> None:
    stocked.always["cdn"] = Fault(pace=0.01)
    fetch(shop)
    (group,) = shop.place.downloads.groups.values()
    assert FIRST in words_in(group) and not group.use.isVisible()
    row = shop.download("1.7B")
    shop.until(lambda: row.download.state is State.RUNNING and 0 < row.findChild(QProgressBar).value() < 1000)
    assert "MB of" in words_in(row) or "kB of" in words_in(row)
    stocked.always.clear()
    shop.until(group.use.isVisible)
    shop.click(group.use)
    target, draft = shop.loaded()
    assert target is not None and "1.7B" in target and draft is not None and "135M" in draft


def test_pause_resume_and_cancel(shop: Shop, stocked: FakeHub, hub_home: Path) -> None:
    stocked.always["cdn"] = Fault(pace=0.05)
    fetch(shop)
    row = shop.download("1.7B")
    shop.until(lambda: row.download.done > 0)
    shop.click(row.pause)
    shop.until(lambda: row.state.text() == "paused")
    assert not row.pause.isVisible() and row.resume.isVisible()
    shop.click(row.resume)
    shop.until(lambda: row.download.state is State.RUNNING and row.download.done > 0)
    shop.click(row.cancel)
    assert row.asking.isVisible() and "Cancel and delete" in row.asking.words
    shop.click(row.asking.no)
    assert len(shop.place.downloads.rows) == 2
    shop.click(row.cancel)
    shop.click(row.asking.yes)
    shop.until(lambda: len(shop.place.downloads.rows) == 1)
    other = shop.download("135M")
    if not other.download.done:
        shop.until(lambda: other.download.done)
    shop.click(other.cancel)
    shop.click(other.asking.yes)
    shop.until(lambda: not shop.place.downloads.rows)
    assert left(hub_home) == [] and shop.place.downloads.placeholder.isVisible()


def test_a_pair_leaves_the_list_as_a_whole_and_its_files_stay(shop: Shop, hub_home: Path) -> None:
    fetch(shop)
    (group,) = shop.place.downloads.groups.values()
    shop.until(group.use.isVisible)
    assert not any(row.dismiss.isVisible() for row in shop.place.downloads.rows)
    shop.click(group.dismiss)
    shop.until(lambda: not shop.place.downloads.rows)
    assert {name for name in left(hub_home) if name.endswith(".gguf")} == {
        model.file for model in shop.card().pair.models
    }


def test_done_items_leave_the_disk_and_the_rest_the_list(shop: Shop, hub_home: Path) -> None:
    fetch(shop)
    shop.until(lambda: all(row.download.state is State.DONE for row in shop.place.downloads.rows))
    target, draft = shop.download("1.7B"), shop.download("135M")
    shop.click(draft.cancel)
    assert "Delete" in draft.asking.words and "from disk" in draft.asking.words
    shop.click(draft.asking.yes)
    shop.until(lambda: len(shop.place.downloads.rows) == 1)
    assert not any("135M" in name for name in left(hub_home))
    shop.until(lambda: not any("135M" in name for name in shop.library_names()))
    shop.click(target.dismiss)
    shop.until(lambda: not shop.place.downloads.rows)
    assert any("Q4_K_M" in name for name in left(hub_home))


@pytest.mark.parametrize("looked_at", [True, False])
def test_a_question_about_a_download_that_finishes_is_withdrawn(
    shop: Shop, stocked: FakeHub, hub_home: Path, looked_at: bool
) -> None:
    stocked.always["cdn"] = Fault(pace=0.05)
    fetch(shop)
    row = shop.download("1.7B")
    shop.until(lambda: row.download.done > 0)
    shop.click(row.cancel)
    assert "downloaded so far" in row.asking.words
    if not looked_at:
        shop.view("Library")
    stocked.always.clear()
    shop.click(row.pause) if looked_at else row.pause.click()
    shop.until(lambda: row.download.state is State.PAUSED)
    row.resume.click()
    shop.until(lambda: row.download.state is State.DONE)
    shop.view("Downloads")
    assert row.asking.isVisible() is looked_at
    assert not row.asking.yes.isVisible()
    assert Path(row.download.path).stat().st_size == row.download.total


def test_an_answer_that_comes_after_the_last_byte_deletes_nothing(shop: Shop, stocked: FakeHub) -> None:
    """The window learns of the end a moment after it."""
    stocked.always["cdn"] = Fault(pace=0.05)
    fetch(shop)
    row = shop.download("1.7B")
    shop.until(lambda: row.download.done > 0)
    shop.click(row.pause)
    shop.until(lambda: row.download.state is State.PAUSED)
    shop.click(row.cancel)
    stocked.always.clear()
    queue = shop.session.downloads_queue()
    queue.resume(row.download.id)
    while not all(download.state is State.DONE for download in queue.downloads):
        time.sleep(0.01)  # this is the window's thread: it hears of nothing meanwhile
    assert row.download.state is not State.DONE
    shop.click(row.asking.yes)
    shop.until(lambda: row.download.state is State.DONE)
    shop.until(lambda: "1.7B" in " ".join(shop.library_names()))
    assert Path(row.download.path).stat().st_size == row.download.total


def test_every_button_of_a_download_has_a_place_of_its_own(shop: Shop, stocked: FakeHub) -> None:
    stocked.always["cdn"] = Fault(pace=0.05)
    fetch(shop)
    row = shop.download("1.7B")
    (group,) = shop.place.downloads.groups.values()
    buttons = (row.pause, row.resume, row.show_here, row.dismiss, row.cancel, group.use, group.dismiss)
    places: dict[str, set[tuple[int, int, int, int]]] = {}

    def look() -> None:
        for button in buttons:
            if button.isVisible():
                at = button.mapTo(shop.place, QPoint())
                where = (at.x(), at.y(), button.width(), button.height())
                places.setdefault(button.toolTip(), set()).add(where)

    shop.until(lambda: row.download.done > 0)
    height = row.height()
    look()
    shop.click(row.pause)
    shop.until(lambda: row.download.state is State.PAUSED)
    look()
    stocked.always.clear()
    shop.click(row.resume)
    shop.until(group.use.isVisible)
    look()
    assert row.height() == height
    assert {"Pause", "Resume", "Show it in the library", "Load both models into the chat"} <= set(places)
    taken = [(name, where) for name, wheres in places.items() for where in wheres]
    for name, where in taken:
        for other, there in taken:
            same = {name, other} <= {"Delete the files…", "Cancel and delete what was downloaded"}
            if name != other and not same:
                assert not QRect(*where).intersects(QRect(*there)), (name, other)


def test_a_wrong_checksum_is_told_and_tried_again(shop: Shop, stocked: FakeHub) -> None:
    stocked.always["cdn"] = Fault(wrong=True)
    fetch(shop)
    row, other = shop.download("135M"), shop.download("1.7B")
    shop.until(lambda: row.download.state is other.download.state is State.FAILED)
    assert "checksum" in row.message.text() and row.resume.toolTip() == "Try again"
    shop.view("Catalogue")
    assert shop.card().button.text() == "Try again" and "checksum" in shop.card().state
    assert "stopped" in shop.place.strip.words.text()
    stocked.always.clear()
    shop.click(shop.card().button)
    shop.until(shop.card().use.isVisible)


def test_it_says_when_it_tries_again_by_itself(shop: Shop, stocked: FakeHub) -> None:
    stocked.always["cdn"] = Fault(status=503, headers=(("Retry-After", "60"),))
    fetch(shop)
    row = shop.download("1.7B")
    shop.until(lambda: row.download.state is State.WAITING)
    assert row.state.text().startswith("retrying in") and "a problem" in row.message.text()
    seconds = shop.session.retry_in(row.download)
    shop.until(lambda: shop.session.retry_in(row.download) < seconds)
    stocked.always.clear()
    assert row.resume.toolTip() == "Try now"
    shop.click(row.resume)
    shop.until(lambda: row.download.state is State.DONE)


def test_offline_stops_what_runs_and_goes_on_afterwards(shop: Shop, stocked: FakeHub) -> None:
    stocked.always["cdn"] = Fault(pace=0.05)
    fetch(shop)
    row = shop.download("1.7B")
    shop.until(lambda: row.download.done > 0)
    shop.click(shop.place.offline)
    shop.until(lambda: row.download.state is State.FAILED)
    assert "resumes when offline mode is off" in row.state.text() and not row.resume.isVisible()
    stocked.always.clear()
    shop.click(shop.place.offline)
    shop.until(lambda: row.download.state is State.DONE)


def test_after_a_restart_it_is_paused_and_goes_on(make_shop: Callable[..., Shop], stocked: FakeHub) -> None:
    stocked.always["cdn"] = Fault(pace=0.05)
    first = make_shop()
    fetch(first)
    shop_row = first.download("1.7B")
    first.until(lambda: shop_row.download.done > 0)
    first.place.close_place()
    again = make_shop()
    again.view("Downloads")
    row = again.download("1.7B")
    assert row.state.text() == "paused" and row.download.done > 0
    stocked.always.clear()
    again.click(row.resume)
    again.until(lambda: row.download.state is State.DONE)


def test_a_second_window_says_who_keeps_the_queue(make_shop: Callable[..., Shop], stocked: FakeHub) -> None:
    make_shop()
    other = make_shop()
    other.view("Downloads")
    assert "different Draftscope" in other.place.downloads.placeholder.text
    other.view("Catalogue")
    other.until(lambda: other.card().state == "Confirmed with the Hub.")
    other.click(other.card().button)
    other.until(lambda: other.card().notice.message)
    assert "different Draftscope" in other.card().notice.message


@pytest.mark.parametrize("by", ["looking", "fetching"])
def test_a_second_window_takes_the_queue_over(
    make_shop: Callable[..., Shop], stocked: FakeHub, by: str
) -> None:
    stocked.always["cdn"] = Fault(pace=0.05)
    first = make_shop()
    other = make_shop()
    fetch(first)
    first.until(lambda: first.download("1.7B").download.done > 0)
    first.place.close_place()
    if by == "looking":
        other.view("Downloads")
        other.until(lambda: len(other.place.downloads.rows) == 2)
        assert other.download("1.7B").state.text() == "paused"
    else:
        other.until(lambda: other.card().state == "Confirmed with the Hub.")
        other.click(other.card().button)
        other.until(lambda: len(other.place.downloads.rows) == 2)
    assert other.session.queue_problem is None


def test_no_room_on_the_disk_is_told_in_the_card(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shop.session.cache, "free_bytes", lambda: 10)
    shop.until(lambda: shop.card().state == "Confirmed with the Hub.")
    shop.click(shop.card().button)
    shop.until(lambda: shop.card().notice.message)
    assert "no room" in shop.card().notice.message and shop.card().button.text().startswith("Download")


def test_a_damaged_queue_file_is_told(make_shop: Callable[..., Shop], paths: Paths, stocked: FakeHub) -> None:
    (paths.data / "downloads.json").write_text("{ no json")
    shop = make_shop()
    shop.view("Downloads")
    assert "damaged" in shop.place.downloads.notice.message
    assert isinstance(shop.session, HubSession)


def test_what_could_not_be_deleted_stays_in_the_queue_and_says_where(
    shop: Shop, hub_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(shop)
    shop.view("Downloads")
    shop.until(lambda: all(row.state.text().endswith("here") for row in shop.place.downloads.rows))
    row = shop.download("135M")

    def refuse(file: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        shop.click(row.cancel)
        shop.click(row.asking.yes)
        shop.until(lambda: row.state.text() == "cancelled")
    assert "permission denied" in row.message.text() and str(hub_home) in row.message.text()
    assert (
        not row.resume.isVisible()
        and not row.pause.isVisible()
        and not row.findChild(QProgressBar).isVisible()
    )
    shop.click(row.cancel)
    shop.until(lambda: len(shop.place.downloads.rows) == 1)
    assert not [name for name in left(hub_home) if "135M" in name]
