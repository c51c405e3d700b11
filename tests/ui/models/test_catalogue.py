"""The catalogue: confirmed when it is shown, fetched by one click, used by the next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QRect
from PySide6.QtWidgets import QLabel, QProgressBar, QWidget
from pytestqt.qtbot import QtBot

from app.base.paths import REAL_TARGET, Paths, find_paths
from app.engine.errors import UserError
from app.hub.catalogue import load_catalogue
from app.hub.fits import Room, fit_in
from app.ui.models.quantisation_row import FitLight, light_words
from app.ui.theme import Theme
from tests.hub.server import FakeHub, FakeRepo, Fault
from tests.quiet import stays
from tests.ui.models.shop import FIRST, Shop

ALONE = "SmolLM2 135M, without a draft"


def test_names_and_sizes_are_confirmed_when_it_is_shown(shop: Shop, stocked: FakeHub) -> None:
    page = shop.place.catalogue
    shop.until(lambda: page.state.text() == f"2 of {len(page.cards)} pairs confirmed with the Hub")
    exact = sum(len(stocked.repos[model.repo].files[model.file]) for model in shop.card().pair.models)
    assert shop.card().weight == exact
    assert shop.card().state == "Confirmed with the Hub."
    # A pair that the Hub does not have says so in its own card.
    other = page.cards[-1]
    assert "no repository" in other.state and other.weight == other.pair.size
    assert page.notice.message == ""


def test_the_light_has_its_numbers_in_words_and_in_the_tooltip(
    make_shop: Callable[..., Shop], stocked: FakeHub
) -> None:
    shop = make_shop(room=Room(memory=1_000_000_000, device=250_000_000))
    light = shop.card().light
    shop.until(lambda: shop.session.room is not None and shop.card().state == "Confirmed with the Hub.")
    assert light.words.text().startswith("Fits on the GPU: needs about 20")
    assert "weights" in light.toolTip() and "on the GPU" in light.toolTip()
    large = next(card for card in shop.place.catalogue.cards if card.weight > 5_000_000_000)
    assert large.light.words.text().startswith("Will not fit")


def test_while_free_memory_is_not_known_a_line_is_empty_and_no_dot_lights(qtbot: QtBot, theme: Theme) -> None:
    def colours(light: FitLight) -> int:
        picture = light.grab().toImage()
        return len({picture.pixel(x, y) for x in range(12) for y in range(picture.height())})

    card, row = FitLight(theme), FitLight(theme, light_words)
    for light in (card, row):
        qtbot.addWidget(light)
    assert not card.words.text().strip() and card.sizeHint().height() >= card.words.fontMetrics().height()
    assert card.toolTip() == row.toolTip() == "The free memory is not measured yet"
    assert colours(row) == 1
    row.set_fit(fit_in(1_000_000, Room(memory=10**9)))
    assert colours(row) > 1 and row.words.text() == "Fits in memory"


def test_one_click_fetches_the_pair_and_another_uses_it(shop: Shop) -> None:
    card = shop.card()
    shop.until(lambda: card.state == "Confirmed with the Hub.")
    assert card.button.text().startswith("Download ")
    shop.click(card.button)
    shop.until(card.use.isVisible)
    assert shop.used == []
    shop.click(card.use)
    target, draft = shop.loaded()
    assert target is not None and target.endswith("/SmolLM2-1.7B-Instruct-Q4_K_M.gguf")
    assert draft is not None and draft.endswith("/SmolLM2-135M-Instruct-Q8_0.gguf")


@pytest.fixture
def own_model(paths: Paths, pair_files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """SmolLM2 came with Draftscope."""
    file = paths.data / "brought.gguf"
    file.write_bytes(pair_files[1].read_bytes())
    model = Paths.model
    known = {REAL_TARGET: str(file)}
    monkeypatch.setattr(Paths, "model", lambda own, path: known.get(path) or model(own, path))
    return file


def test_a_draft_that_came_with_draftscope_is_not_fetched(own_model: Path, shop: Shop) -> None:
    card, alone = shop.card(), shop.card(ALONE)
    shop.until(lambda: card.state == "Confirmed with the Hub." and alone.state == "The file is downloaded.")
    assert alone.use.isVisible() and not alone.button.isVisible()
    assert own_model.stem in told(card) and told(card).count("· here") == 1
    shop.click(card.button)
    shop.until(card.use.isVisible)
    assert [download.files[0].name for download in shop.session.downloads.values()] == [
        "SmolLM2-1.7B-Instruct-Q4_K_M.gguf"
    ]
    shop.click(card.use)
    _, draft = shop.loaded()
    assert draft == REAL_TARGET


def test_the_hub_has_the_model_that_set_up_could_not_fetch(shop: Shop) -> None:
    card, pair = shop.card(ALONE), shop.card()
    shop.until(lambda: card.state == "Confirmed with the Hub.")
    shop.click(card.button)
    shop.until(card.use.isVisible)
    shop.click(card.use)
    target, draft = shop.loaded()
    assert target is not None and target.endswith("/SmolLM2-135M-Instruct-Q8_0.gguf") and draft == ""
    assert len(shop.session.downloads) == 1 and not pair.use.isVisible()


def test_while_it_comes_the_card_pauses_and_resumes(shop: Shop, stocked: FakeHub) -> None:
    stocked.always["cdn"] = Fault(pace=0.05)
    card = shop.card()
    shop.until(lambda: card.state == "Confirmed with the Hub.")
    shop.click(card.button)
    shop.until(lambda: card.pause.isVisible() and card.findChild(QProgressBar).value() > 0)
    assert not card.button.isEnabled() and not card.use.isVisible()
    assert shop.place.strip.isVisible() and "download" in shop.place.strip.words.text()
    shop.click(card.pause)
    shop.until(lambda: card.button.text() == "Resume")
    stocked.always.clear()
    shop.click(card.button)
    shop.until(card.use.isVisible)
    shop.until(lambda: not shop.place.strip.isVisible())


def test_what_fetches_pauses_and_uses_a_pair_has_places_of_its_own(shop: Shop, stocked: FakeHub) -> None:
    stocked.always |= {"cdn": Fault(pace=0.05), "api": Fault(stall=0.02)}  # others are confirmed meanwhile
    card = shop.card()
    height = card.heightForWidth(card.width())
    shop.until(lambda: card.state == "Confirmed with the Hub.")
    assert card.heightForWidth(card.width()) == height

    def where(button: QWidget) -> QRect:
        # What appears is laid out at once, with all cards squeezed into the page's old height until then.
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        return QRect(button.mapTo(card, QPoint()), button.size())

    fetch = where(card.button)
    card.button.setFocus()
    shop.click(card.button)
    shop.until(card.pause.isVisible)
    pause, show = where(card.pause), where(card.queue)
    card.pause.setFocus()
    shop.click(card.pause)
    shop.until(lambda: card.button.text() == "Resume")
    stocked.always.clear()  # not earlier: the download could end before it is paused
    assert not pause.intersects(where(card.button))
    shop.click(card.button)
    shop.until(card.use.isVisible)
    use = where(card.use)
    assert not any(use.intersects(button) for button in (fetch, pause, show))
    assert not card.use.hasFocus()


def test_a_pair_that_cannot_be_used_now_says_so_in_its_card(shop: Shop) -> None:
    card = shop.card()
    shop.until(lambda: card.state == "Confirmed with the Hub.")
    shop.click(card.button)
    shop.until(card.use.isVisible)
    shop.refusal = UserError("The engine is busy.", "Stop the answer first.")
    shop.click(card.use)
    assert card.notice.message == "The engine is busy." and shop.used == []
    shop.refusal = None
    shop.click(card.use)
    assert card.notice.message == "" and len(shop.used) == 1


def test_a_hub_that_cannot_be_reached_is_told_once_for_all(
    make_shop: Callable[..., Shop], stocked: FakeHub
) -> None:
    stocked.always["api"] = Fault(status=503)
    shop = make_shop()
    page = shop.place.catalogue
    shop.until(lambda: page.notice.message)
    assert (
        "has a problem" in page.notice.message
        and page.state.text() == "Names and sizes from the built-in list, not confirmed"
    )
    assert all(card.notice.message == card.state == "" for card in page.cards)
    assert len(stocked.requests("api")) <= 3  # the same answer is not asked for nine times
    stocked.always.clear()
    shop.click(page.refresh)
    shop.until(lambda: page.state.text() == f"2 of {len(page.cards)} pairs confirmed with the Hub")
    assert page.notice.message == ""


def test_offline_nothing_is_asked_and_what_is_here_can_be_used(
    make_shop: Callable[..., Shop], stocked: FakeHub
) -> None:
    shop = make_shop()
    shop.until(lambda: shop.card().state == "Confirmed with the Hub.")
    shop.click(shop.card().button)
    shop.until(shop.card().use.isVisible)
    shop.click(shop.place.offline)
    page = shop.place.catalogue
    assert page.state.text().startswith("Offline: names and sizes are from the built-in list. Turn off")
    other = page.cards[-1]
    assert other.state == "" and not other.button.isEnabled()
    shop.click(shop.card().use)
    assert len(shop.used) == 1


def test_opened_offline_it_never_touches_the_network(
    make_shop: Callable[..., Shop], stocked: FakeHub
) -> None:
    shop = make_shop(offline=True)
    shop.until(lambda: shop.session.room is not None and not shop.session.reading)
    for view in ("Search", "Downloads", "Library", "Catalogue"):
        shop.view(view)
        assert stays(lambda: len(stocked.asked))
    assert stocked.asked == []
    assert not shop.card().button.isEnabled() and not shop.place.catalogue.refresh.isEnabled()
    shop.click(shop.place.offline)  # off again: now it asks
    shop.until(lambda: shop.card().state == "Confirmed with the Hub.")


def test_opened_offline_a_pair_that_is_wholly_here_can_be_used(
    make_shop: Callable[..., Shop], stocked: FakeHub, hub_home: Path
) -> None:
    pair = next(
        pair for pair in load_catalogue(find_paths().resources / "catalogue.json") if pair.title == FIRST
    )
    for entry, name in zip(pair.models, ("renamed-Q4_K_M.gguf", pair.models[1].file), strict=True):
        commit = hub_home / "hub" / f"models--{entry.repo.replace('/', '--')}" / "snapshots" / ("a" * 40)
        commit.mkdir(parents=True)
        (commit / name).write_bytes(b"GGUF")
    shop = make_shop(offline=True)
    assert shop.card().state == "Both files are downloaded."
    shop.click(shop.card().use)
    target, draft = shop.loaded()
    assert target is not None and target.endswith("renamed-Q4_K_M.gguf")
    assert draft is not None and draft.endswith(pair.models[1].file)
    assert stocked.asked == []


def test_a_draft_that_another_pair_fetches_is_not_this_pair(shop: Shop, stocked: FakeHub) -> None:
    """Two pairs of the catalogue share Qwen3 0.6B."""
    first, second = (
        next(card for card in shop.place.catalogue.cards if card.pair.id == id)
        for id in ("qwen3-1.7b", "qwen3-4b-2507")
    )
    data = next(iter(stocked.repos["unsloth/SmolLM2-135M-Instruct-GGUF"].files.values()))
    for card in (first, second):
        for model in card.pair.models:
            stocked.repos[model.repo] = FakeRepo({model.file: data})
    shop.until(shop.place.catalogue.refresh.isEnabled)
    shop.click(shop.place.catalogue.refresh)
    shop.until(lambda: first.state == second.state == "Confirmed with the Hub.")
    stocked.always["cdn"] = Fault(pace=0.05)
    shop.click(first.button)
    shop.until(first.pause.isVisible)
    assert second.button.text().startswith("Download") and not second.findChild(QProgressBar).isVisible()
    stocked.always.clear()
    shop.until(first.use.isVisible)
    whole = second.weight
    shop.click(second.button)
    shop.until(second.use.isVisible)
    assert whole == 2 * len(data) and len(shop.session.downloads) == 3


def test_what_was_deleted_can_be_fetched_again(shop: Shop) -> None:
    card = shop.card()
    shop.until(lambda: card.state == "Confirmed with the Hub.")
    shop.click(card.button)
    shop.until(card.use.isVisible)
    shop.until(lambda: any("135M" in name for name in shop.library_names()))
    draft = next(model for model in shop.session.models if "135M" in model.path.name)
    shop.session.library.delete(draft)
    shop.until(lambda: card.button.text().startswith("Download "))
    shop.click(card.button)
    shop.until(card.use.isVisible)


def told(card: QWidget) -> str:
    """The texts of a card."""
    return "\n".join(label.text() for label in card.findChildren(QLabel) if label.isVisibleTo(card))


def test_a_pair_says_what_others_measured_or_that_nobody_did(shop: Shop) -> None:
    for card in shop.place.catalogue.cards:
        published = card.pair.published
        assert (f"Published: {published}" if published else "No published speed-up for this pair") in told(
            card
        )


def test_a_target_alone_says_what_drafts_for_it_before_it_is_fetched(
    make_shop: Callable[..., Shop], stocked: FakeHub
) -> None:
    stocked.repos["ggml-org/gpt-oss-20b-GGUF"] = FakeRepo({"gpt-oss-20b-mxfp4.gguf": b"GGUF"})
    shop = make_shop()
    card = shop.card("gpt-oss 20B, without a draft")
    assert "EAGLE-3 drafts exist, but draft-eagle3 needs one converted to GGUF" in told(card)
    assert "use a look-up: ngram-mod, suffix, prompt-lookup" in told(card)
    assert card.use.text() == "Use this model" and "both" not in card.use.toolTip()
    shop.until(lambda: card.state == "Confirmed with the Hub.")
    shop.click(card.button)
    shop.until(card.use.isVisible)
    shop.click(card.use)
    target, draft = shop.loaded()
    assert target is not None and target.endswith("/gpt-oss-20b-mxfp4.gguf") and draft == ""
