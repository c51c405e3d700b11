"""Markdown to the HTML subset that Qt shows, a piece for each top-level block, code in quiet colours.

Answers are untrusted text: raw HTML is escaped, pictures become their description, and nothing is ever
loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
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


_NEWLINE = re.compile(r"\r\n?|\n")


class PieceKind(StrEnum):
    TEXT = "text"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class MarkdownPiece:
    """One top-level block."""

    kind: PieceKind
    source: str  # its source
    html: str
    code: str = ""
    language: str = ""

    def coloured(self, palette: Palette) -> str:
        """The HTML with code highlighted."""
        if self.kind is PieceKind.TEXT:
            return self.html
        return f"<pre>{highlight(self.code, self.language, palette)}</pre>"


class MarkdownReader:
    """Reads a growing text; only its last block is read again."""

    def __init__(self) -> None:
        self.pieces: list[MarkdownPiece] = []
        self._settled = 0  # characters before the last piece
        self._markdown = _parser()

    def update(self, text: str) -> int:
        """Take the whole text so far, which begins with the text before; returns the index of the first
        piece that changed."""
        first = max(len(self.pieces) - 1, 0)
        tail = text[self._settled :]
        starts, made = [], []
        lines = [0, *(match.end() for match in _NEWLINE.finditer(tail))]
        for group in _top_level(self._markdown.parse(tail)):
            begin, end = group[0].map or (0, len(lines))
            starts.append(lines[begin])
            stop = lines[end] if end < len(lines) else len(tail)
            made.append(self._piece(group, tail[lines[begin] : stop]))
        self.pieces[first:] = made
        if starts:
            self._settled += starts[-1]
        return first

    def _piece(self, group: Sequence[Token], source: str) -> MarkdownPiece:
        token = group[0]
        if token.type in ("fence", "code_block"):
            language = token.info.split()[0] if token.info.split() else ""
            code = token.content.removesuffix("\n")
            html = f"<pre>{escape(code)}</pre>"
            return MarkdownPiece(PieceKind.CODE, source, html, code, language)
        html = self._markdown.renderer.render(group, self._markdown.options, {}).strip()
        return MarkdownPiece(PieceKind.TEXT, source, html)


def _parser() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    markdown.add_render_rule("image", _description)
    markdown.add_render_rule("table_open", _table)
    return markdown


def _description(_self: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    """Show a picture as its description: loading it would tell its server that it was seen."""
    return escape(f"[picture: {tokens[at].content}]")


def _table(*_: Any) -> str:
    return '<table border="1" cellspacing="0" cellpadding="6">'


def _top_level(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    first = depth = 0
    for index, token in enumerate(tokens):
        depth += token.nesting
        if depth == 0:
            yield tokens[first : index + 1]
            first = index + 1
