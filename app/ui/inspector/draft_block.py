"""The picture of a draft that was made in one pass: its places side by side, the candidates of each below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.engine.compat import DFLASH2, DSPARK
from app.engine.rules.formula import visible
from app.engine.types import Round, TraceHeader
from app.ui.inspector.painting import LEFT, RIGHT, Ink, paint_note, paint_text
from app.ui.theme import Theme
from app.ui.theme.palette import blend
from app.ui.widgets.words import probability

_ROWS = 8  # candidates of a place that are shown, most probable first
_WIDTH, _GAP = 132, 14  # of a place, in pixels at text scale 1
_MARKS = "The framed token was drafted. A bar before a token marks the target's choice."
_WORDS = {
    "dflash": (
        "One pass gave all positions. Each has its own distribution, fixed before any token was chosen."
    ),
    DSPARK: "One pass gave all positions, each after the most likely token of the position before.",
    DFLASH2: "One pass gave the candidates for all positions. Each score depends on the token before. The "
    "lines show the path taken.",
}


@dataclass(frozen=True, slots=True)
class PlaceCandidate:
    """A token that a place of a block may draft."""

    token: str
    p: float  # the block's own probability
    drafted: bool
    emitted: bool  # the target gave this token here


@dataclass(frozen=True, slots=True)
class PlaceInBlock:
    """A place of a block: what became of its token, and its candidates, most probable first."""

    fate: str
    candidates: tuple[PlaceCandidate, ...]

    def spoken(self, number: int) -> str:
        """The place in words."""
        said = [
            f"{each.token} {probability(each.p)}"
            + (", drafted" if each.drafted else "")
            + (", from the target" if each.emitted else "")
            for each in self.candidates[:3]
        ]
        return f"Place {number}, {self.fate}: {'; '.join(said)}."


def block_of(round: Round, header: TraceHeader) -> tuple[PlaceInBlock, ...]:
    """The places of a draft that was made in one pass; empty of any other."""
    if kind_of(header) not in _WORDS or round.strategy not in ("draft-dflash", "draft-dspark"):
        return ()
    given = [token.id for token in round.emitted]
    return tuple(
        PlaceInBlock(
            token.verdict.value,
            tuple(
                PlaceCandidate(visible(piece), p, id == token.id, given[place : place + 1] == [id])
                for id, piece, p in list(zip(top.ids, top.pieces, top.p, strict=True))[:_ROWS]
            ),
        )
        for place, (token, top) in enumerate(zip(round.drafted, round.draft_top, strict=False))
    )


def kind_of(header: TraceHeader) -> str:
    """The architecture of the draft; "" without one."""
    return header.pair.draft.architecture if header.pair.draft is not None else ""


class DraftBlock(QWidget):
    """Draws the places of a block as columns; a token's ground is as strong as it was probable."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._places: Sequence[PlaceInBlock] = ()
        self._kind = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Drafted block")
        theme.changed.connect(self._fit)
        self.hide()

    def show_block(self, places: Sequence[PlaceInBlock], kind: str) -> None:
        """Show a different block of a draft of this kind; one without places hides it."""
        if (places, kind) == (self._places, self._kind):
            return
        self._places, self._kind = places, kind
        self.setVisible(bool(places))
        said = [place.spoken(number) for number, place in enumerate(places, start=1)]
        self.setAccessibleDescription(" ".join([self._words(), *said]))
        self._fit()

    def _words(self) -> str:
        return f"{_WORDS.get(self._kind, '')} {_MARKS}"

    def _fit(self) -> None:
        self.setFixedHeight(self.sizeHint().height())
        self.update()

    def sizeHint(self) -> QSize:
        ink = Ink(self._theme)
        lines = -(-len(self._places) // self._columns())
        room = QRectF(0, 0, max(self.width(), 1), 0)
        return QSize(300, round(paint_note(None, room, self._words(), ink) + lines * self._line(ink)))

    def _columns(self) -> int:
        return max(int(self.width() // (_WIDTH * self._theme.scale)), 1)

    def _line(self, ink: Ink) -> float:
        """The height of a line of places."""
        rows = max((len(place.candidates) for place in self._places), default=0)
        return (rows + 1) * ink.row + 8 * ink.unit

    def resizeEvent(self, event: QEvent) -> None:
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, ink = QPainter(self), Ink(self._theme)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        top = paint_note(painter, QRectF(0, 0, self.width(), 0), self._words(), ink)
        columns = self._columns()
        width = _WIDTH * self._theme.scale - _GAP
        before: QPointF | None = None  # where the way comes from
        for number, place in enumerate(self._places):
            line, column = divmod(number, columns)
            room = QRectF(column * (width + _GAP), top + line * self._line(ink), width, ink.row)
            before = self._paint_place(painter, room, number, place, ink, before if column else None)
        painter.end()

    def _paint_place(
        self,
        painter: QPainter,
        room: QRectF,
        number: int,
        place: PlaceInBlock,
        ink: Ink,
        before: QPointF | None,
    ) -> QPointF | None:
        """Paint a place from the line of its heading down; returns where the way continues."""
        palette = self._theme.palette
        paint_text(painter, room, LEFT, f"{number + 1} {place.fate}", ink.small, palette.fate(place.fate))
        way: QPointF | None = None
        digits = 5 * ink.digit
        for candidate in place.candidates:
            room = room.translated(0, ink.row)
            painter.fillRect(room, QColor(blend(palette.area(place.fate), palette.ground, 0.4 * candidate.p)))
            number_room = room.adjusted(0, 0, -4, 0)
            paint_text(painter, number_room, RIGHT, probability(candidate.p), ink.mono, palette.secondary)
            word = room.adjusted(8, 0, -digits - 8, 0)
            paint_text(painter, word, LEFT, candidate.token, ink.mono, palette.text)
            if candidate.emitted:
                painter.fillRect(
                    QRectF(room.left() + 2, room.top() + 2, 3, room.height() - 4), QColor(palette.text)
                )
            if candidate.drafted:
                painter.setPen(QPen(QColor(palette.fate(place.fate)), 2))
                painter.drawRect(room.adjusted(1, 1, -1, -1))
                if before is not None and self._kind == DFLASH2:
                    painter.drawLine(before, QPointF(room.left(), room.center().y()))
                way = QPointF(room.right(), room.center().y())
        return way
