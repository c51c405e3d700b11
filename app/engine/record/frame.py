"""Checks that a trace's header and totals agree with themselves and with the rounds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from app.base.numbers import ordinal
from app.engine.errors import SettingError
from app.engine.params import check_params
from app.engine.record.trace import Trace
from app.engine.rules.registry import RULES, rule_of
from app.engine.strategy import known_spec
from app.engine.types import FinishReason, TraceHeader

_TICK = 1e-6  # seconds: times are differences of a clock's readings
_ROUNDING = 1e-9  # sums in double precision
_LISTED = (1, 9)  # the format version that lists the prompt's tokens


def header_problems(header: TraceHeader) -> Iterator[str]:
    """Compare the settings with each other and with the pair; what a server does not report is skipped."""
    sampling, pair = header.sampling, header.pair
    try:
        check_params(sampling)
    except SettingError as error:
        yield error.message.removesuffix(".")
    if sampling.seed not in (-1, header.seed):
        yield f"its seed is {header.seed}, but {sampling.seed} was asked for"
    rule = rule_of(header.verification)
    if header.verification not in RULES:
        yield f"the rule {header.verification} is not known here, so no verdict was computed again"
    elif not rule.any_temperature and sampling.temperature > 0:
        yield f"the rule is {rule} at temperature {sampling.temperature:g}"
    elif pair.server is None and (spec := known_spec(header.strategy)) is not None:
        by = spec.verification_at(sampling.temperature)
        if by is not rule:
            yield f"the rule is {rule}, but “{header.strategy}” is judged by {by} here"
        if spec.needs_draft and pair.draft is None:
            yield f"“{header.strategy}” needs a draft model, and the pair has none"
    if bool(pair.vocabulary) != (pair.draft is not None):
        yield "the pair's vocabularies were compared without a draft, or not with one"
    if pair.server is None and not 1 <= header.prompt_tokens <= pair.target.n_ctx:
        yield f"a prompt of {header.prompt_tokens} tokens does not fit into a context of {pair.target.n_ctx}"
    if not 0 <= header.cached_tokens < max(header.prompt_tokens, 1):
        yield f"{header.cached_tokens} of {header.prompt_tokens} prompt tokens were cached"
    if header.context_ids and len(header.context_ids) != header.prompt_tokens:
        yield f"it has {len(header.context_ids)} of {header.prompt_tokens} prompt tokens"
    if header.cold and header.cached_tokens:
        yield f"{header.cached_tokens} prompt tokens were cached in a cold run"
    if pair.server is None and (word := _lacking(header)):
        yield f"its prompt does not contain “{word}” of its messages"


def _lacking(header: TraceHeader) -> str:
    """A word of the user's messages that the prompt replaced by a different one, or the first if it has none
    of them; else "". A template may cut messages, escape letters, or leave messages out."""
    prompt = header.prompt.casefold()
    asked: list[list[str]] = [
        re.findall(r"\w+", message.content.casefold(), re.ASCII)
        for message in header.messages
        if message.role == "user"
    ]
    words = [word for message in asked for word in message]
    if words and not any(word in prompt for word in words):
        return words[0]
    for message in asked:
        for before, word, behind in zip(message, message[1:], message[2:], strict=False):
            between = rf"\b{before}\W+\w+\W+{behind}\b"
            if word not in prompt and re.search(between, prompt, re.ASCII):
                return word
    return ""


def prompt_problems(header: TraceHeader, texts: Mapping[int, bytes]) -> Iterator[str]:
    """Compare the prompt with its tokens, as far as their `texts` are known from the rounds."""
    if format_of(header) >= _LISTED and header.pair.server is None and not header.context_ids:
        yield "it does not list the prompt's tokens"
    if header.suffix is not None or header.prompt_ids:
        return  # the text around a gap, or a text made of the tokens
    prompt, at = header.prompt.encode(errors="replace"), 0
    for place, id in enumerate(header.context_ids):
        piece = texts.get(id, b"").strip()  # a space before a word may be the tokenizer's
        if (found := prompt.find(piece, at)) < 0:
            yield f"its prompt does not contain token {ordinal(place)}, {piece!r}"
            return
        at = found + len(piece)


def format_of(header: TraceHeader) -> tuple[int, ...]:
    """The major and minor version of its format."""
    return tuple(int(part) for part in header.format.split(".")[:2] if part.isdigit())


def totals_problems(trace: Trace, emitted: int) -> Iterator[str]:
    """Compare how and when the answer ended with its rounds."""
    header, totals, rounds = trace.header, trace.totals, trace.rounds
    if totals is None:
        return
    finish = totals.finish_reason
    if finish is FinishReason.FAILED:
        if not totals.error:
            yield "it failed without an error"
    else:
        by_count = (FinishReason.LENGTH, FinishReason.END, FinishReason.STOP)
        here = header.pair.server is None  # a server's answer may be stopped between its tokens and its end
        if emitted == header.max_tokens and finish not in by_count and here:
            yield f"it ended by {finish}, but all {emitted} tokens came"
        full = header.prompt_tokens + emitted > header.pair.target.n_ctx and here
        if full and finish not in (*by_count, FinishReason.CONTEXT):
            yield f"it ended by {finish}, but the context was full"
        yield from _lead(trace)
    last = rounds[-1].offset + rounds[-1].seconds if rounds else 0.0
    if totals.seconds < last - _TICK or (totals.seconds and not rounds):
        yield f"its rounds took {last:g} s, and the whole {totals.seconds:g} s"


def _lead(trace: Trace) -> Iterator[str]:
    """Check the time before the first token: reading the prompt, and the first round."""
    totals, rounds = trace.totals, trace.rounds
    assert totals is not None
    if (totals.first_token_seconds is None) != (not rounds):
        yield "the time of the first token is missing, or there is no token"
    elif totals.first_token_seconds is not None:
        first = totals.lead_seconds + rounds[0].offset + rounds[0].seconds
        if abs(first - totals.first_token_seconds) > _ROUNDING:
            came = totals.first_token_seconds
            yield f"the first token came after {came:g} s, but its parts make {first:g} s"
    shortest = min(totals.prompt_seconds, totals.draft_prompt_seconds, totals.draft_prompt_in_rounds)
    if shortest < 0 or totals.draft_prompt_in_rounds > totals.draft_prompt_seconds + _TICK:
        yield "the time of reading a prompt is negative"
    read = next((round.read_seconds for round in rounds if round.read_seconds), 0.0)
    # If the answer was stopped, the round that read may not be recorded.
    stopped = totals.finish_reason is FinishReason.CANCELLED and not read
    if totals.draft_prompt_in_rounds != read and not stopped:
        yield f"a draft read the prompt for {totals.draft_prompt_in_rounds:g} s, its round for {read:g} s"
