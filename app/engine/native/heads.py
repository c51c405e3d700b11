"""Contexts of MTP heads, assistants and block drafts, and `context_of` for any model."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import llama_cpp
import numpy as np
from llama_cpp import llama_cpp_ext as ext

from app.engine.compat import ASSISTANT, CHAINED, DFLASH2, DSPARK, GIVE_LAST, MTP
from app.engine.errors import ModelFileError, PairError
from app.engine.native.context import NO_TOKENS, Context
from app.engine.native.head_context import DECODE, Eagle3Context, HeadContext, embedding, target_layers
from app.engine.native.library import AbortFlag, extension
from app.engine.native.model import head_fault, tensor_sizes
from app.engine.sampling.logits import TOP, top_of_row
from app.engine.types import ModelOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.native.features import Best
    from app.engine.native.model import Model

_top_k = extension("llama_model_dflash_selector_top_k", "PK11llama_model", ctypes.c_int32, ctypes.c_void_p)


def _check_mtp(head: Model, target: Model) -> None:
    """Raise PairError if a head in a separate file cannot draft for the target."""
    name, made_for = head.path.name, head.metadata("general.architecture")
    if head.n_heads == 0:
        raise PairError(
            f"{name} contains only an MTP head, but mtp is off.", "Turn on the draft's option mtp."
        )
    if head.n_heads > 1 and made_for not in CHAINED:
        raise PairError(
            f"{name} contains {head.n_heads} MTP heads, but this llama.cpp drafts with one.",
            "Choose a different draft.",
        )
    if (made_for, head.n_embd) != (target.architecture, target.n_embd) or made_for not in GIVE_LAST:
        raise PairError(
            f"{name} was made for a different target: one of architecture {made_for} with an "
            f"embedding size of {head.n_embd:,}, and {target.path.name} is {target.architecture} with "
            f"{target.n_embd:,}.",
            "Choose the target that it was made for.",
        )


class MtpContext(HeadContext):
    """MTP heads, in the target's file or a separate one. They read the last layer's output; the first token
    gets zeros.

    If there are several heads, each drafts one place and has its own layer in memory. All read the target's
    rows; the head of each further place reads the draft again from its first token.
    """

    def __init__(self, model: Model, options: ModelOptions, abort: AbortFlag, target: Context) -> None:
        """`model` is the target's own, or that of a file with the heads alone. Raises PairError if the heads
        belong to a different target, and ModelFileError like `Context`."""
        if model is not target.model:
            _check_mtp(model, target.model)
        self._heads = model.n_heads
        self._apart = self._heads == 1
        self._chain: list[NDArray[np.float32]] = []  # the rows that a draft was read beside
        if self._heads > 1:
            self.most, self.full = self._heads, "each of its heads has drafted"
        kind = llama_cpp.LLAMA_CONTEXT_TYPE_MTP
        super().__init__(model, options, abort, target, [target.model.n_layers], kind)

    @staticmethod
    def is_in(model: Model) -> bool:
        """Whether the model has heads that can be drafted with."""
        return (
            model.n_heads == 1 or (model.n_heads > 1 and model.architecture in CHAINED)
        ) and model.architecture in GIVE_LAST

    def _begin(self, first: NDArray[np.int32]) -> None:
        self._entries(first, np.zeros((1, self.n_embd), np.float32), wanted=False)

    def _entries(self, ids: NDArray[np.int32], rows: NDArray[np.float32], wanted: bool) -> None:
        if self._heads == 1:
            super()._entries(ids, rows, wanted)
        elif rows is self._own:
            self._chain.append(rows[0])
            first, n = self._sure - 1, len(self._chain)
            self._choose(n - 1, first)
            super()._entries(self._ids[first : first + n], np.array(self._chain), wanted)
        else:
            self._chain, first = [rows[-1]], self.n_cached
            for head in reversed(range(self._heads)):  # the first head drafts the next token
                self._choose(head, first)
                super()._entries(ids, rows, wanted and head == 0)

    def _choose(self, head: int, first: int) -> None:
        """Choose the head of the next pass, over entries from place `first`."""
        llama_cpp.llama_memory_seq_rm(self._memory, 0, first, -1)
        self._holds(first)
        ext.llama_set_nextn_layer_offset(self.handle, head)


class AssistantContext(HeadContext):
    """Gemma 4's assistant: it attends to the target's own cache and adds nothing to it. All tokens of a draft
    are read at the place of its first."""

    def __init__(self, model: Model, options: ModelOptions, abort: AbortFlag, target: Context) -> None:
        """Raises PairError if the assistant belongs to a different target, and ModelFileError like
        `Context`."""
        shapes = [
            [below.metadata(f"{below.architecture}.attention.{key}") for key in _SHARED]
            for below in (model, target.model)
        ]
        width = int(llama_cpp.llama_model_n_embd_out(model.handle))
        if target.model.architecture != "gemma4" or width != target.model.n_embd or shapes[0] != shapes[1]:
            raise PairError(
                f"{model.path.name} was made for a different target: a Gemma 4 with an embedding size of "
                f"{width:,}, and {target.model.path.name} is {target.model.architecture} with "
                f"{target.model.n_embd:,}.",
                "Choose the target that it was made for.",
            )
        super().__init__(model, options, abort, target, [target.model.n_layers])

    def sync(self, ids: NDArray[np.int32]) -> int:
        self._target.sync(ids)
        n = self._sure = len(ids)
        self._ids[:n] = ids
        self._holds(n)
        self._features.drop(n - self._behind)
        return n

    def clear(self) -> None:
        self._sure = 0
        self._holds(0)

    def _roll_back(self, keep: int) -> None:
        self._holds(keep)

    def _place(self, index: int, place: int, wanted: bool) -> None:
        super()._place(index, self._sure - 1, wanted)


_SHARED = ("key_length", "key_length_swa", "sliding_window")
"""Metadata that an assistant's attention must share with its target's."""


class BlockContext(HeadContext):
    """A DFlash, DSpark or DFlash2 draft. The target's rows are its keys and values; one pass over the last
    token and masks gives all rows of a draft. A row does not depend on tokens drawn before it, except
    DFlash2's, which depends on the token before."""

    full = "the draft's block is full"
    _behind = 0

    def __init__(self, model: Model, options: ModelOptions, abort: AbortFlag, target: Context) -> None:
        """Raises PairError if the draft belongs to a different target, and ModelFileError like `Context`."""
        self._mask = int(llama_cpp.llama_vocab_mask(llama_cpp.llama_model_get_vocab(model.handle)))
        super().__init__(model, options, abort, target, target_layers(model, target.model))

    def _set_up(self, options: ModelOptions) -> None:
        super()._set_up(options)
        model = self.model
        size = model.metadata("dflash.block_size")
        anchored = model.architecture == DSPARK and model.metadata("dflash.sample_from_anchor") != "false"
        self.anchors = self._first_row = 0 if anchored else 1  # the row that drafts the next token
        self.most = (int(size) if size.isdigit() else 16) - self._first_row
        self._row = 0  # of the block, of the latest token
        self._confident = model.architecture == DSPARK and any(
            name.startswith("conf_proj.") for name, _ in tensor_sizes(model.path)
        )
        self._lattice = _Lattice(model) if model.architecture == DFLASH2 else None
        if self._lattice is not None:  # rows of all tokens
            ext.llama_set_embeddings_nextn(self.handle, True, False)
        llama_cpp.llama_set_causal_attn(self.handle, model.metadata("dflash.attention.causal") == "true")

    def best(
        self,
        ids: NDArray[np.int32],
        size: int,
        count: int = 1,
        p_min: float = 0.0,
        ends: NDArray[np.int32] = NO_TOKENS,
    ) -> list[Best]:
        self._extend(ids, 1)
        if self._lattice is not None:
            return self._lattice.best(count)
        return [top_of_row(row) for row in super()._logits(self._given)[self._first_row :, :size][:count]]

    def _extend(self, ids: NDArray[np.int32], logits: int) -> None:
        known = len(ids) - logits
        self._pass_parts(ids[:known], False)
        if not logits:
            return
        if self.n_cached == self._sure:
            self._row = self._first_row
            self._block(int(ids[-1]))
        else:
            self._row += 1
        if self._lattice is not None:
            self._lattice.step(int(ids[-1]))
        self._ids[self.n_cached] = ids[-1]
        self._holds(self.n_cached + 1)

    def _block(self, last: int) -> None:
        """The pass of a draft, which leaves nothing in memory."""
        llama_cpp.llama_batch_ext_clear(self._batch_ext)
        at, n = self.n_cached, self.ahead + self._first_row
        for place, token in enumerate([last, *[self._mask] * (n - 1)], at):
            self._place(llama_cpp.llama_batch_ext_add_token(self._batch_ext, 0, token), place, True)
        self._process(DECODE, 0)
        llama_cpp.llama_memory_seq_rm(self._memory, 0, at, -1)
        self._given = n
        if self._confident:  # llama.cpp fills a row with one number
            self.confidence = self._rows(n)[self._first_row :, 0].tolist()
        if self._lattice is not None:
            self._lattice.take(self._rows(n))

    def _entries(self, ids: NDArray[np.int32], rows: NDArray[np.float32], wanted: bool) -> None:
        llama_cpp.llama_batch_ext_clear(self._batch_ext)
        for place, row in enumerate(rows, self.n_cached):
            self._place(llama_cpp.llama_batch_ext_add_embd(self._batch_ext, 0, embedding(row)), place, False)
        self._process(DECODE, len(ids))

    def _logits(self, rows: int) -> NDArray[np.float32]:
        if self._lattice is not None:
            return self._lattice.row()
        return super()._logits(self._given)[self._row : self._row + 1]


class _Lattice:
    """The candidates of each place of a DFlash2 block, and the score of each after each candidate of the
    place before. llama.cpp returns one row of numbers for each place: the candidates, then the scores.
    """

    def __init__(self, model: Model) -> None:
        self._k = int(_top_k(model.handle))
        self._row = np.empty((1, model.vocabulary.size), np.float32)

    def take(self, rows: NDArray[np.float32]) -> None:
        """The rows of a block, shape [n, n_embd]; the first is that of the last token."""
        k = self._k
        self._tokens = rows[1:, :k].astype(np.int32)
        self._scores = rows[1:, k : k + k * k].reshape(-1, k, k)
        self._place = -1

    def step(self, token: int) -> None:
        """Continue at the next place, after `token`."""
        known = self._tokens[self._place] == token if self._place >= 0 else np.ones(1)
        self._behind, self._place = int(known.argmax()), self._place + 1

    def row(self) -> NDArray[np.float32]:
        """The logits of the place, over the vocabulary."""
        self._row.fill(-np.inf)
        self._row[0, self._tokens[self._place]] = self._scores[self._place, self._behind]
        return self._row

    def best(self, count: int) -> list[Best]:
        """The candidates of `count` places, best first, each place after the best of the one before."""
        found: list[Best] = []
        for tokens, scores in zip(self._tokens[:count], self._scores, strict=False):
            behind = scores[self._behind]
            if np.isnan(behind).any():
                return [*found, ([], [])]
            order = np.argsort(-behind, kind="stable")
            self._behind = int(order[0])
            order = order[:TOP]
            found.append((tokens[order].tolist(), behind[order].tolist()))
        return found


def context_of(
    model: Model, options: ModelOptions, abort: AbortFlag, snapshots: int, target: Context | None
) -> Context:
    """A context for any model. `target` is the context that a head reads; `snapshots` as in Context. Raises
    PairError if the head belongs to a different target, and ModelFileError like `Context`."""
    if not model.is_head:
        return Context(model, options, abort, snapshots)
    if target is None:
        raise ModelFileError(
            f"{model.path.name} drafts for a different model and cannot answer by itself.",
            "Load the model that it was made for, with this file as its draft.",
        )
    if fault := head_fault(model.path, model.metadata):
        raise PairError(f"{model.path.name} cannot draft, because {fault}.", "Choose a different draft.")
    kind = {"eagle3": Eagle3Context, MTP: MtpContext, ASSISTANT: AssistantContext}
    return kind.get(model.architecture, BlockContext)(model, options, abort, target)
