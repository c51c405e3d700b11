"""A round in slow motion: its drafts appear one by one, then the verdicts fall. With less motion the whole
draft appears at once, then all verdicts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import QRectF, QSize, Qt, Slot
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.engine.fates import STRUCK, Verdict
from app.engine.types import Round
from app.ui.theme import Theme
from app.ui.transcript.text.facts import visible

_FALL = 1 / 3  # of the time behind the draft: the part at its end in which verdicts fall
_PADDING = 8
_MARGIN = 24.0
_GAP = 6


@dataclass(frozen=True, slots=True)
class RoundPhase:
    """How far a round is: its drafted tokens so far, and how many fates have been told. The last fate is that
    of the target's own token."""

    round: Round
    drafted: int
    told: int

    @classmethod
    def at(cls, round: Round, seconds: float) -> RoundPhase:
        """The phase so many seconds into the round. Tokens share the time of the draft; verdicts, which come
        at once, share the end of the target's pass, so that they can be seen."""
        count, draft = len(round.drafted), round.draft_seconds
        drafted = count if seconds >= draft else int(count * seconds / draft)
        fall = (round.seconds - draft) * _FALL
        share = (seconds - (round.seconds - fall)) / fall if fall > 0 else float(seconds >= round.seconds)
        whole = cls.whole(round).told
        return cls(round, drafted, min(max(int(share * (whole + 1)), 0), whole))

    @classmethod
    def whole(cls, round: Round) -> RoundPhase:
        """The phase at the end of the round; an answer that ended within a draft has no token behind it."""
        count = len(round.drafted)
        return cls(round, count, count + (len(round.emitted) > round.accepted))

    @property
    def reached(self) -> RoundPhase:
        """The last state that is whole: nothing yet, the draft, or the round with all its verdicts."""
        whole = self.whole(self.round)
        if self.told:
            return whole
        return replace(whole, drafted=self.drafted if self.drafted == whole.drafted else 0, told=0)

    @property
    def tokens(self) -> list[tuple[str, str]]:
        """The tokens so far: text, and fate, or "" before it is told."""
        tokens = [
            (visible(token.piece, token.label), token.verdict.value if at < self.told else "")
            for at, token in enumerate(self.round.drafted[: self.drafted])
        ]
        if self.told > len(self.round.drafted):
            own = self.round.emitted[self.round.accepted]
            tokens.append((visible(own.piece, own.label), own.origin.value))
        return tokens


class SlowMotion(QWidget):
    """Paints the phase of a round as tokens, in as many rows as the whole round needs."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.phase: RoundPhase | None = None
        self.setAccessibleName("Round in slow motion")
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.hide()

    def show_phase(self, phase: RoundPhase | None) -> None:
        """Paint a phase; None hides the row."""
        if phase is not None and self._theme.less_motion:
            phase = phase.reached
        if phase != self.phase:
            before, self.phase = self.phase, phase
            if phase is not None and (before is None or before.round is not phase.round):
                self.updateGeometry()
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
        return round(rows * self._row() - _GAP + 2 * _PADDING)

    def _row(self) -> float:
        return QFontMetricsF(self._theme.mono(0)).height() + 8 + _GAP

    def _places(self, phase: RoundPhase, width: int) -> list[tuple[int, float, float]]:
        """Row, left edge and width of each token."""
        metrics = QFontMetricsF(self._theme.mono(0))
        places = []
        row, left = 0, _MARGIN
        for text, _fate in phase.tokens:
            wide = metrics.horizontalAdvance(text) + 2 * _PADDING
            if left > _MARGIN and left + wide > width - _MARGIN:
                row, left = row + 1, _MARGIN
            places.append((row, left, wide))
            left += wide + _GAP
        return places

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.phase is None:
            return
        palette = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.mono(0))
        height = self._row()
        places = self._places(self.phase, self.width())
        for (text, fate), (row, left, width) in zip(self.phase.tokens, places, strict=True):
            box = QRectF(left, _PADDING + row * height, width, height - _GAP)
            painter.setPen(QPen(QColor(palette.fate(fate) if fate else palette.line), 1.5))
            painter.setBrush(QColor(palette.tint(fate)) if fate else Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 4, 4)
            painter.setPen(QColor(palette.text if fate else palette.secondary))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
            if fate in STRUCK:
                style = Qt.PenStyle.SolidLine if fate == Verdict.REJECTED else Qt.PenStyle.DashLine
                painter.setPen(QPen(QColor(palette.fate(fate)), 1.5, style))
                middle = box.center().y()
                painter.drawLine(round(box.left() + 4), round(middle), round(box.right() - 4), round(middle))

    @Slot()
    def _restyle(self) -> None:
        self.updateGeometry()
        self.update()
