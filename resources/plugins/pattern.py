"""pattern: drafts text that a regular expression fully determines.

A worked example of a drafter that works on text. While a line follows one of the patterns and only one
character can come next, that character is certain. After `import num` only `py as np` can follow, and after
an indented `result` only ` = 0`. Try it:

    draftscope run --drafter resources/plugins/pattern.py --strategy pattern --chat --prompt \\
        "Please write a short function that returns the sum of a list of numbers."
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.engine.plugins import Drafter, Proposal, Resources, SettingError, StrategyKind, param

LINES = (
    'if __name__ == "__main__":|from __future__ import annotations|import numpy as np| *{"role": ".*'
    "|```python|    result = 0|        result \\+= .*|    return result"
)
ITEM = re.compile(r"(\[\^?\]?[^\]]*\]|\\.|.)([*+?]?)", re.DOTALL)
Item = tuple[str | re.Pattern[str] | None, bool, bool]  # what it reads, may be left out, may repeat


class Automaton:
    """Regular expressions without groups: characters, `.`, `[a-z]`, `\\d` and the like, each with `*`, `+`
    or `?` after it; `|` between whole lines; `\\` escapes a character. A state is a place in the pattern."""

    def __init__(self, pattern: str) -> None:
        self._items: list[Item] = []
        starts = {0}
        for what, sign in ITEM.findall(pattern):
            if what in "()[*+?":
                raise SettingError(f"A pattern cannot have “{what}” there.", f"Write \\{what} to match it.")
            if what == "|":
                self._items.append((None, False, False))
                starts.add(len(self._items))
                continue
            plain = (len(what) == 1 and what != ".") or re.fullmatch(r"\\\W", what)
            try:
                read = what[-1] if plain else re.compile(what)
            except re.error as error:
                raise SettingError(f"“{what}” cannot be read in a pattern: {error}.") from error
            if sign == "+":
                self._items.append((read, False, False))
            self._items.append((read, bool(sign), sign in ("*", "+")))
        self._items.append((None, False, False))  # a pattern ends where nothing more is read
        self.start = self._with_left_out(starts)

    def after(self, states: set[int], character: str) -> set[int]:
        """The states after one more character; empty if the line follows no pattern."""
        behind = set()
        for state in states:
            read, _left_out, again = self._items[state]
            if read == character or (isinstance(read, re.Pattern) and read.match(character)):
                behind.add(state if again else state + 1)
        return self._with_left_out(behind)

    def certain(self, states: set[int]) -> str:
        """The only character that can come next; empty if there is a choice, or if a pattern ends."""
        reads = {self._items[state][0] for state in states}
        only = reads.pop() if len(reads) == 1 else None
        return only if isinstance(only, str) else ""

    def _with_left_out(self, states: set[int]) -> set[int]:
        for at, (_read, left_out, _again) in enumerate(self._items):
            if at in states and left_out:
                states.add(at + 1)
        return states


@dataclass(frozen=True, slots=True)
class PatternParams:
    """Settings of pattern. An error of `__post_init__` is shown where the setting was typed."""

    pattern: str = param(LINES, "Regular expressions for whole lines, with | between them.")
    min_match: int = param(4, "Draft after this many characters of a line.", low=0, high=1000)

    def __post_init__(self) -> None:
        Automaton(self.pattern)


class Pattern(Drafter):
    """Follows the last line of the text through the automaton, and drafts what is certain after it."""

    def __init__(self, params: PatternParams, resources: Resources) -> None:
        self._params = params
        self._vocabulary = resources.vocabulary
        self._automaton = Automaton(params.pattern)

    def begin(self, context, surroundings) -> None:
        self._line, self._read = b"", 0
        self.observe(context, Proposal(), 0)

    def observe(self, context, proposal: Proposal, accepted: int) -> None:
        """From tokens to text. A token is a few bytes, and a character may take several tokens."""
        new = b"".join(map(self._vocabulary.piece, context[self._read :].tolist()))
        self._line = (self._line + new).rpartition(b"\n")[2]
        self._read = len(context)

    def propose(self, context, k: int) -> Proposal:
        line = self._line.decode(errors="replace")
        states = self._automaton.start
        for character in line:
            states = self._automaton.after(states, character)
            if not states:
                break
        if not states or len(line) < self._params.min_match:
            return Proposal(end="the line follows no pattern")
        text = ""
        while len(text) < 8 * k and (character := self._automaton.certain(states)):
            text += character
            states = self._automaton.after(states, character)
        return Proposal(ids=self._behind(line, text)[:k], end="nothing more is certain")

    def _behind(self, line: str, text: str) -> list[int]:
        """From text to tokens. If a token spans both texts, `text` is tokenized alone: a worse guess is only
        rejected."""
        before, whole = self._tokens(line), self._tokens(line + text)
        return whole[len(before) :] if whole[: len(before)] == before else self._tokens(text)

    def _tokens(self, text: str) -> list[int]:
        return self._vocabulary.tokenize(text, special=False, parse_special=False).tolist()


STRATEGY = StrategyKind(
    "pattern",
    PatternParams,
    "Drafts text that a regular expression fully determines: fixed lines of code, JSON keys, table rules.",
    length="",  # no setting limits a draft
    make=Pattern,
)
