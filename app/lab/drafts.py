"""Ranks every file that can draft for a target, by teacher forcing, in seconds.

The results are kept until they are measured again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import compress
from pathlib import Path
from statistics import fmean, variance

import msgspec
from msgspec.structs import replace

from app.base import numbers
from app.base.files import DamagedError, decode, explained, read_file, reason, write_atomic
from app.base.paths import make_folder
from app.engine.errors import UserError
from app.engine.explain.cost import LONGEST, CostModel
from app.engine.process.messages import Forced, ForcedText, PassSeconds, trace_of
from app.engine.shards import size_of
from app.engine.strategy import NONE
from app.engine.types import GenerationRequest, ModelOptions, Sampling
from app.lab.experiment import Experiment, Pair, Prompt
from app.lab.report.columns import Column, Shown, columns_of
from app.lab.report.summary import student_t
from app.lab.runs.events import Control, Ended, LabEvent, Loading
from app.lab.runs.journal import FileMark, mark_of
from app.lab.runs.lab_engine import EngineGone, Interrupted, LabEngine
from app.lab.runs.record import JsonFile
from app.lab.runs.runner import MakeHome
from app.lab.suites import Suite

FORMAT = "1.0"
ANSWER_TOKENS = 64
"""The default length of the target's answers: enough for α, and quick."""
_FEWEST_TEXTS = 3  # for an interval


class DraftScore(msgspec.Struct, frozen=True):
    """A judged draft file. If it could not be judged, `problem` says why and its numbers are None."""

    file: str  # without its folder
    size: int  # bytes
    share: float  # its size / the target's
    problem: str = ""
    places: int = 0  # tokens that were compared
    alpha: float | None = None  # of teacher forcing: the mean of Σ min(p, q)
    alpha_low: float | None = None  # 95 % interval over the texts
    alpha_high: float | None = None
    agreement: float | None = None  # share of places with the same most probable token
    c: float | None = None  # time of a draft token / of a single-token target pass
    n_max: int | None = None  # the draft length with the largest predicted factor
    factor: float | None = None  # predicted at that length
    factor_low: float | None = None  # at alpha_low
    factor_high: float | None = None


class DraftsReport(JsonFile, frozen=True):
    """All drafts of a target, the largest predicted factor first."""

    format: str
    target: str
    sampling: Sampling
    texts: int
    tokens: int  # of the target's answers
    drafts: tuple[DraftScore, ...]


class TargetAnswers(LabEvent, frozen=True):
    """The target begins an answer; `done` of `total` are done."""

    done: int
    total: int


class DraftReads(LabEvent, frozen=True):
    """A draft reads the answers; `done` of `total` are done."""

    draft: ModelOptions
    done: int
    total: int


class DraftJudged(LabEvent, frozen=True):
    """A draft is done, or could not be judged."""

    draft: ModelOptions
    score: DraftScore


class DraftTrials:
    """The drafts of a target, judged one after another. `run` may be called once, on one thread."""

    def __init__(
        self, experiment: Experiment, drafts: Sequence[ModelOptions], make_home: MakeHome, control: Control
    ) -> None:
        """The experiment's target answers its prompts with its sampling; its draft and lanes are ignored."""
        self._experiment = experiment
        self._drafts = tuple(drafts)
        self._engine = LabEngine(make_home, control)
        self._texts: list[ForcedText] = []
        self._judged: list[DraftJudged] = []
        self._forced: dict[str, Forced] = {}  # by the draft's path

    def run(self) -> Iterator[LabEvent]:
        """Judge every draft; one that cannot be judged is scored with its problem. Raises UserError if the
        target gives no answer."""
        try:
            yield from self._answer()
            for draft in self._drafts:
                yield from self._judge(draft)
        except Interrupted:
            yield Ended(False)
        except EngineGone as error:
            raise UserError(str(error)) from error
        else:
            yield Ended(True)
        finally:
            self._engine.close()

    @property
    def judged(self) -> tuple[DraftJudged, ...]:
        """The drafts judged so far, best first. Every draft improves the times of target passes, and so all
        factors."""
        passes = [forced.seconds for forced in self._forced.values()]
        scored = [
            replace(judged, score=score(judged.score, self._forced[judged.draft.path], passes))
            if judged.draft.path in self._forced
            else judged
            for judged in self._judged
        ]
        return tuple(sorted(scored, key=lambda judged: rank(judged.score)))

    def report(self) -> DraftsReport:
        """The drafts that were judged so far."""
        target, sampling = Path(self._experiment.pair.target.path).name, self._experiment.sampling
        tokens = sum(len(text.answer) for text in self._texts)
        drafts = tuple(draft.score for draft in self.judged)
        return DraftsReport(FORMAT, target, sampling, len(self._texts), tokens, drafts)

    def _answer(self) -> Iterator[LabEvent]:
        """Let the target answer without a draft. Prompts that it refuses, such as longer ones than its
        context, are left out."""
        experiment, engine = self._experiment, self._engine
        for file, fraction in engine.load(Pair(experiment.pair.target)):
            yield Loading(file, fraction)
        refused: UserError | None = None
        said: list[str] = []  # in the conversation so far
        for index, prompt in enumerate(experiment.prompts):
            yield TargetAnswers(index, len(experiment.prompts))
            del said[len(prompt.before) :]
            if len(said) < len(prompt.before):
                continue  # the turn before was refused
            request = experiment.request(index, NONE, said=said)
            try:
                ids, text = self._answer_to(request)
                said.append(text)
                if ids:
                    self._texts.append(ForcedText(request, ids))
            except UserError as error:
                refused = refused or error
        if not self._texts:
            raise refused or UserError("The target's answers are empty.", "Choose other prompts.")

    def _answer_to(self, request: GenerationRequest) -> tuple[tuple[int, ...], str]:
        """The tokens of an answer, and its text. Raises UserError."""
        trace = trace_of(self._engine.generate(request))
        if trace.totals is not None and trace.totals.error:
            raise UserError(trace.totals.error)
        return trace.token_ids, trace.text

    def _judge(self, draft: ModelOptions) -> Iterator[LabEvent]:
        target = self._experiment.pair.target
        found = DraftScore(Path(draft.path).name, 0, 0.0)
        try:
            size = size_of(Path(draft.path))
            found = replace(found, size=size, share=size / size_of(Path(target.path)))
            for file, fraction in self._engine.load(Pair(target, draft)):
                yield Loading(file, fraction)
            for event in self._engine.force(tuple(self._texts)):
                if isinstance(event, Forced):
                    self._forced[draft.path] = event
                    found = score(found, event, [event.seconds])
                else:
                    yield DraftReads(draft, event.done, event.total)
        except OSError as error:  # it was deleted since it was listed
            found = replace(found, problem=f"It cannot be read: {reason(error)}.")
        except (UserError, EngineGone) as error:
            found = replace(found, problem=str(error))
        self._judged.append(DraftJudged(draft, found))
        yield self._judged[-1]


def score(draft: DraftScore, forced: Forced, passes: Sequence[PassSeconds]) -> DraftScore:
    """The draft with the numbers of a comparison. `passes` are timed passes of the target from all drafts'
    comparisons, because they cost the same for each."""
    costs = CostModel()
    for seconds in passes:
        for width, time in seconds.target.items():
            costs.passes.add(width, time / seconds.target[1])
    costs.draft_times.add(forced.seconds.draft / forced.seconds.target[1])
    texts = forced.agreements
    places = sum(text.places for text in texts)
    alpha = math.fsum(text.overlap for text in texts) / places
    reach = _reach([text.overlap / text.places for text in texts])
    low, high = (None, None) if reach is None else (max(0.0, alpha - reach), min(1.0, alpha + reach))
    factors = {k: costs.predicted(alpha, k) or 0.0 for k in range(1, LONGEST + 1)}
    best = max(factors, key=lambda k: factors[k])
    return replace(
        draft,
        places=places,
        alpha=alpha,
        alpha_low=low,
        alpha_high=high,
        agreement=sum(text.same_best for text in texts) / places,
        c=costs.c,
        n_max=best,
        factor=factors[best],
        factor_low=None if low is None else costs.predicted(low, best),
        factor_high=None if high is None else costs.predicted(high, best),
    )


def rank(score: DraftScore) -> tuple[bool, float, str]:
    """A sort key: the largest predicted factor first, drafts that could not be judged last."""
    return score.factor is None, -(score.factor or 0.0), score.file


def first_of_each(suite: Suite) -> tuple[Prompt, ...]:
    """The first prompt of each category; all prompts if there are no categories."""
    if not suite.categories:
        return suite.prompts
    return tuple({prompt.category: prompt for prompt in reversed(suite.prompts)}.values())[::-1]


def _reach(alphas: Sequence[float]) -> float | None:
    """Half the width of the 95 % interval of the mean over texts; None for fewer than three."""
    if len(alphas) < _FEWEST_TEXTS:
        return None
    return student_t(len(alphas) - 1) * math.sqrt(variance(alphas, fmean(alphas)) / len(alphas))


def _with_interval(value: float | None, low: float | None, high: float | None, unit: str = "") -> str:
    if value is None:
        return numbers.NONE
    within = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    return f"{value:.2f}{unit}{within}"


SIZE_COLUMNS: tuple[Column[DraftScore], ...] = columns_of(
    """
size  size  All of its files.
share  of target  Its size / the target's.
""",
    size=Shown(written=numbers.file_size),
    share=Shown(written=lambda share: numbers.percent(share, 0)),
)
MEASURED_COLUMNS: tuple[Column[DraftScore], ...] = columns_of(
    """
alpha  α (95 %)  Chance that a drawn draft token is accepted: the mean of Σ min(p, q) over the target's own
    answers. At temperature 0 it is the share of positions with the same most probable token. The interval is
    over the answers and needs three.
agreement  same best  Greedy agreement: the share of positions at which both models have the same most
    probable token.
c  c  The time of a draft token relative to a target pass over one token, both measured.
n_max  n_max  The draft length with the largest predicted factor.
factor  predicted (95 %)  The speed-up predicted at that draft length: (1 + α + … + α^k) / (v(k) + k c). v(k)
    is the measured time of a target pass over k + 1 tokens. The interval is that of α.
""",
    alpha=Shown(words=lambda score: _with_interval(score.alpha, score.alpha_low, score.alpha_high)),
    agreement=Shown(written=numbers.percent),
    n_max=Shown(written=lambda n_max: numbers.NONE if n_max is None else str(n_max)),
    factor=Shown(words=lambda score: _with_interval(score.factor, score.factor_low, score.factor_high, "×")),
)
DRAFT_COLUMNS = SIZE_COLUMNS + MEASURED_COLUMNS


_KEPT = 50  # targets


class DraftResults(msgspec.Struct, frozen=True):
    """The report on the drafts of a target, with its date and the files that were measured."""

    target: str  # its path
    prompts: str  # their title
    measured: datetime  # with its time zone
    report: DraftsReport
    paths: tuple[str, ...]  # of the report's drafts
    marks: tuple[FileMark | None, ...]  # theirs; None for a file that cannot be read
    target_mark: FileMark | None
    format: str = FORMAT

    @classmethod
    def of(cls, target: str, prompts: str, trials: DraftTrials) -> DraftResults:
        """The results so far, with the present date. Reads samples of the files."""
        paths = tuple(judged.draft.path for judged in trials.judged)
        marks = tuple(map(mark_of, paths))
        now = datetime.now().astimezone()
        return cls(target, prompts, now, trials.report(), paths, marks, mark_of(target))

    @property
    def scores(self) -> dict[str, DraftScore]:
        """The scores by path, the best first."""
        return dict(zip(self.paths, self.report.drafts, strict=True))

    def unchanged(self) -> DraftResults | None:
        """The results without drafts whose files have changed since; None if nothing is left, or if
        the target has changed. Reads samples of the files."""
        if self.target_mark is None or self.target_mark != mark_of(self.target):
            return None
        same = [
            mark is not None and mark == mark_of(path)
            for mark, path in zip(self.marks, self.paths, strict=True)
        ]
        if not any(same):
            return None
        report = replace(self.report, drafts=tuple(compress(self.report.drafts, same)))
        paths, marks = tuple(compress(self.paths, same)), tuple(compress(self.marks, same))
        return replace(self, report=report, paths=paths, marks=marks)


def results_in(data: bytes) -> DraftResults:
    """The results in a file. Raises DamagedError."""
    results = decode(msgspec.json.Decoder(DraftResults), data)
    if not len(results.paths) == len(results.marks) == len(results.report.drafts):
        raise DamagedError("it names other drafts than it has results of")
    return results


class KeptDrafts:
    """The folder of results: a file for each target."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, results: DraftResults) -> None:
        """Replace this target's results. Raises UserError."""
        make_folder(self._folder)
        with explained("The results cannot be saved", folder=self._folder):
            write_atomic(self._path(results.target), msgspec.json.encode(results))
            files = sorted(self._folder.glob("*.json"), key=lambda file: file.stat().st_mtime)
            for old in files[:-_KEPT]:
                old.unlink(missing_ok=True)

    def read(self, target: str) -> DraftResults | None:
        """The results for this target, for files that are unchanged; None if there are none. Reads samples of
        the files."""
        try:
            return results_in(read_file(self._path(target))).unchanged()
        except (OSError, DamagedError):  # they can be measured again
            return None

    def _path(self, target: str) -> Path:
        return self._folder / f"{hashlib.sha256(target.encode()).hexdigest()[:20]}.json"
