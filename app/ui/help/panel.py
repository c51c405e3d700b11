"""The panel of Help, over the right side of the place that is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QGuiApplication, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractSlider,
    QApplication,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from app.ui.help.page import NOTHING, page
from app.ui.help.sections import TITLES, HelpSection
from app.ui.theme import Theme
from app.ui.theme.rings import FocusBefore
from app.ui.theme.style import set_role
from app.ui.widgets.announce import announce
from app.ui.widgets.icons import IconButton

WIDTH = 440  # pixels at text scale 1
_SCROLLS = {
    Qt.Key.Key_Up: QAbstractSlider.SliderAction.SliderSingleStepSub,
    Qt.Key.Key_Down: QAbstractSlider.SliderAction.SliderSingleStepAdd,
    Qt.Key.Key_PageUp: QAbstractSlider.SliderAction.SliderPageStepSub,
    Qt.Key.Key_PageDown: QAbstractSlider.SliderAction.SliderPageStepAdd,
}


def open_path(path: str) -> None:
    """Show a folder, or open a file, as the system does."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(path))


class HelpPanel(QWidget):
    """Words, keys, files and about, searched by typing. Esc closes it and gives the focus back."""

    def __init__(
        self,
        theme: Theme,
        area: QWidget,
        otherwise: QWidget,
        gather: Callable[[], Sequence[HelpSection]],
    ) -> None:
        """`area` is what it lies over, in the same parent; `otherwise` gets the focus where what had it is
        gone; `gather` is asked when it is first opened."""
        super().__init__(area.parentWidget())
        self._theme = theme
        self._area = area
        self._otherwise = otherwise
        self._gather = gather
        self._sections: Sequence[HelpSection] = ()
        self._before = FocusBefore(self)
        self.setAccessibleName("Help")
        self.hide()
        self.field = QLineEdit()
        self.field.setPlaceholderText("Search words, keys and files")
        self.field.setAccessibleName("Search help")
        self.field.setClearButtonEnabled(not theme.less_motion)  # Qt fades it in
        self.field.textChanged.connect(self._show_page)
        self.field.installEventFilter(self)
        self.close_button = IconButton(theme, "close", "Close help (Esc)")
        self.close_button.clicked.connect(self.close_panel)
        self._titles = {name: QPushButton(title) for name, title in TITLES.items()}
        self.text = QTextBrowser()
        self.text.setAccessibleName("Help text")
        self.text.setFrameShape(QFrame.Shape.NoFrame)
        self.text.setOpenLinks(False)
        self.text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.text.anchorClicked.connect(self._follow)
        self.note = QLabel()  # what was copied
        self.note.setProperty("role", "caption")
        self._lay_out()
        area.installEventFilter(self)
        theme.changed.connect(self._restyle)

    def _lay_out(self) -> None:
        title = QLabel("Help")
        title.setProperty("role", "title")
        head = QHBoxLayout()
        head.addWidget(title)
        head.addStretch(1)
        head.addWidget(self.note)
        head.addWidget(self.close_button)
        titles = QHBoxLayout()
        titles.setSpacing(0)
        for name, button in self._titles.items():
            set_role(button, kind="flat")
            button.setAccessibleName(f"{button.text()} in help")
            button.clicked.connect(lambda _checked=False, name=name: self.text.scrollToAnchor(name))
            titles.addWidget(button)
        titles.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(17, 12, 16, 0)  # one more on the left: the line
        column.setSpacing(8)
        column.addLayout(head)
        column.addWidget(self.field)
        column.addLayout(titles)
        column.addWidget(self.text, 1)

    # ------------------------------------------------------------------ open and closed

    @Slot()
    def toggle(self) -> None:
        """Open it; where it is open, take the focus there, and where that is, close it."""
        if self.isHidden():
            self.open_at("words")
        elif self.isAncestorOf(QApplication.focusWidget() or self):
            self.close_panel()
        else:
            self._take_focus()

    def open_at(self, section: str) -> None:
        """Open it at the section of that name."""
        if not self._sections:
            self._sections = self._gather()
        self.field.clear()
        self._fit()
        self._take_focus()
        self._restyle()
        self.text.scrollToAnchor(section)

    def _take_focus(self) -> None:
        self._before.remember()
        self.show()
        self.raise_()
        self.field.setFocus(Qt.FocusReason.PopupFocusReason)

    @Slot()
    def close_panel(self) -> None:
        """Close it, and give the focus back."""
        self._before.give_back(self._otherwise)
        self.hide()

    # ------------------------------------------------------------------ what it shows

    @Slot()
    def _show_page(self) -> None:
        """Show the entries in which what was typed stands."""
        found = [section.found(self.field.text()) for section in self._sections]
        self.text.setHtml(page(found, self._theme))
        for name, button in self._titles.items():
            button.setEnabled(any(section.name == name and section.entries for section in found))
        self.note.clear()
        if self.field.text():
            entries = sum(len(section.entries) for section in found)
            announce(self.field, f"{entries} found" if entries else NOTHING)

    @Slot(QUrl)
    def _follow(self, link: QUrl) -> None:
        path = link.path()
        if link.scheme() == "copy":
            QGuiApplication.clipboard().setText(path)
            self.note.setText("Copied")
            announce(self.text, "Copied")
        else:
            open_path(path)

    # ------------------------------------------------------------------ keys and place

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc closes; what is typed anywhere goes into the search. No key is meant for what lies below."""
        if event.key() == Qt.Key.Key_Escape:
            self.close_panel()
        elif event.text().isprintable() and event.text().strip() and not self.field.hasFocus():
            self.field.setFocus(Qt.FocusReason.OtherFocusReason)
            self.field.insert(event.text())

    def focusNextPrevChild(self, forward: bool) -> bool:  # noqa: N802
        """Tab stays inside."""
        stops = [self.field, *self._titles.values(), self.text, self.close_button]
        stops = [stop for stop in stops if stop.isEnabled()]
        now = QApplication.focusWidget()
        at = stops.index(now) + (1 if forward else -1) if now in stops else 0
        reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
        stops[at % len(stops)].setFocus(reason)
        return True

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()  # not meant for what lies below

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._area and event.type() in (QEvent.Type.Resize, QEvent.Type.Move):
            self._fit()
        if watched is self.field and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            scroll = _SCROLLS.get(Qt.Key(event.key()))
            if scroll is not None:  # the page scrolls while its search has the focus
                self.text.verticalScrollBar().triggerAction(scroll)
                return True
        return False

    def _fit(self) -> None:
        over = self._area.geometry()
        over.setLeft(max(over.left(), over.right() + 1 - round(WIDTH * self._theme.scale)))
        self.setGeometry(over)

    @Slot()
    def _restyle(self) -> None:
        self._fit()
        self.field.setClearButtonEnabled(not self._theme.less_motion)
        if not self.isHidden():
            at = self.text.verticalScrollBar().value()
            self.text.document().setDefaultFont(self._theme.sans())
            self._show_page()
            self.text.verticalScrollBar().setValue(at)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.palette.ground)
        painter.fillRect(0, 0, 1, self.height(), self._theme.palette.edge)
