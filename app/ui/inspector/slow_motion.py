"""A round in slow motion: guess, check and verdict, painted as tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.base.numbers import count, ordinal
from app.engine.fates import STRUCK, Verdict
from app.engine.rules.formula import visible
from app.engine.types import Round
from app.ui.theme import Theme

_PADDING = 8
_MARGIN = 24.0
_GAP = 6
_CHECK_BEATS = 2  # for which the target's pass is shown


class Moment(StrEnum):
    """What happens in a round, one after the other."""

    GUESS = "Guess"
    CHECK = "Check"
    VERDICT = "Verdict"


@dataclass(frozen=True, slots=True)
class RoundPhase:
    """How far a round is: its drafted tokens so far, and how many fates are shown. The last fate is that
    of the target's own token."""

    round: Round
    moment: Moment
    drafted: int
    told: int = 0

    @classmethod
    def all_of(cls, round: Round) -> list[RoundPhase]:
        """The phases of a round, one for each beat: a drafted token, twice the pass, a fate, and the whole
        once more."""
        count = len(round.drafted)
        whole = cls.whole(round)
        guess = [cls(round, Moment.GUESS, drafted) for drafted in range(1, count + 1)]
        fates = [replace(whole, told=told) for told in range(1, whole.told + 1)]
        return [*guess, *[cls(round, Moment.CHECK, count)] * _CHECK_BEATS, *fates, whole]

    @classmethod
    def whole(cls, round: Round) -> RoundPhase:
        """The phase at the end of the round; an answer that ended within a draft has no token after it."""
        count = len(round.drafted)
        return cls(round, Moment.VERDICT, count, count + (len(round.emitted) > round.accepted))

    @property
    def reached(self) -> RoundPhase:
        """The end of its moment: the draft, the pass, or the round with all its fates."""
        whole = self.whole(self.round)
        return whole if self.moment is Moment.VERDICT else replace(whole, moment=self.moment, told=0)

    @property
    def tokens(self) -> list[tuple[str, str]]:
        """The tokens so far: text, and fate, or "" before it is shown."""
        tokens = [
            (visible(token.piece, token.label), token.verdict.value if at < self.told else "")
            for at, token in enumerate(self.round.drafted[: self.drafted])
        ]
        if self.told > len(self.round.drafted):
            own = self.round.emitted[self.round.accepted]
            tokens.append((visible(own.piece, own.label), own.origin.value))
        return tokens

    @property
    def words(self) -> str:
        """What happens, in a few words."""
        round = self.round
        drafted, accepted = len(round.drafted), round.accepted
        if self.moment is Moment.GUESS:
            return f"the draft guesses {count(drafted, 'token')}"
        if self.moment is Moment.CHECK:
            return (
                f"one pass of the target checks {count(drafted, 'token')}"
                if drafted
                else "one pass of the target"
            )
        said = [f"{accepted} of {drafted} accepted"] if drafted else []
        own = round.emitted[accepted:]
        said += [f"the target's own “{visible(token.piece, token.label)}” ({token.origin})" for token in own]
        return ", ".join(said)


class SlowMotion(QWidget):
    """Paints the phase of a round as tokens, in as many rows as the whole round needs, below what happens."""

    def __init__(self, theme: Theme, margin: float = _MARGIN) -> None:
        super().__init__()
        self._theme = theme
        self._margin = margin
        self.phase: RoundPhase | None = None
        self.setAccessibleName("Round in slow motion")
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.follow(self._restyle)
        self.hide()

    def show_phase(self, phase: RoundPhase | None) -> None:
        """Paint a phase; None hides the row."""
        if phase is not None and self._theme.less_motion:
            phase = phase.reached
        if phase != self.phase:
            before, self.phase = self.phase, phase
            if phase is not None:
                if before is None or before.round is not phase.round:
                    self.updateGeometry()
                if before is None or before.moment is not phase.moment:
                    self.setAccessibleDescription(f"{phase.moment}: {phase.words}")
            self.update()
        self.setVisible(phase is not None)

    def sizeHint(self) -> QSize:
        return QSize(200, self._height(1))

    def heightForWidth(self, width: int) -> int:
        if self.phase is None:
            return self._height(1)
        places = self._places(RoundPhase.whole(self.phase.round), width)
        return self._height(1 + max((row for row, _left, _width in places), default=0))

    def _height(self, rows: int) -> int:
        return round(self._caption() + rows * self._row() - _GAP + 2 * _PADDING)

    def _caption(self) -> float:
        return QFontMetricsF(self._theme.sans(-1)).height() + _GAP

    def _row(self) -> float:
        return QFontMetricsF(self._theme.mono(0)).height() + 8 + _GAP

    def _places(self, phase: RoundPhase, width: int) -> list[tuple[int, float, float]]:
        """Row, left edge and width of each token."""
        metrics = QFontMetricsF(self._theme.mono(0))
        places = []
        row, left = 0, self._margin
        for text, _fate in phase.tokens:
            wide = metrics.horizontalAdvance(text) + 2 * _PADDING
            if left > self._margin and left + wide > width - self._margin:
                row, left = row + 1, self._margin
            places.append((row, left, wide))
            left += wide + _GAP
        return places

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.phase is None:
            return
        palette = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_caption(painter, self.phase)
        painter.setFont(self._theme.mono(0))
        top, height = _PADDING + self._caption(), self._row()
        places = self._places(self.phase, self.width())
        checked = self.phase.moment is Moment.CHECK
        for (text, fate), (row, left, width) in zip(self.phase.tokens, places, strict=True):
            box = QRectF(left, top + row * height, width, height - _GAP)
            edge = palette.fate(fate) if fate else palette.text if checked else palette.line
            painter.setPen(QPen(QColor(edge), 1.5))
            painter.setBrush(QColor(palette.tint(fate)) if fate else Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 4, 4)
            painter.setPen(QColor(palette.text if fate else palette.secondary))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
            if fate in STRUCK:
                style = Qt.PenStyle.SolidLine if fate == Verdict.REJECTED else Qt.PenStyle.DashLine
                painter.setPen(QPen(QColor(palette.fate(fate)), 1.5, style))
                middle = box.center().y()
                painter.drawLine(round(box.left() + 4), round(middle), round(box.right() - 4), round(middle))

    def _paint_caption(self, painter: QPainter, phase: RoundPhase) -> None:
        """Name the moments, the present one strong, and say what happens."""
        palette, left = self._theme.palette, self._margin
        moments = [moment for moment in Moment if phase.drafted or moment is not Moment.GUESS]
        words = [(f"{at} {moment}", moment is phase.moment) for at, moment in enumerate(moments, start=1)]
        for text, now in ((f"Round {ordinal(phase.round.index)}:", False), *words, (phase.words, False)):
            font = self._theme.sans(-1, QFont.Weight.DemiBold if now else QFont.Weight.Normal)
            painter.setFont(font)
            painter.setPen(QColor(palette.text if now else palette.secondary))
            room = QRectF(left, _PADDING, max(self.width() - left - self._margin, 0), self._caption() - _GAP)
            metrics = QFontMetricsF(font)
            fitting = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room.width())
            painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, fitting)
            left += metrics.horizontalAdvance(text) + 2 * _PADDING

    def _restyle(self) -> None:
        self.updateGeometry()
        self.update()
