"""The progress of a measurement or a search, in one line."""

from __future__ import annotations

from app.base import numbers
from app.lab.lanes import lane_names
from app.lab.load.levels import level_words
from app.ui.compare.curves.load_work import LoadWork
from app.ui.compare.works.lab_session import LabSession
from app.ui.compare.works.tune_session import TuneSession
from app.ui.state.lab_work import LabWork, Stage


def run_words(session: LabSession) -> str:
    """What an experiment does now."""
    done = f"{session.done:,} of {numbers.count(session.total, 'run')}"
    job, experiment = session.job, session.experiment
    shown = _stage_words(session, done)
    if shown or job is None or experiment is None:
        return shown or done
    depth = experiment.prompts[job.prompt].depth
    behind = "" if depth is None else f" · depth {depth:,}"
    return (
        f"{done} · repeat {job.repeat + 1} of {experiment.repeats} · prompt {job.prompt + 1} of "
        f"{len(experiment.prompts)}{behind} · {lane_names(experiment)[job.lane]}"
    )


def load_words(work: LoadWork) -> str:
    """What a measurement under load does now."""
    latest = work.latest
    done = f"{latest.done if latest is not None else 0:,} of {numbers.count(work.total, 'burst')}"
    shown = _stage_words(work, done)
    if shown or latest is None or work.experiment is None:
        return shown or done
    burst = latest.burst
    speed = numbers.digits(burst.tokens_per_second, "tokens/s")
    load = level_words(burst.level, by_rate=burst.rate is not None)
    return f"{done} · {lane_names(work.experiment)[burst.lane]}, {load}: {speed}"


def search_words(tuning: TuneSession) -> tuple[str, str]:
    """What a search is doing or has done, and the time left in its round."""
    runs = numbers.count(tuning.runs, "run")
    result = tuning.result
    if not tuning.at_work:
        tried = f"{result.tried} of {result.candidates} settings tried, {runs}" if result is not None else ""
        return tried or "Nothing was measured.", ""
    done = "finding out which settings may win"
    if tuning.of:
        settings = numbers.count(len(tuning.strategies), "setting")
        done = f"round {tuning.rung + 1} of {tuning.of} · {settings}"
    shown = _stage_words(tuning, done)
    left = tuning.seconds * (1 - tuning.rung_share)
    return (
        shown or f"{done} · {runs}",
        f"{numbers.duration(left)} left in this round" if left >= 1 and not shown else "",
    )


def _stage_words(work: LabWork, done: str) -> str:
    """The stage where it is not measuring, after the `done` part; "" while it measures."""
    match work.stage:
        case Stage.FREEING:
            return "Unloading the chat's models…"
        case Stage.LOADING:
            return f"{done} · loading {work.words}"
        case Stage.WARMING:
            return f"{done} · warming up; that is not measured"
        case Stage.PAUSED:
            return f"{done} · paused; the current run will restart"
        case Stage.ENDING:
            return f"{done} · ending"
    return ""
