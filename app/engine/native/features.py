"""A target's internal rows, for a head that reads them; and greedy drafts in one call."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from llama_cpp import llama_cpp_ext as ext

from app.engine.native.library import address_of, extension
from app.engine.sampling import kernel
from app.engine.sampling.kernel import Batch, Entries, Kernel, Steps
from app.engine.sampling.logits import TOP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Best = tuple[list[int], list[float]]  # places and values of a row's largest logits, largest first

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
    "llama_get_embeddings_layer_inp", "P13llama_contextj", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32
)

_GET = ctypes.cast(_get_layer, ctypes.c_void_p)

_ROOM = 64  # rows that there is room for at least, and that are dropped at once


class NativeRows:
    """A view of rows in llama.cpp's memory. It is reused, because making one takes about 30 µs (more than all
    else of a pass), and the memory seldom moves."""

    def __init__(self, most: int, width: int) -> None:
        """View at most `most` rows; those that llama.cpp lacks must not be touched."""
        self._shape = most, width
        self._address = 0
        self._view = np.empty((0, width), np.float32)

    def at(self, address: int) -> NDArray[np.float32]:
        """The rows at an address, shape [most, width]; valid until the next pass."""
        if address != self._address:
            self._view = np.ctypeslib.as_array(ctypes.cast(address, _FLOATS), self._shape)
            self._address = address
        return self._view


def nextn_address(context: Any) -> int:
    """The address of the last layer's output in llama.cpp's latest pass."""
    return ctypes.cast(ext.llama_get_embeddings_nextn(context), ctypes.c_void_p).value or 0


class Features:
    """A row for every token in a target's cache from `start` to `end`. A row is the inputs of some layers
    side by side, or the last layer's output.

    Rows are kept from their pass until a head has read them, and only while it listens. To get a missing row,
    the target forgets its tokens from there on and reads them again.
    """

    def __init__(
        self, context: Any, n_embd: int, layers: Sequence[int], n_layers: int, most: int, near: bool = False
    ) -> None:
        """`context` is llama.cpp's, with passes of at most `most` tokens; `n_embd` is the width of its
        `n_layers` layers. The number `n_layers` in `layers` means the last layer's output, which an MTP head
        reads. `near` layers are in main memory: their rows cost nothing, while every switch makes llama.cpp
        build its graphs again, so they stay on."""
        self._context = context
        self._layers, self._last = tuple(layers), n_layers
        self._native = [
            (layer, slice(at * n_embd, (at + 1) * n_embd), NativeRows(most, n_embd))
            for at, layer in enumerate(layers)
        ]
        self.width = n_embd * len(layers)
        # Layer numbers and row width for the compiled copy, which cannot copy the last layer's output.
        self._numbers = (ctypes.c_uint32 * len(layers))(*layers)
        self._compiled = kernel.compiled if n_layers not in layers else None
        self._n_embd = n_embd
        self._stays_on = near and n_layers not in layers
        self._is_on = self.listens = False
        self.start = self.end = 0
        self._hold(0)

    def listen(self, value: bool) -> None:
        """Start or stop keeping the rows of passes."""
        if value == self.listens:
            return
        self.listens = value
        if value or not self._stays_on:
            self._switch(value)
        self.forget()

    def close(self) -> None:
        """Stop for good: no head will read the rows again."""
        self.listens = False
        self._switch(False)
        self.forget()

    def _switch(self, on: bool) -> None:
        if on == self._is_on:
            return
        self._is_on = on
        for layer in self._layers:
            if layer == self._last:
                ext.llama_set_embeddings_nextn(self._context, on, False)
            else:
                _set_layer(self._context, layer, on)

    def forget(self, at: int = 0) -> None:
        """Drop all rows; the next row will be for the token at place `at`."""
        self._hold(0)  # a slice would keep the memory
        self.start = self.end = at

    def _hold(self, n: int) -> None:
        """Make room for rows from `start` on."""
        self._rows = np.empty((n, self.width), np.float32)
        self._first = self._rows.ctypes.data

    def take(self, at: int, n: int) -> None:
        """Keep the rows of a pass over `n` tokens from place `at`. After a pass this code is cold and takes
        microseconds, for every token as long as a head might draft."""
        if not self.listens:
            return
        if at < self.end:
            self.cut(at)
        elif at > self.end:
            self.forget(at)
        first = at - self.start
        if first + n > len(self._rows):
            kept = self._rows[:first]
            self._hold(2 * first + max(n, _ROOM))
            self._rows[:first] = kept
        self.end = at + n
        if self._compiled is not None:
            place = self._first + first * self._rows.strides[0]
            self._compiled.layer_rows(
                _GET, self._context, self._numbers, len(self._numbers), self._n_embd, n, place
            )
            return
        for layer, columns, native in self._native:
            last = layer == self._last
            address = nextn_address(self._context) if last else _get_layer(self._context, layer)
            self._rows[first : first + n, columns] = native.at(address)[:n]

    def cut(self, keep: int) -> None:
        """Drop the rows after the target's first `keep` tokens."""
        self.end = min(self.end, keep)
        self.start = min(self.start, self.end)

    def rows(self, first: int, end: int) -> NDArray[np.float32]:
        """The rows of the tokens at places `first` to `end`, all of which are kept; shape [n, width], valid
        until the next pass."""
        return self._rows[first - self.start : end - self.start]

    def drop(self, before: int) -> None:
        """Drop rows of tokens before this place, once there are many."""
        if before - self.start >= _ROOM:
            kept = self._rows[before - self.start : self.end - self.start]
            self._hold(len(kept))
            self._rows[:] = kept
            self.start = before


MOST = 16
"""The most passes of one call."""


class BestPasses:
    """Several passes in one call, over tokens in a context's own arrays.

    No Python runs between the passes. A pass over a large vocabulary drives Python's code out of the
    processor's caches, after which it takes several times as long.
    """

    def __init__(self, compiled: Kernel, handle: Any, batch: Batch, entries: Entries | None = None) -> None:
        """`batch` begins at the context's first place, and its flags where those of a pass end; its arrays
        are kept alive elsewhere. `entries` are a head's."""
        self._run = compiled.draft_best
        self._places, self._values = (ctypes.c_ssize_t * (MOST * TOP))(), (ctypes.c_float * (MOST * TOP))()
        self._ends: NDArray[np.int32] | None = None
        self._steps = Steps(
            address_of("llama_decode"),
            address_of("llama_get_logits"),
            handle,
            batch,
            TOP,
            ctypes.addressof(self._places),
            ctypes.addressof(self._values),
        )
        if entries is not None:
            self._steps.entries = ctypes.pointer(entries)
        self._address = ctypes.addressof(self._steps)

    def run(
        self, at: int, n: int, size: int, count: int, p_min: float, ends: NDArray[np.int32]
    ) -> tuple[int, float]:
        """Decode the `n` tokens from place `at`, then greedily draft among the first `size` tokens, until
        there are `count` rows (at most `MOST`). A NaN, a best token below `p_min`, or one of `ends` ends the
        draft earlier. Returns llama_decode's status, and the seconds in llama.cpp."""
        steps = self._steps
        if ends is not self._ends:
            self._ends = ends  # kept alive
            steps.ends, steps.n_ends = ends.ctypes.data, len(ends)
        started = time.perf_counter()
        status = self._run(self._address, at, n, size, count, p_min)
        return status, time.perf_counter() - started - steps.seconds

    @property
    def passes(self) -> int:
        """The number of passes of the last run that llama.cpp completed."""
        completed: int = self._steps.rows + self._steps.broken
        return completed

    def best(self, size: int) -> list[Best]:
        """The largest of the first `size` logits of each row in the last run; none for a row with a NaN."""
        k = min(TOP, size)
        rows: list[Best] = [
            (self._places[row : row + k], self._values[row : row + k])
            for row in range(0, self._steps.rows * k, k)
        ]
        if self._steps.broken:
            rows.append(([], []))
        return rows
