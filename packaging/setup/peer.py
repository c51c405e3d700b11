"""`make peer`: llama.cpp's own speculative loop, to measure ours against.

Prints the path of llama-speculative-simple. It is compiled from the locked source archive and
linked with the very libraries of the wheel that .venv has, so that both sides run the same
kernels, flags, threads and OpenMP, and a difference between them is one between the loops.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from console import CommandError, SetupError, answer, run, say
from native_build import kept_wheel, source_archive, unpack, wheels_folder
from recipe import Recipe, make_recipe
from steps import PYTHON, Notes, choose, guarded

NAME = "llama-speculative-simple"
SOURCE = "examples/speculative-simple/speculative-simple.cpp"
HEADERS = ("common", "include", "ggml/include", "vendor")
LIBRARIES = ("llama-common", "llama", "ggml", "ggml-base")


def main() -> int:
    return guarded(lambda: print(build()))


def build() -> Path:
    """Return the path of the peer for the wheel that .venv has; compile it where none is kept."""
    notes = Notes.load()
    kept = wheels_folder() / notes.wheel  # not by the recipe: a compiler may have been upgraded since
    folder = kept / "peer"
    if not (folder / NAME).is_file():
        recipe = make_recipe(choose("", notes))
        built = kept_wheel(kept)
        if not notes.wheel or built is None:
            raise SetupError("The wheel that .venv has is not kept any more.", "Call make clean, then again.")
        archive = source_archive(PYTHON)
        say("compiling llama.cpp's own loop")
        with tempfile.TemporaryDirectory(dir=wheels_folder(), prefix="peer-") as temporary:
            scratch = Path(temporary)
            made = scratch / "made"
            _take_libraries(built, made)
            _compile(recipe, unpack(archive, "(common|include|ggml/include|vendor|examples)/", scratch), made)
            if answer([str(made / NAME), "--version"]) is None:
                raise SetupError(f"{NAME} was compiled but does not start.")
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(made, folder)
    return folder / NAME


def _take_libraries(built: Path, made: Path) -> None:
    """The wheel installs llama.cpp as CMake does, besides the package's own copy."""
    with zipfile.ZipFile(built) as archive:
        wanted = [name for name in archive.namelist() if re.match(r"lib(64)?/lib[^/]+$", name)]
        if not any("llama-common" in name for name in wanted):
            raise SetupError("The wheel has no llama-common library.", "peer.py needs a new way.")
        for name in wanted:
            target = made / "lib" / Path(name).name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(name))


def _compile(recipe: Recipe, source: Path, made: Path) -> None:
    origin = "@loader_path" if sys.platform == "darwin" else "$ORIGIN"
    # Every library by name: the ones below them carry no path to look in.
    keep = [] if sys.platform == "darwin" else ["-Wl,--no-as-needed"]
    command = [
        *shlex.split(recipe.cxx), "-std=c++17", "-O3", "-DNDEBUG", *shlex.split(recipe.cxxflags),
        *(f"-I{source / folder}" for folder in HEADERS),
        str(source / SOURCE), "-o", str(made / NAME),
        f"-L{made / 'lib'}", *keep, *(f"-l{name}" for name in LIBRARIES),
        f"-Wl,-rpath,{origin}/lib", "-pthread",
    ]  # fmt: skip
    try:
        run(command)
    except CommandError as error:
        telling = [line for line in error.output.splitlines() if "error" in line]
        raise SetupError(f"{NAME} did not compile: {telling[0] if telling else '?'}") from None


if __name__ == "__main__":
    sys.exit(main())
