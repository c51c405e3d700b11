"""The target's tokens as the draft would read them: the same text in another vocabulary."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from app.engine.drafters.across.replacements import Replacements, TextStretch
from app.engine.drafters.across.spelling import Spelling

if TYPE_CHECKING:
    from app.engine.types import TokenIds

_OPEN = 8  # target tokens after the last joint from which on a new joint is looked for
_MOST_OPEN = 64  # target tokens after the last joint at which a joint is made even inside a word


class Mirror:
    """The target's text in a draft's tokens, updated as the text grows.

    The text is cut at joints, places where both vocabularies begin a token whatever follows: before a space
    after a word, and around control tokens. Text before the last joint is never tokenized again, so a round
    costs only the few tokens after it, however long the text is.
    """

    def __init__(self, target: Spelling, draft: Spelling, replacements: Replacements) -> None:
        """`replacements` turns the target's text into the draft's."""
        self._target, self._draft, self._replacements = target, draft, replacements
        self._ids: TokenIds = np.empty(1024, np.int32)
        self.clear()

    def clear(self) -> None:
        """Forget the text."""
        self._known: list[int] = []  # the target's tokens
        self.joints = [0]  # places in `_known`, ascending
        self._spelled = [0]  # the number of draft tokens before each joint
        self._length = 0
        if self._draft.vocabulary.adds_bos:
            self._append([self._draft.vocabulary.bos])
            self._spelled = [1]
        self.begun = b""

    @property
    def ids(self) -> TokenIds:
        """The draft's tokens for all whole characters, shape [n]; a view, valid until the text changes.

        `begun` has the bytes of an incomplete last character.
        """
        return self._ids[: self._length]

    def follow(self, context: TokenIds) -> None:
        """Set the text to that of `context`, any target tokens of shape [n]."""
        keep = min(len(self._known), len(context))
        differs = np.array(self._known[:keep], np.int32) != context[:keep]
        if differs.any():
            keep = int(differs.argmax())
        if keep < len(self._known):
            # A joint depends on the token after it.
            last = max(1, bisect_right(self.joints, keep - 1))
            del self.joints[last:], self._spelled[last:]
            del self._known[self.joints[-1] :]
            self._length, self.begun = self._spelled[-1], b""
        self.extend(context)

    def extend(self, context: TokenIds) -> None:
        """As `follow`, for a text that only grew: looks at the new tokens only."""
        new = context[len(self._known) :].tolist()
        if not new:
            return
        self._length = self._spelled[-1]
        for start in range(0, len(new), _MOST_OPEN):
            self._known += new[start : start + _MOST_OPEN]
            self._make_joints()
        runs, self.begun = self._target.runs(self._open())
        self._append(self._draft.ids(self._replacements.apply(runs), self._continues()))

    def _open(self) -> list[int]:
        """The target's tokens after the last joint; without BOS, because the draft adds its own."""
        start = self.joints[-1]
        vocabulary = self._target.vocabulary
        if start == 0 and vocabulary.adds_bos and self._known[:1] == [vocabulary.bos]:
            start = 1
        return self._known[start:]

    def _continues(self) -> bool:
        """Whether plain text stands before the last joint."""
        last = self.joints[-1]
        return last > 0 and bool(self._target.vocabulary.pieces[self._known[last - 1]])

    def _make_joints(self) -> None:
        """Make the joints that can be made, and fix the spelling of the text before the last."""
        if len(self._known) - self.joints[-1] < _OPEN:
            return
        open_ids = self._open()
        at = next((at for at in range(len(open_ids) - 1, 0, -1) if self._is_joint(open_ids, at)), 0)
        if not at:
            if len(open_ids) < _MOST_OPEN:
                return
            at = len(open_ids) - _OPEN
            while at > 1 and self._target.runs(open_ids[:at])[1]:
                at -= 1
        runs, broken = self._target.runs(open_ids[:at])
        if broken:
            runs.append(TextStretch("\ufffd"))
        self._append(self._draft.ids(self._replacements.apply(runs), self._continues()))
        self.joints.append(len(self._known) - len(open_ids) + at)
        self._spelled.append(self._length)

    def _is_joint(self, ids: list[int], at: int) -> bool:
        pieces = self._target.vocabulary.pieces
        before, behind = pieces[ids[at - 1]], pieces[ids[at]]
        if before and behind and not (behind[:1] == b" " and not before[-1:].isspace()):
            return False
        return not self._replacements.longest or self._parts_nothing(ids, at)

    def _parts_nothing(self, ids: list[int], at: int) -> bool:
        """Whether no replacement, now or after more text, spans the place `at`."""
        apply = self._replacements.apply
        left, behind = self._target.runs(ids[:at])[0], self._target.runs(ids[at:])[0]
        if sum(len(run.text) for run in behind) < self._replacements.longest:
            return False
        return _text(apply(left)) + _text(apply(behind)) == _text(apply([*left, *behind]))

    def _append(self, ids: list[int]) -> None:
        end = self._length + len(ids)
        if end > len(self._ids):
            grown = np.empty(2 * end, np.int32)
            grown[: self._length] = self._ids[: self._length]
            self._ids = grown
        self._ids[self._length : end] = ids
        self._length = end


def _text(runs: list[TextStretch]) -> str:
    return "".join(run.text for run in runs)
