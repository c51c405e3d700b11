"""A table of a target's drafts, best first, each with a button that uses it. They are judged on a thread
while the chat's engine is lent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QColor, QResizeEvent
from PySide6.QtWidgets import QHeaderView, QPushButton, QTableWidgetItem

from app.engine.errors import UserError
from app.engine.shards import size_of
from app.engine.types import ModelOptions
from app.hub.library.model import Candidate, names_apart
from app.lab.drafts import (
    DRAFT_COLUMNS,
    MEASURED_COLUMNS,
    SIZE_COLUMNS,
    DraftJudged,
    DraftReads,
    DraftResults,
    DraftScore,
    DraftTrials,
    KeptDrafts,
    TargetAnswers,
)
from app.lab.experiment import Experiment
from app.lab.runs.events import Control, LabEvent
from app.lab.runs.runner import MakeHome
from app.ui.state.chat_side import ChatSide
from app.ui.state.engine_session import EngineSession
from app.ui.state.lab_work import LabThread, LabWork, Stage
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.labels import as_text
from app.ui.widgets.tables import TextTable, add_action, alignment


class DraftsReported(LabEvent, frozen=True):
    """The results so far; `problem` says why they were not saved."""

    results: DraftResults
    problem: UserError | None = None


class DraftsWork(LabWork):
    """Judges drafts in turn, and keeps the results."""

    not_kept = Signal(object)  # UserError: the results could not be saved

    def __init__(self, engine: EngineSession, make_home: MakeHome, kept: KeptDrafts) -> None:
        super().__init__(engine)
        self._make_home = make_home
        self.kept = kept
        self.target = ""  # the path of the target whose drafts are judged, or were last
        self.drafts: tuple[str, ...] = ()  # their paths
        self.results: DraftResults | None = None  # None until a draft is judged
        self.draft = ""  # the path of the draft that is reading
        self.progress = ""  # what is done now, in a few words
        self._answers = 0  # prompts
        self._done = 0  # answers that were written or read

    @property
    def share(self) -> float:
        """The share of all answers, written and read, that is done, in [0, 1]."""
        return self._done / max(1, self._answers * (1 + len(self.drafts)))

    def waits(self, draft: str) -> bool:
        """Whether a draft is to be judged, and was not yet."""
        judged = self.results.scores if self.results is not None else {}
        return self.at_work and draft in self.drafts and draft not in judged

    def start(self, experiment: Experiment, drafts: Sequence[ModelOptions]) -> None:
        """Judge these drafts for the experiment's target."""
        target = experiment.pair.target.path
        self.target, self.drafts = target, tuple(draft.path for draft in drafts)
        self.results, self.draft, self.progress = None, "", ""
        self._answers, self._done = len(experiment.prompts), 0

        def make(control: Control) -> Iterator[LabEvent]:
            trials = DraftTrials(experiment, drafts, self._make_home, control)
            for event in trials.run():
                yield event
                if isinstance(event, DraftJudged):
                    yield self._keep(DraftResults.of(target, experiment.title, trials))

        self._begin(make)

    def _keep(self, results: DraftResults) -> DraftsReported:
        """Save the results; called on the worker's thread."""
        try:
            self.kept.keep(results)
        except UserError as error:
            return DraftsReported(results, error)
        return DraftsReported(results)

    def _fold(self, event: LabEvent) -> None:
        if isinstance(event, TargetAnswers):
            self._done = event.done
            self._at(f"{Path(self.target).name} answers prompt {event.done + 1} of {event.total}")
        elif isinstance(event, DraftReads):
            self.draft = event.draft.path
            place = self.drafts.index(self.draft)
            self._done = self._answers * (1 + place) + event.done
            name, of = Path(self.draft).name, f"Draft {place + 1} of {len(self.drafts)}"
            if event.done < event.total:
                self._at(f"{of} · {name} reads answer {event.done + 1} of {event.total}")
            else:
                self._at(f"{of} · timing passes of {name}")
        elif isinstance(event, DraftsReported):
            self.results, self.draft = event.results, ""
            self._done = self._answers * (1 + len(event.results.paths))
            if event.problem is not None:
                self.not_kept.emit(event.problem)
        else:
            super()._fold(event)

    def _at(self, progress: str) -> None:
        self.progress = progress
        self._run()

    def _over(self, thread: LabThread) -> None:
        self.draft = ""

    @property
    def said(self) -> str:
        """The present activity, in one line."""
        match self.stage:
            case Stage.FREEING:
                return "Unloading the chat's models…"
            case Stage.LOADING:
                return f"Loading {self.words}"
            case Stage.ENDING:
                return "Stopping…"
        return self.progress


TITLES = ("draft", *(column.title for column in DRAFT_COLUMNS), "")
USE_WORDS, SHORT_WORDS = "Use this draft", "Use"
FIRST_MEASURED, USE = 1 + len(SIZE_COLUMNS), len(TITLES) - 1
NAME_WIDTH = 170  # pixels at text scale 1, at least
GAP, SMALL_GAP = 20, 12  # pixels between columns, at text scale 1
TITLE_GAP = 16  # pixels beside a title, at text scale 1


@dataclass(frozen=True, slots=True)
class DraftLine:
    """A row: a file, what is known about it, and a sentence if it has no numbers."""

    path: str
    name: str
    score: DraftScore  # without numbers where it was not measured
    words: str = ""  # in place of the numbers: why there are none, or what is done now

    @property
    def is_problem(self) -> bool:
        return bool(self.score.problem) and self.words == self.score.problem

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts of the row, without the button."""
        if self.words:
            sizes = [column.text(self.score) for column in SIZE_COLUMNS]
            return (self.name, *sizes, self.words, *([""] * (len(MEASURED_COLUMNS) - 1)))
        return (self.name, *(column.text(self.score) for column in DRAFT_COLUMNS))


class DraftsTable(TextTable[DraftLine]):
    """The rows. Enter on a row, or its button, uses the draft."""

    use_wanted = Signal(str)
    """Use the draft of this path."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Drafts, fastest predicted first; press Enter to use one in the chat", TITLES)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.explain(("The model's name in its file", *(column.definition for column in DRAFT_COLUMNS)))
        self.activated.connect(self._use_row)
        add_action(self, "Use this draft", lambda: self._use_row(self.currentIndex()))
        self.restyle()

    def cells(self, row: DraftLine) -> Sequence[str]:
        return row.cells

    def identity(self, row: DraftLine) -> object:
        return row.path

    def dress(self, item: QTableWidgetItem, row: DraftLine, column: int) -> None:
        super().dress(item, row, column)
        colours, sentence = self._theme.palette, bool(row.words) and column == FIRST_MEASURED
        item.setTextAlignment(alignment(right=column > 0 and not sentence))
        if sentence and row.is_problem:
            item.setForeground(QColor(colours.error))
        elif column and (row.words or column < FIRST_MEASURED):
            item.setForeground(QColor(colours.secondary))
        item.setToolTip(as_text(row.path if not column else row.words if sentence else ""))

    def fill(self) -> None:
        self.clearSpans()
        super().fill()
        for at, line in enumerate(self.rows):
            if line.words:
                self.setSpan(at, FIRST_MEASURED, 1, len(MEASURED_COLUMNS))
            self._button(at).setAccessibleName(f"Use {line.name} as the draft")
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _button(self, row: int) -> QPushButton:
        """The button of a row; it stays while rows change."""
        if isinstance(there := self.cellWidget(row, USE), QPushButton):
            return there
        button = kit.button(
            USE_WORDS,
            lambda: self.use_wanted.emit(self.rows[row].path),
            kind="flat",
            tip="Load it into the chat with this target",
        )
        self.setCellWidget(row, USE, button)
        return button

    def _use_row(self, index: QModelIndex) -> None:
        if index.isValid():
            self.use_wanted.emit(self.rows[index.row()].path)

    def _fit(self) -> None:
        """Make the numbers as narrow as they are; the names take the rest. In little room the sizes give way
        to the numbers, and the button is short, so that it stays in sight."""
        metrics, least = self.fontMetrics(), round(NAME_WIDTH * self._theme.scale)
        words, gap, widths = USE_WORDS, GAP, self._widths(GAP, USE_WORDS)
        narrow = self.viewport().width() - sum(widths) < least
        if narrow:
            words, gap = SHORT_WORDS, SMALL_GAP
            widths = self._widths(gap, words)
        for row in range(self.rowCount()):
            self._button(row).setText(words)
        for column in range(1, FIRST_MEASURED):
            self.setColumnHidden(column, narrow)
        for column in range(1, len(TITLES)):
            self.setColumnWidth(column, widths[column])
        room = self.viewport().width() - sum(widths[FIRST_MEASURED if narrow else 1 :])
        longest = max((metrics.horizontalAdvance(line.name) for line in self.rows), default=0)
        longest += round(gap * self._theme.scale)
        self.setColumnWidth(0, max(least // 2, min(room, max(longest, 2 * least))))

    def _widths(self, space: int, words: str) -> list[int]:
        """The widths of all columns but the first, with this space between them and these words on the
        buttons."""
        gap, head = round(space * self._theme.scale), self.horizontalHeader()
        beside = round(max(space, TITLE_GAP) * self._theme.scale)
        metrics, titles = self.fontMetrics(), head.fontMetrics()
        widths = [0] * len(TITLES)
        for column in range(1, USE):
            measured = column >= FIRST_MEASURED
            texts = [line.cells[column] for line in self.rows if not (measured and line.words)]
            widest = max(map(metrics.horizontalAdvance, texts), default=0) + gap
            title = titles.horizontalAdvance(TITLES[column]) + beside
            widths[column] = max(widest, title, head.minimumSectionSize())
        widths[USE] = metrics.horizontalAdvance(words) + 2 * gap
        return widths


_COMPARED = 3


class DraftList:
    """The drafts that the page shows for its target."""

    def __init__(self, chat: ChatSide, work: DraftsWork) -> None:
        self._chat = chat
        self._work = work
        self.target = ""  # its path; "" without any
        self.candidates: tuple[Candidate, ...] = ()  # of the library
        self.reading = True  # more candidates are to come
        self.kept: DraftResults | None = None  # results of an earlier day
        self._added: list[Path] = []  # drafts that were chosen by hand, for any target

    def begin(self, target: str) -> None:
        """List the drafts of a different target."""
        self.target = target
        self.candidates, self.reading, self.kept = (), True, None

    def add(self, names: Sequence[str]) -> None:
        """Add files that were chosen by hand."""
        paths = [Path(name).absolute() for name in names]
        self._added += [path for path in dict.fromkeys(paths) if path not in self._added]

    @property
    def results(self) -> DraftResults | None:
        """The target's results: those being measured, or the saved ones."""
        mine = self._work.target == self.target
        if mine and (self._work.at_work or self._work.results is not None):
            return self._work.results
        return self.kept

    @property
    def names(self) -> dict[str, str]:
        """The drafts by path, each with a unique name: from the library, the chat, the user's choice and
        earlier results."""
        fitting = [candidate.model for candidate in self.candidates if candidate.shares_vocabulary]
        named = dict(zip((str(model.path) for model in fitting), names_apart(fitting), strict=True))
        pair = self._chat.pair()
        in_chat = [pair.draft.path] if pair.draft is not None and pair.target.path == self.target else []
        earlier = self.results.paths if self.results is not None else ()
        work = self._work
        now = work.drafts if work.at_work and work.target == self.target else ()
        for path in (*in_chat, *map(str, self._added), *earlier, *now):
            if path != self.target:
                named.setdefault(path, Path(path).name)
        return named

    @property
    def lines(self) -> list[DraftLine]:
        """The measured drafts, the best first, then the others."""
        named = self.names
        scores = self.results.scores if self.results is not None else {}
        order = [path for path in scores if path in named]
        order += [path for path in named if path not in scores]
        failed = [path for path in order if path in scores and scores[path].problem]
        order = [path for path in order if path not in failed] + failed
        return [self._line(path, named[path], scores.get(path)) for path in order]

    @property
    def best(self) -> list[str]:
        """The paths of the best drafts."""
        scores = self.results.scores if self.results is not None else {}
        return [path for path, score in scores.items() if score.factor is not None][:_COMPARED]

    @property
    def through_text(self) -> int:
        """The number of files that can draft through text only."""
        return sum(candidate.through_text for candidate in self.candidates)

    def _line(self, path: str, name: str, score: DraftScore | None) -> DraftLine:
        if score is not None:
            return DraftLine(path, name, score, score.problem)
        size, share = self._size(path)
        words = ""
        if self._work.target == self.target and self._work.waits(path):
            words = "being judged" if path == self._work.draft else "waiting"
        return DraftLine(path, name, DraftScore(Path(path).name, size, share), words)

    def _size(self, path: str) -> tuple[int, float]:
        """The bytes of a draft that was not measured, and its share of the target."""
        for candidate in self.candidates:
            if str(candidate.model.path) == path:
                return candidate.model.size, candidate.share
        try:
            size = size_of(Path(path))
            return size, size / size_of(Path(self.target))
        except OSError:  # measuring says why
            return 0, 0.0
