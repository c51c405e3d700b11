"""The n-gram index against a plain scan of the text."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.engine.drafters.index import NgramIndex

tokens = st.lists(st.integers(0, 2), max_size=30)


def places(text: list[int], n: int, at: int) -> list[int]:
    return [place for place in range(at - 1, -1, -1) if text[place : place + n] == text[at : at + n]]


@given(st.lists(tokens, max_size=5), st.integers(1, 5))
def test_places_are_those_of_a_plain_scan_however_the_text_came(parts: list[list[int]], n: int) -> None:
    index = NgramIndex(n)
    text: list[int] = []
    for part in parts:
        text += part
        index.follow(np.array(text, np.int32))
    assert index.tokens == text
    assert len(index.hashes) == max(0, len(text) - n + 1)
    for at in range(len(index.hashes)):
        assert list(index.earlier(at)) == places(text, n, at)


@given(st.lists(st.integers(0, 2**31 - 1), min_size=4, max_size=12), st.integers(1, 4))
def test_the_low_bits_of_a_hash_are_those_of_llama_cpp(text: list[int], n: int) -> None:
    index = NgramIndex(n)
    index.follow(np.array(text, np.int32))
    for at, ours in enumerate(index.hashes):
        theirs = 0
        for token in text[at : at + n]:
            theirs = (theirs * 2654435761 + token) % 2**32
        assert ours % 2**32 == theirs


def test_equal_hashes_of_different_tokens_are_told_apart() -> None:
    first, second = (434337693, 0), (0, 42592397)
    index = NgramIndex(2)
    index.follow(np.array([*first, *second, *first, *second], np.int32))
    assert index.hashes[0] == index.hashes[2]
    assert list(index.earlier(4)) == [0]
    assert list(index.earlier(6)) == [2]


def test_a_text_is_forgotten() -> None:
    index = NgramIndex(2)
    index.follow(np.array([1, 2, 1, 2], np.int32))
    index.restart()
    index.follow(np.array([5, 1, 2], np.int32))
    assert list(index.earlier(1)) == []
