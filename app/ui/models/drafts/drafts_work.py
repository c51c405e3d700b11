"""The drafts of a target being judged, in the window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from PySide6.QtCore import Signal

from app.engine.errors import UserError
from app.engine.types import ModelOptions
from app.lab.drafts.kept import DraftResults, KeptDrafts
from app.lab.drafts.trials import DraftJudged, DraftReads, DraftTrials, TargetAnswers
from app.lab.experiment import Experiment
from app.lab.runs.control import Control
from app.lab.runs.events import Ended, LabEvent
from app.lab.runs.runner import MakeHome
from app.ui.state.engine.engine_session import EngineSession
from app.ui.state.lab_thread import LabThread
from app.ui.state.lab_work import LabWork, Stage


class DraftsReported(LabEvent, frozen=True):
    """The results so far; `problem` says why they were not saved."""

    results: DraftResults
    problem: UserError | None = None


class DraftsWork(LabWork):
    """Judges drafts one after another, and keeps what was found."""

    changed = Signal()  # progress or results
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

        self._begin(make, needs_engine=True)

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
        elif isinstance(event, Ended):
            self._set(Stage.ENDED)
        else:
            super()._fold(event)

    def _at(self, progress: str) -> None:
        self.progress = progress
        if self.stage not in (Stage.ENDING, Stage.RUNNING):
            self._set(Stage.RUNNING)

    def _folded(self, events: list[LabEvent]) -> None:
        self.changed.emit()

    def _over(self, thread: LabThread) -> None:
        self.draft = ""

    @property
    def said(self) -> str:
        """What happens now, in one line."""
        match self.stage:
            case Stage.FREEING:
                return "Unloading the chat's models…"
            case Stage.LOADING:
                return f"Loading {self.words}"
            case Stage.ENDING:
                return "Ending…"
        return self.progress
