"""The style sheet: every common control in the colours and on the 8-pixel grid of the theme
(`resources/style.qss`, with values between two @).

Widgets choose their style by the properties `role` (labels) and `kind` (buttons, frames). Labels: `title`,
`strong`, `secondary`, `caption`, `error`, `mono`. Buttons: `primary`, `flat`, `small`, `fold`, `row`,
`place`, `round`. Frames: `card`, `line`, `list`. Text edits: `field`.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPalette, QPen
from PySide6.QtWidgets import QApplication, QWidget

from app.ui.theme.palette import Palette, blend
from app.ui.theme.rings import FocusRings
from app.ui.theme.theme import Theme

_EFFECTS = Qt.UIEffect.UI_General  # all effects of Qt: without it none is shown


class Styler(QObject):
    """Keeps an application in its theme: colours, font and motion from the start, the style sheet from
    `apply` on."""

    def __init__(self, application: QApplication, theme: Theme, icons: Path) -> None:
        """`icons` is the folder of the icon files; the arrows of combo boxes come from there."""
        super().__init__(application)
        self._application = application
        self._theme = theme
        self._icons = icons
        self._effects = application.isEffectEnabled(_EFFECTS)  # as the system has them
        application.setStyle("Fusion")  # the one style that looks the same on every system
        FocusRings(application, self)
        theme.changed.connect(self.apply)
        self._apply_colours()
        self._apply_motion()

    def apply(self) -> None:
        """Apply the theme to the application."""
        self._apply_motion()
        sheet = style_sheet(self._theme, self._icons)
        if sheet == self._application.styleSheet():
            return  # "light" instead of "system" may look the same
        # Where a sheet replaces another, Qt styles every widget once for each of its ancestors; where one
        # comes or goes, only once.
        self._application.setStyleSheet("")
        self._apply_colours()
        self._application.setStyleSheet(sheet)

    def _apply_colours(self) -> None:
        self._application.setPalette(qt_palette(self._theme.palette))
        self._application.setFont(self._theme.sans())

    def _apply_motion(self) -> None:
        """Let menus, lists and tips open at once if less motion is wanted."""
        self._application.setEffectEnabled(_EFFECTS, self._effects and not self._theme.less_motion)


def set_role(widget: QWidget, **names: str) -> None:
    """Set `role` or `kind` of a widget that may be visible already."""
    for name, value in names.items():
        if widget.property(name) != value:
            widget.setProperty(name, value)
            widget.style().unpolish(widget)
            widget.style().polish(widget)


def qt_palette(colours: Palette) -> QPalette:
    """Our colours in Qt's roles, for widgets that paint themselves without the style sheet."""
    made = QPalette()
    roles = QPalette.ColorRole
    named = {
        roles.Window: colours.ground,
        roles.Base: colours.ground,
        roles.AlternateBase: colours.panel,
        roles.Button: colours.panel,
        roles.WindowText: colours.text,
        roles.Text: colours.text,
        roles.ButtonText: colours.text,
        roles.ToolTipBase: colours.panel,
        roles.ToolTipText: colours.text,
        roles.PlaceholderText: colours.secondary,
        roles.Highlight: selection(colours),
        roles.HighlightedText: colours.text,
        roles.Mid: colours.line,
        roles.Link: colours.link,
    }
    for role, colour in named.items():
        made.setColor(role, QColor(colour))
    for role in (roles.WindowText, roles.Text, roles.ButtonText):
        made.setColor(QPalette.ColorGroup.Disabled, role, QColor(colours.faint))
    return made


def selection(colours: Palette) -> str:
    """The ground of selected text."""
    return blend(colours.text, colours.ground, colours.wash_share)


def chosen(colours: Palette) -> str:
    """The ground of the row or choice that is in use; secondary text is legible on it too."""
    return blend(colours.text, colours.ground, colours.chosen_share)


def hover(colours: Palette) -> str:
    """The ground under the pointer."""
    return blend(colours.text, colours.ground, 0.07 if colours.dark else 0.05)


def focus_ring(colours: Palette) -> str:
    """The border of the focused control."""
    return blend(colours.text, colours.ground, 0.72)


def paint_row(
    painter: QPainter, colours: Palette, card: QRectF, *, on: bool, under: bool, ring: QRectF | None = None
) -> None:
    """Paint the ground of a row that is in use or under the pointer, and its focus ring."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if on or under:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(chosen(colours) if on else hover(colours)))
        painter.drawRoundedRect(card, 6, 6)
    if ring is not None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(focus_ring(colours)), 2))
        painter.drawRoundedRect(ring, 6, 6)


def style_sheet(theme: Theme, icons: Path) -> str:
    """The style sheet of the whole application: the one beside the folder of icons, its values filled in."""
    colours = theme.palette
    values = {
        "ground": colours.ground,
        "panel": colours.panel,
        "line": colours.line,
        "edge": colours.edge,
        "text": colours.text,
        "secondary": colours.secondary,
        "faint": colours.faint,
        "error": colours.error,
        "good": colours.good,
        "hover": hover(colours),
        "selected": selection(colours),
        "chosen": chosen(colours),
        "pressed": blend(colours.text, colours.ground, 0.16),
        "strong_hover": blend(colours.text, colours.ground, 0.86),
        "ring": focus_ring(colours),
        "thumb": blend(colours.text, colours.ground, colours.edge_share),
        "small": f"{theme.sans(-1).pointSizeF():.2f}pt",
        "fine": f"{theme.sans(-1.5).pointSizeF():.2f}pt",
        "tiny": f"{theme.sans(-2).pointSizeF():.2f}pt",
        "title": f"{theme.sans(1.5).pointSizeF():.2f}pt",
        "lead": f"{theme.sans(0.5).pointSizeF():.2f}pt",
        "large": f"{theme.sans(4).pointSizeF():.2f}pt",
        "mono": theme.mono().family(),
        "raised": colours.raised,
        "icons": icons.as_posix(),
    }
    side = round(12 * theme.scale) + 2  # of an indicator with its border
    dot = max(2, round(4 * theme.scale))
    values |= {"half": f"{side // 2}px", "dot": f"{dot}px", "hole": f"{side - 2 * dot}px"}
    # Qt drops a radius of more than half the side, whose corners are then square.
    values |= {"knob": f"{round(12 * theme.scale) // 2}px", "round": f"{round(17 * theme.scale)}px"}
    for grid in (1, 2, 4, 6, 8, 12, 16, 24, 32):
        values[f"g{grid}"] = f"{max(1, round(grid * theme.scale))}px"
    for grid in (4, 6, 8, 16):  # beside a border of 2 pixels instead of one
        values[f"in{grid}"] = f"{max(1, round(grid * theme.scale)) - 1}px"
    sheet = (icons.parent / "style.qss").read_text(encoding="utf-8")
    for name, value in values.items():
        sheet = sheet.replace(f"@{name}@", value)
    return sheet
