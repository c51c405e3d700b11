"""The loop: draft, verify in one target pass, emit, learn. The caches follow the tokens."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.engine.drafters.base import ALIKE, DEEPER, ENOUGH, TARGET_FULL, Proposal, Rehearsal, one_hot
from app.engine.fates import Origin, Verdict
from app.engine.lengths.base import DraftLength, RoundCost
from app.engine.loop.handover import Handover, Pace, PassThread
from app.engine.loop.propose import Budget, Draft, NamedDrafter, propose
from app.engine.loop.text import TextStream
from app.engine.native import Context, Vocabulary
from app.engine.process.messages import PassSeconds
from app.engine.rules.base import Drafted, Judgement, Outcome, Rule
from app.engine.sampling.draws import Draws
from app.engine.sampling.rows import RowStore, TargetRows
from app.engine.sampling.sampler import Sampler
from app.engine.types import CACHE_STEP, DraftedToken, EmittedToken, FinishReason, Race, Round

_UNJUDGED = Judgement(accepted=False)

Rounds = Generator[tuple[Round, str], None, None]
"""Yields every round with the text that became readable; closing it waits for the loop's end."""


class TokenBuffer:
    """The truth: prompt and emitted tokens of one sequence."""

    def __init__(self, ids: NDArray[np.int32], room: int) -> None:
        """`ids` of shape [n] with room for `room` tokens in all."""
        self._ids = np.empty(max(room, len(ids)), np.int32)
        self._ids[: len(ids)] = ids
        self.length = len(ids)

    @property
    def ids(self) -> NDArray[np.int32]:
        """A view of shape [length]."""
        return self._ids[: self.length]

    def with_draft(self, ids: Sequence[int]) -> NDArray[np.int32]:
        """A view of shape [length + len(ids)]: the truth and the drafted tokens, valid until the next
        `extend`."""
        end = self.length + len(ids)
        if ids:
            self._ids[self.length : end] = ids
        return self._ids[:end]

    def extend(self, ids: Sequence[int]) -> None:
        self._ids[self.length : self.length + len(ids)] = ids
        self.length += len(ids)


@dataclass(slots=True)
class Generation:
    """An answer being generated: everything that the loop needs, and its progress."""

    target: Context
    drafters: Sequence[NamedDrafter]
    draft_contexts: Sequence[Context]
    rule: Rule
    length: DraftLength
    sampler: Sampler
    draws: Draws
    truth: TokenBuffer
    prompt_length: int
    max_tokens: int
    end_ids: frozenset[int]  # empty if the end of generation is ignored
    text: TextStream
    thread: PassThread
    finish: FinishReason | None = None
    rehearsal: Rehearsal | None = None  # for a synthetic strategy
    repeat: int = 0  # of a measurement
    passes: PassSeconds | None = None  # what the pair's passes took here, for the length rule
    begin_seconds: dict[str, float] = field(default_factory=dict)  # by strategy name
    pace: Pace = field(default_factory=Pace)
    is_stopped: Callable[[], bool] = lambda: False
    waited: float = 0.0  # seconds that the pace held rounds back: they are no part of any time
    draft_reading: float = 0.0  # seconds of reading the prompt, if a draft model does so within a round
    drafted_last: str = ""  # the strategy
    widest: int = 0  # tokens of a pass that has to give the very logits of single ones; 0: none has to
    alike: int = 0  # most tokens of such a pass at this depth; 0: there are none, any number will do

    def __post_init__(self) -> None:
        self.drafted_last = self.drafters[0][0] if self.drafters else ""

    @property
    def position(self) -> int:
        """The next token's index in the answer."""
        return self.truth.length - self.prompt_length

    def native_seconds(self) -> float:
        return self.target.seconds + sum(context.seconds for context in self.draft_contexts)


class Verified(msgspec.Struct, frozen=True):
    """A finished round whose tokens are not recorded yet."""

    round: Round
    draft: Draft
    outcome: Outcome
    rows: TargetRows
    emitted: list[int]
    text: str

    @property
    def proposal(self) -> Proposal:
        return self.draft.proposal


def rounds(run: Generation) -> Rounds:
    """Generate until `run.finish` is set; yields every round and the text that became readable.

    The loop runs on the thread of passes. The caller records and uses a round during the target's next pass,
    so recording costs no time. Raises native.Cancelled if the abort flag is set, ModelFileError if logits are
    NaN, after yielding all earlier rounds.
    """
    with Handover[Verified](run.thread, partial(verify_rounds, run)) as handed_over:
        for verified in handed_over:
            yield finished(run, verified)


def verify_rounds(run: Generation, handover: Handover[Verified]) -> None:
    """The loop: draft, verify, emit, learn. A round is handed over just before the next target pass: during
    the short passes of a draft, two threads would compete for the interpreter."""
    zero = time.perf_counter()
    index = 0
    adapting = 0.0  # seconds in which the length rule learned from the last round that it observed,
    upkeep = 0.0  # and in which the strategies learned since
    before: Verified | None = None
    store = RowStore(run.target.model.vocabulary.size)
    while run.finish is None:
        if run.pace.holds:
            zero += wait_for_turn(run, before, handover)
            before = None
        try:
            if run.widest:
                zero += keep_alike(run)
            began, native = time.perf_counter(), run.native_seconds()
            position = run.position
            truth = run.truth.ids
            draft = propose(run.drafters, run.length, truth, draft_room(run))
            proposal = draft.proposal
            drafted = time.perf_counter()

            start = run.target.sync(truth[:-1])
            missing = run.truth.with_draft(proposal.ids)[start:]
        finally:
            if before is not None:
                handover.put(before)
        logits = run.target.decode(missing, logits=len(proposal.ids) + 1)
        verified = time.perf_counter()
        handover.wait_taken()  # not timed as part of the pass, if recording takes longer
        settled = time.perf_counter()

        rows = TargetRows(logits, run.sampler, truth, proposal.ids, run.target.model.vocabulary, store)
        outcome = run.rule.judge(Drafted(proposal.ids, one_hot(proposal), rows, run.draws, position))
        emitted, text = emit(run, proposal, outcome)
        rows.keep(len(emitted))

        accepted = min(outcome.accepted, len(emitted))
        judged = time.perf_counter()
        accepting = let_learn(run, draft, accepted)
        ended = time.perf_counter()
        upkeep += ended - judged
        drafting = drafted - began + adapting
        cost = RoundCost(draft.attempts or (), accepted, emitted, drafting, judged - drafted, upkeep)
        k, smoothed = adapt_length(run, draft, cost)
        if draft.attempts is not None:
            upkeep, adapting = 0.0, time.perf_counter() - ended
        round = Round(
            index=index,
            position=position,
            offset=began - zero,
            seconds=ended - began,
            draft_seconds=drafted - began,
            verify_seconds=verified - drafted,
            sample_seconds=ended - settled,
            native_seconds=run.native_seconds() - native,
            drafted=(),
            emitted=(),
            strategy=draft.name if proposal.ids else None,
            asked=draft.asked if run.drafters else None,
            match=proposal.match,
            draft_end=proposal.end,
            read_seconds=draft.reading,
            accept_seconds=accepting,
            begin_seconds=run.begin_seconds if index == 0 else {},
            k=k,
            smoothed=smoothed,
        )
        before = Verified(round, draft, outcome, rows, emitted, text)
        index += 1
    if before is not None:
        handover.put(before)


def let_learn(run: Generation, draft: Draft, accepted: int) -> float:
    """Let every strategy learn what was emitted. Returns the seconds taken by the one that drafted."""
    truth, seconds = run.truth.ids, 0.0
    for name, drafter in run.drafters:
        own = draft.name in (name, "")
        began = time.perf_counter()
        drafter.observe(truth, draft.proposal if own else Proposal(), accepted if own else 0)
        if name == draft.name:
            seconds = time.perf_counter() - began
    return seconds


def adapt_length(run: Generation, draft: Draft, cost: RoundCost) -> tuple[int | None, float | None]:
    """Let the length rule learn from a round. Returns the most tokens that it had allowed, and its smoothed
    acceptance now; None if it has none."""
    run.draft_reading = run.draft_reading or draft.reading
    run.drafted_last = draft.name or run.drafted_last
    k = run.length.k(run.drafted_last) if run.drafters else None
    if draft.attempts is not None:
        run.length.observe(cost)
    smoothed = run.length.acceptance(run.drafted_last) if run.drafters else None
    return k if k is None else max(k, len(draft.proposal.ids)), smoothed


def wait_for_turn(run: Generation, before: Verified | None, handover: Handover[Verified]) -> float:
    """Hand over the last round, so that it is seen, and wait until the next may begin. Returns the seconds
    waited."""
    began = time.perf_counter()
    if before is not None:
        handover.put(before)
        handover.wait_taken()
    run.pace.wait(lambda: run.is_stopped() or handover.left)
    handover.wait_taken()
    waited = time.perf_counter() - began
    run.waited += waited
    return waited


def keep_alike(run: Generation) -> float:
    """Limit this round's draft to passes that round like single-token passes, if there are any at this depth.
    Returns the seconds of a trial, which are no part of the answer's times. Raises Cancelled."""
    began = time.perf_counter()
    run.alike = run.target.alike(run.truth.ids, run.widest)
    seconds = time.perf_counter() - began
    run.waited += seconds
    return seconds


def draft_room(run: Generation) -> Budget:
    """The most tokens worth drafting. One token is emitted without a draft, the context is limited, and one
    pass gives all rows of a round."""
    rooms = [
        (run.max_tokens - run.position - 1, ENOUGH),
        (run.target.n_ctx - run.truth.length, TARGET_FULL),
        (run.target.n_batch - 1, "batch_size allows no more"),
    ]
    if run.alike:
        rooms += [(run.alike - 1, ALIKE), (-run.truth.length % CACHE_STEP, DEEPER)]
    return Budget(*min(rooms, key=itemgetter(0)))


def emit(run: Generation, proposal: Proposal, outcome: Outcome) -> tuple[list[int], str]:
    """Extend the truth by the accepted tokens and the next one, up to an end or a stop.

    Returns the emitted ids and the text that became readable; sets `run.finish` if the answer ends here.
    """
    passed = [*proposal.ids[: outcome.accepted], outcome.token]
    emitted: list[int] = []
    readable = []
    pieces = run.target.model.vocabulary.pieces
    for token in passed:
        emitted.append(token)
        if token in run.end_ids:
            run.finish = FinishReason.END
            break
        readable.append(run.text.add(pieces[token]))
        if run.text.stopped:
            run.finish = FinishReason.STOP
            break
    run.truth.extend(emitted)
    if run.finish is None and run.position >= run.max_tokens:
        run.finish = FinishReason.LENGTH
    if run.finish is None and run.truth.length > run.target.n_ctx:
        run.finish = FinishReason.CONTEXT
    return emitted, "".join(readable)


def finished(run: Generation, last: Verified) -> tuple[Round, str]:
    """Make the record of a round, with the target's alternatives for each row, and its text."""
    proposal, outcome, rows, emitted = last.proposal, last.outcome, last.rows, last.emitted
    vocabulary = run.target.model.vocabulary
    pieces, label = vocabulary.pieces, vocabulary.label
    accepted = outcome.accepted
    tops = rows.record(len(emitted))
    tokens, drafts = [], []
    for row, token in enumerate(emitted):
        behind = row == accepted  # the token after the accepted ones
        judged = outcome.judged[row] if row < len(outcome.judged) else None
        draft = proposal.ids[row] if judged is not None else None
        p = rows.probability(row, token)
        if math.isnan(p):
            raise run.target.no_numbers()
        text = pieces[token]
        tokens.append(
            EmittedToken(
                token,
                text,
                outcome.origin if behind else Origin.ACCEPTED,
                p,
                label="" if text else label(token),
                race=_named(vocabulary, outcome.race if behind else judged.race if judged else None),
            )
        )
        if judged is not None and draft is not None:
            verdict = Verdict.ACCEPTED if judged.accepted else Verdict.REJECTED
            if draft != token:
                p = rows.probability(row, draft)
            drafts.append(_drafted(vocabulary, proposal, row, verdict, judged, p))
    # After the rejected token, an end or a stop: never judged, except as part of a block.
    known = len(outcome.judged) if run.rule.whole else 0
    for row in range(len(drafts), len(proposal.ids)):
        if row < known:
            p = rows.probability(row, proposal.ids[row])
            drafts.append(_drafted(vocabulary, proposal, row, Verdict.IGNORED, outcome.judged[row], p))
        else:
            drafts.append(_drafted(vocabulary, proposal, row, Verdict.IGNORED))
    made = msgspec.structs.replace(
        last.round,
        drafted=tuple(drafts),
        emitted=tuple(tokens),
        target_top=tuple(tops),
        draft_top=tuple(proposal.thoughts.top),
        head=proposal.thoughts.head,
    )
    return made, last.text


def _drafted(
    vocabulary: Vocabulary,
    proposal: Proposal,
    row: int,
    verdict: Verdict,
    judged: Judgement = _UNJUDGED,
    p: float | None = None,
) -> DraftedToken:
    id = proposal.ids[row]
    piece = vocabulary.pieces[id]
    return DraftedToken(
        id,
        piece,
        verdict,
        q=proposal.q[row].of(id) if proposal.q else 1.0,
        draft_p=proposal.thoughts.draft_p[row] if proposal.thoughts.draft_p else None,
        p=p,
        u=judged.u,
        target_id=judged.target_id,
        label="" if piece else vocabulary.label(id),
        h=judged.h,
        race=_named(vocabulary, judged.race),
        draft_race=_named(vocabulary, proposal.races[row]) if proposal.races else None,
    )


def _named(vocabulary: Vocabulary, race: Race | None) -> Race | None:
    """The race, with the text of its second."""
    if race is None or race.rival is None:
        return race
    piece = vocabulary.pieces[race.rival]
    label = "" if piece else vocabulary.label(race.rival)
    return Race(race.score, race.rival, race.rival_score, piece, label)
