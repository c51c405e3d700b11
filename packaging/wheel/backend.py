"""The build backend that pyproject.toml names: setuptools, with the import name `draftscope` in wheels.

In the tree the package's folder is app/. Among installed packages that name could collide. So a wheel is made
from a copy in which the package is called draftscope and contains the resources. An editable install is
setuptools' own: it imports app/ from the tree.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    get_requires_for_build_editable,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
)

# No sdist: the tree itself is what is built from. No metadata hook for wheels: only the wheel has it right.
__all__ = [
    "build_editable",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
]

ROOT = Path(__file__).resolve().parents[2]
NAME = "draftscope"
LEFT_OUT = ("screenshots", "__pycache__")  # README's pictures

# `from app import`, `import app`, `-m app`, and `app.module` in code and in strings; not `this.app`, `app/`.
_OURS = re.compile(r"(?<=from )app(?= import\b)|(?<=import )app\b|(?<=-m )app\b|(?<![\w./])app(?=\.[a-z_])")


def build_wheel(
    wheel_directory: str,
    config_settings: Mapping[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Write the wheel into a folder; returns its file name. The tree does not change."""
    target = os.path.abspath(wheel_directory)
    with tempfile.TemporaryDirectory() as temporary:
        copy_tree(Path(temporary))
        with contextlib.chdir(temporary):
            return str(build_meta.build_wheel(target, config_settings))


def copy_tree(folder: Path) -> None:
    """Write a project that setuptools can build: the package under its installed name."""
    package = folder / NAME
    shutil.copytree(ROOT / "app", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "resources", package / "resources", ignore=shutil.ignore_patterns(*LEFT_OUT))
    for file in package.rglob("*.py"):
        file.write_text(renamed(file.read_text(encoding="utf-8")), encoding="utf-8")
    for name in ("README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, folder / name)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text("".join(_tables(renamed(project))), encoding="utf-8")


def renamed(text: str) -> str:
    """A source text with the package's installed name."""
    return _OURS.sub(NAME, text)


def _tables(project: str) -> Iterator[str]:
    """The project's own tables, and which files setuptools takes from the copy."""
    for table in re.split(r"(?m)^(?=\[)", project):
        if table.startswith("[project"):
            yield table
    yield '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
    yield f'[tool.setuptools.packages.find]\ninclude = ["{NAME}*"]\nnamespaces = false\n'
    yield f'[tool.setuptools.package-data]\n"*" = ["*.c"]\n{NAME} = ["resources/**"]\n'
