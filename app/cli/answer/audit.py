"""`draftscope audit`: whether drafting changes an answer, and if it does, why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from app.cli.answer import options
from app.cli.answer.strategies import DRAFTER, know_drafters, strategy_help
from app.cli.servers import keys
from app.cli.terminal.arguments import Parser, UsageError
from app.cli.terminal.console import complain, hand_over, say
from app.cli.terminal.interrupt import INTERRUPTED, Interrupt, run_interruptible
from app.engine.errors import UserError
from app.engine.params import check_params
from app.engine.process.client import EngineClient
from app.engine.process.host import make_home
from app.engine.process.messages import Event, Judge, JudgedRows, Loaded, trace_of
from app.engine.record.trace import Trace
from app.engine.strategy import SERVER, drafting_with
from app.engine.types import FinishReason, GenerationRequest, Sampling
from app.lab.audit import audit
from app.lab.audit_finding import Audit, AuditFinding, audit_page, step_words
from app.lab.facts import sha256
from app.servers.address import server_address

PROG = "draftscope audit"
WITH_DRAFT, ALONE = "draft-simple", "prompt-lookup"
"""The default strategies. They always draft; `length=auto` may not, which proves nothing."""
FAULT = 3
"""The exit code of a fault."""
_USAGE = f"{PROG} (--prompt TEXT | --prompt-file FILE) [--strategy SPEC] [options] > audit.md"
_DESCRIPTION = f"""\
Find out whether drafting changes an answer. The request is answered with drafting and without, and the target
reads the text again. The finding is "the same", "rounding" (with its gap) or "a fault" (and of what). The
page with the evidence goes to standard output, in Markdown, for a bug report. For a fault, the exit code is
{FAULT}. Above temperature 0, speculative and block keep the distribution of texts, not the text itself. So
every verdict and every probability is checked."""
_DRAFTING = f"""
--strategy SPEC  How to draft, see below (default {WITH_DRAFT} or the head's own strategy, without a draft
    model {ALONE}; above temperature 0 with verify=match)
{DRAFTER}"""
_SERVER = (
    "Audit a server. If no request can turn its drafting off, give a second --server: the same model, "
    "started without drafting"
)


def audit_command(argv: list[str]) -> int:
    """Parse, audit, print the page; returns the exit code. Raises UserError."""
    know_drafters(PROG, argv)  # first: help and grammar list them
    arguments = _parser().parse_args(argv)
    sampling = Sampling(**options.SAMPLING.given(arguments))
    check_params(sampling)
    target, draft = options.chosen_pair(arguments)
    rule = ":verify=match" if sampling.temperature > 0 else ""
    spec = options.asked_strategy(arguments, sampling, (WITH_DRAFT if draft else ALONE) + rule)
    if not spec.parts:
        raise UsageError("none does not draft.", "Name a strategy that does.")
    options.check_draft(spec, draft)
    servers, key_of = [server_address(address) for address in arguments.server], keys(arguments)
    if len(servers) > 2:
        raise UsageError(
            "--server is given more than twice.", "Give the one that drafts, then one that does not."
        )
    request = options.asked_request(arguments, SERVER if servers else str(spec), sampling)
    next(audit(request))  # refuses what cannot be audited

    def work(interrupt: Interrupt) -> int:
        if servers:
            return _audited(request, *_of_servers(servers, key_of, interrupt), interrupt)
        client = EngineClient(make_home(arguments.engine), lambda: interrupt.pressed)
        try:
            *_, loaded = client.load(*options.local_pair(target, draft, interrupt))
            assert isinstance(loaded, Loaded)
            asked = request
            if not arguments.strategy and (drafting := loaded.pair.draft):  # it may be a head
                asked = replace(request, strategy=drafting_with(request.strategy, drafting.architecture))
            generate = partial(client.generate, drafters=tuple(arguments.drafter))
            return _audited(asked, client.judge, generate, interrupt)
        finally:
            client.close()

    return run_interruptible(work)


def _parser() -> Parser:
    parser = Parser(PROG, _DESCRIPTION, _USAGE, strategy_help())
    options.add_answer_options(parser, _DRAFTING, _SERVER, several=True)
    options.add_model_options(parser)
    parser.set_defaults(draft_only=False)
    return parser


Judging = Callable[[Judge], JudgedRows]
Answering = Callable[[GenerationRequest], Iterable[Event]]


def _of_servers(
    addresses: list[str], key_of: Callable[[str], str], interrupt: Interrupt
) -> tuple[Judging, Answering]:
    """The functions that judge and answer by asking servers. Raises UserError."""
    from app.servers.client import ServerClient  # its HTTP client takes a moment to import

    drafts, *without = [
        ServerClient(address, key_of(address), lambda: interrupt.pressed) for address in addresses
    ]
    told = drafts.describe().server
    assert told is not None
    if not told.speculation:
        raise UserError(f"The server at {told.address} does not draft.", "Start it with drafting.")
    if not without and not told.switches_off:
        raise UserError(
            f"The server at {told.address} always drafts.",
            "Start the same model without drafting too, and give its address with a second --server.",
        )
    plain = without[0] if without else drafts
    return plain.judge, lambda asked: (drafts if asked.strategy == SERVER else plain).generate(asked)


def _audited(request: GenerationRequest, judge: Judging, generate: Answering, interrupt: Interrupt) -> int:
    """Audit, and print the page; returns the exit code. Raises UserError."""
    steps = audit(request)
    step = next(steps)
    try:
        while True:
            say(f"{step_words(step)} …")
            reply = judge(step) if isinstance(step, Judge) else _answered(generate(step))
            if interrupt.pressed:
                return INTERRUPTED
            step = steps.send(reply)
    except StopIteration as end:
        found: Audit = end.value
    except UserError:
        if interrupt.pressed:
            return INTERRUPTED
        raise
    hand_over(audit_page(found, sha256).rstrip("\n"))
    say(f"{PROG}: {found.title}.")
    if found.finding is AuditFinding.UNKNOWN:
        complain(PROG, found.words)
    return {AuditFinding.FAULT: FAULT, AuditFinding.UNKNOWN: 1}.get(found.finding, 0)


def _answered(events: Iterable[Event]) -> Trace:
    """The trace of an answer. Raises UserError."""
    came = list(events)
    trace = trace_of(came) if came else None
    if trace is None or trace.totals is None or trace.totals.finish_reason is FinishReason.CANCELLED:
        raise UserError("The audit was stopped.")
    return trace
