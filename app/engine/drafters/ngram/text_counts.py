"""Makes static lookup caches: what follows each pair of tokens in texts, for ngram-cache and llama.cpp."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from app.base.files import read_file, reason
from app.engine.drafters.ngram.cache_file import LookupCache
from app.engine.drafters.ngram.counts import STATIC_SIZE, Followers, count_ngrams
from app.engine.errors import PromptError

if TYPE_CHECKING:
    from app.engine.types import TokenIds


class Tokenizer(Protocol):
    """The part of a vocabulary that reads texts."""

    def tokenize(self, text: str, *, special: bool, parse_special: bool) -> TokenIds: ...


class TextCounts:
    """The counts of texts in one vocabulary. Control tokens that a text spells out are read as plain text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._counts: dict[bytes, Followers] = {}
        self.tokens = 0

    def __len__(self) -> int:
        """The number of n-grams."""
        return len(self._counts)

    def add_text(self, path: Path) -> int:
        """Count a text file in UTF-8; returns its number of tokens. Raises PromptError."""
        tokens = self._tokenizer.tokenize(_text(path), special=True, parse_special=False)
        count_ngrams(self._counts, tokens, sizes=(STATIC_SIZE, STATIC_SIZE))
        self.tokens += len(tokens)
        return len(tokens)

    def add_cache(self, cache: LookupCache) -> None:
        """Add the counts of another lookup cache of the same vocabulary."""
        for key in cache:
            followers = cache.get(key)
            assert followers is not None
            if key not in self._counts:
                self._counts[key] = followers
                continue
            for token, count in followers.items().items():
                self._counts[key].add(token, count)

    def as_file(self) -> bytes:
        """The contents of a file in llama.cpp's format."""
        return LookupCache.empty().merged(self._counts)


def _text(path: Path) -> str:
    try:
        return read_file(path).decode("utf-8")
    except OSError as error:
        raise PromptError(f"{path} cannot be read: {reason(error)}.", "Give another file.") from None
    except UnicodeDecodeError:
        raise PromptError(f"{path} is not UTF-8 text.", "Convert it first.") from None
