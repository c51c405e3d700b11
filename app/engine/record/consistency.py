"""Whether the parts of a trace agree with each other: names, tokens, probabilities, times and counts.

Together with the verdicts (`recheck.py`) these are all checks possible on a record alone. The fields that
cannot be checked are listed in tests/engine/record/test_recheck_every_field.py, with reasons.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise

from app.engine.compat import HEAD_STRATEGIES
from app.engine.drafters.foreign import ForeignKind
from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.engine.fates import JUDGED, Origin
from app.engine.lengths.base import ReplayedLength
from app.engine.params import check_params
from app.engine.record.stats import strategy_names
from app.engine.record.trace import Trace
from app.engine.rules.registry import RULES, rule_of
from app.engine.sampling.logits import TOP
from app.engine.strategy import StrategySpec
from app.engine.types import (
    Alternatives,
    DraftedToken,
    Draw,
    EmittedToken,
    FinishReason,
    Race,
    Round,
    TraceHeader,
)

_TICK = 1e-6  # seconds: times are differences of a clock's readings
_ROUNDING = 1e-9  # sums in double precision
_WIDTH = 1e-4  # single precision, summed over a row
_COPIES = {
    "prompt-lookup": True,
    "ngram-simple": True,
    "ngram-map-k": True,
    "ngram-map-k4v": True,
    "suffix": False,
}
"""The strategies whose drafts are copied from place `match` -> whether every draft has a `match`."""
_SINCE = {  # the format version that introduced a field
    "h": (1, 1),
    "asked": (1, 2),
    "read_seconds": (1, 3),
    "accept_seconds": (1, 6),
    "begin_seconds": (1, 6),
    "k": (1, 8),
    "smoothed": (1, 8),
    "head": (1, 10),
}
_RACES = (1, 10)  # the format version that draws tokens by races


def header_problems(header: TraceHeader) -> Iterator[str]:
    """Compare the settings with each other and with the pair; what a server does not tell is not compared."""
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
    elif pair.server is None and (spec := _spec(header)) is not None:
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


def _spec(header: TraceHeader) -> StrategySpec | None:
    """The parsed strategy; None for one of another version or of a missing plug-in."""
    try:
        return StrategySpec.parse(header.strategy)
    except SettingError:
        return None


class Consistency:
    """Checks rounds in order, each against the rounds before."""

    def __init__(self, header: TraceHeader) -> None:
        self._header = header
        self._names = strategy_names(header.strategy)
        self._rule_in_use = rule_of(header.verification)
        spec = _spec(header)
        self._longest = {
            part.name: part.longest
            for part in (spec.parts if spec is not None else ())
            if not isinstance(KINDS[part.name], ForeignKind)  # may draft as many tokens as there is room for
        }
        self._format = tuple(int(part) for part in header.format.split(".")[:2] if part.isdigit())
        fold = spec.length_fold() if spec is not None else None
        replays = isinstance(fold, ReplayedLength)
        exact = replays and header.cold and self._format >= _SINCE["k"]  # a warm rule knows earlier answers
        self._fold = fold if exact else None
        self._smooths = replays or spec is None
        self._answer: list[int] = []
        self._texts: dict[int, bytes] = {}
        self._labels: dict[int, str] = {}
        self._draft_texts: dict[int, bytes] = {}
        self._end = 0.0  # of the previous round

    def problems(self, round: Round) -> Iterator[str]:
        """Yield the contradictions within a round, and to the rounds before."""
        yield from self._strategies(round)
        yield from self._lengths(round)
        yield from self._rule(round)
        yield from self._times(round)
        yield from self._fields(round)
        yield from self._tokens(round)
        yield from self._target_rows(round)
        yield from self._draft_rows(round)
        yield from self._head(round)

    def follow(self, round: Round) -> None:
        """Remember what the next round is checked against."""
        self._answer += [token.id for token in round.emitted]
        self._end = round.offset + round.seconds

    def _strategies(self, round: Round) -> Iterator[str]:
        server = self._header.pair.server
        if (round.strategy is None) != (not round.drafted) and (server is None or server.tells_fates):
            strategy = round.strategy or "none"
            yield f"its strategy is {strategy}, and it has {len(round.drafted)} drafted tokens"
        if round.strategy is not None and round.strategy not in self._names:
            yield f"“{round.strategy}” is not part of “{self._header.strategy}”"
        if round.asked is None:
            if self._names and self._format >= _SINCE["asked"]:
                yield "it does not say which strategies were asked"
            return
        if list(round.asked) != [name for name in self._names if name in round.asked]:
            yield f"it asked {', '.join(round.asked)}, and the strategy is “{self._header.strategy}”"
        if round.drafted and round.asked[-1:] != (round.strategy,):
            yield f"{round.strategy} drafted, but was not the last that was asked"

    def _head(self, round: Round) -> Iterator[str]:
        head, target = round.head, self._header.pair.target
        if head is None:
            return
        if round.strategy not in HEAD_STRATEGIES.values():
            yield f"it says what a head read, and {round.strategy or 'none'} has no head"
        elif len(head.norms) != len(head.layers) or not 0 <= max(head.layers, default=0) <= target.n_layers:
            yield f"its head read {len(head.norms)} rows of layers {head.layers}"
        elif head.shares and not (
            len(head.shares) == len(head.layers) and abs(sum(head.shares) - 1) < _WIDTH
        ):
            yield f"its head read shares of {head.shares}"

    def _lengths(self, round: Round) -> Iterator[str]:
        header, drafted = self._header, round.drafted
        before = header.prompt_tokens + len(self._answer)
        longest = self._longest.get(round.strategy or "", len(drafted))
        if len(drafted) > longest:
            yield f"it has {len(drafted)} drafted tokens, and {round.strategy} drafts at most {longest}"
        if len(drafted) >= max(1, header.max_tokens - len(self._answer)):
            yield f"it has {len(drafted)} drafted tokens, more than were wanted"
        if before + len(drafted) > header.pair.target.n_ctx:
            yield f"its context of {before} tokens and its draft exceed {header.pair.target.n_ctx}"
        always = _COPIES.get(round.strategy or "")
        built_in = round.strategy in self._longest
        if round.match is None:
            if always and built_in:
                yield "it does not say where its draft was copied from"
        elif not drafted or (built_in and always is None):
            yield "it says where its draft was copied from, and it was not"
        elif not 0 <= round.match < before:
            yield f"it copies from token {round.match} of {before}"
        elif built_in and (header.context_ids or round.match >= header.prompt_tokens):
            at, prompt = round.match - header.prompt_tokens, header.context_ids
            copied = [*(prompt[at:] if at < 0 else ()), *self._answer[max(at, 0) :]][: len(drafted)]
            if copied != [token.id for token in drafted]:
                yield f"its draft is not what stands at token {round.match}"

    def _rule(self, round: Round) -> Iterator[str]:
        """Compare what the length rule went by with the rounds so far."""
        at = self._fold.computed(round) if self._fold is not None else None
        if at is not None and (round.k, round.smoothed) != (at.k, at.acceptance):
            said = f"its k is {round.k}, smoothed {round.smoothed}"
            yield f"{said}, and its drafts give {at.k}, {at.acceptance}"
        if not self._smooths and not round.k is round.smoothed is None:
            yield "it has a k or a smoothed acceptance, which its length rule does not give"

    def _times(self, round: Round) -> Iterator[str]:
        parts = round.draft_seconds + round.verify_seconds + round.sample_seconds
        shortest = min(round.draft_seconds, round.verify_seconds, round.sample_seconds, round.native_seconds)
        if min(shortest, round.read_seconds, round.accept_seconds, *round.begin_seconds.values()) < 0:
            yield "one of its times is negative"
        if parts > round.seconds + _TICK:
            yield f"its parts took {parts:g} s, and the whole {round.seconds:g} s"
        if round.native_seconds > parts + _TICK:
            yield f"llama.cpp took {round.native_seconds:g} s of {parts:g} s"
        if round.read_seconds > round.draft_seconds + _TICK:
            yield f"its draft was read for {round.read_seconds:g} s of {round.draft_seconds:g} s"
        if round.accept_seconds > round.sample_seconds + _TICK:
            yield f"learning what was accepted took {round.accept_seconds:g} s of {round.sample_seconds:g} s"
        if set(round.begin_seconds) - set(self._names):
            yield f"{', '.join(round.begin_seconds)} began in it"
        if round.offset < self._end - _TICK:
            yield "it starts before the previous round ends"

    def _fields(self, round: Round) -> Iterator[str]:
        """Yield the fields that do not belong to the rule or the format."""
        for name, since in _SINCE.items():
            values = [token.h for token in round.drafted] if name == "h" else [getattr(round, name)]
            if any(values) and self._format < since:
                yield f"{name} came with format {since[0]}.{since[1]}, and this is {self._header.format}"
        own = Race if self._format >= _RACES else Draw
        tokens: tuple[DraftedToken | EmittedToken, ...] = (*round.drafted, *round.emitted)
        if not all(isinstance(draw, own) for token in tokens for draw in _draws(token)):
            yield f"it has draws that are not those of format {self._header.format}"
        rule = self._rule_in_use
        for place, token in enumerate(round.drafted):
            judged = {
                name for name in ("u", "target_id", "draw", "race", "h") if getattr(token, name) is not None
            }
            unjudged = token.verdict not in JUDGED and not rule.whole
            if extra := judged - (frozenset() if unjudged else rule.gives):
                yield f"the draft at place {place} has {', '.join(sorted(extra))}, which {rule} never gives"
            if unjudged and token.p is not None:
                yield f"the draft at place {place} is ignored, but has a p"
        for place, emitted in enumerate(round.emitted):
            judge = round.drafted[place] if place < len(round.drafted) else None
            shared = emitted.origin is Origin.ACCEPTED or (
                "race" in rule.gives and emitted.origin is Origin.RESAMPLED
            )
            if shared and judge is not None and emitted.drawn != judge.drawn:
                yield f"token {place} has different draws as a draft and as emitted"

    def _tokens(self, round: Round) -> Iterator[str]:
        """Check that every id is in the vocabulary and always has the same piece."""
        size = self._header.pair.target.n_vocab
        tokens: tuple[DraftedToken | EmittedToken, ...] = (*round.drafted, *round.emitted)
        named = [(token.id, token.piece, token.label) for token in tokens]
        for draw in chain.from_iterable(map(_draws, tokens)):
            if isinstance(draw, Race) and draw.rival is not None:
                named.append((draw.rival, draw.piece, draw.label))
        for id, piece, label in named:
            yield from _same(self._texts, id, piece, size)
            if self._labels.setdefault(id, label) != label or (label and piece):
                yield f"token {id} is labelled “{label}”"
        for top in round.target_top:
            for id, piece in zip(top.ids, top.pieces, strict=False):
                yield from _same(self._texts, id, piece, size)
        draft, kind = self._header.pair.draft, KINDS.get(round.strategy or "")
        if kind is not None and kind.needs_mtp:  # its head has the target's tokens
            texts = self._texts
        else:
            texts, size = self._draft_texts, draft.n_vocab if draft is not None else 0
        for top in round.draft_top:
            for id, piece in zip(top.ids, top.pieces, strict=False):
                yield from _same(texts, id, piece, size)

    def _target_rows(self, round: Round) -> Iterator[str]:
        """Compare the recorded p with the alternatives, which come from the distribution that judged. At
        temperature 0 they are the model's own, and every rule except greedy judges by the best one alone."""
        if len(round.target_top) != len(round.emitted):
            n_rows, n_emitted = len(round.target_top), len(round.emitted)
            yield f"it has {n_rows} rows of alternatives for {n_emitted} emitted tokens"
        header = self._header
        one_hot = header.sampling.temperature == 0 and self._rule_in_use.draws
        kept = header.sampling.top_k if header.sampling.temperature > 0 else 0
        for place, (top, emitted) in enumerate(zip(round.target_top, round.emitted, strict=False)):
            where = f"the target's alternatives at place {place}"
            yield from _sound(where, top, _WIDTH if 0 < kept < TOP else None)
            known = {emitted.id: emitted.p or 0.0}
            if place < len(round.drafted) and round.drafted[place].p is not None:
                known[round.drafted[place].id] = round.drafted[place].p or 0.0
            best = dict(zip(top.ids, top.p, strict=False)).get(emitted.id) == max(top.p, default=None)
            for id, p in known.items():
                if one_hot and (p != (id == emitted.id) or not best):
                    yield f"{where} do not give token {id} the p {p:g} at temperature 0"
                elif not one_hot and not _agrees(top, id, p):
                    yield f"{where} do not give token {id} the p {p:g}"

    def _draft_rows(self, round: Round) -> Iterator[str]:
        """Compare the draft's own p with its alternatives, whose probabilities sum to one."""
        thought = [token.draft_p is not None for token in round.drafted]
        if thought != [bool(round.draft_top)] * len(round.drafted):
            yield "its draft tokens have a draft_p without alternatives, or alternatives without it"
        if round.draft_top and len(round.draft_top) != len(round.drafted):
            yield f"it has {len(round.draft_top)} rows of the draft for {len(round.drafted)} drafted tokens"
        for place, (top, token) in enumerate(zip(round.draft_top, round.drafted, strict=False)):
            where = f"the draft's alternatives at place {place}"
            yield from _sound(where, top, _ROUNDING if len(top.ids) == TOP else None)
            if not _was_thought(token, top):
                yield f"{where} do not give token {token.id} the p {token.draft_p or 0:g}"


def _draws(token: DraftedToken | EmittedToken) -> list[Race | Draw]:
    """All that it was drawn by."""
    of_draft = (token.draft_race, token.draft_draw) if isinstance(token, DraftedToken) else ()
    return [draw for draw in (token.race, token.draw, *of_draft) if draw is not None]


def _same(texts: dict[int, bytes], id: int, piece: bytes, size: int) -> Iterator[str]:
    if not 0 <= id < size:
        yield f"token {id} is not in a vocabulary of {size}"
    if texts.setdefault(id, piece) != piece:
        yield f"token {id} is {piece!r} here and {texts[id]!r} before"


def _sound(where: str, top: Alternatives, rounding: float | None) -> Iterator[str]:
    """Check the alternatives of one place; with `rounding` their probabilities must sum to one, nearly."""
    if not len(top.ids) == len(set(top.ids)) == len(top.pieces) == len(top.p) <= TOP:
        yield f"{where} are not up to {TOP} tokens with a piece and a p each"
    if any(first < second for first, second in pairwise(top.p)):
        yield f"{where} are not in order"
    total = sum(top.p)
    lacking = rounding is not None and top.p and abs(total - 1) > rounding
    if total > 1 + _WIDTH or min(top.p, default=0.0) < 0 or lacking:
        yield f"{where} sum to {total:g}"


def _agrees(top: Alternatives, id: int, p: float) -> bool:
    """Whether p agrees with the list: a listed token has its p there, any other at most that of the last in a
    full list."""
    row = dict(zip(top.ids, top.p, strict=False))
    if id in row:
        return p == row[id]
    return 0 <= p <= (min(top.p, default=1.0) if len(top.p) >= TOP else 1 - sum(top.p) + _WIDTH)


def _was_thought(token: DraftedToken, top: Alternatives) -> bool:
    """Whether the draft's p is possible: an argmax has its share among the alternatives, a drawn token its
    smaller probability among all tokens."""
    row = dict(zip(top.ids, top.p, strict=False))
    if token.draft_p is None:
        return True
    if token.draft_drawn is None:
        return row.get(token.id) == token.draft_p == max(top.p, default=None)
    return 0 <= token.draft_p <= row.get(token.id, min(top.p, default=1.0)) + _WIDTH


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
        if emitted == header.max_tokens and finish not in by_count:
            yield f"it ended by {finish}, but all {emitted} tokens came"
        full = header.prompt_tokens + emitted > header.pair.target.n_ctx and header.pair.server is None
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
