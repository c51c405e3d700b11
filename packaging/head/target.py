"""The target through llama.cpp, from Python: batches, layer inputs, last hidden rows."""

from __future__ import annotations

import ctypes
from pathlib import Path

import llama_cpp
import numpy as np
from app.engine.native.library import raw_call

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


class Target:
    """A loaded model, and a context of at most `length` tokens."""

    def __init__(self, path: Path, length: int, layers: tuple[int, ...], threads: int = 1) -> None:
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
        wanted.n_ctx = wanted.n_batch = wanted.n_ubatch = length
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

    def read(self, ids: list[int], first: int) -> None:
        """Compute a row for each token, from place `first` on."""
        batch = self._batch
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.logits[i] = token, first + i, 1
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
        batch.n_tokens = len(ids)
        assert len(ids) <= self._most
        if code := llama_cpp.llama_decode(self.context, batch):
            raise RuntimeError(f"llama_decode answered {code}.")

    def logits(self, rows: int) -> np.ndarray:
        """Logits (rows, tokens) of the last `read`, in llama.cpp's own memory."""
        return np.ctypeslib.as_array(llama_cpp.llama_get_logits(self.context), (rows, self.tokens))

    def features(self, rows: int) -> np.ndarray:
        """The inputs of the layers, concatenated (rows, layers x width)."""
        found = [
            np.ctypeslib.as_array(_get_layer(self.context, layer), (rows, self.width))
            for layer in self.layers
        ]
        return np.concatenate(found, axis=1)

    def cut(self, place: int) -> None:
        """Forget the tokens from `place` on."""
        llama_cpp.llama_memory_seq_rm(self.memory, 0, place, -1)
