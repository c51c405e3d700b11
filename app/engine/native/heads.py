"""Files that hold only what drafts for one other model: EAGLE-3 and DFlash drafts, MTP heads by themselves.

llama.cpp loads them like models, and a pass through one of them alone ends the process.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app.engine.compat import MTP, head_words
from app.engine.errors import ModelFileError
from app.engine.native.tensors import tensor_sizes

_FIRST_LAYER = "blk.0."


def why_head(path: Path, metadata: Callable[[str], str]) -> tuple[str, str] | None:
    """Why the file at `path` cannot be used, and what can use it, as in `head_words`; None for a model.

    `metadata` returns a value of the file as text, or "". Raises ModelFileError for a damaged file.
    """
    architecture = metadata("general.architecture")
    heads = metadata(f"{architecture}.nextn_predict_layers")
    if heads not in ("", "0") and not any(name.startswith(_FIRST_LAYER) for name, _ in tensor_sizes(path)):
        return head_words(MTP)
    return head_words(architecture)


def refuse_head(path: Path, metadata: Callable[[str], str]) -> None:
    """Raise ModelFileError for such a file."""
    if head := why_head(path, metadata):
        raise ModelFileError(f"{path.name} cannot be loaded: {head[0]}.", head[1])
