"""Asks the engine what the open panel needs: devices, memory, and how many layers fit."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.engine.devices.memory import Device, PairMemory
from app.engine.devices.placement import LighterPair
from app.engine.errors import SettingError
from app.engine.explain.facts import DraftFile
from app.engine.process import messages
from app.engine.types import ModelOptions
from app.ui.pair.library_drafts import LibraryDrafts
from app.ui.pair.memory_view import FITS, SAVES, Files, taken_memory
from app.ui.pair.model_panel import ModelPanel
from app.ui.state.engine_session import Activity, EngineSession, EngineState, Reply

DELAY = 250  # milliseconds: a slider that moves is measured once
IDLE = (Activity.READY, Activity.EMPTY)

Pair = tuple[ModelOptions, ModelOptions | None]


class OffloadController(QObject):
    """One question at a time, while a panel is open and the engine has nothing else to do."""

    lighter_chosen = Signal(object, object, object)
    """A pair that takes less memory was chosen: (the ModelPanel, ModelOptions, ModelOptions or None)."""

    def __init__(
        self,
        target: ModelPanel,
        draft: ModelPanel,
        session: EngineSession,
        wanted: Callable[[ModelPanel], Pair],
        real: Callable[[ModelOptions], ModelOptions],
    ) -> None:
        """`wanted` is the pair that a panel's Apply would load, or a SettingError; `real` turns symbolic
        paths into files."""
        super().__init__(target)  # ends with the panels
        self._panels = (target, draft)
        self._session = session
        self._wanted = wanted
        self._real = real
        self._asking = False
        self._listed_for: str | None = None  # the workers whose devices are shown
        self._measured_for: Pair | None = None
        self._fatal: str | Pair | None = None  # what crashed the engine: not asked again by itself
        self._devices: tuple[Device, ...] = ()
        self._measured: PairMemory | None = None
        self._library: LibraryDrafts | None = None
        self._lightened_for: Pair | None = None
        self._lighter: tuple[LighterPair, ...] = ()
        self._more_drafts = False  # were found while the engine looked for a lighter pair
        self._deadly: Pair | None = None  # the search for less memory crashed the engine: not done again
        self.refused: Pair | None = None
        """The pair that did not fit into memory when it was last loaded, although it may have been expected
        to fit."""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._ask)
        session.changed.connect(self._engine_changed)
        for panel, other in ((target, draft), (draft, target)):
            panel.opened.connect(self._look_again)
            panel.edited.connect(self._edited)
            panel.look_asked.connect(self._look_again)
            panel.workers_changed.connect(other.take_workers)
            panel.fit_asked.connect(self._fit)
            panel.memory.lighter.chosen.connect(self._take_lighter)

    def look_for_drafts(self, library: LibraryDrafts) -> None:
        """From now on, offer smaller drafts from the library if a pair does not fit."""
        self._library = library
        library.found.connect(self._drafts_found)

    # ------------------------------------------------------------------ when to ask

    def _look_again(self) -> None:
        """Ask again: what is known may be out of date."""
        self._listed_for = self._measured_for = self._lightened_for = self._fatal = None
        self._wait()
        self._timer.start(0)

    def _edited(self) -> None:
        self._wait()
        self._timer.start(DELAY)

    def _wait(self) -> None:
        """Clear the numbers of a different pair, because they must not be beside this one's name."""
        panel = self._panel()
        if panel is None:
            return
        pair = self._valid(panel)  # if there is none, `_ask` says so
        if pair is not None and pair != self._measured_for:
            panel.memory.wait(_files_of(pair))

    def _engine_changed(self, now: EngineState, before: EngineState) -> None:
        # Loading or unloading a pair changes the free memory.
        if now.activity is not before.activity and now.activity in IDLE:
            self._listed_for = self._measured_for = self._lightened_for = None
            self._timer.start(0)

    def _panel(self) -> ModelPanel | None:
        return next((panel for panel in self._panels if panel.isVisible()), None)

    def _ask(self) -> None:
        """Ask the next question, if there is one; each answer calls this again."""
        panel = self._panel()
        if panel is None or self._asking:
            return
        pair = self._valid(panel)
        if pair is None:
            panel.memory.say("Memory is measured when all settings are valid.")
            return
        if self._session.activity not in IDLE:
            if pair != self._measured_for and self._fatal is None:
                panel.memory.say("Memory is measured when the engine is free.")
            return
        if self._session.server is not None:
            panel.memory.say("Memory is measured when the models here are loaded.")
            return
        rpc = _workers(pair)
        if self._fatal in (rpc, pair):
            return
        if rpc != self._listed_for:
            self._listed_for = rpc
            self._asking = True
            self._session.ask(messages.ListDevices(0, rpc), partial(self._listed, rpc))
        elif pair != self._measured_for:
            self._measured_for = pair
            self._asking = True
            panel.memory.wait(_files_of(pair))
            self._session.ask(messages.Measure(0, *self._files(pair)), partial(self._told, pair))
        else:
            self._show()

    def _files(self, pair: Pair) -> Pair:
        target, draft = pair
        return self._real(target), self._real(draft) if draft is not None else None

    # ------------------------------------------------------------------ what the engine says

    def _listed(self, rpc: str, answer: Reply) -> None:
        self._asking = False
        if isinstance(answer, messages.DevicesListed):
            self._devices = answer.devices
            for panel in self._panels:
                panel.form.set_devices(answer.devices, answer.backends)
                panel.form.workers.show_problem("", "")
        elif isinstance(answer, messages.Failed):
            self._fatal = rpc if answer.gone else None
            self._cannot(answer)
            if self._devices == () and not answer.gone:
                # This machine's own devices can still be listed.
                self._asking = True
                self._session.ask(messages.ListDevices(0), self._own_listed)
            return
        self._ask()

    def _own_listed(self, answer: Reply) -> None:
        self._asking = False
        if isinstance(answer, messages.DevicesListed):
            for panel in self._panels:
                panel.form.set_devices(answer.devices, answer.backends)

    def _told(self, pair: Pair, answer: Reply) -> None:
        self._asking = False
        if isinstance(answer, messages.Measured):
            self._measured = answer.memory
        elif isinstance(answer, messages.Failed):
            self._measured = None
            self._fatal = pair if answer.gone else None
            self._cannot(answer)
            return
        self._ask()

    def _cannot(self, failed: messages.Failed) -> None:
        """Say why nothing is known."""
        panel = self._panel()
        if panel is None:
            return
        if panel.form.workers.blamed(failed.message):
            panel.form.workers.show_problem(failed.message, failed.hint)
            panel.form.devices_fold.button.setChecked(True)
            panel.memory.say("Memory not measured: a worker does not answer.", error=True)
        else:
            panel.memory.say(f"Not measured. {failed.message} {failed.hint}".strip(), error=True)

    def _show(self) -> None:
        """Show what is known of the open panel's pair."""
        panel, memory = self._panel(), self._measured
        if panel is None or memory is None:
            return
        for model_panel, model in zip(self._panels, (memory.target, memory.draft), strict=True):
            model_panel.form.layers.set_most(model.most_layers if model is not None else None)
        loaded = self._session.pair
        taken = loaded is not None and not any(panel.pending() for panel in self._panels)
        if loaded is not None and taken:
            memory = taken_memory(loaded, self._devices)
        pair = self._wanted(panel)
        panel.memory.show_memory(memory, taken, _files_of(pair))
        if not taken and pair != self._deadly and (memory.shortages or pair == self.refused):
            self._lighten(panel, pair)

    # ------------------------------------------------------------------ less memory

    def _lighten(self, panel: ModelPanel, pair: Pair) -> None:
        """Show ways to load a pair that does not fit, and look for them first."""
        if self._lightened_for == pair:
            panel.memory.lighter.show_pairs(self._lighter, SAVES if pair == self.refused else FITS)
        elif self._session.activity in IDLE:
            self._asking, self._more_drafts = True, False
            asked = messages.Lighten(0, *self._files(pair), tuple(self._smaller(pair)))
            self._session.ask(asked, partial(self._lightened, pair))

    def _smaller(self, pair: Pair) -> Iterator[ModelOptions]:
        """The smaller drafts of the library, as far as they are known; looks for them again."""
        target, draft = self._files(pair)
        if self._library is None or draft is None:
            return
        self._library.find(target.path)
        with contextlib.suppress(OSError):  # the draft is gone: loading it says so
            size = Path(draft.path).stat().st_size
            for path, file in self._drafts(target).items():
                if file.size < size:
                    yield dataclasses.replace(draft, path=path)

    def _drafts(self, target: ModelOptions) -> dict[str, DraftFile]:
        """The files that suit a target, by their real paths."""
        files = (self._library.suiting(target.path) if self._library is not None else None) or ()
        return {self._real(ModelOptions(file.path)).path: file for file in files if file.path}

    def _drafts_found(self) -> None:
        self._more_drafts = True
        if self._lightened_for is not None and not self._asking:
            self._lightened_for = None
            self._ask()

    def _lightened(self, pair: Pair, answer: Reply) -> None:
        self._asking = False
        self._lightened_for = None if self._more_drafts else pair
        self._lighter = answer.pairs if isinstance(answer, messages.Lightened) else ()
        if isinstance(answer, messages.Failed) and answer.gone:
            self._deadly = pair
        self._ask()

    def _take_lighter(self, lighter: LighterPair) -> None:
        panel = self._panel()
        if panel is not None:
            target, draft = self._wanted(panel)  # the engine knows only the real paths
            named = dataclasses.replace(lighter.target, path=target.path)
            other = self._drafts(lighter.target).get(lighter.draft.path) if lighter.draft else None
            path = other.path if other is not None else draft.path if draft is not None else ""
            kept = dataclasses.replace(lighter.draft, path=path) if lighter.draft and draft else None
            self.lighter_chosen.emit(panel, named, kept)

    # ------------------------------------------------------------------ fit for me

    def _fit(self) -> None:
        panel = self._panel()
        pair = self._valid(panel) if panel is not None else None  # an error is shown beside its setting
        if panel is None or pair is None or self._session.activity not in IDLE:
            return
        for model_panel in self._panels:
            model_panel.form.layers.set_fitting(True)
        self._session.ask(
            messages.Measure(0, *self._files(pair), fit=True), partial(self._fitted, panel, pair)
        )

    def _fitted(self, panel: ModelPanel, pair: Pair, answer: Reply) -> None:
        target, draft = self._panels
        for model_panel in self._panels:
            model_panel.form.layers.set_fitting(False)
        if self._valid(panel) != pair:
            return  # the panels were changed meanwhile: these layers are for another file or context
        if isinstance(answer, messages.Measured):
            target.take_layers(answer.target.n_gpu_layers)
            if answer.draft is not None:
                draft.take_layers(answer.draft.n_gpu_layers)
        elif isinstance(answer, messages.Failed):
            self._cannot(answer)

    def _valid(self, panel: ModelPanel) -> Pair | None:
        """The pair that a panel's Apply would load; None if a setting is wrong."""
        try:
            return self._wanted(panel)
        except SettingError:
            return None


def _files_of(pair: Pair) -> Files:
    target, draft = pair
    return target.path, draft.path if draft is not None else ""


def _workers(pair: Pair) -> str:
    """All workers of a pair, each once."""
    found = [endpoint for options in pair if options is not None for endpoint in options.endpoints]
    return ",".join(dict.fromkeys(found))
