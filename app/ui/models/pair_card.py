"""A curated pair: what it is good for, its size, where it runs, and the one button that fetches it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QWidget

from app.hub.catalogue import CataloguePair, Confirmed, Entry, confirm, wanted_pair
from app.hub.downloads import Download, State
from app.hub.errors import HubError, Trouble
from app.hub.repo import HubFile
from app.ui.models.entry_rows import joined, share, speed, state_words, time_left
from app.ui.models.hub_session import HubSession
from app.ui.models.quantisation_row import FitLight, OfferButton
from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.background import Query
from app.ui.widgets.icons import IconButton
from app.ui.widgets.labels import as_text
from app.ui.widgets.notice import Notice
from app.ui.widgets.words import file_size, percent

BARS = 1000  # steps of a progress bar
UNPUBLISHED = "No published speed-up for this pair. Compare can measure it on this machine."


class PairCard(QFrame):
    """One pair in whatever state it is: listed, confirmed, being downloaded, here."""

    downloads_wanted = Signal()
    """The user wants to see the queue."""

    def __init__(self, theme: Theme, session: HubSession, pair: CataloguePair) -> None:
        super().__init__()
        self.pair = pair
        self._theme = theme
        self._session = session
        self._confirmed: dict[str, Confirmed] = {}  # by role
        self.notice = Notice(theme)
        self._fetching: Query[object] = Query(
            session.askers, lambda _ids: None, self.notice.tell, self.show_progress
        )
        self.setProperty("kind", "card")
        self._lines: dict[str, tuple[QLabel, QLabel]] = {}
        self._build()
        self.refresh()
        self.show_room()

    def _build(self) -> None:
        title = kit.label(self.pair.title, "strong", plain=True)
        good_for = kit.label(
            " ".join(filter(None, (self.pair.good_for, self.pair.note))), "secondary", wrap=True, plain=True
        )
        figure = f"Published: {self.pair.published}" if self.pair.published else UNPUBLISHED
        published = kit.label(figure, "caption", wrap=True, plain=True)
        self.light = FitLight(self._theme)
        self._state = kit.label("", "caption", wrap=True, plain=True)
        limits = [kit.label(self.pair.limits, wrap=True, plain=True)] if self.pair.limits else []
        upper = self._model_lines(), published, self.light, self._state
        lower = self._progress(), self.notice, kit.Spring(1), self._actions()
        kit.column(title, good_for, *limits, *upper, *lower, margins=(16, 12, 16, 16), spacing=8, on=self)

    def _model_lines(self) -> QGridLayout:
        models = kit.grid((12, 2), stretch=1)
        for row, entry in enumerate(self._entries()):
            # In two lines rather than cut: what is in the middle tells a pair's names apart (70B, 8B).
            tip = as_text(f"{entry.repo}\n{entry.file}")
            name = kit.label(_model_name(entry.file), wrap=True, plain=True, tip=tip)
            told = kit.label("", "caption")
            models.addWidget(kit.label(entry.role, "caption"), row, 0, Qt.AlignmentFlag.AlignTop)
            models.addWidget(name, row, 1)
            models.addWidget(told, row, 2, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
            self._lines[entry.role] = name, told
        return models

    def _progress(self) -> QWidget:
        self._bar = kit.progress(BARS)
        self.pause = IconButton(self._theme, "pause", f"Pause: {self.pair.title}", act=self._pause)
        self._transport = kit.holder(kit.row((self._bar, 1), self.pause, spacing=8))
        kit.reserve_space(self.pause)
        return self._transport

    def _actions(self) -> QHBoxLayout:
        # Fetch, Pause and Use have places of their own: they replace each other without a click, and in one
        # place the wrong one could come under a moving pointer.
        self.button = OfferButton(f": {self.pair.title}")
        self.button.pressed.connect(self.notice.clear)
        self.queue = kit.button("Show downloads", self.downloads_wanted, kind="flat")
        alone = self.pair.draft is None
        self.use = kit.button(
            "Use this model" if alone else "Use this pair",
            self._use,
            kind="primary",
            tip="Load it into the chat, without a draft model" if alone else "Load both models into the chat",
        )
        self.use.setAccessibleName(f"{self.use.text()}: {self.pair.title}")
        return kit.row(self.button, self.queue, kit.Spring(1), self.use, spacing=8)

    def _entries(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in (self.pair.target, self.pair.draft) if entry is not None)

    # ------------------------------------------------------------------ what the page says

    def show_confirmed(self, confirmed: Sequence[Confirmed]) -> None:
        """Show the Hub's answer about the pair."""
        self._confirmed = {answer.entry.role: answer for answer in confirmed}
        self.refresh()
        self.show_room()

    def show_room(self) -> None:
        """Update the light: the free memory is known, or has changed."""
        self.light.set_fit(self._session.fit(self.weight))

    def refresh(self) -> None:
        """Look up what is here now, and what is being downloaded."""
        self._look_up()
        for entry in self._entries():
            own = self._own.get(entry.role)
            here = "here" if self._paths[entry.role] is not None else ""
            found = self._confirmed.get(entry.role)
            licence = (found.repo.licence if found and found.repo else "") or entry.licence
            name, told = self._lines[entry.role]
            told.setText(joined(self._size_words([entry]), licence, here))
            if own:
                name.setText(_model_name(own[0].name))
            elif found is not None and found.quantisation is not None:
                name.setText(_model_name(found.quantisation.file))
            else:
                name.setText(_model_name(entry.file))
        self.show_progress()

    def show_progress(self) -> None:
        """Show how far the download is, or what can be done."""
        items = self._items()
        coming = [item for item in items if item.state is not State.DONE]
        if items and not coming and not all(self._paths.values()):
            self._look_up()
        here = all(self._paths.values())
        # A model that another pair fetches too does not mean that this pair is fetched.
        is_coming = bool(coming) and all(
            self._paths[entry.role] or self._item(entry) for entry in self._entries()
        )
        held = [button for button in (self.button, self.queue, self.pause) if button.hasFocus()]
        by_keys = any(map(ring_shown, held))
        if is_coming:
            kit.reserve_space(self._transport)  # what is below would move up to where Pause was
        self._transport.setVisible(is_coming and not here)
        self.queue.setVisible(is_coming and not here)
        self.button.setVisible(not here)
        self.use.setVisible(here)
        set_role(self._state, role="caption")
        if here:
            self._state.setText(
                "Both files are downloaded." if self.pair.draft else "The file is downloaded."
            )
        elif is_coming:
            self._show_coming(items, coming)
        elif self._fetching.pending:
            self._state.setText("Getting current names and sizes.")
            # Not disabled: the keyboard focus would move.
            self.button.offer("Asking the Hub…", lambda: None)
        else:
            self._show_fetchable()
        if held and not held[0].hasFocus():
            # The focus goes to a button that starts nothing.
            next_one = self.queue if by_keys and self.queue.isVisible() else self
            next_one.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_fetchable(self) -> None:
        missing = [entry for entry in self._entries() if self._paths[entry.role] is None]
        words = f"Download {self._size_words(missing)}"
        if self._session.is_offline:
            self._state.setText("")  # said once, above all cards
            self.button.offer(words, None, "Offline mode is on.")
            return
        if (problem := self._problem()) is not None:
            set_role(self._state, role="error")
            # "Check the name" is for a name that somebody typed.
            hint = "" if problem.trouble is Trouble.NOT_FOUND else problem.hint
            self._state.setText(f"{problem.message} {hint}".rstrip())
        else:
            # An empty line before: a card that grows would move those below while the Hub answers.
            self._state.setText("Confirmed with the Hub." if self._confirmed else "")
        self.button.offer(words, self._start, "Save what is missing in the Hugging Face cache")

    @property
    def weight(self) -> int:
        """Bytes of both models, from the Hub if it was asked."""
        return sum(self._size(entry) for entry in self._entries())

    @property
    def state(self) -> str:
        return self._state.text()

    # ------------------------------------------------------------------ inside

    def _show_coming(self, items: Sequence[Download], coming: Sequence[Download]) -> None:
        done, total = sum(item.done for item in items), sum(item.total for item in items)
        self._bar.setValue(BARS * done // total if total else 0)
        latest = next((item for item in coming if item.state is State.FAILED), coming[0])
        stopped = latest.state is State.FAILED or all(item.state is State.PAUSED for item in coming)
        self.pause.setVisible(not stopped)
        if latest.trouble is Trouble.OFFLINE:
            self._state.setText("Offline: the download resumes when offline mode is off.")
            self.button.offer("Resume", None, "Offline mode is on.")
            return
        if latest.state is State.FAILED:
            set_role(self._state, role="error")
            self._state.setText(f"{latest.message} {latest.hint}")
            self.button.offer("Try again", self._resume)
            return
        words = state_words(latest, self._session.retry_in(latest))
        # In one line: a card that grows and shrinks would move the others.
        role = next(entry.role for entry in self._entries() if self._item(entry) is latest)
        numbers = percent(share(latest)), speed(latest.speed), time_left(latest.seconds_left)
        self._state.setText(joined(f"{role}: {words}", *numbers))
        if stopped:
            self.button.offer("Resume", self._resume)
        else:
            self.button.offer("Downloading…", None)

    def _use(self) -> None:
        self.notice.clear()
        if target := self._paths["target"]:
            self._session.use(self.notice.tell, target=target, draft=self._paths.get("draft"))

    def _start(self) -> None:
        self._fetching.ask(self._fetch)
        self.show_progress()

    def _pause(self) -> None:
        self.notice.clear()
        for item in self._items():
            self._session.downloads_queue().pause(item.id)

    def _resume(self) -> None:
        for item in self._items():
            self._session.downloads_queue().resume(item.id)

    def _fetch(self) -> None:
        """Queue the pair under current names and sizes, on an asking thread."""
        wanted = [entry for entry in self._entries() if entry.role not in self._own]
        self._session.downloads_queue().add(wanted_pair(confirm(self._session.hub, wanted)))

    def _items(self) -> list[Download]:
        return [item for item in map(self._item, self._entries()) if item is not None]

    def _files(self, entry: Entry) -> tuple[HubFile, ...]:
        found = self._confirmed.get(entry.role)
        if found is not None and found.quantisation is not None:
            return found.quantisation.files
        return (HubFile(entry.file, 0),)

    def _size(self, entry: Entry) -> int:
        if own := self._own.get(entry.role):
            return own[1]
        return sum(file.size for file in self._files(entry)) or entry.size

    def _size_words(self, entries: Sequence[Entry]) -> str:
        """The size of these models; "about" it if the Hub was not asked."""
        exact = all(
            entry.role in self._own or any(file.size for file in self._files(entry)) for entry in entries
        )
        return f"{'' if exact else 'about '}{file_size(sum(map(self._size, entries)))}"

    def _look_up(self) -> None:
        """Look on the disk once; everything shown until the next look is based on it."""
        paths: dict[str, Path | None] = {}
        own: dict[str, tuple[Path, int]] = {}  # what came with Draftscope and serves in its place, and bytes
        for entry in self._entries():
            path = self._fetched(entry)
            if path is None and (path := self._session.own_file(entry)):
                own[entry.role] = path, path.stat().st_size
            paths[entry.role] = path
        self._paths, self._own = paths, own

    def _fetched(self, entry: Entry) -> Path | None:
        if self._session.is_offline or entry.role not in self._confirmed:
            return self._session.find_listed(entry)
        return self._session.find(entry.repo, self._files(entry))

    def _item(self, entry: Entry) -> Download | None:
        return self._session.download_of(entry.repo, self._files(entry)[0].name)

    def _problem(self) -> HubError | None:
        return next(
            (answer.problem for answer in self._confirmed.values() if answer.problem is not None), None
        )


def _model_name(file: str) -> str:
    return file.rsplit("/", 1)[-1].removesuffix(".gguf")
