"""Finished answers, indexed together; the oldest are forgotten."""

from __future__ import annotations

from app.engine.drafters.suffix.index import SEAM, SuffixIndex


class EarlierAnswers:
    """At most `max_tokens` tokens of answers, in two indices of half that size each.

    Nothing can be removed from an index. So answers go into the younger index; when that is full it becomes
    the older one, and the former older index is dropped whole. No index is ever rebuilt.
    """

    def __init__(self, max_depth: int, max_tokens: int) -> None:
        self._depth = max_depth
        self._half = max_tokens // 2
        self._younger = SuffixIndex(max_depth)
        self._older = SuffixIndex(max_depth)

    @property
    def indices(self) -> tuple[SuffixIndex, SuffixIndex]:
        """Both indices, the younger first."""
        return self._younger, self._older

    def add(self, answer: list[int]) -> None:
        """Keep an answer; of an answer longer than half of the limit, only the end."""
        room = self._half - 1  # one place is for the seam
        if room < 1 or not answer:
            return
        answer = answer[-room:]
        if self._younger.size + len(answer) + 1 > self._half:
            self._older, self._younger = self._younger, SuffixIndex(self._depth)
        self._younger.extend(answer)
        self._younger.extend([SEAM])
