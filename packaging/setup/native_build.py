"""llama.cpp for this machine: one complete wheel per set of flags, kept in its own folder. pip's cache
ignores the flags with which a wheel was built.

So a GPU build may silently get the CPU wheel, or a good build a broken one. Here a wheel is stored under a
hash of everything that it was made from, and pip's cache is not used.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from console import CommandError, Progress, SetupError, run, say
from recipe import LOCKS, OUR_CHANGES, Recipe, package_lock


def wheels_folder() -> Path:
    """Return the folder of finished wheels and the source archive."""
    own = os.environ.get("DRAFTSCOPE_WHEELS")
    if own:
        return Path(own).expanduser().resolve()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(cache).expanduser() / "draftscope" / "wheels"
    except RuntimeError:
        raise SetupError(
            "This user has no home folder.", "Set HOME or DRAFTSCOPE_WHEELS to a folder."
        ) from None


def wheel(recipe: Recipe, python: Path) -> Path:
    """Return the wheel for a recipe. If none is kept, it is built, which takes minutes."""
    folder = wheels_folder() / recipe.key
    found = kept_wheel(folder)
    if found is not None:
        return found
    wheels_folder().mkdir(parents=True, exist_ok=True)
    with _only_one_builder(wheels_folder()):
        found = kept_wheel(folder)  # another checkout may have built it while this one waited
        return found if found is not None else _build(recipe, python, folder)


def source_archive(python: Path) -> Path:
    """Return the locked source archive of llama-cpp-python; download it if none is kept."""
    digest = package_lock().partition(" --hash=sha256:")[2]
    folder = wheels_folder() / "sources"
    target = folder / f"{_locked_name()}.tar.gz"
    if target.is_file() and sha256(target) in digest:
        return target
    say("fetching llama.cpp's source (77 MB)")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        with build_tools(python, Path(temporary)) as env:
            run(
                [
                    *_pip(python), "download", "--no-cache-dir", "--no-deps", "--require-hashes",
                    "--no-binary", "llama-cpp-python", "--no-build-isolation",
                    "--dest", temporary, "-r", str(LOCKS / "native.txt"),
                ],
                env=env,
            )  # fmt: skip
        os.replace(Path(temporary) / target.name, target)
    return target


def models(python: Path) -> Path:
    """Return llama.cpp's folder `models/` (vocabularies without weights, and chat templates). If it is not
    there, it is unpacked."""
    folder = wheels_folder() / "sources" / f"{_locked_name()}-models"
    if not folder.is_dir():
        archive = source_archive(python)
        say("unpacking llama.cpp's vocabularies and chat templates")
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            made = unpack(archive, "models/", Path(temporary)) / "models"
            try:
                os.rename(made, folder)
            except OSError:
                if not folder.is_dir():  # else another checkout was first
                    raise
    return folder


def unpack(archive: Path, wanted: str, folder: Path) -> Path:
    """Unpack files of llama.cpp whose path matches `wanted`; return llama.cpp's own folder.

    The lock has the archive's hash, so its paths are known to be harmless.
    """
    pattern = re.compile(rf"[^/]+/vendor/llama\.cpp/(?:{wanted})")
    with tarfile.open(archive) as tar:
        for member in tar:
            content = tar.extractfile(member) if pattern.match(member.name) else None
            if content is not None:  # a folder or a link has none
                target = folder / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())
    (source,) = folder.glob("*/vendor/llama.cpp")
    return source


def _locked_name() -> str:
    """Such as llama_cpp_python-0.3.36."""
    return package_lock().split()[0].replace("==", "-").replace("llama-cpp-python", "llama_cpp_python")


def _build(recipe: Recipe, python: Path, folder: Path) -> Path:
    for left in wheels_folder().glob("build-*"):
        shutil.rmtree(left, ignore_errors=True)  # of a build that was killed: this is the only one
    archive = source_archive(python)
    jobs = _jobs()
    say(f"building llama.cpp for this machine ({_backend(recipe)}, {jobs} at a time, once)")
    with tempfile.TemporaryDirectory(dir=wheels_folder(), prefix="build-") as temporary:
        scratch = Path(temporary)
        made = scratch / "made"
        made.mkdir()
        log = wheels_folder() / f"{recipe.key}.log"
        with build_tools(python, scratch) as env:
            env |= {
                "CC": recipe.cc,
                "CXX": recipe.cxx,
                "CFLAGS": recipe.cflags,
                "CXXFLAGS": recipe.cxxflags,
                "CMAKE_ARGS": f"{OUR_CHANGES} {recipe.cmake_args}",
                "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs),
                "CMAKE_GENERATOR": "Ninja",
            }
            command = [
                *_pip(python), "wheel", "--verbose", "--no-cache-dir", "--no-deps", "--no-index",
                "--no-build-isolation", "--wheel-dir", str(made), str(archive),
            ]  # fmt: skip
            try:
                run(command, env=env, log=log, on_line=Progress("compiling llama.cpp"))
            except CommandError as error:
                raise SetupError(
                    f"llama.cpp did not compile: {_first_error(error.output)}",
                    f"The whole log is {log}.",
                ) from None
        (built,) = made.glob("llama_cpp_python-*.whl")
        _check(built, recipe)
        note = json.dumps(asdict(recipe), indent=2) + "\n"
        (made / "recipe.json").write_text(note, encoding="utf-8")
        os.replace(log, made / "build.log")
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(made, folder)  # whole or not at all
    return folder / built.name


def _check(built: Path, recipe: Recipe) -> None:
    """Refuse a build that lacks its backend."""
    wanted = ["rpc"] if recipe.gpu == "none" else ["rpc", recipe.gpu]
    with zipfile.ZipFile(built) as archive:
        names = archive.namelist()
    for backend in wanted:
        if not any(re.search(rf"llama_cpp/lib/libggml-{backend}\.", name) for name in names):
            raise SetupError(
                f"The build of llama.cpp has no {backend} backend.",
                "Check CMAKE_ARGS in the environment, and unset it if in doubt.",
            )


@contextmanager
def build_tools(python: Path, scratch: Path) -> Iterator[dict[str, str]]:
    """Locked CMake, Ninja and build backend in a throwaway folder; yields the environment."""
    tools = scratch / "tools"
    run(
        [
            *_pip(python), "install", "--quiet", "--require-hashes", "--only-binary", ":all:",
            "--no-deps", "--target", str(tools), "-r", str(LOCKS / "build.txt"),
        ],
        env=pip_environment(),
    )  # fmt: skip
    env = pip_environment()
    env["PYTHONPATH"] = str(tools)
    env["PATH"] = os.pathsep.join([str(tools / "bin"), env.get("PATH", os.defpath)])
    env["TMPDIR"] = str(scratch)  # /tmp is often small, and in memory
    try:
        yield env
    finally:
        shutil.rmtree(tools, ignore_errors=True)


def pip_environment() -> dict[str, str]:
    """The environment for pip, without variables that change where packages are installed or what builds
    them."""
    env = dict(os.environ)
    for name in ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PYTHONPATH", "PYTHONHOME"):
        env.pop(name, None)
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
        env.pop(name, None)  # this make's job server is not ninja's
    env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    env["PIP_NO_INPUT"] = "1"
    return env


def _pip(python: Path) -> list[str]:
    return [str(python), "-m", "pip"]


def kept_wheel(folder: Path) -> Path | None:
    """The wheel in the folder of a recipe; None if it was not built or is gone."""
    return next(iter(folder.glob("llama_cpp_python-*.whl")), None)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _backend(recipe: Recipe) -> str:
    return "CPU" if recipe.gpu == "none" else recipe.gpu


def _jobs() -> int:
    """As many compilers as there are cores, and 2 GiB of memory for each."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**31
    return max(1, min(cores or 1, memory))


def _first_error(output: str) -> str:
    """The lines of a long log that say why a build failed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for index, line in enumerate(lines):
        if "CMake Error" in line:
            return " ".join(lines[index : index + 4])[:300]  # its reason comes below it
        if re.search(r"\berror\b[: ]", line):
            return line[:300]
    return lines[-1][:300] if lines else "no output"


@contextmanager
def _only_one_builder(folder: Path) -> Iterator[None]:
    """Wait until no other checkout compiles the same wheel, and lock it."""
    import fcntl  # not on Windows, where the Makefile does not go either

    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for a build of a different set-up")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
