"""The spans of an answer, and the tokens among them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import takewhile

from app.ui.transcript.text.spans import Span


class SpanList(list[Span]):
    """The spans as they are shown, in the order of their rounds. `drafts` asks for struck drafts too."""

    def of_round(self, index: int, drafts: bool) -> list[Span]:
        """The spans of a round; empty where it shows no token."""
        spans = takewhile(lambda span: span.round == index, self._since(index))
        shown = [span for span in spans if drafts or not span.struck]
        return shown if any(span.fate for span in shown) else []

    def first_of_round(self, index: int, drafts: bool) -> Span | None:
        """The first token that a round shows."""
        return next((span for span in self.of_round(index, drafts) if span.fate), None)

    def emitted_from(self, index: int, place: int, count: int) -> list[Span]:
        """The spans of at most `count` emitted tokens, from a place of a round on."""
        found: list[Span] = []
        tokens: set[tuple[int, int]] = set()
        for span in self._since(index):
            if span.struck or not span.fate or (span.round, span.place) < (index, place):
                continue
            tokens.add((span.round, span.place))
            if len(tokens) > count:
                break
            found.append(span)
        return found

    def step(self, span: Span | None, by: int, drafts: bool) -> Span | None:
        """The token `by` places on; None beyond the ends. Without a token to begin at, the first or the
        last."""
        tokens = [span for span in self if span.fate and (drafts or not span.struck)]
        if span is None:
            return tokens[0 if by > 0 else -1] if tokens else None
        for place, token in enumerate(tokens):
            if token.same_token(span):
                wanted = place + by
                while 0 <= wanted < len(tokens) and tokens[wanted].same_token(span):
                    wanted += by
                return tokens[wanted] if 0 <= wanted < len(tokens) else None
        return None

    def _since(self, index: int) -> Iterator[Span]:
        """The spans from a round on."""
        start = bisect_left(self, index, key=lambda span: span.round)
        return (self[at] for at in range(start, len(self)))
