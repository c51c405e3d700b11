"""The library in the window: what is here, adding, using, drafts, removing and deleting."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices

from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET, Paths
from app.engine.errors import UserError
from app.hub.library.model import DraftVerdict
from app.ui.models.library_page import NAME, ORIGIN, SIZE, LibraryTable
from app.ui.state.chat_side import KEEP
from tests.files.tiny import Tiny
from tests.hub.server import FakeHub
from tests.ui.models.shop import Shop
from tests.ui.named import words_in


@pytest.fixture
def mine(tmp_path: Path, pair_files: tuple[Path, Path]) -> Path:
    """A folder of the user's with two models, one of them broken."""
    folder = tmp_path / "mine"
    folder.mkdir()
    shutil.copy(pair_files[1], folder / "own-Q8_0.gguf")
    (folder / "broken.gguf").write_bytes(b"PK\x03\x04 something else")
    return folder


def cells(table: LibraryTable, column: int) -> list[str]:
    model = table.model()
    return [str(model.index(row, column).data()) for row in range(model.rowCount())]


def test_what_is_here_is_listed_and_the_chats_target_is_chosen(
    make_shop: Callable[..., Shop], pair_files: tuple[Path, Path]
) -> None:
    shop = make_shop(offline=True)
    shop.in_use = (str(pair_files[0]), str(pair_files[1]))
    shop.view("Library")
    page = shop.place.library
    shop.until(lambda: not shop.session.reading and page.table.current is not None)
    assert sorted(cells(page.table, NAME)) == ["draft", "target"]
    assert page.state.text().startswith("2 models")
    shop.select(pair_files[0])
    details = page.details
    assert "\nllama · " in words_in(details)
    assert "the chat's target" in words_in(details) and "context 1,024" in words_in(details)
    assert not details.delete.isVisible() and not details.remove.isVisible()  # they are part of Draftscope


def test_bundled_models_keep_their_symbol(
    make_shop: Callable[..., Shop], pair_files: tuple[Path, Path]
) -> None:
    shop = make_shop(offline=True)
    shop.select(pair_files[0])
    shop.click(shop.place.library.details.pair)
    assert shop.used == [(BUNDLED_TARGET, BUNDLED_DRAFT)]


def test_files_and_folders_are_added_used_and_removed(make_shop: Callable[..., Shop], mine: Path) -> None:
    shop = make_shop(offline=True, file=mine / "own-Q8_0.gguf", folder=mine)
    shop.view("Library")
    page, details = shop.place.library, shop.place.library.details
    shop.click(page.add_files)
    shop.until(lambda: details.model is not None and details.model.path.name == "own-Q8_0.gguf")
    shop.click(details.target)
    shop.click(details.draft)
    path = str(mine / "own-Q8_0.gguf")
    assert shop.used == [(path, KEEP), (KEEP, path)]
    shop.click(details.remove)
    shop.until(lambda: "own-Q8_0.gguf" not in shop.library_names())
    assert (mine / "own-Q8_0.gguf").exists()
    shop.click(page.add_folder)
    shop.until(lambda: {"own-Q8_0.gguf", "broken.gguf"} <= set(shop.library_names()))
    shop.select(mine / "broken.gguf")
    assert "not a GGUF file" in words_in(details)
    assert not details.target.isEnabled() and not details.pair.isVisible()
    assert "folder" in details.remove.toolTip()
    assert cells(page.table, ORIGIN).count("added") == 2


def test_a_folder_without_models_is_refused_where_it_was_added(
    make_shop: Callable[..., Shop], tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    shop = make_shop(offline=True, folder=empty)
    shop.view("Library")
    shop.click(shop.place.library.add_folder)
    shop.until(lambda: shop.place.library.notice.message)
    assert "no .gguf file" in shop.place.library.notice.message


def test_drafts_stand_best_first_with_their_reasons(
    make_shop: Callable[..., Shop],
    mine: Path,
    pair_files: tuple[Path, Path],
    tiny_file: Callable[[Tiny], Path],
) -> None:
    shutil.copy(tiny_file(Tiny(name="small", n_layers=1, n_embd=16, n_ff=16)), mine / "small.gguf")
    shutil.copy(tiny_file(Tiny(name="other words", letters="abcdef")), mine / "other.gguf")
    shop = make_shop(offline=True, folder=mine)
    shop.view("Library")
    shop.click(shop.place.library.add_folder)
    shop.until(lambda: "other.gguf" in shop.library_names())
    shop.select(pair_files[0])
    details = shop.place.library.details
    verdicts = [candidate.verdict for candidate in details.candidates]
    assert len(verdicts) == len(shop.session.models) - 1
    order = [DraftVerdict.GOOD, DraftVerdict.WORKS, DraftVerdict.CANNOT]
    assert verdicts == sorted(verdicts, key=order.index)
    assert verdicts[0] is DraftVerdict.GOOD and verdicts[-1] is DraftVerdict.CANNOT
    rows = details.drafts.model()
    said = [
        str(rows.index(row, 0).data(Qt.ItemDataRole.AccessibleTextRole)) for row in range(rows.rowCount())
    ]
    assert "Good: it has the same vocabulary" in said[0]
    assert "It cannot draft, because broken.gguf is not a GGUF file" in said[-1]
    assert any("Works, because" in words for words in said)
    assert details.drafts.current == 0
    assert details.best.isEnabled() and details.best.toolTip().startswith("Compare all drafts")
    details.drafts.select(len(said) - 1)
    assert not details.pair.isEnabled()  # a candidate that cannot draft
    details.drafts.select(0)
    shop.click(details.pair)
    assert shop.used == [(BUNDLED_TARGET, str(details.candidates[0].model.path))]
    shop.select(mine / "small.gguf")
    assert "2 layers including output" in words_in(details)
    shop.select(mine / "other.gguf")
    assert not details.best.isEnabled() and details.best.toolTip().startswith("Needs a model with")


def test_a_draft_that_cannot_serve_the_new_target_is_taken_away(
    make_shop: Callable[..., Shop], mine: Path, pair_files: tuple[Path, Path]
) -> None:
    shop = make_shop(offline=True, folder=mine)
    shop.view("Library")
    shop.click(shop.place.library.add_folder)
    shop.until(lambda: "broken.gguf" in shop.library_names())
    shop.in_use = ("elsewhere.gguf", str(mine / "broken.gguf"))
    shop.select(pair_files[0])
    shop.click(shop.place.library.details.target)
    shop.in_use = ("elsewhere.gguf", str(mine / "own-Q8_0.gguf"))
    shop.click(shop.place.library.details.target)
    assert shop.used == [(BUNDLED_TARGET, None), (BUNDLED_TARGET, KEEP)]


def test_deleting_asks_first(make_shop: Callable[..., Shop], mine: Path) -> None:
    shop = make_shop(offline=True, file=mine / "own-Q8_0.gguf")
    shop.view("Library")
    page, details = shop.place.library, shop.place.library.details
    shop.click(page.add_files)
    shop.until(lambda: details.model is not None and details.model.path.name == "own-Q8_0.gguf")
    shop.in_use = (str(mine / "own-Q8_0.gguf"), "")
    shop.click(details.delete)
    assert "own-Q8_0.gguf" in details.asking.words
    assert "The chat is using it" in details.asking.words
    shop.qtbot.keyClick(details.asking.no, Qt.Key.Key_Escape)
    assert not details.asking.isVisible() and (mine / "own-Q8_0.gguf").exists()
    shop.click(details.delete)
    shop.click(details.asking.yes)
    shop.until(lambda: not (mine / "own-Q8_0.gguf").exists())
    shop.until(lambda: "own-Q8_0.gguf" not in shop.library_names())


def test_a_file_of_the_hub_is_deleted_from_the_cache(shop: Shop, hub_home: Path, stocked: FakeHub) -> None:
    shop.until(lambda: shop.card().state == "Confirmed with the Hub.")
    shop.click(shop.card().button)
    shop.until(shop.card().use.isVisible)
    (path,) = (hub_home / "hub").glob("*135M*/snapshots/*/*.gguf")
    shop.select(path)
    details = shop.place.library.details
    assert "unsloth/SmolLM2-135M-Instruct-GGUF" in words_in(details)
    shop.click(details.delete)
    shop.click(details.asking.yes)
    shop.until(lambda: not any("135M" in name for name in shop.library_names()))
    assert not any(path.is_file() for path in (hub_home / "hub").glob("*135M*/blobs/*"))


def test_it_is_shown_in_the_file_manager(
    make_shop: Callable[..., Shop], pair_files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[QUrl] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", opened.append)
    shop = make_shop(offline=True)
    shop.select(pair_files[1])
    shop.click(shop.place.library.details.reveal)
    assert [url.toLocalFile() for url in opened] == [str(pair_files[1].parent)]


def test_what_cannot_be_used_now_is_told_beside_its_button(
    make_shop: Callable[..., Shop], pair_files: tuple[Path, Path]
) -> None:
    shop = make_shop(offline=True)
    shop.refusal = UserError("The engine is busy.", "Stop the answer first.")
    shop.select(pair_files[0])
    shop.click(shop.place.library.details.pair)
    assert shop.place.library.details.notice.message == "The engine is busy."


def test_the_table_sorts_by_numbers_and_gives_way(
    make_shop: Callable[..., Shop], mine: Path, tiny_file: Callable[[Tiny], Path]
) -> None:
    shutil.copy(tiny_file(Tiny(name="wide", n_embd=128)), mine / "wide.gguf")
    shop = make_shop(offline=True, folder=mine)
    shop.view("Library")
    page = shop.place.library
    shop.click(page.add_folder)
    shop.until(lambda: "wide.gguf" in shop.library_names() and not shop.session.reading)
    page.table.horizontalHeader().setSortIndicator(SIZE, Qt.SortOrder.DescendingOrder)
    sizes = {model.path.name: model.size for model in shop.session.models}
    assert cells(page.table, NAME)[0] == "wide" and cells(page.table, NAME)[-1] == "broken"
    assert max(sizes, key=lambda name: sizes[name]) == "wide.gguf"
    shop.place.resize(1800, 660)
    shop.until(lambda: not page.table.isColumnHidden(ORIGIN))
    shop.place.resize(760, 660)
    shop.until(lambda: page.table.isColumnHidden(ORIGIN))
    assert not page.table.isColumnHidden(SIZE)


@pytest.mark.parametrize(("data", "word"), [(b"{", "damaged"), (b'{"version": 9}', "newer version")])
def test_what_the_list_of_added_files_lost_is_told(
    make_shop: Callable[..., Shop], paths: Paths, data: bytes, word: str
) -> None:
    (paths.data / "library.json").write_bytes(data)
    shop = make_shop(offline=True)
    shop.view("Library")
    page = shop.place.library
    shop.until(lambda: word in page.notice.message)
    assert "library.json." in page.notice.message  # the name under which it is kept
    page.notice.clear()
    shop.session.library.refresh()
    shop.until(lambda: not shop.session.reading)
    assert page.notice.message == ""  # shown once
