"""`draftscope run`: generates one answer, as text, statistics, trace and JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from app.base.paths import find_paths
from app.cli.advise import advice_text
from app.cli.answer.options import PROG, RunPlan, local_pair, parse_run, without_gpu
from app.cli.answer.recorder import RunRecorder, check_writable, write_file
from app.cli.answer.strategies import alone_lines, drafted_lines, statistics_lines
from app.cli.answer.template_options import unread
from app.cli.terminal.console import AnswerPrinter, complain, say, say_over
from app.cli.terminal.interrupt import INTERRUPTED, Interrupt, run_interruptible
from app.engine.drafters.guarded import fault_words
from app.engine.errors import UserError
from app.engine.process import messages
from app.engine.process.client import EngineClient
from app.engine.process.host import make_home
from app.engine.record.stats import Statistics, strategy_names
from app.engine.record.trace import Trace
from app.engine.types import FinishReason
from app.lab.runs.record import RunRecord
from app.saved.measured import Calibrations


def run(argv: list[str]) -> int:
    """Parse, generate, report; returns the exit code. Raises UserError."""
    plan = parse_run(argv)
    for path in (plan.trace, plan.json):
        if path is not None:
            check_writable(path)
    return run_interruptible(lambda interrupt: _generate(plan, interrupt))


def _generate(plan: RunPlan, interrupt: Interrupt) -> int:
    printer = AnswerPrinter()
    if plan.server:
        from app.servers.client import ServerClient  # its HTTP client takes a moment to import

        server = ServerClient(
            plan.server, plan.key_of(plan.server), lambda: interrupt.pressed or not printer.open
        )
        return _answer(server.generate(plan.request), plan, interrupt, printer)
    target, draft = local_pair(plan.target, plan.draft, interrupt)
    client = EngineClient(make_home(plan.engine), lambda: interrupt.pressed or not printer.open)
    try:
        if plan.strategy_alone:
            return _draft_alone(client, target.path, plan, interrupt, printer)
        try:
            *_, loaded = client.load(target, draft)
        except UserError:
            if interrupt.pressed:
                return INTERRUPTED  # nothing came yet
            raise
        if client.stopped:
            return INTERRUPTED
        passes = (
            Calibrations(find_paths().calibrations).of(loaded.pair)
            if isinstance(loaded, messages.Loaded)
            else None
        )
        return _answer(client.generate(plan.request, plan.drafters, passes=passes), plan, interrupt, printer)
    finally:
        client.close()


def _draft_alone(
    client: EngineClient, target: str, plan: RunPlan, interrupt: Interrupt, printer: AnswerPrinter
) -> int:
    """Print a strategy's draft: its text on standard output, its ids on standard error."""
    for event in client.ask(messages.DraftAlone(0, target, plan.request, plan.drafters)):
        if interrupt.pressed:
            return INTERRUPTED
        if isinstance(event, messages.DraftedAlone):
            printer.finish(b"".join(token.piece for token in event.tokens).decode("utf-8", errors="replace"))
            for line in alone_lines(event):
                say(line)
    return 0


def _answer(
    events: Iterator[messages.Event], plan: RunPlan, interrupt: Interrupt, printer: AnswerPrinter
) -> int:
    """Record and report an answer; returns the exit code."""
    recorder = RunRecorder(plan.trace)
    try:
        _record(events, plan, recorder, printer)
    except Exception as error:
        recorder.fail(str(error))
        if not (interrupt.pressed and isinstance(error, UserError)):
            raise
        complain(PROG, error.message)
    finally:
        recorder.close()
        if recorder.trace is not None:
            _report(recorder.trace, plan, printer)
    return INTERRUPTED if interrupt.pressed else 0


def _record(
    events: Iterator[messages.Event], plan: RunPlan, recorder: RunRecorder, printer: AnswerPrinter
) -> None:
    """Record an answer to its end. Raises PromptError if thinking cannot be switched off."""
    reading = False
    for event in events:
        if reading:
            say_over("")
            reading = False
        if isinstance(event, messages.PromptProgress):
            if reading := not event.at_end and sys.stderr.isatty():
                say_over(event.words)
        elif isinstance(event, messages.Started):
            if told := unread(plan.request.template_options, event.header):
                complain(PROG, told)
            if told := without_gpu(plan.target, event.header.pair):
                complain(PROG, told)
        recorder.keep(event)
        if isinstance(event, messages.RoundFinished):
            printer.add(event.text)


def _report(trace: Trace, plan: RunPlan, printer: AnswerPrinter) -> None:
    """Print and write the answer so far, however it ended."""
    try:
        printer.finish(trace.text)
    finally:
        if plan.json is not None:
            write_file(plan.json, RunRecord.of(trace).to_json())
    for line in [*(drafted_lines(trace) if plan.drafted else ()), *statistics_lines(trace)]:
        say(line)
    if advice := advice_text([trace], plan.target, plan.draft):
        say(advice)
    ends = Statistics.of(trace.rounds).ends
    for name in strategy_names(trace.header.strategy):
        if told := fault_words(name, ends, len(trace.rounds)):
            complain(PROG, told)
    totals = trace.totals
    if totals and totals.error and totals.finish_reason is not FinishReason.FAILED:
        complain(PROG, totals.error)  # the answer is whole; the drafter's work after it failed
