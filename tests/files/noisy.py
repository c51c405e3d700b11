"""Copies of the bundled draft with noise in their weights: drafts that are worse and worse."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

_BLOCK = 34  # bytes of Q8_0: a scale of two, and 32 weights


def noisy_copy(source: Path, copy: Path, noise: int) -> Path:
    """Copy a Q8_0 model; its weights, which are whole numbers from -127 to 127, move by up to `noise`."""
    data = bytearray(source.read_bytes())
    generator = np.random.default_rng(noise)
    for tensor in gguf.GGUFReader(source).tensors:
        if tensor.tensor_type is not gguf.GGMLQuantizationType.Q8_0:
            continue
        view = np.frombuffer(data, np.int8, tensor.n_bytes, int(tensor.data_offset))
        weights = view.reshape(-1, _BLOCK)[:, 2:]
        moved = weights + generator.integers(-noise, noise + 1, weights.shape)
        weights[:] = moved.clip(-127, 127)
    copy.write_bytes(data)
    return copy
