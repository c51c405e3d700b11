"""The settings in use, the chat's interface to the other places, and the answer in the Inspector."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QDropEvent

from app.base.paths import BUNDLED, Paths
from app.demo import REAL_PAIR, SMALL_PAIR
from app.engine.errors import UserError
from app.engine.strategy import undrafted
from app.engine.types import ModelOptions, Sampling
from app.saved.settings import Settings, SettingsStore
from app.ui.state.answer import AnswerModel
from app.ui.state.engine_session import BUSY, EngineSession
from app.ui.state.servers import Servers

if TYPE_CHECKING:
    from app.lab.experiment import Lane, Pair


SAVE_DELAY = 500  # milliseconds, so that moving a slider saves once
_PAIR = ("target", "draft", "server")  # chosen together
LENT = (*_PAIR, "strategy", "sampling", "max_tokens", "stop")


class SettingsInUse(QObject):
    """The settings, replaced as a whole by every change."""

    changed = Signal(object)
    """The names of the settings that changed, as a set."""
    due = Signal()
    """Emitted a moment after a change: the settings should be saved now."""

    def __init__(self, settings: Settings, store: SettingsStore, paths: Paths) -> None:
        super().__init__()
        self.now = settings
        self._store = store
        self._paths = paths
        self.before: Mapping[str, object] = {}
        """The user's own values of LENT settings, by name, while a demo has replaced them. They are the ones
        that are saved, and are restored later."""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAVE_DELAY)
        self._timer.timeout.connect(self.due)

    def change(self, **changes: object) -> None:
        """Set settings by name, and emit the names of those that changed."""
        before, self.now = self.now, dataclasses.replace(self.now, **changes)  # type: ignore[arg-type]
        if names := {name for name in changes if getattr(before, name) != getattr(self.now, name)}:
            if names & set(_PAIR):
                names |= set(_PAIR) & set(self.before)
            self.before = {name: value for name, value in self.before.items() if name not in names}
            self.save_soon()
            self.changed.emit(names)

    def lend(self, before: Settings) -> None:
        """Keep the settings of `before` while a demo's are in use. A setting that the user changes meanwhile
        is the user's own again."""
        self.before = {name: getattr(before, name) for name in LENT}
        self.save_soon()

    def save_soon(self) -> None:
        self._timer.start()

    def save(self, **changes: object) -> None:
        """Save the settings with these last changes; raises UserError."""
        self._timer.stop()
        self.now = dataclasses.replace(self.now, **changes)  # type: ignore[arg-type]
        self._store.save(self.own)

    @property
    def own(self) -> Settings:
        """The user's own settings: those in use, without a demo's."""
        return dataclasses.replace(self.now, **self.before)  # type: ignore[arg-type]

    def real(self, options: ModelOptions) -> ModelOptions:
        """The same options with symbolic links in the path resolved."""
        return dataclasses.replace(options, path=self._paths.model(options.path))

    def named(self, path: Path | str) -> ModelOptions:
        """A file's name in the settings; our own models have a symbol."""
        return ModelOptions(self._paths.named(path))

    def real_pair(self) -> tuple[ModelOptions, ModelOptions | None]:
        """The target and the draft in use, with their real paths."""
        target, draft = self.now.target, self.now.draft
        return self.real(target), self.real(draft) if draft is not None else None


class Inspection(QObject):
    """The answer in the Inspector: the chat's, until a different place opens one."""

    changed = Signal()  # the answer or its name changed
    opened = Signal()  # the Inspector is to be shown
    left = Signal()  # the place where it was opened is to be shown again
    watched = Signal()  # another answer than the chat's is on the screen, or is no longer
    reading = Signal(bool)  # whether a file is being read, whose answer will be shown

    def __init__(self) -> None:
        super().__init__()
        self.answer: AnswerModel | None = None
        self.name = ""  # what the answer is called where it comes from, such as a chat's title
        self._chat: tuple[AnswerModel | None, str] = (None, "")
        self.lesson: AnswerModel | None = None  # the answer of the lesson on the screen

    @property
    def is_chats(self) -> bool:
        """Whether the answer is the chat's."""
        return self.answer is self._chat[0]

    def follow_chat(self, answer: AnswerModel | None, name: str) -> None:
        """The chat chose a different answer, or none. It is shown, unless the answer of a different place
        is."""
        showing = self.answer is self._chat[0]
        self._chat = answer, name
        if showing:
            self.show_chat()

    def watch_lesson(self, answer: AnswerModel | None) -> None:
        """Note which answer a lesson shows; None if it shows none any more."""
        if answer is not self.lesson:
            self.lesson = answer
            self.watched.emit()

    def show_chat(self) -> None:
        """Show the chat's answer."""
        self._show(*self._chat)

    def open(self, answer: AnswerModel, index: int, name: str = "") -> None:
        """Show a round of an answer in the Inspector; `name` is that of an answer which is not the chat's."""
        if answer is self._chat[0]:
            self.show_chat()
        else:
            self._show(answer, name)
        if answer.pinned_at != index:  # else one of its tokens may be chosen
            answer.pin(index)
        self.opened.emit()

    def leave(self) -> None:
        """Go back to the place from which the Inspector was opened."""
        self.left.emit()

    def _show(self, answer: AnswerModel | None, name: str) -> None:
        if (answer, name) != (self.answer, self.name):
            self.answer, self.name = answer, name
            self.changed.emit()


def dropped_trace(event: QDropEvent) -> Path | None:
    """The trace file that is being dropped; None if it is anything else."""
    urls = event.mimeData().urls()
    file = Path(urls[0].toLocalFile()) if len(urls) == 1 and urls[0].isLocalFile() else None
    return file if file is not None and file.suffix == ".jsonl" else None


Tell = Callable[[UserError | str], None]
"""Shows an error where the user acted."""
OpenTrace = Callable[[Path, Tell], None]
"""Shows a trace file as soon as it is read, and says what is damaged in it."""


class Keep(Enum):
    """In place of a model: keep the one in use."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP


class UseModels(Protocol):
    """`ChatSide.use_models`."""

    def __call__(
        self, tell: Tell, *, target: Path | str | Keep = KEEP, draft: Path | str | Keep | None = KEEP
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class AskedLanes:
    """Lanes that Compare is asked to set up."""

    lanes: tuple[Lane, ...] = ()
    sampling: Sampling | None = None  # None keeps that of Compare


class ChatSide:
    """The chat's interface to the other places."""

    def __init__(
        self,
        engine: EngineSession,
        settings: SettingsInUse,
        inspection: Inspection,
        servers: Servers,
        load: Callable[[ModelOptions, ModelOptions | None, bool], None],
        go: Callable[[str], None],
        open_trace: OpenTrace,
    ) -> None:
        """`load` loads a pair and goes to the chat; `go` shows a place; `open_trace` shows a trace file."""
        self.engine = engine
        self.settings = settings
        self.inspection = inspection
        self.servers = servers
        self.go = go
        self.open_trace = open_trace
        self._load = load
        self._tour_wanted = False  # the Lessons place has not begun it yet
        self._to_compare = AskedLanes()  # that Compare has not taken over yet

    def pair(self) -> Pair:
        """The pair in use, with real paths."""
        from app.lab.experiment import Pair  # imported only once another place is open

        return Pair(*self.settings.real_pair())

    def is_bundled(self) -> bool:
        """Whether the pair in use is the bundled one."""
        return self.settings.now.target.path.startswith(BUNDLED)

    def drafters(self) -> tuple[str, ...]:
        """The user's drafter files that are in use."""
        return self.engine.drafters

    def models_in_use(self) -> tuple[str, str]:
        """The files of the target and of the draft, or ""."""
        target, draft = self.settings.real_pair()
        return target.path, draft.path if draft is not None else ""

    def use_models(
        self, tell: Tell, *, target: Path | str | Keep = KEEP, draft: Path | str | Keep | None = KEEP
    ) -> None:
        """Load models that were chosen elsewhere, or say why not. With None as draft, the draft and the
        strategies that need one are removed. A target of our own comes with its draft and a suitable
        strategy."""
        if self.engine.activity in BUSY:
            tell(UserError("The engine is busy.", "Stop the answer first."))
            return
        now, named = self.settings.now, self.settings.named
        new = now.target if target is KEEP else named(target)
        carried = draft is KEEP and new.path != now.target.path
        own = next((pair for pair in (REAL_PAIR, SMALL_PAIR) if pair.target.path == new.path), None)
        if carried and own is not None:
            self.settings.change(strategy=own.strategy)
            self._load(own.target, own.draft, False)
        elif draft is None:
            self.settings.change(strategy=undrafted(now.strategy))
            self._load(new, None, False)
        else:
            self._load(new, now.draft if draft is KEEP else named(draft), carried)

    def compare(self, spec: str) -> None:
        """Go to Compare with the current strategy and a second one as lanes, besides the baseline."""
        from app.lab.experiment import Lane

        self.compare_lanes(tuple(map(Lane, dict.fromkeys((self.settings.now.strategy, spec)))))

    def compare_lanes(self, lanes: tuple[Lane, ...], sampling: Sampling | None = None) -> None:
        """Go to Compare with these lanes, and with `sampling` if it is given."""
        self._to_compare = AskedLanes(lanes, sampling)
        self.go("compare")

    def take_lanes(self) -> AskedLanes:
        """The lanes of the last request to Compare, returned only once; empty if there was none."""
        taken, self._to_compare = self._to_compare, AskedLanes()
        return taken

    def tour(self) -> None:
        """Go to the lessons and take the tour."""
        self._tour_wanted = True
        self.go("lessons")

    def tour_wanted(self) -> bool:
        """Whether the tour was requested; True only once."""
        wanted, self._tour_wanted = self._tour_wanted, False
        return wanted

    def use_strategy(self, spec: str) -> None:
        """Answer with a strategy that was found elsewhere."""
        self.settings.change(strategy=spec)
        self.go("chat")
