"""Drafters: the strategies that propose the next tokens. Each has one file, and one entry in `registry.py`.

A strategy is a parameter dataclass, a class derived from `Drafter` (`base.py`) and one `StrategyKind`;
grammar, forms, tooltips and command line come from these. A drafter lives in the engine across answers and
chats, keyed by the settings that shape its memory (`StrategyKind.memory`); the others may change (`adjust`).
A cold run has drafters of its own. Parts joined by `+` are asked in order until one proposes; statistics are
kept for each.

- `ngram_*.py`: llama.cpp's own n-gram drafters propose what the llama.cpp that is built in proposes for the
  same calls. `tests/vectors` holds what its unmodified code proposed, and how that was made. `index.py`
  answers its scans from an index, with its 18-bit hash collisions. Ties in the cache's unordered maps go to
  the lowest id, because the original's order is that of its hash table.
- `suffix.py` keeps suffix automata: one of this conversation and two of earlier answers, the older of which
  is dropped when the younger is full. Appending is amortised O(1); a proposal follows the most frequent
  continuation.
- `through_text.py`: where `compat.py` says "different: through text", `mirror.py` keeps the draft's own
  reading of the target's text, cut where both tokenizers have a joint; what the draft writes is spelled in
  the target's tokens. The proposal is one-hot, so it is lossless whatever the two tokenizers make of each
  other.
- `oracle.py` is synthetic: the engine rehearses the answer without speculation, outside all measured times,
  and the strategy drafts it with planted errors at a chosen cost. What such a draft would bring is measured,
  not predicted; `StrategyKind.is_synthetic` makes every output say so.
- `foreign.py`: people's own drafters (`app/engine/plugins.py`). Their files travel with every request, so
  the engine process keeps no state of them. The window first reads a new or changed file in a short-lived
  process (`TriedDrafters`). `guarded.py` turns an exception, wrong ids or slowness into a lost draft.
  They are one-hot: a q that is not the distribution drawn from would break the target's law unnoticed.
"""
