"""Widgets found as a screen reader finds them: by what they are called, and what stands in them."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QLabel, QWidget

Kind = TypeVar("Kind", bound=QWidget)


def name_of(widget: QWidget) -> str:
    """What a screen reader calls it; a button without another name is called by its words."""
    described = QAccessible.queryAccessibleInterface(widget)
    # Of a combo box Qt's own answer is the choice.
    return widget.accessibleName() or (described.text(QAccessible.Text.Name) if described is not None else "")


def all_named(inside: QWidget, name: str, kind: type[Kind]) -> list[Kind]:
    """Those of a kind that are shown and called that."""
    return [widget for widget in inside.findChildren(kind) if widget.isVisible() and name_of(widget) == name]


def named(inside: QWidget, name: str, kind: type[Kind]) -> Kind:
    """The one of its kind that is shown and called that."""
    found = all_named(inside, name, kind)
    there = sorted({name_of(widget) for widget in inside.findChildren(kind) if widget.isVisible()})
    assert len(found) == 1, f"{len(found)} are called {name!r}; there are {there}"
    return found[0]


def words_in(inside: QWidget) -> str:
    """All that is written on it as it stands, a line for each text."""
    found = [label.text() for label in inside.findChildren(QLabel) if label.isVisibleTo(inside)]
    return "\n".join(found).replace("\N{NO-BREAK SPACE}", " ")
