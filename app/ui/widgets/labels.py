"""Labels and texts: elided ones, ones that give way, ones in a fixed pitch, tooltips."""

from __future__ import annotations

import re
import textwrap
from html import escape

from PySide6 import QtGui
from PySide6.QtCore import QEvent, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QStackedLayout, QStyle, QWidget

from app.ui.theme import Theme


def as_text(words: str) -> str:
    """A tooltip that shows exactly these words. Qt treats text that looks like HTML as HTML: a file name
    could look like a different one, or load a picture."""
    return (
        f'<p style="white-space:pre-wrap">{escape(words)}</p>' if QtGui.Qt.mightBeRichText(words) else words
    )


NBSP, _JOINER, _BREAK = "\u00a0", "\u2060", "\u200b"  # the others have no width
_UNIT = re.compile(r"(?<=\d) (?=%|(?:[µm]?s|min|h|d|[kMGT]?i?B|bits?|tok/s|tokens?|rounds?|cold|runs?)\b)")
_RANGE = re.compile(r"(?<=[\d×]) to (?=\d)")
_RATE = re.compile(r"\b(tok|tokens)/(?=s\b)")
_SPEC = re.compile(r"--\w[\w-]*|[\w.:=+-]*\b(?:draft|ngram|prompt)-\w[\w.:=+-]*")


def whole(text: str, *, selectable: bool = False) -> str:
    """A text whose lines do not end between a number and its unit, nor at a hyphen of an option or of a
    strategy's name. A strategy may continue on the next line after : or +. `selectable`: only with spaces,
    for copies."""
    text = _RANGE.sub(f"{NBSP}to{NBSP}", _UNIT.sub(NBSP, text))
    return text if selectable else _SPEC.sub(_spec, _RATE.sub(rf"\1/{_JOINER}", text))


def _spec(found: re.Match[str]) -> str:
    return re.sub("[:+]", rf"\g<0>{_BREAK}", found[0].replace("-", f"-{_JOINER}"))


class WrappedLabel(QLabel):
    """A label of several lines, which are `whole`."""

    def __init__(self, text: str = "", parent: QWidget | None = None, *, selectable: bool = False) -> None:
        super().__init__(parent)
        self._text = ""
        self._selectable = selectable
        self.setWordWrap(True)
        self.setText(text)

    def text(self) -> str:
        return self._text

    def setText(self, text: str) -> None:  # noqa: N802
        if self.accessibleName() in ("", self._text) and "<" not in text:
            self.setAccessibleName(text)  # a screen reader would get the joiners too
        self._text = text
        super().setText(whole(text, selectable=self._selectable))

    def clear(self) -> None:
        self.setText("")


class GivingLabel(QLabel):
    """One line of plain text. It wants the width of its text, but can be as narrow as the layout makes it."""

    def __init__(self, text: str = "", mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight) -> None:
        super().__init__(text)
        self._mode = mode
        self._shorter: tuple[str, ...] = ()  # instead of the text, if that has too little room
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def set_text(self, text: str, *shorter: str) -> None:
        """Show a text, or if it has too little room the first of shorter ones that fits."""
        self._shorter = shorter
        self.setText(text)
        self.setAccessibleName(text)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        rect, metrics = self.contentsRect(), self.fontMetrics()
        texts = self.text(), *self._shorter
        fitting = (text for text in texts if metrics.horizontalAdvance(text) <= rect.width())
        text = metrics.elidedText(next(fitting, texts[-1]), self._mode, rect.width())
        painter = QPainter(self)
        flags = QStyle.visualAlignment(self.layoutDirection(), self.alignment())
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(rect, flags | Qt.TextFlag.TextSingleLine, text)


class ElidedLabel(GivingLabel):
    """A giving label that asks for no width of its own."""

    def __init__(
        self, mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight, *, text: str = "", role: str = ""
    ) -> None:
        """`role` is one of the style sheet's."""
        super().__init__("", mode)
        if role:
            self.setProperty("role", role)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        if text:
            self.set_text(text)


class ElidedButton(QPushButton):
    """A button as wide as its row, its text cut if it does not fit; the tooltip has the whole text."""

    def __init__(self, text: str, mode: Qt.TextElideMode = Qt.TextElideMode.ElideMiddle) -> None:
        super().__init__()
        self._full, self._mode = text, mode
        self.setAccessibleName(text)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setText(text.replace("&", "&&"))  # else Qt takes the letter after it for a key

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        room = event.size().width() - 2 * self.fontMetrics().height()
        shown = self.fontMetrics().elidedText(self._full, self._mode, room)
        self.setText(shown.replace("&", "&&"))


class SteadyLabel(QLabel):
    """One line of plain text. It has the size of its widest text and keeps it while only digits change, which
    are all equally wide. A label of a fixed size does not ask its layout for room."""

    def __init__(self, role: str = "") -> None:
        """`role` is one of the style sheet's."""
        super().__init__()
        self._pattern = ""
        self.setProperty("role", role)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.set_text("")

    def set_text(self, text: str, widest: str = "") -> None:
        """Show a text, with room for the text `widest`, which is by default the same."""
        self.setText(text)
        pattern = re.sub(r"\d", "0", widest or text)
        if pattern != self._pattern:
            self._pattern = pattern
            self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit()

    def _fit(self) -> None:
        metrics = self.fontMetrics()
        self.setFixedSize(metrics.horizontalAdvance(self._pattern) + 2, metrics.height())


PADDING = 8


_BREAKS = re.compile(f"({_BREAK}| +)")


def _breakable(word: str) -> str:
    """A word that is too long for a line, which may end at a no-break space or after a semicolon."""
    return word.replace(NBSP, " ").replace(";", f";{_BREAK}")


class MonoText(QWidget):
    """Lines do not break at hyphens, unlike in a label, so options of a command stay whole."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._text = ""
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self._refresh)

    def text(self) -> str:
        return self._text

    def set_text(self, text: str) -> None:
        """Show a text. Words joined by a no-break space stay together if they fit into a line."""
        if text != self._text:
            self._text = text
            self.setAccessibleName(text)
            self._refresh()

    def lines(self, width: int) -> list[str]:
        """The text, broken into lines for a width in pixels."""
        across = max(1, (width - 2 * PADDING) // max(1, self._metrics().horizontalAdvance("0")))
        joined = (word if len(word) <= across else _breakable(word) for word in self._text.split(" "))
        wrapper = textwrap.TextWrapper(across, break_on_hyphens=False)
        wrapper.wordsep_simple_re = _BREAKS
        return [line.replace(_BREAK, "") for line in wrapper.wrap(" ".join(joined))]

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return len(self.lines(width)) * self._metrics().height() + 2 * PADDING

    def sizeHint(self) -> QSize:
        return QSize(300, self.heightForWidth(300))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self._metrics().height() + 2 * PADDING)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(colours.line))
        painter.setBrush(QColor(colours.panel))
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 6, 6)
        painter.setFont(self._theme.mono(-1))
        painter.setPen(QColor(colours.text))
        height = self._metrics().height()
        place = QRect(PADDING, PADDING, self.width() - PADDING, height)
        for line in self.lines(self.width()):
            painter.drawText(place, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, line)
            place.translate(0, height)

    def _metrics(self) -> QFontMetrics:
        return QFontMetrics(self._theme.mono(-1), self)

    def _refresh(self) -> None:
        self.updateGeometry()
        self.update()


class OneOf(QStackedLayout):
    """A stack that takes no more room than its largest label; Qt's own layout grows as far as it can. The
    labels need a parent beforehand: the first is shown at once."""

    def expandingDirections(self) -> Qt.Orientation:  # noqa: N802
        return Qt.Orientation(0)
