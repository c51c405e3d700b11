"""The engine's own passes over rows of a vocabulary, compiled for this machine in a second."""

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
    """Of the source: the library is named so, because the engine takes none that was made from another."""
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]


def compile_into(folder: Path, cflags: str) -> None:
    """Make the library for this machine, in place of an older one. Where that fails, say so: the engine has
    numpy for it."""
    with _replaced(folder) as name:
        try:
            _compile(folder / f"{name}.so", [*shlex.split(cflags), "-march=native"])
        except CommandError:  # Clang has no such flag on some processors
            _compile(folder / f"{name}.so", shlex.split(cflags))


def compile_for_all(folder: Path) -> None:
    """Make the library for every processor of this kind and, where some of them have AVX2, a second one for
    those: the engine takes the better one that runs. Where that fails, say so."""
    with _replaced(folder) as name:
        _compile(folder / f"{name}.so", [])
        if platform.machine() in ("x86_64", "AMD64"):
            _compile(folder / f"{name}-avx2.so", ["-mavx2", "-mfma"])


@contextmanager
def _replaced(folder: Path) -> Iterator[str]:
    """The new library's name, the older ones removed."""
    for old in folder.glob("draftscope-*.so"):
        old.unlink()
    try:
        yield f"draftscope-{digest()}"
    except (SetupError, CommandError) as error:
        say(f"{SOURCE.name} is not compiled, numpy does its work: {error}")


def _compile(made: Path, flags: list[str]) -> None:
    new = made.with_suffix(".new")
    # With fast mathematics there are no NaN and no roundings to count on. `-fno-fast-math` behind these flags
    # is not enough: older GCCs still link code that rounds small numbers to 0 in the process that loads it.
    flags = [flag for flag in flags if flag not in _FAST]
    rest = ["-fno-fast-math", "-shared", "-fPIC", str(SOURCE), "-o", str(new), "-lm"]
    run([*shlex.split(find_compiler("CC", "cc", "gcc", "clang")), "-O3", *flags, *rest])
    os.replace(new, made)
