"""The icons are there, take the theme's colours, and follow it."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QColor, QIcon, QImage
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QLineEdit, QToolButton
from pytestqt.qtbot import QtBot

from app.base.paths import resource_folder
from app.ui.theme import DARK, LIGHT, Theme
from app.ui.widgets.icons import FieldIcons, IconButton, icon, pixmap

NAMES = [
    "chat",
    "compare",
    "models",
    "demos",
    "first",
    "settings",
    "plus",
    "search",
    "trash",
    "pencil",
    "copy",
    "refresh",
    "stop",
    "send",
    "chevron-up",
    "chevron-down",
    "chevron-left",
    "chevron-right",
    "folder",
    "sidebar",
    "close",
]


def colours(image: QImage) -> set[str]:
    """The colours of the opaque pixels."""
    places = [(x, y) for x in range(image.width()) for y in range(image.height())]
    seen = (image.pixelColor(*place) for place in places)
    return {colour.name().upper() for colour in seen if colour.alpha() == 255}


@pytest.mark.parametrize("name", NAMES)
def test_every_icon_is_drawn_in_the_colour_asked_for(qtbot: QtBot, name: str) -> None:
    image = pixmap(name, "#007F5F", 48).toImage()
    assert colours(image) == {"#007F5F"}


@pytest.mark.parametrize("file", sorted((resource_folder() / "icons").glob("*.svg")))
def test_every_file_is_sound_and_has_no_colour_of_its_own(qtbot: QtBot, file: Path) -> None:
    assert QSvgRenderer(str(file)).isValid()
    neutral = file.stem.endswith("-neutral")  # those of the style sheet cannot be recoloured
    assert ("currentColor" in file.read_text()) is not neutral


def test_a_button_follows_the_theme_and_says_its_name(qtbot: QtBot, theme: Theme) -> None:
    button = IconButton(theme, "copy", "Copy the strategy")
    qtbot.addWidget(button)
    assert button.accessibleName() == button.toolTip() == "Copy the strategy"
    assert LIGHT.secondary in colours(button.icon().pixmap(48).toImage())
    theme.set_mode("dark")
    assert DARK.secondary in colours(button.icon().pixmap(48).toImage())
    size = button.iconSize().width()
    theme.set_scale(1.5)
    assert button.iconSize().width() == round(size * 1.5)


@pytest.mark.parametrize("size", [13, 37, 100])
def test_an_icon_is_drawn_in_the_size_asked_for(qtbot: QtBot, size: int) -> None:
    picture = icon("copy", "#007F5F").pixmap(size).toImage()
    assert (picture.width(), picture.height()) == (size, size)
    assert picture == pixmap("copy", "#007F5F", size).toImage()


def test_an_icon_without_room_shows_nothing(qtbot: QtBot) -> None:
    assert icon("copy", "#007F5F").pixmap(0).isNull()  # a warning of Qt would fail this test


def test_an_icon_shows_what_its_control_is(qtbot: QtBot) -> None:
    made = icon("copy", LIGHT.text, LIGHT.faint, LIGHT.good)
    modes, states = QIcon.Mode, QIcon.State
    assert colours(made.pixmap(48, modes.Normal, states.On).toImage()) == {LIGHT.good}
    assert colours(made.pixmap(48, modes.Disabled, states.On).toImage()) == {LIGHT.faint}
    assert colours(made.pixmap(48, modes.Active, states.Off).toImage()) == {LIGHT.text}
    grey = icon("copy", "#007F5F").pixmap(48, modes.Disabled, states.Off)
    assert "#007F5F" not in colours(grey.toImage())


def test_a_filled_button_has_its_icon_in_the_ground_s_colour_from_the_start(
    qtbot: QtBot, theme: Theme
) -> None:
    button = IconButton(theme, "send", "Send", kind="primary")
    qtbot.addWidget(button)
    assert LIGHT.ground in colours(button.icon().pixmap(48).toImage())


def test_icons_of_a_field_grow_with_its_text(qtbot: QtBot, theme: Theme) -> None:
    field = QLineEdit()
    qtbot.addWidget(field)
    FieldIcons(theme, field, "search", "close")
    field.show()

    def widths() -> list[int]:
        field.resize(200, round(30 * theme.scale))
        return [button.width() for button in field.findChildren(QToolButton)]

    (before, after) = widths()
    theme.set_scale(2)
    assert widths() == [before + 16, after + 16]
    image = field.grab().toImage()
    ink = QColor(theme.palette.secondary)
    columns = {x for x in range(60) for y in range(60) if image.pixelColor(x, y) == ink}
    assert max(columns) - min(columns) > 20


def test_a_field_with_icons_keeps_its_edges_in_another_theme(qtbot: QtBot, styled: Theme) -> None:
    field, plain = QLineEdit(), QLineEdit()
    FieldIcons(styled, field, "search")
    for widget in (field, plain):
        qtbot.addWidget(widget)
        widget.show()
    styled.set_scale(2)
    assert field.sizeHint().height() == plain.sizeHint().height()
