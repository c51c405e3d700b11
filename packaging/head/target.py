"""The target through llama.cpp, from Python: batches, layer inputs, last hidden rows."""

from __future__ import annotations

import argparse
import ctypes
from pathlib import Path

import gguf
import llama_cpp
import numpy as np
from app.engine.native.library import raw_call

from export import copy_fields

_set_layer = raw_call(
    "_Z30llama_set_embeddings_layer_inpP13llama_contextjb",
    None,
    ctypes.c_void_p,
    ctypes.c_uint32,
    ctypes.c_bool,
)
_get_layer = raw_call(
    "_Z30llama_get_embeddings_layer_inpP13llama_contextj",
    ctypes.POINTER(ctypes.c_float),
    ctypes.c_void_p,
    ctypes.c_uint32,
)


def widen(source: Path, path: Path) -> None:
    """Write the model at `source` with 16-bit weights.

    A batch of rows computes them more than twice as fast on a CPU, since llama.cpp has no kernel for batches
    of some quantised types. bfloat16 rounds the weights to 8 bits and is 1.6 times as fast as float16, which
    keeps 11 bits, if the CPU has instructions for it.
    """
    cpu = Path("/proc/cpuinfo")
    short = cpu.exists() and "avx512_bf16" in cpu.read_text()
    kind = gguf.GGMLQuantizationType.BF16 if short else gguf.GGMLQuantizationType.F16
    reader = gguf.GGUFReader(source)
    fresh = path.with_suffix(".new")
    writer = gguf.GGUFWriter(fresh, reader.fields[gguf.Keys.General.ARCHITECTURE].contents())
    copy_fields(reader, writer)
    for tensor in reader.tensors:
        if tensor.tensor_type == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(tensor.name, tensor.data)
        else:
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            writer.add_tensor(tensor.name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    fresh.replace(path)


class Target:
    """A loaded model, and one context of `rows` sequences of at most `length` tokens."""

    def __init__(self, path: Path, rows: int, length: int, layers: tuple[int, ...], threads: int = 1) -> None:
        options = llama_cpp.llama_model_default_params()
        options.n_gpu_layers = 0
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), options)
        if not self.model:
            raise SystemExit(f"llama.cpp does not load {path}.")
        self.vocab = llama_cpp.llama_model_get_vocab(self.model)
        self.tokens = llama_cpp.llama_vocab_n_tokens(self.vocab)
        self.width = llama_cpp.llama_model_n_embd(self.model)
        self.layers, self.threads = layers, threads
        wanted = llama_cpp.llama_context_default_params()
        wanted.n_ctx, wanted.n_seq_max = rows * length, rows
        wanted.n_batch = wanted.n_ubatch = max(rows, length if rows == 1 else 0)
        wanted.n_threads = wanted.n_threads_batch = threads
        wanted.embeddings, wanted.pooling_type = True, llama_cpp.LLAMA_POOLING_TYPE_NONE
        self.context = llama_cpp.llama_init_from_model(self.model, wanted)
        if not self.context:
            raise SystemExit(f"llama.cpp makes no context for {path}.")
        self.memory = llama_cpp.llama_get_memory(self.context)
        for layer in layers:
            _set_layer(self.context, layer, True)
        self._batch = llama_cpp.llama_batch_init(wanted.n_batch, 0, 1)
        self._most = wanted.n_batch

    def tokenize(self, text: str) -> list[int]:
        raw = text.encode()
        room = (llama_cpp.llama_token * (len(raw) + 8))()
        count = llama_cpp.llama_tokenize(self.vocab, raw, len(raw), room, len(room), False, True)
        assert count >= 0
        return room[:count]

    def text(self, ids: list[int]) -> str:
        room, raw = ctypes.create_string_buffer(256), b""
        for token in ids:
            count = llama_cpp.llama_token_to_piece(self.vocab, token, room, len(room), 0, True)
            raw += room.raw[:count]
        return raw.decode(errors="replace")

    def read(self, ids: np.ndarray, positions: np.ndarray, sequences: np.ndarray) -> None:
        """Compute one row a token: in one piece, so that llama.cpp keeps their order."""
        batch = self._batch
        for i, (token, place, sequence) in enumerate(zip(ids, positions, sequences, strict=True)):
            batch.token[i], batch.pos[i], batch.logits[i] = int(token), int(place), 1
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, int(sequence)
        batch.n_tokens = len(ids)
        assert len(ids) <= self._most
        if code := llama_cpp.llama_decode(self.context, batch):
            raise RuntimeError(f"llama_decode answered {code}.")

    def logits(self, rows: int) -> np.ndarray:
        """Logits (rows, tokens) of the last `read`, in llama.cpp's own memory."""
        return np.ctypeslib.as_array(llama_cpp.llama_get_logits(self.context), (rows, self.tokens))

    def hidden(self, rows: int) -> np.ndarray:
        """The normed last hidden rows (rows, width), in llama.cpp's own memory."""
        return np.ctypeslib.as_array(llama_cpp.llama_get_embeddings(self.context), (rows, self.width))

    def features(self, rows: int) -> np.ndarray:
        """The inputs of the layers, side by side (rows, layers x width)."""
        found = [
            np.ctypeslib.as_array(_get_layer(self.context, layer), (rows, self.width))
            for layer in self.layers
        ]
        return np.concatenate(found, axis=1)

    def forget(self, sequence: int) -> None:
        llama_cpp.llama_memory_seq_rm(self.memory, sequence, -1, -1)


def main() -> None:
    parser = argparse.ArgumentParser(description=widen.__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("path", type=Path)
    args = parser.parse_args()
    widen(args.source, args.path)


if __name__ == "__main__":
    main()
