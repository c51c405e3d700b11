"""Pictures of a draft, place by place: of one made in one pass, of one judged as a block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.engine.compat import DFLASH2, DSPARK
from app.engine.rules.block import BlockTest
from app.engine.rules.formula import compared, visible, written
from app.engine.rules.registry import rule_of
from app.engine.types import Round, TraceHeader
from app.ui.inspector.painting import LEFT, RIGHT, Ink, paint_note, paint_text
from app.ui.theme import Theme
from app.ui.theme.palette import blend
from app.ui.widgets.words import probability

_ROWS = 8  # candidates of a place that are shown, most probable first
_GAP = 15  # between two places, in pixels at text scale 1
_MARKS = "The framed token was drafted. A bar before a token marks the target's choice."
_WORDS = {
    "dflash": (
        "One pass gave all positions. Each has its own distribution, fixed before any token was chosen."
    ),
    DSPARK: "One pass gave all positions, each after the most likely token of the position before.",
    DFLASH2: "One pass gave the candidates for all positions. Each score depends on the token before. The "
    "lines show the path taken.",
}
_CHAIN = (
    "A block is judged from its end: the first token from the right with u < h is accepted, along with "
    "everything before it."
)


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
    """The places of a draft that was made in one pass; empty for any other draft."""
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


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A token in the chain of a block."""

    token: str
    fate: str
    reach: float
    h: float | None
    u: float | None
    decides: bool  # the last token whose draw passed

    @property
    def test(self) -> str:
        if self.h is None or self.u is None:
            return "not asked"
        return "u {} h {}".format(*compared(self.u, self.h).rsplit(" ", 1))

    @property
    def spoken(self) -> str:
        end = ", accepted up to here" if self.decides else ""
        return f"{self.token}: reach {written(self.reach)}, {self.test}{end}."


def chain_of(round: Round, header: TraceHeader) -> tuple[ChainLink, ...]:
    """The chain of a draft that was judged as a block; empty under other rules."""
    rule = rule_of(header.verification)
    tests = [rule.test(round, place) for place in range(len(round.drafted))]
    chain = [test for test in tests if isinstance(test, BlockTest)]
    last = max((place for place, test in enumerate(chain) if test.own), default=-1)
    return tuple(
        ChainLink(
            visible(token.piece, token.label), token.verdict.value, test.reach, test.h, test.u, place == last
        )
        for place, (token, test) in enumerate(zip(round.drafted, chain, strict=False))
    )


class _Places(QWidget):
    """Draws the places of a draft in columns, on as many lines as they need, below words about them."""

    def __init__(self, theme: Theme, name: str, pitch: int) -> None:
        """`pitch` is the width of a column in pixels at text scale 1."""
        super().__init__()
        self._theme, self._pitch = theme, pitch
        self._count, self._words = 0, ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(name)
        theme.changed.connect(self._fit)
        self.hide()

    def _line(self, ink: Ink) -> float:
        """The height of a line of places."""
        raise NotImplementedError

    def _paint_place(self, painter: QPainter, room: QRectF, at: int, ink: Ink) -> None:
        """Paint a place from its first row of text down."""
        raise NotImplementedError

    def _show_places(self, spoken: Iterable[str], words: str) -> None:
        """Show different places below these words; without places the widget is hidden."""
        said = [*spoken]
        self._count, self._words = len(said), words
        self.setVisible(bool(said))
        self.setAccessibleDescription(" ".join([words, *said]))
        self._fit()

    def _fit(self) -> None:
        self.setFixedHeight(self.sizeHint().height())
        self.update()

    def sizeHint(self) -> QSize:
        ink, room = Ink(self._theme), QRectF(0, 0, max(self.width(), 1), 0)
        lines = -(-self._count // self._columns())
        return QSize(300, round(paint_note(None, room, self._words, ink) + lines * self._line(ink)))

    def _columns(self) -> int:
        return max(int(self.width() // (self._pitch * self._theme.scale)), 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, ink, scale = QPainter(self), Ink(self._theme), self._theme.scale
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        top = paint_note(painter, QRectF(0, 0, self.width(), 0), self._words, ink)
        for at in range(self._count):
            line, column = divmod(at, self._columns())
            left, y = column * self._pitch * scale, top + line * self._line(ink)
            self._paint_place(painter, QRectF(left, y, (self._pitch - _GAP) * scale, ink.row), at, ink)


class DraftBlock(_Places):
    """The candidates of each place; a token's ground is as strong as it was probable."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Drafted block", 132)
        self._places: Sequence[PlaceInBlock] = ()
        self._kind = ""
        self._way: QPointF | None = None  # where the way comes from

    def show_block(self, places: Sequence[PlaceInBlock], kind: str) -> None:
        """Show a different block of a draft of this kind; one without places hides it."""
        if (places, kind) != (self._places, self._kind):
            self._places, self._kind = places, kind
            spoken = (place.spoken(number) for number, place in enumerate(places, start=1))
            self._show_places(spoken, f"{_WORDS.get(kind, '')} {_MARKS}")

    def _line(self, ink: Ink) -> float:
        rows = max((len(place.candidates) for place in self._places), default=0)
        return (rows + 1) * ink.row + 8 * ink.unit

    def _paint_place(self, painter: QPainter, room: QRectF, at: int, ink: Ink) -> None:
        palette, place = self._theme.palette, self._places[at]
        paint_text(painter, room, LEFT, f"{at + 1} {place.fate}", ink.small, palette.fate(place.fate))
        before, self._way = self._way if at % self._columns() else None, None
        for candidate in place.candidates:
            room = room.translated(0, ink.row)
            painter.fillRect(room, QColor(blend(palette.area(place.fate), palette.ground, 0.4 * candidate.p)))
            number_room = room.adjusted(0, 0, -4, 0)
            paint_text(painter, number_room, RIGHT, probability(candidate.p), ink.mono, palette.secondary)
            word = room.adjusted(8, 0, -5 * ink.digit - 8, 0)
            paint_text(painter, word, LEFT, candidate.token, ink.mono, palette.text)
            if candidate.emitted:
                mark = QRectF(room.left() + 2, room.top() + 2, 3, room.height() - 4)
                painter.fillRect(mark, QColor(palette.text))
            if candidate.drafted:
                painter.setPen(QPen(QColor(palette.fate(place.fate)), 2))
                painter.drawRect(room.adjusted(1, 1, -1, -1))
                if before is not None and self._kind == DFLASH2:
                    painter.drawLine(before, QPointF(room.left(), room.center().y()))
                self._way = QPointF(room.right(), room.center().y())


class BlockChain(_Places):
    """The reach of every token of a block as a bar, its h on it as a mark, and the draw."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Acceptance of the block", 176)
        self._links: Sequence[ChainLink] = ()

    def show_links(self, links: Sequence[ChainLink]) -> None:
        """Show a different chain; an empty one hides it."""
        if links != self._links:
            self._links = links
            self._show_places((link.spoken for link in links), _CHAIN)

    def _line(self, ink: Ink) -> float:
        return 3 * ink.row + 18 * ink.unit

    def _paint_place(self, painter: QPainter, room: QRectF, at: int, ink: Ink) -> None:
        palette, link = self._theme.palette, self._links[at]
        mark = "← up to here" if link.decides else ""
        beside = room.adjusted(0, 0, -QFontMetricsF(ink.small).horizontalAdvance(mark) - 4, 0)
        paint_text(painter, beside, LEFT, link.token, ink.mono, palette.fate(link.fate))
        paint_text(painter, room, RIGHT, mark, ink.small, palette.fate(link.fate))
        track = QRectF(room.left(), room.bottom() + 3, room.width(), 8 * ink.unit)
        for value, share in ((1.0, 0.0), (link.reach, 0.3), (link.h, 0.75)):
            if value is not None:
                bar = QRectF(track)
                bar.setWidth(max(track.width() * min(value, 1), 1))
                colour = palette.area(link.fate) if share else palette.text
                painter.fillRect(bar, QColor(blend(colour, palette.ground, share or 0.09)))
        if link.u is not None:
            x = track.left() + min(link.u, 1) * track.width()
            painter.setPen(QPen(QColor(palette.text), 1.5))
            painter.drawLine(round(x), round(track.top() - 3), round(x), round(track.bottom() + 3))
        below = room.translated(0, ink.row + 8 * ink.unit + 5)
        paint_text(painter, below, LEFT, f"r {written(link.reach)}", ink.mono, palette.secondary)
        below = below.translated(0, ink.row)
        paint_text(painter, below, LEFT, link.test, ink.mono, palette.secondary)
