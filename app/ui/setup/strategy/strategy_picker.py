"""A button that shows a strategy, and opens the list of all of them."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import focus_ring, hover
from app.ui.widgets.icons import pixmap

_OPENS = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Down)


class StrategyPicker(QAbstractButton):
    """The name and when the strategy helps; a click, Space, Enter or Down asks to change it."""

    def __init__(self, theme: Theme, name: str, summary: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(f"Strategy {name}")
        self.setAccessibleDescription(summary)
        self.setToolTip("Choose another strategy")
        title = QLabel(name)
        title.setProperty("role", "mono")
        self._chevron = QLabel()
        self.summary = QLabel(summary)
        self.summary.setProperty("role", "caption")
        self.summary.setWordWrap(True)
        head = QHBoxLayout()
        head.setSpacing(6)
        head.addWidget(title)
        head.addWidget(self._chevron)
        head.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 6)
        layout.setSpacing(2)
        layout.addLayout(head)
        layout.addWidget(self.summary)
        for label in (title, self._chevron, self.summary):
            label.setTextFormat(Qt.TextFormat.PlainText)  # a strategy from outside may contain any text
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self._restyle)
        self._restyle()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _OPENS:
            self.click()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if self.isDown() or self.underMouse():
            painter.setBrush(QColor(hover(colours)))
        if ring_shown(self):
            painter.setPen(QPen(QColor(focus_ring(colours)), 2))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)

    def event(self, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Enter, QEvent.Type.Leave):
            self.update()
        return super().event(event)

    def sizeHint(self) -> QSize:
        layout = self.layout()
        assert layout is not None
        return layout.sizeHint()

    @Slot()
    def _restyle(self) -> None:
        side = round(14 * self._theme.scale)
        ratio = self.devicePixelRatio()
        picture = pixmap("chevron-down", self._theme.palette.secondary, round(side * ratio))
        picture.setDevicePixelRatio(ratio)
        self._chevron.setPixmap(picture)
        self.update()
