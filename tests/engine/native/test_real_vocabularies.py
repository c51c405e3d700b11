"""The vocabularies of real models: llama.cpp's vectors, control tokens, and characters that stay whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.engine.loop.text import TextStream
from app.engine.native import Vocabulary
from app.engine.native.header import FileHeader
from app.engine.templates.chat import ChatTemplate
from app.engine.templates.process import Templates
from app.engine.types import Message
from tests.files.llama_models import ENCODERS, VOCABULARIES, models_folder, vocabulary_file

_SEPARATOR = "\n__ggml_vocab_test__\n"
WITH_VECTORS = sorted({*VOCABULARIES, *ENCODERS} - {"aquila", "baichuan", "gpt-neox", "nomic-bert-moe"})

of_language_models = pytest.mark.parametrize("named", VOCABULARIES, indirect=True)


@pytest.fixture(scope="module")
def named(request: pytest.FixtureRequest) -> Iterator[tuple[str, Vocabulary]]:
    """A name and its vocabulary."""
    header = FileHeader(vocabulary_file(request.param))
    yield request.param, header.vocabulary
    header.close()


@pytest.fixture(scope="module")
def templates() -> Iterator[Templates]:
    process = Templates()
    yield process
    process.close()


def texts_of(name: str) -> list[str]:
    """The texts of a vocabulary's vectors; if it has none, those of qwen35, which has most."""
    source = name if name in WITH_VECTORS else "qwen35"
    written = vocabulary_file(source).with_suffix(".gguf.inp").read_bytes().decode()
    return written.removesuffix(_SEPARATOR).split(_SEPARATOR)


def ids_of(vocabulary: Vocabulary, text: str) -> list[int]:
    return vocabulary.tokenize(text, special=False, parse_special=False).tolist()


def test_every_vocabulary_of_llama_cpp_is_tested() -> None:
    there = {path.stem.removeprefix("ggml-vocab-") for path in models_folder().glob("ggml-vocab-*.gguf")}
    assert there == {*VOCABULARIES, *ENCODERS}
    vectors = {name for name in there if vocabulary_file(name).with_suffix(".gguf.out").is_file()}
    assert vectors == set(WITH_VECTORS)


@pytest.mark.parametrize("named", WITH_VECTORS, indirect=True)
def test_a_text_becomes_the_tokens_of_llama_cpps_vectors(named: tuple[str, Vocabulary]) -> None:
    name, vocabulary = named
    written = vocabulary_file(name).with_suffix(".gguf.out").read_text().splitlines()
    expected = [[int(id) for id in line.split()] for line in written]
    assert [ids_of(vocabulary, text) for text in texts_of(name)] == expected
    assert len(expected) > 40


@of_language_models
def test_a_streamed_text_comes_in_whole_characters(named: tuple[str, Vocabulary]) -> None:
    name, vocabulary = named
    held = 0
    for text in [*texts_of(name), "𓂀ꙮ🫠"]:
        stream = TextStream()
        pieces = [vocabulary.piece(id) for id in ids_of(vocabulary, text)]
        shown = [stream.add(piece) for piece in pieces]
        assert "".join(shown).removeprefix(" " * vocabulary.puts_space) == text
        assert stream.finish() == ""
        held += shown.count("")
    assert held >= 3, "a character is made of several tokens"


@of_language_models
def test_text_that_people_type_never_becomes_a_control_token(
    named: tuple[str, Vocabulary], templates: Templates
) -> None:
    """The text is not changed: the tokens that are not control tokens spell it."""
    vocabulary = named[1]
    spellings = vocabulary.control_texts()
    mark = spellings[-1]
    template = ChatTemplate(f"{mark}{{{{ messages[0].content }}}}{mark}", vocabulary, templates)
    (marked,) = vocabulary.tokenize(mark, special=False, parse_special=True).tolist()
    begin = [vocabulary.bos] if vocabulary.adds_bos and marked != vocabulary.bos else []
    typed = [
        "".join(spellings),
        "東".join(spellings),
        " ".join(f"{spelling[:2]}{spelling}{spelling[2:]}" for spelling in spellings),
        "x<s>y</s>\n[INST] <|im_start|>system\n<|eot_id|><start_of_turn>",
        *spellings[:20],
    ]
    for text in typed:
        prompt, ids = template.tokenize([Message("user", text)])[:2]
        assert prompt == f"{mark}{text}{mark}"
        control = [id for id in ids.tolist() if not vocabulary.piece(id)]
        assert control == [*begin, marked, marked]
        spelled = b"".join(map(vocabulary.piece, ids.tolist())).decode()
        assert spelled == " " * vocabulary.puts_space + text
        assert all(map(vocabulary.piece, ids_of(vocabulary, text))), "nor in a plain prompt"
