"""Disturbances of a measurement: other programs, a changed baseline speed, a break."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from statistics import fmean, linear_regression

from app.base import numbers
from app.lab.report.report import Report
from app.lab.report.summary import student_t
from app.lab.runs.compare import is_measured
from app.lab.runs.record import RunRecord

_SPARE = 0.5  # cores that other programs may take where our threads leave none
_MUCH = 0.2  # share of the measured time
_FEWEST_IN_TIME = 4  # runs
_CLEAR = 1.5  # times Student's t at 97.5 %: prompts differ too, and chance orders them
_UNSTEADY = 0.10  # share of the speed: on a quiet machine a baseline differs by a few per cent


def disturbances(report: Report) -> list[str]:
    """A sentence on what is not compared, and one for each disturbance that casts doubt on the numbers."""
    baselines = {lane.baseline for lane in report.lanes if lane.baseline is not None}
    names = {lane: report.lanes[lane].name for lane in baselines}
    found = other_load(report.runs, report.system.cores, report.system.threads)
    return [
        *_left_out(report),
        *_breaks(report),
        *found,
        *(text for lane in sorted(names) for text in unsteady(report.runs, lane, names[lane])),
    ]


def _left_out(report: Report) -> Iterator[str]:
    """A sentence on prompts that lanes failed to answer, which are in no lane's numbers."""
    if not report.left_out:
        return
    places = Counter(out.prompt_index for out in report.left_out)
    whole = all(repeats == report.settings.repeats for repeats in places.values())
    left = len(places) if whole else len(report.left_out)
    of = len(report.prompts) * (1 if whole else report.settings.repeats)
    what = f"{'prompts' if whole else 'runs of each lane'} {'is' if left == 1 else 'are'}"
    lanes = dict.fromkeys(report.lanes[lane].name for out in report.left_out for lane in out.lanes)
    yield (
        f"Only answers that every lane completed are compared: {left:,} of {of:,} {what} left out, "
        f"because {numbers.listed(list(lanes))} failed."
    )


def other_load(runs: Collection[RunRecord], cores: int, threads: int) -> Iterator[str]:
    """A sentence if other programs took cores that our `threads` needed, out of `cores`."""
    known = [(run.seconds, run.other_load) for run in runs if is_measured(run) and run.other_load is not None]
    limit = max(_SPARE, cores - threads - _SPARE)
    disturbed = [(seconds, load) for seconds, load in known if load > limit]
    time = math.fsum(seconds for seconds, _ in disturbed)
    share = time / whole if (whole := math.fsum(seconds for seconds, _ in known)) else 0.0
    if share >= _MUCH:
        load = math.fsum(seconds * load for seconds, load in disturbed) / time
        yield (
            f"The machine was busy: for {numbers.percent(share, 0)} of the time other programs took "
            f"{load:.1f} of {numbers.count(cores, 'core')}. Close them and measure again."
        )


def _breaks(report: Report) -> Iterator[str]:
    """A sentence if the measurement was resumed."""
    if report.resumed:
        times = {1: "once", 2: "twice"}.get(report.resumed, f"{report.resumed} times")
        before = sum(run.resumed == 0 for run in report.runs)
        runs = numbers.count(len(report.runs), "run")
        yield (
            f"The measurement was resumed {times}: {before:,} of {runs} were made before the first break, "
            "perhaps under different conditions."
        )


def unsteady(runs: Sequence[RunRecord], lane: int, name: str) -> Iterator[str]:
    """A sentence if a baseline's speed differed between repeats on the same prompts, or over time."""
    mine = [run for run in runs if run.lane == lane and is_measured(run) and run.tokens_per_second]
    between = list(_between_repeats(mine, name))
    yield from between or _over_time(mine, name)


def _over_time(runs: Sequence[RunRecord], name: str) -> Iterator[str]:
    """A sentence if the speed rose or fell from the first run to the last, even within one repeat. Prompts
    are in random order, so they do not explain a trend; early records, in the order of prompts, are left out.
    The trend is a line through the logarithms of the speeds, without the effects of prompts that were asked
    several times. It counts if it is large, and clear compared with the scatter around the line.
    """
    ordered = sorted((run for run in runs if run.started_at), key=lambda run: run.started_at)
    if len(ordered) < _FEWEST_IN_TIME:
        return
    speeds = [math.log(run.tokens_per_second or 1.0) for run in ordered]
    by_prompt: dict[int, list[float]] = defaultdict(list)
    for run, speed in zip(ordered, speeds, strict=True):
        by_prompt[run.prompt_index].append(speed)
    if len(by_prompt) < len(ordered):
        mean = fmean(speeds)
        means = [fmean(by_prompt[run.prompt_index]) for run in ordered]
        speeds = [speed - of_prompt + mean for speed, of_prompt in zip(speeds, means, strict=True)]
    slope, start = linear_regression(range(len(speeds)), speeds)
    end = start + slope * (len(speeds) - 1)
    rest = math.fsum((speed - start - slope * at) ** 2 for at, speed in enumerate(speeds))
    degrees = len(speeds) - 2
    spread = math.sqrt(rest / degrees / (len(speeds) * (len(speeds) ** 2 - 1) / 12))  # of the slope
    if abs(slope) > _CLEAR * student_t(degrees) * spread and 1 - math.exp(-abs(end - start)) > _UNSTEADY:
        first, last = numbers.digits(math.exp(start)), numbers.digits(math.exp(end))
        yield (
            f"The baseline drifted: “{name}” went from {first} to {last} tokens/s between its first and its "
            "last run."
        )


def _between_repeats(runs: Sequence[RunRecord], name: str) -> Iterator[str]:
    """A sentence if the speed on the same prompts differed between repeats."""
    logs: dict[int, dict[int, float]] = defaultdict(dict)  # by prompt, then by repeat
    for run in runs:
        logs[run.prompt_index][run.repeat] = math.log(run.tokens_per_second or 1.0)
    apart = [
        (repeat, value - fmean(each.values()))
        for each in logs.values()
        if len(each) > 1
        for repeat, value in each.items()
    ]
    free = len(apart) - sum(len(each) > 1 for each in logs.values())
    if free < 1:
        return
    by_repeat: dict[int, list[float]] = defaultdict(list)
    for repeat, value in apart:
        by_repeat[repeat].append(value)
    means = {repeat: fmean(values) for repeat, values in by_repeat.items()}
    slow, fast = min(means, key=lambda repeat: means[repeat]), max(means, key=lambda repeat: means[repeat])
    slower = 1 - math.exp(means[slow] - means[fast])
    spread = math.sqrt(math.fsum(value**2 for _, value in apart) / free)
    if slower > _UNSTEADY:
        yield (
            f"The baseline drifted: “{name}” was {numbers.percent(slower)} slower in repeat {slow + 1} than "
            f"in repeat {fast + 1}."
        )
    elif spread > _UNSTEADY:
        differed = numbers.percent(spread)
        yield f"The baseline was unsteady: “{name}” differed by {differed} on the same prompts."
