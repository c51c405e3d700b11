"""The style sheet: sound, complete, and legible in light and dark."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import (
    QAbstractButton,
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot
from typing_extensions import override

from app.base.paths import find_paths
from app.ui.theme import DARK, LIGHT, PALETTES, Palette, Theme
from app.ui.theme.style import chosen, focus_ring, hover, selection, set_role, style_sheet
from app.ui.widgets import kit
from tests.ui.contrast import contrast

ICONS = find_paths().icons


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_the_sheet_is_complete(qtbot: QtBot, theme: Theme, mode: str, scale: float) -> None:
    theme.set_mode(mode)
    theme.set_scale(scale)
    sheet = style_sheet(theme, ICONS)
    assert "@" not in sheet
    assert sheet.count("{") == sheet.count("}")
    assert "0px" not in re.findall(r"\b\d+px", sheet)
    for file in re.findall(r'url\("([^"]+)"\)', sheet):
        assert Path(file).is_file(), file


def test_qt_takes_the_sheet_without_a_warning(
    qtbot: QtBot, styled: Theme, capfd: pytest.CaptureFixture[str]
) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    QVBoxLayout(widget).addWidget(QPushButton("Press", widget))
    widget.show()
    styled.set_mode("dark")
    assert "parse" not in capfd.readouterr().err


def test_the_application_follows_the_theme(qtbot: QtBot, styled: Theme) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.show()
    role = QPalette.ColorRole.Window
    assert widget.palette().color(role) == QColor(LIGHT.ground)
    size = widget.font().pointSizeF()
    styled.set_mode("dark")
    assert widget.palette().color(role) == QColor(DARK.ground)
    styled.set_scale(2.0)
    assert widget.font().pointSizeF() == pytest.approx(2 * size)


class Stylings(QObject):
    """Counts how often each widget is styled."""

    def __init__(self) -> None:
        super().__init__()
        self.times: Counter[QObject] = Counter()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.StyleChange:
            self.times[watched] += 1
        return False


def nested(depth: int) -> list[QWidget]:
    """A window and `depth` widgets, each inside the one before."""
    widgets = [QWidget()]
    for _ in range(depth):
        widgets.append(QWidget(widgets[-1]))
    return widgets


def test_a_change_styles_deep_widgets_as_often_as_flat_ones(qtbot: QtBot, styled: Theme) -> None:
    widgets = nested(12)
    qtbot.addWidget(widgets[0])
    widgets[0].show()
    stylings = Stylings()
    for widget in widgets:
        widget.installEventFilter(stylings)
    styled.set_mode("dark")
    assert set(stylings.times) == set(widgets)
    assert max(stylings.times.values()) <= 2, "once without a sheet, once with the new one"


def test_a_change_that_looks_the_same_styles_nothing(qtbot: QtBot, styled: Theme) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.show()
    stylings = Stylings()
    widget.installEventFilter(stylings)
    styled.changed.emit()
    assert not stylings.times


def test_a_role_set_later_shows(qtbot: QtBot, styled: Theme) -> None:
    label = QLabel("word")
    qtbot.addWidget(label)
    label.show()
    set_role(label, role="error")
    assert label.palette().color(QPalette.ColorRole.WindowText) == QColor(LIGHT.error)


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize(
    "kind", ["", "icon", "primary", "flat", "fold", "row", "field", "radio", "check", "combo"]
)
def test_the_keyboard_is_seen(qtbot: QtBot, styled: Theme, mode: str, kind: str) -> None:
    """A control with the focus looks different from one without."""
    styled.set_mode(mode)
    window = QWidget()
    qtbot.addWidget(window)
    layout = QVBoxLayout(window)
    other = QPushButton("Other")
    other_kinds = {"field": QLineEdit, "radio": QRadioButton, "check": QCheckBox, "combo": QComboBox}
    control = other_kinds.get(kind, QPushButton)()
    control.setProperty("shape" if kind == "icon" else "kind", kind)
    layout.addWidget(other)
    layout.addWidget(control)
    window.show()
    window.activateWindow()  # the focus shows in an active window only
    qtbot.waitActive(window)
    other.setFocus()
    without = window.grab(control.geometry()).toImage()
    size, wanted = control.size(), control.sizeHint()
    control.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.waitUntil(control.hasFocus)
    assert window.grab(control.geometry()).toImage() != without
    assert (control.size(), control.sizeHint()) == (size, wanted)  # and nothing moves


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("name", PALETTES)
@pytest.mark.parametrize("button", [QPushButton, QToolButton])
def test_a_filled_button_has_a_plain_ring(
    qtbot: QtBot, styled: Theme, button: type[QAbstractButton], name: str, mode: str, scale: float
) -> None:
    styled.set_palette(name)
    styled.set_mode(mode)
    styled.set_scale(scale)
    window = QWidget()
    qtbot.addWidget(window)
    filled = button(window)
    filled.setProperty("kind", "primary")
    filled.setGeometry(8, 8, 60, 40)
    window.show()
    window.activateWindow()
    qtbot.waitActive(window)
    filled.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.waitUntil(filled.hasFocus)
    picture = window.grab().toImage()
    inwards = [picture.pixelColor(x, 28).name() for x in range(4, 38)]  # from beside it to its middle
    seen = [colour for at, colour in enumerate(inwards) if at == 0 or colour != inwards[at - 1]]
    ground, ring, gap, fill = seen
    assert (ring, ground) == (styled.palette.text.lower(), styled.palette.ground.lower())
    assert min(contrast(ring, ground), contrast(ring, gap), contrast(gap, fill)) >= 3
    assert inwards.count(ring) - inwards[10:].count(ring) >= 2, "a ring has at least 2 pixels"


@pytest.mark.parametrize(
    "colours",
    [palette for pair in PALETTES.values() for palette in pair],
    ids=lambda palette: f"{palette.name}, {palette.dark=}",
)
def test_text_is_legible_on_every_ground_it_stands_on(colours: Palette) -> None:
    assert contrast(colours.text, selection(colours)) >= 4.5
    grounds = [colours.ground, colours.panel, colours.raised, hover(colours), chosen(colours)]
    for ground in grounds:
        assert contrast(colours.text, ground) >= 4.5
        assert contrast(colours.secondary, ground) >= 4.5
    for ground in (colours.ground, colours.panel, colours.raised):
        assert contrast(colours.error, ground) >= 4.5
        assert contrast(focus_ring(colours), ground) >= 3
    notice = colours.soft(colours.error)
    assert contrast(colours.text, notice) >= 4.5
    assert contrast(colours.secondary, notice) >= 4.5


def test_the_sheet_paints_grounds_and_edges(qtbot: QtBot, styled: Theme) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    kit.ground(widget, "lane")
    widget.resize(60, 40)
    widget.show()
    for mode in ("light", "dark"):
        styled.set_mode(mode)
        colours = styled.palette
        edges = {"best": colours.good, "atwork": colours.secondary, "": colours.line}
        for state, edge in edges.items():
            set_role(widget, best=str(state == "best").lower(), atwork=str(state == "atwork").lower())
            picture = widget.grab().toImage()
            assert picture.pixelColor(30, 20) == QColor(colours.ground)
            assert picture.pixelColor(30, 0) == picture.pixelColor(0, 20) == QColor(edge)
