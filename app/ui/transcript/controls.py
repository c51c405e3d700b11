"""Small controls over the transcript, the contents of an empty chat, and the legend. The legend explains the
colours, painted by the same code as the text, and has the transcript's two switches."""

from __future__ import annotations

from collections.abc import Container, Mapping
from itertools import islice

from PySide6.QtCore import QEvent, QPointF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QPushButton, QWidget

from app.engine.fates import FATES, STRUCK
from app.ui.state.answer import Note
from app.ui.theme import Theme
from app.ui.transcript.layout.styles import FateShapes, TextStyle
from app.ui.transcript.text.spans import AnswerTurn, Turn
from app.ui.widgets import kit
from app.ui.widgets.icons import IconButton
from app.ui.widgets.kit import WrapLayout
from app.ui.widgets.labels import ElidedButton, as_text


class TurnActions(QWidget):
    """The buttons for the turn under the pointer: copy, edit, regenerate."""

    copy_asked = Signal()
    edit_asked = Signal()
    regenerate_asked = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.turn: Turn | None = None
        self.copy = IconButton(theme, "copy", "Copy", self)
        self.edit = IconButton(theme, "pencil", "Edit and send again", self)
        self.regenerate = IconButton(theme, "refresh", "Regenerate", self)
        buttons = self.copy, self.edit, self.regenerate
        kit.row(*buttons, spacing=2, on=self)
        for button in buttons:
            button.setCursor(Qt.CursorShape.ArrowCursor)
        self.copy.clicked.connect(self.copy_asked)
        self.edit.clicked.connect(self.edit_asked)
        self.regenerate.clicked.connect(self.regenerate_asked)
        self.hide()

    @property
    def focused(self) -> bool:
        """Whether one of the buttons has the focus."""
        return any(button.hasFocus() for button in (self.copy, self.edit, self.regenerate))

    def offer(self, turn: Turn, edit: bool, regenerate: bool) -> None:
        """Choose the buttons that are shown, and their turn."""
        self.turn = turn
        self.edit.setVisible(edit)
        self.regenerate.setVisible(regenerate)
        self.adjustSize()


class VersionBar(QWidget):
    """Arrows between the versions of an answer, the number of the shown one, and a button to compare them."""

    asked = Signal(int)  # the version
    compare_asked = Signal(object)  # the button

    def __init__(self, theme: Theme, turn: AnswerTurn, parent: QWidget) -> None:
        super().__init__(parent)
        self.turn = turn
        version, versions = turn.version, turn.versions
        before, after = f"Version {version} of {versions}", f"Version {version + 2} of {versions}"
        self.before = IconButton(theme, "chevron-left", before if version else "This is the first version")
        self.after = IconButton(
            theme, "chevron-right", after if version + 1 < versions else "This is the last version"
        )
        self.before.setEnabled(version > 0)
        self.after.setEnabled(version + 1 < versions)
        self.compare = IconButton(theme, "compare", "Compare versions")
        number = kit.label(f"{version + 1}/{versions}", "secondary")
        number.setAccessibleName(f"Version {version + 1} of {versions}")
        self._buttons = (self.before, self.after, self.compare)
        parts = self.before, number, self.after, self.compare
        kit.row(*parts, spacing=2, on=self)
        for part in parts:
            part.setCursor(Qt.CursorShape.ArrowCursor)
        self.before.clicked.connect(lambda: self.asked.emit(version - 1))
        self.after.clicked.connect(lambda: self.asked.emit(version + 1))
        self.compare.clicked.connect(lambda: self.compare_asked.emit(self.compare))
        self.adjustSize()

    def take_focus_of(self, former: VersionBar) -> None:
        """Take the focus if the replaced bar had it. At the first or last version one arrow is dimmed, and
        the other gets it."""
        for mine, its in zip(self._buttons, former._buttons, strict=True):
            if its.hasFocus():
                other = self.after if mine is self.before else self.before
                self.show()
                (mine if mine.isEnabled() else other).setFocus(Qt.FocusReason.OtherFocusReason)
                return


def end_button(theme: Theme, parent: QWidget) -> IconButton:
    """A round button that scrolls to the end of the chat."""
    made = IconButton(theme, "chevron-down", "Go to the end", parent, kind="round")
    side = 2 * round(17 * theme.scale)
    made.setFixedSize(side, side)
    made.setCursor(Qt.CursorShape.ArrowCursor)
    made.hide()
    return made


class NoteCard(QWidget):
    """A note below an answer: what went wrong, and a button with the action that helps."""

    action_asked = Signal()

    def __init__(self, theme: Theme, note: Note, parent: QWidget) -> None:
        super().__init__(parent)
        self.message, self.hint = (
            kit.label(text, role, wrap=True, plain=True, selectable=True)
            for text, role in ((note.message, "strong"), (note.hint, "secondary"))
        )
        for label in (self.message, self.hint):
            label.setCursor(Qt.CursorShape.IBeamCursor)
        self.action = kit.button(note.action, self.action_asked)
        self.action.setCursor(Qt.CursorShape.ArrowCursor)
        bar, space = QWidget(), round(12 * theme.scale)
        bar.setFixedWidth(3)
        kit.ground(self, "note")
        kit.ground(bar, "bar")
        words = kit.row(
            (kit.column(self.message, self.hint, spacing=2), 1),
            (self.action, 0, Qt.AlignmentFlag.AlignVCenter),
            margins=(space - 5, space - 12, space, space - 12),
            spacing=space,
        )
        kit.row(bar, (words, 1), margins=(8, 10, 0, 10), spacing=0, on=self)
        self.action.setVisible(bool(note.action))
        self.hint.setVisible(bool(note.hint))
        self.setAccessibleName("Note")
        self.setAccessibleDescription(f"{note.message} {note.hint}".strip())


MOST = 5  # prompts offered at most
TOUR = "Take the tour (3 minutes)"


class EmptyState(QWidget):
    """The contents of an empty chat: a title, a line, and prompts to choose from."""

    suggestion_chosen = Signal(str)  # its title
    tour_asked = Signal()
    outgrown = Signal()  # it needs a different height at its width

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.title, self.line = (
            kit.label(words, role, wrap=True, side=Qt.AlignmentFlag.AlignCenter)
            for role, words in (
                ("large", "Ask, and watch every draft being judged"),
                (
                    "lead",
                    "Every token of the answer shows where it came from: drafted and accepted,"
                    " corrected by the target, or a bonus.",
                ),
            )
        )
        self.tour = QPushButton(TOUR, self)
        self.tour.clicked.connect(self.tour_asked)
        self.tour.hide()
        self.offers_tour = False
        self._buttons: list[QPushButton] = []
        space, tour = round(12 * theme.scale), (self.tour, 0, Qt.AlignmentFlag.AlignCenter)
        gap = round(8 * theme.scale)
        self._column = kit.column(self.title, self.line, space, tour, spacing=gap, on=self)

    def set_words(self, title: str, line: str) -> None:
        """Change the words, for example while no model is loaded yet."""
        self.title.setText(title)
        self.title.setVisible(bool(title))
        self.line.setText(line)

    def set_suggestions(self, prompts: Mapping[str, str]) -> None:
        """Offer the first few of these prompts (title -> prompt) as buttons."""
        for button in self._buttons:
            self._column.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._buttons = [self._button(title, prompt) for title, prompt in islice(prompts.items(), MOST)]
        for button in self._buttons:
            self._column.insertWidget(self._column.indexOf(self.tour), button)
            button.show()

    def event(self, event: QEvent) -> bool:
        # Letters of a new theme are measured only after the theme has changed.
        if event.type() is QEvent.Type.LayoutRequest and self._wanted(self.width()) != self.height():
            self.outgrown.emit()
        return super().event(event)

    def fit(self, width: int, height: int) -> int:
        """Show what fits into a place of this size, prompts last; returns the height used."""
        self.tour.setText(TOUR)
        if self.tour.sizeHint().width() > width:
            self.tour.setText(TOUR.partition(" (")[0])
        self._column.invalidate()
        parts = (self.line, *[self.tour] * self.offers_tour, *self._buttons)
        for part in parts:
            part.setVisible(True)
        for part in reversed(parts):
            if self._wanted(width) <= height:
                break
            part.setVisible(False)
        return self._wanted(width)

    def _wanted(self, width: int) -> int:
        tall = self._column.totalHeightForWidth(width) if self._column.hasHeightForWidth() else 0
        return tall if tall > 0 else self._column.totalSizeHint().height()

    @property
    def buttons(self) -> tuple[QPushButton, ...]:
        return tuple(self._buttons)

    def _button(self, title: str, prompt: str) -> QPushButton:
        button = ElidedButton(title, Qt.TextElideMode.ElideRight)
        button.setParent(self)
        button.setToolTip(as_text(f"Ask:\n{prompt}"))
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.clicked.connect(lambda: self.suggestion_chosen.emit(title))
        return button


class FateLegend(QWidget):
    """A sample of every fate."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.samples = {fate: FateSample(theme, fate, self) for fate in FATES}
        self.row = WrapLayout(self, gap=12)
        for sample in self.samples.values():
            self.row.addWidget(sample)

    def set_undrawn(self, undrawn: bool) -> None:
        """Explain the fates for temperature 0, at which the target draws nothing, or for higher
        temperatures."""
        for sample in self.samples.values():
            sample.explain(undrawn)

    def show_fates(self, fates: Container[str]) -> None:
        """Show samples of these fates alone."""
        for fate, sample in self.samples.items():
            sample.setVisible(fate in fates)

    def fit(self, room: float, height: float) -> int:
        """Show the samples if they fit into a room, in pixels; returns the height that they take."""
        samples = self.samples.values()
        widest = max(sample.sizeHint().width() for sample in samples)
        for least in (0, widest):  # several lines have columns
            for sample in samples:
                sample.setMinimumWidth(least)
            if self.row.sizeHint().width() <= room:
                break
        needed = self.row.heightForWidth(max(round(room), 1))
        shown = widest <= room and needed <= height
        self.setVisible(shown)
        return needed if shown else 0


class Legend(FateLegend):
    """A sample of every fate, and the switches at the right."""

    drafts_shown_changed = Signal(bool)
    rendered_changed = Signal(bool)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.drafts_shown = kit.check("Show drafts", kind="quiet")
        self.drafts_shown.setChecked(True)
        self.drafts_shown.setToolTip(
            "Show rejected and ignored drafts in place, struck through.\nThey are never copied, searched "
            "or sent."
        )
        self.rendered = kit.check("Formatted text", kind="quiet")
        self.rendered.setToolTip("Show answers as formatted text instead of tokens.")
        self.row.add_at_right(self.drafts_shown)
        self.row.add_at_right(self.rendered)
        self.drafts_shown.toggled.connect(self.drafts_shown_changed)
        self.rendered.toggled.connect(self.rendered_changed)
        self.rendered.toggled.connect(self._rendered_toggled)

    def _rendered_toggled(self, rendered: bool) -> None:
        # Formatted text has no place for drafts.
        self.drafts_shown.setEnabled(not rendered)
        for sample in self.samples.values():
            sample.setEnabled(not rendered)


class FateSample(QWidget):
    """A sample: the name of a fate, painted as a token of that fate."""

    def __init__(self, theme: Theme, fate: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._fate = fate
        self.setAccessibleName(fate)
        self.explain(undrawn=False)
        theme.follow(self._theme_changed)

    def explain(self, undrawn: bool) -> None:
        """Say what the fate means, at temperature 0 if `undrawn`."""
        fate = FATES[self._fate]
        self.setToolTip(fate.explained(self._fate, undrawn))
        self.setAccessibleDescription((undrawn and fate.undrawn) or fate.definition)

    def sizeHint(self) -> QSize:
        width = QFontMetricsF(self._style.font).horizontalAdvance(self._fate)
        return QSize(round(width + 2 * self._padding), self._style.pitch)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        painter = QPainter(self)
        shapes = FateShapes(self.devicePixelRatioF())
        baseline = (self.height() - self._style.pitch) // 2 + self._style.above
        struck = self._fate in STRUCK
        inset = self._padding / 2 if struck else 0
        shapes.add(self._fate, inset, self.sizeHint().width() - inset, baseline, self._style)
        if not self.isEnabled():
            painter.setOpacity(0.45)
        shapes.paint_tints(painter, palette)
        painter.setFont(self._style.font)
        painter.setPen(QColor(palette.secondary))
        painter.drawText(QPointF(self._padding, baseline), self._fate)
        shapes.paint_cues(painter, palette)
        painter.end()

    def _theme_changed(self) -> None:
        font = self._theme.sans(-0.5)
        self._style = TextStyle(font, font, 1.78)
        self._padding = round(4 * self._theme.scale)
        self.updateGeometry()
        self.update()
