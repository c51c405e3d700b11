"""Products of a few columns, by set-up's change of ggml: the numbers of single columns, bit for bit."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import llama_cpp
import numpy as np
import pytest
from numpy.typing import NDArray

COLUMNS = (2, 3, 4, 5, 6, 7, 8)
ROWS = 96
F32, F16, Q4_0, Q4_1, Q8_0, BF16 = 0, 1, 2, 3, 8, 30


class Ggml:
    """ggml's own matrix product on the CPU, from llama-cpp-python's libraries."""

    class Params(ctypes.Structure):
        """ggml_init_params."""

        _fields_ = (("size", ctypes.c_size_t), ("buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool))

    def __init__(self) -> None:
        folder = Path(llama_cpp.__file__).parent / "lib"
        self.base, self.cpu = (
            ctypes.CDLL(str(next(folder.glob(f"*ggml-{name}.*")))) for name in ("base", "cpu")
        )
        for name in ("init", "new_tensor_2d", "new_tensor_3d", "get_data", "mul_mat", "new_graph"):
            getattr(self.base, f"ggml_{name}").restype = ctypes.c_void_p
        self.base.ggml_backend_alloc_ctx_tensors_from_buft.restype = ctypes.c_void_p
        self.base.ggml_row_size.restype = self.base.ggml_quantize_chunk.restype = ctypes.c_size_t
        self.cpu.ggml_cpu_init()

    def packed(self, kind: int, rows: NDArray[np.float32]) -> bytes:
        """The rows, shape [rows, n], in a type of ggml."""
        count, n = rows.shape
        size = self.base.ggml_row_size(kind, ctypes.c_int64(n)) * count
        made = ctypes.create_string_buffer(size)
        shape = ctypes.c_int64(0), ctypes.c_int64(count), ctypes.c_int64(n)
        self.base.ggml_quantize_chunk(kind, rows.ctypes.data_as(ctypes.c_void_p), made, *shape, None)
        return made.raw

    @contextmanager
    def context(self, no_alloc: bool = False) -> Iterator[ctypes.c_void_p]:
        context = ctypes.c_void_p(self.base.ggml_init(self.Params(1 << 24, None, no_alloc)))
        try:
            yield context
        finally:
            self.base.ggml_free(context)

    def tensor(self, context: ctypes.c_void_p, kind: int, *sizes: int) -> ctypes.c_void_p:
        make = getattr(self.base, f"ggml_new_tensor_{len(sizes)}d")
        return ctypes.c_void_p(make(context, kind, *map(ctypes.c_int64, sizes)))

    @contextmanager
    def repacked(self, kind: int, weights: bytes, rows: int, n: int) -> Iterator[ctypes.c_void_p]:
        """A matrix as a model's: in the order that ggml's kernels of this processor want."""
        kept_in = self.cpu["_Z35ggml_backend_cpu_repack_buffer_typev"]
        kept_in.restype = ctypes.c_void_p
        with self.context(no_alloc=True) as context:
            matrix = self.tensor(context, kind, n, rows)
            buffer = self.base.ggml_backend_alloc_ctx_tensors_from_buft(context, ctypes.c_void_p(kept_in()))
            try:
                size = ctypes.c_size_t(len(weights))
                self.base.ggml_backend_tensor_set(matrix, weights, ctypes.c_size_t(0), size)
                yield matrix
            finally:
                self.base.ggml_backend_buffer_free(ctypes.c_void_p(buffer))

    def product(
        self, kind: int, weights: bytes, rows: int, columns: NDArray[np.float32], threads: int
    ) -> NDArray[np.float32]:
        """Shape [columns, rows], of weights [rows, n] and columns [columns, n]."""
        with self.context() as context:
            left = self.tensor(context, kind, columns.shape[1], rows)
            ctypes.memmove(self.base.ggml_get_data(left), weights, len(weights))
            return self.multiplied(context, left, rows, columns, threads)

    def multiplied(
        self,
        context: ctypes.c_void_p,
        left: ctypes.c_void_p,
        rows: int,
        columns: NDArray[np.float32],
        threads: int,
        plane: int = 0,
    ) -> NDArray[np.float32]:
        """The product with a matrix that is there; with `plane`, of so many columns at a time."""
        count, n = columns.shape
        sizes = (n, plane, count // plane) if plane else (n, count)
        right = self.tensor(context, F32, *sizes)
        ctypes.memmove(self.base.ggml_get_data(right), columns.tobytes(), columns.nbytes)
        product = ctypes.c_void_p(self.base.ggml_mul_mat(context, left, right))
        graph = ctypes.c_void_p(self.base.ggml_new_graph(context))
        self.base.ggml_build_forward_expand(graph, product)
        assert self.cpu.ggml_graph_compute_with_ctx(context, graph, threads) == 0
        made = ctypes.string_at(self.base.ggml_get_data(product), 4 * rows * count)
        return np.frombuffer(made, np.float32).reshape(count, rows)


@pytest.fixture(scope="module")
def ggml() -> Ggml:
    return Ggml()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="only built for x86")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("kind", "n"),
    [(F16, 576), (F16, 100), (BF16, 768), (BF16, 100), (Q8_0, 576), (Q4_1, 576), (Q4_1, 1536)],
)
def test_a_few_columns_have_the_numbers_of_single_ones(ggml: Ggml, kind: int, n: int, threads: int) -> None:
    if kind == BF16 and b"AVX512_BF16 = 1" not in llama_cpp.llama_print_system_info():
        pytest.skip("a processor without instructions for BF16")
    rng = np.random.default_rng(n + kind)
    values = rng.standard_normal((ROWS, n)).astype(np.float32)
    columns = rng.standard_normal((max(COLUMNS), n)).astype(np.float32)
    weights = ggml.packed(kind, values)
    single = np.concatenate([ggml.product(kind, weights, ROWS, column[None], threads) for column in columns])
    assert np.allclose(single, columns @ values.T, atol=0.5 * np.sqrt(n))
    assert not np.array_equal(single[0], single[1])
    for count in COLUMNS:
        made = ggml.product(kind, weights, ROWS, columns[:count], threads)
        assert np.array_equal(made, single[:count]), f"{count} columns"


@pytest.mark.parametrize("kind", [Q8_0, Q4_1])
def test_many_columns_are_products_too(ggml: Ggml, kind: int) -> None:
    """Sixteen and more columns: groups of eight, with a rest."""
    rng = np.random.default_rng(1)
    values, columns = (rng.standard_normal((count, 64)).astype(np.float32) for count in (40, 45))
    weights = ggml.packed(kind, values)
    for count in (9, 16, 17, 45):
        made = ggml.product(kind, weights, 40, columns[:count], 2)
        assert np.allclose(made, columns[:count] @ values.T, atol=0.5 * 8)


@pytest.mark.skipif(
    b"AVX2 = 1" not in llama_cpp.llama_print_system_info(), reason="only built for x86 with AVX2"
)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [64, 576, 1536])
def test_a_repacked_matrix_has_the_numbers_of_ggml_itself(ggml: Ggml, n: int, threads: int) -> None:
    """Columns in planes are left to ggml: single ones to its gemv, four to its gemm."""
    rng = np.random.default_rng(n)
    values = rng.standard_normal((ROWS, n)).astype(np.float32)
    columns = rng.standard_normal((20, n)).astype(np.float32)
    columns[5, 32:] = 0
    with ggml.repacked(Q4_0, ggml.packed(Q4_0, values), ROWS, n) as left, ggml.context() as context:
        by_gemv, by_gemm = (ggml.multiplied(context, left, ROWS, columns, threads, size) for size in (1, 4))
        assert np.allclose(by_gemv, columns @ values.T, atol=0.7 * np.sqrt(n))
        assert np.array_equal(by_gemv, by_gemm)
        for count in (1, *COLUMNS, 9, 16, 20):
            made = ggml.multiplied(context, left, ROWS, columns[:count], threads)
            assert np.array_equal(made, by_gemv[:count]), f"{count} columns"
