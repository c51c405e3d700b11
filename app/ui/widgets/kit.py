"""Rows, columns, labels and buttons as expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt, SignalInstance
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)


@dataclass(frozen=True, slots=True)
class Spring:
    """Takes room that is left in a row or a column, before parts with a smaller factor do."""

    factor: int = 0


Margins = tuple[int, int, int, int]
Item = QWidget | QLayout
Part = Item | Spring | int | tuple[Item, int] | tuple[QWidget, int, Qt.AlignmentFlag]
"""A widget or a layout, with its stretch and alignment; or pixels of space."""


def row(
    *parts: Part, on: QWidget | None = None, margins: Margins | None = None, spacing: int | None = None
) -> QHBoxLayout:
    """The parts from left to right, laid out `on` a widget. Without margins there are none; without a spacing
    the style's holds."""
    made = QHBoxLayout() if on is None else QHBoxLayout(on)
    _fill(made, parts, margins, spacing)
    return made


def column(
    *parts: Part, on: QWidget | None = None, margins: Margins | None = None, spacing: int | None = None
) -> QVBoxLayout:
    """The parts from top to bottom, as in `row`."""
    made = QVBoxLayout() if on is None else QVBoxLayout(on)
    _fill(made, parts, margins, spacing)
    return made


def _fill(box: QBoxLayout, parts: tuple[Part, ...], margins: Margins | None, spacing: int | None) -> None:
    box.setContentsMargins(*(margins or (0, 0, 0, 0)))
    if spacing is not None:
        box.setSpacing(spacing)
    for part in parts:
        if isinstance(part, Spring):
            box.addStretch(part.factor)
        elif isinstance(part, int):
            box.addSpacing(part)
        else:
            item, factor, *side = part if isinstance(part, tuple) else (part, 0)
            if isinstance(item, QLayout):
                box.addLayout(item, factor)
            else:
                box.addWidget(item, factor, *side)


def label(
    text: str = "", role: str = "", *, wrap: bool = False, plain: bool = False, selectable: bool = False
) -> QLabel:
    """Words in one of the roles of the style sheet. `plain`: what they quote may look like markup;
    `selectable`: they can be marked with the mouse."""
    made = QLabel(text)
    if role:
        made.setProperty("role", role)
    if wrap:
        made.setWordWrap(True)
    if plain:
        made.setTextFormat(Qt.TextFormat.PlainText)
    if selectable:
        made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return made


def button(
    text: str = "",
    act: Callable[..., object] | SignalInstance | None = None,
    *,
    kind: str = "",
    tip: str = "",
    name: str = "",
) -> QPushButton:
    """A button that does `act` when it is clicked. `name` is what a screen reader says in place of its
    text."""
    made = QPushButton(text)
    if kind:
        made.setProperty("kind", kind)
    if tip:
        made.setToolTip(tip)
    if name:
        made.setAccessibleName(name)
    if act is not None:
        made.clicked.connect(act)
    return made


def line() -> QFrame:
    """A line between what stands above and below."""
    made = QFrame()
    made.setProperty("kind", "line")
    return made


def empty(layout: QLayout) -> None:
    """Take all widgets out of a layout and delete them."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()
