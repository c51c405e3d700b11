"""Results of a load measurement as sentences, table, CSV and HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from app.base import numbers
from app.base.numbers import csv_text
from app.engine.errors import UserError
from app.lab.load.levels import level_words
from app.lab.load.report import BurstReport, LoadRow
from app.lab.report.change import Change, ReportChange, differences_between
from app.lab.report.charts import curve_chart
from app.lab.report.columns import Column, Shown, columns_of
from app.lab.report.export import escaped, markdown_table
from app.lab.report.page import page
from app.lab.report.plots import CurveMark, CurvePlot, Curves, values_of
from app.lab.report.summary import SpeedFinding, Speedup
from app.lab.runs.record import FIRST_TOKEN_TITLE, INTER_TOKEN, INTER_TOKEN_TITLE
from app.servers.address import server_words


def load_sentences(report: BurstReport) -> list[str]:
    """The findings, and the servers' reports about themselves."""
    return [*load_findings(report), *load_notes(report)]


def load_findings(report: BurstReport) -> list[str]:
    """Where drafting stops paying, a sentence for each lane that drafts."""
    return [said for lane in range(len(report.lanes)) if (said := _finding(report, lane))]


def load_notes(report: BurstReport) -> list[str]:
    """The servers' reports about themselves, and notes on the numbers."""
    said = [server_words(lane.server) for lane in report.lanes]
    for facts in report.lanes:
        most = max(report.levels, default=0)
        if 0 < facts.server.slots < most:
            requests = numbers.count(facts.server.slots, "request")
            said.append(f"{facts.name} answers {requests} at once: the others of {most} wait for their turn.")
        if facts.server.speculation and not facts.server.tells_fates:
            said.append(f"{facts.name}: acceptance is for the whole server, including all its users.")
    if report.limits:
        said.append(f"Goodput counts requests with {report.limits.words()}.")
    if failed := sum(row.failed for row in report.rows):
        requests = numbers.count(failed, "request")
        said.append(f"{requests} failed; bursts with a failed request are left out of the rates.")
        said += [f"  {run.failure}" for burst in report.bursts for run in burst.runs if run.failure]
    return list(dict.fromkeys(said))


def _finding(report: BurstReport, lane: int) -> str:
    """Where drafting stops paying, in a sentence; "" for a baseline."""
    facts = report.lanes[lane]
    if facts.baseline == lane:
        return ""
    if facts.baseline is None:
        return (
            f"{facts.name} has no baseline. To see where drafting stops paying, add a server with the same "
            "model and without drafts."
        )
    known = [row for row in report.rows if row.lane == lane and row.gain is not None]
    if not known:
        return ""
    crossing = report.crossings[lane]
    unit = "requests a second" if report.rates else "requests at once"
    if crossing is not None:
        said = f"{facts.name}: drafting pays up to about {crossing:.1f} {unit}."
    elif len(known) == 1:
        pays = "pays" if (known[0].gain or 0.0) > 1 else "does not pay"
        said = f"{facts.name}: drafting {pays} with {_words(known[0])}, the only measured load."
    elif all((row.gain or 0.0) > 1 for row in known):
        said = f"{facts.name}: drafting pays at every measured load, {_ends(known)}."
    elif all((row.gain or 0.0) <= 1 for row in known):
        said = f"{facts.name}: drafting pays at no measured load, {_ends(known)}."
    else:
        said = f"{facts.name}: drafting pays at some loads but not at others. Measure more repeats."
    unsure = [row for row in known if row.interval.finding is SpeedFinding.SAME]
    return f"{said} With {_words(*unsure)} the interval includes 1×." if unsure else said


def _words(*rows: LoadRow) -> str:
    """ "1 request at once", "0.5, 1 and 2 requests a second"."""
    noun = "request" if rows[-1].level == 1 else "requests"
    levels = numbers.listed([f"{row.level:g}" for row in rows])
    return f"{levels} {noun} {'at once' if rows[0].rate is None else 'a second'}"


def _ends(rows: Sequence[LoadRow]) -> str:
    unit = "at once" if rows[0].rate is None else "a second"
    return f"from {rows[0].level:g} to {rows[-1].level:g} {unit}"


def load_change_between(before: BurstReport, after: BurstReport) -> ReportChange[LoadRow]:
    """Compare lanes of the same name at the same load, over bursts of the same prompts; bursts of the same
    repeat are paired. Raises UserError if the prompts differ, or if no lane and load is in both."""
    if before.prompts != after.prompts:
        raise UserError(
            "The two files used different prompts, so their rates cannot be compared.",
            "Measure the same prompts with both, then compare.",
        )
    names = [[_name(report, row) for row in report.rows] for report in (before, after)]
    found = dict(zip(names[1], after.rows, strict=True))
    changes = [
        Change(name, row, found[name], _speed(before, after, row, found[name]))
        for name, row in zip(names[0], before.rows, strict=True)
        if name in found
    ]
    if not changes:
        raise UserError(
            "The two files have no lane and load in common.",
            "Measure the same servers and loads with both, then compare.",
        )
    drawn = any(
        report.settings.sampling.temperature > 0 or any(row.rate is not None for row in report.rows)
        for report in (before, after)
    )
    facts, settings = differences_between(
        (before.system, after.system), (before.settings, after.settings), seeded=drawn
    )
    return ReportChange(
        lanes=tuple(changes),
        prompts=len(before.prompts),
        only_before=tuple(name for name in names[0] if name not in names[1]),
        only_after=tuple(name for name in names[1] if name not in names[0]),
        differences=(*facts, *settings),
    )


def _name(report: BurstReport, row: LoadRow) -> str:
    return f"{report.lanes[row.lane].name}, {level_words(row.level, by_rate=row.rate is not None)}"


def _speed(before: BurstReport, after: BurstReport, old: LoadRow, new: LoadRow) -> Speedup | None:
    rates = [
        {
            burst.repeat: burst.speed
            for burst in report.bursts
            if (burst.lane, burst.at_once, burst.rate) == (row.lane, row.at_once, row.rate) and burst.speed
        }
        for report, row in ((before, old), (after, new))
    ]
    return Speedup.of(
        {repeat: {0: rates[1][repeat] / rate} for repeat, rate in rates[0].items() if repeat in rates[1]}
    )


ABOUT = "Speed, gain and acceptance against the load. If the gain falls to 1, a ring marks that load."

LOAD_COLUMNS: tuple[Column[LoadRow], ...] = columns_of(
    f"""
load  load  Requests at once: as one ends, the next is sent. Or requests a second: they are sent at random
    times (a Poisson process, drawn by the seed), the same for every lane.
tokens_per_second  total tokens/s (95 %)  Tokens of all requests / time. If requests run at once, only the
    time at full load counts. Geometric mean over repeats; an interval needs three.
tokens_per_second_of_one  tokens/s per request  Median over requests of a request's tokens / the time from its
    first token. Only requests that ran at full load to their end count.
gain  gain (95 %)  Total tokens/s / total tokens/s without drafts at the same load. At a rate, each request's
    tokens / its time from sending to the end is used. Geometric mean over repeats.
acceptance_rate  acceptance  Accepted / drafted tokens, pooled over all requests.
first_token  {FIRST_TOKEN_TITLE}  p50, p95 and p99 of the time from a request to its first token, including
    the wait for a free slot.
inter_token  {INTER_TOKEN_TITLE}  {INTER_TOKEN}
goodput  goodput  Requests a second within all limits, and their share of all. A failed request is within
    none.
""",
    load=Shown(lambda row: row.level, words=lambda row: level_words(row.level, by_rate=row.rate is not None)),
    tokens_per_second=Shown(words=lambda row: row.speed_words),
    gain=Shown(written=numbers.factor, words=lambda row: row.gain_words),
    acceptance_rate=Shown(written=numbers.percent),
    first_token=Shown(lambda row: row.first_token_p50, words=lambda row: row.first_token_words),
    inter_token=Shown(lambda row: row.inter_token_p95, words=lambda row: row.inter_token_words),
    goodput=Shown(words=lambda row: row.goodput_words),
)


_PLOTTED = ("tokens_per_second", "tokens_per_second_of_one", "gain", "acceptance_rate", "goodput")


def load_curves(report: BurstReport) -> Curves:
    """Total tokens/s, tokens/s per request, gain, acceptance and goodput against the load."""
    places = report.load.levels
    marks = tuple(
        CurveMark(_place(places, crossing), 1.0, f"{crossing:.1f}")
        for crossing in report.crossings
        if crossing is not None
    )
    plots = []
    for column in LOAD_COLUMNS:
        if column.key in _PLOTTED:
            values = values_of(places, ((row.lane, row.level, column.value(row)) for row in report.rows))
            plot = CurvePlot(column.key, column.title.removesuffix(" (95 %)"), column.written, values)
            compared = column.key == "gain" and values
            plots.append(replace(plot, level=1.0, marks=marks) if compared else plot)
    return Curves(
        axis="requests a second" if report.rates else "requests at once",
        places=places,
        lanes=tuple(lane.name for lane in report.lanes),
        baselines=frozenset(lane for lane, facts in enumerate(report.lanes) if facts.baseline == lane),
        plots=tuple(plots),
    )


def _place(places: Sequence[float], load: float) -> float:
    """The position of a load between the places, on a logarithmic scale."""
    at = next(index for index, (_, high) in enumerate(pairwise(places)) if load <= high)
    low, high = places[at], places[at + 1]
    return at + math.log(load / low) / math.log(high / low)


def load_cells(report: BurstReport) -> tuple[list[str], list[list[str]]]:
    """(headings, a row of texts for every lane and level)"""
    rows = [
        [report.lanes[row.lane].name, *(column.text(row) for column in LOAD_COLUMNS)] for row in report.rows
    ]
    return ["lane", *(column.title for column in LOAD_COLUMNS)], rows


def load_csv(report: BurstReport) -> str:
    """A line for every lane and level."""
    fields = [name for name in LoadRow.__struct_fields__ if name != "lane"]
    rows = ([report.lanes[row.lane].name, *(getattr(row, name) for name in fields)] for row in report.rows)
    return csv_text(["name", *fields], rows)


def load_markdown(report: BurstReport) -> str:
    """The table and the findings, for an issue or a message."""
    lines = [f"### {escaped(report.title or 'Load')}", "", *markdown_table(*load_cells(report))]
    lines += ["", *(f"- {escaped(said)}" for said in load_sentences(report))]
    lines += ["", "What the columns mean:", ""]
    lines += [f"- {column.title}: {column.definition}" for column in LOAD_COLUMNS]
    return "\n".join(lines) + "\n"


def load_html(report: BurstReport) -> str:
    """The report as one HTML page with its data."""
    head, rows = load_cells(report)
    prompts = numbers.count(len(report.prompts), "prompt")
    repeats = numbers.count(report.settings.repeats, "repeat")
    tokens = numbers.count(report.settings.max_tokens, "token")
    return page(
        "load.html",
        report.title or "Draftscope load",
        report.to_json(),
        what=f"{report.created_at[:10]}, {prompts}, {repeats}, up to {tokens} each.",
        findings=load_findings(report),
        notes=load_notes(report),
        chart=curve_chart(load_curves(report), ABOUT),
        about=ABOUT,
        head=head,
        rows=rows,
        columns=LOAD_COLUMNS,
    )
