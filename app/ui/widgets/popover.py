"""A panel that opens beside a control, inside the window. The rest of the window stays usable."""

from __future__ import annotations

from PySide6 import QtGui
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtWidgets import QAbstractButton, QApplication, QRadioButton, QWidget
from shiboken6 import isValid

from app.ui.theme import Theme
from app.ui.theme.rings import FocusBefore, by_mouse
from app.ui.widgets import kit

SHADOW = 16  # room around the card, in pixels
MARGIN = 8  # between the card and the window's edge
PADDING = 16
WIDTH = 480


class Popover(QWidget):
    """A card over the window: closes on Escape, on a click elsewhere, and when its control is gone.

    It belongs to the window of the control that it opened from and keeps the focus until it closes: Tab stays
    inside. Then the focus returns to where it was.
    """

    opened = Signal()
    closed = Signal()

    def __init__(
        self,
        theme: Theme,
        content: QWidget,
        width: int = WIDTH,
        head: QWidget | None = None,
        field: QWidget | None = None,
    ) -> None:
        """`width` is the card's, in pixels at text scale 1; `head` keeps its place above the rest; `field`
        gets the focus when it opens."""
        super().__init__()
        self._theme = theme
        self._content = content
        self._head = head
        self._field = field
        self._before = FocusBefore(self)
        self._card_width = width
        self._anchor: QWidget | None = None
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.hide()
        self._scroll = kit.scroll("")
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inner = QWidget(self)
        inner.hide()
        inner_layout = kit.column(
            content, kit.Spring(), margins=(PADDING, PADDING, PADDING, PADDING), on=inner
        )
        self._inner = inner
        edge = SHADOW + 1  # the card's own border
        layout = kit.column(margins=(edge, edge, edge, edge), spacing=0, on=self)
        if head is not None:
            head.setContentsMargins(PADDING, PADDING, PADDING, PADDING // 2)
            inner_layout.setContentsMargins(PADDING, PADDING // 2, PADDING, PADDING)
            layout.addWidget(head)
            head.installEventFilter(self)
        layout.addWidget(self._scroll)
        inner.installEventFilter(self)
        theme.changed.connect(self._follow)

    @property
    def content(self) -> QWidget:
        return self._content

    def open_by(self, button: QAbstractButton) -> None:
        """Let a button open and close the panel; it is checked meanwhile."""
        self.setParent(button)  # deleted with the button; once opened it belongs to the window
        button.setCheckable(True)
        button.clicked.connect(lambda on: self.open_below(button) if on else self.close_panel())
        self.closed.connect(lambda: button.setChecked(False) if isValid(button) else None)
        button.destroyed.connect(self._abandon)

    def open_below(self, anchor: QWidget) -> None:
        """Open below a control, or above it if there is room only there, and take the focus."""
        window = anchor.window()
        if self.parentWidget() is not window:
            self.setParent(window)
            window.installEventFilter(self)
        self._anchor = anchor
        spoken = QtGui.QAccessible.queryAccessibleInterface(anchor)
        self._scroll.setAccessibleName(spoken.text(QtGui.QAccessible.Text.Name))
        self._before.remember()
        if self._scroll.widget() is None:  # not before it opens: Qt lays out what it scrolls
            self._scroll.setWidget(self._inner)
        self._scroll.verticalScrollBar().setValue(0)
        self.show()
        self._place()
        self.raise_()
        # Opened by a click: Tab still finds the first control, but no focus ring is shown.
        first = None if by_mouse(anchor) else next(filter(QWidget.isVisible, self._controls()), None)
        (self._field or first or self).setFocus(Qt.FocusReason.PopupFocusReason)
        self.opened.emit()

    def close_panel(self) -> None:
        """Close, and give the focus back if the panel had it."""
        if not self.isHidden():
            self._before.give_back(self._anchor)
            self.hide()

    def _abandon(self) -> None:
        """Close, because the button is gone, perhaps while the panel was open."""
        self._anchor = None
        self.close_panel()
        self.deleteLater()

    # ------------------------------------------------------------------ events

    def showEvent(self, event: QtGui.QShowEvent) -> None:
        super().showEvent(event)
        application = QApplication.instance()
        if application is not None:
            application.installEventFilter(self)  # only while open: it sees every event there is

    def hideEvent(self, event: QtGui.QHideEvent) -> None:
        super().hideEvent(event)
        application = QApplication.instance()
        if application is not None:
            application.removeEventFilter(self)
        if self.isHidden():  # not just because its window was hidden
            self.closed.emit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        grown = watched in (self._inner, self._head) and kind == QEvent.Type.LayoutRequest
        resized = watched is self.parentWidget() and kind == QEvent.Type.Resize
        moved = kind in (QEvent.Type.Move, QEvent.Type.Resize) and self._holds_anchor(watched)
        if resized:
            self._follow()
        elif moved or grown:
            self._place()
        elif watched is self._anchor and kind == QEvent.Type.Hide and not event.spontaneous():
            if self.window().isVisible():  # another place is shown
                self.close_panel()
        elif kind == QEvent.Type.MouseButtonPress and isinstance(watched, QWidget):
            assert isinstance(event, QtGui.QMouseEvent)
            if self.isVisible() and self._is_outside(watched, event.globalPosition().toPoint()):
                self.close_panel()
        return False

    def event(self, event: QEvent) -> bool:
        shortcut = event.type() == QEvent.Type.ShortcutOverride
        if shortcut and isinstance(event, QtGui.QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()  # a window-wide shortcut on Escape (stop) would come first otherwise
            return True
        return super().event(event)

    def mousePressEvent(self, event: QtGui.QMouseEvent) -> None:
        event.accept()  # not meant for what is below the panel

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close_panel()
        # Anything else that no control of the panel took is not meant for what is below the panel.

    def focusNextPrevChild(self, forward: bool) -> bool:  # noqa: N802
        controls = [control for control in self._controls() if control.isVisible()]
        if not controls:
            return False
        current = QApplication.focusWidget()
        step = 1 if forward else -1
        place = controls.index(current) + step if current in controls else 0
        target = controls[place % len(controls)]
        target.setFocus(Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason)
        if self._inner.isAncestorOf(target):
            self._scroll.ensureWidgetVisible(target, 0, PADDING)
        return True

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QtGui.QPainter(self)
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        card = QRectF(self.rect()).adjusted(SHADOW, SHADOW, -SHADOW, -SHADOW)
        painter.setPen(Qt.PenStyle.NoPen)
        shade = QtGui.QColor(0, 0, 0, 12 if colours.dark else 3)
        for spread in range(SHADOW - 4, 0, -2):
            painter.setBrush(shade)
            painter.drawRoundedRect(
                card.adjusted(-spread, -spread + 4, spread, spread + 4), 8 + spread, 8 + spread
            )
        painter.setBrush(QtGui.QColor(colours.raised))
        painter.setPen(QtGui.QPen(QtGui.QColor(colours.edge), 1))
        painter.drawRoundedRect(card.adjusted(0.5, 0.5, -0.5, -0.5), 10, 10)
        if self._head is not None and self._scroll.verticalScrollBar().isVisible():
            bottom = self._scroll.y() - 1
            painter.fillRect(QRectF(card.left() + 1, bottom, card.width() - 2, 1), QtGui.QColor(colours.line))

    # ------------------------------------------------------------------ inside

    def _follow(self) -> None:
        """Go where the control is now, and again where it is once the window is laid out."""
        self._place()
        QTimer.singleShot(0, self, self._place)

    def _holds_anchor(self, watched: QObject) -> bool:
        """Whether the control moves with this widget."""
        anchor = self._anchor
        if anchor is None or not isinstance(watched, QWidget):
            return False
        return watched is anchor or (watched is not self.parentWidget() and watched.isAncestorOf(anchor))

    def _place(self) -> None:
        """Below the control or above it, as high as its contents, inside the window."""
        window = self.parentWidget()
        if window is None or self._anchor is None or self.isHidden():
            return
        width = min(round(self._card_width * self._theme.scale), window.width() - 2 * MARGIN)
        corner = self._anchor.mapTo(window, QPoint(0, self._anchor.height()))
        top = corner.y() + MARGIN
        height = _height(self._inner, width - 2) + 2
        if self._head is not None:
            height += _height(self._head, width - 2)
        room = window.height() - top - MARGIN
        room_above = corner.y() - self._anchor.height() - 2 * MARGIN
        is_above = room < height and room < room_above
        if is_above:
            room = room_above
        # By default the bar stays once it is shown: it takes width, so that lines wrap and need it.
        bar = Qt.ScrollBarPolicy
        self._scroll.setVerticalScrollBarPolicy(
            bar.ScrollBarAsNeeded if height > room else bar.ScrollBarAlwaysOff
        )
        height = min(height, room)
        if is_above:
            top = room_above + MARGIN - height
        left = max(MARGIN, min(corner.x(), window.width() - width - MARGIN))
        card = QRect(left, top, width, height)
        self.setGeometry(card.adjusted(-SHADOW, -SHADOW, SHADOW, SHADOW))

    def _is_outside(self, watched: QWidget, place: QPoint) -> bool:
        """Whether a press there is beside the card, in its own window. Menus and combo lists that the panel
        opened are windows of their own and do not count."""
        card = self.rect().adjusted(SHADOW, SHADOW, -SHADOW, -SHADOW)
        if watched.window() is not self.window() or card.contains(self.mapFromGlobal(place)):
            return False
        anchor = self._anchor
        # The control itself closes its panel when it is pressed again.
        return anchor is None or not anchor.rect().contains(anchor.mapFromGlobal(place))

    def _controls(self) -> list[QWidget]:
        """The controls that Tab visits, in the order of the layout; the head, which acts, comes last."""
        # Not by nextInFocusChain: PySide treats each widget as the owner of the next one, and where one
        # is deleted, it drops all those after it, the window included.
        found: list[QWidget] = []
        parts = [self._inner] if self._head is None else [self._inner, self._head]
        for control in (widget for part in parts for widget in part.findChildren(QWidget)):
            takes_tab = bool(control.focusPolicy() & Qt.FocusPolicy.TabFocus)
            usable = control.isEnabled() and not control.focusProxy()
            if takes_tab and usable and not _is_other_choice(control):
                found.append(control)
        return found


def _height(widget: QWidget, width: int) -> int:
    """The height that a widget with a layout needs at that width."""
    layout = widget.layout()
    assert layout is not None
    wanted = layout.totalHeightForWidth(width) if layout.hasHeightForWidth() else 0
    return max(wanted, layout.totalMinimumSize().height())


def _is_other_choice(widget: QWidget) -> bool:
    """Whether this is a radio button beside the chosen one: Tab visits only that."""
    if not isinstance(widget, QRadioButton) or widget.isChecked():
        return False
    group = widget.group()
    # Qt gives None if there is none, whatever its annotations say.
    return bool(group) and bool(group.checkedButton())
