"""The Models place over a Hub on loopback: real client, real queue, real library, tiny real models."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from huggingface_hub import constants, hf_api
from pytestqt.qtbot import QtBot

from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET, Paths, find_paths
from app.engine.process.host import make_home
from app.hub.fits import Room
from app.lab.drafts import KeptDrafts
from app.lab.suites import built_in
from app.ui.models import library_page
from app.ui.models.drafts_page import DraftsPage
from app.ui.models.drafts_table import DraftsWork
from app.ui.models.hub_session import HubSession
from app.ui.models.place import ModelsPlace
from app.ui.state.chat_side import ChatSide, Inspection
from app.ui.state.engine_session import EngineSession
from app.ui.state.servers import Servers
from app.ui.theme import Theme
from tests.hub.conftest import _server, home, server  # noqa: F401
from tests.hub.server import FakeHub, FakeRepo
from tests.ui.models.shop import Shop
from tests.ui.windows import settings_in_use

HERE = Path(__file__)
ROOM = Room(memory=2_000_000_000, device=1_000_000_000)


@pytest.fixture
def hub_home(
    server: FakeHub,  # noqa: F811
    home: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Point the client to the server on loopback and to a folder for this test."""
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    # Logging in asks the Hub that HF_ENDPOINT named when the client was loaded.
    monkeypatch.setattr(hf_api.api, "endpoint", server.address)
    return home


@pytest.fixture
def paths(tmp_path: Path, pair_files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Paths:
    """A home for this test; the bundled pair is a tiny one."""
    bundled = dict(zip((BUNDLED_TARGET, BUNDLED_DRAFT), map(str, pair_files), strict=True))
    monkeypatch.setattr(Paths, "model", lambda _self, path: bundled.get(path, path))
    made = find_paths({"DRAFTSCOPE_HOME": str(tmp_path / "draftscope")})
    made.prepare()
    return made


@pytest.fixture
def stocked(server: FakeHub, pair_files: tuple[Path, Path]) -> FakeHub:  # noqa: F811
    """The first pair of the catalogue is on the Hub, among others."""
    target, draft = (path.read_bytes() for path in pair_files)
    server.repos["second-state/SmolLM2-1.7B-Instruct-GGUF"] = FakeRepo(
        {"SmolLM2-1.7B-Instruct-Q4_K_M.gguf": target, "SmolLM2-1.7B-Instruct-Q8_0.gguf": target + b" "}
    )
    server.repos["unsloth/SmolLM2-135M-Instruct-GGUF"] = FakeRepo(
        {"SmolLM2-135M-Instruct-Q8_0.gguf": draft}, downloads=20
    )
    server.repos["google/gated-GGUF"] = FakeRepo({"gated-Q4_0.gguf": draft}, gated=True, licence="gemma")
    half = len(target) // 2
    server.repos["owner/parts-GGUF"] = FakeRepo(
        {
            "parts-F16-00001-of-00002.gguf": target[:half],
            "parts-F16-00002-of-00002.gguf": target[half:],
            "parts-Q2_K-00001-of-00003.gguf": draft,
        }
    )
    return server


@pytest.fixture
def make_shop(
    qtbot: QtBot, theme: Theme, paths: Paths, hub_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Shop]]:
    """Opens the place as the window does, with a counter instead of the chat. Its dialogs give `file` and
    `folder`."""
    shops: list[Shop] = []

    def make(offline: bool = False, room: Room = ROOM, file: Path = HERE, folder: Path = HERE) -> Shop:
        monkeypatch.setattr(library_page, "ask_for_files", lambda _parent: [str(file)])
        monkeypatch.setattr(library_page, "ask_for_folder", lambda _parent: [str(folder)])
        shop = Shop(
            qtbot, lambda use: HubSession(paths, settings_in_use(paths, offline=offline), use, lambda: room)
        )
        drafts = _drafts_page(theme, paths, shop.session)
        shop.open(lambda in_use: ModelsPlace(theme, shop.session, in_use, drafts))
        shops.append(shop)
        return shop

    yield make
    for shop in shops:
        shop.place.close_place()
    # The last requests may still be running, and would reach the server in the next test.
    for shop in shops:
        shop.until(lambda: not any(thread.name.startswith("asking") for thread in threading.enumerate()))
    for shop in shops:
        shop.close()


def _drafts_page(theme: Theme, paths: Paths, hub: HubSession) -> DraftsPage:
    """The view Drafts, beside an engine that is never started."""
    engine = EngineSession(partial(make_home, "thread"))
    chat = ChatSide(
        engine,
        hub.settings,
        Inspection(),
        Servers(),
        load=lambda *_pair: None,
        go=lambda _place: None,
        open_trace=lambda _trace, _tell: None,
    )
    work = DraftsWork(engine, lambda: make_home("thread"), KeptDrafts(paths.data / "drafts"))
    return DraftsPage(theme, hub, chat, work, built_in(paths.resources))


@pytest.fixture
def shop(make_shop: Callable[..., Shop], stocked: FakeHub) -> Shop:
    return make_shop()
