"""Code in quiet colours, as HTML. None of them is the colour of a fate."""

from __future__ import annotations

from functools import lru_cache
from html import escape

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType
from pygments.util import ClassNotFound

from app.ui.theme import Palette


def highlight(code: str, language: str, palette: Palette) -> str:
    """`code` with its parts in <span>s; plain where the language is unknown."""
    lexer = _lexer(language)
    if lexer is None:
        return escape(code)
    styles = _styles(palette)
    parts: list[str] = []
    for kind, text in lexer.get_tokens(code):
        style = _style_of(kind, styles)
        parts.append(f'<span style="{style}">{escape(text)}</span>' if style else escape(text))
    return "".join(parts).rstrip("\n")


@lru_cache(maxsize=32)
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=4)
def _styles(palette: Palette) -> dict[_TokenType, str]:
    return {
        Comment: f"color: {palette.secondary}; font-style: italic",
        Keyword: f"color: {palette.keyword}",
        Operator.Word: f"color: {palette.keyword}",
        String: f"color: {palette.string}",
        Number: f"color: {palette.number}",
        Name.Function: "font-weight: 500",
        Name.Class: "font-weight: 500",
        Name.Decorator: f"color: {palette.secondary}",
    }


def _style_of(kind: _TokenType, styles: dict[_TokenType, str]) -> str:
    """The style of a kind of token or of the nearest kind above it."""
    at: _TokenType | None = kind
    while at is not None:
        if at in styles:
            return styles[at]
        at = at.parent
    return ""
