"""DRY ("don't repeat yourself"): the longer a repetition that a token continues, the lower its logit.

Suppose that the last n tokens also occur earlier, and n is at least the allowed length. Then the token that
followed them there loses multiplier * base ** (n - allowed length). These are llama.cpp's numbers
(`llama_sampler_dry`), as a pure function of the row and the tokens before it. No state is kept between rows,
so drafted tokens are judged by the distribution of plain sampling.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from app.engine.types import Sampling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.native import Vocabulary

    Floats = NDArray[np.float32]
    Lengths = NDArray[np.intp]
    Mask = NDArray[np.bool_]
    TokenIds = NDArray[np.int32]

NO_BREAKER = "none"
"""This value removes all breakers before it, as in llama.cpp's option."""
_LONGEST_BREAKER = 40  # bytes
_LONGEST_TAIL = 20  # tokens
_LOG_MAX = np.float32(88.7228391)  # of the largest float32; llama.cpp bounds the exponent by it
_FLAT = np.float32(1.000001)  # up to this base the penalty does not grow
_LARGEST = float(np.finfo(np.float32).max)
_COMPARED = 4096  # tokens compared in one step
_STEP = 8  # least tokens compared per place in one step
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|([nrt'\"\\]))")
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


@dataclass(frozen=True, slots=True)
class Breakers:
    """Tokens that end a repetition: text before them is not compared."""

    alone: Mask
    """Whether each token ends a repetition by itself; shape [vocabulary]."""
    sequences: Sequence[tuple[TokenIds, Mask]] = ()
    """Token sequences that end a repetition: the later tokens, and whether each token may be the first."""

    def behind(self, tokens: TokenIds) -> int:
        """The number of tokens after the last breaker; all if there is none."""
        count = len(tokens)
        found = []  # for each breaker: the number of tokens after its first token, and after its last
        places = self.alone[tokens].nonzero()[0]
        if len(places):
            after = count - 1 - int(places[-1])
            found.append((after, after))
        for tail, is_head in self.sequences:
            n = len(tail)
            places = (tokens[1 : max(1, count - n + 1)] == tail[0]).nonzero()[0]
            for offset in range(1, n):
                places = places[tokens[places + 1 + offset] == tail[offset]]
            places = places[is_head[tokens[places]]]
            if len(places):
                after = count - 1 - int(places[-1])
                found.append((after, after - n))
        # The breaker that begins last counts; of two that begin there, the longer.
        return min(found)[1] if found else count


_known: WeakKeyDictionary[Vocabulary, tuple[str, Breakers]] = WeakKeyDictionary()
"""Cache of the breakers read last, for the next answer."""


def breakers_of(vocabulary: Vocabulary, sampling: Sampling) -> Breakers | None:
    """The breakers in a vocabulary; None if DRY is off."""
    if not is_on(sampling):
        return None
    written, breakers = _known.get(vocabulary, ("", None))
    if breakers is None or written != sampling.dry_sequence_breaker:
        breakers = _read_breakers(vocabulary, sampling.dry_sequence_breaker)
        _known[vocabulary] = sampling.dry_sequence_breaker, breakers
    return breakers


def is_on(sampling: Sampling) -> bool:
    """Whether DRY has an effect."""
    return sampling.dry_multiplier > 0 and sampling.dry_penalty_last_n != 0


def breaker_texts(written: str) -> list[bytes]:
    """The texts in a list separated by spaces; escapes and the length limit are llama.cpp's."""
    texts: list[bytes] = []
    for word in written.split():
        if word == NO_BREAKER:
            texts.clear()
        else:
            texts.append(_ESCAPE.sub(_unescaped, word.encode(errors="replace"))[:_LONGEST_BREAKER])
    return texts


def _unescaped(found: re.Match[bytes]) -> bytes:
    digits, letter = found.groups()
    return bytes([int(digits, 16)]) if digits else _ESCAPED.get(letter, letter)


def _read_breakers(vocabulary: Vocabulary, written: str) -> Breakers:
    """Find the breakers. Every token that contains a breaker's text ends a repetition. A token that ends with
    the beginning of such a text does so together with the tokens of its rest."""
    alone = np.zeros(vocabulary.size, np.bool_)
    sequences: dict[tuple[int, ...], Mask] = {}
    for text in breaker_texts(written):
        heads: dict[int, list[int]] = {}  # length of the text's beginning that a token ends with -> ids
        for id, word in vocabulary.words_with(text[0]):
            if text in word:
                alone[id] = True
                continue
            for length in range(1, len(text)):
                if word.endswith(text[:length]):
                    heads.setdefault(length, []).append(id)
        for length, ids in heads.items():
            rest = vocabulary.tokenize(text[length:], special=False, parse_special=False)[:_LONGEST_TAIL]
            mask = sequences.setdefault(tuple(rest.tolist()), np.zeros(vocabulary.size, np.bool_))
            mask[ids] = True
    alone |= sequences.pop((), False)  # an empty rest
    return Breakers(alone, [(np.array(rest, np.int32), mask) for rest, mask in sequences.items()])


class Dry:
    """The DRY penalty with given settings."""

    def __init__(self, sampling: Sampling, breakers: Breakers) -> None:
        self._breakers = breakers
        self._allowed = sampling.dry_allowed_length
        self._last_n = max(sampling.dry_penalty_last_n, 0)  # 0: all
        # In single precision, as in llama.cpp.
        base = np.float32(sampling.dry_base)
        self._multiplier, self._base = float(np.float32(sampling.dry_multiplier)), float(base)
        self._longest = self._allowed + int(_LOG_MAX / np.log(base)) if base > _FLAT else None

    def lower(self, logits: Floats, context: TokenIds) -> None:
        """Lower the logits, shape [vocabulary], in place; `context` is the tokens before, shape [n]."""
        tokens = context[-self._last_n :]
        latest = tokens[::-1]
        if len(tokens) <= self._allowed:
            return
        if self._allowed > 0:
            places = (latest[1:] == latest[0]).nonzero()[0] + 1
        else:  # also a token that repeats nothing is lowered
            places = np.arange(1, len(latest))
        if not len(places):
            return
        longest = self._breakers.behind(tokens)
        if self._longest is not None:
            longest = min(longest, self._longest)
        if longest < self._allowed:
            return
        lengths = _repeated(latest, places, longest)
        followers = latest[places - 1]
        counts = (lengths >= self._allowed) & ~self._breakers.alone[followers]
        if not np.logical_or.reduce(counts):
            return
        ids, lengths = followers[counts], lengths[counts]
        penalties = self._multiplier * np.power(self._base, lengths - self._allowed)
        order = lengths.argsort()  # the longest of a token's repetitions is written last
        ids, penalties = ids[order], np.minimum(penalties[order], _LARGEST).astype(np.float32)
        logits[ids] = logits[ids] - penalties


def _repeated(latest: TokenIds, places: Lengths, longest: int) -> Lengths:
    """How many of the latest tokens, last first, also end at each place, at most `longest`; 0 if a place
    cannot have the longest repetition. Each step compares tokens of all places that still match: a Python
    loop over the context would take milliseconds.
    """
    lengths = np.zeros(len(places), np.intp)
    # In cyclic text every period is such a place, and the nearest repetition is the longest.
    nearest, room = int(places[0]), np.minimum(len(latest) - places, longest)
    same = latest[nearest : nearest + room[0]] == latest[: room[0]]
    lengths[0] = room[0] if np.logical_and.reduce(same) else same.argmin()
    is_open = (room > lengths[0]) | (latest[places - 1] != latest[nearest - 1])
    is_open[0] = False
    going, done = is_open.nonzero()[0], 0
    padded = np.concatenate([latest, np.full(longest, -1, np.int32)])
    while len(going) and done < longest:
        size = min(longest - done, max(_STEP, _COMPARED // len(going)))
        steps = np.arange(done, done + size)
        same = padded[places[going][:, None] + steps] == latest[done : done + size]
        here = np.where(np.logical_and.reduce(same, axis=1), size, same.argmin(axis=1))
        lengths[going] += here
        going = going[here == size]
        done += size
    return lengths
