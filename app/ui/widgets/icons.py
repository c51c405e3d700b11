"""Our own line icons, drawn in the colours of the theme."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from PySide6 import QtWidgets
from PySide6.QtCore import (
    QByteArray,
    QDeadlineTimer,
    QEvent,
    QObject,
    QRect,
    QRectF,
    QSize,
    Qt,
    SignalInstance,
)
from PySide6.QtGui import QIcon, QIconEngine, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer
from typing_extensions import override

from app.base.paths import resource_folder
from app.ui.theme import Theme
from app.ui.widgets.access import NO_MORE
from app.ui.widgets.labels import as_text

LATE_MILLISECONDS = 600  # a click this soon after one button took the place of another was aimed at that


@lru_cache(maxsize=64)
def _source(name: str) -> str:
    """The SVG text of an icon in `resources/icons`."""
    return (resource_folder() / "icons" / f"{name}.svg").read_text(encoding="utf-8")


def pixmap(name: str, colour: str, size: int) -> QPixmap:
    """An icon, `size` device pixels high and wide, its lines in `colour` ("#RRGGBB")."""
    return QPixmap.fromImage(_image(name, colour, size))


@lru_cache(maxsize=512)  # many controls show the same icon
def _image(name: str, colour: str, size: int) -> QImage:
    svg = QSvgRenderer(QByteArray(_source(name).replace("currentColor", colour).encode()))
    image = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    svg.render(painter, QRectF(0, 0, size, size))
    painter.end()
    return image


def icon(name: str, colour: str, disabled: str = "", checked: str = "") -> QIcon:
    """An icon in `colour`; in `disabled` if its control cannot be used, in `checked` if it is on."""
    return QIcon(_IconEngine(name, colour, disabled, checked))


class _IconEngine(QIconEngine):
    """Draws an icon in a size when that is first needed: drawing all icons for all screens took a tenth of
    the start."""

    def __init__(self, name: str, colour: str, disabled: str, checked: str) -> None:
        super().__init__()
        self._looks = (name, colour, disabled, checked)

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        name, colour, disabled, checked = self._looks
        is_disabled = mode is QIcon.Mode.Disabled
        if is_disabled and disabled:
            colour = disabled
        elif state is QIcon.State.On and checked:
            colour = checked
        side = min(size.width(), size.height())
        made = pixmap(name, colour, side) if side > 0 else QPixmap()  # a control may have no room yet
        if is_disabled and not disabled:
            return QtWidgets.QApplication.style().generatedIconPixmap(mode, made, QtWidgets.QStyleOption())
        return made

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        size = rect.size() * painter.device().devicePixelRatio()
        painter.drawPixmap(rect, self.pixmap(size, mode, state))

    def clone(self) -> QIconEngine:
        return _IconEngine(*self._looks)


class FieldIcons(QtWidgets.QProxyStyle):
    """Icons before and after the text of a field. The field's style lets them grow with its text, which a
    style sheet cannot."""

    def __init__(self, theme: Theme, field: QtWidgets.QLineEdit, before: str, *after: str) -> None:
        super().__init__("Fusion")
        self.setParent(field)
        self._theme = theme
        self._field = field
        self._names = before, *after
        places = QtWidgets.QLineEdit.ActionPosition
        sides = [places.LeadingPosition] + [places.TrailingPosition] * len(after)
        self.actions = [field.addAction(QIcon(), side) for side in sides]
        field.installEventFilter(self)
        theme.follow(self._restyle)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Show:
            self._field.setStyle(self)  # the first style sheet comes after the widgets
        return False

    def _restyle(self) -> None:
        self._field.setStyle(self)  # again: a new style sheet leaves out a widget with a style of its own
        for name, action in zip(self._names, self.actions, strict=True):
            action.setIcon(icon(name, self._theme.palette.secondary))

    @override
    def pixelMetric(
        self,
        metric: QtWidgets.QStyle.PixelMetric,
        option: QtWidgets.QStyleOption | None = None,
        widget: QtWidgets.QWidget | None = None,
    ) -> int:
        if metric is QtWidgets.QStyle.PixelMetric.PM_LineEditIconSize:
            return round(16 * self._theme.scale)
        return super().pixelMetric(metric, option, widget)


class LateClicks(QObject):
    """Ignores clicks on a button that has just replaced a different one, because the user still meant that
    one. The second press of a double click is meant for neither."""

    def __init__(self, button: QtWidgets.QAbstractButton) -> None:
        super().__init__(button)
        self._taken = QDeadlineTimer(0)
        button.installEventFilter(self)

    def expect(self) -> None:
        """The button replaces a different one now."""
        self._taken.setRemainingTime(LATE_MILLISECONDS)

    def eventFilter(self, button: QObject, event: QEvent) -> bool:
        pressed = event.type() is QEvent.Type.MouseButtonPress and not self._taken.hasExpired()
        return pressed or event.type() is QEvent.Type.MouseButtonDblClick


class IconButton(QtWidgets.QToolButton):
    """A flat button that shows an icon; its tooltip is its accessible name."""

    def __init__(
        self,
        theme: Theme,
        name: str,
        tooltip: str,
        parent: QtWidgets.QWidget | None = None,
        side: int = 16,
        kind: str = "",
        act: Callable[..., object] | SignalInstance | None = None,
    ) -> None:
        """`side` is the icon's size in pixels at text scale 1; `kind` is the style sheet's, and decides the
        icon's colour. A click does `act`."""
        super().__init__(parent)
        self.setProperty("kind", kind)
        self._theme = theme
        self._name = name
        self._side = side
        self.setAutoRaise(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.set_tooltip(tooltip)
        if act is not None:
            self.clicked.connect(act)
        theme.follow(self._refresh)

    def set_icon(self, name: str) -> None:
        """Show a different icon."""
        if name != self._name:
            self._name = name
            self._refresh()

    def set_tooltip(self, text: str) -> None:
        """Say what the button does."""
        self.setToolTip(as_text(text))
        self.setAccessibleName(text)
        self.setAccessibleDescription(NO_MORE)

    def _refresh(self) -> None:
        colours = self._theme.palette
        primary = self.property("kind") == "primary"
        colour = colours.ground if primary else colours.secondary
        self.setIcon(icon(self._name, colour, colours.faint, "" if primary else colours.text))
        side = round(self._side * self._theme.scale)
        self.setIconSize(QSize(side, side))
