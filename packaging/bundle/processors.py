"""ggml with one library for each generation of processors; it loads the best one at run time.

Only ggml is compiled here, because llama.cpp's own library has no code for particular processors. The build
folder is kept, and an interrupted build continues.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from console import Progress, SetupError, run, say
from native_build import build_tools, source_archive, unpack, wheels_folder
from recipe import find_compiler, package_lock

FLAGS = (
    "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON", "-DGGML_NATIVE=OFF", "-DGGML_BACKEND_DL=ON",
    "-DGGML_CPU_ALL_VARIANTS=ON", "-DGGML_RPC=ON", "-DGGML_BUILD_TESTS=OFF", "-DGGML_BUILD_EXAMPLES=OFF",
    "-DCMAKE_INSTALL_RPATH=$ORIGIN", "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON",
)  # fmt: skip

# ggml alone, as llama.cpp includes it: by itself it would also make files for pkg-config.
_PROJECT = """\
cmake_minimum_required(VERSION 3.21)
project(processors C CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_subdirectory(ggml)
"""

# GCC 12 compiles ggml's AMX kernels into code that faults. The variant with AMX has nothing else that zen4's
# lacks, so those processors take that one.
_WITH_AMX = re.compile(r"^\s*ggml_add_cpu_backend_variant\(sapphirerapids .*\n", re.MULTILINE)


def replace_ggml(libraries: Path) -> None:
    """Replace ggml for this machine by ggml for every processor, among llama_cpp's libraries."""
    built = build_ggml()
    for old in libraries.glob("libggml*"):
        old.unlink()
    for library in built.glob("libggml*.so*"):
        shutil.copyfile(library, libraries / library.name, follow_symlinks=False)


def build_ggml() -> Path:
    """Compile what is not compiled yet; returns the libraries' folder. It takes a quarter of an hour on one
    core."""
    compilers = find_compiler("CC", "cc", "gcc", "clang"), find_compiler("CXX", "c++", "g++", "clang++")
    made_from = repr((package_lock(), FLAGS, _PROJECT, _WITH_AMX.pattern, compilers))
    folder = wheels_folder() / f"ggml-{hashlib.sha256(made_from.encode()).hexdigest()[:16]}"
    source, build = folder / "source", folder / "build"
    if not source.is_dir():
        _unpack_source(folder, source)
    with build_tools(
        Path(sys.executable), folder
    ) as env:  # always in the same place: CMake keeps Ninja's path
        cc, cxx = compilers
        compiler = [f"-DCMAKE_C_COMPILER={cc}", f"-DCMAKE_CXX_COMPILER={cxx}"]
        run(["cmake", "-G", "Ninja", "-S", str(source), "-B", str(build), *FLAGS, *compiler], env=env)
        say("compiling ggml for every processor")
        command = ["cmake", "--build", str(build), "--parallel", str(os.cpu_count() or 1)]
        run(command, env=env, log=folder / "build.log", on_line=Progress("compiling ggml"))
    return build / "bin"


def _unpack_source(folder: Path, source: Path) -> None:
    archive = source_archive(Path(sys.executable))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        made = unpack(archive, "ggml/", Path(temporary))
        (made / "CMakeLists.txt").write_text(_PROJECT, encoding="utf-8")
        recipe = made / "ggml" / "src" / "CMakeLists.txt"
        text, found = _WITH_AMX.subn("", recipe.read_text(encoding="utf-8"))
        if found != 1:
            raise SetupError(
                "ggml's list of processors changed.", "processors.py needs a new way to leave out AMX."
            )
        recipe.write_text(text, encoding="utf-8")
        os.rename(made, source)
