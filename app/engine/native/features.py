"""What a target computes besides tokens, for a head that reads it."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from llama_cpp import llama_cpp_ext as ext

from app.engine.native.library import extension

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FLOATS = ctypes.POINTER(ctypes.c_float)
_set_layer = extension(
    "llama_set_embeddings_layer_inp",
    "P13llama_contextjb",
    None,
    ctypes.c_void_p,
    ctypes.c_uint32,
    ctypes.c_bool,
)
_get_layer = extension(
    "llama_get_embeddings_layer_inp", "P13llama_contextj", _FLOATS, ctypes.c_void_p, ctypes.c_uint32
)


class Features:
    """A row for every token that a target's cache holds, from `start` to `end`: the inputs of some layers
    side by side, or what the last layer gives.

    Rows are kept from the pass that computed them until a head has read them, and only while it listens. A
    row that is missing is made anew: the target forgets its tokens from there on, and reads them again.
    """

    def __init__(self, context: Any, n_embd: int, layers: Sequence[int], n_layers: int) -> None:
        """`context` is llama.cpp's; `n_embd` the width of one of its `n_layers` layers. In `layers` that
        number stands for what the last layer gives, which an MTP head reads."""
        self._context = context
        self._layers, self._last = tuple(layers), n_layers
        self._n_embd = n_embd
        self.width = n_embd * len(layers)
        self.listens = False
        self.start = self.end = 0
        self._parts: deque[NDArray[np.float32]] = deque()  # without gaps, up to `end`

    def listen(self, value: bool) -> None:
        """Begin or stop to keep the rows of passes."""
        if value == self.listens:
            return
        self.listens = value
        for layer in self._layers:
            if layer == self._last:
                ext.llama_set_embeddings_nextn(self._context, value, False)
            else:
                _set_layer(self._context, layer, value)
        self.forget()

    def forget(self, at: int = 0) -> None:
        """Drop all rows; the next one is that of the token at place `at`."""
        self._parts.clear()
        self.start = self.end = at

    def take(self, at: int, n: int) -> None:
        """Keep the rows of a pass over `n` tokens from place `at` on."""
        if not self.listens:
            return
        self.cut(at)
        if at > self.end:
            self.forget(at)
        rows = [np.ctypeslib.as_array(self._of_layer(layer), (n, self._n_embd)) for layer in self._layers]
        self._parts.append(np.concatenate(rows, axis=1))
        self.end += n

    def _of_layer(self, layer: int) -> Any:
        """llama.cpp's rows of its latest pass."""
        if layer == self._last:
            return ext.llama_get_embeddings_nextn(self._context)
        return _get_layer(self._context, layer)

    def cut(self, keep: int) -> None:
        """Only the first `keep` tokens of the target are still right: drop the rows of those after them."""
        while self.end > keep and self._parts:
            last = self._parts.pop()
            self.end -= len(last)
            if self.end < keep:
                self._parts.append(last[: keep - self.end])
                self.end = keep
        self.end = min(self.end, keep)
        self.start = min(self.start, self.end)

    def rows(self, first: int, end: int) -> NDArray[np.float32]:
        """The rows of the tokens at places `first` to `end`, all of which are held; shape [n, width]."""
        found, at = [], self.end
        for part in reversed(self._parts):
            at -= len(part)
            if at < end:
                found.append(part[max(0, first - at) : end - at])
            if at <= first:
                break
        return np.concatenate(found[::-1])

    def drop(self, before: int) -> None:
        """Drop rows of tokens before this place, as far as whole passes end there."""
        while self._parts and self.start + len(self._parts[0]) <= before:
            self.start += len(self._parts.popleft())
