"""Search and a repository's page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from app.hub.hub import kept_token
from app.ui.models.repo_page import MOST_ROWS
from tests.hub.server import BAD_TOKEN, TOKEN, FakeHub, FakeRepo, Fault
from tests.quiet import stays
from tests.ui.models.shop import Shop
from tests.ui.named import all_named, named, words_in

TARGETS = "second-state/SmolLM2-1.7B-Instruct-GGUF"


def test_words_find_repositories_and_the_first_is_open(shop: Shop) -> None:
    shop.search("smollm2")
    assert shop.hits() == ["unsloth/SmolLM2-135M-Instruct-GGUF", TARGETS]  # by downloads
    shop.until(lambda: [row.quantisation.name for row in shop.place.search.repo.rows] == ["Q8_0"])
    shop.qtbot.keyClick(shop.place.search.list, Qt.Key.Key_Down)
    shop.until(lambda: [row.quantisation.name for row in shop.place.search.repo.rows] == ["Q4_K_M", "Q8_0"])


def test_a_search_that_finds_less_leaves_nothing_of_the_earlier_one(shop: Shop) -> None:
    shop.search("smollm2")
    shop.place.search.list.select(1)
    for words in ("no such words", "gated"):
        shop.search(words)
    shop.until(lambda: [row.quantisation.name for row in shop.place.search.repo.rows] == ["Q4_0"])


def test_a_pasted_file_address_opens_its_repository_at_that_file(shop: Shop, stocked: FakeHub) -> None:
    address = f"https://huggingface.co/{TARGETS}/blob/main/SmolLM2-1.7B-Instruct-Q8_0.gguf"
    shop.search(address)
    shop.until(lambda: shop.place.search.repo.rows)
    shop.until(lambda: shop.row("Q8_0").property("kind") == "card")
    assert shop.row("Q4_K_M").property("kind") != "card"
    assert shop.hits() == [TARGETS]


def test_of_many_models_some_are_listed_and_the_pasted_one(shop: Shop, stocked: FakeHub) -> None:
    files = {f"dir/m{number:03d}-Q4_0.gguf": b"x" * (number + 1) for number in range(MOST_ROWS + 50)}
    stocked.repos["owner/many"] = FakeRepo(files)
    last = list(files)[-1]
    shop.search(f"https://huggingface.co/owner/many/blob/main/{last}")
    shop.until(lambda: len(shop.place.search.repo.rows) == MOST_ROWS + 1)
    assert shop.place.search.repo.rows[-1].quantisation.file == last
    words = [label.text() for label in shop.place.search.repo.findChildren(QLabel)]
    assert any(text.startswith(f"The {MOST_ROWS} smallest of {MOST_ROWS + 50} models") for text in words)
    assert any("Q4_0 · dir/m000-Q4_0.gguf" in text for text in words)  # two of one quantisation


def test_no_results_and_hub_errors_are_said_in_place_of_results(shop: Shop, stocked: FakeHub) -> None:
    shop.search("no such words")
    assert "Nothing found" in shop.search_words() and not all_named(
        shop.place.search, "Try again", QPushButton
    )
    shop.until(lambda: not shop.place.catalogue.question.pending)
    stocked.always["api"] = Fault(status=503)
    shop.search("smollm2")
    assert "has a problem" in shop.search_words()
    stocked.always.clear()
    shop.click(named(shop.place.search, "Try again", QPushButton))
    shop.until(lambda: shop.search_words() == "")
    assert TARGETS in shop.hits()


def test_a_private_repository_takes_a_token_where_it_was_not_found(
    shop: Shop, stocked: FakeHub, pair_files: tuple[Path, Path]
) -> None:
    shop.search("no such words")
    page = shop.place.search
    assert not page.token.isVisible()
    shop.search("https://huggingface.co/owner/private")
    assert "or it is private" in shop.search_words() and "is saved in" in page.token.words.text()
    stocked.repos["owner/private"] = FakeRepo({"private-Q4_0.gguf": pair_files[1].read_bytes()})
    page.token.field.setText(TOKEN)
    shop.click(page.token.save)
    shop.until(lambda: shop.hits() == ["owner/private"])
    assert not page.token.isVisible()


def test_a_quantisation_is_fetched_and_ticked(shop: Shop) -> None:
    shop.open_repo(TARGETS)
    row = shop.row("Q8_0")
    assert row.state.text() == "" and row.light.words.text().startswith("Fits")
    assert "needs about" in row.light.toolTip()
    shop.click(row.button)
    shop.until(lambda: row.state.text() == "✓ already here")
    shop.until(lambda: "SmolLM2-1.7B-Instruct-Q8_0.gguf" in shop.library_names())
    assert shop.row("Q4_K_M").state.text() == ""
    shop.click(row.button)
    assert shop.place.view == "Library"
    shop.until(lambda: shop.place.library.details.model is not None)
    shop.until(lambda: shop.place.library.details.model.path.name == "SmolLM2-1.7B-Instruct-Q8_0.gguf")


def test_shards_are_one_row_and_what_is_left_out_is_named(shop: Shop) -> None:
    shop.open_repo("owner/parts-GGUF")
    (row,) = shop.place.search.repo.rows
    assert row.quantisation.name == "F16" and len(row.quantisation.files) == 2
    assert "1 of 3 parts" in words_in(shop.place.search.repo)
    assert row.state.text() == "2 files"
    shop.click(row.button)
    shop.until(lambda: row.state.text() == "2 files · ✓ already here")


def test_a_gated_repository_says_so_and_takes_a_token(
    shop: Shop, stocked: FakeHub, caplog: pytest.LogCaptureFixture
) -> None:
    shop.open_repo("google/gated-GGUF")
    panel = shop.place.search.repo.token
    assert panel.isVisible() and "gated" in panel.words.text()
    panel.field.setText(BAD_TOKEN)
    shop.click(panel.save)
    shop.until(lambda: panel.notice.message)
    assert "does not know this token" in panel.notice.message and panel.field.text() == ""
    panel.field.setText(TOKEN)
    shop.click(panel.save)
    shop.until(kept_token)
    shop.until(lambda: not panel.field.isVisible())
    assert panel.field.text() == "" and "gives access" in panel.words.text()
    row = shop.row("Q4_0")
    shop.click(row.button)
    shop.until(lambda: row.state.text() == "✓ already here")
    assert TOKEN not in caplog.text


def test_without_a_token_the_download_asks_for_one_and_goes_on_with_it(shop: Shop) -> None:
    shop.open_repo("google/gated-GGUF")
    row = shop.row("Q4_0")
    shop.click(row.button)
    shop.until(lambda: row.state.text() == "stopped")
    assert "gated" in named(row, "stopped", QLabel).toolTip()
    shop.click(row.button)
    assert shop.place.view == "Downloads"
    item = shop.download("gated")
    assert "gated" in item.message.text() and item.token is not None
    item.token.field.setText(TOKEN)
    shop.qtbot.keyClick(item.token.field, Qt.Key.Key_Return)
    shop.until(lambda: item.state.text().endswith("here"))
    assert not item.token.isVisible()


def test_a_repository_that_is_gone_can_be_asked_for_again(shop: Shop, stocked: FakeHub) -> None:
    shop.search("smollm2")
    shop.until(lambda: shop.place.search.repo.rows)
    gone = stocked.repos.pop(TARGETS)
    shop.place.search.list.select(1)
    shop.until(lambda: "no repository" in shop.repo_words())
    stocked.repos[TARGETS] = gone
    shop.click(named(shop.place.search.repo, "Try again", QPushButton))
    shop.until(lambda: shop.repo_words() == "")
    assert shop.row("Q4_K_M").button.isEnabled()


def test_offline_the_search_says_so_and_comes_back(make_shop: Callable[..., Shop], stocked: FakeHub) -> None:
    shop = make_shop()
    shop.open_repo(TARGETS)
    shop.until(shop.place.catalogue.refresh.isEnabled)  # it has asked all it wants to
    shop.click(shop.place.offline)
    assert "Offline mode is on" in shop.search_words()
    assert not shop.place.search.field.isEnabled()
    asked = len(stocked.asked)
    shop.place.search.search()
    assert stays(lambda: len(stocked.asked)) and len(stocked.asked) == asked
    shop.click(shop.place.offline)
    assert shop.search_words() == "" and shop.row("Q8_0").button.isEnabled()


def test_a_head_is_named_before_a_download(shop: Shop, stocked: FakeHub) -> None:
    stocked.repos["owner/Qwen3.6-27B-MTP-GGUF"] = FakeRepo({"Q8_0.gguf": b"GGUF"}, architecture="qwen35")
    shop.open_repo("owner/Qwen3.6-27B-MTP-GGUF")
    limits = shop.place.search.repo.limits
    assert limits.isVisible() and "draft-mtp drafts with it" in limits.text()
    shop.open_repo("unsloth/SmolLM2-135M-Instruct-GGUF")
    assert not limits.isVisible()
