"""The text stream: whole characters only, stop strings never shown, nothing lost."""

from __future__ import annotations

import itertools

from hypothesis import example, given
from hypothesis import strategies as st

from app.engine.loop.text import TextStream

texts = st.text(alphabet="ab<|é漢🦊\n", max_size=30)
stops = st.lists(st.text(alphabet="ab<|é🦊", min_size=1, max_size=4), max_size=3)


def split(raw: bytes, cuts: list[int]) -> list[bytes]:
    """The bytes cut into pieces, like tokens."""
    places = sorted({cut % (len(raw) + 1) for cut in cuts} | {0, len(raw)})
    return [raw[start:end] for start, end in itertools.pairwise(places)]


cuts = st.lists(st.integers(0, 200), max_size=40)


@given(texts, cuts)
def test_text_comes_back_whole_however_it_is_split(text: str, cuts: list[int]) -> None:
    stream = TextStream()
    pieces = [stream.add(piece) for piece in split(text.encode(), cuts)]
    pieces.append(stream.finish())
    assert "".join(pieces) == text == stream.text
    assert not stream.stopped


@given(texts, cuts, stops)
@example("ab<|ab", [1, 2, 3, 4, 5], ["b<|", "<|a"])
@example("aab", [1, 2], ["ab"])
def test_stop_strings_against_a_plain_search(text: str, cuts: list[int], stops: list[str]) -> None:
    stream = TextStream(stops)
    released = ""
    seen = b""
    for piece in split(text.encode(), cuts):
        released += stream.add(piece)
        seen += piece
        readable = seen.decode(errors="ignore")
        found = [readable.find(stop) for stop in stops if stop in readable]
        assert stream.stopped == bool(found)
        if found:
            # The first complete stop string ends the answer, the earliest of several.
            assert released == readable[: min(found)]
            break
        assert readable.startswith(released), "what was shown stays"
        held = readable[len(released) :]
        assert not held or any(stop.startswith(held) for stop in stops), "nothing is held back for nothing"
        for stop in stops:
            for length in range(1, len(stop)):
                if readable.endswith(stop[:length]):
                    assert len(released) <= len(readable) - length, "a possible stop is not shown"
    released += stream.finish()
    assert released == stream.text
    if not stream.stopped:
        assert released == text


@given(st.lists(st.binary(max_size=6), max_size=10))
def test_bytes_that_are_no_text_are_replaced_as_python_does(pieces: list[bytes]) -> None:
    stream = TextStream()
    for piece in pieces:
        stream.add(piece)
    stream.finish()
    assert stream.text == b"".join(pieces).decode("utf-8", errors="replace")


def test_a_character_is_shown_with_its_last_byte() -> None:
    stream = TextStream()
    fox = "🦊".encode()
    assert [stream.add(fox[i : i + 1]) for i in range(4)] == ["", "", "", "🦊"]


def test_a_character_cut_short_is_marked_at_the_end() -> None:
    stream = TextStream()
    assert stream.add("é".encode()[:1]) == ""
    assert stream.finish() == "\ufffd"


def test_a_stop_over_three_tokens_is_never_shown() -> None:
    stream = TextStream(["<|end|>"])
    assert [stream.add(piece) for piece in (b"Hi<", b"|en", b"d|> more")] == ["Hi", "", ""]
    assert stream.stopped
    assert stream.add(b"more") == stream.finish() == ""
    assert stream.text == "Hi"


def test_held_text_comes_out_when_it_is_no_stop_and_at_the_end() -> None:
    stream = TextStream(["<|end|>"])
    assert stream.add(b"a <|en") == "a "
    assert stream.add(b"joy") == "<|enjoy"
    assert stream.add(b"<|e") == ""
    assert stream.finish() == "<|e"


def test_empty_stop_strings_stop_nothing() -> None:
    stream = TextStream(["", "x"])
    assert stream.add(b"abc") == "abc"
    assert not stream.stopped
