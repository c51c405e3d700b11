"""States of Models, over a Hub on loopback."""

from __future__ import annotations

import atexit
import os
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from PySide6.QtWidgets import QScrollArea
from typing_extensions import override

from app.base.paths import find_paths
from app.hub.catalogue import load_catalogue
from app.hub.downloads import State
from app.ui.models.place import ModelsPlace
from tests.benchmarks.ui.window import turn
from tests.files.tiny import Tiny, write_tiny
from tests.hub.server import BAD_TOKEN, FakeHub, FakeRepo, Fault, running
from tests.screenshots.user import pick, place_of, press, write
from tests.screenshots.variants import StateVisitor

SMALL = Path("resources/demo_pair/draft.gguf")
LARGE = Path("resources/demo_pair/target.gguf")


class Large(bytes):
    """A file of the Hub's that is said to have a size, and never fetched."""

    size: int

    @override
    def __len__(self) -> int:
        return self.size


def large(size: int) -> bytes:
    made = Large(b"GGUF")
    made.size = size
    return made


_OPEN = ExitStack()
atexit.register(_OPEN.close)


@cache
def hub() -> FakeHub:
    """A Hub on loopback with nearly all pairs of the catalogue, until the end of the process."""
    from huggingface_hub import constants, hf_api

    os.environ["NO_PROXY"] = "127.0.0.1"
    served = _OPEN.enter_context(running())
    constants.ENDPOINT = hf_api.api.endpoint = served.address
    pairs = load_catalogue(find_paths().resources / "catalogue.json")
    for entry in (entry for pair in pairs[:-2] for entry in pair.models):
        file = large(entry.size)
        served.repos[entry.repo] = FakeRepo({entry.file: file}, licence=entry.licence)
    target, draft = LARGE.read_bytes(), SMALL.read_bytes()
    name = "SmolLM2-1.7B-Instruct"
    sizes = {"Q3_K_M": 86, "Q8_0": 182, "F16": 342}
    files = {f"{name}-{kind}.gguf": large(size * 10**7) for kind, size in sizes.items()}
    files[f"{name}-Q4_K_M.gguf"] = target
    served.repos[f"second-state/{name}-GGUF"] = FakeRepo(files, downloads=90_000)
    served.repos["unsloth/SmolLM2-135M-Instruct-GGUF"] = FakeRepo({"SmolLM2-135M-Instruct-Q8_0.gguf": draft})
    served.repos["google/gated-GGUF"] = FakeRepo({"gated-Q4_0.gguf": draft}, gated=True, licence="gemma")
    parts = {f"parts-F16-0000{part}-of-00002.gguf": target[part:] for part in (1, 2)}
    served.repos["owner/parts-GGUF"] = FakeRepo({**parts, "parts-Q2_K-00001-of-00003.gguf": draft})
    head = FakeRepo({"Qwen3.6-27B-MTP-Q8_0.gguf": large(29 * 10**9)}, architecture="qwen35")
    served.repos["owner/Qwen3.6-27B-MTP-GGUF"] = head
    return served


def models(visitor: StateVisitor, view: str, offline: bool = False) -> ModelsPlace:
    hub()
    place: ModelsPlace = place_of(visitor, "models")
    if place.session.is_offline is not offline:
        press(place.offline)
    pick(place.views, view)
    return place


def models_catalogue(visitor: StateVisitor) -> None:
    place = models(visitor, "Catalogue", offline=True)
    page = place.catalogue
    top = partial(page.ensureVisible, 0, 0)
    visitor.variants("catalogue-offline", again=top)
    models(visitor, "Catalogue")
    turn(lambda: "confirmed with" in page.state.text())
    visitor.variants("catalogue", scroll=page)
    hub().always["api"] = Fault(status=503)
    press(page.refresh)
    turn(page.notice.isVisible)
    visitor.variants("catalogue-hub-ill", again=top)
    hub().clear()
    press(page.refresh)
    turn(lambda: not page.notice.isVisible())


def models_downloads(visitor: StateVisitor) -> None:
    """A pair that is fetched, paused, stopped by a fault, and whole at last."""
    place = models(visitor, "Downloads")
    visitor.variants("downloads-none")
    pick(place.views, "Catalogue")
    card, top = place.catalogue.cards[0], partial(place.catalogue.ensureVisible, 0, 0)
    turn(lambda: card.state == "Confirmed with the Hub.")
    hub().always["cdn"] = Fault(pace=0.05)
    press(card.button)
    turn(lambda: len(place.downloads.rows) > 0 and place.downloads.rows[0].download.done > 2_000_000)
    visitor.variants("catalogue-fetching", again=top)
    pick(place.views, "Library")
    visitor.variants("library-strip")
    pick(place.views, "Downloads")
    visitor.variants("downloads-running")
    row = place.downloads.rows[0]
    press(row.pause)
    turn(lambda: row.download.state is State.PAUSED)
    press(row.cancel)
    visitor.variants("downloads-paused")
    press(row.asking.no)
    pick(place.views, "Catalogue")
    visitor.variants("catalogue-paused", again=top)
    hub().always["cdn"] = Fault(wrong=True)
    press(card.button)
    turn(lambda: row.download.state is State.FAILED)
    visitor.variants("catalogue-stopped", again=top)
    pick(place.views, "Downloads")
    visitor.variants("downloads-stopped")
    hub().clear()
    press(row.resume)
    turn(lambda: row.download.state is State.DONE)
    visitor.variants("downloads-done")
    pick(place.views, "Catalogue")
    turn(card.use.isVisible)
    visitor.variants("catalogue-done", again=top)


def models_search(visitor: StateVisitor) -> None:
    place = models(visitor, "Search")
    page = place.search
    visitor.variants("search-empty")
    asked = {
        "results": "smollm2",
        "nothing": "no such words",
        "parts": "owner/parts-GGUF",
        "head": "owner/Qwen3.6-27B-MTP-GGUF",
        "missing": "https://huggingface.co/owner/nothing",
        "gated": "google/gated-GGUF",
    }
    for state, words in asked.items():
        write(page.field, words)
        turn(lambda: not page.question.pending)
        if state == "results":
            page.list.select(1)
        turn(lambda: not page.repo.placeholder.isVisible() or "Asking" not in page.repo.placeholder.text)
        visitor.variants(f"search-{state}", scroll=page.repo.findChild(QScrollArea))
    write(page.repo.token.field, BAD_TOKEN)
    turn(page.repo.token.notice.isVisible)
    visitor.variants("search-bad-token")
    hub().always["api"] = Fault(status=503)
    write(page.field, "smollm2")
    turn(lambda: not page.question.pending)
    visitor.variants("search-hub-ill")
    hub().clear()
    models(visitor, "Search", offline=True)
    visitor.variants("search-offline")


def models_library(visitor: StateVisitor) -> None:
    """Files of every kind, and the judgement of drafts."""
    place = models(visitor, "Library", offline=True)
    page, details = place.library, place.library.details
    with TemporaryDirectory() as folder:
        (broken := Path(folder, "broken.gguf")).write_bytes(b"PK\x03\x04 something else")
        write_tiny(Path(folder, "a-name-that-is-rather-long-Instruct-2507-UD-Q4_K_XL.gguf"), Tiny(n_layers=4))
        head = write_tiny(Path(folder, "head.gguf"), Tiny(name="head", architecture="eagle3", n_layers=1))
        with patch("app.ui.models.library_page.ask_for_folder", lambda _parent: [folder]):
            press(page.add_folder)
        turn(lambda: not place.session.reading and page.table.select(broken))
        visitor.variants("library-broken")
        for state, path in (("head", head), ("pair", LARGE.resolve())):
            page.table.select(path)
            turn(lambda: details.model is not None and not details.reading)
            visitor.variants(f"library-{state}")
        page.table.select(head)
        if details.delete.isVisible():
            press(details.delete)
            visitor.variants("library-delete")
        page.table.select(LARGE.resolve())
        pick(place.views, "Drafts")
        drafts = place.drafts
        turn(drafts.measure.isEnabled)
        visitor.variants("drafts-before")
        press(drafts.measure)
        turn(drafts.strip.cancel.isVisible)
        visitor.variants("drafts-running", sizes=((1024, 768),))
        turn(lambda: drafts.export.isEnabled() and drafts.measure.isEnabled())
        visitor.variants("drafts-results")
        visitor.variants("drafts-export", again=partial(press, drafts.export))


SCENES = (
    models_catalogue,
    models_downloads,
    models_search,
    models_library,
)
