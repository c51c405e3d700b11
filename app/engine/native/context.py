"""A context: one sequence of tokens in one model's KV cache."""

from __future__ import annotations

import ctypes
import time
from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np

from app.engine.errors import ModelFileError
from app.engine.native.library import AbortFlag, captured_log, default_threads, get_logits_address
from app.engine.native.model import Model
from app.engine.types import ModelOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DEFAULT_CTX = 8192
_FLASH = {"auto": -1, "off": 0, "on": 1}
_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8, "bf16": 30}
_LOGITS_ROWS = 1024  # rows a view spans; rows that were not asked for are never touched


class Cancelled(Exception):  # noqa: N818 - not an error
    """A decode was stopped by the abort flag."""


class Context:
    """The KV cache of one sequence, and the passes that extend it.

    The token ids are the truth and the cache only a cache: `sync` rolls it back to what it shares with the
    truth, `decode` extends it. `seconds` counts the time spent in native passes, the wait for their logits
    included (GPU decoding is asynchronous).
    """

    def __init__(self, model: Model, options: ModelOptions, abort: AbortFlag) -> None:
        """Raises ModelFileError where the context cannot be made (memory, cache type)."""
        self.model = model
        self._views: dict[int, NDArray[np.float32]] = {}
        self.threads = options.threads or default_threads()
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = options.ctx_size or min(model.n_ctx_train or _DEFAULT_CTX, _DEFAULT_CTX)
        params.n_batch = min(options.batch_size, params.n_ctx)
        params.n_ubatch = min(options.ubatch_size, params.n_batch)
        params.n_threads = self.threads
        params.n_threads_batch = options.threads_batch or self.threads
        params.type_k = _TYPES[options.cache_type_k]
        params.type_v = _TYPES[options.cache_type_v]
        params.flash_attn_type = _FLASH[options.flash_attn]
        params.no_perf = True
        params.abort_callback = abort.callback
        params.abort_callback_data = abort.data
        with captured_log() as lines:
            self.handle: Any = llama_cpp.llama_init_from_model(model.handle, params)
        if not self.handle:
            reason = lines[-1].split(": ", 1)[-1] if lines else "llama.cpp gave no reason"
            raise ModelFileError(
                f"No context of {params.n_ctx:,} tokens can be made for {model.path.name}: {reason}.",
                "Lower the context size, or choose another cache type.",
            )
        self._abort = abort
        self._memory = llama_cpp.llama_get_memory(self.handle)
        if not self._memory:
            # Embedding and diffusion models: decode would quietly do something else, without a cache.
            self.close()
            raise ModelFileError(
                f"{model.path.name} does not write text token by token.", "Choose a language model."
            )
        self.n_ctx = int(llama_cpp.llama_n_ctx(self.handle))
        self.n_batch = int(llama_cpp.llama_n_batch(self.handle))
        self.seconds = 0.0
        self._ids = np.zeros(self.n_ctx, np.int32)
        self._count = np.arange(self.n_ctx + self.n_batch, dtype=np.int32)  # positions
        self.n_cached = 0
        self._make_batch()

    def _make_batch(self) -> None:
        """A batch whose arrays are numpy's: filled by slices, not by a loop over ctypes fields."""
        n = self.n_batch
        self._tokens = np.zeros(n, np.int32)
        self._positions = np.zeros(n, np.int32)
        self._wanted = np.zeros(n, np.int8)
        n_seq = np.ones(n, np.int32)
        sequence = np.zeros(1, np.int32)
        sequences = np.full(n, sequence.ctypes.data, np.uintp)
        self._keep = (n_seq, sequence, sequences)  # the batch holds bare addresses
        batch = llama_cpp.llama_batch()
        for field, array in (
            ("token", self._tokens),
            ("pos", self._positions),
            ("n_seq_id", n_seq),
            ("seq_id", sequences),
            ("logits", self._wanted),
        ):
            pointer = dict(llama_cpp.llama_batch._fields_)[field]
            setattr(batch, field, ctypes.cast(array.ctypes.data, pointer))
        self._batch = batch

    def sync(self, ids: NDArray[np.int32]) -> int:
        """Roll the cache back to its longest common prefix with `ids`; returns the tokens kept."""
        keep = min(self.n_cached, len(ids))
        differs = self._ids[:keep] != ids[:keep]
        first = int(differs.argmax()) if keep else 0
        if keep and differs[first]:
            keep = first
        if keep < self.n_cached:
            self._roll_back(keep)
        return self.n_cached

    def _roll_back(self, keep: int) -> None:
        if not self._can_keep(keep) or not llama_cpp.llama_memory_seq_rm(self._memory, 0, keep, -1):
            # This memory cannot be cut in the middle (recurrent, hybrid, sliding window): start anew,
            # the caller decodes what is missing.
            llama_cpp.llama_memory_clear(self._memory, True)
            keep = 0
        self.n_cached = keep

    def _can_keep(self, keep: int) -> bool:
        """Whether the sliding window before `keep`, if there is one, is still in memory."""
        if keep == 0 or self.model.n_swa == 0:
            return True
        first = llama_cpp.llama_memory_seq_pos_min(self._memory, 0)
        return bool(first <= max(0, keep - self.model.n_swa))

    def clear(self) -> None:
        """Empty the cache."""
        llama_cpp.llama_memory_clear(self._memory, True)
        self.n_cached = 0

    def decode(self, ids: NDArray[np.int32], logits: int = 0) -> NDArray[np.float32]:
        """Extend the cache by `ids`; returns a view of the logits of the last `logits` of them.

        Shape [logits, vocabulary]. The view is valid until the next decode. Raises Cancelled when the abort
        flag was set; the cache then holds what it held before, or a part of `ids` on top.
        """
        start = 0
        while start < len(ids):
            rest = len(ids) - start
            size = min(rest, self.n_batch)
            if size < rest < size + logits:
                size = rest - logits  # rows that are wanted must come out of one pass
            self._decode_chunk(ids[start : start + size], max(0, min(rest - logits, size)))
            start += size
        if logits == 0:
            return np.empty((0, self.model.vocabulary.size), np.float32)
        return self._logits(logits)

    def _decode_chunk(self, ids: NDArray[np.int32], first_wanted: int) -> None:
        n, at = len(ids), self.n_cached
        self._tokens[:n] = ids
        self._positions[:n] = self._count[at : at + n]
        self._wanted[:first_wanted] = 0
        self._wanted[first_wanted:n] = 1
        self._batch.n_tokens = n
        started = time.perf_counter()
        status = llama_cpp.llama_decode(self.handle, self._batch)
        self.seconds += time.perf_counter() - started
        if status == 0:
            self._ids[at : at + n] = ids
            self.n_cached = at + n
            return
        # Part of the batch may be in memory: ask which positions are, and keep the truth.
        held = int(llama_cpp.llama_memory_seq_pos_max(self._memory, 0)) + 1
        if held > at:
            self._roll_back(at)
        elif held < at:
            self.n_cached = held
        if self._abort.is_set():
            raise Cancelled
        raise RuntimeError(f"llama_decode answered {status} for {n} tokens at {at}")

    def _logits(self, rows: int) -> NDArray[np.float32]:
        started = time.perf_counter()
        address = get_logits_address(self.handle)
        self.seconds += time.perf_counter() - started
        view = self._views.get(address)
        if view is None:
            shape = (_LOGITS_ROWS, self.model.vocabulary.size)
            pointer = ctypes.cast(address, ctypes.POINTER(ctypes.c_float))
            view = np.ctypeslib.as_array(pointer, shape)
            self._views = {address: view}
        return view[:rows]

    def no_numbers(self) -> ModelFileError:
        """The error for logits that are NaN, which nothing can be drawn from."""
        name = self.model.path.name
        return ModelFileError(
            f"{name} gives no numbers: its weights are damaged, or too large for their format.",
            "Download it again, or choose another file.",
        )

    def close(self) -> None:
        if self.handle:
            self._views.clear()
            llama_cpp.llama_free(self.handle)
            self.handle = None
