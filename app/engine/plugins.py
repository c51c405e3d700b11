"""Plug-in drafters: the names that a plug-in is written with, and how plug-ins are found.

A plug-in is a Python file with a `StrategyKind` called STRATEGY: its name, its parameter dataclass, its
summary, and a function that makes its drafter from (parameters, resources). An installed package names its
own as an entry point in the group `draftscope.drafters`. Grammar, form, help and statistics are made from it.
The two in resources/plugins are examples to read.
"""

from __future__ import annotations

import builtins
import glob
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from app.base.files import open_file
from app.engine.drafters.base import Drafter, Proposal, Resources, RunContext, StrategyKind
from app.engine.drafters.foreign import Stamp, foreign_kinds, register, source_name, unregister
from app.engine.drafters.guarded import error_words
from app.engine.errors import DrafterError, SettingError, UserError
from app.engine.params import FileUse, param

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "Drafter",
    "FileUse",
    "Proposal",
    "Resources",
    "RunContext",
    "SettingError",
    "StrategyKind",
    "UserError",
    "param",
    "register",
    "unregister",
    "use_drafters",
]

GROUP = "draftscope.drafters"
NAME = "STRATEGY"

_OWN_NAME = __name__.partition(".")[0]
_NAMES = ("app", "draftscope")  # of this package: in the source tree, and where it was installed
LARGEST = 1_000_000  # bytes: a larger file was chosen by mistake
_FORM = f"It must say {NAME} = StrategyKind(name, params, summary, make=YourDrafter)."
_ADVICE = "Fix it and try again."


def unread_files(files: Sequence[str]) -> list[str]:
    """The files that `use_drafters` would run: new, changed, and those with problems."""
    read = {kind.source: kind.stamp for kind in foreign_kinds() if kind.stamp is not None}
    stamps = {file: file_stamp(file) for file in files}
    return [file for file, stamp in stamps.items() if stamp and read.get(os.path.abspath(file)) != stamp]


def use_drafters(files: Sequence[str]) -> Mapping[str, DrafterError]:
    """Register the drafters of installed packages and of exactly these files.

    A file that changed since it was read is read again, and one that could not be used is tried again.
    Returns the errors: file or entry point -> why it cannot be used.
    """
    paths = {os.path.abspath(file): file for file in files}
    known = {kind.source: kind for kind in foreign_kinds()}
    for source, kind in known.items():
        if kind.stamp is not None and (source not in paths or kind.stamp != file_stamp(source)):
            unregister(kind.name)
    problems = {}
    for point in installed_points():
        source = f"Entry point {point.name}"
        try:
            if source not in known:
                register(_loaded(point, source), source)
        except DrafterError as error:
            problems[source] = error
    ready = {kind.source for kind in foreign_kinds()}
    for path, file in paths.items():
        try:
            if path not in ready:
                stamp = file_stamp(path)  # before reading: a later change is seen
                register(run_file(path), path, stamp)
        except DrafterError as error:
            problems[file] = error
    return problems


@cache
def installed_points() -> tuple[EntryPoint, ...]:
    """The entry points of the packages that were installed when this process began."""
    if not any(_names_group(file) for folder in sys.path for file in _entry_point_files(folder)):
        return ()
    from importlib.metadata import entry_points  # brings a parser of e-mails: 20 ms of every start

    return tuple(entry_points(group=GROUP))


def _entry_point_files(folder: str) -> Iterator[str]:
    """Those of the packages in a folder of sys.path."""
    for kind in ("dist-info", "egg-info"):
        yield from glob.iglob(os.path.join(glob.escape(folder or os.curdir), f"*.{kind}", "entry_points.txt"))


def _names_group(file: str) -> bool:
    try:
        with open_file(file) as text:
            return GROUP.encode() in text.read()
    except OSError:
        return True  # importlib.metadata shall say


def _loaded(point: EntryPoint, source: str) -> StrategyKind:
    try:
        return point.load()  # type: ignore[no-any-return] # `register` looks at what it is
    except (Exception, SystemExit) as error:  # foreign code
        raise DrafterError(f"{source} cannot be used: {error_words(error)}.") from error


def file_stamp(path: str) -> Stamp | None:
    """Distinguishes versions of a file; None if there is no file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


def run_file(path: str) -> StrategyKind:
    """Run the file and return its STRATEGY. Raises DrafterError."""
    name = source_name(path)
    module = ModuleType(f"draftscope_drafter_{os.path.basename(path).split('.')[0]}_{abs(hash(path)):x}")
    module.__file__ = path
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import}
    # Dataclasses look up their module by its name.
    sys.modules[module.__name__] = module
    try:
        # Not imported: an import would leave bytecode beside the file, and might reuse it after a quick
        # change.
        exec(compile(_source(path), path, "exec", dont_inherit=True), module.__dict__)
    except DrafterError:
        raise
    except (Exception, SystemExit) as error:  # foreign code
        del sys.modules[module.__name__]
        raise DrafterError(f"{name} cannot be used: {error_words(error)}.", _ADVICE) from error
    try:
        return module.__dict__[NAME]  # type: ignore[no-any-return] # `register` looks at what it is
    except KeyError:
        raise DrafterError(f"{name} cannot be used: it has no {NAME}.", _FORM) from None


def _import(name: str, *context: Any, **named: Any) -> ModuleType:
    """`import` in a drafter's file, which may call this package by either of its names."""
    top, dot, rest = name.partition(".")
    ours = top in _NAMES and f"{rest}.".startswith("engine.")
    return builtins.__import__(f"{_OWN_NAME}{dot}{rest}" if ours else name, *context, **named)


def _source(path: str) -> bytes:
    name = source_name(path)
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            raise DrafterError(f"{name} cannot be used: it is not a Python file.", "Choose another file.")
        with open_file(path) as file:
            return file.read()
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DrafterError(
            f"{name} cannot be read: {words[:1].lower()}{words[1:]}.", "Choose it again, or remove it."
        ) from error
