"""Strategies on the command line: their help, a run's statistics, plug-in drafters (`--drafter FILE`), and
llama.cpp's options. Those are --draft with a number, --draft-max and so on, and --parallel."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from typing_extensions import override

from app.base.numbers import count, listed, ordinal, significant
from app.cli.terminal.arguments import Parser, UsageError, add_options
from app.cli.terminal.console import complain, wrapped
from app.engine.drafters.registry import KINDS
from app.engine.explain.llama_flags import DRAFT_KEYS, other_names
from app.engine.lengths.registry import LENGTHS
from app.engine.params import params_of
from app.engine.plugins import TriedDrafters, use_drafters
from app.engine.process.messages import AloneToken, DraftedAlone
from app.engine.record.llama_cpp_lines import llama_cpp_lines
from app.engine.record.stats import Statistics, strategy_names
from app.engine.record.trace import Trace
from app.engine.rules.registry import RULES, default_rule
from app.engine.strategy import NONE, SYNTHETIC, is_synthetic, lengths_of, longest_draft
from app.engine.types import DraftedToken, EmittedToken, FinishReason

_ENDS = {
    FinishReason.END: "the model ended it",
    FinishReason.STOP: "it reached a stop text",
    FinishReason.LENGTH: "it reached the length limit",
    FinishReason.CONTEXT: "the context is full",
    FinishReason.CANCELLED: "it was stopped",
    FinishReason.FAILED: "the engine failed",
}


def strategy_help() -> str:
    """The grammar of strategies, made from the registry."""
    lines = [
        "strategies: NAME[:KEY=VALUE...], several joined by + in order of precedence",
        f"  {NONE}",
        *wrapped("One token per pass, no drafts: the baseline.", 6),
    ]
    for kind in KINDS.values():
        lines += [f"  {kind.name}", *wrapped(kind.summary, 6), *_settings(kind.params)]
    lines += [
        f"  verify={'|'.join(RULES)}",
        *wrapped(
            "How drafts are verified, for the whole run; written after any name. The default is "
            f"{default_rule(0)} at temperature 0, {default_rule(1)} at others.",
            6,
        ),
        *(line for rule in RULES.values() for line in wrapped(f"{rule}: {rule.summary}", 6)),
        f"  length={'|'.join(LENGTHS)}",
        *wrapped("How many tokens a round drafts, for the whole run:", 6),
        *(
            line
            for rule in LENGTHS.values()
            for line in wrapped(f"{rule.name}: {rule.summary}", 6) + _settings(rule)
        ),
        "  example: --strategy prompt-lookup+draft-simple:n_max=4:p_min=0.5",
    ]
    return "\n".join(lines)


def _settings(owner: type[Any]) -> list[str]:
    lines = []
    for param in params_of(owner):
        words = f"{param.doc.removesuffix('.')} ({param.range_text()})"
        lines += wrapped(f"{param.name}={param.format(param.default)}  {words}", 8)
    return lines


def statistics_lines(trace: Trace) -> list[str]:
    """A line on the answer, then whether its drafts are synthetic, how a rule chose their length, and
    llama.cpp's lines."""
    statistics = Statistics.of(trace.rounds)
    # A server reports neither how often a strategy was asked nor how long it took.
    names = () if trace.header.pair.server is not None else strategy_names(trace.header.strategy)
    said = [f"oracle is {SYNTHETIC}"] if is_synthetic(trace.header.strategy) else []
    limit = longest_draft(trace.header.strategy)
    if lengths := lengths_of(trace.header.strategy, trace.rounds):
        every = [at.k for at in lengths]
        said.append(
            f"draft length: k {every[0]} at first, {every[-1]} at the end ({min(every)} to {max(every)}); "
            f"smoothed acceptance {significant(lengths[-1].acceptance)} at the end"
        )
    return [_answer_line(trace, statistics), *said, *llama_cpp_lines(statistics, names, limit)]


def _answer_line(trace: Trace, statistics: Statistics) -> str:
    totals = trace.totals
    end = _ENDS[totals.finish_reason] if totals else "the record is cut off here"
    seconds = totals.seconds if totals else statistics.seconds
    speed = f", {significant(statistics.emitted / seconds)} tokens/s" if seconds > 0 else ""
    prompt = f"prompt {trace.header.prompt_tokens:,} tokens"
    if trace.header.warm:
        prompt += f" (warm: {trace.header.cached_tokens:,} were cached)"
    if totals and totals.prompt_seconds:  # 0: not measured, because the engine broke off
        prompt += f" in {significant(totals.prompt_seconds)} s"
    return f"{prompt}; answer {statistics.emitted:,} tokens in {significant(seconds)} s{speed}; {end}"


DRAFTED = "--drafted  After the text, print each round on standard error: its draft, and what was accepted"


def drafted_lines(trace: Trace) -> Iterator[str]:
    """A line on each round: the drafted tokens with their fates, and the last emitted token."""
    for round in trace.rounds:
        drafted = [
            f"{verdict} {_text(tokens)}"
            for verdict, tokens in groupby(round.drafted, key=lambda token: token.verdict)
        ]
        untold = ["a draft that the server does not report"] if round.untold else []
        why = f" ({round.draft_end})" if round.draft_end else ""
        what = f"{round.strategy}: " if round.strategy else f"no draft{why}: "
        rest = round.emitted[round.accepted :]
        ends = [f"{word} {_text(tokens)}" for word, tokens in groupby(rest, key=round.fate_word)]
        yield f"round {ordinal(round.index)}, {what}{', '.join([*untold, *drafted, *ends])}"


def alone_lines(draft: DraftedAlone) -> list[str]:
    """A strategy's draft without a target, in lines."""
    why = f" ({draft.end})" if draft.end else ""
    prompt = count(draft.prompt_tokens, "token")
    if not draft.tokens:
        return [f"No draft after a prompt of {prompt}{why}."]
    copied = f", copied from token {ordinal(draft.match)}" if draft.match is not None else ""
    drafted = count(len(draft.tokens), "token")
    head = f"{draft.strategy} drafts {drafted} after a prompt of {prompt}{copied}{why}:"
    return [head, *(f"{token.id:>8}  {_text([token])}" for token in draft.tokens)]


def _text(tokens: Iterable[DraftedToken | EmittedToken | AloneToken]) -> str:
    """Their text in quotes, on one line."""
    whole = b"".join(token.label.encode() or token.piece for token in tokens)
    return json.dumps(whole.decode("utf-8", errors="replace"), ensure_ascii=False)


_DRAFT = "draft-simple"


class DraftOption(argparse.Action):
    """--draft: a model, or a number, which in older llama.cpp limits the draft's tokens."""

    @override
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        drafts = hasattr(namespace, "n_max_of_draft")  # devices has no strategy
        number = drafts and option_string == "--draft" and values.isdecimal() and not os.path.exists(values)
        setattr(namespace, "n_max_of_draft" if number else self.dest, values)


def add_draft_options(group: argparse._ArgumentGroup) -> None:
    """Add a draft's settings as separate options; `asked_strategies` reads them."""
    for flag, key in DRAFT_KEYS.items():
        group.add_argument(
            flag,
            *other_names(flag),
            metavar="P" if key == "p_min" else "N",
            dest=f"{key}_of_draft",
            help=f"The draft's {key}, as {_DRAFT}:{key}=… in --strategy (without --strategy: {_DRAFT})",
        )


def draft_flags(arguments: argparse.Namespace) -> list[str]:
    """The draft's settings among the given options."""
    return [flag for flag, key in DRAFT_KEYS.items() if getattr(arguments, f"{key}_of_draft") is not None]


def asked_strategies(arguments: argparse.Namespace, strategies: Sequence[str]) -> list[str]:
    """The strategies with the draft's settings among the options; draft-simple with these if there are
    settings and no strategy. Raises UsageError if no strategy has such settings."""
    flags = draft_flags(arguments)
    if not flags:
        return list(strategies)
    given = {DRAFT_KEYS[flag]: getattr(arguments, f"{DRAFT_KEYS[flag]}_of_draft") for flag in flags}
    told = [_with_settings(spec, given) for spec in strategies or [_DRAFT]]
    if told == list(strategies):
        raise UsageError(
            f"{flags[0]} sets {DRAFT_KEYS[flags[0]]}, and {listed(strategies)} has none.",
            f"Add +{_DRAFT}, or leave it out.",
        )
    return told


def _with_settings(spec: str, given: dict[str, str]) -> str:
    """A written strategy with settings for its draft model, else for its only part that has all of them. If a
    setting is already there with a different value, parsing refuses it."""
    parts = spec.split("+")
    names = [part.split(":")[0].strip() for part in parts]
    able = [
        name
        for name in names
        if name in KINDS and given.keys() <= {param.name for param in params_of(KINDS[name].params)}
    ]
    owner = _DRAFT if _DRAFT in names else able[0] if len(able) == 1 else None
    if owner is None:
        return spec
    parts[names.index(owner)] += "".join(f":{key}={value}" for key, value in given.items())
    return "+".join(parts)


PARALLEL = """
--parallel N  Always 1: the machine writes one answer at a time. bench --load sends a server many requests at
    once
"""


def one(text: str) -> int:
    """The one number of answers at a time."""
    if text != "1":
        raise argparse.ArgumentTypeError(
            f"cannot be {text!r}. llama-server would answer this many requests at once; Draftscope writes "
            "one answer at a time. To measure a server under load: bench --server URL --load 1,4."
        )
    return 1


DRAFTER = """\
--drafter FILE.py ...  Add the strategy that this Python file defines. Its code is run; may be given several
    times
"""


def know_drafters(prog: str, argv: list[str]) -> None:
    """Register the drafters of --drafter in `argv`, and those of installed packages.

    Raises DrafterError for the first file that cannot be used; a package that cannot be used is reported on
    one line of standard error.
    """
    parser = Parser(prog, "", "", add_help=False)
    add_options(parser, DRAFTER)
    # Only this option: the rest of the command line may depend on these strategies.
    files = parser.parse_known_args(argv)[0].drafter
    # Each is tried in a separate process first: one that ends its process would end this command mutely.
    problems = TriedDrafters().use(files) if files else use_drafters(())
    for source, problem in problems.items():
        if source in files:
            raise problem
        complain(prog, str(problem))
