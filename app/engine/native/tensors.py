"""The tensors of a model's files, from their headers; and files that hold only what drafts for one other
model.

llama.cpp loads them like models, and a pass through one of them alone ends the process or drafts garbage."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from app.engine.compat import ASSISTANT, DFLASH2, DSPARK, MTP
from app.engine.errors import ModelFileError
from app.engine.native.library import raw_call as _call

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


class _NoAlloc(ctypes.Structure):
    """gguf_init_params"""

    _fields_ = (("no_alloc", ctypes.c_bool), ("context", ctypes.c_void_p))


_open = _call("gguf_init_from_file", ctypes.c_void_p, ctypes.c_char_p, _NoAlloc)
_free = _call("gguf_free", None, ctypes.c_void_p)
_count = _call("gguf_get_n_tensors", ctypes.c_int64, ctypes.c_void_p)
_name = _call("gguf_get_tensor_name", ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64)
_size = _call("gguf_get_tensor_size", ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int64)


def tensor_sizes(path: Path) -> Iterator[tuple[str, int]]:
    """Yield name and bytes of every tensor of a model file, in all its shards. Raises ModelFileError."""
    for shard in _shards(path):
        head = _open(os.fsencode(shard), _NoAlloc(True, None))
        if not head:
            raise ModelFileError(f"{shard.name} is cut short or damaged.", "Download or copy it again.")
        try:
            for index in range(_count(head)):
                yield _name(head, index).decode("utf-8", errors="replace"), _size(head, index)
        finally:
            _free(head)


def _shards(path: Path) -> list[Path]:
    found = _SHARD.search(path.name)
    if found is None:
        return [path]
    stem = path.name[: found.start()]
    return [path.with_name(f"{stem}-{n:05d}-of-{found[2]}.gguf") for n in range(1, int(found[2]) + 1)]


_RELATIVES = {"markov_w1.weight": DSPARK, "selector_hidden.weight": DFLASH2}  # by a tensor of their own


def architecture_of(path: Path, metadata: Callable[[str], str]) -> str:
    """The architecture of the file at `path`, more exact than the file says it where it is a head.

    `metadata` returns a value of the file as text, or "". Raises ModelFileError for a damaged file.
    """
    architecture = metadata("general.architecture")
    heads = metadata(f"{architecture}.nextn_predict_layers")
    if architecture == "dflash" or (heads not in ("", "0") and architecture != ASSISTANT):
        names = [name for name, _ in tensor_sizes(path)]
        if architecture == "dflash":
            return next((kind for name, kind in _RELATIVES.items() if name in names), architecture)
        if not any(name.startswith("blk.0.") for name in names):
            return MTP
    return architecture
