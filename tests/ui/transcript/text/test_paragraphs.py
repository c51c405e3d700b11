from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.ui.transcript.text.paragraphs import MAX_LENGTH, MOST_JOINED, Kind, Paragraph, ParagraphBuilder
from app.ui.transcript.text.spans import Span, spans_of
from tests.ui.traces import drawing


def token(text: str, place: int = 0, fate: str = "plain") -> Span:
    return Span(text, fate, 0, place)


def built(text: str, all_code: bool = False) -> list[Paragraph]:
    builder = ParagraphBuilder(all_code)
    builder.add([token(text)])
    return builder.paragraphs


def joined(paragraphs: list[Paragraph]) -> str:
    parts = [
        paragraph.text + ("" if paragraph.continued or paragraph.cut else "\n") for paragraph in paragraphs
    ]
    return "".join(parts)[:-1]


def kinds(text: str) -> str:
    return "".join(paragraph.kind.value[0] for paragraph in built(text))


def test_newlines_inside_tokens_part_paragraphs() -> None:
    builder = ParagraphBuilder()
    builder.add([token("a\n\nb", 0), token("c", 1)])
    assert [paragraph.text for paragraph in builder.paragraphs] == ["a", "", "bc"]
    first, empty, last = builder.paragraphs
    assert first.end is not None and first.end.same_token(token("", 0))
    assert empty.end is first.end
    assert last.end is None


def test_struck_text_stands_in_its_paragraph_but_is_no_text() -> None:
    builder = ParagraphBuilder()
    builder.add([token("a"), token("↵x", 1, "rejected"), token("b", 1)])
    assert [paragraph.text for paragraph in builder.paragraphs] == ["ab"]
    assert [paragraph.text for paragraph in builder.paragraphs[0].spans] == ["a", "↵x", "b"]


def test_fences_make_code() -> None:
    assert kinds("a\n```py\nx = 1\n\n```\nb") == "pfccfp"
    assert kinds("~~~\n```\n~~~\nb") == "fcfp"  # another mark does not close
    assert kinds("````\n```\n````\nb") == "fcfp"  # nor a shorter one
    assert kinds("    ```\nb") == "pp"  # indented too far
    assert kinds("```inline``` text\nb") == "pp"
    assert kinds("```py\nx\n```  \nb") == "fcfp"
    assert kinds("```py\n``` x\n") == "fcc"  # a closing fence has nothing after it


def test_a_fence_is_known_as_soon_as_it_is_there_and_not_before() -> None:
    builder = ParagraphBuilder()
    seen = []
    for part in ("``", "`", "py", "\n", "x"):
        builder.add([token(part)])
        seen.append(builder.paragraphs[-1].kind)
    assert seen == [Kind.PROSE, Kind.FENCE, Kind.FENCE, Kind.CODE, Kind.CODE]


def test_a_struck_fence_opens_nothing() -> None:
    builder = ParagraphBuilder()
    builder.add([token("```", 0, "rejected"), token("a\n"), token("b")])
    assert [paragraph.kind for paragraph in builder.paragraphs] == [Kind.PROSE, Kind.PROSE]


def test_a_completion_is_all_code() -> None:
    assert {paragraph.kind for paragraph in built("a\n```\nb", all_code=True)} == {Kind.CODE}


def test_long_lines_are_continued_between_words() -> None:
    text = "word " * 1000
    paragraphs = built(text)
    assert len(paragraphs) > 3
    assert joined(paragraphs) == text
    assert all(len(paragraph.text) <= 2 * MAX_LENGTH for paragraph in paragraphs)
    assert all(paragraph.text.startswith(" ") for paragraph in paragraphs[1:])
    assert [paragraph.continued for paragraph in paragraphs] == [True] * (len(paragraphs) - 1) + [False]


def test_a_very_long_line_is_cut_into_stretches_laid_out_apart() -> None:
    paragraphs = built("```\n" + "word " * 20_000 + "\nshort\n" + "word " * 2_000)
    stretches = [1]
    for paragraph in paragraphs:
        stretches[-1] += paragraph.continued
        if not paragraph.continued:
            stretches.append(1)
    assert max(stretches) == MOST_JOINED
    assert joined(paragraphs).count("\n") == 3
    assert {paragraph.kind for paragraph in paragraphs[1:]} == {Kind.CODE}


def test_a_line_without_spaces_is_continued_too() -> None:
    builder = ParagraphBuilder()
    builder.add(token("abcdefg", place) for place in range(500))
    assert joined(builder.paragraphs) == "abcdefg" * 500
    assert all(len(paragraph.text) < 2 * MAX_LENGTH for paragraph in builder.paragraphs)


def test_struck_drafts_count_where_a_line_is_continued() -> None:
    """The part laid out with every batch stays short, however many drafts in it were rejected."""
    builder = ParagraphBuilder()
    for place in range(300):
        builder.add([token(" refused", place, "rejected"), token(" taken", place)])
    assert joined(builder.paragraphs) == " taken" * 300
    assert all(paragraph.shown < 2 * MAX_LENGTH for paragraph in builder.paragraphs)


def test_a_continued_line_of_code_stays_code() -> None:
    paragraphs = built("```\n" + "x " * 1000 + "\n```\nb")
    assert [paragraph.kind for paragraph in paragraphs][-3:] == [Kind.CODE, Kind.FENCE, Kind.PROSE]


def test_adding_tells_the_first_paragraph_that_changed() -> None:
    builder = ParagraphBuilder()
    assert builder.add([token("a\nb")]) == 0
    assert builder.add([token("c\nd")]) == 1
    assert builder.add([token("e")]) == 2


lines = st.lists(st.sampled_from(["```", "```py", "~~~", "a", "", "  ```", "`", "x " * 400]), max_size=8)


@given(lines, st.integers(1, 9))
def test_growing_piece_by_piece_gives_the_same_as_all_at_once(parts: list[str], step: int) -> None:
    text = "\n".join(parts)
    builder = ParagraphBuilder()
    for start in range(0, len(text), step):
        builder.add([token(text[start : start + step])])
    whole = built(text) if text else [Paragraph(Kind.PROSE)]
    assert joined(builder.paragraphs) == joined(whole) == text
    assert _lines(builder.paragraphs) == _lines(whole)


def _lines(paragraphs: list[Paragraph]) -> list[tuple[str, Kind]]:
    """Text and kind of the lines, with continued paragraphs joined."""
    found: list[tuple[str, Kind]] = []
    before = False
    for paragraph in paragraphs:
        if before:
            found[-1] = (found[-1][0] + paragraph.text, paragraph.kind)
        else:
            found.append((paragraph.text, paragraph.kind))
        before = paragraph.continued or paragraph.cut
    return found


def test_the_drawing() -> None:
    builder = ParagraphBuilder()
    builder.add(spans_of(drawing()))
    assert joined(builder.paragraphs) == drawing().text
    assert "".join(paragraph.kind.value[0] for paragraph in builder.paragraphs) == "fcccccfpp"
