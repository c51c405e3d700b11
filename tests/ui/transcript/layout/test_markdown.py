from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ui.theme import DARK, LIGHT
from app.ui.theme.palette import Palette
from app.ui.transcript.layout.rendered import MarkdownReader, PieceKind, highlight
from tests.ui.contrast import contrast

ANSWER = """# Title

Some *text* with `code`
over two lines.

- one
- two

  more of two

```python
def f():
    return 1
```

| a | b |
|---|---|
| 1 | 2 |

> quoted
"""


def read(text: str) -> MarkdownReader:
    reader = MarkdownReader()
    reader.update(text)
    return reader


def html(text: str) -> str:
    return "".join(piece.html for piece in read(text).pieces)


def test_one_piece_for_each_block() -> None:
    pieces = read(ANSWER).pieces
    assert [piece.html[:4] for piece in pieces] == ["<h1>", "<p>S", "<ul>", "<pre", "<tab", "<blo"]
    assert pieces[3].kind is PieceKind.CODE
    assert (pieces[3].code, pieces[3].language) == ("def f():\n    return 1", "python")


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "text <img src=x onerror=y> text",
        '<a href="https://example.org">x</a>',
        "<style>p { background: url(https://example.org) }</style>",
    ],
)
def test_raw_html_is_shown_not_used(hostile: str) -> None:
    made = html(hostile)
    assert "&lt;" in made
    for tag in ("<script", "<img", "<a ", "<style"):
        assert tag not in made


def test_pictures_become_their_description() -> None:
    made = html("![a <cat>](https://example.org/cat.png)")
    assert "<img" not in made and "example.org" not in made
    assert "[picture: a &lt;cat&gt;]" in made


def test_script_addresses_are_no_links() -> None:
    assert "<a " not in html("[x](javascript:alert(1))")
    assert '<a href="https://example.org">' in html("[x](https://example.org)")


@given(st.integers(1, 30))
def test_reading_piece_by_piece_gives_the_same(step: int) -> None:
    reader = MarkdownReader()
    for end in range(step, len(ANSWER) + step, step):
        reader.update(ANSWER[:end])
    assert reader.pieces == read(ANSWER).pieces


def test_what_is_settled_is_not_read_again() -> None:
    reader = MarkdownReader()
    reader.update("a\n\nb\n\nc")
    settled = reader.pieces[:2]
    assert reader.update("a\n\nb\n\nc d\n\ne") == 2
    assert all(old is new for old, new in zip(settled, reader.pieces, strict=False))


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_ends_of_all_kinds(ending: str) -> None:
    reader = MarkdownReader()
    text = ending.join(["a", "", "b", "", "c"])
    for end in range(1, len(text) + 1):
        reader.update(text[:end])
    assert [piece.html for piece in reader.pieces] == ["<p>a</p>", "<p>b</p>", "<p>c</p>"]


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_highlighted_code_is_legible_and_escaped(palette: Palette) -> None:
    code = '@x\ndef f(a):\n    # why <b>\n    return "s" + 1 and a\n'
    made = highlight(code, "python", palette)
    assert "<b>" not in made and "&lt;b&gt;" in made
    colours = {part[:7] for part in made.split("color: ")[1:]}
    assert len(colours) >= 4
    assert min(contrast(colour, palette.panel) for colour in colours) >= 4.5


def test_an_unknown_language_stays_plain() -> None:
    assert highlight("a < b", "no-such-language", LIGHT) == "a &lt; b"
