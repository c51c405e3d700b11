"""One name, one meaning: the names of classes."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import app


def test_no_two_classes_have_the_same_name() -> None:
    """Not even where one of them is private."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    root = Path(app.__file__).parent
    for file in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.ClassDef):
                files[node.name.lstrip("_")].append(str(file.relative_to(root)))
    assert len(files) > 500
    assert {name: found for name, found in files.items() if len(found) > 1} == {}


def test_what_is_asked_of_an_engine_has_one_import_path() -> None:
    root = Path(app.__file__).parent
    door = [
        str(file.relative_to(root))
        for file in sorted(root.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.ImportFrom) and node.module == "app.engine._options"
    ]
    assert door == ["engine/types.py"]
