"""The names of models, and how models of one name are distinguished."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.hub.library.facts import Facts
from app.hub.library.model import FileOrigin, LocalModel, names_apart


def model(path: str, name: str = "", quantisation: str = "", repo: str = "") -> LocalModel:
    facts = Facts("llama", name, 1, quantisation, 1, 1, 1, "digest")
    origin = FileOrigin.HUB if repo else FileOrigin.ADDED
    return LocalModel(Path(path), (Path(path),), 1, 1, origin, repo, facts)


@pytest.mark.parametrize(
    ("named", "said", "told"),
    [
        ("Q4_K_M", "Q8_0", "Q8_0"),
        ("Q4_K_M", "", "Q4_K_M"),
        ("x", "F16", "F16"),
        ("x", "", "?"),
        ("UD-Q4_K_XL", "Q4_K_M", "UD-Q4_K_XL"),
        ("UD-Q4_K_XL", "Q8_0", "Q8_0"),
        ("Q4_K_L", "Q4_K_M", "Q4_K_L"),
        ("Q3_K_L", "Q3_K_M", "Q3_K_M"),
        ("UD-IQ2_XXS", "IQ2_XXS", "UD-IQ2_XXS"),
    ],
)
def test_the_quantisation_is_the_files_not_its_names(named: str, said: str, told: str) -> None:
    assert model(f"/m/a-{named}.gguf", quantisation=said).quantisation == told


def test_a_file_that_is_not_read_yet_goes_by_its_name() -> None:
    unread = LocalModel(Path("/m/a-Q4_0.gguf"), (Path("/m/a-Q4_0.gguf"),), 1, 1, FileOrigin.ADDED)
    assert unread.quantisation == "Q4_0"


def test_models_of_one_name_are_told_apart() -> None:
    assert names_apart(
        [
            model("/a/one-Q4_0.gguf", "Llama"),
            model("/a/one-Q8_0.gguf", "Llama"),
            model("/a/two.gguf", "Qwen"),
            model("/x/c.gguf", "Gemma", repo="owner/c-GGUF"),
            model("/y/c.gguf", "Gemma", repo="other/c-GGUF"),
            model("/b/same.gguf"),
            model("/c/same.gguf"),
        ]
    ) == (
        "Llama · Q4_0",
        "Llama · Q8_0",
        "Qwen",
        "Gemma · c · owner/c-GGUF",
        "Gemma · c · other/c-GGUF",
        "same · /b",
        "same · /c",
    )
