"""llama.cpp's own `models/`, which set-up unpacks: vocabularies without weights, and chat templates."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.engine.engine import Engine
from app.engine.native.header import FileHeader
from app.engine.types import GenerationRequest
from tests.equality import drafted
from tests.files.tiny import Tiny, write_tiny

if TYPE_CHECKING:
    from app.engine.native import Vocabulary
    from tests.equality import Baselines

_NOTES = Path(sys.prefix) / "draftscope-setup.json"

VOCABULARIES = (
    "aquila", "baichuan", "command-r", "deepseek-coder", "deepseek-llm", "falcon", "gemma-4", "gpt-2",
    "gpt-neox", "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2", "qwen35", "refact", "starcoder",
)  # fmt: skip
"""Those of language models."""
ENCODERS = ("bert-bge", "nomic-bert-moe")
"""The others."""

PROMPT = "Hello, y'all! How are you 😁 ?我想在apple工作1314151天～ "
TEXT = "The quick brown fox saw naïve東🙂 and jumps 7\n"
"""In none of the vocabularies does a token come twice in it, and in most a character takes several."""


def models_folder() -> Path:
    """Its folder, which must exist in set-up's .venv; with another Python the test is skipped."""
    if not _NOTES.is_file():
        pytest.skip("set-up (`make test`) unpacks llama.cpp's vocabularies and templates")
    folder = Path(json.loads(_NOTES.read_text(encoding="utf-8"))["models"])
    assert folder.is_dir(), f"set-up unpacked them to {folder}"
    return folder


def vocabulary_file(name: str) -> Path:
    return models_folder() / f"ggml-vocab-{name}.gguf"


def write_model(folder: Path, name: str, **more: Any) -> Path:
    """A model of that vocabulary with small random weights; `more` are settings of a `Tiny`."""
    small = {"n_embd": 16, "n_heads": 2, "n_ff": 32, "n_layers": 1, "n_ctx": 1024}
    tiny = Tiny(**small | {"name": name, "tokenizer_of": str(vocabulary_file(name))} | more)
    return write_tiny(folder / f"{name}-{tiny.noise}.gguf", tiny)


def write_text_model(folder: Path, name: str) -> Path:
    """A model of that vocabulary that writes TEXT for ever."""
    header = FileHeader(vocabulary_file(name))
    try:
        return write_model(folder, name, n_embd=20, chain=tuple(_ids_of_text(header.vocabulary)))
    finally:
        header.close()


@contextmanager
def real_pair(folder: Path, name: str) -> Iterator[Engine]:
    """A loaded target with that vocabulary and a similar draft; `folder` is removed afterwards."""
    files = [write_model(folder, name, noise=noise, noise_seed=1) for noise in (0.0, 0.1)]
    with Engine(files[0], files[1]) as engine:
        yield engine
    shutil.rmtree(folder)


def assert_drafts_the_text(engine: Engine, baselines: Baselines) -> None:
    """Check a target and a draft that write TEXT: equal to the baseline, and most of the draft is
    accepted."""
    request = GenerationRequest(prompt=TEXT * 2, max_tokens=48, ignore_eos=True)
    trace = baselines.check(engine, request, "draft-simple:n_max=4")
    assert (TEXT * 5).startswith(trace.text.rstrip("\ufffd")), "of a character cut short"
    accepted = sum(round.accepted for round in trace.rounds)
    assert accepted > 0.5 * drafted(trace), "mpt and gpt-neox share their tokens, but cut TEXT into others"
    assert accepted > 0.6 * (48 - len(trace.rounds))


def _ids_of_text(vocabulary: Vocabulary) -> list[int]:
    """The tokens of TEXT after TEXT."""
    length = len(TEXT.encode())
    at = -vocabulary.puts_space
    ids = []
    for id in vocabulary.tokenize(TEXT * 3, special=False, parse_special=False).tolist():
        at += len(vocabulary.piece(id))
        if length < at <= 2 * length:
            ids.append(id)
    assert len(set(ids)) == len(ids)
    return ids
