"""A file's name for people."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.engine.native.library import model_name


@pytest.mark.parametrize(
    ("said", "file", "shown"),
    [
        ("Qwen2.5 Coder 7B Instruct", "q.gguf", "Qwen2.5 Coder 7B Instruct"),
        ("Qwen3 4B Instruct 2507", "q.gguf", "Qwen3 4B Instruct 2507"),
        ("Smollm2 135M 8k Lc100K Mix1 Ep2", "SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct"),
        ("", "gemma-3-270m-Q4_K_M.gguf", "gemma-3-270m"),
        ("2fe192450127e6a83f7441aef6e3ca586c338b77", "Some-1B-UD-IQ2_XXS.gguf", "Some-1B"),
        ("Model", "mine.F16.gguf", "mine"),
        ("Mine checkpoint-500", "Q8_0.gguf", "Q8_0"),
        ("Deep 7B", "x.gguf", "Deep 7B"),
    ],
)
def test_a_name_that_tells_a_training_run_yields_to_the_files(said: str, file: str, shown: str) -> None:
    assert model_name({"general.name": said}.__getitem__, Path(file)) == shown
