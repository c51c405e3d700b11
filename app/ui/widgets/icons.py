"""Our own line icons, drawn in the colours of the theme."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QIcon, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QToolButton, QWidget

from app.base.paths import resource_folder
from app.ui.theme import Theme
from app.ui.widgets.text.tips import as_text

SIZES = (16, 20, 24, 32, 40, 48)  # device pixels: one and two a point, plain and enlarged text


@lru_cache(maxsize=64)
def _source(name: str) -> str:
    """The SVG text of an icon in `resources/icons`."""
    return (resource_folder() / "icons" / f"{name}.svg").read_text(encoding="utf-8")


def pixmap(name: str, colour: str, size: int) -> QPixmap:
    """An icon, `size` device pixels high and wide, its lines in `colour` ("#RRGGBB")."""
    return QPixmap.fromImage(_images(name, colour, (size,))[0])


# Many controls show the same icon, each in many sizes: drawing them all took a tenth of the start-up time.
@lru_cache(maxsize=512)
def _images(name: str, colour: str, sizes: tuple[int, ...]) -> tuple[QImage, ...]:
    """An icon in several sizes; its text is parsed once for all."""
    svg = QSvgRenderer(QByteArray(_source(name).replace("currentColor", colour).encode()))
    return tuple(_painted(svg, size) for size in sizes)


def _painted(svg: QSvgRenderer, size: int) -> QImage:
    image = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    svg.render(painter, QRectF(0, 0, size, size))
    painter.end()
    return image


def icon(name: str, colour: str, disabled: str = "", checked: str = "") -> QIcon:
    """An icon in `colour`; in `disabled` where its control cannot be used, in `checked` where it is on."""
    made = QIcon()
    for shade, mode, state in (
        (colour, QIcon.Mode.Normal, QIcon.State.Off),
        (checked, QIcon.Mode.Normal, QIcon.State.On),
        (disabled, QIcon.Mode.Disabled, QIcon.State.Off),
    ):
        for image in _images(name, shade, SIZES) if shade else ():
            made.addPixmap(QPixmap.fromImage(image), mode, state)
    return made


class IconButton(QToolButton):
    """A flat button that shows an icon; its tooltip is its accessible name."""

    def __init__(
        self, theme: Theme, name: str, tooltip: str, parent: QWidget | None = None, side: int = 16
    ) -> None:
        """`side` is the icon's, in pixels at text scale 1."""
        super().__init__(parent)
        self._theme = theme
        self._name = name
        self._side = side
        self.setAutoRaise(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.set_tooltip(tooltip)
        theme.changed.connect(self._refresh)
        self._refresh()

    def set_icon(self, name: str) -> None:
        """Show another icon."""
        self._name = name
        self._refresh()

    def set_tooltip(self, text: str) -> None:
        """Say what the button does."""
        self.setToolTip(as_text(text))
        self.setAccessibleName(text)

    @Slot()
    def _refresh(self) -> None:
        colours = self._theme.palette
        primary = self.property("kind") == "primary"
        colour = colours.ground if primary else colours.secondary
        self.setIcon(icon(self._name, colour, colours.faint, "" if primary else colours.text))
        side = round(self._side * self._theme.scale)
        self.setIconSize(QSize(side, side))
