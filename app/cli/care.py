"""`draftscope report` and `draftscope check`: help if something went wrong."""

from __future__ import annotations

import time

from app.base import numbers
from app.base.paths import find_paths
from app.care.check import check_data, repair
from app.care.report import make_report
from app.cli.terminal.arguments import Parser, add_options
from app.cli.terminal.console import hand_over, put
from app.engine.errors import UserError
from app.engine.process.host import ProcessHome
from app.engine.process.messages import DevicesListed, Failed, ListDevices

_WAIT = 30.0  # seconds for the list of devices: a driver may hang, and then a report is wanted most
_REPORT = """\
Print facts that help to find a fault: versions, devices, settings, the last lines of the log. It contains no
chat text; your home folder is written ~."""
_TEXTS = "--with-texts  Show the system prompt and the stop strings of the settings instead of their lengths"
_CHECK = """\
Find damaged or left-over files among settings, lists, chats and measurements, and say how each would be
repaired. Nothing changes without --repair, and nothing is deleted. Left-over files go to the chats' trash for
7 days; damaged files are kept under a new name."""


def report(argv: list[str]) -> int:
    """Print the report; returns the exit code."""
    prog = "draftscope report"
    parser = Parser(prog, _REPORT, f"{prog} [--with-texts]")
    add_options(parser, _TEXTS)
    arguments = parser.parse_args(argv)
    hand_over(make_report(find_paths(), _devices(), texts=arguments.with_texts).rstrip("\n"))
    return 0


def _devices() -> DevicesListed | str:
    """The devices, listed in a separate process; if it crashes, the report says why."""
    home = ProcessHome()
    try:
        home.send(ListDevices(0))
        deadline = time.monotonic() + _WAIT
        while time.monotonic() < deadline:
            event = home.receive(0.1)
            if isinstance(event, DevicesListed):
                return event
            if isinstance(event, Failed):
                return f"unknown: {event.message} {event.hint}\n{event.details}"
        return f"unknown: no reply within {_WAIT:.0f} s"
    finally:
        home.close()


def check(argv: list[str]) -> int:
    """Print the faults, and repair them on request; returns the exit code. Raises UserError."""
    prog = "draftscope check"
    parser = Parser(prog, _CHECK, f"{prog} [--repair]")
    add_options(parser, "--repair  Carry out the repairs")
    arguments = parser.parse_args(argv)
    paths = find_paths()
    if not paths.data.exists():
        put([f"There is no data yet: {paths.data} does not exist."])
        return 0
    findings = check_data(paths)
    for finding in findings:
        put([finding.words, *([f"  {finding.remedy}"] if finding.remedy else [])])
    to_do = [finding for finding in findings if finding.mend is not None]
    if not to_do:
        put(["There is nothing to repair." if findings else "Nothing is damaged."])
        return 0
    if not arguments.repair:
        put([f"{prog} --repair does that."])
        return 0
    failed = repair(to_do)
    if failed:
        raise UserError(f"{len(failed)} of {len(to_do)} could not be repaired: {' '.join(failed)}")
    put([f"{numbers.count(len(to_do), 'finding')} repaired."])
    return 0
