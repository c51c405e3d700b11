"""The head in llama.cpp's own graph, drafting for the target: a chain of drafts, verified in one pass.

The head's entry at place P contains token P+1 and the fused features of P. So the last place waits for its
token.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from pathlib import Path

import llama_cpp
import numpy as np
from llama_cpp import llama_cpp_ext as ext

from target import Target

_FLOATS = ctypes.POINTER(ctypes.c_float)
_ENCODE, _DECODE = 0, 1


class HeadContext:
    """A loaded head beside the context of its target."""

    def __init__(self, path: Path, target: Target, length: int) -> None:
        options = llama_cpp.llama_model_default_params()
        options.n_gpu_layers = 0
        self._model = llama_cpp.llama_model_load_from_file(str(path).encode(), options)
        if not self._model:
            raise SystemExit(f"llama.cpp does not load {path}.")
        self.width = llama_cpp.llama_model_n_embd(self._model)
        wanted = llama_cpp.llama_context_default_params()
        wanted.n_ctx = wanted.n_batch = wanted.n_ubatch = length
        wanted.n_threads = wanted.n_threads_batch = target.threads
        wanted.ctx_other = target.context
        self._context = llama_cpp.llama_init_from_model(self._model, wanted)
        if not self._context:
            raise SystemExit(f"llama.cpp makes no context for {path}.")
        ext.llama_set_embeddings_nextn(self._context, True, True)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_ext_init(self._context)
        self._tokens = target.tokens

    def close(self) -> None:
        llama_cpp.llama_batch_ext_free(self._batch)
        llama_cpp.llama_free(self._context)
        llama_cpp.llama_model_free(self._model)

    def fuse(self, features: np.ndarray) -> np.ndarray:
        """The encoder's rows (rows, width) of layer inputs (rows, 3 x the target's width)."""
        llama_cpp.llama_batch_ext_clear(self._batch)
        kept = np.ascontiguousarray(features, np.float32)
        # They go into no memory, but llama.cpp wants them to follow what is in it.
        first = llama_cpp.llama_memory_seq_pos_max(self._memory, 0) + 1
        for place, row in enumerate(kept, first):
            entry = llama_cpp.llama_embd(row.ctypes.data_as(_FLOATS), 1, row.size)
            index = llama_cpp.llama_batch_ext_add_embd(self._batch, 0, entry)
            llama_cpp.llama_batch_ext_set_pos(self._batch, index, (llama_cpp.llama_pos * 1)(place))
        self._process(_ENCODE)
        return self._rows(len(kept))

    def read(self, tokens: list[int], fused: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Logits (rows, tokens) and output rows (rows, width) of entries from place `first` on.

        All rows are requested, because llama.cpp's graph of a head computes all and returns the first ones.
        """
        llama_cpp.llama_batch_ext_clear(self._batch)
        kept = np.ascontiguousarray(fused, np.float32)
        for i, (token, row) in enumerate(zip(tokens, kept, strict=True)):
            index = llama_cpp.llama_batch_ext_add_token(self._batch, 0, int(token))
            entry = llama_cpp.llama_embd(row.ctypes.data_as(_FLOATS), 1, row.size)
            assert llama_cpp.llama_batch_ext_set_embd_token(self._batch, index, entry)
            llama_cpp.llama_batch_ext_set_pos(self._batch, index, (llama_cpp.llama_pos * 1)(first + i))
            llama_cpp.llama_batch_ext_set_output_logits(self._batch, index, True)
        self._process(_DECODE)
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits(self._context), (len(kept), self._tokens))
        return logits.copy(), self._rows(len(kept))

    def cut(self, place: int) -> None:
        """Forget the entries from `place` on."""
        llama_cpp.llama_memory_seq_rm(self._memory, 0, place, -1)

    def _process(self, kind: int) -> None:
        if code := llama_cpp.llama_process(self._context, kind, self._batch):
            raise RuntimeError(f"llama_process answered {code}.")

    def _rows(self, count: int) -> np.ndarray:
        return np.ctypeslib.as_array(
            ext.llama_get_embeddings_nextn(self._context), (count, self.width)
        ).copy()


@dataclass(slots=True)
class Told:
    """Counts of tokens at place i of a round: `tried[i]` were judged, `accepted[i]` accepted."""

    ids: list[int] = field(default_factory=list)
    tried: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)  # between the two best logits, at each token


def draw(row: np.ndarray, temperature: float, rng: np.random.Generator) -> int:
    """Sample a token from logits; at temperature 0 return the most likely one."""
    if temperature == 0:
        return int(row.argmax())
    return int(rng.choice(len(row), p=chances(row, temperature)))


def gap(row: np.ndarray) -> float:
    second, first = np.partition(row, -2)[-2:]
    return float(first - second)


def chances(row: np.ndarray, temperature: float) -> np.ndarray:
    scaled = (row - row.max()) / temperature
    return np.exp(scaled) / np.exp(scaled).sum()


def accepts(p: np.ndarray, q: np.ndarray, token: int, rng: np.random.Generator) -> tuple[bool, int]:
    """Whether a token drawn from q is accepted, and if not, its replacement: together they are distributed as
    p."""
    if rng.random() * q[token] < p[token]:
        return True, token
    rest = np.maximum(p - q, 0)
    return False, int(rng.choice(len(rest), p=rest / rest.sum()))


def write(
    target: Target,
    head: HeadContext | None,
    prompt: list[int],
    length: int,
    most: int,
    temperature: float,
    rng: np.random.Generator,
) -> Told:
    """Write `length` tokens after the prompt with `most` drafts a round. Without a head, the target writes
    alone."""
    told = Told(tried=[0] * most, accepted=[0] * most)
    target.cut(0)
    end = target.tokenize("<|im_end|>")[0]
    target.read(prompt, 0)
    place = len(prompt)
    if head:
        head.cut(0)
        fused = head.fuse(target.features(place))
        head.read(prompt[1:], fused[:-1], 0)
        waiting = fused[-1]
    row = target.logits(place)[-1]
    last = draw(row, temperature, rng)
    told.ids.append(last)
    told.gaps.append(gap(row))
    while len(told.ids) < length and told.ids[-1] != end:
        drafts: list[int] = []
        guesses: list[np.ndarray] = []
        given, behind = last, waiting if head else None
        for i in range(most if head else 0):
            logits, outputs = head.read([given], behind[None], place - 1 + i)
            behind = outputs[0]
            given = draw(logits[0], temperature, rng)
            drafts.append(given)
            guesses.append(logits[0])
        if head:
            head.cut(place - 1)
        tokens = [last, *drafts]
        target.read(tokens, place)
        rows = target.logits(len(tokens))
        passed = 0
        for i, row in enumerate(rows):
            if i == len(drafts):
                stays, last = False, draw(row, temperature, rng)
            elif temperature:
                stays, last = accepts(
                    chances(row, temperature), chances(guesses[i], temperature), drafts[i], rng
                )
            else:
                last = int(row.argmax())
                stays = last == drafts[i]
            told.ids.append(last)
            told.gaps.append(gap(row))
            if i < len(drafts):
                told.tried[i] += 1
                told.accepted[i] += stays
            if not stays or last == end:
                break
            passed += 1
        if head:
            kept = passed + 1  # rows whose tokens stay
            fused = head.fuse(target.features(len(tokens))[:kept])
            head.read(tokens[:kept], np.concatenate((waiting[None], fused[:-1])), place - 1)
            waiting = fused[-1]
        place += passed + 1
        target.cut(place)
    return told
