"""Passes over a row of a vocabulary, compiled at set-up (kernel.c).

Without a compiler, or if its library does not load, `compiled` is None, and numpy does the same in more
passes. A call keeps the interpreter's lock: releasing it and waiting for it would cost more than most calls
take. Only the calls that may wait for llama.cpp (native/features.py) release it.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Places = NDArray[np.intp]

_SOURCE = Path(__file__).with_name("kernel.c")
_Row = ctypes.POINTER(ctypes.c_float)


class Batch(ctypes.Structure):
    """llama.cpp's llama_batch, with plain addresses."""

    _fields_ = (
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.c_void_p),
        ("embd", ctypes.c_void_p),
        ("pos", ctypes.c_void_p),
        ("n_seq_id", ctypes.c_void_p),
        ("seq_id", ctypes.c_void_p),
        ("logits", ctypes.c_void_p),
    )


class Entries(ctypes.Structure):
    """Inputs of `Kernel.draft_best` for a head, whose passes take a token and a row."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in (
            "clear", "add_token", "add_embd", "set_embd", "set_pos", "set_output", "process", "get_rows",
            "batch",
        )),
        ("width", ctypes.c_size_t),
        ("rows", ctypes.c_void_p),
        ("inputs", ctypes.c_void_p),
        ("n_inputs", ctypes.c_ssize_t),
        ("input_width", ctypes.c_size_t),
        ("made", ctypes.c_void_p),
        ("norms", ctypes.c_void_p),
        ("n_norms", ctypes.c_ssize_t),
    )  # fmt: skip


class Steps(ctypes.Structure):
    """Inputs and outputs of `Kernel.draft_best`."""

    _fields_ = (
        ("decode", ctypes.c_void_p),
        ("get_logits", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("batch", Batch),
        ("k", ctypes.c_ssize_t),
        ("places", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("ends", ctypes.c_void_p),
        ("n_ends", ctypes.c_ssize_t),
        ("rows", ctypes.c_ssize_t),
        ("broken", ctypes.c_ssize_t),
        ("seconds", ctypes.c_double),
        ("entries", ctypes.POINTER(Entries)),
    )


class _Scored(ctypes.Structure):
    _fields_ = (("ratio", ctypes.c_double), ("place", ctypes.c_ssize_t))


class Kernel:
    """The functions of kernel.c. Rows are contiguous and writable, shape [n], n > 0."""

    def __init__(self, library: Path) -> None:
        functions = ctypes.PyDLL(str(library))
        n, real = ctypes.c_ssize_t, ctypes.c_double
        self._copy_argmax = functions.copy_argmax
        self._copy_argmax.argtypes, self._copy_argmax.restype = [_Row, n, _Row], n
        self._exponentials = functions.exponentials
        self._exponentials.argtypes = [_Row, n, ctypes.c_float, ctypes.c_float, _Row]
        self._exponentials.restype = real
        self._softmax = functions.softmax
        self._softmax.argtypes, self._softmax.restype = [_Row, n, ctypes.c_float, _Row], None
        self._largest = functions.largest
        self._largest.argtypes = [_Row, n, n, ctypes.POINTER(n), _Row]
        self._largest.restype = n
        self._filtered = functions.filtered
        self._filtered.argtypes = [_Row, n, n, real, real, real, ctypes.POINTER(n), _Row]
        self._filtered.restype = n
        self._race = functions.race
        self._race.argtypes = [_Row, ctypes.POINTER(n), n, ctypes.c_uint64, ctypes.POINTER(_Scored)]
        self._race.restype = None
        # Of the address of Steps, the place of the first token, the numbers of tokens, of logits and of rows,
        # p_min; returns what llama_decode does.
        waits = ctypes.CDLL(str(library))
        self.draft_best = waits.draft_best
        self.draft_best.argtypes = [ctypes.c_void_p, n, ctypes.c_int32, n, n, real]
        # Of llama.cpp's function and context, the layers, how many, the rows' width and number; last where
        # they go.
        self.layer_rows = waits.layer_rows
        self.layer_rows.argtypes = [*[ctypes.c_void_p] * 3, n, n, n, ctypes.c_void_p]
        self.layer_rows.restype = None

    def copy_argmax(self, x: Floats, out: Floats) -> int:
        """Copy a row; returns the place of the first of its largest values, or of the first NaN."""
        place: int = self._copy_argmax(_row(x), len(x), _row(out))
        return place

    def exponentials(self, x: Floats, shift: float, out: Floats | None) -> float:
        """The sum of exp(x - shift), for shift >= x. The terms are written to `out`, if given, which may be
        `x`."""
        written = None if out is None else _row(out)
        total: float = self._exponentials(_row(x), len(x), shift, 1, written)
        return total

    def softmax(self, x: Floats, temperature: float, out: Floats) -> Floats:
        """Write the probabilities at a temperature into `out`, which may be `x`, and return it: all NaN if a
        value is."""
        self._softmax(_row(x), len(x), 1 / temperature, _row(out))
        return out

    def largest(self, x: Floats, k: int) -> tuple[list[int], list[float]]:
        """Places and values of the `k` largest values, largest first (ties: lower place first); none if a
        value is NaN. For k up to a few hundred, because they are kept in order while the row is read."""
        places, values = (ctypes.c_ssize_t * k)(), (ctypes.c_float * k)()
        count = self._largest(_row(x), len(x), k, places, values)
        return places[:count], values[:count]

    def filtered(
        self, x: Floats, top_k: int, top_p: float, min_p: float, temperature: float
    ) -> tuple[Floats, Places]:
        """What the filters leave of a row: probabilities at the temperature and their places, ascending. None
        if a value is NaN. Its time grows with top_k, like that of `largest`."""
        places, p = np.empty(top_k, np.intp), np.empty(top_k, np.float32)
        reach = math.log(min_p) if min_p > 0 else -math.inf
        first = ctypes.c_ssize_t.from_buffer(places)  # type: ignore[arg-type]
        count = self._filtered(_row(x), len(x), top_k, top_p, reach, temperature, first, _row(p))
        return p[:count], places[:count]

    def race(self, p: Floats, ids: Places | None, key: int) -> tuple[float, int, float, int]:
        """The two best of `noise.race`."""
        first = None if ids is None else ctypes.c_ssize_t.from_buffer(ids)  # type: ignore[arg-type]
        two = (_Scored * 2)()
        self._race(_row(p), first, len(p), key, two)
        best, rival = two
        return best.ratio, best.place, rival.ratio, rival.place


def _row(x: Floats) -> ctypes.c_float:
    """An array's memory as an argument: eight times as fast as its `ctypes` attribute. Raises if it has
    gaps."""
    assert x.dtype == np.float32
    return ctypes.c_float.from_buffer(x)  # type: ignore[arg-type]  # it is a buffer from Python 3.12 on


def load() -> Kernel | None:
    """The library that set-up (packaging/setup/kernel.py) made from this source, if any. Warns if the system
    refuses it: it may have been built on a different machine."""
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    library = Path(sys.prefix, "lib", f"draftscope-{digest}.so")
    if not library.is_file():
        return None
    try:
        with_avx2 = library.with_stem(f"{library.stem}-avx2")  # of a bundle; the first one checks
        has_it = with_avx2.is_file() and ctypes.PyDLL(str(library)).has_avx2()
        return Kernel(with_avx2 if has_it else library)
    except OSError as error:
        warnings.warn(f"Numpy processes the rows instead: {error}", RuntimeWarning, stacklevel=2)
        return None


compiled = load()
