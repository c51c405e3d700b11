"""The files of every kind of report, the same in window and command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.lab.load.export import load_csv, load_html, load_markdown
from app.lab.load.report import BurstReport
from app.lab.report.export import csv_table, markdown
from app.lab.report.page import html_page
from app.lab.report.report import Report
from app.lab.tune.tuned import TuneReport, tune_html

AnyReport = Report | BurstReport | TuneReport


def _json(report: AnyReport) -> bytes:
    return report.to_json()


def _text(made: Callable[[Any], str]) -> Callable[[Any], bytes]:
    return lambda report: made(report).encode()


WRITERS: Mapping[type[AnyReport], Mapping[str, Callable[[Any], bytes]]] = {
    Report: {".html": _text(html_page), ".md": _text(markdown), ".json": _json, ".csv": _text(csv_table)},
    BurstReport: {
        ".html": _text(load_html),
        ".md": _text(load_markdown),
        ".json": _json,
        ".csv": _text(load_csv),
    },
    TuneReport: {".html": _text(tune_html), ".json": _json},
}
"""Kind of report -> end of a file's name -> what makes its content."""
