"""Less motion: as the user chose, or as the desktop asks."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLineEdit
from pytestqt.qtbot import QtBot

from app.base.paths import find_paths
from app.saved.settings import Settings
from app.ui.compare.race_bar import RaceBar
from app.ui.settings.settings_page import SettingsPage
from app.ui.theme import Theme
from app.ui.theme.style import Styler
from app.ui.theme.theme import FollowingTheme
from app.ui.widgets.segmented import Segmented
from tests.ui.named import name_of, named
from tests.ui.windows import Windows

EFFECTS = Qt.UIEffect.UI_General

PORTAL = """
import sys
from PySide6.QtCore import SLOT, QObject, QTimer, Slot
from PySide6.QtDBus import QDBusConnection, QDBusMessage, QDBusVariant
from PySide6.QtGui import QGuiApplication
from pathlib import Path
from app.ui.theme import Theme
from app.ui.theme.system_motion import SystemMotion

class Portal(QObject):
    @Slot(str, str, result=QDBusVariant)
    def ReadOne(self, group, name):
        asked.append(name)
        if len(asked) == 2:  # it listens, and has asked for both
            QTimer.singleShot(0, lambda: [tell(*change) for change in changes])
        return QDBusVariant(TOLD[name])

class Listener(QObject):
    @Slot(QDBusMessage)
    def hear(self, message):
        if message.arguments()[0] == "the last one":
            application.quit()

NAME = "org.freedesktop.portal.Desktop"
PATH, SETTINGS = "/org/freedesktop/portal/desktop", "org.freedesktop.portal.Settings"
TOLD = {"reduced-motion": 0, "enable-animations": True, "colour": 7} | eval(sys.argv[2])
asked = []
application = QGuiApplication([])
bus = QDBusConnection.connectToBus(QDBusConnection.BusType.SessionBus, "portal")
portal = Portal()
assert bus.registerObject(PATH, SETTINGS, portal, QDBusConnection.RegisterOption.ExportAllSlots)
assert bus.registerService(NAME)

def tell(group, name, value):
    message = QDBusMessage.createSignal(PATH, SETTINGS, "SettingChanged")
    message.setArguments([group, name, QDBusVariant(value)])
    assert bus.send(message)

theme = Theme(Path(sys.argv[1]))
theme.changed.connect(lambda: print(theme.less_motion, flush=True))
listener, own = Listener(), QDBusConnection.sessionBus()
own.connect(NAME, PATH, SETTINGS, "SettingChanged", listener, SLOT("hear(QDBusMessage)"))
SystemMotion(theme)
look, gnome = "org.freedesktop.appearance", "org.gnome.desktop.interface"
changes = [
    (look, "reduced-motion", 1), (look, "reduced-motion", 0), (look, "accent-color", 5),
    (gnome, "enable-animations", False), ("the last one", "", 0),
]
application.exec()
"""


@pytest.mark.parametrize(
    ("motion", "system", "less"),
    [("system", False, False), ("system", True, True), ("full", True, False), ("less", False, True)],
)
def test_a_choice_outweighs_the_system(theme: Theme, motion: str, system: bool, less: bool) -> None:
    theme.set_motion(motion)
    theme.set_system_motion(less=system)
    assert theme.less_motion is less
    assert FollowingTheme(theme, theme).less_motion is less


def test_only_a_change_is_told(theme: Theme) -> None:
    told: list[bool] = []
    theme.changed.connect(lambda: told.append(theme.less_motion))
    steps = (("system", True), ("less", True), ("less", False), ("full", False), ("full", True))
    for motion, system in steps:
        theme.set_motion(motion)
        theme.set_system_motion(less=system)
    assert told == [True, True, False]


@pytest.mark.skipif(shutil.which("dbus-run-session") is None, reason="needs D-Bus")
@pytest.mark.parametrize(
    ("told", "heard"),
    [
        ("{}", ["True", "False", "True"]),
        ("{'reduced-motion': 1}", ["True", "False", "True"]),
        ("{'enable-animations': False}", ["True"]),
    ],
)
def test_the_desktops_portal_is_asked_and_heard(told: str, heard: list[str]) -> None:
    command = ["dbus-run-session", "--", sys.executable, "-c", PORTAL, str(find_paths().fonts), told]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == heard, done.stderr


def test_without_a_session_bus_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
    script = (
        "import sys; from pathlib import Path; from PySide6.QtGui import QGuiApplication\n"
        "from app.ui.theme import Theme; from app.ui.theme.system_motion import SystemMotion\n"
        "application = QGuiApplication([]); theme = Theme(Path(sys.argv[1])); SystemMotion(theme)\n"
        "print(theme.less_motion)"
    )
    command = [sys.executable, "-c", script, str(find_paths().fonts)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_qts_own_effects_follow(theme: Theme, qapp: QApplication, request: pytest.FixtureRequest) -> None:
    before, sheet = qapp.isEffectEnabled(EFFECTS), qapp.styleSheet()
    request.addfinalizer(lambda: (qapp.setEffectEnabled(EFFECTS, before), qapp.setStyleSheet(sheet)))
    qapp.setEffectEnabled(EFFECTS, True)  # a system that has effects
    styler = Styler(qapp, theme, find_paths().icons)
    for motion, shown in (("less", False), ("full", True)):
        theme.set_motion(motion)
        assert qapp.isEffectEnabled(EFFECTS) is shown
    styler.deleteLater()


def test_a_race_goes_on_in_steps(qtbot: QtBot, theme: Theme) -> None:
    theme.set_motion("less")
    bar = RaceBar(theme)
    qtbot.addWidget(bar)
    bar.set_seconds(60)
    seen: list[float] = []
    bar.moved.connect(seen.append)
    bar.start()
    qtbot.waitUntil(lambda: len(seen) > 2)
    bar.stop()
    assert seen[2] > 0.9, "two steps of half a second; a busy machine is late for some, and never early"


def test_the_setting_is_in_force_at_once_and_is_kept(windows: Windows) -> None:
    desk = windows.open(ready=False)
    window = desk.window
    assert not window.appearance.theme.less_motion
    motion_of(window.settings_page).picked.emit("less")
    assert window.appearance.theme.less_motion
    window.help.toggle()
    assert not named(window.help, "Search help", QLineEdit).isClearButtonEnabled()
    windows.close(desk)
    again = windows.open(ready=False).window
    assert again.appearance.theme.less_motion and motion_of(again.settings_page).choice() == "less"
    assert Settings().motion == "system"


def motion_of(page: SettingsPage) -> Segmented:
    return next(shown for shown in page.findChildren(Segmented) if name_of(shown).startswith("Motion: "))
