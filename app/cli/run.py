"""`draftscope run`: one answer, as text, statistics, trace and numbers."""

from __future__ import annotations

from app.cli.console import AnswerPrinter, say
from app.cli.interrupt import INTERRUPTED, Interrupt, run_interruptible
from app.cli.recorder import RunRecorder, check_writable, write_file
from app.cli.run_options import RunPlan, parse_run
from app.cli.strategies import statistics_lines
from app.engine import Engine, GenerationRequest
from app.engine.errors import ModelFileError
from app.engine.messages import Finished, RoundFinished, Started
from app.engine.trace import Trace
from app.lab.run_record import RunRecord


def run(argv: list[str]) -> int:
    """Parse, generate, report; returns the exit code. Raises UserError."""
    plan = parse_run(argv)
    for path in (plan.trace, plan.json):
        if path is not None:
            check_writable(path)
    return run_interruptible(lambda interrupt: _generate(plan, interrupt))


def _generate(plan: RunPlan, interrupt: Interrupt) -> int:
    try:
        engine = Engine(plan.target, plan.draft, lambda _file, _fraction: not interrupt.pressed)
    except ModelFileError:
        if interrupt.pressed:
            return INTERRUPTED  # nothing came yet
        raise
    with engine:
        interrupt.stops(engine.stop)
        recorder = RunRecorder(plan.trace)
        printer = AnswerPrinter()
        try:
            _answer(engine, plan.request, recorder, printer, interrupt)
        except Exception as error:
            recorder.fail(str(error))
            raise
        finally:
            recorder.close()
            if recorder.trace is not None:
                _report(recorder.trace, plan, printer)
    return INTERRUPTED if interrupt.pressed else 0


def _report(trace: Trace, plan: RunPlan, printer: AnswerPrinter) -> None:
    """What came, however it ended."""
    try:
        printer.finish(trace.text)
    finally:
        if plan.json is not None:
            write_file(plan.json, RunRecord.of(trace).to_json())
    for line in statistics_lines(trace):
        say(line)


def _answer(
    engine: Engine,
    request: GenerationRequest,
    recorder: RunRecorder,
    printer: AnswerPrinter,
    interrupt: Interrupt,
) -> None:
    """Generate to the end, or until Ctrl+C or the reader's leaving stops it."""
    for event in engine.generate(request):
        if isinstance(event, Started):
            recorder.begin(event.header)
        elif isinstance(event, RoundFinished):
            recorder.add(event.round)
            printer.add(event.text)
        elif isinstance(event, Finished):
            recorder.finish(event.totals)
        # A stop that came before the engine began was cleared when it did.
        if interrupt.pressed or not printer.open:
            engine.stop()
