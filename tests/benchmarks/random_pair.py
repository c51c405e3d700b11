"""A pair with a large vocabulary and random weights, whose draft agrees with its target about half the time.

Written in Q8_0 directly: random bytes are random weights, and 0.6 GB of them takes seconds.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

from tests.files.tiny import byte_alphabet

N_VOCAB = 151_936
_BLOCK = 32  # weights that share a scale in Q8_0
_SHARED = 128  # dimensions in which target and draft are the same
_OWN = 0.2  # size of the target's other dimensions, relative to the shared ones: lowers acceptance
_LAYER = 0.01  # what a layer adds, relative to the embedding
_LOGIT_SIZE = 4.0  # standard deviation of the shared part of a logit


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    n_embd: int
    n_layers: int
    n_ff: int
    n_heads: int


TARGET = Shape("random-target", 1024, 16, 4096, 16)  # 0.58B parameters, 0.31B of them the vocabulary's
DRAFT = Shape("random-draft", _SHARED, 2, 512, 2)  # 39M, all but 0.5M the vocabulary's


SHORT = Shape("random-short-target", 256, 2, 512, 4)  # 79M, all but 1M the vocabulary's: passes as on a GPU


def random_pair(folder: Path, target: Shape = TARGET) -> tuple[Path, Path]:
    """The paths of target and draft, which are written if missing (650 MB, with `SHORT` 130 MB)."""
    folder.mkdir(parents=True, exist_ok=True)
    shapes = target, DRAFT
    paths = folder / f"{target.name}.gguf", folder / f"{DRAFT.name}.gguf"
    for path, shape in zip(paths, shapes, strict=True):
        if not path.is_file():
            print(f"writing {path}", file=sys.stderr)
            partial = path.with_suffix(".partial")
            _write(partial, shape)
            os.replace(partial, path)
    return paths


def _write(path: Path, shape: Shape) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(shape.name)
    writer.add_context_length(2048)
    writer.add_embedding_length(shape.n_embd)
    writer.add_block_count(shape.n_layers)
    writer.add_feed_forward_length(shape.n_ff)
    writer.add_head_count(shape.n_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.n_embd // shape.n_heads)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    texts = byte_alphabet()
    texts += [f"<word{i}>" for i in range(len(texts), N_VOCAB)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(texts)
    writer.add_token_types([int(gguf.TokenType.NORMAL)] * N_VOCAB)
    writer.add_token_merges(["t h"])
    for name, rows in _tensors(shape):
        kind = gguf.GGMLQuantizationType.Q8_0 if rows.dtype == np.uint8 else None
        writer.add_tensor(name, rows, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tensors(shape: Shape) -> list[tuple[str, np.ndarray]]:
    d, ff = shape.n_embd, shape.n_ff
    # One stream for the shared part, another for the rest: both files draw the same from the first.
    shared, own = np.random.default_rng(1), np.random.default_rng(2 + d)
    ones = np.ones(d, np.float32)

    def vocabulary(scale: float) -> np.ndarray:
        rows = _q8_0(shared, N_VOCAB, _SHARED, scale)
        if d == _SHARED:
            return rows
        return np.concatenate([rows, _q8_0(own, N_VOCAB, d - _SHARED, scale * _OWN)], axis=1)

    def matrix(outputs: int, inputs: int, scale: float = 1.0) -> np.ndarray:
        return _q8_0(own, outputs, inputs, scale / np.sqrt(inputs))

    named = [("token_embd.weight", vocabulary(1.0))]
    for layer in range(shape.n_layers):
        block = f"blk.{layer}."
        named += [(f"{block}{name}.weight", matrix(d, d)) for name in ("attn_q", "attn_k", "attn_v")]
        named += [(f"{block}{name}.weight", matrix(ff, d)) for name in ("ffn_gate", "ffn_up")]
        named += [(f"{block}{name}.weight", ones) for name in ("attn_norm", "ffn_norm")]
        named.append((f"{block}attn_output.weight", matrix(d, d, _LAYER)))
        named.append((f"{block}ffn_down.weight", matrix(d, ff, _LAYER)))
    named.append(("output.weight", vocabulary(_LOGIT_SIZE / np.sqrt(_SHARED))))
    # The last norm brings the shared dimensions to size one, as the draft's are.
    size = np.sqrt((_SHARED + (d - _SHARED) * _OWN**2) / d)
    named.append(("output_norm.weight", ones * np.float32(size)))
    return named


def _q8_0(random: np.random.Generator, rows: int, columns: int, size: float) -> np.ndarray:
    """Random weights of this standard deviation in Q8_0: per block a half-precision scale and 32 bytes."""
    blocks = np.empty((rows, columns // _BLOCK, 2 + _BLOCK), np.uint8)
    blocks[:, :, 2:] = np.frombuffer(random.bytes(rows * columns), np.uint8).reshape(rows, -1, _BLOCK)
    scale = np.float16(size / np.sqrt((256**2 - 1) / 12))  # of uniform signed bytes
    blocks[:, :, :2] = np.frombuffer(scale.tobytes(), np.uint8)
    return blocks.reshape(rows, -1)
