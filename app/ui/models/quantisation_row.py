"""One quantisation of a repository: its size, a light for where it would run, and fetching it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QSizePolicy, QWidget

from app.hub.downloads import Download, State, Wanted
from app.hub.fits import Fit, Light
from app.hub.repo import Quantisation, Repo
from app.ui.models.entry_rows import capital, fit_words, joined, share, state_words
from app.ui.models.hub_session import HubSession
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.background import Query
from app.ui.widgets.labels import ElidedLabel, as_text
from app.ui.widgets.words import SPACE, file_size, percent

UNMEASURED = "The free memory is not measured yet"


class _Dot(QWidget):
    """Full: on the GPU. Half: in memory. Three quarters: on both. Crossed: it will not fit. The shape says it
    without colour. While it is not known, there is none: an empty circle would look like a verdict."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._light: Light | None = None
        theme.changed.connect(self.update)

    def set_light(self, light: Light | None) -> None:
        self._light = light
        self.update()

    def sizeHint(self) -> QSize:
        side = round(self.fontMetrics().height() * 0.75)
        return QSize(side, side)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._light is None:
            return
        colours = self._theme.palette
        shade = colours.error if self._light is Light.NOT else colours.good
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        side = self.sizeHint().width() - 2.5
        circle = QRectF(0, 0, side, side)
        circle.moveCenter(QRectF(self.rect()).center())
        painter.setPen(QPen(QColor(shade), 1.5))
        painter.drawEllipse(circle)
        painter.setBrush(QColor(shade))
        if self._light is Light.GPU:
            painter.drawEllipse(circle)
        elif self._light is Light.MEMORY:
            painter.drawPie(circle, 90 * 16, 180 * 16)
        elif self._light is Light.BOTH:
            painter.drawPie(circle, 90 * 16, 270 * 16)
        elif self._light is Light.NOT:
            inset = side * 0.15
            inner = circle.adjusted(inset, inset, -inset, -inset)
            painter.drawLine(inner.bottomLeft(), inner.topRight())


class FitLight(QWidget):
    """Shows where a model would run."""

    def __init__(self, theme: Theme, words: Callable[[Fit], str] = fit_words) -> None:
        """`words` gives a text that fits the room; the tooltip has the whole sentence."""
        super().__init__()
        self._words_of = words
        self._dot = _Dot(theme)
        self.words = kit.label("", "caption")
        kit.row((self._dot, 0, Qt.AlignmentFlag.AlignVCenter), (self.words, 1), spacing=6, on=self)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.set_fit(None)

    def set_fit(self, fit: Fit | None) -> None:
        """Show a light, or (None) that the memory is not known yet."""
        self._dot.set_light(fit.light if fit else None)
        self.words.setText(self._words_of(fit) if fit else SPACE)  # for a second: a line that stays empty
        words = capital(str(fit)) if fit else UNMEASURED
        self.setToolTip(words)
        self.setAccessibleName(words)


def light_words(fit: Fit) -> str:
    """The light alone, in few words."""
    return "GPU and memory" if fit.light is Light.BOTH else capital(fit.light)


class OfferButton(QPushButton):
    """A button for the action that is possible at the moment."""

    def __init__(self, subject: str) -> None:
        """`subject` is added to its words for a screen reader."""
        super().__init__()
        self._subject = subject
        self._offered: Callable[[], object] = lambda: None
        self.clicked.connect(self._act)

    def offer(self, words: str, act: Callable[[], object] | None, tip: str = "") -> None:
        """Offer something; with None nothing can be done now."""
        self._offered = act or (lambda: None)
        self.setText(words)
        self.setToolTip(as_text(tip))
        self.setAccessibleName(f"{words}{self._subject}")
        self.setEnabled(act is not None)

    def _act(self) -> None:
        self._offered()


SIZE_WIDTH, LIGHT_WIDTH, BUTTON_WIDTH = 72, 128, 104  # pixels at text scale 1
WORDLESS = 460  # a row below this width shows the light without words


class QuantisationRow(QFrame):
    """Shows whether a quantisation is here, is being downloaded, or can be fetched."""

    failed = Signal(object)
    """The UserError of a download that was not queued."""
    library_wanted = Signal(object)
    """The path of the file, which is here."""
    downloads_wanted = Signal()

    def __init__(
        self,
        theme: Theme,
        session: HubSession,
        repo: Repo,
        quantisation: Quantisation,
        *,
        tell_file: bool = False,
    ) -> None:
        """With `tell_file` the row names the file, because a second row has the same quantisation."""
        super().__init__()
        self._theme = theme
        self._session = session
        self._repo = repo
        self.quantisation = quantisation
        self._path: Path | None = None
        self._fetching: Query[object] = Query(
            session.askers, lambda _ids: None, self.failed.emit, self.show_progress
        )
        known = quantisation.name != "?" and not tell_file
        name: QLabel = QLabel(quantisation.name) if known else ElidedLabel(Qt.TextElideMode.ElideMiddle)
        if isinstance(name, ElidedLabel):
            name.set_text(joined(quantisation.name.replace("?", ""), quantisation.file))
        name.setTextFormat(Qt.TextFormat.PlainText)
        name.setProperty("role", "strong")
        files = [file.name for file in quantisation.files]
        name.setToolTip(as_text("\n".join(files[:12] + ["…"] * (len(files) > 12))))
        self._parts = f"{len(files)} files" if len(files) > 1 else ""
        self._size = QLabel(file_size(quantisation.size))
        self._size.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.light = FitLight(theme, light_words)
        self.state = ElidedLabel(role="caption")
        self.button = OfferButton(f" {quantisation.name}")
        parts = (name, 0 if known else 2), (self.state, 1), self._size, self.light, self.button
        kit.row(*parts, margins=(8, 4, 8, 4), spacing=16, on=self)
        theme.follow(self._fit)
        self.show_room()
        self.refresh()

    def drop(self) -> None:
        """Ignore pending answers: the row is being removed."""
        self._fetching.drop()

    def show_room(self) -> None:
        """Update the light: the free memory is known, or has changed."""
        self.light.set_fit(self._session.fit(self.quantisation.size))

    def refresh(self) -> None:
        """Look up whether it is here now."""
        self._path = self._session.find(self._repo.repo, self.quantisation.files)
        self.show_progress()

    def show_progress(self) -> None:
        """Show how far it is."""
        download = self._session.download_of(self._repo.repo, self.quantisation.file)
        set_role(self.state, role="caption")
        self.state.setToolTip("")
        if download is not None and download.state is State.DONE and self._path is None:
            self._path = self._session.find(self._repo.repo, self.quantisation.files)
        if download is not None and download.state is not State.DONE:
            self._show_coming(download)
        elif self._path is not None:
            self._say("✓ already here")
            show = partial(self.library_wanted.emit, self._path)
            self.button.offer("Show", show, "Show it in the library")
        elif self._fetching.pending:
            self._say("asking the Hub…")
            self.button.offer("Download", lambda: None)
        elif self._session.is_offline:
            self._say("offline")
            self.button.offer("Download", None, "Offline mode is on.")
        else:
            self._say("")
            self.button.offer("Download", self._fetch, "Save it in the Hugging Face cache")

    def _say(self, words: str) -> None:
        self.state.set_text(joined(self._parts, words))

    def _show_coming(self, download: Download) -> None:
        if download.state is State.FAILED:
            set_role(self.state, role="error")
            self._say("stopped")
            self.state.setToolTip(as_text(f"{download.message} {download.hint}"))
        else:
            words = state_words(download, self._session.retry_in(download))
            running = download.state in (State.RUNNING, State.PAUSED)
            self._say(joined(percent(share(download)) if running else "", words))
        self.button.offer("Downloads", self.downloads_wanted.emit, "Show it in the queue")

    def _fetch(self) -> None:
        wanted = Wanted.of(self._repo, self.quantisation)
        self._fetching.ask(lambda: self._session.downloads_queue().add((wanted,)))
        self.show_progress()

    def _fit(self) -> None:
        scale = self._theme.scale
        narrow = self.width() < WORDLESS * scale
        self.light.words.setHidden(narrow)  # the tooltip has them
        self.light.setFixedWidth(self.light.sizeHint().width() if narrow else round(LIGHT_WIDTH * scale))
        self._size.setFixedWidth(round(SIZE_WIDTH * scale))
        self.button.setFixedWidth(round(BUTTON_WIDTH * scale))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
