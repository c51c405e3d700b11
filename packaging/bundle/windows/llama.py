"""llama.cpp's wheel for Windows, where set-up's own build (native_build.py) does not work."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

from console import run
from recipe import LOCKS, OUR_CHANGES, ROOT

DIST = ROOT / "dist"
FLAGS = (
    "-DGGML_NATIVE=OFF -DGGML_BACKEND_DL=ON -DGGML_CPU_ALL_VARIANTS=ON -DGGML_RPC=ON -DLLAVA_BUILD=OFF"
    " -DLLAMA_OPENSSL=OFF"
)
_BACKEND = re.compile(r"(?:bin|lib)/ggml-[^/]+\.dll")


def make_llama_wheel() -> Path:
    """Build it, with a backend for every processor, into dist/. MSVC compiles none with AMX."""
    with tempfile.TemporaryDirectory(dir=DIST, prefix=".bundle-") as temporary:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-binary", ":all:"]
        run(
            [*command, "--require-hashes", "--wheel-dir", temporary, "-r", str(LOCKS / "native.txt")],
            env={**os.environ, "CMAKE_ARGS": f"{OUR_CHANGES} {FLAGS}"},
        )
        (made,) = Path(temporary).glob("llama_cpp_python-*.whl")
        return made.replace(DIST / made.name)


def place_backends(site: Path) -> None:
    """Move the backends, which CMake installs beside the package, to llama_cpp's other libraries."""
    for library in site.glob("*/*.dll"):
        if _BACKEND.fullmatch(library.relative_to(site).as_posix()):
            library.replace(site / "llama_cpp" / "lib" / library.name)
