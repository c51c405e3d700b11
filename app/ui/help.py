"""Help (F1): every word, key and folder of the window, and its libraries.

Words come from `instruments/definitions.py` and the columns of reports, like the tooltips. Keys come from the
window's actions and the places' tables of keys.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from urllib.parse import quote

from PySide6.QtCore import QEvent, QObject, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractSlider, QApplication, QFrame, QTextBrowser, QWidget

from app import __version__
from app.base.paths import Paths
from app.ui.instruments.definitions import GLOSSARY
from app.ui.theme import Theme
from app.ui.theme.rings import FocusBefore
from app.ui.widgets import kit
from app.ui.widgets.access import announce
from app.ui.widgets.icons import FieldIcons, IconButton

TITLES = {"words": "Words", "keys": "Keys", "files": "Files", "about": "About"}
"""The sections by name."""

_FIGURES = {
    "inter_token": "between tokens",
    "draft_length": "draft length",
    "acc_per_pos": "acc per pos",
    "acceptance_by_place": "of drafted there",
    "judged_acceptance_by_place": "of judged there",
    "accepted_per_round": "accepted per round",
    "ranks": "choice, rank",
    "target_entropy": "entropy",
    "strategies": "share of each strategy",
}
"""The columns of reports that are words of the window too, and those words."""

_LICENCES = {
    "PySide6-Essentials": "LGPL 3.0",
    "llama-cpp-python": "MIT, including llama.cpp",
    "numpy": "BSD",
    "msgspec": "BSD",
    "Jinja2": "BSD",
    "pyqtgraph": "MIT",
    "markdown-it-py": "MIT",
    "Pygments": "BSD",
    "platformdirs": "MIT",
    "filelock": "MIT",
    "huggingface-hub": "Apache 2.0",
    "httpx2": "BSD",
}
"""The libraries that Draftscope is made with, and their licences."""


@dataclass(frozen=True, slots=True)
class HelpEntry:
    """A word, a key, a file or a fact, with its explanation."""

    head: str
    text: str
    path: Path | None = None  # a file or a folder that can be opened

    def holds(self, words: Iterable[str]) -> bool:
        """Whether it contains all these words, given in lower case."""
        text = f"{self.head} {self.text}".lower()
        return all(word in text for word in words)


@dataclass(frozen=True, slots=True)
class HelpSection:
    """Entries under a title, such as the keys of a place. `name` is one of TITLES."""

    name: str
    title: str
    entries: tuple[HelpEntry, ...]

    def found(self, typed: str) -> HelpSection:
        """The section with the entries that contain every typed word."""
        words = typed.lower().split()
        return replace(self, entries=tuple(entry for entry in self.entries if entry.holds(words)))


def help_sections(
    keys: Mapping[str, Iterable[tuple[str, str]]], paths: Paths, engine: str
) -> list[HelpSection]:
    """The contents of Help. `keys`: place -> rows (what the keys do, the keys). `engine` says where the
    engine runs."""
    by_place = (
        HelpSection("keys", f"Keys · {where}", entries)
        for where, rows in keys.items()
        if (entries := tuple(HelpEntry(*row) for row in rows))
    )
    return [glossary(), *by_place, _files(paths), _about(engine)]


def glossary() -> HelpSection:
    """The glossary."""
    from app.lab.load.export import LOAD_COLUMNS  # not before Help is opened: it would slow the start
    from app.lab.report.columns import COLUMNS, SHAPE

    columns = (column for column in (*COLUMNS, *SHAPE) if column.key in _FIGURES)
    figures = {_FIGURES[column.key]: column.definition for column in columns}
    figures |= {column.title: column.definition for column in LOAD_COLUMNS if column.title == "goodput"}
    entries = (HelpEntry(*word) for word in (GLOSSARY | figures).items())
    return HelpSection("words", "Words", tuple(entries))


def _files(paths: Paths) -> HelpSection:
    """Where Draftscope writes."""
    places = {
        "Chats, with their traces": paths.chats,
        "Measurements": paths.data / "compare",
        "Settings": paths.settings,
        "Presets": paths.presets,
        "Logs": paths.logs,
    }
    entries = (HelpEntry(what, str(path), path) for what, path in places.items())
    return HelpSection("files", "Files", tuple(entries))


def _about(engine: str) -> HelpSection:
    """Versions and licences."""
    facts = [("Draftscope", f"{__version__} · MIT licence"), ("Engine", engine)]
    facts += [("Python", platform.python_version()), ("System", f"{platform.system()} {platform.release()}")]
    facts += [(name, f"{_version(name)} · {licence}") for name, licence in _LICENCES.items()]
    facts.append(("Inter, JetBrains Mono", "the fonts · SIL Open Font License 1.1"))
    return HelpSection("about", "About", tuple(HelpEntry(*fact) for fact in facts))


def _version(library: str) -> str:
    import importlib.metadata  # brings a parser of e-mails, for which the start of the window waited

    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:  # a bundle may leave out what pip keeps about libraries
        return "bundled"


NOTHING = "Nothing found"


def _page(sections: Sequence[HelpSection], theme: Theme) -> str:
    """The sections that have entries; the first of each name is the anchor of that name."""
    parts, named = [], set[str]()
    for section in sections:
        if section.entries:
            anchor = "" if section.name in named else f'<a name="{section.name}"></a>'
            named.add(section.name)
            parts.append(f'<p class="title">{anchor}{escape(section.title)}</p>')
            parts.append(_table(section) if section.name != "words" else _list(section))
    body = "".join(parts) or f'<p class="text">{NOTHING}</p>'
    return f"<style>{_style(theme)}</style>{body}"


def _list(section: HelpSection) -> str:
    return "".join(
        f'<p class="head">{escape(entry.head)}</p><p class="text">{_lines(entry.text)}</p>'
        for entry in section.entries
    )


def _table(section: HelpSection) -> str:
    rows = "".join(
        f'<tr><td class="left" width="50%">{escape(entry.head)}</td>'
        f'<td class="right">{_value(entry)}</td></tr>'
        for entry in section.entries
    )
    return f'<table width="100%" cellspacing="0" cellpadding="0" class="table">{rows}</table>'


def _value(entry: HelpEntry) -> str:
    if entry.path is None:
        return _lines(entry.text)
    link = quote(str(entry.path), safe="")
    links = f'<a href="open:{link}">Open</a> &nbsp; <a href="copy:{link}">Copy</a>'
    return f"{_lines(entry.text)}<br>{links}"


def _lines(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def _style(theme: Theme) -> str:
    colours, grid = theme.palette, round(8 * theme.scale)
    title = theme.sans(1.5).pointSizeF()
    return f"""
        p {{ margin: 0; }}
        a {{ color: {colours.link}; }}
        .title {{ font-size: {title:.2f}pt; font-weight: 600; color: {colours.text};
            margin-top: {2 * grid}px; margin-bottom: {grid}px; }}
        .head {{ font-weight: 600; color: {colours.text}; }}
        .text {{ color: {colours.secondary}; margin-bottom: {grid}px; }}
        .table {{ margin-top: {grid}px; }}
        .left {{ color: {colours.text}; padding-bottom: {grid}px; padding-right: {grid}px; }}
        .right {{ color: {colours.secondary}; padding-bottom: {grid}px; }}
    """


WIDTH = 440  # pixels at text scale 1
_MOST, _NARROW = 0.45, 0.35  # shares of the window: at most, and at least with large text
_LEAST = 280  # pixels at text scale 1
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
        self, theme: Theme, area: QWidget, otherwise: QWidget, gather: Callable[[], Sequence[HelpSection]]
    ) -> None:
        """It covers a part of `area`. `otherwise` gets the focus if the earlier widget is gone. `gather` is
        called when it is first opened."""
        super().__init__(area)
        self._theme = theme
        self._area = area
        self._otherwise = otherwise
        self._gather = gather
        self._sections: Sequence[HelpSection] = ()
        self._before = FocusBefore(self)
        self.setAccessibleName("Help")
        self.hide()
        self.field = kit.field("Search help", "Search terms, keys and files", typed=self._show_page)
        FieldIcons(theme, self.field, "search")
        self.field.setClearButtonEnabled(not theme.less_motion)  # Qt fades it in
        self.field.installEventFilter(self)
        self.close_button = IconButton(theme, "close", "Close help (Esc)", act=self.close_panel)
        self._titles = {
            name: kit.button(title, kind="flat", name=f"{title} in help") for name, title in TITLES.items()
        }
        self.text = QTextBrowser()
        self.text.setAccessibleName("Help text")
        self.text.setFrameShape(QFrame.Shape.NoFrame)
        self.text.setOpenLinks(False)
        self.text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.text.anchorClicked.connect(self._follow)
        self.note = kit.label("", "caption")  # what was copied
        kit.ground(self, "beside")
        self._lay_out()
        area.installEventFilter(self)
        theme.changed.connect(self._restyle)

    def _lay_out(self) -> None:
        head = kit.row(kit.label("Help", "title"), kit.Spring(1), self.note, self.close_button)
        titles = QWidget()
        row = kit.WrapLayout(titles, 0)
        for name, button in self._titles.items():
            button.clicked.connect(lambda _checked=False, name=name: self.text.scrollToAnchor(name))
            row.addWidget(button)
        sides = 17, 12, 16, 0  # one more on the left: the line
        kit.column(head, self.field, titles, (self.text, 1), margins=sides, spacing=8, on=self)

    # ------------------------------------------------------------------ open and closed

    def toggle(self) -> None:
        """Open it. If it is open, take the focus there; if it has the focus, close it."""
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
        self.field.setFocus(Qt.FocusReason.PopupFocusReason)

    def close_panel(self) -> None:
        """Close it, and give the focus back."""
        self._before.give_back(self._otherwise)
        self.hide()

    # ------------------------------------------------------------------ what it shows

    def _show_page(self) -> None:
        """Show the entries that contain the typed words."""
        found = [section.found(self.field.text()) for section in self._sections]
        self.text.setHtml(_page(found, self._theme))
        for name, button in self._titles.items():
            button.setEnabled(any(section.name == name and section.entries for section in found))
        self.note.clear()
        if self.field.text():
            entries = sum(len(section.entries) for section in found)
            announce(self.field, f"{entries} found" if entries else NOTHING)

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
        """Esc closes. Anything typed goes into the search. No key reaches the widgets below."""
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
        if watched is self._area and event.type() == QEvent.Type.Resize:
            self._fit()
        if watched is self.field and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            scroll = _SCROLLS.get(Qt.Key(event.key()))
            if scroll is not None:  # the page scrolls while its search has the focus
                self.text.verticalScrollBar().triggerAction(scroll)
                return True
        return False

    def _fit(self) -> None:
        width = self._area.width()
        self.setMaximumWidth(round(min(WIDTH * self._theme.scale, width * _MOST)))
        self.setMinimumWidth(round(min(_LEAST * self._theme.scale, width * _NARROW)))

    def _restyle(self) -> None:
        self._fit()
        self.field.setClearButtonEnabled(not self._theme.less_motion)
        if not self.isHidden():
            at = self.text.verticalScrollBar().value()
            self.text.document().setDefaultFont(self._theme.sans())
            self._show_page()
            self.text.verticalScrollBar().setValue(at)
