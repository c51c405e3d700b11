"""Drafters: the strategies that propose the next tokens. Each has a file and an entry in `registry.py`.

A strategy is a parameter dataclass, a class derived from `Drafter` (`base.py`) and a `StrategyKind`; grammar,
forms, tooltips and command line come from these. The engine keeps a drafter across answers and chats, keyed
by the settings that shape its memory (`StrategyKind.memory`); other settings may change (`adjust`). A cold
run has its own drafters. Parts joined by `+` are asked in order until one proposes; each has its own
statistics.

- `ngram_*.py`: llama.cpp's n-gram drafters propose what the built-in llama.cpp proposes for the same calls.
  `tests/vectors` contains proposals of its unmodified code, and how they were made. An index replaces its
  scans (`index.py`), and reproduces its 18-bit hash collisions. Ties in the cache's unordered maps go to the
  lowest id: the original's order depends on its hash table.
- `suffix.py` keeps suffix automata: one of this conversation and two of earlier answers. The older of those
  is dropped when the younger is full. Appending is amortised O(1); a proposal follows the most frequent
  continuation.
- `through_text.py` serves a draft with a different vocabulary. `mirror.py` keeps the target's text in the
  draft's tokens, cut where both tokenizers begin a token; the draft's text is spelled in the target's tokens.
  Proposals are one-hot, so they are lossless whatever the tokenizers do.
- `oracle.py` is synthetic. The engine rehearses the answer without speculation, outside all measured times;
  the strategy then drafts it with planted errors at a chosen cost. So the gain of such a draft is measured,
  not predicted. `StrategyKind.is_synthetic` makes every output say so.
- `foreign.py` serves plug-in drafters (`app/engine/plugins.py`). Every request carries their files, so the
  engine process keeps no state of them. The window first reads a new or changed file in a short-lived process
  (`TriedDrafters`). `guarded.py` turns an exception, wrong ids or slowness into a lost draft. Plug-in drafts
  are one-hot: a wrong q would change the distribution unnoticed.
"""
