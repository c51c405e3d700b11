"""A form generated from a parameter dataclass, and contents that unfold below a title."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QPushButton, QWidget

from app.engine.errors import SettingError
from app.engine.params import params_of
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.field import Field, make_field
from app.ui.widgets.icons import icon
from app.ui.widgets.notice import Notice


class FoldButton(QPushButton):
    """A title with a chevron that shows whether the contents are visible; `toggled` reports it."""

    def __init__(self, theme: Theme, title: str = "") -> None:
        super().__init__(title)
        self._theme = theme
        self.setProperty("kind", "fold")
        self.setCheckable(True)
        self.toggled.connect(self._refresh)
        theme.follow(self._refresh)

    def _refresh(self) -> None:
        name = "chevron-down" if self.isChecked() else "chevron-right"
        self.setIcon(icon(name, self._theme.palette.secondary))
        side = round(14 * self._theme.scale)
        self.setIconSize(QSize(side, side))


class FoldedPart(QWidget):
    """A title to click and, when open, the contents."""

    toggled = Signal(bool)

    def __init__(self, theme: Theme, title: str, contents: QWidget) -> None:
        super().__init__()
        self._contents = contents
        self.button = FoldButton(theme, title)
        self.button.toggled.connect(self._toggle)
        kit.column(kit.row(self.button, kit.Spring()), contents, spacing=8, on=self)
        contents.hide()

    def _toggle(self, opened: bool) -> None:
        self._contents.setVisible(opened)
        self.toggled.emit(opened)


GAP = 12


class ParamForm(QWidget):
    """Edits an instance of a parameter dataclass; fields that are no parameters keep their values. The fields
    are made when they are first shown or asked for: most forms are never opened."""

    changed = Signal()
    """A field was edited; its value may be wrong."""

    def __init__(self, theme: Theme, params_type: type[Any], first: Sequence[str] = ()) -> None:
        """With `first`, only the fields of these names are shown. The others are folded away until one of
        them is not the default."""
        super().__init__()
        self._theme = theme
        self._type = params_type
        self._first = first
        self._base = params_type()
        self._fields: ParamFields | None = None
        self._layout = kit.column(on=self)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._made()

    def _made(self) -> ParamFields:
        if self._fields is None:
            self._fields = ParamFields(self._theme, self._type, self._base, self._first)
            self._fields.changed.connect(self.changed)
            self._layout.addWidget(self._fields)
            self._fields.show()  # not a moment later, when the form was measured
        return self._fields

    def value(self) -> Any:
        """The edited dataclass, in which a wrong field keeps its previous value. Raises SettingError if valid
        values contradict each other."""
        return self._base if self._fields is None else self._fields.value()

    def set_value(self, value: Any) -> None:
        """Show an instance, without emitting a signal."""
        self._base = value
        if self._fields is not None:
            self._fields.set_value(value)

    def valid(self) -> bool:
        """Whether `value` would raise no error."""
        return self._fields is None or self._fields.clash() is None

    def field(self, name: str) -> Field:
        """The field of a parameter."""
        return self._made().fields[name]

    def reset(self) -> None:
        """Return to the defaults."""
        self._made().reset()


class ParamFields(QWidget):
    """The fields of a form, what is wrong with them, and the way back to the defaults."""

    changed = Signal()

    def __init__(self, theme: Theme, params_type: type[Any], base: Any, first: Sequence[str]) -> None:
        super().__init__()
        self._base = base
        self.fields: dict[str, Field] = {}
        for param in params_of(params_type):
            field = self.fields[param.name] = make_field(param)
            field.edited.connect(self._edited)
        self._more = [field for name, field in self.fields.items() if first and name not in first]
        shown: list[QWidget] = [field for field in self.fields.values() if field not in self._more]
        self._fold: FoldedPart | None = None
        if self._more:
            more = kit.holder(kit.column(*self._more, spacing=GAP))
            self._fold = FoldedPart(theme, f"{len(self._more)} more settings", more)
            shown.append(self._fold)
        self._notice = Notice(theme)
        self._reset = kit.button("Reset to defaults", self.reset, kind="flat")
        kit.column(*shown, self._notice, kit.row(kit.Spring(), self._reset), spacing=GAP, on=self)
        self.set_value(base)

    def value(self) -> Any:
        """See ParamForm.value."""
        values = {name: field.held() for name, field in self.fields.items()}
        return dataclasses.replace(self._base, **values)

    def set_value(self, value: Any) -> None:
        """Show an instance, without emitting a signal."""
        self._base = value
        for name, field in self.fields.items():
            field.set_value(getattr(value, name))
        if self._fold is not None and not all(field.is_default() for field in self._more):
            self._fold.button.setChecked(True)  # values in use are not hidden
        self._check()

    def reset(self) -> None:
        """Return to the defaults."""
        for field in self.fields.values():
            field.set_value(field.param.default)
        self._edited()

    def _edited(self) -> None:
        self._check()
        self.changed.emit()

    def _check(self) -> None:
        clash = self.clash()
        if clash is None:
            self._notice.clear()
        else:
            self._notice.tell(clash)
        self._reset.setEnabled(not all(field.is_default() for field in self.fields.values()))

    def clash(self) -> SettingError | None:
        """What is wrong with the values together, although each one is valid."""
        try:
            self.value()
        except SettingError as error:
            return error
        return None
