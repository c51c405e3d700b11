"""The only access to llama.cpp: models, vocabularies, contexts. Nothing else imports llama_cpp.

- Memory that cannot be cut (recurrent, hybrid, sliding window) goes back in one of two ways. Where llama.cpp
  keeps snapshots of the last tokens' states (`n_rs_seq`), a rejected draft is taken back in place.
  Everywhere else `checkpoints.py` keeps states in host memory, and tokens are decoded again from the
  nearest: one state about every 64 tokens (or every window's length, where that is more), and on recurrent
  memory one before a draft is verified, unless the latest is at most six tokens back. `swa_full` (the
  default) keeps sliding windows in full, so that they can be cut like any other memory.
- A greedy draft is one compiled call (`features.py`), where the draft model's memory can be cut: between
  short passes over a large vocabulary, Python takes longer than the search for the best token.
- A head drafts from what its target computes (`head_context.py`: what heads share, and EAGLE-3; `heads.py`:
  MTP, Gemma 4's assistant, DFlash, DSpark, DFlash2). The target's context
  keeps a row for each token of its passes while a head listens (`features.py`), and forgets rows with their
  tokens. So a head's cache is a cache of tokens like any other: `sync`, `decode`, `best`, and draft-simple's
  loop drafts with it. A head that joins in mid-chat has no rows: the target reads the chat again.
- A vocabulary is not asked token by token (`vocabulary.py`): the file's header says which tokens are worth
  asking about, and whether two files have the same texts.
"""

from app.engine.native.context import SNAPSHOTS, Cancelled, Context
from app.engine.native.devices import chosen_devices, list_devices
from app.engine.native.ggml import backends
from app.engine.native.library import AbortFlag, end_helpers, on_abort, system_info
from app.engine.native.model import Model
from app.engine.native.vocabulary import Vocabulary

__all__ = [
    "SNAPSHOTS",
    "AbortFlag",
    "Cancelled",
    "Context",
    "Model",
    "Vocabulary",
    "backends",
    "chosen_devices",
    "end_helpers",
    "list_devices",
    "on_abort",
    "system_info",
]
