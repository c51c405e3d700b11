"""Whether the parts of a trace agree with each other: names, tokens, probabilities, times and counts.

Together with the verdicts (`recheck.py`) these are all possible checks of a record alone. docs/traces.md
lists what cannot be checked, and why.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, pairwise

from app.base.numbers import ordinal
from app.engine.compat import DFLASH2, FIRST_COMPARED_ID, FitKind
from app.engine.drafters.base import DRAFT_ENDED, ENOUGH, TARGET_FULL, Copies
from app.engine.drafters.foreign import ForeignKind
from app.engine.drafters.registry import KINDS
from app.engine.fates import JUDGED, Origin
from app.engine.lengths.base import Fixed, ReplayedLength
from app.engine.record.frame import format_of
from app.engine.record.stats import strategy_names
from app.engine.rules.registry import rule_of
from app.engine.sampling.logits import TOP
from app.engine.strategy import known_spec
from app.engine.types import (
    Alternatives,
    DraftedToken,
    Draw,
    EmittedToken,
    Race,
    Round,
    Sampling,
    TraceHeader,
)

_TICK = 1e-6  # seconds: times are differences of a clock's readings
_ROUNDING = 1e-9  # sums in double precision
_WIDTH = 1e-4  # single precision, summed over a row
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


class Consistency:
    """Checks rounds in order, each against the rounds before."""

    def __init__(self, header: TraceHeader, limits: Collection[int], perhaps: Collection[int]) -> None:
        """`limits`: the lengths, ascending, at which a continued answer had ended; `perhaps`: a possible
        one."""
        self._header = header
        self._limits, self._perhaps = (*limits, header.max_tokens), perhaps
        self._names = strategy_names(header.strategy)
        self._rule_in_use = rule_of(header.verification)
        spec = known_spec(header.strategy)
        self._parts = {
            part.name: part
            for part in (spec.parts if spec is not None else ())
            if not isinstance(KINDS[part.name], ForeignKind)  # may draft as many tokens as there is room for
        }
        self._format = format_of(header)
        fold = spec.length_fold() if spec is not None else None
        replays = isinstance(fold, ReplayedLength)
        exact = replays and header.cold and self._format >= _SINCE["k"]  # a warm rule knows earlier answers
        self._fold = fold if exact else None
        self._smooths = replays or spec is None
        # Text that a draft wrote may be longer than the tokens wanted.
        through_text = header.pair.vocabulary.startswith(FitKind.THROUGH_TEXT)
        self._fixed = spec is not None and isinstance(spec.length, Fixed) and not through_text
        self._answer: list[int] = []
        self.texts: dict[int, bytes] = {}  # of the target's tokens
        self._labels: dict[int, str] = {}
        self._draft_texts: dict[int, bytes] = {}
        self._end = 0.0  # of the previous round

    def problems(self, round: Round) -> Iterator[str]:
        """Yield the contradictions within a round, and to the rounds before."""
        yield from self._strategies(round)
        yield from self._lengths(round)
        yield from self._draft_end(round)
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
        kind = KINDS.get(round.strategy or "")
        if kind is None or not kind.is_head:
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
        part = self._parts.get(round.strategy or "")
        if part is not None and len(drafted) > part.longest:
            yield f"it has {len(drafted)} drafted tokens, and {round.strategy} drafts at most {part.longest}"
        if len(drafted) >= max(1, header.max_tokens - len(self._answer)):
            yield f"it has {len(drafted)} drafted tokens, more than were wanted"
        if before + len(drafted) > header.pair.target.n_ctx:
            yield f"its context of {before} tokens and its draft exceed {header.pair.target.n_ctx}"
        kind = KINDS.get(round.strategy or "")
        copies = kind.copies if kind is not None else Copies.NOWHERE
        built_in = part is not None
        if round.match is None:
            if copies is Copies.ALL and built_in:
                yield "it does not say where its draft was copied from"
        elif not drafted or (built_in and copies is Copies.NOWHERE):
            yield "it says where its draft was copied from, but it was not copied"
        elif not 0 <= round.match < before:
            yield f"it copies from token {ordinal(round.match)}, and the text before it has {before}"
        elif built_in and (header.context_ids or round.match >= header.prompt_tokens):
            at, prompt = round.match - header.prompt_tokens, header.context_ids
            copied = [*(prompt[at:] if at < 0 else ()), *self._answer[max(at, 0) :]][: len(drafted)]
            if copied != [token.id for token in drafted]:
                yield f"its draft differs from the text at token {ordinal(round.match)}"

    def _draft_end(self, round: Round) -> Iterator[str]:
        """Compare why a draft ended with its length."""
        header, end, drafted = self._header, round.draft_end.split("; ")[-1], len(round.drafted)
        before = len(self._answer)
        limit = next((limit for limit in self._limits if limit > before), before)
        room = {
            ENOUGH: [max(0, at - before - 1) for at in (limit, *self._perhaps)],
            TARGET_FULL: [max(0, header.pair.target.n_ctx - header.prompt_tokens - before)],
        }
        right = drafted in room.get(end, [drafted]) and bool(end) <= bool(self._names)
        part = self._parts.get(round.strategy or "")
        if part is not None and not KINDS[part.name].is_synthetic:  # that says nothing
            full = part.length_key is not None and drafted == part.longest
            right &= bool(end) and (end == "p_min") <= bool(getattr(part.params, "p_min", 0))
            right &= full if end == part.length_key else not (full and self._fixed) or end == DRAFT_ENDED
        elif not drafted:
            keys = {part.length_key for part in self._parts.values()}
            right &= bool(end) == bool(self._names) and end not in keys
        if not right:
            yield f"it drafted {drafted} tokens, and ended by “{end}”"

    def _rule(self, round: Round) -> Iterator[str]:
        """Compare the length rule's recorded state with the rounds so far. A continued answer was cold only
        at first."""
        if round.index and round.begin_seconds:
            self._fold = None
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
        if round.native_seconds > parts + _TICK or round.native_seconds == 0:
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
        """Check that all fields belong to the rule and the format."""
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
                given = ", ".join(sorted(extra))
                yield f"the draft at place {ordinal(place)} has {given}, which {rule} never gives"
            if unjudged and token.p is not None:
                yield f"the draft at place {ordinal(place)} is ignored, but has a p"
        for place, emitted in enumerate(round.emitted):
            judge = round.drafted[place] if place < len(round.drafted) else None
            shared = emitted.origin is Origin.ACCEPTED or (
                "race" in rule.gives and emitted.origin is Origin.RESAMPLED
            )
            if shared and judge is not None and emitted.drawn != judge.drawn:
                yield f"the token at place {ordinal(place)} has different draws as a draft and as emitted"

    def _tokens(self, round: Round) -> Iterator[str]:
        """Check that every id is in the vocabulary and always has the same piece."""
        size = self._header.pair.target.n_vocab
        tokens: tuple[DraftedToken | EmittedToken, ...] = (*round.drafted, *round.emitted)
        named = [(token.id, token.piece, token.label) for token in tokens]
        for draw in chain.from_iterable(map(_draws, tokens)):
            if isinstance(draw, Race) and draw.rival is not None:
                named.append((draw.rival, draw.piece, draw.label))
        for id, piece, label in named:
            yield from _same(self.texts, id, piece, size)
            if self._labels.setdefault(id, label) != label or (label and piece):
                yield f"token id {id} is labelled “{label}”"
        for top in round.target_top:
            for id, piece in zip(top.ids, top.pieces, strict=False):
                yield from _same(self.texts, id, piece, size)
        draft, kind = self._header.pair.draft, KINDS.get(round.strategy or "")
        if kind is not None and kind.needs_mtp:  # its head has the target's tokens
            texts = self.texts
        else:
            texts, size = self._draft_texts, draft.n_vocab if draft is not None else 0
        for top in round.draft_top:
            for id, piece in zip(top.ids, top.pieces, strict=False):
                yield from _same(texts, id, piece, size)

    def _target_rows(self, round: Round) -> Iterator[str]:
        """Compare the recorded p with the alternatives, which come from the judging distribution. At
        temperature 0 they are the model's own, and every rule except greedy judges by the best one alone."""
        if len(round.target_top) != len(round.emitted):
            n_rows, n_emitted = len(round.target_top), len(round.emitted)
            yield f"it has {n_rows} rows of alternatives for {n_emitted} emitted tokens"
        header = self._header
        one_hot = header.sampling.temperature == 0 and self._rule_in_use.draws
        for place, (top, emitted) in enumerate(zip(round.target_top, round.emitted, strict=False)):
            where = f"the target's alternatives at place {ordinal(place)}"
            yield from _sound(where, top, header.pair.target.n_vocab, header.sampling)
            known = {emitted.id: emitted.p or 0.0}
            if place < len(round.drafted) and round.drafted[place].p is not None:
                known[round.drafted[place].id] = round.drafted[place].p or 0.0
            best = dict(zip(top.ids, top.p, strict=False)).get(emitted.id) == max(top.p, default=None)
            for id, p in known.items():
                if one_hot and (p != (id == emitted.id) or not best):
                    yield f"{where} do not give token id {id} the p {p:g} at temperature 0"
                elif not one_hot and not _agrees(top, id, p):
                    yield f"{where} do not give token id {id} the p {p:g}"

    def _draft_rows(self, round: Round) -> Iterator[str]:
        """Compare the draft's own p with its alternatives, whose probabilities sum to one."""
        thought = [token.draft_p is not None for token in round.drafted]
        vocabulary = self._header.pair.draft or self._header.pair.target
        if thought != [bool(round.draft_top)] * len(round.drafted):
            yield "its draft tokens have a draft_p without alternatives, or alternatives without it"
        if round.draft_top and len(round.draft_top) != len(round.drafted):
            yield f"it has {len(round.draft_top)} rows of the draft for {len(round.drafted)} drafted tokens"
        least = 1 if vocabulary.architecture == DFLASH2 else vocabulary.n_vocab  # of a lattice's candidates
        for place, (top, token) in enumerate(zip(round.draft_top, round.drafted, strict=False)):
            where = f"the draft's alternatives at place {ordinal(place)}"
            yield from _sound(where, top, least, rounding=_ROUNDING)
            if not _was_thought(token, top, vocabulary.n_vocab):
                yield f"{where} do not give token id {token.id} the p {token.draft_p or 0:g}"
            called = dict(zip(top.ids, top.pieces, strict=False)).get(token.id)
            if token.id >= FIRST_COMPARED_ID and called and token.piece and called != token.piece:
                yield f"{where} call token id {token.id} {called!r}, not {token.piece!r}"


def _draws(token: DraftedToken | EmittedToken) -> list[Race | Draw]:
    """All its draws."""
    of_draft = (token.draft_race, token.draft_draw) if isinstance(token, DraftedToken) else ()
    return [draw for draw in (token.race, token.draw, *of_draft) if draw is not None]


def _same(texts: dict[int, bytes], id: int, piece: bytes, size: int) -> Iterator[str]:
    if not 0 <= id < size:
        yield f"token id {id} is not in a vocabulary of {size}"
    if texts.setdefault(id, piece) != piece:
        yield f"token id {id} is {piece!r} here and {texts[id]!r} before"


def _sound(
    where: str, top: Alternatives, least: int, drawn_by: Sampling | None = None, rounding: float | None = None
) -> Iterator[str]:
    """Check the alternatives of a place. There may be fewer than ten, or `least`, only if the sampler
    (`drawn_by`) drops all others. With `rounding` their probabilities must sum to one, nearly."""
    if not len(top.ids) == len(set(top.ids)) == len(top.pieces) == len(top.p) <= TOP:
        yield f"{where} are not up to {TOP} tokens with a piece and a p each"
    if any(first < second for first, second in pairwise(top.p)):
        yield f"{where} are not in order"
    total = sum(top.p)
    drops = drawn_by is not None and drawn_by.temperature > 0
    if drawn_by is not None and drops and (len(top.ids) < TOP or 0 < drawn_by.top_k < TOP):
        rounding = _WIDTH
    lacking = rounding is not None and top.p and abs(total - 1) > rounding
    if total > 1 + _WIDTH or min(top.p, default=0.0) < 0 or lacking:
        yield f"{where} sum to {total:g}"
    if len(top.ids) < (1 if drops else min(TOP, least)):
        yield f"{where} are only {len(top.ids)}"


def _agrees(top: Alternatives, id: int, p: float) -> bool:
    """Whether p agrees with the list: a listed token has the p there, any other at most the last p of a full
    list."""
    row = dict(zip(top.ids, top.p, strict=False))
    if id in row:
        return p == row[id]
    return 0 <= p <= (min(top.p) if len(top.p) >= TOP else _WIDTH)


def _was_thought(token: DraftedToken, top: Alternatives, n_vocab: int) -> bool:
    """Whether the draft's p is possible. An argmax has its share among the alternatives. A drawn token has
    its smaller probability among all tokens; none left out exceeds the last listed one."""
    row, last = dict(zip(top.ids, top.p, strict=False)), min(top.p, default=1.0)
    if token.draft_p is None:
        return True
    if token.draft_drawn is None:
        return row.get(token.id) == token.draft_p == max(top.p, default=None)
    least = row.get(token.id, 0.0) / (1 + last * max(0, n_vocab - len(row)))
    return least - _WIDTH <= token.draft_p <= row.get(token.id, last) + _WIDTH
