"""Offline mode and the Hub's token, in the settings and in the Models place."""

from __future__ import annotations

from pathlib import Path

import pytest
from huggingface_hub import constants
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.base.paths import find_paths
from app.ui.settings.sections import NO_TOKEN, NetworkSettings
from app.ui.theme import Theme
from app.ui.widgets.segmented import FORCED, OFFLINE
from tests.hub.conftest import _server, home, server  # noqa: F401
from tests.hub.server import TOKEN, FakeHub
from tests.ui.models.conftest import hub_home, stocked  # noqa: F401
from tests.ui.models.test_place import click, open_models
from tests.ui.named import words_in
from tests.ui.windows import Windows, settings_in_use

OTHER = "hf_anotherToken"


@pytest.fixture
def network(qtbot: QtBot, theme: Theme, home: Path) -> NetworkSettings:  # noqa: F811
    made = NetworkSettings(theme, settings_in_use(find_paths({"DRAFTSCOPE_HOME": str(home)})))
    qtbot.addWidget(made)
    return made


def keep(*named: tuple[str, str]) -> Path:
    """Save tokens as `hf auth login` does; the first one is in use."""
    path = Path(constants.HF_TOKEN_PATH)
    path.write_text(named[0][1])
    lines = (f"[{name}]\nhf_token = {token}\n" for name, token in named)
    Path(constants.HF_STORED_TOKENS_PATH).write_text("\n".join(lines))
    return path


def test_it_says_where_a_token_is_kept_and_removes_only_that_one(
    qtbot: QtBot, network: NetworkSettings, caplog: pytest.LogCaptureFixture
) -> None:
    path = keep(("mine", TOKEN), ("work", OTHER))
    network.show()
    assert network.token_words.text() == f"Saved in {path}"
    qtbot.mouseClick(network.remove, Qt.MouseButton.LeftButton)
    assert "stays valid" in network.asking.words and path.exists()
    qtbot.mouseClick(network.asking.no, Qt.MouseButton.LeftButton)
    assert path.exists()
    qtbot.mouseClick(network.remove, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(network.asking.yes, Qt.MouseButton.LeftButton)
    assert not path.exists() and network.token_words.text() == NO_TOKEN and not network.remove.isVisible()
    stored = Path(constants.HF_STORED_TOKENS_PATH).read_text()
    assert OTHER in stored and TOKEN not in stored
    assert TOKEN not in caplog.text and OTHER not in caplog.text


def test_a_token_that_cannot_be_removed_is_said(
    qtbot: QtBot, network: NetworkSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = keep(("mine", TOKEN))
    network.show()

    def refuse(file: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(Path, "unlink", refuse)
    qtbot.mouseClick(network.remove, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(network.asking.yes, Qt.MouseButton.LeftButton)
    assert "permission denied" in network.notice.message and str(path) in network.notice.hint
    assert network.token_words.text() == f"Saved in {path}"


def test_a_token_of_a_variable_is_named_and_stays(
    network: NetworkSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(("mine", TOKEN))
    monkeypatch.setenv("HF_TOKEN", OTHER)
    network.show()
    assert network.token_words.text() == "From the variable HF_TOKEN" and not network.remove.isVisible()


def test_the_clients_variable_forces_the_switch(
    network: NetworkSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not network.offline.isChecked() and OFFLINE in words_in(network)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    network.show()
    assert network.offline.isChecked() and not network.offline.isEnabled()
    assert FORCED in words_in(network)


@pytest.mark.usefixtures("hub_home")
def test_offline_mode_is_one_state(windows: Windows, stocked: FakeHub) -> None:  # noqa: F811
    desk = windows.open(offline=False)
    desk.window.go("settings")
    switch = desk.window.settings_page.network.offline
    click(desk, switch)  # before the Models place was ever opened
    assert desk.saved()["offline"] is True
    place = open_models(desk)
    assert place.offline.isChecked() and place.session.is_offline and stocked.asked == []
    desk.window.go("settings")
    click(desk, switch)
    assert not place.offline.isChecked() and not place.session.is_offline
    desk.window.go("models")
    click(desk, place.offline)
    assert switch.isChecked() and desk.saved()["offline"] is True


@pytest.mark.usefixtures("hub_home")
def test_a_removed_token_is_asked_for_again(windows: Windows, stocked: FakeHub) -> None:  # noqa: F811
    keep(("mine", TOKEN))
    desk = windows.open(offline=False)
    place = open_models(desk)
    place.show_view("Search")
    place.search.field.setText("google/gated-GGUF")
    desk.qtbot.keyClick(place.search.field, Qt.Key.Key_Return)
    panel = place.search.repo.token
    desk.until(lambda: place.search.repo.rows)
    assert not panel.other.isHidden() and panel.field.isHidden()
    desk.window.go("settings")
    network = desk.window.settings_page.network
    click(desk, network.remove)
    click(desk, network.asking.yes)
    desk.window.go("models")
    assert panel.other.isHidden() and not panel.field.isHidden()
