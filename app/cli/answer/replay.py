"""`draftscope replay`: prints a trace's text and statistics, and recomputes its verdicts."""

from __future__ import annotations

from pathlib import Path

from app.base.numbers import count
from app.cli.answer.strategies import DRAFTED, drafted_lines, statistics_lines
from app.cli.terminal.arguments import Parser, add_options
from app.cli.terminal.console import AnswerPrinter, say
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace, read_trace

PROG = "draftscope replay"
CUT = 4
"""The exit code if a record is valid as far as it goes but breaks off before its end."""
_DESCRIPTION = """\
Print the text of a recorded trace on standard output and its statistics on standard error. No model is
needed."""
_OPTIONS = f"""
trace TRACE.jsonl  A trace that run or the window wrote
--verify  Recompute every verdict and check the record against itself. Disagreements are listed, and the exit
    code is 1. It is {CUT} if the record breaks off before the end of the answer
{DRAFTED}
"""


def replay(argv: list[str]) -> int:
    """Print a trace; returns the exit code. Raises UserError if it cannot be read."""
    parser = Parser(PROG, _DESCRIPTION, f"{PROG} TRACE.jsonl [--verify] [--drafted]")
    add_options(parser, _OPTIONS, trace=Path)
    arguments = parser.parse_args(argv)
    trace = read_trace(arguments.trace)
    AnswerPrinter().finish(trace.text)
    for line in [*(drafted_lines(trace) if arguments.drafted else ()), *statistics_lines(trace)]:
        say(line)
    return _verify(trace, arguments.trace.name) if arguments.verify else 0


def _verify(trace: Trace, name: str) -> int:
    found = recheck(trace)
    for line in found:
        say(line)
    rounds = count(len(trace.rounds), "round")
    if found:
        say(f"{PROG}: {name} failed verification: {count(len(found), 'disagreement')} in {rounds}.")
        return 1
    if trace.totals is None:
        say(f"{PROG}: {name} is cut off: {rounds} verified, and the rest of the answer is missing.")
        return CUT
    say(f"{name}: {rounds} verified.")
    return 0
