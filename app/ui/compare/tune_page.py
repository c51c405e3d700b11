"""The page of a search: the settings that are still in, those that are out, and in the end the
recommendation."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.base import numbers
from app.engine.strategy import NONE
from app.lab.report.summary import speedup_words
from app.lab.tune.tuned import FINALISTS, Tuned
from app.ui.compare.works import TuneSession
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.tables import TextTable

MORE_SECONDS = 120

TITLES = (
    ("setting", "The strategy and its parameters"),
    (
        "speed-up (95 %)",
        "tokens/s divided by tokens/s of none on the same prompts. The interval estimates it for similar "
        "prompts; with one prompt, for repeats of that prompt",
    ),
    ("end to end", "Speed-up including the time to read the prompt: from the request to the last token"),
    ("acceptance", "Accepted / drafted tokens"),
    ("answers", "Number of answers measured in its last round, every repeat counted"),
    ("round", "The last round that included it"),
    ("", "Outcome for this setting"),
)
ROUND = 5  # of these: the last number


class TriedTable(TextTable):
    """The settings of a search, its winner in green, those that are out in grey."""

    def __init__(self, theme: Theme, session: TuneSession) -> None:
        titles, definitions = zip(*TITLES, strict=True)
        super().__init__(theme, "Settings that were tried", titles, left=(0, ROUND + 1))
        self._session = session
        self.explain(definitions)
        self.horizontalHeader().setStretchLastSection(True)

    def colour(self, texts: Sequence[str]) -> str:
        result, colours = self._session.result, self._theme.palette
        if result is not None and texts[0] == result.winner:
            return colours.good
        return colours.secondary if texts[-1] == "out" or not texts[ROUND] else colours.text


class TunePage(QWidget):
    """The recommendation, and below it the settings, the best first."""

    use_wanted = Signal(str)
    compare_wanted = Signal(object)
    """Compare these strategies side by side (a tuple of specs)."""
    more_wanted = Signal()
    """Continue the search for MORE_SECONDS."""
    closed = Signal()

    def __init__(self, theme: Theme, session: TuneSession) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self.title = kit.label("", "title")
        self.reason = kit.label(wrap=True, selectable=True)
        self.use = kit.button("", self._use, kind="primary")
        self.more = kit.button(
            f"Search {MORE_SECONDS // 60} more minutes",
            self.more_wanted,
            tip="Continues with the settings that are left, on new measurements",
        )
        self.compare = kit.button("Compare the best side by side", self._compare)
        self.close_button = kit.button("Back to the lanes", self.closed)
        self.table = TriedTable(theme, session)
        row = kit.row(self.use, self.more, self.compare, self.close_button, kit.Spring(1), spacing=8)
        kit.column(
            self.title, self.reason, row, (self.table, 1), margins=(24, 16, 24, 8), spacing=10, on=self
        )
        self.table.restyle()
        session.progressed.connect(self._show)
        session.stage_changed.connect(self._show)
        self._show()

    # ------------------------------------------------------------------ showing

    def rows(self) -> list[tuple[str, ...]]:
        """A row per setting, with the numbers of its last round; those that got furthest come first."""
        session = self._session
        over = session.result
        so_far = over or Tuned(NONE, None, NONE, "", tuple(session.rungs), 0, 0, 0.0, complete=False)
        found = [
            (
                score.strategy,
                speedup_words(score.speedup) + (" one prompt" if score.over_repeats else ""),
                numbers.factor(score.whole_speedup),
                numbers.percent(score.acceptance_rate),
                str(score.answers),
                str(rung),
                so_far.fate(score) if over is not None or not score.kept else "still in",
            )
            for rung, score in so_far.latest
        ]
        known = {row[0] for row in found}
        return [
            *found,
            *(
                (strategy, "", "", "", "", "", "waits")
                for strategy in session.strategies
                if strategy not in known
            ),
            *(
                (left_out.what, "", "", "", "", "", f"not tried: {left_out.reason}")
                for left_out in so_far.left_out
            ),
        ]

    def _show(self) -> None:
        session, result = self._session, self._session.result
        over = not session.at_work
        if result is None:
            self.title.setText("Tune for me")
            self.reason.setText(
                "The search was interrupted before anything could be compared."
                if over
                else session.plan or "A few answers show which settings may win on these prompts."
            )
        else:
            self.title.setText(result.headline)
            self.reason.setText("\n".join(filter(None, (result.reason, result.by_kind))))
            self.use.setText(f"Use {result.winner} in the chat")
        # A difference that may be chance is no reason to change a setting.
        self.use.setVisible(result is not None and over and (result.winner != NONE or result.refuted))
        self.more.setVisible(result is not None and over)
        self.compare.setVisible(over and len(self._finalists()) > 0)
        self.close_button.setVisible(over)
        self.table.set_texts(self.rows())

    # ------------------------------------------------------------------ what the user does

    def _finalists(self) -> tuple[str, ...]:
        """The best strategies of the last round."""
        rungs = self._session.rungs
        return (
            tuple(score.strategy for score in rungs[-1].scores[:FINALISTS] if score.speedup) if rungs else ()
        )

    def _use(self) -> None:
        if self._session.result is not None:
            self.use_wanted.emit(self._session.result.winner)

    def _compare(self) -> None:
        self.compare_wanted.emit(self._finalists())
