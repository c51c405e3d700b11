from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from app.ui.transcript.layout.block import Heights
from app.ui.transcript.text.paragraphs import from_utf16, to_utf16, utf16_length

operations = st.lists(
    st.tuples(st.sampled_from(["append", "set", "truncate", "ask"]), st.integers(0, 9), st.integers(0, 5)),
    max_size=40,
)


@given(operations)
def test_offsets_are_the_sums_of_the_heights_before(steps: list[tuple[str, int, int]]) -> None:
    heights, plain = Heights(), []
    for what, row, height in steps:
        if what == "append":
            heights.append(height)
            plain.append(height)
        elif what == "truncate":
            heights.truncate(row)
            del plain[row:]
        elif plain and what == "set":
            heights.set(row % len(plain), height)
            plain[row % len(plain)] = height
        offsets = [0, *accumulate(plain)]
        if what == "ask":
            assert heights.offset(min(row, len(plain))) == offsets[min(row, len(plain))]
    offsets = [0, *accumulate(plain)]
    assert heights.total == offsets[-1]
    assert [heights.offset(row) for row in range(len(plain) + 1)] == offsets


def test_row_at() -> None:
    heights = Heights([10, 0, 5])
    assert [heights.row_at(y) for y in (-3, 0, 9.9, 10, 14, 15, 99)] == [0, 0, 0, 2, 2, 2, 2]
    assert Heights().row_at(0) == -1


@given(st.text(alphabet="aé好😀\n"), st.integers(0, 20))
def test_utf16_offsets_there_and_back(text: str, offset: int) -> None:
    offset = min(offset, len(text))
    assert utf16_length(text) == len(text.encode("utf-16-le")) // 2
    assert to_utf16(text, offset) == len(text[:offset].encode("utf-16-le")) // 2
    assert from_utf16(text, to_utf16(text, offset)) == offset


def test_the_middle_of_a_character_counts_as_its_start() -> None:
    assert from_utf16("a😀b", 2) == 1
    assert from_utf16("a😀b", 99) == 3
