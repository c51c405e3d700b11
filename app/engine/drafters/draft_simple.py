"""draft-simple: a small model drafts token by token."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from app.engine.compat import FitKind
from app.engine.drafters import base
from app.engine.drafters.mirror import parse_pairs
from app.engine.errors import SettingError
from app.engine.params import param
from app.engine.sampling.distribution import Distribution
from app.engine.sampling.draws import Purpose
from app.engine.sampling.logits import log_sum_exp, top_of_rows
from app.engine.sampling.rows import RowStore
from app.engine.types import Alternatives

if TYPE_CHECKING:
    from app.engine.native import Context
    from app.engine.native.features import Best
    from app.engine.types import Floats, HeadInput, TokenIds


@dataclass(frozen=True, slots=True)
class DraftParams:
    """Settings of every draft model or head; names are llama.cpp's, `sample` is our own.

    n_max: Draft at most this many tokens per round. Usually 2 to 16: a higher limit gains more if most drafts
        are accepted, and costs more if not.
    n_min: Discard drafts shorter than this. Usually 0 to 4: a higher limit saves the passes for short drafts,
        but loses what they would have gained.
    p_min: Stop drafting when the draft's best token is less probable than this. Usually 0.4 to 0.9: a higher
        limit wastes fewer tokens, but drafts fewer.
    sample: Sample draft tokens at the target's temperature instead of taking the most probable. Usually off:
        sampled tokens may be accepted more often at a high temperature, but take longer. With verify=match
        they are drawn with the target's own random numbers.
    """

    n_max: int = param(3, low=1, high=512, unit="tokens")
    n_min: int = param(0, low=0, high=512, unit="tokens")
    p_min: float = param(0.0, low=0, high=1)
    sample: bool = param(False)

    def __post_init__(self) -> None:
        if self.sample and self.n_min:
            raise SettingError(
                "n_min cannot be used with sample=1.",
                "Discarding sampled tokens would change the target's distribution: leave n_min at 0.",
            )


@dataclass(frozen=True, slots=True)
class DraftSimpleParams(DraftParams):
    """Settings of draft-simple.

    replace: For a draft with a different tokenizer: strings that the two models write differently, as a JSON
        list of pairs: [["TARGET", "DRAFT"], …].
    """

    replace: str = param("")

    def __post_init__(self) -> None:
        DraftParams.__post_init__(self)
        parse_pairs(self.replace)


@dataclass(frozen=True, slots=True)
class HeadParams(DraftParams):
    """Settings of a head, such as draft-eagle3."""


@dataclass(frozen=True, slots=True)
class DsparkParams(HeadParams):
    """Settings of draft-dspark.

    p_min: Stop drafting if the block's confidence that its token will be accepted is below this. Without a
        confidence head, the probability of its best token counts. Usually 0.4 to 0.9: a higher limit wastes
        fewer tokens, but drafts fewer.
    """

    p_min: float = param(0.0, low=0, high=1)


class DraftSimple(base.Drafter):
    """Drafts with a model, or a head, that shares the target's vocabulary.

    The draft's cache keeps the longest common prefix with the context, so accepted tokens are never decoded
    again. (llama.cpp's own loop decodes every verified batch on the draft a second time.) There is nothing to
    observe: the next `propose` rolls the cache back.

    A target may have tokens that the draft lacks, such as added control tokens. The draft reads the text
    without them. Right after such a token it would continue a different text, so nothing is drafted.
    """

    def __init__(self, params: DraftParams, context: Context, n_vocab: int) -> None:
        """`n_vocab` is the target's: a padded draft vocabulary is cut to it."""
        self._params = params
        self._context = context
        self._n_vocab = min(n_vocab, context.model.vocabulary.size)
        self._target_vocab = n_vocab
        self._lacks = n_vocab > self._n_vocab  # some tokens that the target may write
        # While a round is drafted, the previous round is not recorded yet.
        self._step = np.zeros(1, np.int32)  # the token to decode next
        self._logits = RowStore(self._n_vocab)
        self._q = RowStore(n_vocab)

    def adjust(self, params: DraftParams) -> None:
        self._params = params

    def begin(self, context: TokenIds, surroundings: base.RunContext) -> None:
        self._around = surroundings
        self._ends = np.fromiter(surroundings.end_ids, np.int32)
        # With a greedy target a sampled draft is its argmax; there is nothing to draw.
        self._draws_tokens = self._params.sample and not surroundings.sampler.is_greedy

    def _known(self, context: TokenIds) -> TokenIds:
        """The context without the tokens that the draft lacks."""
        return context[context < self._n_vocab] if self._lacks else context

    def unread(self, context: TokenIds) -> int:
        known = self._known(context)
        if not 0 < len(known) <= self._context.n_ctx:  # too long or empty: it cannot draft here
            return 0
        return len(known) - 1 - self._context.sync(known[:-1])

    def read(self, context: TokenIds) -> Iterator[tuple[int, int]]:
        known = self._known(context)
        if 0 < len(known) <= self._context.n_ctx:
            for done in self._context.read(known[:-1]):
                yield done, len(known)

    def propose(self, context: TokenIds, k: int) -> base.Proposal:
        self._logits.turn()
        self._q.turn()
        proposal = base.Proposal()
        best: list[Best] = []
        k = min(k, self._params.n_max)
        if context[-1] >= self._n_vocab:
            proposal.end = "the draft does not know the last token"
            return proposal
        if self._context.reads_target and len(context) < 2:
            proposal.end = "a head drafts from the second token on"
            return proposal
        known = self._known(context)
        room = self._context.n_ctx - len(known) - self._context.anchors
        if room < 0:
            proposal.end = base.DRAFT_FULL
            return proposal
        step = known[self._context.sync(known[:-1]) :]
        limit = min(k, room + 1, self._context.most or k)
        # A block is as long as n_max allows, as llama.cpp's: its rows depend on how many there are.
        self._context.ahead = min(self._params.n_max, room + 1, self._context.most or k)
        while len(proposal.ids) < limit:
            if self._draws_tokens:
                goes_on = self._add_drawn(proposal, step, context)
            else:
                goes_on = self._add_best(proposal, step, best, limit - len(proposal.ids))
            if not goes_on:
                break
            step = self._step
            step[0] = proposal.ids[-1]
        else:
            ended = "n_max" if k == self._params.n_max else base.ENOUGH
            if limit < k:
                ended = self._context.full if limit == self._context.most else base.DRAFT_FULL
            proposal.end = ended
        # Refers to the lists, not to the proposal: a cycle would keep whole vocabulary rows until the
        # collector runs.
        if self._draws_tokens:
            rows = self._logits.rows(len(proposal.ids))
            proposal.describe = partial(self._describe_drawn, proposal.ids, rows, self._context.head_input())
        else:
            proposal.describe = partial(self._describe_best, best, self._context.head_input())
        drop_short(proposal, self._params.n_min)
        return proposal

    def _add_best(self, proposal: base.Proposal, step: TokenIds, best: list[Best], most: int) -> bool:
        """Append the best token after `step`, or up to `most` tokens in a greedy sequence; False ends the
        draft."""
        # All that is recorded of the rows comes with them: a copy of a row for later would cost more.
        for found in self._context.best(step, self._n_vocab, most, self._params.p_min, self._ends):
            ids, logits = found
            if not ids or math.isinf(logits[0]):  # its probability would be NaN
                raise self._context.no_numbers()
            if self._is_unsure(proposal, shares(logits)[0] if self._params.p_min else 1.0):
                proposal.end = "p_min"
                return False
            best.append(found)
            if not self._append(proposal, ids[0]):
                return False
        return True

    def _add_drawn(self, proposal: base.Proposal, step: TokenIds, context: TokenIds) -> bool:
        """Append a token that is drawn from the draft's logits after `step`; False ends the draft."""
        row = self._context.decode(step, logits=1)[0, : self._n_vocab]
        # A copy, because the next pass overwrites the row; made first, so that it is read from memory only
        # once.
        copy = self._logits.rows(len(proposal.ids) + 1)[-1]
        copy[:] = row
        q = self._distribution(proposal, copy, context)
        if math.isnan(q.p.item(0)):
            raise self._context.no_numbers()
        # Decided from q alone, before the draw: that keeps the law.
        if self._is_unsure(proposal, float(q.p.max()) if self._params.p_min else 1.0):
            proposal.end = "p_min"
            return False
        start = len(context) - self._around.prompt_length
        own = (Purpose.TOKEN, 0) if self._around.shares_luck else (Purpose.DRAFT, start)
        token, race = q.draw(self._around.draws.key(start + len(proposal.ids), *own))
        proposal.q.append(q)
        proposal.races.append(race)
        return self._append(proposal, token)

    def _is_unsure(self, proposal: base.Proposal, p: float) -> bool:
        """Whether p_min ends the draft before a token whose probability is `p`."""
        sure = self._context.confidence
        return (sure[len(proposal.ids)] if sure else p) < self._params.p_min

    def _append(self, proposal: base.Proposal, token: int) -> bool:
        proposal.ids.append(token)
        if token in self._around.end_ids:
            proposal.end = base.DRAFT_ENDED
            return False
        return True

    def _describe_best(self, best: list[Best], read: HeadInput | None, count: int) -> base.DraftView:
        """The draft's view of its first `count` tokens, which are the best of their rows."""
        top = [self._alternatives(*each) for each in best[:count]]
        return base.DraftView([alternatives.p[0] for alternatives in top], top, read)

    def _describe_drawn(
        self, chosen: list[int], rows: Floats, read: HeadInput | None, count: int
    ) -> base.DraftView:
        """The draft's view of its first `count` tokens, from their logits."""
        rows = rows[:count]
        drawn = zip(rows, chosen, log_sum_exp(rows), strict=True)
        return base.DraftView(
            [math.exp(row.item(token) - whole) for row, token, whole in drawn],
            [self._alternatives(*each) for each in zip(*top_of_rows(rows), strict=True)],
            read,
        )

    def _alternatives(self, ids: list[int], logits: list[float]) -> Alternatives:
        n = len(logits) - logits.count(-math.inf)  # of a block's candidates, fewer than ten
        ids, logits = ids[:n], logits[:n]
        piece = self._context.model.vocabulary.pieces.__getitem__
        return Alternatives(tuple(ids), tuple(map(piece, ids)), tuple(shares(logits)))

    def _distribution(self, proposal: base.Proposal, row: Floats, context: TokenIds) -> Distribution:
        """q at this place over the target's vocabulary, under the target's own settings."""
        sampler = self._around.sampler
        if self._n_vocab < self._target_vocab:
            row = np.concatenate([row, np.full(self._target_vocab - self._n_vocab, -np.inf, np.float32)])
        if sampler.adjusts:
            row = sampler.adjust(row, np.concatenate([context, np.array(proposal.ids, np.int32)]))
        return sampler.distribution(row, self._q.rows(len(proposal.ids) + 1)[-1])

    def reset(self) -> None:
        self._context.clear()


def drop_short(proposal: base.Proposal, n_min: int) -> None:
    """Discard a draft of fewer than `n_min` tokens."""
    if len(proposal.ids) < n_min:
        proposal.cut(0)
        proposal.end = "shorter than n_min"


def shares(logits: list[float]) -> list[float]:
    """Probabilities among the best tokens alone, best first, as in llama.cpp (its draft sampler is top-k
    10)."""
    weights = [math.exp(logit - logits[0]) for logit in logits]
    whole = sum(weights)
    return [weight / whole for weight in weights]


def _draft_simple(params: DraftSimpleParams, resources: base.Resources) -> base.Drafter:
    draft = base.draft_of(resources)
    if resources.fit is not None and resources.fit.kind is FitKind.THROUGH_TEXT:
        from app.engine.drafters.through_text import ThroughText  # which is made of this file's classes

        return ThroughText(params, draft, resources.vocabulary)
    return DraftSimple(params, draft, resources.vocabulary.size)


def _head(params: HeadParams, resources: base.Resources) -> base.Drafter:
    return DraftSimple(params, base.draft_of(resources), resources.vocabulary.size)


DRAFT_FLAGS = base.LlamaFlags(
    "draft",
    own={
        "sample": "llama.cpp has no drafting by sampling",
        "replace": "llama.cpp has no drafting through text",
    },
)
_SETTINGS = (
    "n_max=4", "n_max=8:p_min=0.5", "n_max=2", "n_max=6:p_min=0.75", "n_max=16:length=auto", "n_max=3",
    "n_max=16:p_min=0.75", "n_max=1", "n_max=12:p_min=0.5", "n_max=8", "n_max=4:p_min=0.5",
)  # fmt: skip
KIND = base.StrategyKind(
    "draft-simple",
    DraftSimpleParams,
    "A small model guesses ahead. A draft model with a different vocabulary works through text. Helps if "
    "the target is large and the draft often agrees with it.",
    needs_draft=True,
    memory=("replace",),
    settings=_SETTINGS,
    settings_drawn=("n_max=4:sample=1", "n_max=8:sample=1"),
    settings_behind=("n_max=4", "n_max=8:p_min=0.5"),
    llama=DRAFT_FLAGS,
    vllm=base.VllmMethod("draft_model", {"num_speculative_tokens": "n_max"}, lacks=("n_min", "p_min")),
    make=_draft_simple,
)
HEADS = (
    base.StrategyKind(
        "draft-eagle3",
        HeadParams,
        "A small head guesses ahead from the target's internal state. It needs a file that was trained for "
        "this target.",
        needs_draft=True,
        memory=(),
        is_head=True,
        llama=DRAFT_FLAGS,
        make=_head,
    ),
    *(
        base.StrategyKind(
            name,
            params,
            f"A small block guesses a whole draft in one pass, from the target's internal state{more}. It "
            "needs a file that was trained for this target.",
            needs_draft=True,
            memory=(),
            is_head=True,
            llama=DRAFT_FLAGS._replace(notes=notes),
            make=_head,
        )
        for name, params, more, notes in (
            ("draft-dflash", HeadParams, "", {}),
            (
                "draft-dspark",
                DsparkParams,
                ", each given the token before it",
                {"p_min": "llama.cpp refuses p_min for a block without a confidence head."},
            ),
        )
    ),
    base.StrategyKind(
        "draft-mtp",
        HeadParams,
        "The target's own head guesses ahead (multi-token prediction). The head is in the target's file "
        "(Qwen3.5 and GLM-4.5 may have one) or in a separate file, loaded as the draft.",
        needs_mtp=True,
        walks=False,
        memory=(),
        is_head=True,
        llama=DRAFT_FLAGS,
        make=_head,
    ),
)
