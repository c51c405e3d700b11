"""The style sheet: every common control in the colours and on the 8-pixel grid of the theme.

Widgets choose their style by the properties `role` (labels) and `kind` (buttons, frames). Labels: `title`,
`strong`, `secondary`, `caption`, `error`, `mono`. Buttons: `primary`, `flat`, `small`, `fold`, `row`,
`place`. Frames: `card`, `line`, `list`. Text edits: `field`.
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
    """The style sheet of the whole application."""
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
        "hover": hover(colours),
        "selected": selection(colours),
        "chosen": chosen(colours),
        "pressed": blend(colours.text, colours.ground, 0.16),
        "strong_hover": blend(colours.text, colours.ground, 0.86),
        "ring": focus_ring(colours),
        "thumb": blend(colours.text, colours.ground, colours.edge_share),
        "small": f"{theme.sans(-1).pointSizeF():.2f}pt",
        "title": f"{theme.sans(1.5).pointSizeF():.2f}pt",
        "mono": theme.mono().family(),
        "icons": icons.as_posix(),
    }
    side = round(12 * theme.scale) + 2  # of an indicator with its border
    dot = max(2, round(4 * theme.scale))
    values |= {"half": f"{side // 2}px", "dot": f"{dot}px", "hole": f"{side - 2 * dot}px"}
    # Qt drops a radius of more than half the side, whose corners are then square.
    values["knob"] = f"{round(12 * theme.scale) // 2}px"
    for grid in (1, 2, 4, 6, 8, 12, 16, 24, 32):
        values[f"g{grid}"] = f"{max(1, round(grid * theme.scale))}px"
    for grid in (4, 6, 8, 16):  # beside a border of 2 pixels instead of one
        values[f"in{grid}"] = f"{max(1, round(grid * theme.scale)) - 1}px"
    sheet = _SHEET
    for name, value in values.items():
        sheet = sheet.replace(f"@{name}@", value)
    return sheet


_SHEET = """
QToolTip { background: @panel@; color: @text@; border: 1px solid @edge@; padding: @g4@ @g8@; }

QLabel[role="title"] { font-size: @title@; font-weight: 600; }
QLabel[role="strong"] { font-weight: 500; }
QLabel[role="secondary"] { color: @secondary@; }
QLabel[role="caption"] { color: @secondary@; font-size: @small@; }
QLabel[role="error"] { color: @error@; font-size: @small@; }
QLabel[role="mono"] { font-family: "@mono@"; }
QLabel:disabled { color: @faint@; }

QFrame[kind="card"] { background: @panel@; border: 1px solid @line@; border-radius: 8px; }
QFrame[kind="figure"] { background: @ground@; border: 1px solid @line@; border-radius: 8px; }
QFrame[kind="list"] { background: @ground@; border: 1px solid @edge@; }
QFrame[kind="line"] { background: @line@; border: none; max-height: 1px; min-height: 1px; }

QPushButton {
    background: @ground@; color: @text@; border: 1px solid @edge@; border-radius: 8px;
    padding: @g6@ @g16@;
}
QPushButton:hover { background: @hover@; }
QPushButton:pressed, QPushButton:checked { background: @pressed@; }
QPushButton[ring="true"]:focus { border: 2px solid @ring@; padding: @in6@ @in16@; }
QPushButton:disabled { color: @faint@; border-color: @line@; }
QPushButton[kind="primary"] { background: @text@; color: @ground@; border: 1px solid @text@; }
QPushButton[kind="primary"]:hover { background: @strong_hover@; }
/* The ring of a filled button is a gap in its colour: clipped so, Qt leaves a line free inside the border. */
QPushButton[kind="primary"][ring="true"]:focus { border: 2px solid @text@; background-clip: padding; }
QPushButton[kind="primary"]:disabled {
    background: @chosen@; color: @secondary@; border-color: @chosen@;
}
QPushButton[shape="icon"] { padding: @g6@ @g8@; }
QPushButton[shape="icon"][ring="true"]:focus { padding: @in6@ @in8@; }
QPushButton[kind="flat"] {
    background: transparent; color: @secondary@; border: 1px solid transparent;
    padding: @g4@ @g8@;
}
QPushButton[kind="flat"]:hover { background: @hover@; color: @text@; }
QPushButton[kind="small"] { padding: @g1@ @g8@; border-radius: 6px; }
QPushButton[kind="small"][ring="true"]:focus { border: 2px solid @ring@; padding: 0 @g6@; }
QPushButton[kind="fold"] {
    background: transparent; color: @secondary@; border: 2px solid transparent;
    padding: @g2@ @g8@ @g2@ 0; text-align: left;
}
QPushButton[kind="fold"]:hover, QPushButton[kind="fold"]:checked { color: @text@; }
QPushButton[kind="fold"][ring="true"]:focus {
    border: 2px solid @ring@; padding: @g2@ @g8@ @g2@ 0;
}
QPushButton[kind="row"] {
    background: transparent; border: 1px solid transparent; padding: @g4@ @g8@; text-align: left;
}
QPushButton[kind="row"]:hover { background: @hover@; }
QPushButton[kind="row"]:checked { background: @chosen@; }
QPushButton[role="mono"] { font-family: "@mono@"; }
QPushButton[kind="row"][ring="true"]:focus { border: 2px solid @ring@; padding: @in4@ @in8@; }
QPushButton[kind="flat"]:checked { color: @text@; }
QPushButton[kind="flat"][ring="true"]:focus { border: 2px solid @ring@; padding: @in4@ @in8@; }
QPushButton[kind="flat"]:disabled { color: @faint@; }

QToolButton {
    background: transparent; color: @secondary@; border: 2px solid transparent; border-radius: 8px;
    padding: @g4@;
}
QToolButton:hover { background: @hover@; color: @text@; }
QToolButton:pressed, QToolButton:checked { background: @pressed@; color: @text@; }
QToolButton[kind="place"]:checked { background: @line@; }
QToolButton[ring="true"]:focus { border: 2px solid @ring@; }
QToolButton[kind="primary"] { background: @text@; }
QToolButton[kind="primary"]:hover { background: @strong_hover@; }
QToolButton[kind="primary"][ring="true"]:focus { border: 2px solid @text@; background-clip: padding; }
QToolButton[kind="primary"]:disabled { background: @chosen@; }
QToolButton::menu-indicator { image: none; }

QLineEdit, QAbstractSpinBox, QComboBox, QTextEdit[kind="field"], QPlainTextEdit[kind="field"] {
    background: @ground@; color: @text@; border: 1px solid @edge@; border-radius: 6px;
    padding: @g4@ @g8@; selection-background-color: @selected@; selection-color: @text@;
    min-height: @g16@;
}
QLineEdit:focus, QAbstractSpinBox:focus, QComboBox:focus, QTextEdit[kind="field"]:focus,
QPlainTextEdit[kind="field"]:focus { border: 1px solid @faint@; }
QComboBox[ring="true"]:focus { border: 2px solid @ring@; padding: 3px @g24@ 3px 7px; }
QLineEdit:disabled, QAbstractSpinBox:disabled, QComboBox:disabled {
    color: @faint@; border-color: @line@;
}
QLineEdit[state="wrong"], QAbstractSpinBox[state="wrong"] {
    border: 2px solid @error@; padding-top: @in4@; padding-bottom: @in4@;
}
QLineEdit[kind="mono"], QPlainTextEdit[kind="mono"] { font-family: "@mono@"; }
QAbstractSpinBox QLineEdit { border: none; padding: 0 0 0 @g6@; background: transparent; }
QAbstractSpinBox { padding-right: @g24@; }
QAbstractSpinBox:focus { padding-right: @g24@; }
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {
    subcontrol-origin: border; width: @g24@; border: none; background: transparent;
}
QAbstractSpinBox::up-button { subcontrol-position: top right; }
QAbstractSpinBox::down-button { subcontrol-position: bottom right; }
QAbstractSpinBox::up-button:hover, QAbstractSpinBox::down-button:hover { background: @hover@; }
QAbstractSpinBox::up-arrow { image: url("@icons@/arrow-up-neutral.svg"); width: @g8@; height: @g8@; }
QAbstractSpinBox::down-arrow {
    image: url("@icons@/arrow-down-neutral.svg"); width: @g8@; height: @g8@;
}

QComboBox { padding-right: @g24@; combobox-popup: 0; }
QComboBox::drop-down {
    subcontrol-origin: border; subcontrol-position: center right; width: @g24@; border: none;
}
QComboBox::down-arrow { image: url("@icons@/arrow-down-neutral.svg"); width: @g8@; height: @g8@; }
QComboBox QAbstractItemView {
    background: @ground@; border: 1px solid @edge@; padding: @g4@; outline: none;
    selection-background-color: @chosen@; selection-color: @text@;
}
QComboBox QAbstractItemView::item { min-height: @g24@; padding: 0 @g8@; border-radius: 4px; }

QCheckBox, QRadioButton {
    spacing: @g8@; color: @text@; border: 2px solid transparent; border-radius: 6px;
    padding: 1px @g6@ 1px 2px;
}
QCheckBox[ring="true"]:focus, QRadioButton[ring="true"]:focus { border-color: @ring@; }
QCheckBox[kind="quiet"] { color: @secondary@; font-size: @small@; }
QCheckBox:disabled, QRadioButton:disabled { color: @faint@; }
QCheckBox::indicator, QRadioButton::indicator {
    width: @g12@; height: @g12@; border: 1px solid @edge@; background: @ground@;
}
QCheckBox::indicator { border-radius: 3px; }
QRadioButton::indicator { border-radius: @half@; }
QCheckBox::indicator:checked { background: @text@; image: url("@icons@/check-neutral.svg"); }
QCheckBox::indicator:checked:disabled { background: @faint@; }
QRadioButton[role="mono"] { font-family: "@mono@"; }
QRadioButton::indicator:checked { border: @dot@ solid @text@; width: @hole@; height: @hole@; }

QSlider:horizontal { min-height: @g16@; }
QSlider::groove:horizontal { height: @g4@; background: @line@; border-radius: 2px; }
QSlider::sub-page:horizontal { background: @text@; border-radius: 2px; }
QSlider::handle:horizontal {
    width: @g12@; height: @g12@; margin: -@g4@ 0; border-radius: @knob@; background: @text@;
}
QSlider::handle:horizontal:focus {
    margin: -@g6@ 0; border-radius: @knob@; background: @ring@; border: 2px solid @text@;
}
QSlider::groove:horizontal:disabled, QSlider::sub-page:horizontal:disabled { background: @line@; }
QSlider::handle:horizontal:disabled { background: @faint@; }

QProgressBar {
    background: @line@; border: none; border-radius: 2px; max-height: @g4@; min-height: @g4@;
    color: transparent;
}
QProgressBar::chunk { background: @text@; border-radius: 2px; }

QScrollBar:vertical { background: transparent; width: @g12@; margin: 0; }
QScrollBar:horizontal { background: transparent; height: @g12@; margin: 0; }
QScrollBar::handle { background: @thumb@; border-radius: 3px; margin: 3px; }
QScrollBar::handle:vertical { min-height: @g32@; }
QScrollBar::handle:horizontal { min-width: @g32@; }
QScrollBar::handle:hover { background: @faint@; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }

QMenu { background: @ground@; border: 1px solid @edge@; padding: @g4@; }
QMenu::item { padding: @g6@ @g24@ @g6@ @g12@; border-radius: 4px; }
QMenu::item:selected { background: @chosen@; }
QMenu::item:disabled { color: @faint@; background: transparent; }
QMenu::separator { height: 1px; background: @line@; margin: @g4@ @g8@; }

QSplitter::handle { background: @line@; }
QSplitter::handle:horizontal { width: 1px; }
QSplitter::handle:vertical { height: 1px; }
QSplitter::handle:hover { background: @faint@; }

QHeaderView::section {
    background: @ground@; color: @secondary@; border: none; border-bottom: 1px solid @line@;
    padding: @g4@ @g8@; font-size: @small@;
}
QTableView, QListView, QTreeView {
    background: @ground@; border: none; outline: none; gridline-color: @line@;
    selection-background-color: @chosen@; selection-color: @text@;
}
QScrollArea { border: none; background: transparent; }
QScrollArea > QWidget > QWidget { background: transparent; }
"""
