"""A pair on which speculation pays, made of the bundled target alone.

The target: the bundled one with layers behind it that change nothing. A layer whose attention output and
feed-forward output weights are zero adds nothing to the residual stream, but it costs what a layer costs; in
single precision it costs mostly memory traffic, which a pass over several tokens shares. The draft: the
bundled target with noise in its weights, so that it agrees with itself often but not always.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import gguf
import numpy as np

LAYERS = 24  # 0.12 GB
NOISE = 0.3  # standard deviation, relative to that of a weight matrix

_Q8_0 = gguf.GGMLQuantizationType.Q8_0
Tensors = Iterator[tuple[str, np.ndarray, gguf.GGMLQuantizationType | None]]


def costly_pair(source: Path, folder: Path) -> tuple[Path, Path]:
    """Paths of target and draft; written where they are not there or older than their source."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"costly-target-{LAYERS}.gguf"
    draft = folder / f"noisy-draft-{NOISE}.gguf"
    for path, more, tensors in ((target, LAYERS, _with_idle_layers), (draft, 0, _with_noise)):
        if not path.is_file() or path.stat().st_mtime < source.stat().st_mtime:
            partial = path.with_suffix(".partial")
            _write(gguf.GGUFReader(source), partial, more, tensors)
            os.replace(partial, path)
    return target, draft


def _write(
    reader: gguf.GGUFReader, path: Path, more: int, tensors: Callable[[gguf.GGUFReader], Tensors]
) -> None:
    """A copy of a llama file with `more` layers than it has, and with these tensors."""
    writer = gguf.GGUFWriter(path, "llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind, *inner = field.types
        value = field.contents()
        if field.name == "llama.block_count":
            value += more
        writer.add_key_value(field.name, value, kind, inner[0] if inner else None)
    for name, data, raw in tensors(reader):
        writer.add_tensor(name, data, raw_dtype=raw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _with_idle_layers(reader: gguf.GGUFReader) -> Tensors:
    for tensor in reader.tensors:
        yield tensor.name, tensor.data, None if tensor.data.dtype == np.float32 else tensor.tensor_type
    first = [tensor for tensor in reader.tensors if tensor.name.startswith("blk.0.")]
    blocks = int(reader.fields["llama.block_count"].contents())
    for layer in range(blocks, blocks + LAYERS):
        for tensor in first:
            shape = tuple(int(size) for size in reversed(tensor.shape))
            name = tensor.name.replace("blk.0.", f"blk.{layer}.")
            yield name, (np.ones if "norm" in name else np.zeros)(shape, np.float32), None


def _with_noise(reader: gguf.GGUFReader) -> Tensors:
    random = np.random.default_rng(1)
    for tensor in reader.tensors:
        if tensor.tensor_type != _Q8_0 or tensor.name == "token_embd.weight":
            raw = None if tensor.data.dtype == np.float32 else tensor.tensor_type
            yield tensor.name, tensor.data, raw
            continue
        exact = gguf.quants.dequantize(tensor.data, _Q8_0)
        noise = random.standard_normal(exact.shape, np.float32) * exact.std() * NOISE
        yield tensor.name, gguf.quants.quantize(exact + noise, _Q8_0), _Q8_0
