"""Set-up, step by step: .venv, locked libraries, the app, Qt's system libraries, llama.cpp, own C code.

Every finished step leaves a note in .venv of what it was made from.

A step runs only if its note differs. So a second call only reads a few files, and an interrupted call
continues where it stopped. The last GPU= is one of the notes: a plain `make run` keeps it, and GPU=none
returns to the CPU.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import kernel
import real_model
from console import CommandError, SetupError, answer, disk_error, disk_full, not_writable, run, say
from recipe import (
    LOCKS,
    RECIPE,
    ROOT,
    Choice,
    Recipe,
    check_gpu,
    default_gpu,
    machine,
    make_recipe,
    package_lock,
)

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
NOTES = VENV / "draftscope-setup.json"
_VENV_SIZE = 800_000_000  # bytes, about


@dataclass
class Notes:
    """What .venv was made from. Empty strings: not made yet."""

    venv: str = ""
    app: str = ""
    dev: str = ""
    project: str = ""
    qt: str = ""  # "offscreen" or "window"
    native: str = ""
    wheel: str = ""  # key of the installed wheel
    kernel: str = ""
    real_missed: float = 0.0  # when SmolLM2 could not be fetched, seconds since 1970; 0 if it could
    models: str = ""  # folder of llama.cpp's vocabularies and chat templates: for tests, which read it here
    choice: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def load() -> Notes:
        try:
            stored: dict[str, Any] = json.loads(NOTES.read_text(encoding="utf-8"))
            known = {item.name for item in fields(Notes)}
            return Notes(**{name: value for name, value in stored.items() if name in known})
        except (OSError, ValueError, TypeError, AttributeError):
            return Notes()

    def save(self) -> None:
        new = NOTES.with_suffix(".new")
        new.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        os.replace(new, NOTES)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="bootstrap.py", description="Set Draftscope up in .venv.")
    parser.add_argument("stage", choices=("app", "dev"), help="dev adds what tests and lint need")
    parser.add_argument("--gpu", default="", help="none, cuda, vulkan, metal or hip")
    options = parser.parse_args(arguments)
    return guarded(lambda: set_up(options.stage, options.gpu))


def guarded(action: Callable[[], None]) -> int:
    """Run all steps. Errors that the user can correct are shown in two lines, others with their output."""
    try:
        action()
    except SetupError as error:
        print(f"set-up: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"        {error.hint}", file=sys.stderr)
        return 1
    except CommandError as error:
        lines = error.output.strip().splitlines()[-15:]
        print("\n".join(["", *lines, ""]), file=sys.stderr)
        print(f"set-up: this failed: {' '.join(error.command)}", file=sys.stderr)
        return 1
    except OSError as error:
        known = disk_error(error)
        if known is None:
            raise
        print(f"set-up: {known.message}\n        {known.hint}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nset-up: stopped; the next call continues from here", file=sys.stderr)
        return 130
    return 0


def set_up(stage: str, gpu: str) -> None:
    """Bring .venv to the state that `stage` needs ("app" or "dev"). Returns at once if nothing is to do."""
    notes = Notes.load()
    if _is_ready(stage, gpu, notes):
        return
    for folder in (ROOT, VENV):
        if folder.exists() and not os.access(folder, os.W_OK):
            raise not_writable(str(folder))
    with _alone():
        notes = Notes.load()
        if _is_ready(stage, gpu, notes):
            return  # another call did it while this one waited
        notes = _virtual_environment(notes)
        choice = choose(gpu, notes)
        # What this asks for may be missing: better said now than after a long download.
        recipe = make_recipe(choice) if notes.native != _native_note(choice) else None
        _libraries(stage, notes)
        _project(notes)
        _qt(stage, notes)
        if recipe is not None:
            _native(choice, recipe, notes)
        _kernel(choice, notes)
        _real(notes)
        if stage == "dev":
            _models(notes)
        say("ready")


def choose(gpu: str, notes: Notes) -> Choice:
    """This call's choices for the build; without any, those of the last call.

    With GPU=, the last choices are dropped: the flags in the environment count, even if they are empty.
    """
    last = Choice(**notes.choice) if notes.choice else Choice(gpu=default_gpu())
    said = {
        "cmake_args": os.environ.get("CMAKE_ARGS", "").strip(),
        "cflags": os.environ.get("CFLAGS", "").strip(),
        "cxxflags": os.environ.get("CXXFLAGS", "").strip(),
    }
    if not gpu and not any(said.values()):
        return last
    return Choice(gpu=check_gpu(gpu or last.gpu), **said)


def _is_ready(stage: str, gpu: str, notes: Notes) -> bool:
    choice = choose(gpu, notes)
    return (
        PYTHON.exists()
        and notes.venv == _venv_note()
        and getattr(notes, stage) == _lock_note(stage)
        and notes.project == _project_note()
        and notes.qt in _qt_enough(stage)
        and notes.native == _native_note(choice)
        and notes.kernel == _kernel_note(choice)
        and real_model.is_settled(VENV, notes.real_missed)
        and (stage == "app" or os.path.isdir(notes.models))
    )


# -- the steps ------------------------------------------------------------------------------------


def _virtual_environment(notes: Notes) -> Notes:
    """Make .venv with this Python in this folder (its scripts contain absolute paths); returns its notes."""
    if notes.venv == _venv_note() and PYTHON.exists():
        return notes
    # A .venv without notes is somebody's own: it is good enough where it has this Python.
    version = answer([str(PYTHON), "-c", "import sys, pip; print(*sys.version_info[:2])"])
    moved = bool(notes.venv) and notes.venv != _venv_note()
    if version != "{} {}".format(*sys.version_info[:2]) or moved:
        if VENV.is_symlink() or VENV.is_file():
            raise SetupError(".venv is a link or a file.", "Remove it, or make it a real folder.")
        _require_ensurepip()
        if VENV.exists():
            say("removing the old .venv: it is broken, made by a different Python, or moved")
        elif shutil.disk_usage(ROOT).free < _VENV_SIZE:
            raise disk_full()  # which venv keeps to itself
        say(f"making .venv on Python {sys.version.split()[0]}")
        run([sys.executable, "-m", "venv", "--clear", str(VENV)])  # empties it: it may be a mounted folder
        notes = Notes(choice=notes.choice)
    notes.venv = _venv_note()
    notes.save()
    return notes


def _require_ensurepip() -> None:
    """Check that venv and ensurepip are there; Debian has them in separate packages."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        package = "python{}.{}-venv".format(*sys.version_info[:2])
        from qt_libraries import apt_allowed, apt_install

        if not apt_allowed():
            raise SetupError(
                "This Python cannot make virtual environments.",
                f"On Debian and Ubuntu: sudo apt-get install {package}",
            ) from None
        apt_install([package])


def _libraries(stage: str, notes: Notes) -> None:
    if getattr(notes, stage) == _lock_note(stage):
        return
    from native_build import pip_environment

    say("fetching the libraries" if not notes.app else "bringing the libraries up to date")
    command = [
        str(PYTHON), "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps",
        "--only-binary", ":all:", "-r", str(LOCKS / f"{stage}.txt"),
    ]  # fmt: skip
    try:
        run(command, env=pip_environment())
    except CommandError as error:
        lacking = re.search(r"No matching distribution found for (\S+)", error.output)
        if lacking is None:
            raise
        raise SetupError(
            f"{lacking[1]} is not made for this system and Python {sys.version.split()[0]}.",
            "Draftscope needs macOS 13, or Linux with glibc 2.34 (2.39 on ARM), or later, and"
            " Python 3.11 to 3.14.",
        ) from None
    notes.app = _lock_note("app")  # dev.txt holds all of app.txt
    notes.dev = _lock_note("dev") if stage == "dev" else ""
    notes.save()


def _project(notes: Notes) -> None:
    if notes.project == _project_note():
        return
    from native_build import pip_environment

    run(
        [
            str(PYTHON), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
            "--no-build-isolation", "--editable", str(ROOT),
        ],
        env=pip_environment(),
    )  # fmt: skip
    notes.project = _project_note()
    notes.save()


def _qt(stage: str, notes: Notes) -> None:
    if notes.qt in _qt_enough(stage):
        return
    import qt_libraries

    notes.qt = qt_libraries.ensure(PYTHON, window="offscreen" not in _qt_enough(stage))
    notes.save()


def _native(choice: Choice, recipe: Recipe, notes: Notes) -> None:
    import native_build

    built = native_build.wheel(recipe, PYTHON)
    if notes.wheel != recipe.key:
        notes.wheel = notes.native = notes.models = ""
        notes.save()  # an install that is cut off must not look finished
        run(
            [
                str(PYTHON), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
                "--force-reinstall", str(built),
            ],
            env=native_build.pip_environment(),
        )  # fmt: skip
    try:
        run([str(PYTHON), "-c", "import llama_cpp"])
    except CommandError as error:
        last = (error.output.strip().splitlines() or ["no message"])[-1]
        raise SetupError(
            f"llama.cpp was built ({recipe.gpu}), but does not load: {last}",
            "Install what is missing or add its folder to LD_LIBRARY_PATH; or run make with GPU=none.",
        ) from None
    notes.wheel = recipe.key
    notes.native = _native_note(choice)
    notes.choice = asdict(choice)
    notes.save()


def _kernel(choice: Choice, notes: Notes) -> None:
    if notes.kernel != _kernel_note(choice):
        kernel.compile_into(VENV / "lib", choice.cflags)
        notes.kernel = _kernel_note(choice)
        notes.save()


def _real(notes: Notes) -> None:
    if not real_model.is_settled(VENV, notes.real_missed):
        notes.real_missed = real_model.bring(PYTHON, VENV)
        notes.save()


def _models(notes: Notes) -> None:
    if os.path.isdir(notes.models):
        return
    import native_build

    notes.models = str(native_build.models(PYTHON))
    notes.save()


# -- what a step is made from ---------------------------------------------------------------------


def _venv_note() -> str:
    return "Python {}.{} in {}".format(*sys.version_info[:2], ROOT)


def _lock_note(stage: str) -> str:
    return hashlib.sha256((LOCKS / f"{stage}.txt").read_bytes()).hexdigest()[:16]


def _project_note() -> str:
    """The parts of pyproject.toml that an installation is made from, without the tools' settings."""
    import tomllib

    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    made_from = [table.get("build-system"), table.get("project"), table["tool"].get("setuptools")]
    return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:16]


def _native_note(choice: Choice) -> str:
    """Everything that affects the build except the compiler, which is looked at only before building.

    It includes the processor, because different machines may share a home folder.
    """
    made_from = [RECIPE, package_lock(), asdict(choice), machine()]
    return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:16]


def _kernel_note(choice: Choice) -> str:
    """Also done without a compiler: numpy then does the work until something of this changes."""
    made_from = [kernel.digest(), choice.cflags, machine()]
    return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:16]


def _qt_enough(stage: str) -> tuple[str, ...]:
    """The findings that are good enough: tests need no screen, and Wayland needs no X11 libraries."""
    if stage == "dev" or os.environ.get("WAYLAND_DISPLAY"):
        return ("offscreen", "window")
    return ("window",)


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other call writes to the same .venv, and lock it."""
    import fcntl  # not on Windows, where the Makefile does not go either

    handle = os.open(ROOT, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for a different set-up in this folder")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
