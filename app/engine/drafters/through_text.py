"""draft-simple through text: the draft's vocabulary differs from its target's.

Lossless however the tokenizers differ: proposals are one-hot, so the target's verdict alone decides. After
llama.cpp's former `--spec-replace` and "universal assisted generation"
(huggingface.co/blog/universal_assisted_generation)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from app.engine.drafters.base import DRAFT_ENDED, ENOUGH, Drafter, Proposal, RunContext
from app.engine.drafters.draft_simple import drop_short, shares
from app.engine.drafters.mirror import Mirror, Replacements, Spelling, TextStretch, parse_pairs
from app.engine.errors import SettingError

if TYPE_CHECKING:
    from app.engine.drafters.draft_simple import DraftSimpleParams
    from app.engine.native import Context, Vocabulary
    from app.engine.types import TokenIds

_BEFORE = 6  # tokens of the target's text that drafted text is tokenized together with
_MOST_A_TOKEN = 8  # draft tokens spent on one token of the target


def refuse_sampling(params: DraftSimpleParams) -> None:
    """Raise SettingError if a draft with a different vocabulary is asked to sample."""
    if params.sample:
        raise SettingError(
            "sample=1 needs a draft with the target's vocabulary.",
            "This draft has a different one, so only its text is proposed, not its distribution: leave "
            "sample at 0.",
        )


class ThroughText(Drafter):
    """Drafts with a model that has a different vocabulary.

    The draft reads the target's text in its own tokens (`Mirror`) and continues it; its text is then spelled
    in the target's tokens. A proposal has no `DraftView`, which would describe different tokens.
    """

    def __init__(self, params: DraftSimpleParams, draft: Context, target: Vocabulary) -> None:
        """Raises SettingError if the draft is to sample."""
        self.adjust(params)
        self._draft = draft
        self._target_spelling = Spelling(target)
        self._draft_spelling = Spelling(draft.model.vocabulary)
        pairs = parse_pairs(params.replace)
        self._to_target = Replacements((ours, theirs) for theirs, ours in pairs)
        self._mirror = Mirror(self._target_spelling, self._draft_spelling, Replacements(pairs))

    def adjust(self, params: DraftSimpleParams) -> None:
        """Raises SettingError if the draft is to sample. `replace` cannot change: the mirror depends on
        it."""
        refuse_sampling(params)
        self._params = params

    def begin(self, context: TokenIds, surroundings: RunContext) -> None:
        self._end_ids = surroundings.end_ids
        self._mirror.follow(context)

    def unread(self, context: TokenIds) -> int:
        self._mirror.extend(context)
        ids = self._mirror.ids
        if len(ids) > self._draft.n_ctx:  # too long to draft after
            return 0
        return len(ids[:-1]) - self._draft.sync(ids[:-1])

    def read(self, context: TokenIds) -> Iterator[tuple[int, int]]:
        self._mirror.extend(context)
        ids = self._mirror.ids
        if len(ids) <= self._draft.n_ctx:
            for done in self._draft.read(ids[:-1]):
                yield done, len(ids)

    def propose(self, context: TokenIds, k: int) -> Proposal:
        self._mirror.extend(context)
        ids = self._mirror.ids
        if not len(ids):
            return Proposal(end="there is no text yet")
        if len(ids) > self._draft.n_ctx:
            return Proposal(end="the draft's context is full")
        proposal = Proposal()
        k = min(k, self._params.n_max)
        before = context[-_BEFORE:].tolist()
        drafted: list[int] = []
        step = ids[self._draft.sync(ids[:-1]) :]
        while not proposal.end:
            if len(ids) + len(drafted) > self._draft.n_ctx:
                proposal.end = "the draft's context is full"
            elif len(drafted) == _MOST_A_TOKEN * k:
                proposal.end = "the draft wrote too little text"
            elif (token := self._next_token(step)) is None:
                proposal.end = "p_min"
            else:
                drafted.append(token)
                step = np.array([token], np.int32)
                proposal.ids, proposal.end = self._spelled(drafted, before)
                if not proposal.end and len(proposal.ids) >= k:
                    proposal.end = "n_max" if k == self._params.n_max else ENOUGH
        proposal.cut(k)
        drop_short(proposal, self._params.n_min)
        return proposal

    def _next_token(self, step: TokenIds) -> int | None:
        """The draft's best token after `step`; None if it is less probable than p_min."""
        ((ids, logits),) = self._draft.best(step, self._draft.model.vocabulary.size)
        if not ids or math.isinf(logits[0]):
            raise self._draft.no_numbers()
        return None if 0 < self._params.p_min > shares(logits)[0] else ids[0]

    def _spelled(self, drafted: list[int], before: list[int]) -> tuple[list[int], str]:
        """The target's tokens for the text drafted after its tokens `before`, and why the draft ends here, or
        "". A last token that may yet become a longer one is left out."""
        ends = drafted[-1] in self._draft_spelling.vocabulary.end_ids
        runs, unfinished = self._draft_spelling.runs(drafted)
        if runs and not ends:
            text = runs[-1].text
            if held := self._to_target.unfinished(text):
                runs[-1] = TextStretch(text[:-held], runs[-1].control)
                unfinished = text[-held:].encode(errors="replace")
        ids: list[int] = []
        begun = self._mirror.begun
        for run in self._to_target.apply(runs):
            if run.control:
                new = self._target_spelling.control(run.text)
                whole = bool(new)
            else:
                raw = run.text.encode(errors="replace")
                if not raw.startswith(begun):
                    return [], "did not fit the unfinished character"
                raw = raw[len(begun) :]
                new = self._target_spelling.ids_behind([*before, *ids][-_BEFORE:], raw)
                whole = self._target_spelling.length(new) == len(raw)
            begun = b""
            ids += new
            for place, id in enumerate(ids):
                if id in self._end_ids:
                    return ids[: place + 1], DRAFT_ENDED
            if not whole:
                return ids, DRAFT_ENDED if ends else "the target cannot spell it"
        if ends:
            return ids, DRAFT_ENDED
        if ids and (unfinished or not self._stands(ids[-1], drafted[-1])):
            ids.pop()
        return ids, ""

    def _stands(self, ours: int, theirs: int) -> bool:
        """Whether the target's last token is complete: the draft wrote it as one token. A space or a single
        letter is not: those usually begin a word."""
        piece = self._target_spelling.vocabulary.pieces[ours]
        in_one_go = len(self._draft_spelling.vocabulary.pieces[theirs]) >= len(piece)
        return in_one_go and not piece.isspace() and not (len(piece) == 1 and piece.isalnum())

    def reset(self) -> None:
        self._draft.clear()
        self._mirror.clear()
