"""An answer as rendered Markdown: a text document for each block, laid out once it comes into view."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from html import escape
from typing import Any, cast

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType
from pygments.util import ClassNotFound
from PySide6.QtCore import QByteArray, QPointF, QRectF, Qt, QUrl
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QColor,
    QPainter,
    QPalette,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
)

from app.ui.theme import Palette
from app.ui.transcript.layout.styles import Marks, Setting, wash
from app.ui.transcript.text.folds import ReasoningFold, paint_rule
from app.ui.transcript.text.paragraphs import Kind, from_utf16, to_utf16
from app.ui.transcript.text.spans import Span


def highlight(code: str, language: str, palette: Palette) -> str:
    """`code` with its parts in <span>s; plain if the language is unknown."""
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
        """Read the whole text so far, which begins with the earlier text; returns the index of the first
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


_PADDING = 12  # around code


class RenderedText:
    """The rendered blocks of an answer; when it grows, only the changed blocks are made again."""

    def __init__(self, fold: ReasoningFold | None = None) -> None:
        """`fold` is the fold that hides the blocks."""
        self._fold = fold
        self._reader = MarkdownReader()
        self.blocks: list[RenderedBlock] = []

    def update(self, text: str) -> int:
        """Take the whole text so far; returns the index of the first block that changed."""
        first = self._reader.update(text)
        pieces = self._reader.pieces
        self.blocks[first:] = [RenderedBlock(piece, self._fold) for piece in pieces[first:]]
        return first


class SealedDocument(QTextDocument):
    """A document that loads no file and no address, even if the text asks for one."""

    def loadResource(self, type: int, name: QUrl | str) -> object:  # noqa: N802
        return QByteArray()


class RenderedBlock:
    """A paragraph, heading, list, table or code block of rendered Markdown."""

    joint = "\n\n"
    runs_on = False

    def __init__(self, piece: MarkdownPiece, fold: ReasoningFold | None = None) -> None:
        self._piece = piece
        self.fold = fold
        self._document: QTextDocument | None = None
        self._text: str | None = None

    @property
    def text(self) -> str:
        if self._text is None:
            document = QTextDocument()
            document.setHtml(self._piece.html)
            self._text = document.toPlainText()
        return self._text

    @property
    def hidden(self) -> bool:
        return self.fold is not None and self.fold.folded

    @property
    def laid_out(self) -> bool:
        return self._document is not None

    def estimate(self, setting: Setting) -> int:
        if self.hidden:
            return 0
        lines = self._piece.source.count("\n") + 1
        style = setting.styles.texts[self._kind]
        wrapped = int(len(self._piece.source) * style.character / setting.width)
        return style.pitch * max(lines, wrapped) + self._padding * 2 + setting.styles.empty_line

    def measure(self, setting: Setting) -> int:
        document = self._made(setting)
        return round(document.size().height()) + self._padding * 2 + setting.styles.empty_line

    def drop(self) -> None:
        self._document = None

    def paint(self, painter: QPainter, setting: Setting, marks: Marks) -> None:
        document = self._made(setting)
        palette = setting.styles.palette
        if self._padding:
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QColor(palette.line))
            painter.setBrush(QColor(palette.panel))
            height = document.size().height() + self._padding * 2
            painter.drawRoundedRect(QRectF(0.5, 0.5, setting.width - 1, height - 1), 6, 6)
            painter.restore()
        context = QAbstractTextDocumentLayout.PaintContext()
        roles = context.palette
        ink = palette.secondary if self.fold is not None else palette.text
        roles.setColor(QPalette.ColorRole.Text, QColor(ink))
        context.palette = roles
        context.selections = self._selections(document, marks, palette)
        painter.save()
        painter.translate(self._padding, self._padding)
        document.documentLayout().draw(painter, context)
        painter.restore()
        if self.fold is not None:
            paint_rule(painter, palette, self.measure(setting))

    def offset_at(self, point: QPointF) -> int:
        if self._document is None:
            return 0
        inside = point - QPointF(self._padding, self._padding)
        units = self._document.documentLayout().hitTest(inside, Qt.HitTestAccuracy.FuzzyHit)
        return from_utf16(self.text, max(units, 0))

    def token_at(self, point: QPointF) -> Span | None:
        return None

    def token_rects(self, token: Span) -> list[QRectF]:
        return []

    def rects(self, first: int, end: int) -> list[QRectF]:
        """The rectangle of the range's first line, because callers need the place where something begins."""
        if self._document is None:
            return []
        start = self._cursor(self._document, first, first)
        box = self._line_box(start)
        if box is None:
            return []
        stop = self._line_box(self._cursor(self._document, end, end))
        if stop is not None and stop.top() == box.top():
            box.setRight(stop.left())
        return [box]

    def end_rect(self) -> QRectF:
        if self._document is None:
            return QRectF()
        cursor = QTextCursor(self._document)
        cursor.movePosition(QTextCursor.MoveOperation.End)
        return self._line_box(cursor) or QRectF()

    def _line_box(self, cursor: QTextCursor) -> QRectF | None:
        """The rectangle from a cursor to the end of its line."""
        block = cursor.block()
        line = block.layout().lineForTextPosition(cursor.positionInBlock())
        if self._document is None or not line.isValid():
            return None
        box = self._document.documentLayout().blockBoundingRect(block)
        inside, _ = cast(tuple[float, int], line.cursorToX(cursor.positionInBlock()))
        left = box.left() + inside + self._padding
        top = box.top() + line.y() + self._padding
        return QRectF(left, top, max(1.0, line.naturalTextWidth() - inside), line.height())

    @property
    def _kind(self) -> Kind:
        return Kind.CODE if self._piece.kind is PieceKind.CODE else Kind.PROSE

    @property
    def _padding(self) -> int:
        return _PADDING if self._piece.kind is PieceKind.CODE else 0

    def _made(self, setting: Setting) -> QTextDocument:
        if self._document is None:
            document = SealedDocument()
            document.setUndoRedoEnabled(False)
            document.setDocumentMargin(0)
            document.setDefaultFont(setting.styles.texts[self._kind].font)
            document.setDefaultStyleSheet(_style_sheet(setting))
            document.setHtml(self._piece.coloured(setting.styles.palette))
            document.setTextWidth(setting.width - self._padding * 2)
            self._document = document
            self._text = document.toPlainText()
        return self._document

    def _selections(
        self, document: QTextDocument, marks: Marks, palette: Palette
    ) -> list[QAbstractTextDocumentLayout.Selection]:
        made = []
        veil = wash(palette)
        for found in marks.found:
            made.append(self._selection(document, found, veil, palette.text))
        if marks.selected is not None:
            made.append(self._selection(document, marks.selected, veil, palette.text))
        if marks.current is not None:
            ground = QColor(palette.text)
            made.append(self._selection(document, marks.current, ground, palette.ground))
        return made

    def _selection(
        self, document: QTextDocument, range_: tuple[int, int], ground: QColor, ink: str
    ) -> QAbstractTextDocumentLayout.Selection:
        look = QTextCharFormat()
        look.setBackground(ground)
        look.setForeground(QColor(ink))
        selection = QAbstractTextDocumentLayout.Selection()
        selection.cursor = self._cursor(document, *range_)
        selection.format = look
        return selection

    def _cursor(self, document: QTextDocument, first: int, end: int) -> QTextCursor:
        last = document.characterCount() - 1
        cursor = QTextCursor(document)
        cursor.setPosition(min(to_utf16(self.text, first), last))
        keep = QTextCursor.MoveMode.KeepAnchor
        cursor.setPosition(min(to_utf16(self.text, end), last), keep)
        return cursor


def _style_sheet(setting: Setting) -> str:
    styles = setting.styles
    palette = styles.palette
    prose = styles.texts[Kind.PROSE].font
    code = styles.texts[Kind.CODE].font
    size = prose.pointSizeF()
    return "\n".join(
        (
            "p, li { line-height: 150%; margin: 0; }",
            "ul, ol { margin: 0; }",
            "pre { margin: 0; white-space: pre-wrap; line-height: 140%;"
            f" font-family: '{code.family()}'; font-size: {code.pointSizeF()}pt; }}",
            f"code {{ font-family: '{code.family()}'; font-size: {code.pointSizeF()}pt; }}",
            f"h1 {{ font-size: {size + 5}pt; font-weight: 600; margin: 0; }}",
            f"h2 {{ font-size: {size + 3}pt; font-weight: 600; margin: 0; }}",
            f"h3 {{ font-size: {size + 1}pt; font-weight: 600; margin: 0; }}",
            f"h4, h5, h6 {{ font-size: {size}pt; font-weight: 600; margin: 0; }}",
            f"a {{ color: {palette.text}; text-decoration: underline; }}",
            f"blockquote {{ color: {palette.secondary}; margin: 0 0 0 16px; }}",
            f"table {{ border-color: {palette.line}; border-collapse: collapse; }}",
            f"th {{ font-weight: 600; background: {palette.panel}; }}",
        )
    )
