"""Tokens to text, and text to tokens that fit the text before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.engine.drafters.across.replacements import TextStretch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from app.engine.native import Vocabulary


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
        """Return the tokens that spell `raw` after `before`, the last few tokens of a text, as the text
        itself would continue.

        Tokenized together with the text before, because words are cut as a whole. `raw` may begin inside a
        character and ends with a whole character. The result ends before anything that this vocabulary cannot
        spell.
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
        """Return the tokens of `raw` on its own, after something that it is not tokenized together with."""
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
