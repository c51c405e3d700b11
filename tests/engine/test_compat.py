"""Whether a draft can serve a target: the rules, and what is said where it cannot."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from app.engine.compat import FIRST_COMPARED_ID, MAX_SIZE_DIFFERENCE, check_vocabularies
from app.engine.errors import PairError

TEXTS = tuple(f"t{i}" for i in range(1000))


@dataclass(frozen=True)
class Words:
    """A vocabulary as far as it is compared."""

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


def test_the_same_vocabulary() -> None:
    assert check_vocabularies(Words(), Words()) == "same vocabulary"


@pytest.mark.parametrize("difference", [1, MAX_SIZE_DIFFERENCE])
def test_a_padded_vocabulary_fits_either_way(difference: int) -> None:
    padded = Words(size=1000 + difference)
    assert check_vocabularies(Words(), padded) == f"same but padded: 1,000 and 1,{difference:03d} tokens"
    assert check_vocabularies(padded, Words()) == f"same but padded: 1,{difference:03d} and 1,000 tokens"


def test_the_first_tokens_are_not_compared() -> None:
    renamed = Words(changed={FIRST_COMPARED_ID - 1: "<unk>"})
    assert check_vocabularies(Words(), renamed) == "same vocabulary"


def test_bos_matters_only_where_it_is_added() -> None:
    target, draft = Words(adds_bos=False), Words(adds_bos=False, bos=9)
    assert check_vocabularies(target, draft) == "same vocabulary"


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (Words(kind=1), "their tokenizers are of different kinds"),
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
    with pytest.raises(PairError) as refused:
        check_vocabularies(Words(), draft)
    assert refused.value.message == f"The draft does not fit the target: {said}."
    assert refused.value.hint == "Choose a draft of the same model family."


def test_bytes_that_are_no_text_are_still_shown() -> None:
    class Bytes(Words):
        def raw_text(self, id: int) -> bytes:
            return b"\xff" if id == 8 else super().raw_text(id)

    with pytest.raises(PairError, match="token 8 is “t8” in the target and “\ufffd” in the draft"):
        check_vocabularies(Words(), Bytes())


def test_eos_matters_where_it_is_added() -> None:
    target = Words(adds_eos=True)
    assert check_vocabularies(target, target) == "same vocabulary"
    with pytest.raises(PairError, match="EOS is token 2 in the target and 3 in the draft"):
        check_vocabularies(target, replace(target, eos=3))
