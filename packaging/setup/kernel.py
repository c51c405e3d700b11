"""Compiles the engine's own C functions over rows of a vocabulary for this machine. It takes a second."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from console import CommandError, SetupError, run, say
from recipe import ROOT, find_compiler

_FAST = ("-Ofast", "-ffast-math", "-funsafe-math-optimizations")
SOURCE = ROOT / "app" / "engine" / "sampling" / "kernel.c"


def digest() -> str:
    """A digest of the source. It is in the library's name, because the engine uses no library of a different
    source."""
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]


def compile_into(folder: Path, cflags: str) -> None:
    """Make the library for this machine, and remove an older one. If that fails, say so: the engine then uses
    numpy."""
    with _replaced(folder) as name:
        try:
            _compile(folder / f"{name}.so", [*shlex.split(cflags), "-march=native"])
        except CommandError:  # Clang has no such flag on some processors
            _compile(folder / f"{name}.so", shlex.split(cflags))


def compile_for_all(folder: Path) -> None:
    """Make the library for every processor of this kind and, if some of them have AVX2, a second one for
    those. The engine uses the better one that runs. If that fails, say so."""
    with _replaced(folder) as name:
        _compile(folder / f"{name}.so", [])
        if platform.machine() in ("x86_64", "AMD64"):
            _compile(folder / f"{name}-avx2.so", ["-mavx2", "-mfma"])


@contextmanager
def _replaced(folder: Path) -> Iterator[str]:
    """The new library's name. Older libraries are removed."""
    for old in folder.glob("draftscope-*.so"):
        old.unlink()
    try:
        yield f"draftscope-{digest()}"
    except (SetupError, CommandError) as error:
        say(f"{SOURCE.name} could not be compiled, so numpy is used: {error}")


def _compile(made: Path, flags: list[str]) -> None:
    new = made.with_suffix(".new")
    # With fast mathematics there are no NaN and no roundings to count on. `-fno-fast-math` behind these flags
    # is not enough: older GCCs still link code that rounds small numbers to 0 in the process that loads it.
    flags = [flag for flag in flags if flag not in _FAST]
    rest = ["-fno-fast-math", "-shared", "-fPIC", str(SOURCE), "-o", str(new), "-lm"]
    run([*shlex.split(find_compiler("CC", "cc", "gcc", "clang")), "-O3", *flags, *rest])
    os.replace(new, made)
