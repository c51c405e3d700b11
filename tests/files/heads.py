"""Tiny targets with heads of every kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.files.tiny import Tiny

Make = Callable[[Tiny], Path]
HEAD = Tiny(name="head", architecture="eagle3", n_layers=1, n_ctx=1024, seed=3)
PAIRS = (
    "draft-eagle3 llama", "draft-eagle3 lfm2", "draft-mtp qwen35", "draft-mtp qwen35 beside",
    "draft-mtp step35", "draft-mtp step35 beside", "draft-mtp gemma4 beside",
    "draft-dflash qwen35", "draft-dflash llama selector", "draft-dspark llama",
)  # fmt: skip
"""Strategy, the target's architecture, and what is special about the head or its file."""


def files(kind: str, tiny_file: Make, **weights: Any) -> tuple[Path, Path | None]:
    """A target, and the file of its head if it has one of its own."""
    strategy, architecture, *more = kind.split()
    heads = {"step35": 3, "gemma4": 0}.get(architecture, 1) if strategy == "draft-mtp" else 0
    own = bool(heads) and not more
    target = Tiny(name="target", architecture=architecture, n_ctx=1024, mtp=heads if own else 0, **weights)
    head = {
        "draft-mtp": None if own else replace(target, name="head", mtp=heads, trunk=False, seed=3),
        "draft-eagle3": HEAD,
        "draft-dflash": replace(HEAD, architecture="dflash", selector="selector" in more),
        "draft-dspark": replace(HEAD, architecture="dflash", markov=True, confidence=True),
    }[strategy]
    if architecture == "gemma4":
        head = replace(target, name="head", architecture="gemma4-assistant", n_embd=32, seed=3)
    return tiny_file(target), tiny_file(replace(head, **weights)) if head else None
