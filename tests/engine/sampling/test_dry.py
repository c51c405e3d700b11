"""DRY: against a plain reference, and against llama.cpp's own sampler on tiny and on real vocabularies."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import llama_cpp as cpp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.native import Vocabulary
from app.engine.native.header import FileHeader
from app.engine.sampling.dry import Breakers, Dry, breaker_texts, breakers_of
from app.engine.types import Sampling
from tests.files.llama_models import vocabulary_file
from tests.files.tiny import Tiny
from tests.reference import dry_penalties

SIZE = 6  # few tokens, so that they repeat
TINY = {
    "bpe": Tiny(name="dry-bpe", words=("the", "User", "abc"), padding=3),
    "spm": Tiny(name="dry-spm", words=("the", "User", "abc"), sentencepiece=True),
}
REAL = ("qwen2", "llama-spm")
BREAKERS = (Sampling().dry_sequence_breaker, "none", r"User: ab", r"the \n c", r"\xe3\x80\x82 Ass", "b abc")
CONTEXTS = 600  # for each vocabulary and each of these


def sequences_as_breakers(sequences: Sequence[Sequence[int]], size: int) -> Breakers:
    alone = np.zeros(size, np.bool_)
    longer = []
    for head, *tail in sequences:
        mask = np.arange(size) == head
        if tail:
            longer.append((np.array(tail, np.int32), mask))
        else:
            alone |= mask
    return Breakers(alone, longer)


tokens = st.integers(0, SIZE - 1)


@given(
    st.lists(tokens, max_size=40) | st.lists(tokens, max_size=12).map(lambda few: few * 5),
    st.lists(st.lists(tokens, min_size=1, max_size=3), max_size=3),
    st.builds(
        Sampling,
        dry_multiplier=st.sampled_from([0.1, 0.8, 5.0]),
        dry_base=st.sampled_from([1.0, 1.75, 3.0]),
        dry_allowed_length=st.sampled_from([0, 1, 2, 3, 9]),
        dry_penalty_last_n=st.sampled_from([-1, 1, 2, 7, 64]),
    ),
)
def test_penalties_are_the_references(
    context: list[int], sequences: list[list[int]], sampling: Sampling
) -> None:
    lowered = np.zeros(SIZE, np.float32)
    dry = Dry(sampling, sequences_as_breakers(sequences, SIZE))
    dry.lower(lowered, np.array(context, np.int32))
    expected = np.zeros(SIZE)
    for token, penalty in dry_penalties(sampling, context, sequences).items():
        expected[token] = -penalty
    np.testing.assert_allclose(lowered, expected, rtol=1e-5)


class LlamaDry:
    """llama.cpp's own sampler."""

    def __init__(self, vocabulary: Vocabulary, sampling: Sampling, last_n: int) -> None:
        texts = breaker_texts(sampling.dry_sequence_breaker)
        self._sampler = cpp.llama_sampler_init_dry(
            vocabulary.handle,
            sampling.dry_multiplier,
            sampling.dry_base,
            sampling.dry_allowed_length,
            last_n,
            (ctypes.c_char_p * len(texts))(*texts),
            len(texts),
        )

    def penalties(self, context: Sequence[int], ids: np.ndarray) -> np.ndarray:
        """The penalty on the logits of `ids` after `context`."""
        cpp.llama_sampler_reset(self._sampler)
        for token in context:
            cpp.llama_sampler_accept(self._sampler, token)
        data = np.zeros(len(ids), [("id", np.int32), ("logit", np.float32), ("p", np.float32)])
        data["id"] = ids
        candidates = cpp.llama_token_data_array(size=len(ids), selected=-1, sorted=False)
        candidates.data = ctypes.cast(data.ctypes.data, ctypes.POINTER(cpp.llama_token_data))
        cpp.llama_sampler_apply(self._sampler, ctypes.byref(candidates))
        return -data["logit"]

    def close(self) -> None:
        cpp.llama_sampler_free(self._sampler)


@pytest.fixture(scope="module", params=[*TINY, *REAL])
def vocabulary(request: pytest.FixtureRequest, tiny_file: Callable[[Tiny], Path]) -> Iterator[Vocabulary]:
    name = request.param
    header = FileHeader(tiny_file(TINY[name]) if name in TINY else vocabulary_file(name))
    yield header.vocabulary
    header.close()


def context_of(random: np.random.Generator, vocabulary: Vocabulary, breakers: Breakers) -> list[int]:
    """Tokens from a small set, with copies of earlier tokens, breakers, and beginnings of breakers."""
    choice = random.integers(0, vocabulary.size, random.choice([1, 2, 3, 6, 30])).tolist()
    ends = breakers.alone.nonzero()[0]
    made: list[int] = []
    length = random.choice([1, 5, 20, 60])
    while len(made) < length:
        kind = random.random()
        if kind < 0.78 or len(made) < 2:
            made.append(int(random.choice(choice)))
        elif kind < 0.82 and len(ends):
            made.append(int(random.choice(ends)))
        elif kind < 0.88 and breakers.sequences:
            tail, is_head = breakers.sequences[int(random.integers(len(breakers.sequences)))]
            made.append(int(random.choice(is_head.nonzero()[0])))
            made += tail[: random.integers(1, len(tail) + 1)].tolist()
        else:
            start = int(random.integers(0, len(made)))
            made += made[start : start + int(random.integers(1, 30))]
    return made


@pytest.mark.parametrize("written", BREAKERS)
def test_penalties_are_llama_cpps(vocabulary: Vocabulary, written: str) -> None:
    random = np.random.default_rng(5)
    changed = 0
    for last_n in (100, 17):  # the whole of every context, and less
        for base, allowed in ((1.75, 2), (1.0, 1), (3.0, 0)):
            sampling = Sampling(
                dry_multiplier=0.8, dry_base=base, dry_allowed_length=allowed, dry_sequence_breaker=written,
                dry_penalty_last_n=-1 if last_n == 100 else last_n,
            )  # fmt: skip
            breakers = breakers_of(vocabulary, sampling)
            assert breakers is not None
            ours, theirs = Dry(sampling, breakers), LlamaDry(vocabulary, sampling, last_n)
            logits = np.zeros(vocabulary.size, np.float32)
            for _ in range(CONTEXTS // 6):
                context = context_of(random, vocabulary, breakers)[:100]
                ids = np.unique(context)
                logits[ids] = 0
                ours.lower(logits, np.array(context, np.int32))
                expected = theirs.penalties(context, ids)
                np.testing.assert_allclose(-logits[ids], expected, rtol=1e-6, err_msg=str(context))
                changed += bool(expected.any())
            theirs.close()
    assert changed > CONTEXTS // 6


@pytest.mark.parametrize("written", [*BREAKERS, r"\x20 e", r"\xc3", "|"])
def test_every_token_that_ends_a_repetition_is_llama_cpps(vocabulary: Vocabulary, written: str) -> None:
    """Each token once after the same token: all are lowered except those that end a repetition by
    themselves."""
    sampling = Sampling(
        dry_multiplier=1, dry_allowed_length=1, dry_penalty_last_n=-1, dry_sequence_breaker=written
    )
    breakers = breakers_of(vocabulary, sampling)
    assert breakers is not None
    ids = np.arange(vocabulary.size, dtype=np.int32)
    repeated = int(np.flatnonzero(~breakers.alone)[7])
    context = np.stack([np.full_like(ids, repeated), ids], axis=1).ravel()
    context = np.append(context, np.int32(repeated))
    theirs = LlamaDry(vocabulary, sampling, len(context))
    lowered = np.zeros(vocabulary.size, np.float32)
    Dry(sampling, breakers).lower(lowered, context)
    np.testing.assert_array_equal(-lowered, theirs.penalties(context.tolist(), ids))
    theirs.close()


def test_breakers_are_read_once_for_a_vocabulary_and_a_list(
    tiny_file: Callable[[Tiny], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    header = FileHeader(tiny_file(TINY["bpe"]))
    words_with = header.vocabulary.words_with
    monkeypatch.setattr(header.vocabulary, "words_with", lambda byte: asked.append(byte) or words_with(byte))
    assert breakers_of(header.vocabulary, Sampling()) is None
    for written in ("ab", "ab", "ab c", "ab c", "ab"):
        sampling = Sampling(dry_multiplier=1, dry_sequence_breaker=written)
        breakers = breakers_of(header.vocabulary, sampling)
        assert breakers is not None
        assert breakers.alone[ord("c")] == (written == "ab c")
    assert bytes(asked) == b"aaca"
    header.close()


@pytest.mark.parametrize(
    ("written", "texts"),
    [
        (Sampling().dry_sequence_breaker, [b"\n", b":", b'"', b"*"]),
        ("", []),
        ("a none b", [b"b"]),
        (r"a\x20b \\n \q \x4", [b"a b", rb"\n", rb"\q", rb"\x4"]),
        ("é" * 30, ["é".encode() * 20]),
    ],
)
def test_a_list_of_breakers_is_read_as_llama_cpps_options_are(written: str, texts: list[bytes]) -> None:
    assert breaker_texts(written) == texts


@pytest.mark.parametrize("tiny", TINY.values(), ids=TINY)
def test_words_with_a_byte_are_the_same_with_and_without_the_files_table(
    tiny_file: Callable[[Tiny], Path], monkeypatch: pytest.MonkeyPatch, tiny: Tiny
) -> None:
    def words() -> list[list[tuple[int, bytes]]]:
        header = FileHeader(tiny_file(tiny))
        found = [list(header.vocabulary.words_with(byte)) for byte in range(256)]
        header.close()
        return found

    known = words()
    assert sum(map(bool, known)) >= 255, (
        "every byte is a token's; SentencePiece writes no space for one alone"
    )
    monkeypatch.setattr("app.engine.native.vocabulary.read_token_table", lambda _path: None)
    assert words() == known
