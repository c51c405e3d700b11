"""A pass and its best logits in one compiled call: what llama.cpp is given, and what counts as its time."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import llama_cpp
import numpy as np
import pytest

from app.engine.native.best_pass import BestPass
from app.engine.sampling.kernel import Batch, Kernel, Step

ROW = (3 * np.random.default_rng(0).standard_normal(300)).astype(np.float32)
Decode = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, Batch)
GetLogits = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


def numbers(kind: type[np.integer], address: int, n: int) -> list[int]:
    size = n * np.dtype(kind).itemsize
    return np.frombuffer(ctypes.string_at(address, size), kind).tolist()


class Cache:
    """The arrays of a context with twelve tokens, eight of them a pass at most."""

    def __init__(self) -> None:
        self.ids, self.positions = np.arange(50, 62, dtype=np.int32), np.arange(12, dtype=np.int32)
        self.wanted = np.zeros(8, np.int8)
        self.wanted[-1] = 1

    @property
    def batch(self) -> Batch:
        ids, positions = self.ids.ctypes.data, self.positions.ctypes.data
        return Batch(0, ids, None, positions, 1, 2, self.wanted.ctypes.data + 8)


def test_the_batch_is_llamas() -> None:
    fields = llama_cpp.llama_batch._fields_
    assert [name for name, _ in Batch._fields_] == [name for name, *_ in fields]
    for name, *_ in fields:
        theirs = getattr(llama_cpp.llama_batch, name)
        assert (getattr(Batch, name).offset, getattr(Batch, name).size) == (theirs.offset, theirs.size)
    assert ctypes.sizeof(Batch) == ctypes.sizeof(llama_cpp.llama_batch)


@pytest.mark.parametrize(("at", "n"), [(0, 8), (5, 1), (9, 3)])
def test_a_pass_takes_tokens_where_they_lie(compiled: Kernel, at: int, n: int) -> None:
    cache = Cache()
    asked: list[object] = []

    def decode(context: int, batch: Batch) -> int:
        assert (context, batch.n_tokens, batch.embd, batch.n_seq_id, batch.seq_id) == (77, n, None, 1, 2)
        asked.append(numbers(np.int32, batch.token, n))
        asked.append(numbers(np.int32, batch.pos, n))
        asked.append(numbers(np.int8, batch.logits, n))
        return 0

    def get_logits(context: int) -> int:
        assert (context, len(asked)) == (77, 3)
        return int(ROW.ctypes.data)

    places, values = (ctypes.c_ssize_t * 4)(), (ctypes.c_float * 4)()
    functions = Decode(decode), GetLogits(get_logits)
    step = Step(
        *(ctypes.cast(function, ctypes.c_void_p) for function in functions),
        77,
        cache.batch,
        4,
        ctypes.addressof(places),
        ctypes.addressof(values),
    )
    assert compiled.decode_largest(ctypes.addressof(step), at, n, 200) == 0
    assert asked == [[*range(50 + at, 50 + at + n)], [*range(at, at + n)], [*[0] * (n - 1), 1]]
    expected = np.argsort(-ROW[:200], kind="stable")[:4]
    assert (step.found, [*places], [*values]) == (4, expected.tolist(), ROW[expected].tolist())


def test_a_pass_that_fails_has_no_best(compiled: Kernel) -> None:
    refuse = Decode(lambda _context, _batch: 2)
    step = Step(decode=ctypes.cast(refuse, ctypes.c_void_p), batch=Cache().batch, k=4, found=4, seconds=1)
    assert compiled.decode_largest(ctypes.addressof(step), 0, 1, 200) == 2
    assert (step.found, step.seconds) == (0, 0)


def test_the_search_is_not_llamas_time() -> None:
    def decode_largest(address: int, at: int, n: int, size: int) -> int:
        assert (at, n, size) == (5, 1, 200)
        Step.from_address(address).seconds = 1000
        return 0

    passes = BestPass(SimpleNamespace(decode_largest=decode_largest), 77, Cache().batch, 8)  # type: ignore[arg-type]
    status, seconds = passes.run(5, 1, 200)
    assert status == 0
    assert -1000 <= seconds < 0
