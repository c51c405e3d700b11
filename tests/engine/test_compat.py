"""Whether a draft can serve a target: the rules, and the reasons if it cannot."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from typing_extensions import override

from app.engine.compat import FIRST_COMPARED_ID, MAX_SIZE_DIFFERENCE, FitKind, check_vocabularies

TEXTS = tuple(f"t{i}" for i in range(1000))


@dataclass
class Words:
    """The compared parts of a vocabulary."""

    size: int = 1000
    kind: int = 2
    bos: int = 1
    eos: int = 2
    adds_bos: bool = True
    adds_eos: bool = False
    changed: dict[int, str] = field(default_factory=dict)

    def raw_text(self, id: int) -> bytes:
        assert 0 <= id < self.size
        text = TEXTS[id] if id < len(TEXTS) else f"<pad{id}>"
        return self.changed.get(id, text).encode()

    def piece(self, id: int) -> bytes:
        return self.raw_text(id) if id > 2 else b""

    def texts(self, first: int, end: int) -> bytes | None:
        return None  # as of a file that cannot be read: each token is asked for


def said_of(target: Words, draft: Words) -> str:
    return str(check_vocabularies(target, draft))


def test_the_same_vocabulary() -> None:
    assert said_of(Words(), Words()) == "same vocabulary"


@pytest.mark.parametrize("difference", [1, MAX_SIZE_DIFFERENCE])
def test_a_padded_vocabulary_fits_either_way(difference: int) -> None:
    padded = Words(size=1000 + difference)
    assert said_of(Words(), padded) == f"same but padded: 1,000 and 1,{difference:03d} tokens"
    assert said_of(padded, Words()) == f"same but padded: 1,{difference:03d} and 1,000 tokens"


def test_the_first_tokens_are_not_compared() -> None:
    renamed = Words(changed={FIRST_COMPARED_ID - 1: "<unk>"})
    assert said_of(Words(), renamed) == "same vocabulary"


def test_bos_matters_only_where_it_is_added() -> None:
    target, draft = Words(adds_bos=False), Words(adds_bos=False, bos=9)
    assert said_of(target, draft) == "same vocabulary"


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (Words(kind=1), "BPE tokenizer in the target, SentencePiece in the draft"),
        (
            Words(size=1000 + MAX_SIZE_DIFFERENCE + 1),
            "1,000 tokens in the target's vocabulary, 1,129 in the draft's",
        ),
        (Words(size=870), "1,000 tokens in the target's vocabulary, 870 in the draft's"),
        (Words(changed={FIRST_COMPARED_ID: "x"}), "token 5 is “t5” in the target and “x” in the draft"),
        (Words(changed={999: "the"}), "token 999 is “t999” in the target and “the” in the draft"),
        (Words(bos=7), "BOS is token 1 in the target and 7 in the draft"),
        (Words(adds_bos=False), "only the target adds a BOS token"),
        (Words(adds_eos=True), "only the draft adds an EOS token"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_differs_is_named(draft: Words, said: str) -> None:
    fit = check_vocabularies(Words(), draft)
    assert (fit.kind, fit.detail) == (FitKind.THROUGH_TEXT, said)
    assert str(fit) == f"different: through text ({said})"


def test_bytes_that_are_no_text_are_still_shown() -> None:
    class Bytes(Words):
        @override
        def raw_text(self, id: int) -> bytes:
            return b"\xff" if id == 8 else super().raw_text(id)

    assert (
        check_vocabularies(Words(), Bytes()).detail
        == "token 8 is “t8” in the target and “\ufffd” in the draft"
    )


def test_eos_matters_where_it_is_added() -> None:
    target = Words(adds_eos=True)
    assert said_of(target, target) == "same vocabulary"
    fit = check_vocabularies(target, replace(target, eos=3))
    assert fit.detail == "EOS is token 2 in the target and 3 in the draft"


class Mute(Words):
    @override
    def piece(self, id: int) -> bytes:
        return b""


@pytest.mark.parametrize(
    ("target", "draft", "said"),
    [
        (Words(), Words(kind=0), "cannot: the draft has no vocabulary"),
        (Words(size=0), Words(), "cannot: the target has no vocabulary"),
        (Words(), Mute(kind=1), "cannot: no token of the draft has a text"),
        (Mute(kind=1), Words(), "cannot: no token of the target has a text"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_serve(target: Words, draft: Words, said: str) -> None:
    assert said_of(target, draft) == said
    assert check_vocabularies(target, draft).kind is FitKind.CANNOT


def test_tokens_without_text_are_no_hindrance_where_ids_are_passed_on() -> None:
    assert said_of(Mute(), Mute()) == "same vocabulary"
