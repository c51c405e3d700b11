"""Vocabularies: text to tokens and back, control tokens, and what ends an answer."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.native import Model, Vocabulary
from app.engine.native.header import FileHeader
from app.engine.native.vocabulary import read_token_table
from app.engine.types import ModelOptions
from tests.files.tiny import CONTROL, Tiny


@pytest.fixture(scope="module")
def vocabulary(tiny_file: Callable[[Tiny], Path]) -> Iterator[Vocabulary]:
    model = Model(ModelOptions(str(tiny_file(Tiny(name="words", padding=2)))))
    yield model.vocabulary
    model.close()


def spelled(vocabulary: Vocabulary, ids: np.ndarray) -> bytes:
    return b"".join(vocabulary.piece(id) for id in ids.tolist())


@given(st.text())
def test_any_text_comes_back(vocabulary: Vocabulary, text: str) -> None:
    ids = vocabulary.tokenize(text, special=True, parse_special=False)
    assert ids.dtype == np.int32
    assert spelled(vocabulary, ids) == text.encode()
    assert not set(ids.tolist()) & {256, 257, 258}


def test_control_tokens_are_parsed_only_where_that_is_asked_for(vocabulary: Vocabulary) -> None:
    text = "a<|im_end|>"
    assert vocabulary.tokenize(text, special=False, parse_special=True).tolist()[1:] == [258]
    assert len(vocabulary.tokenize(text, special=False, parse_special=False)) == len(text)


def test_control_tokens_have_a_name_and_no_text(vocabulary: Vocabulary) -> None:
    for id, name in zip(range(256, 259), CONTROL, strict=True):
        assert (vocabulary.piece(id), vocabulary.label(id)) == (b"", name)
    letter = int(vocabulary.tokenize("x", special=False, parse_special=False)[0])
    assert (vocabulary.piece(letter), vocabulary.label(letter)) == (b"x", "")
    assert sorted(vocabulary.control_texts()) == sorted(CONTROL)


def test_what_ends_an_answer(vocabulary: Vocabulary) -> None:
    assert vocabulary.end_ids == {256, 258}
    assert (vocabulary.size, vocabulary.eos, vocabulary.bos) == (261, 256, 257)


def test_bos_is_added_where_the_file_asks_for_it(tiny_file: Callable[[Tiny], Path]) -> None:
    model = Model(ModelOptions(str(tiny_file(Tiny(name="bos", adds_bos=True)))))
    assert model.vocabulary.tokenize("x", special=True, parse_special=False).tolist()[0] == 257
    assert len(model.vocabulary.tokenize("x", special=False, parse_special=False)) == 1
    model.close()


def test_long_pieces_and_texts_are_whole(tiny_file: Callable[[Tiny], Path]) -> None:
    long = "<|" + "long" * 60 + "|>"
    model = Model(ModelOptions(str(tiny_file(Tiny(name=long[:9], control=(*CONTROL, long), padding=1)))))
    assert model.vocabulary.label(259) == long
    assert model.vocabulary.raw_text(259) == long.encode()
    assert model.vocabulary.tokenize(long, special=False, parse_special=True).tolist() == [259]
    model.close()


@pytest.fixture
def no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the file was removed after llama.cpp read it, every token is asked for."""
    monkeypatch.setattr("app.engine.native.vocabulary.read_token_table", lambda _path: None)


VOCABULARIES = [
    Tiny(name="bpe", padding=2),
    Tiny(name="spm", sentencepiece=True, words=("the", "and")),
    Tiny(name="by-text", control=("<|end|>", "<|im_start|>", "<|im_end|>"), words=("<|eot_id|>",)),
]


@pytest.mark.parametrize("tiny", VOCABULARIES, ids=lambda tiny: tiny.name)
def test_the_table_of_a_file_answers_as_llama_cpp_does(
    tiny_file: Callable[[Tiny], Path], request: pytest.FixtureRequest, tiny: Tiny
) -> None:
    def read() -> tuple[object, ...]:
        header = FileHeader(tiny_file(tiny))
        vocabulary = header.vocabulary
        facts = vocabulary.end_ids, vocabulary.control_texts(), header.vocabulary_digest()
        texts = vocabulary.texts(0, vocabulary.size)
        header.close()
        return *facts, texts

    *known, texts = read()
    request.getfixturevalue("no_table")
    *asked, none = read()
    assert known == asked
    assert texts and none is None


def test_a_file_that_only_seems_to_have_a_table_is_asked_token_by_token(tmp_path: Path) -> None:
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)
    key = struct.pack("<Q", 21) + b"tokenizer.ggml.tokens"
    for rest in (b"", key, key + struct.pack("<IIQ", 9, 8, 2**60), key + struct.pack("<I", 77)):
        path = tmp_path / "cut.gguf"
        path.write_bytes(head + rest)
        assert read_token_table(path) is None
    assert read_token_table(tmp_path / "none.gguf") is None
