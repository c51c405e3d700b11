"""A pair on which speculation pays, made of one model: a costly target, and a draft that is close to it.

The target has added layers that change nothing: with zero weights, a layer adds nothing to the residual
stream but costs as much as any layer. The added layers are in half precision: like those of a large model,
and unlike small quantised layers that stay in the processor's cache, they cost mostly memory traffic, which a
pass over several tokens shares. The draft is the model itself with noise in its weights, rounded to four
bits: it agrees often but not always.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import gguf
import numpy as np

FOLDER = Path(tempfile.gettempdir()) / "draftscope-benchmarks"
ADDED = 120  # MB
NOISE = 0.05  # standard deviation, relative to that of a weight matrix

_BF16, _Q4_0 = gguf.GGMLQuantizationType.BF16, gguf.GGMLQuantizationType.Q4_0
Tensors = Iterator[tuple[str, np.ndarray, gguf.GGMLQuantizationType | None]]


def costly_copy(source: Path, folder: Path = FOLDER) -> Path:
    """The path of the costly target made of a llama file, which is written if it is missing or outdated."""
    reader = gguf.GGUFReader(source)
    weights = sum(int(tensor.n_elements) for tensor in _first_layer(reader))
    layers = round(ADDED * 1e6 / (2 * weights))
    return _made(source, folder / f"costly-{ADDED}.gguf", lambda: _costly(reader, layers), layers)


def noisy_copy(source: Path, folder: Path = FOLDER) -> Path:
    """The path of the draft made of a llama file, written in the same way."""
    return _made(source, folder / f"noisy-{NOISE}.gguf", lambda: _noisy(gguf.GGUFReader(source)))


def _made(source: Path, path: Path, tensors: Callable[[], Tensors], layers: int = 0) -> Path:
    if not path.is_file() or path.stat().st_mtime < source.stat().st_mtime:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        _write(gguf.GGUFReader(source), partial, tensors(), layers)
        os.replace(partial, path)
    return path


def _write(reader: gguf.GGUFReader, path: Path, tensors: Tensors, layers: int) -> None:
    """Write these tensors with the source's metadata, for so many more layers."""
    writer = gguf.GGUFWriter(path, "llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind, *inner = field.types
        value = field.contents()
        if field.name == "llama.block_count":
            value += layers
        writer.add_key_value(field.name, value, kind, inner[0] if inner else None)
    for name, data, raw in tensors:
        writer.add_tensor(name, data, raw_dtype=raw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _first_layer(reader: gguf.GGUFReader) -> list[gguf.ReaderTensor]:
    return [tensor for tensor in reader.tensors if tensor.name.startswith("blk.0.")]


def _as_it_is(tensor: gguf.ReaderTensor) -> tuple[str, np.ndarray, gguf.GGMLQuantizationType | None]:
    return tensor.name, tensor.data, None if tensor.data.dtype == np.float32 else tensor.tensor_type


def _costly(reader: gguf.GGUFReader, layers: int) -> Tensors:
    yield from map(_as_it_is, reader.tensors)
    there = int(reader.fields["llama.block_count"].contents())
    for layer in range(there, there + layers):
        for tensor in _first_layer(reader):
            name = tensor.name.replace("blk.0.", f"blk.{layer}.")
            shape = [int(size) for size in reversed(tensor.shape)]
            if len(shape) == 1:  # of a norm
                yield name, np.ones(shape, np.float32), None
            else:
                yield name, gguf.quants.quantize(np.zeros(shape, np.float32), _BF16), _BF16


def _noisy(reader: gguf.GGUFReader) -> Tensors:
    random = np.random.default_rng(1)
    for tensor in reader.tensors:
        if len(tensor.shape) == 1 or tensor.name == "token_embd.weight":
            yield _as_it_is(tensor)
            continue
        exact = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        noise = random.standard_normal(exact.shape, np.float32) * exact.std() * NOISE
        yield tensor.name, gguf.quants.quantize(exact + noise, _Q4_0), _Q4_0
