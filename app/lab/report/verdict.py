"""A measurement in sentences, for window, command line and reports: result, size, where answers diverge from
their baseline, and what servers did not report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.base import numbers
from app.base.numbers import count
from app.engine.strategy import SERVER, SYNTHETIC, is_synthetic
from app.engine.templates.options import option_text
from app.engine.types import WholeServer
from app.lab.quants import quant_rows, quants_verdict
from app.lab.report.plots import best_cell, heat_map
from app.lab.report.report import Report, depths_of
from app.lab.report.summary import SpeedFinding, Speedup, merit, middle, speedup_words
from app.lab.runs.compare import keeps_text
from app.lab.runs.record import RunRecord
from app.servers.address import server_words, whole_words

_MOST_NAMES = 3  # of lanes that come near the fastest
_NOTHING = "nothing is clearly faster than the baseline"


def fastest(report: Report) -> int | None:
    """The lane that `verdict` calls the fastest; None if none is shown to beat its baseline."""
    known = _compared(report, synthetic=False)
    best = max(known, key=lambda lane: merit(known[lane]), default=None)
    return best if best is not None and known[best].finding is SpeedFinding.FASTER else None


def verdict(report: Report) -> str:
    """The result, claiming no more than the intervals show. Synthetic lanes, which cannot be used, are named
    as such."""
    if report.by_depth:
        return _over_depths(report)
    if rows := quant_rows(report):
        return quants_verdict(report, rows)
    real, synthetic = _compared(report, synthetic=False), _compared(report, synthetic=True)
    parts = [_result(report, real)] if real or not synthetic else []
    if synthetic:
        best = max(synthetic, key=lambda lane: merit(synthetic[lane]))
        which = f"The best of {len(synthetic)} synthetic lanes, " if len(synthetic) > 1 else ""
        shown = speedup_words(synthetic[best])
        parts.append(f"{which}{report.lanes[best].name} measured {shown}. oracle is {SYNTHETIC}.")
    return " ".join(parts)


def _over_depths(report: Report) -> str:
    """The fastest lane at each depth; over all depths there may be none."""
    parts = []
    for depth in depths_of(report.prompts):
        known = {
            row.lane: row.speedup
            for row in report.by_depth
            if row.depth == depth and row.speedup and row.lane != report.lanes[row.lane].baseline
        }
        best = max(known, key=lambda lane: merit(known[lane]), default=None)
        if best is None:
            parts.append(f"{depth:,}: not measured")
        elif known[best].finding is SpeedFinding.FASTER:
            parts.append(f"{depth:,}: {report.lanes[best].name} {speedup_words(known[best])}")
        elif known[best].finding is SpeedFinding.UNSURE and known[best].factor > 1:
            shown = numbers.factor(known[best].factor)
            parts.append(f"{depth:,}: {report.lanes[best].name} {shown}, without an interval")
        else:
            parts.append(f"{depth:,}: {_NOTHING}")
    if all(part.endswith(_NOTHING) for part in parts):
        return "No lane is clearly faster than the baseline at any depth."
    return f"The fastest at depth {'; at '.join(parts)}."


def _result(report: Report, known: dict[int, Speedup]) -> str:
    if not known:
        alone = all(lane.baseline == index for index, lane in enumerate(report.lanes))
        return _speeds(report) if alone else "Nothing could be compared."
    best = max(known, key=lambda lane: merit(known[lane]))
    name, speedup = report.lanes[best].name, known.pop(best)
    shown = speedup_words(speedup)
    several = report.baselines > 1  # factors over different baselines rank gains, not speeds
    base = "its own baseline" if several else "the baseline"
    match speedup.finding:
        case SpeedFinding.FASTER:
            text = f"{name} is the fastest measured: {shown} as fast as the baseline."
            if several:
                text = f"{name} gains most over its own baseline: {shown} as fast.{_most_speed(report)}"
            text += _exceptions(report, best)
            near = [lane for lane, rival in known.items() if (rival.high or 0.0) >= (speedup.low or 0.0)]
            near.sort(key=lambda lane: known[lane].factor, reverse=True)
            names = [report.lanes[lane].name for lane in near]
            if len(names) > _MOST_NAMES + 1:
                names[_MOST_NAMES:] = [f"{len(names) - _MOST_NAMES} more"]
            may = "may gain just as much" if several else "may be just as fast"
            return f"{text} {numbers.listed(names)} {may} (the intervals overlap)." if names else text
        case SpeedFinding.SLOWER:
            text = f"Nothing was faster than {base}; the nearest, {name}, was {shown} as fast."
            return _kinds(report) + text
        case SpeedFinding.SAME:
            noun = "setting" if report.sweep else "lane"
            return _kinds(report) + (
                f"No {noun} is clearly faster than {base}: the best, {name}, measured {shown}, and the "
                "interval includes 1×."
            )
        case SpeedFinding.UNSURE:
            most = ", the most" if known else ""
            more = "Add prompts or repeats" if report.complete else "Finish the runs"
            return f"{name} measured {shown}{most}. {more} for an interval."


def _exceptions(report: Report, best: int) -> str:
    """The categories in which the fastest lane is shown to be slower than the baseline or a different lane:
    the overall speed-up does not apply there."""
    said = []
    for name in report.categories if len(report.categories) > 1 else ():
        rows = {row.lane: row.speedup for row in report.by_category if row.category == name and row.speedup}
        mine = rows.pop(best, None)
        if mine is None:
            continue
        if mine.finding is SpeedFinding.SLOWER:
            said.append(f"{name}, where it is slower than the baseline, {numbers.factor(mine.factor)}")
            continue
        rival = max(rows, key=lambda lane: rows[lane].factor, default=None)
        if rival is not None and (rows[rival].low or 0.0) > (mine.high or float("inf")):
            factor = numbers.factor(rows[rival].factor)
            said.append(f"{name}, where {report.lanes[rival].name} is faster, {factor}")
    return f" Not in {numbers.listed(said)}." if said else ""


def _kinds(report: Report) -> str:
    """The categories in which a lane is shown to be faster than the baseline, if no lane is overall."""
    won = []
    for name in report.categories if len(report.categories) > 1 else ():
        known = _compared(report, synthetic=False, category=name)
        best = max(known, key=lambda lane: merit(known[lane]), default=None)
        if best is not None and known[best].finding is SpeedFinding.FASTER:
            won.append(f"for {name}, {report.lanes[best].name} {numbers.factor(known[best].factor)}")
    return f"Nothing pays overall; {'; '.join(won)}. " if won else ""


def _speeds(report: Report) -> str:
    """The speeds of strategy none, compared with nothing."""
    measured = [summary for summary in report.summary if summary.tokens_per_second]
    if not measured:
        return "Nothing could be measured."
    speeds = [
        f"{report.lanes[summary.lane].name} {numbers.digits(middle(summary.tokens_per_second))} tokens/s "
        f"(median of {numbers.count(summary.runs, 'run')})"
        for summary in measured
    ]
    return f"Measured {numbers.listed(speeds)}. Nothing was compared with it."


def _most_speed(report: Report) -> str:
    """The cell of a sweep with the most tokens/s; with several baselines it may not have the largest
    factor."""
    best = best_cell(report.sweep, heat_map(report)) if report.sweep is not None else None
    if best is None:
        return ""
    return f" {best.name} has the most tokens/s, {numbers.digits(best.tokens_per_second)}."


def _compared(report: Report, *, synthetic: bool, category: str | None = None) -> dict[int, Speedup]:
    """The speed-ups of all synthetic lanes, or of all others but the baselines, over all prompts or a
    category."""
    return {
        summary.lane: summary.speedup
        for summary in (report.summary if category is None else report.by_category)
        if summary.speedup
        and summary.category == category
        and summary.lane != report.lanes[summary.lane].baseline
        and is_synthetic(summary.strategy) == synthetic
    }


def what_was_measured(report: Report) -> str:
    """A sentence on how much was measured, and how."""
    sampling = report.settings.sampling
    drawing = "greedy" if sampling.temperature == 0 else f"temperature {sampling.temperature:g}"
    told = "".join(f", {option_text(*option)}" for option in report.settings.template_options.items())
    done = "" if report.complete else f" ({len(report.runs)} runs were done before it was stopped)"
    return (
        f"{count(len(report.prompts), 'prompt')} × {count(report.settings.repeats, 'repeat')}{done}, up to "
        f"{count(report.settings.max_tokens, 'token')} each, {drawing}{told}, seed {sampling.seed}; "
        "every run cold"
    )


def equality(report: Report) -> str:
    """A sentence on how many answers have exactly their baseline's tokens, and how many runs failed."""
    drafting = [summary for summary in report.summary if summary.lane != report.lanes[summary.lane].baseline]
    compared = sum(summary.compared for summary in drafting)
    identical = sum(summary.identical for summary in drafting)
    failed = sum(summary.failed for summary in report.summary)
    text = f"{identical:,} of {count(compared, 'compared answer')} have exactly the baseline's tokens."
    if not compared:
        text = "No answer could be compared with the baseline."
    return f"{text} {count(failed, 'run')} failed." if failed else text


def parting_lines(report: Report) -> Iterator[str]:
    """A line for every place where a lane's answer diverges from the baseline's, with the repeats."""
    found: dict[tuple[object, ...], list[RunRecord]] = {}
    for run in report.runs:
        if (parting := run.first_divergence) is not None:
            what = parting.token, parting.baseline_token, parting.near_tie
            found.setdefault((run.lane, run.prompt_index, parting.index, *what), []).append(run)
    for runs in found.values():
        yield _parting(report, runs)


def _parting(report: Report, runs: Sequence[RunRecord]) -> str:
    run, parting = runs[0], runs[0].first_divergence
    assert parting is not None
    gap = "" if parting.logit_gap is None else f", logit gap {numbers.digits(parting.logit_gap)}"
    why = ""
    if not keeps_text(run.strategy, report.temperature_of(run.lane)):
        why = " (as expected: the rule keeps the target's distribution, not the text)"
    elif parting.near_tie:
        why = " (rounding tie)"
    elif parting.perhaps_tie:
        why = " (perhaps a rounding tie: draftscope audit finds out)"
    repeats = ", ".join(str(run.repeat + 1) for run in runs)
    return (
        f"{report.lanes[run.lane].name}, prompt {run.prompt_index + 1}, repeat {repeats}, token "
        f"{parting.index + 1}: {parting.token_text!r} instead of {parting.baseline_text!r}{gap}{why}"
    )


def server_notes(report: Report) -> list[str]:
    """A sentence on every server of a report, and on what it did not report."""
    servers = [server_words(lane.server) for lane in report.lanes if lane.server is not None]
    return [*dict.fromkeys(servers), *server_limits(report)]


def server_limits(report: Report) -> list[str]:
    """A sentence on each fact that a report's servers did not provide."""
    limits = []
    for index, lane in enumerate(report.lanes):
        if lane.server is None:
            continue
        if lane.baseline is None:
            limits.append(
                f"{lane.name} has no baseline: the server cannot turn drafting off. Add a server with the "
                "same model and without drafts."
            )
        runs = [run for run in report.runs if run.lane == index]
        if not all(run.cold for run in runs):
            limits.append(
                f"{lane.name} is warm: the server also drafts from earlier answers and cannot forget them."
            )
        if lane.strategy == SERVER and not lane.server.tells_fates:
            limits.append(f"{lane.name}: {_whole([run.whole_server for run in runs if run.whole_server])}")
    return list(dict.fromkeys(limits))


def _whole(counts: list[WholeServer]) -> str:
    """A server's counts for all its users while it was measured."""
    total = WholeServer(sum(count.drafted for count in counts), sum(count.accepted for count in counts))
    if not (told := whole_words(total)):
        return "the server reports nothing about its drafts."
    return (
        "the server does not report drafts per answer. Acceptance of the whole server, including all its "
        f"users, during the measurement: {told}."
    )
