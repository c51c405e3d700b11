"""A context: one sequence of tokens in one model's KV cache."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import llama_cpp
import numpy as np

from app.engine.errors import ModelFileError
from app.engine.native.alike import ROWS, widest_alike
from app.engine.native.checkpoints import APART, Checkpoints
from app.engine.native.features import MOST, BestPasses, Features, NativeRows
from app.engine.native.library import (
    AbortFlag,
    captured_log,
    captured_report,
    decode_batch,
    get_logits_address,
)
from app.engine.native.load_params import LoadReport, context_params
from app.engine.native.model import Model, explain_context
from app.engine.sampling import kernel
from app.engine.sampling.kernel import Batch
from app.engine.sampling.logits import top_of_row
from app.engine.types import CACHE_STEP, HeadInput, ModelOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.native.features import Best

SNAPSHOTS = 4  # the length of a usual draft; each is a copy of all recurrent states
_NEAR = 6  # most tokens that are decoded again with a draft rather than copying a state
_PART = 512  # tokens of a text that are read before a caller hears of it
SELF_TEST = 8  # tokens: kernels for several tokens differ from those for one
NO_TOKENS = np.empty(0, np.int32)


class Cancelled(Exception):  # noqa: N818 - not an error
    """A decode was stopped by the abort flag."""


class Context:
    """One sequence's KV cache, and the passes that extend it.

    The token ids are the truth and the cache only a cache. `sync` rolls it back to its common part with the
    truth, `decode` extends it. A memory that cannot be cut is restored from a checkpoint, and the missing
    tokens are decoded again. `decode` takes enough checkpoints to keep these few. `seconds` counts the time
    in native passes, including the wait for their logits (GPU decoding is asynchronous).
    """

    reads_target = False
    """Whether it reads what a target computes besides tokens."""
    most = 0
    """The most tokens that it can draft in one pass; 0 if it drafts token by token."""
    anchors = 0
    """The places of such a pass before that of its first drafted token."""
    full = ""
    """Why a draft of this many tokens ended."""
    confidence: Sequence[float] = ()
    """The confidence of a one-pass draft in each token, if its file provides it: compared with p_min."""
    ahead = 1
    """The wanted length of the next draft, for drafts made in one pass."""

    def __init__(
        self,
        model: Model,
        options: ModelOptions,
        abort: AbortFlag,
        snapshots: int = SNAPSHOTS,
        other: Context | None = None,
        kind: int = 0,
    ) -> None:
        """`snapshots` is how many tokens of one pass can be undone, if llama.cpp keeps the recurrent states
        after each (hybrid models). A model that decodes token by token needs none. `other` is the target's
        context, for a head that takes weights from it. `kind` is llama.cpp's type of context.

        Raises ModelFileError if the context cannot be made (memory, cache type).
        """
        self.model = model
        params = context_params(options, model.n_ctx_train, snapshots)
        params.abort_callback = abort.callback
        params.abort_callback_data = abort.data
        if other is not None:
            params.ctx_other, params.ctx_type = other.handle, kind
        self.threads, self.reading_threads = int(params.n_threads), int(params.n_threads_batch)
        with captured_log() as lines, captured_report() as log:
            self.handle: Any = llama_cpp.llama_init_from_model(model.handle, params)
        if not self.handle:
            raise explain_context(model.path.name, params.n_ctx, lines)
        try:
            self.memory = LoadReport([*model.log, *log], model.devices).memory()  # as llama.cpp reports it
            self._abort = abort
            self._set_up(options)
        except BaseException:
            self.close()
            raise

    def _set_up(self, options: ModelOptions) -> None:
        """Prepare for passes. If it fails, llama.cpp's context is freed."""
        model = self.model
        self._memory = llama_cpp.llama_get_memory(self.handle)
        if not self._memory:
            # Embedding and diffusion models: decode would silently do something else, without a cache.
            raise ModelFileError(
                f"{model.path.name} does not write text token by token.", "Choose a language model."
            )
        self.n_ctx = int(llama_cpp.llama_n_ctx(self.handle))
        self.n_batch = int(llama_cpp.llama_n_batch(self.handle))
        self.n_ubatch = int(llama_cpp.llama_n_ubatch(self.handle))
        self._native_logits = NativeRows(self.n_batch, model.vocabulary.size)
        self.seconds = 0.0
        self.features: list[Features] = []  # what heads read of its passes
        self._alike: dict[int, tuple[int, int]] = {}  # by depth: the widths tried, and those alike
        # The tokens in memory, and behind them those of a pass, with their positions.
        self._ids = np.zeros(self.n_ctx + self.n_batch, np.int32)
        self._count = np.arange(self.n_ctx + self.n_batch, dtype=np.int32)
        self._holds(0)
        window = 0 if options.swa_full else model.n_swa
        needed = model.is_recurrent or window > 0
        self._keeps_checkpoints = needed
        self._checkpoints = Checkpoints(self.handle, max(APART, window))
        # Snapshots are not enough beside a sliding window, which may have moved on.
        self._snapshots = 0 if model.n_swa else int(llama_cpp.llama_n_rs_seq(self.handle))
        self._make_batch()

    def _make_batch(self) -> None:
        """Make a batch of fixed arrays: passes change only its addresses."""
        n = self.n_batch
        n_seq = np.ones(n, np.int32)
        sequence = np.zeros(1, np.int32)
        sequences = np.full(n, sequence.ctypes.data, np.uintp)
        # Which rows are wanted: a pass takes its flags from around the middle.
        wanted = np.repeat(np.array([False, True], np.int8), n)
        self._keep = (n_seq, sequence, sequences, wanted)  # kept alive: the batch holds only addresses
        self._first_id, self._first_position = self._ids.ctypes.data, self._count.ctypes.data
        self._first_wanted = wanted.ctypes.data + n
        kept = n_seq.ctypes.data, sequences.ctypes.data
        self._batch = Batch(0, self._first_id, None, self._first_position, *kept, self._first_wanted + 1)
        self._best_passes: BestPasses | None = None
        if kernel.compiled is not None and not self._keeps_checkpoints:
            self._best_passes = BestPasses(kernel.compiled, self.handle, Batch.from_buffer_copy(self._batch))

    @property
    def cached_ids(self) -> NDArray[np.int32]:
        """A copy of the tokens in the cache, shape [n_cached]."""
        return self._ids[: self.n_cached].copy()

    def sync(self, ids: NDArray[np.int32]) -> int:
        """Roll the cache back to its longest common prefix with `ids`; returns how many tokens it keeps."""
        keep = min(self.n_cached, len(ids))
        differs = (self._ids[:keep] != ids[:keep]).tobytes().find(True)
        if differs >= 0:
            keep = differs
        if keep < self.n_cached:
            self._roll_back(keep)
        return self.n_cached

    def _roll_back(self, keep: int) -> None:
        for features in self.features:
            features.cut(keep)  # rows stay right where more tokens must be decoded again
        if self._can_cut(keep) and llama_cpp.llama_memory_seq_rm(self._memory, 0, keep, -1):
            self._checkpoints.forget(keep)
            self._holds(keep)
        else:
            self._holds(self._checkpoints.restore(keep))

    def _holds(self, n: int, snapshots: int = 0) -> None:
        """Note that the memory has `n` tokens, and states that can undo up to `snapshots` of them once."""
        self.n_cached = n
        self._held_snapshots = snapshots

    def _can_cut(self, keep: int) -> bool:
        """Whether the memory still has everything that the token after `keep` tokens depends on. llama.cpp's
        own answer is not enough: it is True even if a window moved on, or the last pass was too short for
        snapshots.
        """
        if keep == 0:
            return True
        if self.model.is_recurrent:
            return self.n_cached - keep <= self._held_snapshots
        if self.model.n_swa == 0:
            return True
        first = llama_cpp.llama_memory_seq_pos_min(self._memory, 0)
        return bool(first <= max(0, keep - self.model.n_swa))

    def clear(self) -> None:
        """Empty the cache."""
        for features in self.features:
            features.forget()
        self._holds(self._checkpoints.restore(0))

    def read(self, ids: NDArray[np.int32]) -> Iterator[int]:
        """Read `ids` into the cache in parts; yields its number of tokens, first that of the kept ones.
        Raises Cancelled."""
        done = self.sync(ids)
        yield done
        while done < len(ids):
            self.decode(ids[done : done + _PART])
            done = min(done + _PART, len(ids))
            yield done
            if self._abort.is_set():
                raise Cancelled

    def decode(self, ids: NDArray[np.int32], logits: int = 0) -> NDArray[np.float32]:
        """Extend the cache by `ids`; returns a view of the last `logits` tokens' logits.

        Shape [logits, vocabulary]. The view is valid until the next decode. Raises Cancelled if the abort
        flag was set; the cache then has some beginning of its old tokens followed by `ids`.
        """
        self._extend(ids, logits)
        if logits == 0:
            return np.empty((0, self.model.vocabulary.size), np.float32)
        return self._logits(logits)

    def best(
        self,
        ids: NDArray[np.int32],
        size: int,
        count: int = 1,
        p_min: float = 0.0,
        ends: NDArray[np.int32] = NO_TOKENS,
    ) -> list[Best]:
        """Extend the cache by `ids`, then greedily by fewer than `count` more tokens. One of `ends`, or a
        token whose share among the ten best is below `p_min`, is not added.

        Returns one or more rows, for the last of `ids` and each further token. A row has the places and
        values of the ten largest among the first `size` logits, largest first (ties: lower place first). If a
        logit is NaN, both lists are empty and the row is the last. Raises Cancelled as `decode` does.
        """
        passes = self._passes_over(ids)
        if passes is None:
            self._extend(ids, 1)
            return [top_of_row(self._logits(1)[0, :size])]
        n, at = len(ids), self.n_cached
        self._ids[at : at + n] = ids
        status, seconds = passes.run(at, n, size, min(count, MOST), p_min, ends)
        self.seconds += seconds
        if passes.passes:
            at, n = at + n + passes.passes - 1, 1
            self._holds(at)
        if status:
            self._ended(status, at, n)
        return passes.best(size)

    def _passes_over(self, ids: NDArray[np.int32]) -> BestPasses | None:
        """The compiled passes that read `ids` and draft after them in one call, if possible."""
        return self._best_passes if len(ids) <= self.n_batch else None

    def _extend(self, ids: NDArray[np.int32], logits: int) -> None:
        before = len(ids) - logits if logits else 0
        if self._keeps_checkpoints and self._is_checkpoint_due(self.n_cached + before, len(ids), logits):
            self._decode_passes(ids[:before], 0)
            self._checkpoints.take(self.n_cached)
            ids = ids[before:]
        self._decode_passes(ids, logits)

    def _is_checkpoint_due(self, at: int, n: int, logits: int) -> bool:
        """Whether to take a checkpoint after `at` tokens, in a pass over `n`. Several tokens with logits are
        a draft being verified, or a draft's first step after a rejection: they are often undone soon. Prompts
        and plain steps seldom are.
        """
        at_once = 1 < logits <= self._snapshots + 1
        soon = self.model.is_recurrent and n > 1 and logits > 0 and not at_once
        return at - self._checkpoints.latest > (_NEAR if soon else self._checkpoints.apart)

    def _decode_passes(self, ids: NDArray[np.int32], logits: int) -> None:
        if 0 < len(ids) <= self.n_batch:
            self._decode_chunk(ids, len(ids) - logits)
            return
        start = 0
        while start < len(ids):
            rest = len(ids) - start
            size = min(rest, self.n_batch)
            if size < rest < size + logits:
                size = rest - logits  # the wanted rows must come from one pass
            self._decode_chunk(ids[start : start + size], max(0, min(rest - logits, size)))
            start += size

    def _decode_chunk(self, ids: NDArray[np.int32], first_wanted: int) -> None:
        n, at = len(ids), self.n_cached
        self._ids[at : at + n] = ids
        batch = self._batch
        batch.n_tokens = n
        batch.token = self._first_id + at * self._ids.itemsize
        batch.pos = self._first_position + at * self._count.itemsize
        batch.logits = self._first_wanted - first_wanted
        started = time.perf_counter()
        status = decode_batch(self.handle, batch)
        for features in self.features if status == 0 else ():
            features.take(at, n)
        self.seconds += time.perf_counter() - started
        self._ended(status, at, n)

    def _ended(self, status: int, at: int, n: int) -> None:
        """Note the memory's tokens after a pass over `n` tokens from place `at`. Raises Cancelled, or
        RuntimeError if llama.cpp refused the pass."""
        if status == 0:
            self._holds(at + n, min(n - 1, self._snapshots))
            return
        # Part of the batch may be in memory: keep to the known tokens. A recurrent state may even be half
        # written, whatever position llama.cpp reports.
        if self.model.is_recurrent:
            self._holds(self._checkpoints.restore(at))
        else:
            held = int(llama_cpp.llama_memory_seq_pos_max(self._memory, 0)) + 1
            if held > at:
                self._roll_back(at)
            elif held < at:
                self._checkpoints.forget(held)
                self._holds(held)
        if self._abort.is_set():
            raise Cancelled
        raise RuntimeError(f"llama_decode answered {status} for {n} tokens at {at}")

    def _logits(self, rows: int) -> NDArray[np.float32]:
        started = time.perf_counter()
        address = get_logits_address(self.handle)
        self.seconds += time.perf_counter() - started
        return self._native_logits.at(address)[:rows]

    def alike(self, ids: NDArray[np.int32], most: int) -> int:
        """The most tokens in a pass, up to `most`, whose logits equal those of single-token passes bit for
        bit. The pass begins with the last token of the text `ids`, shape [n]; the cache contains the others.
        0 if two tokens differ already, or if the memory cannot be cut. Kernels depend on the width of a pass
        and on the depth. So a trial extends the first text at a depth, and again the first at twice the
        depth. Afterwards the cache contains only the others. 1 if the view of the cache, or the context, has
        no room for a trial. Raises Cancelled.
        """
        if self._keeps_checkpoints:
            return 0
        held, most = ids[:-1], min(most, self.n_batch)
        depth = (len(held) // CACHE_STEP).bit_length()
        tried, found = self._alike.get(depth, (1, 1))
        rows = max(ROWS, most)
        if found == tried < most and rows <= min(1 + -len(ids) % CACHE_STEP, self.n_ctx - len(held)):
            tried, found = most, widest_alike(self, held, np.resize(ids, rows), most)
            self._alike[depth] = tried, found
        return 0 if found == 1 < tried else min(found, most)

    def self_test(self) -> None:
        """Run each kind of pass once, so that faulty kernels crash now instead of in mid-answer.

        Raises ModelFileError if llama.cpp reports a failure; a crash ends the process.
        """
        vocabulary = self.model.vocabulary
        n = min(SELF_TEST, self.n_batch, self.n_ctx - 1)
        try:
            for size in (n, 1):
                self._decode_passes(np.full(size, max(vocabulary.bos, 0), np.int32), 1)
                self._logits(1)  # GPU decoding is asynchronous: a fault shows here
        except RuntimeError as error:
            raise ModelFileError(
                f"{self.model.path.name} is loaded, but its first pass fails: {error}.",
                "Lower the layers on devices (n_gpu_layers), or the micro-batch size (ubatch_size).",
            ) from error
        finally:
            self.clear()
            self.seconds = 0.0

    def head_input(self) -> HeadInput | None:
        """For a head: what it read of its target for the latest draft. None for a model."""
        return None

    def no_numbers(self) -> ModelFileError:
        """The error for NaN logits, from which no token can be drawn."""
        name = self.model.path.name
        return ModelFileError(
            f"{name} gives NaN: its weights or settings are damaged, or too large for their format.",
            "Download it again, or choose a different model file.",
        )

    def close(self) -> None:
        if self.handle:
            llama_cpp.llama_free(self.handle)
            self.handle = None
