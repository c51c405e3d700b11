"""The chain of a block: how far the draft reaches at each token, and the token whose draw passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt, Slot
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.engine.explain.decision import block_chain
from app.engine.types import Round, TraceHeader, Verification
from app.ui.theme import Theme
from app.ui.theme.palette import blend
from app.ui.transcript.text.facts import visible
from app.ui.widgets.words.sums import compared, written

_WRAP = Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextWordWrap
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine
_CELL = 176  # pixels at text scale 1
_WORDS = (
    "A block is judged from its end: the first token from the right with u < h is accepted, along with "
    "everything before it."
)


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A token in the chain of a block."""

    token: str
    fate: str
    reach: float
    h: float | None
    u: float | None
    decides: bool  # the last token whose draw passed


def chain_of(round: Round, header: TraceHeader) -> tuple[ChainLink, ...]:
    """The chain of a draft that was judged as a block; empty under other rules."""
    if header.verification is not Verification.BLOCK:
        return ()
    chain = block_chain(round)
    last = max((place for place, test in enumerate(chain) if test.own), default=-1)
    return tuple(
        ChainLink(
            visible(token.piece, token.label), token.verdict.value, test.reach, test.h, test.u, place == last
        )
        for place, (token, test) in enumerate(zip(round.drafted, chain, strict=False))
    )


class BlockChain(QWidget):
    """Draws the reach of every token of a block as a bar, its h on it as a mark, and the draw."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._links: Sequence[ChainLink] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Chain of the block")
        theme.changed.connect(self._fit)
        self.hide()

    def show_links(self, links: Sequence[ChainLink]) -> None:
        """Show another chain; an empty one hides it."""
        if links == self._links:
            return
        self._links = links
        self.setVisible(bool(links))
        self.setAccessibleDescription(" ".join([_WORDS, *map(_spoken, links)]))
        self._fit()

    @Slot()
    def _fit(self) -> None:
        self.setFixedHeight(self.sizeHint().height())
        self.update()

    def sizeHint(self) -> QSize:
        row = QFontMetricsF(self._theme.mono(-1)).height()
        rows = -(-len(self._links) // self._columns()) if self._links else 0
        return QSize(300, round(self._words_height() + rows * (3 * row + 22 * self._theme.scale)))

    def _words_height(self) -> float:
        metrics = QFontMetricsF(self._theme.sans(-1))
        room = QRectF(0, 0, max(self.width(), 1), 10_000)
        return metrics.boundingRect(room, _WRAP, _WORDS).height() + 0.6 * metrics.height()

    def _columns(self) -> int:
        return max(int(self.width() // (_CELL * self._theme.scale)), 1)

    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, palette = self._theme, self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.sans(-1))
        painter.setPen(QColor(palette.secondary))
        words = self._words_height()
        painter.drawText(QRectF(0, 0, self.width(), words), _WRAP, _WORDS)
        row = QFontMetricsF(theme.mono(-1)).height()
        width, height = _CELL * theme.scale, 3 * row + 22 * theme.scale
        for place, link in enumerate(self._links):
            line, column = divmod(place, self._columns())
            cell = QRectF(column * width, words + line * height, width - 16 * theme.scale, height)
            self._paint_link(painter, cell, link, row)
        painter.end()

    def _paint_link(self, painter: QPainter, cell: QRectF, link: ChainLink, row: float) -> None:
        theme, palette = self._theme, self._theme.palette
        painter.setFont(theme.mono(-1))
        line = QRectF(cell.left(), cell.top(), cell.width(), row)
        painter.setPen(QColor(palette.fate(link.fate)))
        mark = "  ← passes" if link.decides else ""
        painter.drawText(line, _LEFT, link.token + mark)
        track = QRectF(cell.left(), line.bottom() + 4, cell.width(), 8 * theme.scale)
        painter.fillRect(track, QColor(blend(palette.text, palette.ground, 0.09)))
        reach = QRectF(track.left(), track.top(), max(track.width() * min(link.reach, 1), 1), track.height())
        painter.fillRect(reach, QColor(blend(palette.area(link.fate), palette.ground, 0.3)))
        if link.h is not None:
            held = QRectF(track.left(), track.top(), max(track.width() * min(link.h, 1), 1), track.height())
            painter.fillRect(held, QColor(blend(palette.area(link.fate), palette.ground, 0.75)))
        if link.u is not None:
            x = track.left() + min(link.u, 1) * track.width()
            painter.setPen(QPen(QColor(palette.text), 1.5))
            painter.drawLine(round(x), round(track.top() - 3), round(x), round(track.bottom() + 3))
        painter.setPen(QColor(palette.secondary))
        reach_line = line.translated(0, row + 10 * theme.scale + 4)
        painter.drawText(reach_line, _LEFT, f"r {written(link.reach)}")
        painter.drawText(reach_line.translated(0, row), _LEFT, _test(link))


def _test(link: ChainLink) -> str:
    if link.h is None or link.u is None:
        return "not asked"
    return "u {} h {}".format(*compared(link.u, link.h).rsplit(" ", 1))


def _spoken(link: ChainLink) -> str:
    end = ", passes" if link.decides else ""
    return f"{link.token}: reach {written(link.reach)}, {_test(link)}{end}."
