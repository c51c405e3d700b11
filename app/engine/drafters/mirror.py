"""The target's text in the tokens of a draft with a different vocabulary."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import numpy as np

from app.engine.errors import SettingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.engine.native import Vocabulary
    from app.engine.types import TokenIds


_pairs = msgspec.json.Decoder(list[tuple[Annotated[str, msgspec.Meta(min_length=1)], str]])


class TextStretch(NamedTuple):
    """A stretch of text; `control` marks the names of control tokens, which plain text never becomes."""

    text: str
    control: bool = False


class Replacements:
    """One direction: every SOURCE becomes its DESTINATION, in a single pass. Of two sources at the same
    place, the longer wins; of equal ones, the first."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._pairs: dict[str, str] = {}
        for source, destination in pairs:
            if source:
                self._pairs.setdefault(source, destination)
        self.longest = max(map(len, self._pairs), default=0)  # characters
        sources = sorted(self._pairs, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, sources))) if sources else None

    def apply(self, runs: Sequence[TextStretch]) -> list[TextStretch]:
        """Return the runs with everything replaced. A replacement of a control token, or of part of one, is
        control."""
        if self._pattern is None:
            return list(runs)
        text = "".join(run.text for run in runs)
        control = b"".join(bytes([run.control]) * len(run.text) for run in runs)  # one byte per character
        replaced: list[TextStretch] = []
        at = 0
        for match in self._pattern.finditer(text):
            _add_unchanged(replaced, text, control, at, match.start())
            _add(replaced, self._pairs[match[0]], 1 in control[match.start() : match.end()])
            at = match.end()
        _add_unchanged(replaced, text, control, at, len(text))
        return replaced

    def unfinished(self, text: str) -> int:
        """The length of the longest suffix of `text` that may become a source when more text follows."""
        for length in range(min(self.longest - 1, len(text)), 0, -1):
            end = text[-length:]
            if any(len(source) > length and source.startswith(end) for source in self._pairs):
                return length
        return 0


def parse_pairs(written: str) -> list[tuple[str, str]]:
    """Read (TARGET, DRAFT) pairs from a JSON list; none from an empty text. Raises SettingError."""
    if not written:
        return []
    try:
        return _pairs.decode(written)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise SettingError(
            f"replace cannot be {written!r}.", 'Write a JSON list of pairs: [["TARGET", "DRAFT"], …].'
        ) from None


def _add_unchanged(runs: list[TextStretch], text: str, control: bytes, start: int, end: int) -> None:
    while start < end:
        change = control.find(1 - control[start], start, end)
        stop = change if change >= 0 else end
        _add(runs, text[start:stop], bool(control[start]))
        start = stop


def _add(runs: list[TextStretch], text: str, control: bool) -> None:
    if runs and runs[-1].control == control:
        runs[-1] = TextStretch(runs[-1].text + text, control)
    elif text:
        runs.append(TextStretch(text, control))


class Spelling:
    """A vocabulary that tokenizes a text piece by piece as it would tokenize the whole."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._piece = vocabulary.pieces.__getitem__

    def runs(self, ids: Sequence[int]) -> tuple[list[TextStretch], bytes]:
        """Return the text of tokens, control tokens by name, and the trailing bytes of an incomplete
        character."""
        runs: list[TextStretch] = []
        raw = b""
        for id in ids:
            piece = self._piece(id)
            if piece:
                raw += piece
            elif name := self.vocabulary.label(id):
                if raw:
                    runs.append(TextStretch(raw.decode(errors="replace")))
                    raw = b""
                runs.append(TextStretch(name, control=True))
        rest = raw[len(raw) - _begun(raw) :]
        if text := raw[: len(raw) - len(rest)].decode(errors="replace"):
            runs.append(TextStretch(text))
        return runs, rest

    def ids(self, runs: Sequence[TextStretch], continues: bool) -> list[int]:
        """Return the tokens of a text; `continues` if plain text precedes it."""
        ids: list[int] = []
        for run in runs:
            plain = continues and not run.control
            ids += self._continued(run.text) if plain else self._tokenize(run.text, run.control)
            continues = False
        return ids

    def ids_behind(self, before: Sequence[int], raw: bytes) -> list[int]:
        """Return the tokens that spell `raw` after `before`, the last few tokens of a text.

        Both are tokenized together, because words are cut as a whole. `raw` may begin inside a character, and
        ends with a whole one. The result ends before anything that this vocabulary cannot spell.
        """
        lead = b""
        for id in reversed(before):
            piece = self._piece(id)
            if not piece:  # a control token: nothing is joined across it
                break
            lead = piece + lead
        # No tokenizer reads half a character.
        start = next((at for at, byte in enumerate(lead) if byte & 0xC0 != 0x80), len(lead))
        return self._split(lead[start:] + raw, len(lead) - start) or self._alone(raw)

    def control(self, name: str) -> list[int]:
        """Return the tokens of a control token's name; none if this vocabulary has no such token."""
        ids = self._tokenize(name, control=True)
        return ids if len(ids) == 1 or any(not self._piece(id) for id in ids) else []

    def length(self, ids: Sequence[int]) -> int:
        """The number of bytes that the tokens add to a text."""
        return sum(len(self._piece(id)) for id in ids)

    def _alone(self, raw: bytes) -> list[int]:
        """Return the tokens of `raw` alone: it is not tokenized together with what precedes it."""
        try:
            return self._spelling(self._continued(raw.decode()), raw)
        except UnicodeDecodeError:
            return []

    def _split(self, raw: bytes, seam: int) -> list[int]:
        """Return the tokens of `raw` from byte `seam` on; none if no token begins there."""
        try:
            ids = self._tokenize(raw.decode())
        except UnicodeDecodeError:
            return []
        at = -seam - self.vocabulary.puts_space
        for place, id in enumerate(ids):
            if at == 0:
                return self._spelling(ids[place:], raw[seam:])
            at += len(self._piece(id))
            if at > 0:
                break
        return []

    def _spelling(self, ids: Sequence[int], raw: bytes) -> list[int]:
        """Return the longest beginning of `ids` that spells `raw`."""
        at = 0
        for place, id in enumerate(ids):
            piece = self._piece(id)
            if not piece or raw[at : at + len(piece)] != piece:
                # The tokenizer changes texts (lower case, other character forms), or does not know this text.
                return list(ids[:place])
            at += len(piece)
        return list(ids)

    def _continued(self, text: str) -> list[int]:
        return self._known(self.vocabulary.tokenize_behind(text, parse_special=False))

    def _tokenize(self, text: str, control: bool = False) -> list[int]:
        return self._known(self.vocabulary.tokenize(text, special=False, parse_special=control))

    def _known(self, ids: NDArray[np.int32]) -> list[int]:
        # A tokenizer without an unknown token returns -1.
        return [id for id in ids.tolist() if 0 <= id < self.vocabulary.size]


def _begun(raw: bytes) -> int:
    """The number of trailing bytes that begin an incomplete character: 0 to 3."""
    for back in range(1, min(3, len(raw)) + 1):
        byte = raw[-back]
        if byte >= 0xC0:
            needed = 2 + (byte >= 0xE0) + (byte >= 0xF0)
            return back if back < needed else 0
        if byte < 0x80:
            return 0
    return 0


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
        """Like `follow`, for a text that only grew: looks at the new tokens alone."""
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
        """Whether there is plain text before the last joint."""
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
