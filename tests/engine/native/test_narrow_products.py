"""Products of a few columns, by set-up's change of ggml: the numbers of single columns, bit for bit."""

from __future__ import annotations

import ctypes
import platform
from pathlib import Path

import llama_cpp
import numpy as np
import pytest
from numpy.typing import NDArray

COLUMNS = (2, 3, 4, 5, 6, 7, 8)
ROWS = 96
F32, F16, Q4_1, Q8_0, BF16 = 0, 1, 3, 8, 30


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
        for name in ("init", "new_tensor_2d", "get_data", "mul_mat", "new_graph"):
            getattr(self.base, f"ggml_{name}").restype = ctypes.c_void_p
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

    def product(
        self, kind: int, weights: bytes, rows: int, columns: NDArray[np.float32], threads: int
    ) -> NDArray[np.float32]:
        """Shape [columns, rows], of weights [rows, n] and columns [columns, n]."""
        count, n = columns.shape
        context = ctypes.c_void_p(self.base.ggml_init(self.Params(1 << 24, None, False)))
        try:

            def tensor(kind: int, second: int) -> ctypes.c_void_p:
                sizes = ctypes.c_int64(n), ctypes.c_int64(second)
                return ctypes.c_void_p(self.base.ggml_new_tensor_2d(context, kind, *sizes))

            left, right = tensor(kind, rows), tensor(F32, count)
            ctypes.memmove(self.base.ggml_get_data(left), weights, len(weights))
            ctypes.memmove(self.base.ggml_get_data(right), columns.tobytes(), columns.nbytes)
            product = ctypes.c_void_p(self.base.ggml_mul_mat(context, left, right))
            graph = ctypes.c_void_p(self.base.ggml_new_graph(context))
            self.base.ggml_build_forward_expand(graph, product)
            assert self.cpu.ggml_graph_compute_with_ctx(context, graph, threads) == 0
            made = ctypes.string_at(self.base.ggml_get_data(product), 4 * rows * count)
            return np.frombuffer(made, np.float32).reshape(count, rows)
        finally:
            self.base.ggml_free(context)


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
