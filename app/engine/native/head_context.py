"""The context of a head: a draft that reads its target's internal state."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import llama_cpp
import numpy as np
from llama_cpp import llama_cpp_ext as ext

from app.engine.compat import why_unread
from app.engine.errors import PairError
from app.engine.native.context import SELF_TEST, Cancelled, Context
from app.engine.native.features import BestPasses, Features, NativeRows, nextn_address
from app.engine.native.library import AbortFlag, address_of, extension
from app.engine.sampling import kernel
from app.engine.sampling.kernel import Batch, Entries
from app.engine.types import HeadInput, ModelOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.native.model import Model

ENCODE, DECODE = 0, 1
_FLOATS = ctypes.POINTER(ctypes.c_float)
_AT_ONCE = 16  # most tokens that are read together with a draft's first step: all of them get logits
_SMALL = 32 * 2**20  # bytes of weights that stay in a processor's caches from pass to pass
_FEW = 16  # most tokens that a small head reads in the call that drafts

_layers = extension(
    "llama_model_target_layer_ids", "PK11llama_model", ctypes.POINTER(ctypes.c_int32), ctypes.c_void_p
)
_layer_count = extension(
    "llama_model_target_layer_ids_n", "PK11llama_model", ctypes.c_uint32, ctypes.c_void_p
)


def target_layers(head: Model, target: Model) -> list[int]:
    """The target's layers whose inputs a head reads; its number of layers means the last one's output. Raises
    PairError if the head does not belong to the target."""
    layers = [int(_layers(head.handle)[place]) for place in range(_layer_count(head.handle))]
    said = head.metadata("eagle3.target_hidden_size")
    width = int(said) if said.isdigit() else head.n_embd  # DFlash is as wide as its target
    if why := why_unread(layers, width, target.architecture, target.n_layers, target.n_embd):
        raise PairError(
            f"{head.path.name} cannot draft for {target.path.name}: {why}.",
            "Choose the target that it was made for.",
        )
    return layers


class HeadContext(Context):
    """A `Context` whose entries pair a token with the target's row of the token before.

    During a draft, the target has not read the new tokens: the head's own last row replaces the target's.
    Such entries are undone before the next draft.
    """

    reads_target = True
    _first_entry = 0  # the token with the first entry in memory
    _behind = 1  # how many tokens before its own the row of an entry is
    _apart = False  # whether a draft's first pass reads only one token, if its weights are few

    def __init__(
        self,
        model: Model,
        options: ModelOptions,
        abort: AbortFlag,
        target: Context,
        layers: Sequence[int],
        kind: int = 0,
    ) -> None:
        """`layers` are the target's layers that it reads; `kind` is llama.cpp's type of context. Raises
        ModelFileError as `Context` does."""
        self._target = target
        read = target.model
        near = not target.memory.n_gpu_layers
        self._features = Features(target.handle, read.n_embd, layers, read.n_layers, target.n_batch, near)
        self._batch_ext: int | None = None
        self._sure = 0  # tokens whose entries hold the target's rows
        self._own: NDArray[np.float32] | None = None  # what the head gave for its last token
        self._given = 1  # rows of logits in llama.cpp's memory
        self._read = np.zeros((len(layers), read.n_embd), np.float32)  # the target's latest rows
        self._layers = tuple(layers)
        super().__init__(model, options, abort, snapshots=0, other=target, kind=kind)

    def _set_up(self, options: ModelOptions) -> None:
        super()._set_up(options)
        # Numbers in a row that it gives.
        self.n_embd = int(llama_cpp.llama_model_n_embd_out(self.model.handle))
        self._native = NativeRows(self.n_batch, self.n_embd)
        ext.llama_set_embeddings_nextn(self.handle, True, True)
        self._batch_ext = llama_cpp.llama_batch_ext_init(self.handle)
        self._target.features.append(self._features)
        weights = sum(usage.weights for usage in self.memory.memory)
        small = self._apart and weights < _SMALL and not self.memory.n_gpu_layers
        self._few = min(_FEW, self.n_ubatch - len(self._layers)) if small else 0
        if small and kernel.compiled is not None:
            names = ("clear", "add_token", "add_embd", "set_embd_token", "set_pos", "set_output_logits")
            calls = [address_of(f"llama_batch_ext_{name}") for name in names]
            rows_of = ctypes.cast(ext.llama_get_embeddings_nextn, ctypes.c_void_p)
            self._beside = Entries(*calls, address_of("llama_process"), rows_of, self._batch_ext, self.n_embd)
            first = self._count.ctypes.data - self._first_entry * self._count.itemsize
            batch = Batch(0, self._ids.ctypes.data, None, first)
            self._best_passes = BestPasses(kernel.compiled, self.handle, batch, self._beside)

    def follow(self, ids: NDArray[np.int32] | None) -> None:
        """Listen to the target, which will read `ids` next; None to stop. The target forgets tokens whose
        rows are needed but were not kept."""
        features = self._features
        features.listen(ids is not None)
        if ids is None:
            return
        needed = max(0, self.sync(ids) - self._behind)
        if features.start <= needed <= features.end:
            self._target.sync(ids[: features.end])
        else:
            self._target.sync(ids[:needed])
            features.forget(self._target.n_cached)

    def sync(self, ids: NDArray[np.int32]) -> int:
        self._target.sync(ids)  # whose rows of other tokens are no longer valid
        if self.n_cached > self._sure:
            self._roll_back(self._sure)
        kept = super().sync(ids)
        self._features.drop(kept - self._behind)
        return kept

    def clear(self) -> None:
        super().clear()
        self._sure = 0

    def _roll_back(self, keep: int) -> None:
        llama_cpp.llama_memory_seq_rm(self._memory, 0, max(0, keep - self._first_entry), -1)
        self._sure = min(self._sure, keep)
        self._holds(keep)

    def _make_batch(self) -> None:
        self._best_passes = None

    def _begin(self, first: NDArray[np.int32]) -> None:
        """Keep the first token, for which the target has no row."""
        self._holds(1)

    def _extend(self, ids: NDArray[np.int32], logits: int) -> None:
        if self.n_cached == 0:
            self._ids[0] = ids[0]
            self._begin(ids[:1])
            self._sure = 1
            ids = ids[1:]
        if logits and len(ids) > _AT_ONCE:
            self._pass_parts(ids[:-logits], False)
            ids = ids[-logits:]
        self._pass_parts(ids, logits > 0)

    def _pass_parts(self, ids: NDArray[np.int32], wanted: bool) -> None:
        for start in range(0, len(ids), self.n_ubatch):
            part = ids[start : start + self.n_ubatch]
            at, n = self.n_cached, len(part)
            self._ids[at : at + n] = part
            features = self._targets(at, n)
            if features is None:
                rows = self._own = self._rows(1) if self._own is None else self._own
            else:
                rows = self._fused(features)
            last = n - 1 if wanted and n <= self._few else 0
            if last:
                self._entries(part[:last], rows[:last], False)
                part, rows = part[last:], rows[last:]
            self._entries(part, rows, wanted)  # the very rows: chained heads recognise their own

    def _targets(self, at: int, n: int) -> NDArray[np.float32] | None:
        """What the target gave for the entries of `n` tokens from place `at`, shape [n, width]. None if it
        has not read them: the head's own row is then used."""
        first = at - self._behind
        if first + n > self._features.end:
            assert n == 1
            return None
        features = self._features.rows(first, first + n)
        self._read[:] = features[-1].reshape(self._read.shape)
        self._sure = at + n
        return features

    def _passes_over(self, ids: NDArray[np.int32]) -> BestPasses | None:
        if self._best_passes is None or self.n_cached == 0 or len(ids) > self._few:
            return None
        features = self._targets(self.n_cached, len(ids))
        if features is not None:
            self._prepare(features)
        elif self._own is not None:
            self._prepare_rows(self._own)
        self._own, self._given = None, 1
        return self._best_passes

    def _prepare(self, features: NDArray[np.float32]) -> None:
        """Hand what the target gave for the next tokens, shape [n, width], to the compiled passes."""
        self._prepare_rows(features)

    def _prepare_rows(self, rows: NDArray[np.float32]) -> None:
        self._kept = rows  # kept alive
        self._beside.rows = rows.ctypes.data

    def _fused(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """The rows [n, n_embd] of entries, from the target's [n, width]."""
        return features

    def head_input(self) -> HeadInput:
        return HeadInput(self._layers, tuple(np.linalg.norm(self._read, axis=1).tolist()))

    def _entries(self, ids: NDArray[np.int32], rows: NDArray[np.float32], wanted: bool) -> None:
        """A pass over entries: tokens `ids` [n] with `rows` [n, n_embd]. If `wanted`, all get logits:
        llama.cpp computes all in any case, and would return the first."""
        batch = self._batch_ext
        llama_cpp.llama_batch_ext_clear(batch)
        for place, (token, row) in enumerate(
            zip(ids.tolist(), rows, strict=True), self.n_cached - self._first_entry
        ):
            index = llama_cpp.llama_batch_ext_add_token(batch, 0, token)
            llama_cpp.llama_batch_ext_set_embd_token(batch, index, embedding(row))
            self._place(index, place, wanted)
        self._process(DECODE, len(ids))
        if wanted:
            self._given = len(ids)
            self._own = self._rows(len(ids))[-1:]

    def _process(self, kind: int, n: int) -> None:
        """Run the batch, which extends the cache by `n` tokens."""
        started = time.perf_counter()
        status = llama_cpp.llama_process(self.handle, kind, self._batch_ext)
        self.seconds += time.perf_counter() - started
        self._ended(status, self.n_cached, n)

    def _ended(self, status: int, at: int, n: int) -> None:
        if status:
            self._roll_back(at)  # what is half written
            if self._abort.is_set():
                raise Cancelled
            raise RuntimeError(f"llama_process answered {status} for {n} tokens at {at}")
        self._holds(at + n)

    def _place(self, index: int, place: int, wanted: bool) -> None:
        """Put an entry of the batch at its place in memory, and ask for its logits."""
        llama_cpp.llama_batch_ext_set_pos(self._batch_ext, index, (llama_cpp.llama_pos * 1)(place))
        if wanted:
            llama_cpp.llama_batch_ext_set_output_logits(self._batch_ext, index, True)

    def _rows(self, n: int) -> NDArray[np.float32]:
        """The latest pass's output for each of its `n` entries, shape [n, n_embd]."""
        return self._native.at(nextn_address(self.handle))[:n].copy()

    def _logits(self, rows: int) -> NDArray[np.float32]:
        return super()._logits(self._given)[-rows:]

    def self_test(self) -> None:
        """Draft once, so that faulty kernels of either model crash now."""
        ids = np.full(SELF_TEST, max(self.model.vocabulary.bos, 0), np.int32)
        self.follow(ids)
        self._target.decode(ids[:-1])
        self.decode(ids[self.sync(ids[:-1]) : -1])
        self.ahead = min(2, self.most or 2)
        for _ in range(self.ahead):
            self.decode(ids[-1:], logits=1)
        self.follow(None)
        for context in (self, self._target):
            context.clear()
            context.seconds = 0.0

    def close(self) -> None:
        if self._features in self._target.features:
            if self._target.handle:  # freed after its head, or kept for another: nobody reads its rows now
                self._features.close()
            self._target.features.remove(self._features)
        if self._batch_ext is not None:
            llama_cpp.llama_batch_ext_free(self._batch_ext)
            self._batch_ext = None
        super().close()


class Eagle3Context(HeadContext):
    """An EAGLE-3 head: its encoder joins the inputs of three layers. The first token has no entry."""

    _first_entry = 1
    _apart = True

    def __init__(self, model: Model, options: ModelOptions, abort: AbortFlag, target: Context) -> None:
        """Raises PairError if the head belongs to a different target, and ModelFileError like `Context`."""
        super().__init__(model, options, abort, target, target_layers(model, target.model))

    def _set_up(self, options: ModelOptions) -> None:
        super()._set_up(options)
        self._scales = self.model.metadata("eagle3.norm_before_fc") == "true"
        n, width = self._read.shape
        # The encoder's inputs for the compiled passes: each layer of the latest row alone, then whole rows.
        self._inputs = np.zeros((n + _FEW, n * width), np.float32)
        self._read = np.einsum("iij->ij", self._inputs[:n].reshape(n, n, width))  # a view
        self._made = np.zeros((n + _FEW, self.n_embd), np.float32)
        self._norms = (ctypes.c_double * (2 * n))()  # of each layer's row, then of what it alone gave
        if self._best_passes is not None:
            beside = self._beside
            beside.input_width, beside.made = self._inputs.shape[1], self._made.ctypes.data
            beside.norms, beside.n_norms = ctypes.addressof(self._norms), n
            self._given_at = self._inputs.ctypes.data, self._made[n:].ctypes.data

    def _prepare(self, features: NDArray[np.float32]) -> None:
        n, beside = len(self._layers), self._beside
        self._inputs[n : n + len(features)] = features
        beside.n_inputs = n + len(features)
        beside.inputs, beside.rows = self._given_at

    def _fused(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        n, layers, batch = len(features), len(self._layers), self._batch_ext
        # In the same pass, which reads the matrix in any case.
        alone = self._inputs[:layers] if n + layers <= self.n_ubatch else ()
        llama_cpp.llama_batch_ext_clear(batch)
        # They go into no memory, but llama.cpp wants their places to follow what is in it.
        for place, row in enumerate([*alone, *features], self.n_cached - self._first_entry):
            index = llama_cpp.llama_batch_ext_add_embd(batch, 0, embedding(row))
            self._place(index, place, False)
        self._process(ENCODE, 0)
        rows = self._rows(len(alone) + n)
        self._norms[:layers] = np.linalg.norm(self._read, axis=1).tolist()
        self._norms[layers:] = np.linalg.norm(rows[:layers], axis=1).tolist() if len(alone) else [0] * layers
        return rows[len(alone) :]

    def head_input(self) -> HeadInput:
        n = len(self._layers)
        norms, terms = self._norms[:n], self._norms[n:]
        if self._scales:  # each row alone was scaled to the same size
            terms = [term * norm for term, norm in zip(terms, norms, strict=True)]
        whole = sum(terms)
        shares = tuple(term / whole for term in terms) if whole > 0 else ()
        return HeadInput(self._layers, tuple(norms), shares)


def embedding(row: NDArray[np.float32]) -> llama_cpp.llama_embd:
    """A row for a batch, which copies it."""
    return llama_cpp.llama_embd(_FLOATS(ctypes.c_float.from_buffer(row)), 1, row.size)  # type: ignore[arg-type]
