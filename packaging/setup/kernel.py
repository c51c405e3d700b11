"""The engine's own passes over rows of a vocabulary, compiled for this machine in a second."""

from __future__ import annotations

import hashlib
import os
import shlex
from pathlib import Path

from console import CommandError, SetupError, run, say
from recipe import ROOT, find_compiler

SOURCE = ROOT / "app" / "engine" / "sampling" / "kernel.c"


def digest() -> str:
    """Of the source: the library is named so, because the engine takes none that was made from another."""
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]


def compile_into(folder: Path, cflags: str, march: str = "-march=native") -> None:
    """Make the library in place of an older one. Where that fails, say so: the engine has numpy for it.

    Without `march` the library runs on every processor of this kind.
    """
    for old in folder.glob("draftscope-*.so"):
        old.unlink()
    made = folder / f"draftscope-{digest()}.so"
    new = made.with_suffix(".new")
    try:
        command = [*shlex.split(find_compiler("CC", "cc", "gcc", "clang")), "-O3"]
        # Behind the user's flags: with fast mathematics there are no NaN and no roundings to count on.
        rest = [
            *shlex.split(cflags),
            "-fno-fast-math",
            "-shared",
            "-fPIC",
            str(SOURCE),
            "-o",
            str(new),
            "-lm",
        ]
        try:
            run([*command, *shlex.split(march), *rest])
        except CommandError:  # Clang has no such flag on some processors
            run([*command, *rest])
    except (SetupError, CommandError) as error:
        say(f"{SOURCE.name} is not compiled, numpy does its work: {error}")
        return
    os.replace(new, made)
