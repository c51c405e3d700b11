"""A draft's step in one compiled call: a pass, and the largest logits behind its last token."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np

from app.engine.native.library import address_of
from app.engine.sampling.kernel import Batch, Kernel, Step
from app.engine.sampling.logits import TOP


class BestPass:
    """Passes over tokens that lie in a context's own arrays.

    Nothing is filled for a pass, and few objects are made: after one over a large vocabulary Python's code
    has left the processor's caches, and takes several times as long as in a loop.
    """

    def __init__(self, compiled: Kernel, handle: Any, batch: Batch, n_batch: int) -> None:
        """`batch` begins at the context's first place; what it refers to is kept alive elsewhere."""
        self._run = compiled.decode_largest
        self._places, self._values = (ctypes.c_ssize_t * TOP)(), (ctypes.c_float * TOP)()
        self._wanted = np.zeros(n_batch, np.int8)
        self._wanted[-1] = 1  # of the last token alone
        batch.logits = self._wanted.ctypes.data + n_batch
        self._step = Step(
            address_of("llama_decode"),
            address_of("llama_get_logits"),
            handle,
            batch,
            TOP,
            ctypes.addressof(self._places),
            ctypes.addressof(self._values),
        )
        self._address = ctypes.addressof(self._step)

    def run(self, at: int, n: int, size: int) -> tuple[int, float]:
        """Decode the `n` tokens from place `at` on, and find the largest of the first `size` logits. Returns
        what llama_decode does, and the seconds in llama.cpp."""
        started = time.perf_counter()
        status = self._run(self._address, at, n, size)
        return status, time.perf_counter() - started - self._step.seconds

    @property
    def best(self) -> tuple[list[int], list[float]]:
        """Places and values of the largest logits of the last pass, largest first; none if one is NaN."""
        found = self._step.found
        return self._places[:found], self._values[:found]
