"""The candidates of "tune for me": strategies and settings worth trying on an unknown machine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, zip_longest

LOOKUPS = ((3, 8), (2, 4), (2, 8), (3, 16), (4, 32))
MATCHES = ((8, 16), (4, 8), (12, 48))
SUFFIXES = (8, 4, 16)
DRAFTS = (
    (4, 0.0),
    (8, 0.5),
    (2, 0.0),
    (6, 0.75),
    (3, 0.0),
    (16, 0.75),
    (1, 0.0),
    (12, 0.5),
    (8, 0.0),
    (4, 0.5),
)


def candidates(*, has_draft: bool) -> tuple[str, ...]:
    """Strategy specs, each once, the most promising of each family first: where time is short, the last are
    not tried. Strategies with a draft model only if there is one."""
    families = [_drafts(), _lookups(), _suffixes(), _mixed(), _matches()] if has_draft else []
    families = families or [_lookups(), _suffixes(), _matches()]
    rows = zip_longest(*families)
    return tuple(dict.fromkeys(spec for spec in chain.from_iterable(rows) if spec))


def _drafts() -> Iterator[str]:
    for n_max, p_min in DRAFTS:
        yield f"draft-simple:n_max={n_max}" + (f":p_min={p_min:g}" if p_min else "")


def _lookups() -> Iterator[str]:
    for size, tokens in LOOKUPS:
        yield f"prompt-lookup:max_ngram_size={size}:num_pred_tokens={tokens}"


def _suffixes() -> Iterator[str]:
    for n_max in SUFFIXES:
        yield f"suffix:n_max={n_max}"


def _mixed() -> Iterator[str]:
    yield "draft-simple:n_max=16:length=auto"
    for n_max in (4, 8):
        yield f"suffix:n_max=8+draft-simple:n_max={n_max}"
        yield f"ngram-simple:size_n=8:size_m=16+draft-simple:n_max={n_max}"


def _matches() -> Iterator[str]:
    for size_n, size_m in MATCHES:
        yield f"ngram-simple:size_n={size_n}:size_m={size_m}"
    yield "ngram-cache"
