"""The toy: the law of speculative sampling with two or three letters, whose probabilities can be moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QLabel, QSlider, QWidget
from typing_extensions import override

from app.engine.explain.decision import PlaceLaw, Share, Tally, TokenOdds, law_of
from app.engine.fates import Origin
from app.engine.rules.base import Drafted
from app.engine.rules.block import block_reach
from app.engine.rules.registry import BLOCK as AS_BLOCK
from app.engine.rules.registry import SPECULATIVE
from app.engine.sampling.distribution import Distribution
from app.engine.sampling.draws import Draws, Purpose
from app.ui.inspector.card import Card
from app.ui.inspector.content import CardContent, law_bars
from app.ui.inspector.contents import proof_of
from app.ui.theme import Theme
from app.ui.theme.palette import blend
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import focus_ring
from app.ui.theme.theme import LargeTheme
from app.ui.widgets import kit
from app.ui.widgets.keys import KeyTable
from app.ui.widgets.segmented import Segmented
from app.ui.widgets.words import SPACE, ratio

BLOCK_P, BLOCK_Q = (1 / 3, 2 / 3), (2 / 3, 1 / 3)
"""The example of the paper on block verification (Sun et al. 2024): p and q of the letters A and B, at every
place."""


@dataclass(frozen=True, slots=True)
class PairLaw(PlaceLaw):
    """The law of drafts of two letters. The accepted part of a pair is the chance that it is drafted and
    passes whole."""

    letters: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())  # p and q of a letter
    block: bool = False
    accepted_letters: float = 0.0  # of a draft, on average

    @override
    def tally(self, seed: int) -> PairTally:
        return PairTally(self, seed)


def pair_law(p: Sequence[float], q: Sequence[float], *, block: bool) -> PairLaw:
    """The law of two letters, each drawn alike, judged as a block or letter by letter."""
    shares, first, mean = [], 0.0, 0.0
    for x, y in product(range(len(p)), repeat=2):
        drafted = q[x] * q[y]
        reach = block_reach(1.0, p[x], q[x]) if q[x] else 1.0
        whole = block_reach(reach if block else 1.0, p[y], q[y]) if q[y] else 1.0
        passes = drafted * (whole if block else reach * whole)
        first, mean = first + drafted * reach, mean + passes
        shares.append(Share(p[x] * p[y], drafted, passes, TokenOdds(x * len(p) + y, b"")))
    return PairLaw(tuple(shares), True, (1.0, 1.0), True, (tuple(p), tuple(q)), block, first + mean)


class PairTally(Tally):
    """The pairs that were emitted: a draft of two letters is judged, and letters without a draft are drawn
    from p."""

    def __init__(self, law: PairLaw, seed: int) -> None:
        super().__init__(law, seed)
        self._rule = AS_BLOCK if law.block else SPECULATIVE
        self._p, self._draft = (Distribution(np.array(each, np.float32)) for each in law.letters)
        self._rows: Any = SimpleNamespace(distribution=lambda _place: self._p)
        self._draws = Draws(seed)
        self._place = 0  # of the next pair

    @override
    def draw(self, times: int) -> None:
        size = len(self._p.p)
        for _ in range(times):
            at, self._place = self._place, self._place + 3  # two letters, and the one behind them
            draft = [self._draft.draw(self._draws.key(at + i, Purpose.DRAFT))[0] for i in range(2)]
            outcome = self._rule.judge(Drafted(draft, [self._draft] * 2, self._rows, self._draws, at))
            pair = [*draft[: outcome.accepted], outcome.token]
            if len(pair) == 1:
                pair.append(self._p.draw(self._draws.key(at + 1, Purpose.TOKEN))[0])
            came = self.accepted if outcome.accepted == 2 else self.replaced
            came[pair[0] * size + pair[1]] += 1


def with_share(shares: Sequence[float], at: int, share: float) -> tuple[float, ...]:
    """The shares with one of them changed; the others keep their proportions, and all sum to one."""
    others = sum(shares) - shares[at]
    left = 1 - share
    return tuple(
        share if place == at else left * (each / others if others > 0 else 1 / (len(shares) - 1))
        for place, each in enumerate(shares)
    )


_STEPS = 100  # of a bar
_INSIDE = 0.65  # from here on the number of a bar is inside it
_LEAST, _SHARE = 13, 0.029  # of the picture's smallest letters: pixels at text scale 1, share of its width
_LETTERS = "ABC"
_THREE = (0.5, 0.3, 0.2), (0.3, 0.6, 0.1)
THREE, TWO = "three letters", "two letters, drafts of two"
TOKENS, BLOCK = "letter by letter", "as a block"
_WORDS = {
    THREE: (
        f"The draft draws a letter from q. It is accepted with probability min(1,{SPACE}p{SPACE}/{SPACE}q), "
        "green in its bar. Otherwise a letter is drawn from the residual: the part of p above q, scaled to "
        f"sum to 1. Drag q: more or fewer letters are accepted, but the output always follows{SPACE}p."
    ),
    TWO: (
        "The draft draws two letters. Each bar is a pair. Green is the probability that it is drafted and "
        "accepted whole. Judged as a block, a likely second letter can rescue an unlikely first one."
    ),
}


class LawToy(QWidget):
    """Bars of p and q to drag, and beside them the picture of a judged position."""

    left = Signal()  # back to the list

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._large = LargeTheme(theme, self, least=-1.5)  # of the picture: a class may look at it
        self._shares = {THREE: _THREE, TWO: (BLOCK_P, BLOCK_Q)}
        title = kit.label("Try the rule", "title")
        self.kind = Segmented(theme, "Letters", (THREE, TWO))
        self.rule = Segmented(theme, "Judged", (TOKENS, BLOCK))
        self.back = kit.button("Back to the lessons", self.left)
        self.words, self.means, self.proof = (kit.label(wrap=True, plain=True) for _ in range(3))
        self.card = Card(self._large)
        self.bars = [BarSlider(self._large, f"{name} of {letter}") for letter in _LETTERS for name in "pq"]
        self._lay_out(title)
        for chooser in (self.kind, self.rule):
            chooser.picked.connect(self._show)
        for at, bar in enumerate(self.bars):
            bar.valueChanged.connect(lambda value, at=at: self._drag(at, value))
        self._show()
        self._large.changed.connect(self._restyle)
        self._restyle()

    def _lay_out(self, title: QLabel) -> None:
        head = kit.row(title, self.kind, kit.Spring(1), self.back, spacing=12)
        rule = kit.row(self.rule, kit.Spring(1))
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        self._names = [kit.label(name, "secondary") for name in ("target p", "draft q")]
        for at, name in enumerate(self._names):
            grid.addWidget(name, 0, at + 1)
        self._letters = [QLabel(letter) for letter in _LETTERS]
        for at, bar in enumerate(self.bars):
            if at % 2 == 0:
                grid.addWidget(self._letters[at // 2], at // 2 + 1, 0)
            grid.addWidget(bar, at // 2 + 1, at % 2 + 1)
        grid.setColumnStretch(1, 1)
        grid.setColumnStretch(2, 1)
        side = kit.column(self.words, rule, grid, self.means, self.proof, kit.Spring(1), spacing=16)
        body = kit.row((side, 1), (self.card, 1, Qt.AlignmentFlag.AlignTop), spacing=24)
        kit.column(head, (body, 1), margins=(24, 16, 24, 16), spacing=16, on=self)

    def _restyle(self) -> None:
        self._fit()
        for label in (self.words, self.means):
            label.setFont(self._large.sans(0))
        self.proof.setFont(self._large.mono(-1.5))
        for bar in self.bars:
            bar.updateGeometry()
        for label in self._letters:
            label.setFont(self._large.mono(0))
        for label in self._names:
            label.setFont(self._large.sans(-1.5))

    def _drag(self, at: int, value: int) -> None:
        shares = list(self._shares[self.kind.choice()])
        shares[at % 2] = with_share(shares[at % 2], at // 2, value / _STEPS)
        self._shares[self.kind.choice()] = (shares[0], shares[1])
        self._show()

    def _show(self) -> None:
        """Show the law of the bars as they are."""
        kind = self.kind.choice()
        p, q = self._shares[kind]
        self.rule.setVisible(kind == TWO)
        self.words.setText(_WORDS[kind])
        for at, bar in enumerate(self.bars):
            shown = at // 2 < len(p)
            bar.setVisible(shown)
            self._letters[at // 2].setVisible(shown)
            if shown:
                bar.show_share((p, q)[at % 2][at // 2])
        law, names = _law(kind, p, q, self.rule.choice() == BLOCK)
        self.means.setVisible(kind == TWO)
        self.proof.setVisible(kind == THREE)
        if kind == TWO:
            laws = [pair_law(p, q, block=block) for block in (False, True)]
            alone, together = (ratio(each.accepted_letters) for each in laws)
            self.means.setText(f"Accepted letters per draft: {alone} {TOKENS}, {together} {BLOCK}.")
        else:
            sum_, *rest = "\n".join(_proof(law, names)).rsplit(" = ", 2)
            p_words = SPACE.join(("=", rest[0], "=", rest[1]))  # a narrow line breaks before them
            self.proof.setText(f"{sum_} {p_words}")
        bars = law_bars(law, set(range(len(names))), names)
        title, word = "Accepted or replaced", Origin.PLAIN.value
        content = CardContent(title, kind, word, "", ("q", "p"), bars, None, (), (), law)
        self.card.show_content(replace(content, overlap=kind == THREE))
        self._fit()

    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)  # type: ignore[arg-type]
        self._fit()

    def _fit(self) -> None:
        width = max((self.width() - 72) // 2, 240)
        self._large.set_pixels(max(_LEAST * self._theme.scale, width * _SHARE))
        self.card.setFixedSize(width, self.card.height_for(width))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not KEYS.act(self, event):
            super().keyPressEvent(event)


def _law(kind: str, p: Sequence[float], q: Sequence[float], block: bool) -> tuple[PlaceLaw, dict[int, str]]:
    """The law that is shown, and the names of what it is about."""
    if kind == THREE:
        return law_of(p, q), dict(enumerate(_LETTERS))
    names = dict(enumerate(map("".join, product(_LETTERS[: len(p)], repeat=2))))
    return pair_law(p, q, block=block), names


def _proof(law: PlaceLaw, names: dict[int, str]) -> tuple[str, ...]:
    """Why the letter with the largest gain is emitted as often as the target's p says."""
    at, share = max(enumerate(law.shares), key=lambda pair: pair[1].uncovered)
    left = 1 - law.alpha
    return proof_of(names[at], share.accepted, left, share.uncovered / left if left > 1e-9 else 0.0)


class BarSlider(QSlider):
    """A bar that is dragged to its length."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._theme = theme
        self._share = 0.0
        self.setRange(0, _STEPS)
        self.setPageStep(10)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def show_share(self, share: float) -> None:
        """Show a share, of which the value is the nearest percent, without a signal."""
        self._share = share
        before = self.blockSignals(True)
        self.setValue(round(share * _STEPS))
        self.blockSignals(before)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(round(120 * self._theme.scale), round(28 * self._theme.scale))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._take(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._take(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def _take(self, event: QMouseEvent) -> None:
        share = (event.position().x() - 1) / max(self.width() - 2, 1)
        self.setValue(round(min(max(share, 0.0), 1.0) * _STEPS))

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        painter = QPainter(self)
        track = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.fillRect(track, QColor(blend(palette.text, palette.ground, 0.09)))
        bar = QRectF(track.left(), track.top(), max(track.width() * self._share, 2), track.height())
        painter.fillRect(bar, QColor(blend(palette.text, palette.ground, 0.3)))
        painter.fillRect(QRectF(bar.right() - 3, bar.top(), 3, bar.height()), QColor(palette.text))
        painter.setFont(self._theme.mono(-1))
        painter.setPen(QColor(palette.text))
        left = bar.right() if self._share < _INSIDE else track.left()
        number = QRectF(left + 8, track.top(), track.width(), track.height())
        painter.drawText(number, Qt.AlignmentFlag.AlignVCenter, ratio(self._share))
        if ring_shown(self):
            painter.setPen(QPen(QColor(focus_ring(palette)), 2))
            painter.drawRect(track)
        painter.end()


KEYS: KeyTable[LawToy] = KeyTable(("Escape", "Back to the list of lessons", lambda toy: toy.left.emit()))
