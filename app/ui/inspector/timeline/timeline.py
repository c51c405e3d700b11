"""The rounds as bars: their height is the tokens by fate, below it stand draft, verify and sampling."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QRectF, QSize, Qt, Slot
from PySide6.QtGui import QColor, QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen

from app.engine.fates import Origin
from app.engine.types import Round
from app.ui.inspector.part import InspectorPart
from app.ui.theme import Theme
from app.ui.widgets.words.numbers import count, duration

_SIDE = 24  # left and right of the bars
_BAR, _GAP = 24, 8  # pixels at text scale 1
_HEIGHT, _TIMES = 48, 6


class Timeline(InspectorPart):
    """The rounds around the inspected one, as many as fit; a click inspects a round."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setAccessibleName("Rounds")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.changed.connect(self._fit)
        self._fit()

    def draw(self) -> None:
        answer = self.answer
        index = answer.inspected
        self.setAccessibleDescription(
            f"Round {count(index)} of {count(answer.cursor)}" if index is not None else "No round"
        )
        self.update()

    @property
    def span(self) -> tuple[int, int]:
        """The first round that is seen, and the one behind the last."""
        answer = self.answer
        fit = max(int((self.width() - 2 * _SIDE) / self._pitch()), 1)
        first = max((answer.inspected or 0) - fit // 2, 0)
        first = max(min(first, answer.cursor - fit), 0)
        return first, min(first + fit, answer.cursor)

    def round_rect(self, index: int) -> QRectF:
        """Where a round stands, if it is seen."""
        scale, first = self._theme.scale, self.span[0]
        left = _SIDE + (index - first) * self._pitch()
        return QRectF(left, self._top(), _BAR * scale, (_HEIGHT + 2 + _TIMES) * scale)

    def _pitch(self) -> float:
        return (_BAR + _GAP) * self._theme.scale

    def _top(self) -> float:
        return 8 + QFontMetricsF(self._theme.sans()).height() * 1.5

    def mousePressEvent(self, event: QMouseEvent) -> None:
        first, end = self.span
        index = first + int((event.position().x() - _SIDE) // self._pitch())
        if event.button() is Qt.MouseButton.LeftButton and first <= index < end:
            self.answer.pin(index)

    # ------------------------------------------------------------------ painting

    def paintEvent(self, event: QPaintEvent) -> None:
        answer, palette, theme = self.answer, self._theme.palette, self._theme
        if not answer.cursor:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        index = answer.inspected or 0
        head = QRectF(_SIDE, 4, self.width() - 2 * _SIDE, self._top() - 4)
        painter.setFont(theme.sans())
        painter.setPen(QColor(palette.text))
        painter.drawText(head, Qt.AlignmentFlag.AlignLeft, "Rounds")
        seconds = duration(answer.rounds[index].seconds)
        painter.setPen(QColor(palette.secondary))
        painter.setFont(theme.sans(-1))
        where = f"round {count(index)} of {count(answer.cursor)} · {seconds}"
        painter.drawText(head, Qt.AlignmentFlag.AlignRight, where)
        first, end = self.span
        shown = answer.rounds[first:end]
        most = max(len(round.emitted) for round in shown)
        for place, round in enumerate(shown, first):
            self._paint_round(painter, self.round_rect(place), round, most)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(palette.text), 1.5))
        painter.drawRoundedRect(self.round_rect(index).adjusted(-3, -4, 3, 4), 4, 4)

    def _paint_round(self, painter: QPainter, rect: QRectF, round: Round, most: int) -> None:
        palette, scale = self._theme.palette, self._theme.scale
        painter.setPen(Qt.PenStyle.NoPen)
        unit, bottom = _HEIGHT * scale / most, rect.top() + _HEIGHT * scale
        for origin, tokens in _fates(round):
            bar = QRectF(rect.left(), bottom - tokens * unit, rect.width(), tokens * unit)
            bottom = bar.top()
            painter.fillRect(bar, QColor(palette.area(origin)))
        left = rect.left()
        whole = round.draft_seconds + round.verify_seconds + round.sample_seconds
        times = (
            (round.draft_seconds, palette.faint),
            (round.verify_seconds, palette.secondary),
            (round.sample_seconds, palette.line),
        )
        for part, colour in times if whole > 0 else ():
            width = rect.width() * part / whole
            painter.fillRect(
                QRectF(left, rect.bottom() - _TIMES * scale, width, _TIMES * scale), QColor(colour)
            )
            left += width

    def sizeHint(self) -> QSize:
        return QSize(300, round(self._top() + (_HEIGHT + 2 + _TIMES) * self._theme.scale + 12))

    @Slot()
    def _fit(self) -> None:
        self.setFixedHeight(self.sizeHint().height())
        self.update()


def _fates(round: Round) -> Iterator[tuple[Origin, int]]:
    """How many tokens a round emitted of each fate, from the bottom of its bar."""
    for origin in Origin:
        tokens = sum(token.origin is origin for token in round.emitted)
        if tokens:
            yield origin, tokens
