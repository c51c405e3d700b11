"""A depth measurement: every prompt after this many tokens of long documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from app.base import numbers
from app.engine.errors import SettingError
from app.engine.types import ModelOptions
from app.lab.experiment import Experiment, Prompt
from app.lab.report.plots import CurvePlot, Curves, values_of
from app.lab.report.report import Report, depths_of
from app.lab.report.summary import middle, speedup_words
from app.lab.suites import LONG, Suite

DEEPEST = 10_000_000  # tokens
_K = 1024
_SHOWN = (64, 256, _K, 4 * _K, 16 * _K, 64 * _K)
_MOST_SHOWN = 3


def documents_of(suite: Suite) -> str:
    """The documents of the long suite, without their questions: they fill the context of other prompts."""
    return "\n\n".join(prompt.prompt.partition("\n\n")[2] for prompt in suite.prompts)


def at_depths(experiment: Experiment, depths: Sequence[int], suite: Suite) -> Experiment:
    """The experiment with every prompt at every depth: after this many tokens of the long suite's documents.
    Raises SettingError if the prompts are these documents."""
    if set(experiment.prompts) & set(suite.prompts):
        raise SettingError(
            f"A depth fills the context with the documents of the suite {LONG}.", "Choose other prompts."
        )
    prompts = [
        msgspec.structs.replace(prompt, depth=depth) for depth in depths for prompt in experiment.prompts
    ]
    return msgspec.structs.replace(experiment, prompts=tuple(prompts), documents=documents_of(suite))


def without_depths(experiment: Experiment) -> tuple[Prompt, ...]:
    """The prompts of an experiment; those of a depth measurement once each."""
    if not has_depths(experiment):
        return experiment.prompts
    first = experiment.prompts[0].depth
    once = (prompt for prompt in experiment.prompts if prompt.depth == first)
    return tuple(msgspec.structs.replace(prompt, depth=None) for prompt in once)


def has_depths(experiment: Experiment) -> bool:
    """Whether this is a depth measurement."""
    return any(prompt.depth is not None for prompt in experiment.prompts)


def parse_depths(text: str) -> tuple[int, ...]:
    """Depths such as "0, 1024, 4k", where 4k is 4,096; raises SettingError."""
    depths = [_depth(word.strip().lower()) for word in text.split(",")]
    known = [depth for depth in depths if depth is not None and depth <= DEEPEST]
    if len(known) != len(depths):
        raise SettingError(
            f"“{text.strip()}” is not a list of depths.", "Write whole numbers of tokens, such as 0,1k,4k."
        )
    return tuple(dict.fromkeys(known))


def _depth(word: str) -> int | None:
    digits, times = (word[:-1], _K) if word.endswith("k") else (word, 1)
    return int(digits) * times if digits.isascii() and digits.isdigit() and len(digits) < 9 else None


def suggested_depths(room: int | None) -> str:
    """First depths: 0, and the largest usual ones below `room` tokens (None: unknown)."""
    fits = [depth for depth in _SHOWN if depth < (8 * _K if room is None else room)]
    shown = (0, *fits[-_MOST_SHOWN:])
    return ",".join(f"{depth // _K}k" if depth and depth % _K == 0 else str(depth) for depth in shown)


def room_for_depth(experiment: Experiment, n_ctx: Callable[[ModelOptions], int]) -> int | None:
    """The room for a depth and a prompt in the smallest context of all targets, in tokens; None if no context
    is known. `n_ctx` returns a target's context size, 0 if unknown."""
    sizes = {n_ctx(experiment.pair_of(lane).target) for lane in range(len(experiment.lanes))} - {0}
    return max(0, min(sizes) - experiment.max_tokens) if sizes else None


def check_room(depths: Sequence[int], room: int | None, max_tokens: int) -> None:
    """Raise SettingError for depths that leave no room for a prompt and its answer."""
    deep = [depth for depth in depths if room is not None and depth and depth >= room]
    if room is not None and deep:
        raise SettingError(
            f"A depth of {deep[0]:,} tokens does not fit: the context has room for {room + max_tokens:,}, "
            f"and the prompt and an answer of {max_tokens:,} need room too.",
            "Choose smaller depths or shorter answers, or load the target with a longer context.",
        )


DEFINITION = (
    "Depth is the number of a document's tokens before the question; prompt is the median length read. "
    "Tokens/s are emitted tokens / wall time from the start of the first round. Speed-up compares them with "
    "none at the same depth; end to end includes the time to read the prompt. Acceptance is accepted / "
    "drafted tokens. First token is the median time from the request."
)
HEAD = ("lane", "depth", "prompt", "tokens/s", "speed-up (95 %)", "end to end", "acceptance", "first token")


def depth_curves(report: Report) -> Curves | None:
    """Speed-up, acceptance and first-token time against the depth; None without depths."""
    depths = depths_of(report.prompts)
    if not depths:
        return None
    rows = report.by_depth
    factors = ((row.lane, row.depth, row.speedup.factor if row.speedup else None) for row in rows)
    acceptance = values_of(depths, ((row.lane, row.depth, row.acceptance_rate) for row in rows))
    first_token = values_of(depths, ((row.lane, row.depth, middle(row.first_token_seconds)) for row in rows))
    return Curves(
        axis="depth",
        places=depths,
        lanes=tuple(lane.name for lane in report.lanes),
        baselines=frozenset(lane for lane, facts in enumerate(report.lanes) if facts.baseline == lane),
        plots=(
            CurvePlot("speedup", "speed-up", numbers.factor, values_of(depths, factors)),
            CurvePlot("acceptance_rate", "acceptance", numbers.percent, acceptance),
            CurvePlot("first_token_seconds", "first token", numbers.milliseconds, first_token),
        ),
    )


def depth_rows(report: Report) -> Iterator[list[str]]:
    """A row for each lane and depth, lane by lane; one without measured runs has dashes."""
    for row in sorted(report.by_depth, key=lambda row: row.lane):
        assert row.depth is not None
        yield [
            report.lanes[row.lane].name,
            f"{row.depth:,}",
            numbers.digits(middle(row.prompt_tokens)),
            numbers.digits(middle(row.tokens_per_second)),
            speedup_words(row.speedup),
            numbers.factor(row.whole_speedup),
            numbers.percent(row.acceptance_rate),
            numbers.milliseconds(middle(row.first_token_seconds)),
        ]


def depths_left_out(report: Report) -> list[str]:
    """A line for each depth that could not be measured, with the reason."""
    found: dict[str, Sequence[str]] = {}
    for row in report.by_depth:
        if row.failure and not row.runs:
            found.setdefault(f"left out, depth {row.depth:,}: {row.failure}", ())
    return list(found)
