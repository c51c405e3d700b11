"""llama.cpp's library, its log, and the few calls that the bindings lack."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

# libgomp reads this once, when it is loaded. Its threads spin while they wait; with the default count, a
# second busy process on the same cores slows every decode many times.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
# Otherwise an aborting llama.cpp first runs a debugger over the whole process, for seconds.
os.environ.setdefault("GGML_NO_BACKTRACE", "1")

import llama_cpp
from llama_cpp.llama_cpp import _lib as lib  # for what the bindings leave out

from app.engine.sampling.kernel import Batch

log = logging.getLogger("llama.cpp")
log.addHandler(logging.NullHandler())  # silent unless the program configures a log

_LEVELS = {1: logging.DEBUG, 2: logging.INFO, 3: logging.WARNING, 4: logging.ERROR}
_CONTINUES = 5


class _Log(threading.local):
    """Receives llama.cpp's log; a line may come in several calls. Each thread has its own lists, because two
    files may be loaded at once."""

    def __init__(self) -> None:
        self._level = logging.DEBUG
        self.warnings: list[list[str]] = []
        self.reports: list[list[str]] = []

    def take(self, level: int, text: bytes, _data: object) -> None:
        if level != _CONTINUES:
            self._level = _LEVELS.get(level, logging.DEBUG)
        line = text.decode("utf-8", errors="replace").rstrip("\n")
        if not line:
            return
        for lines in self.reports:
            lines.append(line)
        serious = self._level >= logging.WARNING
        if serious:
            for lines in self.warnings:
                lines.append(line)
        # llama.cpp's INFO fills a page per model: logged here as DEBUG.
        log.log(self._level if serious else logging.DEBUG, "%s", line)


# Set early, and kept referenced by the module: otherwise the log floods standard error.
_log = _Log()
_on_log = llama_cpp.llama_log_callback(_log.take)
llama_cpp.llama_log_set(_on_log, ctypes.c_void_p(0))


def raw_call(name: str, result: Any, *arguments: Any) -> Any:
    """A function that the bindings lack, with its ctypes."""
    function = getattr(lib, name)
    function.restype, function.argtypes = result, list(arguments)
    return function


def extension(name: str, signature: str, result: Any, *arguments: Any) -> Any:
    """A function outside llama.cpp's C interface, exported under a C++ name that GCC and Clang end with
    `signature`. Raises AttributeError if the library lacks it."""
    names = [name, f"_Z{len(name)}{name}{signature}"]
    if sys.platform == "win32":
        names += [exported for exported in _CPP_ON_WINDOWS if f"?{name}@@" in exported]
    known = next((each for each in names if hasattr(lib, each)), name)
    return raw_call(known, result, *arguments)


_CPP_ON_WINDOWS = (
    "?llama_set_embeddings_layer_inp@@YAXPEAUllama_context@@I_N@Z",
    "?llama_get_embeddings_layer_inp@@YAPEAMPEAUllama_context@@I@Z",
    "?llama_model_target_layer_ids@@YAPEBHPEBUllama_model@@@Z",
    "?llama_model_target_layer_ids_n@@YAIPEBUllama_model@@@Z",
)


def _load_backends() -> None:
    """Load the backends of a build with separate backend files (bundles): the best for this processor, from
    the library's folder. By default llama.cpp would look in the working folder."""
    if raw_call("ggml_backend_reg_count", ctypes.c_size_t)() == 0:
        folder = os.environ.get("LLAMA_CPP_LIB_PATH") or Path(llama_cpp.__file__).with_name("lib")
        raw_call("ggml_backend_load_all_from_path", None, ctypes.c_char_p)(os.fsencode(folder))


_load_backends()
llama_cpp.llama_backend_init()


def _openmp() -> Any:
    """libgomp, which a separate backend file may have loaded. None if passes do not use it, or if it is older
    than GCC 9 and cannot end helpers."""
    found = [lib]
    with contextlib.suppress(OSError, AttributeError):
        found.append(ctypes.CDLL("libgomp.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY))
    names = ("GOMP_parallel", "omp_pause_resource_all")
    return next((each for each in found if all(hasattr(each, name) for name in names)), None)


libgomp = _openmp()
_OMP_PAUSE_SOFT = 1


def end_helpers() -> None:
    """End the helper threads of the calling thread; its next pass starts new ones.

    libgomp counts the helpers of all threads. If there are more helpers than cores, they sleep between
    operations instead of spinning, and a pass takes up to 2.6 times as long. So a thread that hands its
    context on must end its helpers.
    """
    if libgomp is not None:
        libgomp.omp_pause_resource_all(_OMP_PAUSE_SOFT)


def address_of(name: str) -> int | None:
    """The address of one of llama.cpp's functions, for compiled code that calls it."""
    return ctypes.cast(getattr(lib, name), ctypes.c_void_p).value


def captured_log() -> AbstractContextManager[list[str]]:
    """Collect llama.cpp's warnings and errors on this thread within the block."""
    return _captured(_log.warnings)


def captured_report() -> AbstractContextManager[list[str]]:
    """Collect all of llama.cpp's log on this thread within the block."""
    return _captured(_log.reports)


@contextlib.contextmanager
def _captured(captures: list[list[str]]) -> Iterator[list[str]]:
    lines: list[str] = []
    captures.append(lines)
    try:
        yield lines
    finally:
        # By identity: two captures may hold equal lines.
        captures[:] = [capture for capture in captures if capture is not lines]


# llama_decode of a batch of plain addresses.
decode_batch = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, Batch)(("llama_decode", lib))
# llama_get_logits as a plain address: no ctypes pointer object for every call.
get_logits_address = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(("llama_get_logits", lib))


def on_abort(told: Callable[[str], object]) -> None:
    """Call `told` with the reason if a check of ggml aborts the process, or an uncaught C++ error says that
    memory ran out. Nothing is printed."""
    global _abort_callback, _end_callback  # noqa: PLW0603 - kept referenced, as the log's
    _abort_callback = _AbortCallback(lambda text: told((text or b"").decode("utf-8", errors="replace")))
    raw_call("ggml_set_abort_callback", ctypes.c_void_p, _AbortCallback)(_abort_callback)
    with contextlib.suppress(AttributeError):  # another C++ library than those of Linux and macOS
        set_handler = raw_call(
            "_ZSt13set_terminatePFvvE", ctypes.c_void_p, _EndCallback
        )  # std::set_terminate
        type_of_exception = raw_call("__cxa_current_exception_type", ctypes.POINTER(_TypeInfo))

        def ends() -> None:
            thrown = type_of_exception()
            if thrown and thrown.contents.name == b"St9bad_alloc":
                told("std::bad_alloc")
            elif before:
                _EndCallback(before)()

        _end_callback = _EndCallback(ends)
        before = set_handler(_end_callback)


class _TypeInfo(ctypes.Structure):
    """A std::type_info, as GCC and Clang lay it out."""

    _fields_ = (("table", ctypes.c_void_p), ("name", ctypes.c_char_p))


_AbortCallback = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
_EndCallback = ctypes.CFUNCTYPE(None)
_abort_callback: object = None
_end_callback: object = None


def read_metadata(handle: Any, key: str) -> str:
    """A metadata value of a llama_model as text; empty if the file has none."""
    room = 256
    while True:
        buffer = ctypes.create_string_buffer(room)
        n = llama_cpp.llama_model_meta_val_str(handle, key.encode(), buffer, room)
        if n < 0:
            return ""
        if n < room:
            return buffer.raw[:n].decode("utf-8", errors="replace")
        room = n + 1


def model_name(metadata: Callable[[str], str], path: Path) -> str:
    """A model's name for people: `general.name`, or the file's name without its quantisation. The latter is
    used if the former is missing, or only names a training run (a digest, or "... Mix1 Ep2")."""
    name = metadata("general.name").strip()
    if name and not _OF_A_RUN.search(name):
        return name
    return _QUANTISED.sub("", path.stem) or name or path.stem


_OF_A_RUN = re.compile(
    r"(?i)^[0-9a-f]{16,}$|^(model|hf|merged|output|snapshot)$"
    r"|\b(ep|epoch|steps?|checkpoint|ckpt)[-_ ]?\d+\b"
)
_QUANTISED = re.compile(r"(?i)[-._](UD-)?(I?Q\d\w*|TQ\d_\d|BF16|FP?16|FP?32|MXFP4\w*|NVFP4)$")


class AbortFlag:
    """A flag that stops a running decode from any thread, on the CPU backend.

    llama.cpp calls an abort callback before every graph node, some hundred times per pass. A Python callback
    would take the interpreter's lock each time. So the callback is the C library's `strlen`, and the flag is
    its string: empty is 0 (continue), one character is 1 (abort).
    """

    def __init__(self) -> None:
        self._text = ctypes.create_string_buffer(2)
        libc = ctypes.CDLL("msvcrt") if sys.platform == "win32" else ctypes.CDLL(None)
        self.callback = ctypes.cast(libc.strlen, llama_cpp.llama_cpp.ggml_abort_callback)
        self.data = ctypes.cast(self._text, ctypes.c_void_p)

    def set(self) -> None:
        self._text[0] = b"x"

    def clear(self) -> None:
        self._text[0] = b"\0"

    def is_set(self) -> bool:
        return self._text[0] != b"\0"


def system_info() -> str:
    """llama.cpp's own line on the processor features and backends of this build."""
    return str(llama_cpp.llama_print_system_info().decode())
