"""Widgets found as a screen reader finds them: by accessible name and text."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QLabel, QWidget

Kind = TypeVar("Kind", bound=QWidget)


def name_of(widget: QWidget) -> str:
    """The name that a screen reader reads; for a button without one, its text."""
    described = QAccessible.queryAccessibleInterface(widget)
    # Qt would name a combo box by its choice.
    return widget.accessibleName() or (described.text(QAccessible.Text.Name) if described is not None else "")


def all_named(inside: QWidget, name: str, kind: type[Kind]) -> list[Kind]:
    """The widgets of a kind with a name, as far as they are visible once `inside` is."""
    shown = [widget for widget in inside.findChildren(kind) if widget.isVisibleTo(inside)]
    return [widget for widget in shown if name_of(widget) == name]


def named(inside: QWidget, name: str, kind: type[Kind]) -> Kind:
    """The only widget of a kind with a name that is visible once `inside` is."""
    found = all_named(inside, name, kind)
    there = sorted({name_of(widget) for widget in inside.findChildren(kind) if widget.isVisibleTo(inside)})
    assert len(found) == 1, f"{len(found)} are called {name!r}; there are {there}"
    return found[0]


def words_in(inside: QWidget) -> str:
    """All visible texts in a widget, one per line."""
    found = [label.text() for label in inside.findChildren(QLabel) if label.isVisibleTo(inside)]
    return "\n".join(found).replace("\N{NO-BREAK SPACE}", " ")
