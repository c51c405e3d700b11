"""A round in time: single-token passes, against its draft and its one pass."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.base import numbers
from app.engine.compat import DSPARK, HEAD_STRATEGIES
from app.engine.explain.cost import CostModel
from app.engine.types import Round
from app.saved.measured import Measurement
from app.ui.inspector.painting import LEFT, RIGHT, paint_text
from app.ui.inspector.tracks import TIME_NAMES, time_colours
from app.ui.theme import Theme
from app.ui.widgets.words import duration, factor

_ALONE, _DRAFTED = "without drafts", "with drafts"
_NAMES = (*TIME_NAMES[:2], "sampling and other")
_IN_ONE_PASS = HEAD_STRATEGIES["dflash"], HEAD_STRATEGIES[DSPARK]  # strategies whose drafts are blocks


@dataclass(frozen=True, slots=True)
class TimeBlock:
    """A stretch of time, and what was done in it."""

    seconds: float
    kind: int  # draft, verify, or sampling and all else, as `time_colours` has them
    label: str = ""
    more: str = ""  # after the label, if there is room


@dataclass(frozen=True, slots=True)
class RoundTime:
    """The time of a round's or answer's tokens, with and without drafts."""

    drafted: tuple[TimeBlock, ...]
    alone: tuple[TimeBlock, ...]  # empty if no pass over a single token was measured
    tokens: int
    measured: float | None = None  # the speed-up of the whole answer

    @classmethod
    def of(cls, round: Round, cost: CostModel) -> RoundTime | None:
        """The times of a round; None if nothing was drafted, or if a time is unknown."""
        k, tokens = len(round.drafted), len(round.emitted)
        if not k or not round.verify_seconds:
            return None
        steps = 1 if round.strategy in _IN_ONE_PASS else k
        blocks = [TimeBlock(round.draft_seconds / steps, 0) for _ in range(steps)]
        over = f"one pass over {k + 1}", f" (the last token and {k} drafted)"
        blocks.append(TimeBlock(round.verify_seconds, 1, *over))
        blocks.append(TimeBlock(max(round.seconds - round.draft_seconds - round.verify_seconds, 0.0), 2))
        single, rest = cost.single_pass, cost.rest.median if cost.rest.seconds else 0.0
        if single:  # one token takes no longer than several: a pass that did was disturbed
            single = min(single, round.verify_seconds)
        alone = (TimeBlock(single, 1, "pass"), TimeBlock(rest, 2)) * tokens if single else ()
        return cls(tuple(blocks), alone, tokens)

    @classmethod
    def of_answer(cls, measured: Measurement) -> RoundTime:
        """An answer and its baseline, round by round."""
        rows = [
            tuple(
                block
                for round in trace.rounds
                for block in (
                    TimeBlock(round.draft_seconds if round.drafted else 0.0, 0),
                    TimeBlock(round.verify_seconds, 1),
                    TimeBlock(max(round.seconds - round.draft_seconds - round.verify_seconds, 0.0), 2),
                )
            )
            for trace in (measured.strategy, measured.baseline)
        ]
        return cls(rows[0], rows[1], len(measured.strategy.token_ids), measured.factor)

    @property
    def seconds(self) -> tuple[float, float]:
        """Seconds of the round, and of this many tokens without a draft."""
        drafted, alone = (sum(block.seconds for block in row) for row in (self.drafted, self.alone))
        return drafted, alone

    @property
    def words(self) -> str:
        drafted, alone = self.seconds
        said = f"{numbers.count(self.tokens, 'token')} in {duration(drafted)}"
        if not alone:
            return f"{said}; not measured without drafts"
        gained = self.measured if self.measured is not None else alone / drafted
        return f"{said}, one by one in {duration(alone)}: {factor(gained)}"


class RoundTimeView(QWidget):
    """Paints a round in time: blocks of two rows on one axis."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.time: RoundTime | None = None
        self.setAccessibleName("The round in time")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._restyle)
        self.hide()

    def show_time(self, time: RoundTime | None) -> None:
        """Show a different round; None hides it."""
        if (time is None) != self.isHidden():
            self.setVisible(time is not None)
        if time != self.time:
            self.time = time
            self.setAccessibleDescription(time.words if time is not None else "")
            said = [block.label + block.more for block in time.drafted if block.more] if time else []
            self.setToolTip("".join(said))
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, self.height_for(self.width()))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def height_for(self, width: int) -> int:
        """The height in this width: if it is narrow, the legend has a line of its own."""
        rows = 2 if self.time is not None and self.time.alone else 1
        return round(self._line() * (2.6 + rows * 1.5 + 1.1 * self._legend_below(width)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.height_for(event.size().width()) != self.height():
            self.updateGeometry()

    def _legend_below(self, width: int) -> bool:
        words = QFontMetricsF(self._theme.sans(-1)).horizontalAdvance(self.time.words) if self.time else 0.0
        return words + self._line() + sum(each for _kind, each in self._legend()) > width

    def _legend(self) -> list[tuple[int, float]]:
        """The kinds of time that are shown, and the width of each in the legend."""
        shown = self.time.drafted + self.time.alone if self.time is not None else ()
        metrics = QFontMetricsF(self._theme.sans(-1.5))
        kinds = sorted({block.kind for block in shown if block.seconds})
        return [(kind, metrics.horizontalAdvance(_NAMES[kind]) + 1.5 * self._line()) for kind in kinds]

    def _line(self) -> float:
        return QFontMetricsF(self._theme.sans(-1)).height()

    def paintEvent(self, event: QPaintEvent) -> None:
        time, theme, palette = self.time, self._theme, self._theme.palette
        if time is None:
            return
        painter = QPainter(self)
        small, line = theme.sans(-1), self._line()
        metrics = QFontMetricsF(small)
        paint_text(painter, QRectF(0, 0, self.width(), line), LEFT, time.words, small, palette.text)
        below = self._legend_below(self.width())
        self._paint_legend(painter, below)
        left = metrics.horizontalAdvance(_ALONE) + line
        longest = max(time.seconds)
        most = self.width() - left - metrics.horizontalAdvance("888.8 ms") - 8
        y = line * (1.3 + 1.1 * below)
        for name, blocks in ((_ALONE, time.alone), (_DRAFTED, time.drafted)):
            if not blocks:
                continue
            row = QRectF(left, y, most, line * 1.25)
            paint_text(painter, QRectF(0, y, left, row.height()), LEFT, name, small, palette.secondary)
            end = self._paint_row(painter, row, blocks, longest)
            taken, beside = sum(block.seconds for block in blocks), row.translated(end + 8 - left, 0)
            paint_text(painter, beside, LEFT, duration(taken), small, palette.text)
            y += line * 1.5
        painter.fillRect(QRectF(left, round(y), most, 1), QColor(palette.line))
        for share in (0.0, 0.5, 1.0):
            tick = QRectF(left + (share - 1) * most, y + 2, most, line)
            if not share:
                tick.moveLeft(left)
            words = duration(share * longest) if share else "0"
            paint_text(painter, tick, RIGHT if share else LEFT, words, theme.sans(-1.5), palette.secondary)

    def _paint_legend(self, painter: QPainter, below: bool) -> None:
        """Name the colours, at the right of the words or below them."""
        palette, font, line = self._theme.palette, self._theme.sans(-1.5), self._line()
        x = -line / 2 if below else self.width() - sum(width for _kind, width in self._legend())
        y = line * 1.1 * below
        for kind, width in self._legend():
            square = QRectF(x + line / 2, y + line / 4, line / 2, line / 2)
            painter.fillRect(square, QColor(time_colours(palette)[kind]))
            beside = QRectF(x + 1.3 * line, y, self.width(), line)
            paint_text(painter, beside, LEFT, _NAMES[kind], font, palette.secondary)
            x += width

    def _paint_row(
        self, painter: QPainter, row: QRectF, blocks: tuple[TimeBlock, ...], longest: float
    ) -> float:
        """Paint blocks side by side, with their words if there is room; returns where they end."""
        palette, font = self._theme.palette, self._theme.sans(-1.5)
        metrics, colours = QFontMetricsF(font), time_colours(palette)
        x = row.left()
        for block in blocks:
            width = block.seconds / longest * row.width()
            gap = 1 if width > 4 else 0
            rect = QRectF(x, row.top(), max(width - gap, 0.5), row.height())
            painter.fillRect(rect, QColor(colours[block.kind]))
            taken = f" · {duration(block.seconds)}"
            for label in (f"{block.label}{block.more}{taken}", f"{block.label}{taken}", block.label):
                if block.label and metrics.horizontalAdvance(label) + 8 < rect.width():
                    paint_text(painter, rect.adjusted(4, 0, 0, 0), LEFT, label, font, palette.ground)
                    break
            x += width
        return x

    def _restyle(self) -> None:
        self.updateGeometry()
        self.update()
