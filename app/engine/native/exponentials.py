"""Exponentials of a row by the function that llama.cpp's own softmax uses on the CPU."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from app.engine.native.library import raw_call
from app.engine.sampling import logits

_SMALL = 16_384
"""Up to this size, looking up two addresses takes longer than what is saved."""


def _of_ggml() -> logits.Exponentials:
    """ggml's function: vectorised by hand, one pass instead of three. No header declares it and not every
    system exports it: without it numpy's is used."""
    try:
        softmax = raw_call(
            "ggml_vec_soft_max_f32",
            ctypes.c_double,
            ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_float,
        )  # fmt: skip
    except AttributeError:
        return logits.exponentials

    def exponentials(x: NDArray[np.float32], shift: np.float32 | float, out: NDArray[np.float32]) -> float:
        if len(x) <= _SMALL:
            return logits.exponentials(x, shift, out)
        total: float = softmax(len(x), out.ctypes.data, x.ctypes.data, shift)
        return total

    return exponentials


exponentials = _of_ggml()
