"""The engine's command loop, the same in both homes."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.base.files import SHARED, explained, write_atomic
from app.base.processes import bug_words
from app.engine.compat import FitKind
from app.engine.devices.workers import WorkerError
from app.engine.errors import NoRoomError, PairError, PromptError, SettingError, UserError
from app.engine.plugins import use_drafters
from app.engine.process import messages
from app.engine.process.safer import less_memory, without_workers
from app.engine.strategy import StrategySpec
from app.engine.types import ModelOptions, Role, split_list

if TYPE_CHECKING:
    from app.engine.devices.memory import ModelMemory
    from app.engine.engine import Engine
    from app.engine.templates.process import Templates

_PROGRESS_STEP = 0.01
_NO_MEMORY = (
    "The engine has taken all the memory that was free when its pair was loaded.",
    "Close other programs and load the pair again, or load it with a smaller context.",
)


class Server:
    """Runs commands one after another with an engine; the same in both homes."""

    def __init__(
        self, emit: Callable[[messages.AnyEvent], None], before_load: Callable[[], None] = lambda: None
    ) -> None:
        self._emit = emit
        self._before_load = before_load
        self._inbox: queue.SimpleQueue[messages.AnyCommand] = queue.SimpleQueue()
        self._engine: Engine | None = None
        self._templates: Templates | None = None
        self._stopped: set[int] = set()
        self._current = -1  # the current run
        self._closing = False
        self._paced = -1  # the run that the engine's pace is of
        self._paces: list[messages.SetPace] = []  # for a run that has not begun
        # Held while the current run changes and while it is stopped, so that no Stop hits the next run.
        self._turn = threading.Lock()
        self._handlers: dict[type, Callable[[Any], None]] = {
            messages.Load: self._load,
            messages.Generate: self._generate,
            messages.Forget: self._forget,
            messages.ListDevices: self._list_devices,
            messages.Measure: self._measure,
            messages.Lighten: self._lighten,
            messages.CountTexts: self._count_texts,
            messages.Force: self._force,
            messages.Judge: self._judge,
            messages.DraftAlone: self._draft_alone,
        }

    def submit(self, command: messages.AnyCommand) -> None:
        """Queue a command; safe from any thread."""
        if isinstance(command, messages.Stop):
            self._stopped.add(command.run)
            self._stop_current(command.run)
            return
        if isinstance(command, messages.SetPace):
            self._set_pace(command)
            return
        if isinstance(command, messages.Shutdown):
            self._closing = True
            self._stop_current(self._current)
        self._inbox.put(command)

    def _stop_current(self, run: int) -> None:
        with self._turn:
            if self._engine is not None and self._current == run:
                self._engine.stop()

    def _set_pace(self, command: messages.SetPace) -> None:
        with self._turn:
            if self._engine is not None and self._paced == command.run:
                self._engine.pace.set(command.held, command.steps)
            else:  # its run has not begun, or has ended
                self._paces.append(command)

    def _begin_pace(self, command: messages.Generate) -> None:
        """Give a run the pace that was asked for with it and since."""
        assert self._engine is not None
        with self._turn:
            self._engine.pace.set(False)  # drops the steps of an earlier run
            self._engine.pace.set(command.held)
            for asked in self._paces:
                if asked.run == command.run:
                    self._engine.pace.set(asked.held, asked.steps)
            self._paces.clear()
            self._paced = command.run

    def _is_stopped(self, run: int) -> bool:
        return self._closing or run in self._stopped

    def run(self) -> None:
        """Serve until Shutdown; commands still queued then are dropped."""
        while not isinstance(command := self._inbox.get(), messages.Shutdown) and not self._closing:
            with self._turn:
                self._current = command.run
            try:
                try:
                    if (obey := self._handlers.get(type(command))) is not None:
                        obey(command)
                except UserError as error:
                    self._refuse(command, error)
            except MemoryError:
                self._emit(messages.Failed(command.run, *_NO_MEMORY))
            except Exception as error:
                self._emit(
                    messages.Failed(
                        command.run,
                        f"The engine failed with an unexpected error: {error}.",
                        "The next prompt may work; the details help to report it.",
                        expected=False,
                        details=bug_words(error),
                    )
                )
            finally:
                with self._turn:
                    self._current = -1
                self._stopped.discard(command.run)
        if self._engine is not None:
            self._engine.close()
        if self._templates is not None:
            self._templates.close()

    def _heed(self, run: int) -> None:
        """Stop the engine if a Stop came before the run began, which cleared its flag."""
        if self._engine is not None and self._is_stopped(run):
            self._engine.stop()

    def _check(self, run: int, what: str) -> None:
        """Raise UserError if the run was stopped."""
        if self._is_stopped(run):
            raise UserError(f"{what} was stopped.")

    @property
    def _loaded(self) -> Engine:
        """The engine with the loaded pair; raises UserError without one."""
        if self._engine is None:
            raise UserError("No model is loaded.", "Choose a target first.")
        return self._engine

    def _forget(self, _command: messages.Forget) -> None:
        if self._engine is not None:
            self._engine.warm.reset()

    def _load(self, command: messages.Load) -> None:
        from app.engine.templates.process import Templates

        self._templates = self._templates or Templates()
        with contextlib.suppress(PromptError):  # the first use reports the error
            self._templates.start()  # it starts up while the files are read
        # Imported here: the window makes homes, but must never load the native library.
        from app.engine.engine import Engine

        self._before_load()
        started = time.perf_counter()
        shown: tuple[Role | None, float] = (None, 0.0)

        def report(role: Role, file: str, fraction: float, beside: str) -> bool:
            nonlocal shown
            if role is not shown[0] or fraction >= shown[1] + _PROGRESS_STEP:
                shown = (role, fraction)
                self._emit(messages.LoadProgress(command.run, role, file, fraction, beside=beside))
            return not self._is_stopped(command.run)

        def test(role: Role, file: str, on_devices: bool) -> None:
            self._emit(
                messages.LoadProgress(
                    command.run, role, file, 1.0, messages.LoadStage.TESTING, on_devices=on_devices
                )
            )

        def load(target: ModelOptions, draft: ModelOptions | None) -> Engine:
            carried = command.carried and target == command.target
            try:
                engine = Engine(target, draft, report, self._engine, test, self._templates)
            except PairError:
                if not carried:
                    raise
                return Engine(target, None, report, self._engine, test, self._templates)
            if carried and engine.pair.vocabulary.startswith(FitKind.THROUGH_TEXT):
                return Engine(target, None, report, engine, test, self._templates)  # keeps the target
            return engine

        try:
            try:
                self._engine = load(command.target, command.draft)
            except NoRoomError:
                if self._engine is None or self._is_stopped(command.run):
                    raise
                self._make_room(load, command)
        except UserError:
            if self._is_stopped(command.run):
                kept = "The previous pair is still loaded." if self._engine else "No model is loaded."
                raise UserError("Loading was stopped.", kept) from None
            raise
        seconds = time.perf_counter() - started
        with contextlib.suppress(PromptError, MemoryError):  # the first use reports the error
            self._engine.read_template()
        self._emit(messages.Loaded(command.run, self._engine.pair, seconds, self._engine.has_mtp))

    def _make_room(self, load: Callable[..., Engine], command: messages.Load) -> None:
        """Load again after freeing the previous pair; if that fails too, load the previous pair again."""
        assert self._engine is not None
        before = self._engine.options
        self._engine.close()
        self._engine = None
        try:
            self._engine = load(command.target, command.draft)
        except UserError:
            with contextlib.suppress(UserError):  # the first error is the one that is told
                self._engine = load(*before)
            raise

    def _list_devices(self, command: messages.ListDevices) -> None:
        from app.engine.native import backends, list_devices

        devices = list_devices(split_list(command.rpc))
        self._emit(messages.DevicesListed(command.run, devices, backends()))

    def _measure(self, command: messages.Measure) -> None:
        from app.engine.devices.offload import fit_pair, measure_pair

        loaded = self._held(command.target)
        if not command.fit:
            memory = measure_pair(command.target, command.draft, loaded)
            self._emit(messages.Measured(command.run, memory, command.target, command.draft))
            return
        check = partial(self._check, command.run, "Fitting")
        memory, target, draft = fit_pair(command.target, command.draft, loaded, check)
        self._emit(messages.Measured(command.run, memory, target, draft))

    def _lighten(self, command: messages.Lighten) -> None:
        from app.engine.devices.offload import lighten_pair

        check = partial(self._check, command.run, "The search")
        loaded = self._held(command.target)
        pairs = lighten_pair(command.target, command.draft, loaded, check, command.smaller)
        self._emit(messages.Lightened(command.run, pairs))

    def _count_texts(self, command: messages.CountTexts) -> None:
        from app.engine.drafters.cache_file import TextCounts

        counts, output = TextCounts(self._loaded.vocabulary), Path(command.output)
        for text in command.texts:
            self._check(command.run, "Counting")
            counts.add_text(Path(text))
        with explained(f"{output.name} cannot be written", folder=output.parent):
            write_atomic(output, counts.as_file(), SHARED)
        self._emit(messages.TextsCounted(command.run, command.output, counts.tokens, len(counts)))

    def _force(self, command: messages.Force) -> None:
        total = len(command.texts)

        def tell(done: int) -> None:
            self._emit(messages.ForceProgress(command.run, done, total))
            self._heed(command.run)

        self._emit(self._loaded.force(command.texts, command.run, tell))

    def _judge(self, command: messages.Judge) -> None:
        self._emit(self._loaded.judge(command, partial(self._heed, command.run)))

    def _draft_alone(self, command: messages.DraftAlone) -> None:
        from app.engine.forcing import draft_alone
        from app.engine.templates.process import Templates

        _know_drafters(command)
        self._templates = self._templates or Templates()
        stopped = partial(self._is_stopped, command.run)
        self._emit(draft_alone(command.target, command.request, self._templates, command.run, stopped))

    def _refuse(self, command: messages.AnyCommand, error: UserError) -> None:
        """Say why a command cannot be obeyed; of a load, with another way to load the pair."""
        offer, no_room = None, isinstance(error, NoRoomError)
        if isinstance(command, messages.Load) and not self._is_stopped(command.run):
            if isinstance(error, WorkerError) and error.endpoint:
                offer = without_workers(command, (error.endpoint,))
            elif isinstance(error, NoRoomError):
                of_draft = error.of_context and error.role is Role.DRAFT
                offer = less_memory(command, fitting(command, self._held(command.target)), of_draft)
        self._emit(
            messages.Failed(
                command.run, error.message, error.hint, offer=offer, role=error.role, no_room=no_room
            )
        )

    def _held(self, target: ModelOptions) -> tuple[ModelMemory, ...]:
        """The memory that the loaded pair uses on the devices that a new target asks for."""
        return self._engine.memory_beside(target) if self._engine else ()

    def _generate(self, command: messages.Generate) -> None:
        engine = self._loaded
        _know_drafters(command)
        self._begin_pace(command)
        for event in engine.generate(command.request, command.run, command.passes):
            self._emit(event)  # type: ignore[arg-type]
            self._heed(command.run)


def fitting(command: messages.Load, loaded: tuple[ModelMemory, ...] = ()) -> messages.Measured | None:
    """The pair with the layers that should fit beside the `loaded` pair; None if that cannot be measured."""
    from app.engine.devices.offload import fit_pair

    try:
        return messages.Measured(command.run, *fit_pair(command.target, command.draft, loaded, as_asked=True))
    except UserError:
        return None


def _know_drafters(command: messages.Generate | messages.DraftAlone) -> None:
    """Register the plug-ins in use. The error of an unusable one is reported only if a request needs its
    strategy."""
    problems = use_drafters(command.drafters)
    try:
        StrategySpec.parse(command.request.strategy)
    except SettingError as unknown:
        raise next(iter(problems.values()), unknown) from None
