"""Files that hold only what drafts for one other model: heads, which read what it computes.

llama.cpp loads them like models, and a pass through one of them alone ends the process or drafts garbage.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app.engine.compat import DFLASH2, DSPARK, MTP, head_words
from app.engine.errors import ModelFileError
from app.engine.native.tensors import tensor_sizes

_RELATIVES = {"markov_w1.weight": DSPARK, "selector_hidden.weight": DFLASH2}  # by a tensor of their own


def architecture_of(path: Path, metadata: Callable[[str], str]) -> str:
    """The architecture of the file at `path`, more exact than the file says it where it is a head.

    `metadata` returns a value of the file as text, or "". Raises ModelFileError for a damaged file.
    """
    architecture = metadata("general.architecture")
    heads = metadata(f"{architecture}.nextn_predict_layers")
    if architecture == "dflash" or heads not in ("", "0"):
        names = [name for name, _ in tensor_sizes(path)]
        if architecture == "dflash":
            return next((kind for name, kind in _RELATIVES.items() if name in names), architecture)
        if not any(name.startswith("blk.0.") for name in names):
            return MTP
    return architecture


def refuse_head(path: Path, metadata: Callable[[str], str]) -> None:
    """Raise ModelFileError for a head that Draftscope cannot draft with."""
    if head := head_words(architecture_of(path, metadata)):
        raise ModelFileError(f"{path.name} cannot be loaded: {head[0]}.", head[1])
