"""The only access to llama.cpp: models, vocabularies, contexts. No other package imports llama_cpp.

- Memory that cannot be cut (recurrent, hybrid, sliding window) is rewound in one of two ways. If llama.cpp
  keeps snapshots of the last tokens' states (`n_rs_seq`), a rejected draft is undone in place. Otherwise
  `checkpoints.py` keeps states in host memory, and tokens are decoded again from the nearest. It saves a
  state about every 64 tokens (or every window's length, if longer). Recurrent memory is also saved before a
  draft is verified, unless the last state is at most six tokens back. `swa_full` (the default) keeps whole
  sliding windows, which can be cut like any other memory.
- A greedy draft is one compiled call (`features.py`) if the draft model's memory can be cut. Between short
  passes over a large vocabulary, Python takes longer than the search for the best token.
- A head drafts from what its target computes. `head_context.py` has the common part and EAGLE-3; `heads.py`
  has MTP, Gemma 4's assistant, DFlash, DSpark and DFlash2. While a head listens, the target's context keeps a
  row for each token of its passes (`features.py`), and forgets rows with their tokens. So a head's cache
  works like any other cache of tokens (`sync`, `decode`, `best`), and draft-simple's loop drafts with it. If
  a head joins in mid-chat, the target reads the chat again to get the rows.
- llama.cpp is not asked about every token of a vocabulary (`vocabulary.py`). The file's header says which
  tokens matter, and whether two files have the same texts.
"""

from app.engine.native.context import SNAPSHOTS, Cancelled, Context
from app.engine.native.devices import chosen_devices, list_devices
from app.engine.native.ggml import backends
from app.engine.native.library import AbortFlag, end_helpers, on_abort, system_info
from app.engine.native.model import Model
from app.engine.native.vocabulary import Vocabulary

__all__ = [
    "SNAPSHOTS", "AbortFlag", "Cancelled", "Context", "Model", "Vocabulary", "backends", "chosen_devices",
    "end_helpers", "list_devices", "on_abort", "system_info",
]  # fmt: skip
