"""`draftscope run`: one answer, as text, statistics, trace and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.cli.answer.options import PROG, RunPlan, parse_run
from app.cli.answer.recorder import RunRecorder, check_writable, write_file
from app.cli.answer.strategies import statistics_lines
from app.cli.answer.template_options import unread
from app.cli.console import AnswerPrinter, complain, say
from app.cli.interrupt import INTERRUPTED, Interrupt, run_interruptible
from app.engine.errors import UserError
from app.engine.process.host import STOP_SECONDS, EngineHome, make_home
from app.engine.process.messages import (
    AnyCommand,
    Event,
    Failed,
    Finished,
    Generate,
    Load,
    Loaded,
    RoundFinished,
    Started,
    Stop,
)
from app.engine.record.trace import Trace
from app.engine.types import FinishReason, GenerationRequest
from app.lab.runs.run_record import RunRecord

_LOAD, _ANSWER = 0, 1  # runs of the engine
_WAIT = 1.0  # seconds; an event is there at once


def run(argv: list[str]) -> int:
    """Parse, generate, report; returns the exit code. Raises UserError."""
    plan = parse_run(argv)
    for path in (plan.trace, plan.json):
        if path is not None:
            check_writable(path)
    return run_interruptible(lambda interrupt: _generate(plan, interrupt))


def _generate(plan: RunPlan, interrupt: Interrupt) -> int:
    home = make_home(plan.engine)

    def stop() -> None:
        for run in (_LOAD, _ANSWER):
            home.send(Stop(run))

    try:
        interrupt.stops(stop)
        try:
            for _progress in _answers(home, Load(_LOAD, plan.target, plan.draft), interrupt):
                pass
        except UserError:
            if interrupt.pressed:
                return INTERRUPTED  # nothing came yet
            raise
        recorder = RunRecorder(plan.trace)
        printer = AnswerPrinter()
        try:
            answer = Generate(_ANSWER, plan.request, plan.drafters)
            _record(_answers(home, answer, interrupt), home, plan.request, recorder, printer)
        except Exception as error:
            recorder.fail(str(error))
            if not (interrupt.pressed and isinstance(error, UserError)):
                raise
            complain(PROG, error.message)
        finally:
            recorder.close()
            if recorder.trace is not None:
                _report(recorder.trace, plan, printer)
    finally:
        home.close()
    return INTERRUPTED if interrupt.pressed else 0


def _answers(home: EngineHome, command: AnyCommand, interrupt: Interrupt) -> Iterator[Event]:
    """What the engine says to a command, to its end. Raises UserError where it fails or the engine dies; one
    that does not stop is ended."""
    home.send(command)
    while True:
        event = home.receive(_WAIT)
        if interrupt.seconds > STOP_SECONDS:
            home.end()
        if isinstance(event, Failed):
            raise _error(event)
        if event is not None:
            yield event
        if isinstance(event, Loaded | Finished):
            return


def _error(event: Failed) -> UserError:
    """One line; of a bug, whose details are a traceback, the place in the code."""
    places = re.findall(r'File "(.+)", line (\d+)', event.details)
    return UserError(event.message, f"({':'.join(places[-1])})" if places else event.hint)


def _report(trace: Trace, plan: RunPlan, printer: AnswerPrinter) -> None:
    """What came, however it ended."""
    try:
        printer.finish(trace.text)
    finally:
        if plan.json is not None:
            write_file(plan.json, RunRecord.of(trace).to_json())
    for line in statistics_lines(trace):
        say(line)
    totals = trace.totals
    if totals and totals.error and totals.finish_reason is not FinishReason.FAILED:
        complain(PROG, totals.error)  # the answer is whole; what a drafter does behind it was not done


def _record(
    events: Iterator[Event],
    home: EngineHome,
    request: GenerationRequest,
    recorder: RunRecorder,
    printer: AnswerPrinter,
) -> None:
    """Record an answer to its end, or until Ctrl+C or the reader's leaving stops it. Raises PromptError where
    thinking was to be off and cannot be."""
    for event in events:
        if isinstance(event, Started):
            if told := unread(request.template_options, event.header):
                complain(PROG, told)
            recorder.begin(event.header)
        elif isinstance(event, RoundFinished):
            recorder.add(event.round)
            printer.add(event.text)
        elif isinstance(event, Finished):
            recorder.finish(event.totals)
        if not printer.open:
            home.send(Stop(_ANSWER))
