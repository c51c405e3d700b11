"""Addresses, file names, quantisations, shards."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.hub.names import Address, is_model, is_safe, parse_address, parse_model, quantisation_of


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("owner/name", Address("owner/name")),
        (" https://huggingface.co/owner/name ", Address("owner/name", pasted=True)),
        ("huggingface.co/owner/name/tree/main", Address("owner/name", pasted=True)),
        ("https://hf.co/owner/name/", Address("owner/name", pasted=True)),
        (
            "https://huggingface.co/owner/name/blob/main/Q8/a%20b.gguf?x=1#y",
            Address("owner/name", "Q8/a b.gguf", pasted=True),
        ),
        (
            "https://huggingface.co/owner/name/resolve/main/f.gguf",
            Address("owner/name", "f.gguf", pasted=True),
        ),
        ("https://hf.co/owner/name/blob/v1.0/f.gguf", Address("owner/name", "f.gguf", "v1.0", pasted=True)),
        (
            "https://hf.co/owner/name/blob/refs/pr/7/Q8/f.gguf",
            Address("owner/name", "Q8/f.gguf", "refs/pr/7", pasted=True),
        ),
        (
            "https://hf.co/owner/name/blob/refs%2Fpr%2F7/f.gguf",
            Address("owner/name", "f.gguf", "refs/pr/7", pasted=True),
        ),
        ("https://hf.co/owner/name/tree/v1.0/Q8", Address("owner/name", "", "v1.0", pasted=True)),
        ("https://hf.co/owner/name/discussions/3", Address("owner/name", pasted=True)),
        ("https://hf.co/datasets/owner/name/blob/main/f.gguf", None),
        ("https://hf.co/spaces/owner/name", None),
        ("https://hf.co/collections/owner/name", None),
        ("https://example.com/owner/name", None),
        ("https://huggingface.co/owner", None),
        ("https://huggingface.co/owner/..", None),
        ("llama 3b", None),
        ("name", None),
        ("https://[broken/owner/name", None),
        ("", None),
    ],
)
def test_addresses(text: str, found: Address | None) -> None:
    assert parse_address(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("owner/name-GGUF", Address("owner/name-GGUF")),
        ("owner/name:Q4_K_M", Address("owner/name", "Q4_K_M")),
        ("owner/name/f-Q8_0.gguf", Address("owner/name", "f-Q8_0.gguf")),
        ("owner/name/Q8/f.gguf", Address("owner/name", "Q8/f.gguf")),
        ("https://hf.co/owner/name/blob/main/f.gguf", Address("owner/name", "f.gguf", pasted=True)),
        ("folder/f.gguf", None),
        ("owner/name/README.md", None),
        ("owner/name:", None),
        ("./owner/name/f.gguf", None),
        ("/models/name/f.gguf", None),
        ("C:/models/f.gguf", None),
        ("f.gguf", None),
        ("", None),
    ],
)
def test_models_as_command_lines_name_them(text: str, found: Address | None) -> None:
    assert parse_model(text) == found


def test_a_token_in_a_pasted_address_goes_nowhere() -> None:
    address = parse_address("https://me:hf_secret@huggingface.co/owner/name/blob/main/f.gguf?token=hf_secret")
    assert "hf_secret" not in str(address)


@pytest.mark.parametrize(
    "name",
    ["../x", "a/../x", "/x", "a//x", "C:x", "a\\x", "x\0", "x.", "a /x", "", "a" * 600, ".", 'a"b', "a?"],
)
def test_names_that_could_leave_the_folder(name: str) -> None:
    assert not is_safe(name)


@given(st.text(max_size=40))
def test_safe_names_stay_inside(name: str) -> None:
    if is_safe(name):
        path = PurePosixPath("/cache", *name.split("/"))
        assert path.is_relative_to("/cache") and ".." not in path.parts and path != PurePosixPath("/cache")


@pytest.mark.parametrize(
    ("name", "quantisation"),
    [
        ("SmolLM2-1.7B-Instruct-Q4_K_M.gguf", "Q4_K_M"),
        ("qwen2.5-coder-7b-q8_0.gguf", "Q8_0"),
        ("Qwen3-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("model.IQ3_XXS.gguf", "IQ3_XXS"),
        ("model-fp16.gguf", "F16"),
        ("BF16/model-00001-of-00002.gguf", "BF16"),
        ("gpt-oss-20b-MXFP4.gguf", "MXFP4"),
        ("Q4_K_M-lovers/model.gguf", "Q4_K_M"),
        ("model.gguf", "?"),
    ],
)
def test_quantisations(name: str, quantisation: str) -> None:
    assert quantisation_of(name) == quantisation


def test_what_is_a_model() -> None:
    assert is_model("dir/Model.GGUF")
    for name in ("mmproj-F16.gguf", "x/model-mmproj-f16.gguf", "imatrix.gguf", "README.md"):
        assert not is_model(name)
