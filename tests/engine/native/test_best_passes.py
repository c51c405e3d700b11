"""A greedy draft in one compiled call: what llama.cpp is given, where it ends, what counts as its time."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import SimpleNamespace

import llama_cpp
import numpy as np
import pytest

from app.engine.native.features import BestPasses
from app.engine.sampling.kernel import Batch, Entries, Kernel, Steps

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


class Fake:
    """A llama.cpp with a row for each pass, which notes the tokens, positions and flags that it reads."""

    def __init__(self, rows: Sequence[np.ndarray], fails_after: int = 99) -> None:
        self.asked: list[tuple[list[int], list[int], list[int]]] = []
        self._rows, self._fails_after = rows, fails_after
        self._functions = Decode(self._decode), GetLogits(self._get_logits)
        self._places, self._values = (ctypes.c_ssize_t * 40)(), (ctypes.c_float * 40)()

    def _decode(self, context: int, batch: Batch) -> int:
        assert (context, batch.embd, batch.n_seq_id, batch.seq_id) == (77, None, 1, 2)
        if len(self.asked) == self._fails_after:
            return 2
        n = batch.n_tokens
        tokens, positions = numbers(np.int32, batch.token, n), numbers(np.int32, batch.pos, n)
        self.asked.append((tokens, positions, numbers(np.int8, batch.logits, n)))
        return 0

    def _get_logits(self, context: int) -> int:
        assert context == 77
        return int(self._rows[len(self.asked) - 1].ctypes.data)

    def steps(self, cache: Cache, ends: np.ndarray | None = None) -> Steps:
        """Of four values a row."""
        return Steps(
            *(ctypes.cast(function, ctypes.c_void_p) for function in self._functions),
            77,
            cache.batch,
            4,
            ctypes.addressof(self._places),
            ctypes.addressof(self._values),
            ends.ctypes.data if ends is not None else None,
            len(ends) if ends is not None else 0,
        )

    def found(self, rows: int) -> list[tuple[list[int], list[float]]]:
        each = range(0, 4 * rows, 4)
        return [(self._places[at : at + 4], self._values[at : at + 4]) for at in each]


def rows_of(*best: int) -> list[np.ndarray]:
    """Random rows, each with its largest logit at this place."""
    random = np.random.default_rng(1)
    rows = [random.standard_normal(300).astype(np.float32) for _ in best]
    for row, place in zip(rows, best, strict=True):
        row[place] = 9
    return rows


def largest(row: np.ndarray) -> tuple[list[int], list[float]]:
    places = np.argsort(-row, kind="stable")[:4]
    return places.tolist(), row[places].tolist()


@pytest.mark.parametrize(("at", "n"), [(0, 8), (5, 1), (9, 3)])
def test_a_pass_takes_tokens_where_they_lie(compiled: Kernel, at: int, n: int) -> None:
    cache, fake = Cache(), Fake([ROW])
    steps = fake.steps(cache)
    assert compiled.draft_best(ctypes.addressof(steps), at, n, 200, 1, 0) == 0
    assert fake.asked == [([*range(50 + at, 50 + at + n)], [*range(at, at + n)], [*[0] * (n - 1), 1])]
    assert (steps.rows, steps.broken, fake.found(1)) == (1, 0, [largest(ROW[:200])])


def test_each_pass_reads_the_best_token_of_the_one_before(compiled: Kernel) -> None:
    rows = rows_of(7, 8, 9)
    fake = Fake(rows)
    steps = fake.steps(Cache())
    assert compiled.draft_best(ctypes.addressof(steps), 4, 2, 300, 3, 0) == 0
    assert fake.asked == [([54, 55], [4, 5], [0, 1]), ([7], [6], [1]), ([8], [7], [1])]
    assert (steps.rows, fake.found(3)) == (3, [largest(row) for row in rows])


def test_no_pass_follows_an_end(compiled: Kernel) -> None:
    fake = Fake(rows_of(7, 8, 9))
    steps = fake.steps(Cache(), np.array([3, 8], np.int32))
    assert compiled.draft_best(ctypes.addressof(steps), 4, 1, 300, 3, 0) == 0
    assert (steps.rows, steps.broken, len(fake.asked)) == (2, 0, 2)


@pytest.mark.parametrize(("p_min", "rows"), [(0, 3), (0.3, 3), (0.6, 2)])
def test_no_pass_follows_a_best_token_below_p_min(compiled: Kernel, p_min: float, rows: int) -> None:
    given = rows_of(7, 8, 9)
    given[1][20] = 9  # as probable as the best
    fake = Fake(given)
    steps = fake.steps(Cache())
    assert compiled.draft_best(ctypes.addressof(steps), 4, 1, 300, 3, p_min) == 0
    assert (steps.rows, steps.broken, len(fake.asked)) == (rows, 0, rows)


def test_no_pass_follows_a_nan(compiled: Kernel) -> None:
    rows = rows_of(7, 8, 9)
    rows[1][299] = np.nan
    fake = Fake(rows)
    steps = fake.steps(Cache())
    assert compiled.draft_best(ctypes.addressof(steps), 4, 1, 300, 3, 0) == 0
    assert (steps.rows, steps.broken, len(fake.asked)) == (1, 1, 2)


@pytest.mark.parametrize("passes", [0, 1])
def test_a_pass_that_fails_has_no_best(compiled: Kernel, passes: int) -> None:
    fake = Fake(rows_of(7, 8), passes)
    steps = fake.steps(Cache())
    steps.rows = steps.broken = steps.seconds = 9
    assert compiled.draft_best(ctypes.addressof(steps), 4, 1, 300, 2, 0) == 2
    assert (steps.rows, steps.broken) == (passes, 0)
    assert steps.seconds < 9


class FakeHead:
    """A llama.cpp that reads a head's entries, and gives a row of three numbers for each pass with logits.
    Its encoder gives rows of three sums of two numbers."""

    def __init__(self, rows: Sequence[np.ndarray]) -> None:
        self.read: list[
            list[tuple[int, int, list[float], bool]]
        ] = []  # tokens, places, rows, flags of a pass
        self._rows, self._given = rows, np.zeros(3, np.float32)
        self._done = 0  # passes with logits
        at, number = ctypes.c_void_p, ctypes.c_int32
        self._functions = (
            ctypes.CFUNCTYPE(None, at)(self._clear),
            ctypes.CFUNCTYPE(number, at, number, number)(self._add_token),
            ctypes.CFUNCTYPE(number, at, number, llama_cpp.llama_embd)(self._add_embd),
            ctypes.CFUNCTYPE(ctypes.c_bool, at, number, llama_cpp.llama_embd)(self._set_embd),
            ctypes.CFUNCTYPE(ctypes.c_bool, at, number, ctypes.POINTER(number))(self._set_place),
            ctypes.CFUNCTYPE(ctypes.c_bool, at, number, ctypes.c_bool)(self._set_output),
            ctypes.CFUNCTYPE(number, at, ctypes.c_int, at)(self._process),
            ctypes.CFUNCTYPE(at, at)(lambda context: self._given.ctypes.data),
        )
        self.get_logits = GetLogits(lambda context: self._rows[self._done - 1].ctypes.data)

    def entries(self, rows: np.ndarray) -> Entries:
        addresses = (ctypes.cast(function, ctypes.c_void_p) for function in self._functions)
        return Entries(*addresses, 88, 3, rows.ctypes.data)

    def start(self) -> None:
        self.read.clear()
        self._done = 0

    def _clear(self, batch: int) -> None:
        assert batch == 88
        self._next: list[list[object]] = []

    def _add_token(self, batch: int, sequence: int, token: int) -> int:
        assert (batch, sequence) == (88, 0)
        self._next.append([token])
        return len(self._next) + 4

    def _add_embd(self, batch: int, sequence: int, row: llama_cpp.llama_embd) -> int:
        assert (row.n_rows, row.n_embd) == (1, 2)
        return self._add_token(batch, sequence, sum(row.data[:2]))

    def _set_embd(self, batch: int, index: int, row: llama_cpp.llama_embd) -> bool:
        assert (batch, row.n_rows, row.n_embd) == (88, 1, 3)
        self._next[index - 5].append(row.data[:3])
        return True

    def _set_place(self, batch: int, index: int, place: Sequence[int]) -> bool:
        assert batch == 88
        self._next[index - 5].insert(1, place[0])
        return True

    def _set_output(self, batch: int, index: int, wanted: bool) -> bool:
        assert batch == 88
        self._next[index - 5].append(wanted)
        return True

    def _process(self, context: int, kind: int, batch: int) -> int:
        assert (context, batch) == (77, 88)
        entries = [tuple(entry) for entry in self._next]
        if kind == 0:
            self.encoded = [place for _, place in entries]
            self._given = np.repeat(np.array([entry[0] for entry in entries], np.float32), 3)
            return 0
        if self._done == len(self._rows):
            return 2
        self.read.append(entries)  # type: ignore[arg-type]
        if entries[-1][-1]:
            self._done += 1
            self._given = np.full(3, 10 * self._done, np.float32)
        return 0


@pytest.mark.parametrize("encoded", [False, True])
def test_a_head_reads_its_last_token_apart_then_its_own_beside_what_it_gave(
    encoded: bool, compiled: Kernel
) -> None:
    logits = rows_of(7, 8)
    cache, head, fake = Cache(), FakeHead(logits), Fake([])
    rows = np.array([[6, 6, 6], [1, 2, 3], [4, 4, 4], [5, 5, 5]], np.float32)
    inputs = np.array([[3, 4], [0, 1], [1, 3], [2, 3]], np.float32)
    made, norms = np.zeros((4, 3), np.float32), np.zeros(2)
    entries = head.entries(rows)
    entries.input_width, entries.n_inputs, entries.made = 2, 4, made.ctypes.data
    entries.norms, entries.n_norms = norms.ctypes.data, 1
    for passes, status in ((2, 0), (3, 2)):
        head.start()
        entries.rows = (made if encoded else rows)[1:].ctypes.data
        entries.inputs = inputs.ctypes.data if encoded else None
        steps = fake.steps(cache)
        steps.get_logits, steps.entries = (
            ctypes.cast(head.get_logits, ctypes.c_void_p),
            ctypes.pointer(entries),
        )
        assert compiled.draft_best(ctypes.addressof(steps), 4, 3, 300, passes, 0) == status
        first = [1, 1, 1] if encoded else [1, 2, 3]
        assert head.read == [
            [(54, 4, first, False), (55, 5, [4, 4, 4], False)],
            [(56, 6, [5, 5, 5], True)],
            [(7, 7, [10, 10, 10], True)],
        ]
        assert (steps.rows, steps.broken, fake.found(2)) == (2, 0, [largest(row) for row in logits])
    if encoded:
        assert head.encoded == [4, 5, 6, 7]
        assert norms.tolist() == [5, pytest.approx(7 * 3**0.5)]


def test_the_rows_of_a_tokens_layers_come_side_by_side(compiled: Kernel) -> None:
    layers = {3: np.arange(6, dtype=np.float32), 8: np.arange(6, 12, dtype=np.float32)}
    get = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)(
        lambda context, layer: layers[layer].ctypes.data if context == 77 else None
    )
    out = np.zeros((3, 4), np.float32)
    compiled.layer_rows(
        ctypes.cast(get, ctypes.c_void_p), 77, (ctypes.c_uint32 * 2)(3, 8), 2, 2, 3, out.ctypes.data
    )
    assert out.tolist() == [[0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11]]


def test_the_search_is_not_llamas_time() -> None:
    def draft_best(address: int, *given: float) -> int:
        assert given == (5, 1, 200, 4, 0.5)
        Steps.from_address(address).seconds = 1000
        return 0

    passes = BestPasses(SimpleNamespace(draft_best=draft_best), 77, Cache().batch)  # type: ignore[arg-type]
    status, seconds = passes.run(5, 1, 200, 4, 0.5, np.empty(0, np.int32))
    assert status == 0
    assert -1000 <= seconds < 0
