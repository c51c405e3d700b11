"""ngram-cache: drafts what followed the last few tokens in this text, in earlier answers and in a large
corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from app.engine.drafters.base import ENOUGH, Drafter, Keeps, LlamaFlags, Proposal, StrategyKind
from app.engine.drafters.cache_file import (
    MAX_SIZE,
    STATIC_SIZE,
    TOKEN_BYTES,
    Followers,
    LookupCache,
    count_ngrams,
    token_bytes,
)
from app.engine.drafters.lookup_caches import DynamicCache, LookupCaches
from app.engine.params import FileUse, param

if TYPE_CHECKING:
    from app.engine.types import TokenIds

# n-gram size - 1 -> least count, and least share in % of the token to draft; llama.cpp's
_LAX = ((2, 66), (2, 50), (1, 50), (1, 50))
_STRICT = ((4, 75), (3, 66), (2, 66), (2, 66))


@dataclass(frozen=True, slots=True)
class NgramCacheParams:
    """Settings of ngram-cache; names are llama.cpp's.

    n_draft: Draft at most this many tokens per round. Usually 4 to 16: a higher limit gains more if most
        drafts are accepted, and costs more if not.
    lookup_cache_static: File with the statistics of a large text, made for this target by draftscope
        lookup-cache or llama-lookup-create. It is never changed.
    lookup_cache_dynamic: File with the statistics of earlier answers. Every answer is added; a missing file
        is created.
    """

    n_draft: int = param(8, low=1, high=512, unit="tokens")
    lookup_cache_static: str = param("", file=FileUse.READ)
    lookup_cache_dynamic: str = param("", file=FileUse.WRITTEN)


class _FollowerTable(Protocol):
    def get(self, key: bytes, /) -> Followers | None: ...


class NgramCache(Drafter):
    """llama.cpp's ngram-cache, call for call (common/speculative.cpp, common/ngram-cache.cpp), ties apart:
    see `Followers`.

    llama.cpp's draft reads the tokens before the last one and takes the last one separately; `propose` gets
    it at the end of the context. Its begin and accept do nothing, as here. Three traits follow. Only
    `propose` learns. No n-gram spans tokens learned by two calls, so single tokens teach nothing. A new text
    is read from the place where the longest earlier text ended.

    llama.cpp's server never writes the dynamic file. Here the answer is added as llama-lookup does, but a
    beginning shared with the last added text is not counted again. Drafts come from the file's state when the
    strategy was first used.
    """

    def __init__(self, params: NgramCacheParams, n_vocab: int, caches: LookupCaches | None = None) -> None:
        """`n_vocab` is the target's. Raises SettingError if a file cannot be used."""
        caches = caches or LookupCaches()
        self._static = self.dynamic = LookupCache.empty()
        if params.lookup_cache_static:
            self._static = caches.static(params.lookup_cache_static, n_vocab)
        self._file: DynamicCache | None = None
        if params.lookup_cache_dynamic:
            self._file = caches.dynamic(params.lookup_cache_dynamic, n_vocab)
            self.dynamic = self._file.statistics
        self.adjust(params)
        self.reset()

    def adjust(self, params: NgramCacheParams) -> None:
        self._n_draft = params.n_draft

    def reset(self) -> None:
        self._context: dict[bytes, Followers] = {}
        self._learned = 0  # tokens of the text

    def propose(self, context: TokenIds, k: int) -> Proposal:
        if self._learned < len(context):
            count_ngrams(self._context, context[self._learned :])
            self._learned = len(context)
        wanted = min(k, self._n_draft)
        ids: list[int] = []
        tail = token_bytes(context[-MAX_SIZE:])
        while len(ids) < wanted and len(tail) >= TOKEN_BYTES * STATIC_SIZE:
            token = self._next(tail)
            if token is None:
                return Proposal(ids=ids, end="nothing likely enough" if ids else "no match")
            ids.append(token)
            tail = tail[-TOKEN_BYTES * (MAX_SIZE - 1) :] + token.to_bytes(TOKEN_BYTES, "little")
        if not ids:
            return Proposal(end="no match")
        return Proposal(ids=ids, end="n_draft" if len(ids) == self._n_draft else ENOUGH)

    def _next(self, tail: bytes) -> int | None:
        """The token to draft after the last tokens, at most four, given as bytes."""
        static = self._static.get(tail[-TOKEN_BYTES * STATIC_SIZE :])
        token = _likely(self._context, tail, static, _LAX)
        if token is None:
            token = _likely(self.dynamic, tail, static, _STRICT)
        if token is None and static is not None:
            sure = _enough(static, static.best_count, _LAX[STATIC_SIZE - 1])
            return static.best if sure else None
        return token

    def finish(self, context: TokenIds) -> None:
        """Add the answer to the dynamic file. Raises SettingError on failure."""
        if self._file is not None:
            self._file.add(context)


def _likely(
    statistics: _FollowerTable, tail: bytes, static: Followers | None, limits: tuple[tuple[int, int], ...]
) -> int | None:
    """The likeliest follower of the longest n-gram that was seen often enough and is sure enough."""
    for size in range(min(MAX_SIZE, len(tail) // TOKEN_BYTES), 0, -1):
        followers = statistics.get(tail[-TOKEN_BYTES * size :])
        limit = limits[size - 1]
        # If the most common token is too rare, all are: they need not be weighed.
        if followers is not None and _enough(followers, followers.best_count, limit):
            token, count = followers.best_beside(static)
            if _enough(followers, count, limit):
                return token
    return None


def _enough(followers: Followers, count: int, limit: tuple[int, int]) -> bool:
    least, percent = limit
    return followers.total >= least and 100 * count >= percent * followers.total


KIND = StrategyKind(
    "ngram-cache",
    NgramCacheParams,
    "Counts what followed the last one to four tokens, here and in files of earlier texts. Helps if "
    "phrases recur, or if the files come from similar texts. Uses 0.6 kB of memory per token of the "
    "longest text, plus the files.",
    keeps=Keeps(600),
    memory=("lookup_cache_static", "lookup_cache_dynamic"),
    settings=("n_draft=8", "n_draft=4"),
    length="n_draft",
    remembers=True,
    llama=LlamaFlags(
        "ngram-cache",
        plain=("lookup_cache_static", "lookup_cache_dynamic"),
        own={"n_draft": "llama.cpp's ngram-cache drafts up to 8 tokens"},
        notes={"lookup_cache_dynamic": "llama-server reads the dynamic lookup cache and adds nothing to it."},
    ),
    make=lambda params, resources: NgramCache(params, resources.vocabulary.size, resources.lookup_caches),
)
