"""Plug-ins: the names for writing them, and how they are found.

A plug-in is a Python file with one or more of

- STRATEGY, a `StrategyKind`: its name, its parameter dataclass, its summary, and a function that makes its
  drafter from (parameters, resources);
- LENGTH, a class derived from `LengthRule`, a frozen dataclass;
- RULE, a class derived from `Rule`.

An installed package names its plug-ins as entry points in the group `draftscope.drafters`. Grammar, form,
help, Inspector and statistics are made from them. resources/plugins has examples.

A file is tried in a separate process before the window reads it. A file that hangs or crashes must not take
down the window, because only there the user can remove it.
"""

from __future__ import annotations

import builtins
import contextlib
import glob
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from multiprocessing.connection import Connection
from types import ModuleType
from typing import TYPE_CHECKING, Any

from app.base.files import open_file, reason
from app.base.processes import Child, exit_words
from app.engine.drafters.base import Copies, Drafter, Proposal, Resources, RunContext, StrategyKind
from app.engine.drafters.foreign import Stamp, foreign_kinds, register, source_name, unregister
from app.engine.drafters.guarded import error_words
from app.engine.errors import DrafterError, SettingError, UserError
from app.engine.lengths.base import Attempt, DraftLength, LengthRule, Outset, RoundCost, StrategyLimits
from app.engine.params import FileUse, param
from app.engine.rules.base import Drafted, Judgement, Outcome, Rule, TokenTest
from app.engine.rules.checks import Check, Judged, Own
from app.engine.rules.formula import Named, Sum, compared, equal_sum, written

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


__all__ = [
    "Attempt", "Check", "Copies", "DraftLength", "Drafted", "Drafter", "FileUse", "Judged", "Judgement",
    "LengthRule", "Named", "Outcome", "Outset", "Own", "Proposal", "Resources", "RoundCost", "Rule",
    "RunContext", "SettingError", "StrategyKind", "StrategyLimits", "Sum", "TokenTest", "UserError",
    "compared", "equal_sum", "param", "register", "unregister", "use_drafters", "written",
]  # fmt: skip

GROUP = "draftscope.drafters"
NAMES = ("STRATEGY", "LENGTH", "RULE")

_OWN_NAME = __name__.partition(".")[0]
_PACKAGES = ("app", "draftscope")  # of this package: in the source tree, and where it was installed
LARGEST = 1_000_000  # bytes: a larger file was chosen by mistake
_FORM = "It must define STRATEGY = StrategyKind(name, params, summary, make=YourDrafter), or LENGTH or RULE."
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
    known = {kind.source for kind in foreign_kinds()}
    for kind in foreign_kinds():  # a file may have brought several
        if kind.stamp is not None and (kind.source not in paths or kind.stamp != file_stamp(kind.source)):
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
                for thing in run_file(path):
                    register(thing, path, stamp)
        except DrafterError as error:
            problems[file] = error
            for kind in foreign_kinds():  # all of a file, or nothing
                if kind.source == path:
                    unregister(kind.name)
    return problems


@cache
def installed_points() -> tuple[EntryPoint, ...]:
    """The entry points of packages installed before this process began."""
    if not any(_names_group(file) for folder in sys.path for file in _entry_point_files(folder)):
        return ()
    from importlib.metadata import entry_points  # brings a parser of e-mails: 20 ms of every start

    return tuple(entry_points(group=GROUP))


def _entry_point_files(folder: str) -> Iterator[str]:
    """The entry point files of the packages in a folder of sys.path."""
    for kind in ("dist-info", "egg-info"):
        yield from glob.iglob(os.path.join(glob.escape(folder or os.curdir), f"*.{kind}", "entry_points.txt"))


def _names_group(file: str) -> bool:
    try:
        with open_file(file) as text:
            return GROUP.encode() in text.read()
    except OSError:
        return True  # importlib.metadata shall say


def _loaded(point: EntryPoint, source: str) -> Any:
    try:
        return point.load()  # `register` looks at what it is
    except (Exception, SystemExit) as error:  # foreign code
        raise DrafterError(f"{source} cannot be used: {error_words(error)}.") from error


def file_stamp(path: str) -> Stamp | None:
    """A mark that differs between versions of a file; None if there is no file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


def run_file(path: str) -> list[Any]:
    """Run the file and return its plug-ins, which `register` checks. Raises DrafterError."""
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
    found = [module.__dict__[key] for key in NAMES if key in module.__dict__]
    if not found:
        raise DrafterError(f"{name} cannot be used: it has no STRATEGY.", _FORM)
    return found


def _import(name: str, *context: Any, **named: Any) -> ModuleType:
    """`import` for a drafter's file, which may use either name of this package."""
    top, dot, rest = name.partition(".")
    ours = top in _PACKAGES and f"{rest}.".startswith("engine.")
    return builtins.__import__(f"{_OWN_NAME}{dot}{rest}" if ours else name, *context, **named)


def _source(path: str) -> bytes:
    name = source_name(path)
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            raise DrafterError(f"{name} cannot be used: it is not a Python file.", "Choose a Python file.")
        with open_file(path) as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise DrafterError(
            f"{name} cannot be read: {reason(error)}.", "Choose it again, or remove it."
        ) from error


TIME_LIMIT = 10.0  # seconds for a file; it may import a large package from a slow disk
_LONGEST = 20  # bytes of a message
_START_LIMIT = 60.0  # seconds until the process starts reading, which is not the files' fault
_REMEDY = "Fix it and reload, or remove it."


class TriedDrafters:
    """`use_drafters` for untrusted files."""

    def __init__(self, limit: float = TIME_LIMIT) -> None:
        self._limit = limit
        self._tried: dict[str, tuple[Stamp | None, DrafterError | None]] = {}  # None: harmless

    def use(self, files: Sequence[str]) -> Mapping[str, DrafterError]:
        """Register the drafters of installed packages and of exactly these files, except harmful ones.

        Returns the errors: file or entry point -> why it cannot be used. Each file is tried once, until it
        changes or until `forget`.
        """
        stamps = {file: file_stamp(file) for file in files}
        self._tried = {file: result for file, result in self._tried.items() if result[0] == stamps.get(file)}
        untried = [file for file in unread_files(files) if file not in self._tried]
        while untried:
            read, error = self._read(untried)
            done, untried = untried[: read + 1], untried[read + 1 :]
            self._tried |= {file: (stamps[file], error if file == done[-1] else None) for file in done}
        tried = {file: self._tried[file][1] for file in files if file in self._tried}
        problems = {file: error for file, error in tried.items() if error is not None}
        return {**problems, **use_drafters([file for file in files if file not in problems])}

    def forget(self) -> None:
        """Make the next `use` try every file again."""
        self._tried.clear()

    def _read(self, files: Sequence[str]) -> tuple[int, DrafterError | None]:
        """The index of the first harmful file, and its error; the last file's index if none is harmful."""
        child = Child("draftscope drafters", _read_all, tuple(files), fresh=True)
        at, limit = 0, _START_LIMIT
        try:
            while child.connection.poll(limit):
                # A number as text: nothing that a file writes into the pipe is executed here.
                at, limit = range(len(files) + 1)[int(child.connection.recv_bytes(_LONGEST))], self._limit
                if at == len(files):
                    return at - 1, None
            why = f"it was not read within {limit:.0f} s"
        except (EOFError, OSError):
            why = f"it ended the process that read it ({exit_words(child.end(_START_LIMIT))})"
        except (ValueError, IndexError):
            why = "it disturbed the process that read it"
        finally:
            child.close()
        return at, DrafterError(f"{source_name(files[at])} is not used: {why}.", _REMEDY)


def _read_all(connection: Connection, files: Sequence[str]) -> None:
    """In the child process: announce each file, then read it. Errors of a file are reported when it is
    used."""
    for at, file in enumerate(files):
        connection.send_bytes(str(at).encode())
        with contextlib.suppress(DrafterError):
            run_file(os.path.abspath(file))
    connection.send_bytes(str(len(files)).encode())
    os._exit(0)  # does not wait for threads that a file started
