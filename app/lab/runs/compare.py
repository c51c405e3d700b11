"""The traces of runs, and a run compared with its baseline: speed-up, and where their answers diverge."""

from __future__ import annotations

import gzip
import io
import math
import os
import shutil
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from app.base.files import explained, make_own_folder, partial_of, read_file, write_atomic
from app.engine.errors import TraceError
from app.engine.record.trace import Trace, parse_trace, trace_bytes
from app.engine.rules.registry import rule_of
from app.engine.sampling.draws import Draws, Purpose
from app.engine.sampling.logits import LARGEST_ROUNDING, PERHAPS_ROUNDING
from app.engine.sampling.noise import luck
from app.engine.strategy import SERVER, StrategySpec
from app.engine.types import Alternatives, FinishReason, Round
from app.lab.experiment import Experiment, Job
from app.lab.runs.record import Divergence, RunRecord

_FILES = "*.jsonl.gz"
_LEVEL = 3  # compresses to a tenth; a higher level costs more time than it saves


class TraceStore:
    """Keeps traces on disk, so that a long suite does not fill memory and a crash loses nothing."""

    def __init__(self, folder: Path | None = None) -> None:
        """Without a `folder` the traces are in a temporary one, until `close`."""
        self._remove: Callable[[], object] | None = None
        above = folder.parent if folder is not None else "for temporary files"
        with explained("The folder for traces cannot be made", folder=above):
            if folder is None:
                self.folder = Path(tempfile.mkdtemp(prefix="draftscope-"))
                self._remove = weakref.finalize(self, shutil.rmtree, self.folder, True)
            else:
                self.folder = folder
                make_own_folder(self.folder)

    def put(self, job: Job, trace: Trace) -> None:
        """Write a trace, whole or not at all. Raises UserError."""
        with explained("A trace cannot be written", "Then resume from the journal.", folder=self.folder):
            write_atomic(self._path(job), gzip.compress(trace_bytes(trace), _LEVEL, mtime=0))

    def get(self, job: Job) -> Trace | None:
        """The trace of a run; None if there is none. Raises TraceError if it is damaged."""
        try:
            lines = _lines(self._path(job))
        except OSError:
            return None
        return parse_trace(io.BytesIO(lines), self._path(job).name)

    def readable(self, job: Job) -> Trace | None:
        """Like `get`, but None if it is damaged, because a run's numbers do not depend on its trace."""
        try:
            return self.get(job)
        except TraceError:
            return None

    def clear(self) -> None:
        """Remove all traces, left by an earlier measurement of this name. Raises UserError."""
        with explained(f"The traces in {self.folder.name} cannot be removed", "Choose a different name."):
            for file in self.folder.glob(_FILES):
                file.unlink()

    def archive(self, path: Path, stopped: Callable[[], bool] = lambda: False) -> None:
        """Write all traces to a zip file, as files that the window and `draftscope replay` read. If
        `stopped`, no file is written.

        Raises OSError, and TraceError if a trace is damaged.
        """
        partial = partial_of(path)
        try:
            with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
                for file in sorted(self.folder.glob(_FILES)):
                    if stopped():
                        return
                    archive.writestr(file.name.removesuffix(".gz"), _lines(file))
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove a temporary folder."""
        if self._remove is not None:
            self._remove()

    def _path(self, job: Job) -> Path:
        return self.folder / f"{job.prompt:04}-{job.repeat:02}-{job.lane:02}.jsonl.gz"


def _lines(file: Path) -> bytes:
    """The lines of a trace; raises OSError, and TraceError if the file is damaged."""
    data = read_file(file)
    try:
        return gzip.decompress(data)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TraceError(f"{file.name} is damaged: {error}.") from error


BROKEN = (FinishReason.CANCELLED, FinishReason.FAILED)
"""Runs that ended like this are not measurements."""


def keeps_text(strategy: str, temperature: float) -> bool:
    """Whether a lane's rule promises exactly the baseline's tokens, apart from rounding ties."""
    if strategy == SERVER:
        return temperature == 0
    return StrategySpec.parse(strategy).verification_at(temperature).keeps_text


def is_measured(record: RunRecord | None) -> bool:
    return record is not None and record.finish_reason not in BROKEN and bool(record.tokens_per_second)


def compared(
    record: RunRecord,
    baseline: RunRecord | None,
    traces: Callable[[], tuple[Trace | None, Trace | None]] = lambda: (None, None),
) -> RunRecord:
    """`record` with its comparisons; they stay None if either run was not measured.

    `traces` returns the traces of the run and of its baseline; it is called only if the answers diverge.
    """
    if baseline is None or not is_measured(record) or not is_measured(baseline):
        return record
    assert record.tokens_per_second is not None and baseline.tokens_per_second is not None
    # The texts too: not every server reports its tokens.
    whole, base = record.n_tokens * baseline.whole_seconds, baseline.n_tokens * record.whole_seconds
    identical = (record.token_ids, record.text) == (baseline.token_ids, baseline.text)
    pair = (None, None) if identical else traces()
    return msgspec.structs.replace(
        record,
        baseline_lane=baseline.lane,
        speedup=record.tokens_per_second / baseline.tokens_per_second,
        end_to_end_speedup=whole / base if base > 0 else None,
        identical_to_baseline=identical,
        first_divergence=first_divergence(record.token_ids, baseline.token_ids, *pair),
    )


def compared_run(
    experiment: Experiment,
    job: Job,
    records: Mapping[Job, RunRecord],
    trace_of: Callable[[Job], Trace | None],
) -> RunRecord:
    """The record of a run with its comparisons; if a trace is missing, the details of a divergence are left
    out."""
    base = experiment.baseline_job(job)
    if base is None:
        return records[job]
    return compared(records[job], records.get(base), lambda: (trace_of(job), trace_of(base)))


def compared_runs(
    experiment: Experiment, records: Mapping[Job, RunRecord], traces: TraceStore
) -> dict[Job, RunRecord]:
    """Every record with its comparisons."""
    return {job: compared_run(experiment, job, records, traces.readable) for job in records}


def first_divergence(
    ids: Sequence[int], baseline_ids: Sequence[int], trace: Trace | None, baseline: Trace | None
) -> Divergence | None:
    """Where an answer first diverges from its baseline's; None if it does not."""
    shared = min(len(ids), len(baseline_ids))
    index = next((i for i in range(shared) if ids[i] != baseline_ids[i]), shared)
    if index == shared and len(ids) == len(baseline_ids):
        return None
    token = ids[index] if index < len(ids) else None
    expected = baseline_ids[index] if index < len(baseline_ids) else None
    if trace is None or baseline is None or token is None or expected is None:
        return Divergence(index, expected, token)
    here, there = _place(baseline, index), _place(trace, index)
    logit_gap = _gap(here, index, expected, token, baseline)
    ours = _gap(there, index, expected, token, trace)
    difference = None if logit_gap is None or ours is None else abs(logit_gap - ours)
    leads = _lead(baseline, here, index, token), _lead(trace, there, index, expected)
    near_tie = _is_near_tie(trace, logit_gap, difference, *leads)
    texts = _text(here, index), _text(there, index)
    return Divergence(index, expected, token, *texts, logit_gap, difference, near_tie)


def _place(trace: Trace, index: int) -> Round:
    """The round that emitted token `index`."""
    return next(
        round for round in trace.rounds if round.position <= index < round.position + len(round.emitted)
    )


def _text(round: Round, index: int) -> str:
    token = round.emitted[index - round.position]
    return token.piece.decode("utf-8", errors="replace") or token.label


def _lead(trace: Trace, round: Round, index: int, other: int) -> float | None:
    """By how much the score of token `index` exceeds that of a different token, in this answer's pass. None
    if it was not drawn by luck, or the other's p is not recorded."""
    place = index - round.position
    race = round.emitted[place].race
    if race is None or race.rival == other:
        return race.gap if race is not None else None
    p = _probability(round.target_top[place], other) if place < len(round.target_top) else None
    key = Draws(trace.header.seed).key(index, Purpose.TOKEN)
    return race.score - (math.log(p) + luck(key, other)) if p else None


def _gap(round: Round, index: int, expected: int, token: int, trace: Trace) -> float | None:
    """The target's logit of `expected` minus that of `token`, in this answer's pass. It is computed from the
    recorded probabilities at the sampling temperature (at temperature 0: at temperature 1).
    """
    row = index - round.position
    if row >= len(round.target_top):
        return None
    p, q = _probability(round.target_top[row], expected), _probability(round.target_top[row], token)
    if not p or not q:
        return None
    return (math.log(p) - math.log(q)) * (trace.header.sampling.temperature or 1.0)


def _probability(top: Alternatives, token: int) -> float | None:
    return top.p[top.ids.index(token)] if token in top.ids else None


def _is_near_tie(
    trace: Trace, gap: float | None, difference: float | None, here: float | None, there: float | None
) -> bool | None:
    """Whether rounding of the batch widths alone explains the divergence; None if unknown."""
    rule, temperature = rule_of(trace.header.verification), trace.header.sampling.temperature
    if temperature == 0:
        if gap is None or difference is None:
            return None
        # Where the gap moved by less than its size, both passes agree which logit is larger: one answer is
        # wrong.
        return _is_rounding(difference) if abs(gap) <= difference else False
    if not rule.keeps_text or here is None or there is None:
        return None
    # With the same luck in both, the logits moved by as much as both leads together.
    return _is_rounding(temperature * (here + there))


def _is_rounding(moved: float) -> bool | None:
    """Whether rounding can move two logits this far; None if that depends on the model and its kernels, which
    two answers do not show."""
    return moved < LARGEST_ROUNDING or (None if moved < PERHAPS_ROUNDING else False)
