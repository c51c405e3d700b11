"""The exports of a measurement."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QThread, Signal

from app.base.files import reason
from app.engine.errors import UserError
from app.lab.facts import Digest, sha256
from app.lab.load.export import load_csv, load_html, load_markdown
from app.lab.load.report import BurstReport
from app.lab.report.export import csv_table, markdown
from app.lab.report.page import html_page
from app.lab.report.report import Report
from app.lab.runs.compare import TraceStore
from app.lab.tune.tuned import TuneReport, tune_html
from app.ui.widgets.plot import write_export

R = TypeVar("R", Report, TuneReport)
Made = Callable[[Report], bytes]

KINDS: tuple[tuple[str, str, str, Made], ...] = (
    (
        "Report as one HTML page…",
        "comparison.html",
        "HTML page (*.html)",
        lambda report: html_page(report).encode(),
    ),
    ("Markdown for an issue…", "comparison.md", "Markdown (*.md)", lambda report: markdown(report).encode()),
    ("Everything as JSON…", "comparison.json", "JSON (*.json)", lambda report: report.to_json()),
    ("Runs as CSV…", "runs.csv", "CSV table (*.csv)", lambda report: csv_table(report).encode()),
)
TUNE_KINDS: tuple[tuple[str, str, str, Callable[[TuneReport], bytes]], ...] = (
    (
        "Report as one HTML page…",
        "search.html",
        "HTML page (*.html)",
        lambda report: tune_html(report).encode(),
    ),
    ("Everything as JSON…", "search.json", "JSON (*.json)", lambda report: report.to_json()),
)
LOAD_KINDS: tuple[tuple[str, str, str, Callable[[BurstReport], bytes]], ...] = (
    (
        "Report as one HTML page…",
        "load.html",
        "HTML page (*.html)",
        lambda report: load_html(report).encode(),
    ),
    (
        "Markdown for an issue…",
        "load.md",
        "Markdown (*.md)",
        lambda report: load_markdown(report).encode(),
    ),
    ("Everything as JSON…", "load.json", "JSON (*.json)", lambda report: report.to_json()),
    ("Table as CSV…", "load.csv", "CSV table (*.csv)", lambda report: load_csv(report).encode()),
)
TRACES = ("Traces of all runs…", "traces.zip", "Archive (*.zip)")


class Saving(QThread):
    """Writes a file on its own thread, because digests read whole models."""

    done = Signal(str)  # the file's name
    failed = Signal(object)  # UserError

    def __init__(self, write: Callable[[Callable[[], bool]], None], name: str) -> None:
        """`write` is called with a function that says whether to stop."""
        super().__init__()
        self._write = write
        self._name = name
        self._stopped = False

    def run(self) -> None:
        try:
            self._write(lambda: self._stopped)
        except UserError as error:
            self.failed.emit(error)
        except OSError as error:
            self.failed.emit(
                UserError(f"{self._name} was not saved: {reason(error)}.", "Choose another folder.")
            )
        else:
            self.done.emit(self._name)

    def end(self) -> None:
        """Stop, and wait for the thread; called before the window closes."""
        self._stopped = True
        self.wait()


def save_report(
    report: Callable[[Digest], R], made: Callable[[R], bytes], path: Path, measuring: Callable[[], bool]
) -> Saving:
    """Write a report with the digests of its model files; without digests while `measuring` is true, since
    reading whole models would slow the measurement down."""

    def write(stopped: Callable[[], bool]) -> None:
        digest = functools.partial(sha256, stopped=lambda: stopped() or measuring())
        write_export(path, made(report(digest)))

    return Saving(write, path.name)


def save_traces(traces: TraceStore, path: Path) -> Saving:
    """Write all traces into an archive."""
    return Saving(lambda stopped: traces.archive(path, stopped), path.name)
