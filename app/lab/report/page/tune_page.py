"""A search as one HTML page: opens offline, holds its own data."""

from __future__ import annotations

import html
from collections.abc import Iterator

from app.base import numbers
from app.lab.report.interval import speedup_words
from app.lab.report.page.page import document, facts, lane_html
from app.lab.tune.tuned import TuneReport

_e = html.escape


def tune_html(report: TuneReport) -> str:
    """The report of a search as an HTML document."""
    return document(
        report.title or "Draftscope search",
        [
            f'<p class="soft">{_e(_what(report))}</p>',
            f'<p class="verdict">{_e(report.headline)}. {_e(report.reason)}</p>',
            *([f"<p>{_e(report.by_kind)}</p>"] if report.by_kind else []),
            *_table(report),
            *facts(report),
            "<details><summary>Prompts</summary><ol>",
            *(f"<li><pre>{_e(prompt.shown)}</pre></li>" for prompt in report.prompts),
            "</ol></details>",
        ],
        report.to_json(),
    )


def _what(report: TuneReport) -> str:
    return (
        f"Search for the fastest setting: {report.tried} of {numbers.count(report.candidates, 'candidate')} "
        f"tried in {numbers.duration(report.seconds)}, on {numbers.count(len(report.prompts), 'prompt')}, "
        f"up to {numbers.count(report.settings.max_tokens, 'token')}; every run cold. "
        f"{report.created_at[:10]}"
    )


def _table(report: TuneReport) -> Iterator[str]:
    head = ("setting", "speed-up (95\N{NO-BREAK SPACE}%)", "end to end", "acceptance", "answers", "round", "")
    yield '<div class="scroll"><table><thead><tr>'
    yield "".join(f"<th>{_e(title)}</th>" for title in head) + "</tr></thead><tbody>"
    for rung, score in report.latest:
        kind = score.speedup.finding.name.lower() if score.speedup else ""
        yield (
            f"<tr><td>{lane_html(score.strategy)}</td>"
            f'<td class="{kind}">{_e(speedup_words(score.speedup))}</td>'
            f"<td>{_e(numbers.factor(score.whole_speedup))}</td>"
            f"<td>{_e(numbers.percent(score.acceptance_rate))}</td><td>{score.answers}</td><td>{rung}</td>"
            f"<td>{_e(report.fate(score))}</td></tr>"
        )
    yield "</tbody></table></div>"
    if report.left_out:
        lines = (f"<li>{_e(left_out.what)}: {_e(left_out.reason)}</li>" for left_out in report.left_out)
        yield f"<p>Not tried:</p><ul>{''.join(lines)}</ul>"
    yield (
        '<div class="definitions"><p><b>speed-up</b>: tokens/s over that of strategy none on the same '
        "prompts; the interval is where it would lie for other, similar prompts at another time.</p>"
        "<p><b>end to end</b>: the same, including the time to read the prompt.</p>"
        "<p><b>answers</b>: those measured in the setting's last round, every repeat counted. Each round "
        "drops the slower settings and gives the rest longer answers.</p></div>"
    )
