"""What an audit finds, and its page: the finding and its evidence, in Markdown, to attach to a report of a
fault."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from enum import StrEnum
from math import isinf, log
from typing import NamedTuple

from app.base.numbers import ordinal
from app.engine.params import params_of
from app.engine.process.messages import Judge, JudgedRows
from app.engine.record.trace import Trace
from app.engine.strategy import NONE
from app.engine.types import EmittedToken, GenerationRequest, PairInfo, Sampling, TraceHeader
from app.lab.facts import Digest, FileFacts, no_digest, pair_facts, system_facts

Step = GenerationRequest | Judge
Steps = Generator[Step, Trace | JudgedRows, "Audit"]
"""Yields requests and judgements to run, receives their traces or rows, and returns the finding."""

WITH, WITHOUT, KEPT = "the answer with drafting", "the answer without drafting", "the cache after drafting"


class AuditFinding(StrEnum):
    SAME = "the same text"
    ROUNDING = "rounding"
    FAULT = "a fault"
    LAW = "the same distribution"  # the text may differ
    UNKNOWN = "a different text, and the reason is unknown"


class Cause(StrEnum):
    """What is at fault."""

    TEMPLATE = "the chat template"
    CACHE = "a cache"
    RULE = "a rule"
    SERVER = "the server"


class Shape(NamedTuple):
    """Two tokens' logits at the place where the texts diverge."""

    name: str
    p: tuple[float | None, float | None]  # of the token without drafting, and of the one with
    lead: float | None  # of the first over the second, in logits, with their luck; None where unknown


class Parting(NamedTuple):
    """Where the texts diverge: the token without drafting, and the one with; None if a text has ended."""

    place: int
    tokens: tuple[EmittedToken | None, EmittedToken | None]
    shapes: tuple[Shape, ...] = ()


class Readings(NamedTuple):
    """How the readings differ from both answers' rows, in logits."""

    rounding: float  # the most that passes of two widths differ by, over the whole answer
    allowed: float  # more is a fault
    apart: dict[str, dict[int, float]]  # each place's difference from the nearer of them

    @property
    def most(self) -> float:
        return max(map(largest, self.apart.values()), default=0.0)


class Audit(NamedTuple):
    """A finding in a sentence or two, with its evidence."""

    finding: AuditFinding
    words: str
    plain: Trace
    drafted: Trace
    cause: Cause | None = None
    parting: Parting | None = None
    rows: Readings | None = None  # None of a server
    problems: tuple[str, ...] = ()  # of the records
    tried: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The finding in a few words."""
        return str(self.finding) + (f" of {self.cause}" if self.cause else "")


def step_words(step: Step) -> str:
    """What a step does, shown while it runs."""
    if isinstance(step, Judge):
        return "Reading the text again" if step.fresh else "Looking into the cache"
    return f"Answering {'without' if step.strategy == NONE else 'with'} drafting"


def largest(places: dict[int, float]) -> float:
    return max(places.values(), default=0.0)


def token_text(token: EmittedToken | None) -> str:
    """A token for people."""
    if token is None:
        return "the answer has ended"
    return token.piece.decode("utf-8", errors="replace") or token.label or "no text"


_PROBLEMS = 10  # of the records, that are listed


def audit_page(audit: Audit, digest: Digest = no_digest) -> str:
    """The page. `digest` gives the hash of a model file."""
    return "\n".join(_lines(audit, digest)) + "\n"


def _lines(audit: Audit, digest: Digest) -> Iterator[str]:
    header, rows = audit.drafted.header, audit.rows
    yield from (f"# Audit of drafting: {audit.title}", "", _escaped(audit.words))
    if audit.parting is not None:
        yield from _place(audit, audit.parting)
    yield from ("", "## What was tried", "")
    yield f"- One request was answered with `{header.strategy}` and with `none`."
    yield from (f"- {tried}" for tried in audit.tried)
    if rows is not None:
        yield from ("", "| over the whole answer | in logits |", "|---|--:|")
        yield f"| passes of two widths over the same text differ by at most | {rows.rounding:.4f} |"
        for name, places in rows.apart.items():
            yield f"| {name} differs from the nearest reading by at most | {largest(places):.4f} |"
        yield f"| more than this is a fault | {rows.allowed:.4f} |"
    if audit.problems:
        yield from ("", f"## Verdicts that do not follow from the record: {len(audit.problems)}", "")
        yield from (f"- {_escaped(problem)}" for problem in audit.problems[:_PROBLEMS])
    tables = (
        ("Settings", "setting", "value", _settings(header)),
        ("Versions", "part", "version", _versions(header.pair, digest)),
    )
    for title, name, value, facts in tables:
        yield from ("", f"## {title}", "", f"| {name} | {value} |", "|---|---|")
        yield from (f"| {name} | {_cell(str(value))} |" for name, value in facts)
    yield from ("", f"## Prompt, {header.prompt_tokens:,} tokens", "", *_quoted(header.prompt))
    for name, trace in (("without", audit.plain), ("with", audit.drafted)):
        end = trace.totals.finish_reason if trace.totals else "broken off"
        yield from ("", f"## Answer {name} drafting, {len(trace.token_ids):,} tokens, end: {end}", "")
        yield from _quoted(trace.text)


def _place(audit: Audit, parting: Parting) -> Iterator[str]:
    yield from ("", f"## Token {ordinal(parting.place)}, where the texts diverge", "")
    yield from (f"The {parting.place:,} tokens before it are the same. Then:", "")
    yield "| | log p of the token without drafting | of the token with it | gap, in logits |"
    yield "|---|--:|--:|--:|"
    ids = (f" ({token.id})" if token and token.id >= 0 else "" for token in parting.tokens)
    cells = (_cell(token_text(token)) + id for token, id in zip(parting.tokens, ids, strict=True))
    yield f"| token | {' | '.join(cells)} | |"
    yield from map(_row, parting.shapes)
    if parting.shapes and audit.drafted.header.sampling.temperature > 0:
        yield ""
        yield "The gap includes both tokens' luck, which the seed gives: a token is drawn by log p and luck."


def _row(shape: Shape) -> str:
    cells = ["not recorded" if p is None else f"{log(p):.5f}" if p else "dropped" for p in shape.p]
    lead = "" if shape.lead is None or isinf(shape.lead) else f"{shape.lead:+.5f}"
    return f"| {shape.name} | {' | '.join(cells)} | {lead} |"


def _settings(header: TraceHeader) -> Iterator[tuple[str, object]]:
    yield from (("strategy", header.strategy), ("rule", header.verification))
    for param in params_of(Sampling):
        value = getattr(header.sampling, param.name)
        if param.name == "temperature" or (param.name != "seed" and value != param.default):
            yield param.name, value
    yield from (("seed", header.seed), ("max_tokens", header.max_tokens))
    if header.stop:
        yield "stop", ", ".join(map(repr, header.stop))
    if header.template_options:
        yield "template options", header.template_options


def _versions(pair: PairInfo, digest: Digest) -> Iterator[tuple[str, object]]:
    system = system_facts(pair)
    yield "Draftscope", system.app
    if pair.server is not None:
        yield "server", f"{pair.server.kind} {pair.server.version}, {pair.server.model}"
        yield "it drafts with", ", ".join(pair.server.speculation) or "nothing that it reports"
        return
    yield "llama-cpp-python", system.llama_cpp_python
    yield "system", f"Python {system.python}, {system.system}, {system.cpu}, {system.cores} cores"
    yield "devices", f"{system.devices}, threads {system.threads}"
    files = pair_facts(pair, digest)
    yield "target", _file(files.target)
    if files.draft is not None:
        yield "draft", f"{_file(files.draft)}, {files.vocabulary}"


def _file(file: FileFacts) -> str:
    digest = f", sha256 {file.sha256}" if file.sha256 else ""
    return f"{file.file}, {file.quantisation}, {file.size:,} bytes{digest}, context {file.n_ctx:,}"


def _cell(text: str) -> str:
    """A text as code in a table, on one line."""
    shown = text.replace("\n", "\\n").replace("|", "\\|")
    ticks = _fence(shown, 1)
    edge = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{edge}{shown}{edge}{ticks}"


def _escaped(text: str) -> str:
    """Words that quote a token, which may look like markup, on one line."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text.replace("\n", "\\n"))


def _quoted(text: str) -> Sequence[str]:
    fence = _fence(text, 3)
    return fence, text, fence


def _fence(text: str, least: int) -> str:
    """More backticks in a row than the text has."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)
