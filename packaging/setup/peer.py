"""`make peer`: builds llama.cpp's own speculative loop and llama-server, to compare ours with them.

Prints the path of each. They are compiled from the locked source archive, and linked with the libraries of
the wheel in .venv. So both sides run the same kernels, flags, threads and OpenMP, and any difference comes
from the loops. The code that llama.cpp's programs share is not in the wheel; it is compiled once for both.
llama-server takes ten more minutes of one core. Most of that is code for images and sound, without which it
does not link; it is not optimised here.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from console import CommandError, SetupError, answer, run, say
from native_build import kept_wheel, source_archive, unpack, wheels_folder
from recipe import Recipe, make_recipe
from steps import PYTHON, Notes, choose, guarded

_BETWEEN = 15  # seconds between two words on how far a compilation is
LOOP, SERVER = "llama-speculative-simple", "llama-server"
LOOP_SOURCE = "examples/speculative-simple/speculative-simple.cpp"
Levels = Sequence[tuple[str, str]]  # how far sources are optimised, and their pattern
COMMON_SOURCES = (
    ("-O3", "common/*.cpp"),
    ("-O3", "common/parsers/*.cpp"),
    ("-O3", "common/jinja/*.cpp"),
    ("-O1", "vendor/cpp-httplib/*.cpp"),
)
SERVER_SOURCES = (
    ("-O1", "vendor/hash/hash.cpp"),
    ("-O1", "vendor/hash/sha256/*.c"),  # the only one of its hashes that is used
    ("-O1", "tools/server/*.cpp"),
    ("-O0", "tools/mtmd/*.cpp"),
    ("-O0", "tools/mtmd/models/*.cpp"),
)
PROGRAMS_OF_THEIR_OWN = re.compile(r"mtmd-cli|deprecation")
HEADERS = (
    "common", "include", "ggml/include", "vendor", "vendor/cpp-httplib", "vendor/hash", "tools/mtmd",
    "tools/server", "src", ".",
)  # fmt: skip
UNPACKED = "(common|include|ggml/include|vendor|src|examples|tools/server|tools/mtmd)/"
LIBRARIES = ("llama", "ggml", "ggml-base")
# Its page for the browser is made by another tool chain, and not needed here.
NO_PAGE = {
    "ui.h": """\
#pragma once
#include <array>
#include <cstddef>
#include <string>
struct llama_ui_asset {
    std::string name;
    const unsigned char * data;
    std::size_t size;
    std::string etag, type;
};
const llama_ui_asset * llama_ui_find_asset(const std::string & name);
bool llama_ui_use_gzip();
const std::array<llama_ui_asset, 0> & llama_ui_get_assets();
""",
    "ui.cpp": """\
#include "ui.h"
const llama_ui_asset * llama_ui_find_asset(const std::string &) { return nullptr; }
bool llama_ui_use_gzip() { return false; }
const std::array<llama_ui_asset, 0> & llama_ui_get_assets() {
    static const std::array<llama_ui_asset, 0> none{};
    return none;
}
""",
}


def main(names: Sequence[str]) -> int:
    if unknown := [name for name in names if name not in (LOOP, SERVER)]:
        print(f"There is no {unknown[0]} here. Allowed: {LOOP}, {SERVER}.", file=sys.stderr)
        return 2

    def make() -> None:
        for name in names or (LOOP, SERVER):
            print(build(name), flush=True)

    return guarded(make)


def build(name: str) -> Path:
    """Return the path of a program for the wheel in .venv. If none is kept, it is compiled."""
    notes = Notes.load()
    kept = wheels_folder() / notes.wheel  # not by the recipe: a compiler may have been upgraded since
    folder = kept / "peer"
    if not (folder / name).is_file():
        recipe = make_recipe(choose("", notes))
        built = kept_wheel(kept)
        if not notes.wheel or built is None:
            raise SetupError(
                "The wheel that was installed in .venv is gone.", "Run make clean, then repeat the command."
            )
        archive = source_archive(PYTHON)
        say(f"compiling {name}" + (", which takes ten minutes or more" if name == SERVER else ""))
        with tempfile.TemporaryDirectory(dir=wheels_folder(), prefix="peer-") as temporary:
            scratch = Path(temporary)
            made = scratch / "made"
            _take_libraries(built, made)
            source = unpack(archive, UNPACKED, scratch)
            folder.mkdir(exist_ok=True)
            if not (folder / "common").is_dir():
                template = (source / "common" / "build-info.cpp.in").read_text(encoding="utf-8")
                filled = {"build-info.cpp": re.sub(r"@\w+@", "0", template)}
                common = _objects(recipe, source, COMMON_SOURCES, filled, scratch / "common")
                os.replace(common, folder / "common")
            own = [source / LOOP_SOURCE]
            if name == SERVER:
                own = [*_objects(recipe, source, SERVER_SOURCES, NO_PAGE, scratch / "server").glob("*.o")]
            inputs = [str(file) for file in (*(folder / "common").glob("*.o"), *own)]
            _link(recipe, source, made / name, inputs)
            if answer([str(made / name), "--version"]) is None:
                raise SetupError(f"{name} was compiled but does not start.")
            if not (folder / "lib").is_dir():
                os.replace(made / "lib", folder / "lib")
            os.replace(made / name, folder / name)
    return folder / name


def _take_libraries(built: Path, made: Path) -> None:
    """The folder of llama.cpp that the wheel installs as CMake does, besides the package's own copy."""
    with zipfile.ZipFile(built) as archive:
        wanted = [name for name in archive.namelist() if re.match(r"lib(64)?/lib[^/]+$", name)]
        if not wanted:
            raise SetupError("The wheel has no libraries for other programs.", "Adapt peer.py.")
        for name in wanted:
            target = made / "lib" / Path(name).name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(name))


def _objects(
    recipe: Recipe, source: Path, wanted: Levels, made_here: Mapping[str, str], folder: Path
) -> Path:
    """Compile source files, and sources given as texts, into object files; returns their folder."""
    folder.mkdir()
    for name, text in made_here.items():
        (folder / name).write_text(text, encoding="utf-8")
    here = [("-O0", folder / name) for name in made_here if name.endswith(".cpp")]
    jobs = [*here, *_sources(source, wanted)]

    def compile_one(number: int) -> None:
        level, file = jobs[number]
        words = [level, "-w", f"-I{folder}", "-c", str(file), "-o", str(folder / f"{number}.o")]
        _compile(recipe, source, words, c=file.suffix == ".c")

    said = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            for done, _ in enumerate(pool.map(compile_one, range(len(jobs))), start=1):
                if time.monotonic() - said >= _BETWEEN or done == len(jobs):
                    said = time.monotonic()
                    say(f"{done} of {len(jobs)} files are compiled")
        except SetupError:
            pool.shutdown(cancel_futures=True)
            raise
    return folder


def _sources(source: Path, wanted: Levels) -> Iterator[tuple[str, Path]]:
    for level, pattern in wanted:
        files = sorted(file for file in source.glob(pattern) if not PROGRAMS_OF_THEIR_OWN.search(file.name))
        if not files:
            raise SetupError(f"llama.cpp's source has no {pattern}.", "Adapt peer.py.")
        yield from ((level, file) for file in files)


def _link(recipe: Recipe, source: Path, program: Path, inputs: Sequence[str]) -> None:
    origin = "@loader_path" if sys.platform == "darwin" else "$ORIGIN"
    # Every library by name: the ones below them carry no path to look in.
    keep = [] if sys.platform == "darwin" else ["-Wl,--no-as-needed"]
    libraries = [f"-L{program.parent / 'lib'}", *keep, *(f"-l{name}" for name in LIBRARIES)]
    words = ["-O3", *inputs, "-o", str(program), *libraries, f"-Wl,-rpath,{origin}/lib"]
    _compile(recipe, source, words)


def _compile(recipe: Recipe, source: Path, words: Sequence[str], *, c: bool = False) -> None:
    compiler = [*shlex.split(recipe.cc), *shlex.split(recipe.cflags)]
    if not c:
        compiler = [*shlex.split(recipe.cxx), "-std=c++17", *shlex.split(recipe.cxxflags)]
    headers = [f"-I{source / folder}" for folder in HEADERS]
    try:
        run([*compiler, "-DNDEBUG", *headers, *words, "-pthread"])
    except CommandError as error:
        telling = [line for line in error.output.splitlines() if "error" in line or "undefined" in line]
        raise SetupError(f"llama.cpp did not compile: {telling[0] if telling else '?'}") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
