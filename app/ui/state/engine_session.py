"""The window's side of the engine: the loaded pair, the current run, and who is notified."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

import msgspec
from PySide6.QtCore import QObject, QThread, QTimer, Signal

from app.engine.process import messages
from app.engine.process.host import EngineHome, Take
from app.engine.types import GenerationRequest, ModelOptions, PairInfo, Round, ServerInfo, Totals, TraceHeader
from app.servers.address import find_key, is_address
from app.servers.home import ServerHome
from app.ui.state.mailbox import Mailbox

log = logging.getLogger("draftscope")

LOAD_STOP_MILLISECONDS = 5000
"""Seconds until an engine that does not start a load is replaced by a new one. A damaged file can block
llama.cpp forever, and an idle engine can hang unseen."""
_LENT = ("A measurement is using the engine.", "Try again when it ends.")
STOP_MILLISECONDS = 2000  # until a Stop without effect is reported; it usually acts within 0.1 s


class Activity(StrEnum):
    """What the engine is doing."""

    EMPTY = "empty"  # no pair is loaded
    LOADING = "loading"
    READY = "ready"
    READING = "reading"  # reading the prompt
    GENERATING = "generating"
    STOPPING = "stopping"
    LENT = "lent"  # lent: other work has the machine, and nothing is loaded here


BUSY = (Activity.READING, Activity.GENERATING, Activity.STOPPING)


@dataclass(frozen=True, slots=True)
class EngineState:
    """The state of the engine at a moment."""

    activity: Activity = Activity.EMPTY
    pair: PairInfo | None = None  # the loaded pair, also while another one is being loaded
    reading: messages.LoadProgress | messages.PromptProgress | None = None  # the file or prompt being read
    failed: messages.Failed | None = None  # why the latest load failed; None once one has succeeded
    held: bool = False  # the rounds of the run wait for a step
    slow: bool = False  # the steps follow each other in slow motion
    has_mtp: bool = False  # an MTP head is loaded with the pair


class RunSink(Protocol):
    """Receives the events of a generation, on the window's thread; rounds come in batches."""

    def run_progress(self, progress: messages.PromptProgress) -> None: ...

    def run_started(self, header: TraceHeader) -> None: ...

    def run_rounds(self, rounds: list[Round]) -> None: ...

    def run_finished(self, totals: Totals) -> None: ...

    def run_failed(self, failed: messages.Failed) -> None: ...


Reply = (
    messages.DevicesListed | messages.Measured | messages.Lightened | messages.TextsCounted
    | messages.Forced | messages.JudgedRows | messages.Failed
)  # fmt: skip
TakeReply = Callable[[Reply], None]
"""A function that is called once with the answer to a question, on the window's thread."""


@dataclass(slots=True)
class _Run:
    id: int
    sink: RunSink
    tokens: int = 0


class _HomeEnd(QThread):
    """Ends an engine beside the window's thread."""

    def __init__(self, home: EngineHome | None, mailbox: Mailbox) -> None:
        super().__init__()
        self._home, self._mailbox = home, mailbox  # which may be delivering

    def run(self) -> None:
        if self._home is not None:
            self._home.close()


class EngineSession(QObject):
    """Sends commands to the engine, passes its events to their receivers in batches, and drops stale ones."""

    changed = Signal(object, object)  # the EngineState, and the one reported before it
    run_died = Signal(object)  # Failed: the engine died during an answer; its pair is loaded again
    stop_overdue = Signal()  # the engine has not stopped for a while: it may hang, and can be ended

    def __init__(
        self, make_home: Callable[[Take], EngineHome], key_of: Callable[[str], str] = find_key
    ) -> None:
        """`make_home` is called when there is something to send and no engine; `key_of` gives the key of a
        server."""
        super().__init__()
        self._make_home = make_home
        self._key_of = key_of
        self._at_server = False  # whether a server is in the engine's place
        self._home: EngineHome | None = None
        self._mailbox = Mailbox(self._deliver)  # of this home's events
        self._endings: list[_HomeEnd] = []
        self._overdue = QTimer(self, singleShot=True, interval=STOP_MILLISECONDS)
        self._overdue.timeout.connect(self.stop_overdue)
        self._stuck = QTimer(self, singleShot=True, interval=LOAD_STOP_MILLISECONDS)
        self._stuck.timeout.connect(self._end_stuck_load)
        self._never_began = False  # the engine was ended before it came to the load in progress
        self._closed = False
        self._ids = 0
        self._load: messages.Load | None = None  # the load in progress
        self._replaced: messages.Load | None = None  # the load that it replaced before that was done
        self._kept: messages.Load | None = None  # the loaded pair; sent again when the engine dies
        self._run: _Run | None = None
        self._questions: dict[int, TakeReply] = {}  # that are open, by run id
        self.pace: float | None = None  # seconds for a token of the last answer, its prompt included
        self.state = self._told = EngineState()
        self._telling = False
        self.holds_next = False  # the next answer of the chat waits before its first round
        self.drafters: tuple[str, ...] = ()  # files of drafters from outside, sent with every request
        self.passes_of: Callable[[PairInfo], messages.PassSeconds | None] = lambda _pair: None
        """The measured times of a pair's passes on this machine, if known."""

    @property
    def activity(self) -> Activity:
        return self.state.activity

    @property
    def pair(self) -> PairInfo | None:
        return self.state.pair

    @property
    def server(self) -> ServerInfo | None:
        """The server that answers; None if local models do, or if nothing is loaded."""
        return self.pair.server if self.pair is not None else None

    def close(self) -> None:
        """End the engine; no signal is emitted afterwards."""
        self._closed = True
        self._overdue.stop()
        self._stuck.stop()
        self._part()
        for ending in self._endings:
            ending.wait()

    def lend(self, gone: Callable[[], None]) -> None:
        """Give up the engine and its memory until `take_back`; `gone` is called when the memory is free. Must
        not be called during an answer. A load that is asked for meanwhile is done afterwards."""
        self._kept = self._load or self._kept
        self._leave(Activity.LENT, *_LENT, gone)

    def _leave(
        self, activity: Activity, message: str, hint: str, gone: Callable[[], None] | None = None
    ) -> None:
        """End the engine, so that a different engine can do this activity. Open questions fail with these
        words. `gone` is called when the engine's memory is free."""
        self._stop_questions()
        if self._load is not None:
            self._send(messages.Stop(self._load.run))
        self._load = self._replaced = None
        self._stuck.stop()
        self._part(gone)
        self._without_engine(messages.Failed(0, message, hint), activity=activity)

    def _part(self, gone: Callable[[], None] | None = None) -> None:
        """End the engine without waiting, and ignore its further events. `gone` is called when it has
        ended."""
        self._mailbox.close()
        ending, self._home = _HomeEnd(self._home, self._mailbox), None
        if gone is not None:
            ending.finished.connect(gone)
        self._endings = [*(each for each in self._endings if each.isRunning()), ending]
        ending.start()

    def take_back(self) -> None:
        """Load the pair that was last asked for."""
        if self.activity is not Activity.LENT or self._closed:
            return
        if self._kept is None:
            self._set(activity=Activity.EMPTY)
        else:
            self._load_now(msgspec.structs.replace(self._kept, run=self._next_id()))

    def load(self, target: ModelOptions, draft: ModelOptions | None, carried: bool = False) -> None:
        """Load a pair in place of the one that is loaded or loading. If the target's path is an address, that
        server answers instead of the engine. See Load for a draft that is `carried` over. Must not be called
        during a run."""
        load = messages.Load(self._next_id(), target, draft, carried)
        if self.activity is Activity.LENT:
            self._kept = load
        else:
            self._load_now(load)

    def _load_now(self, load: messages.Load) -> None:
        target = load.target
        if is_address(target.path) is not self._at_server:
            self._at_server = is_address(target.path)
            self._kept = None
            self._leave(
                Activity.LOADING, "Different models are being loaded.", "Try again when they are loaded."
            )
        # An engine that has just been started may take longer to answer.
        at_hand = self._load is not None or (self.activity is Activity.READY and not self._at_server)
        if at_hand and not self._stuck.isActive():
            self._stuck.start()
        if self._load is not None:
            self._replaced = self._load
            self._send(messages.Stop(self._load.run))
        self._stop_questions()  # a user waits for the command that follows
        self._load = load
        self._set(activity=Activity.LOADING, reading=None)
        self._send(load)

    def generate(self, request: GenerationRequest, sink: RunSink, held: bool = False) -> None:
        """Generate for `sink`; if `held`, the first round waits for `set_pace`. Requires activity
        READY."""
        self._stop_questions()  # a user waits for the command that follows
        self._run = _Run(self._next_id(), sink)
        self._set(activity=Activity.READING, held=held, slow=False)
        passes = self.passes_of(self.pair) if self.pair is not None else None
        self._send(messages.Generate(self._run.id, request, self.drafters, held, passes))

    def set_pace(self, held: bool, steps: int = 0, slow: bool = False) -> None:
        """Pause the current run after `steps` more rounds, or let it run. `slow` says that more steps will
        follow automatically."""
        if self._run is not None:
            self._set(held=held, slow=slow)
            self._send(messages.SetPace(self._run.id, held, steps))

    @property
    def held(self) -> bool:
        """Whether the current run is paused; if there is none, whether the next one will be."""
        return self.state.held if self._run is not None else self.holds_next

    def forget(self) -> None:
        """Clear what strategies have learned from earlier answers; if one is being written, after it."""
        if self._home is not None:  # a new engine has learned nothing
            self._send(messages.Forget(self._next_id()))

    def stop(self) -> None:
        """Stop the current run; its end is reported as usual."""
        if self._run is not None:
            self._set(activity=Activity.STOPPING, reading=None)
            self._overdue.start()
            self._send(messages.Stop(self._run.id))

    def end_engine(self) -> None:
        """End an engine that does not stop: its answer fails, and its pair is loaded again."""
        if self.activity is Activity.STOPPING and self._home is not None:
            self._home.end()

    def ask(self, question: messages.AnyCommand, take: TakeReply) -> None:
        """Ask the idle engine a question: a command, whose run id is set here. Commands of the user come
        first. `take` gets the answer; if the engine is lent, a Failed at once."""
        question = msgspec.structs.replace(question, run=self._next_id())
        if self.activity is Activity.LENT:
            take(messages.Failed(question.run, *_LENT))
            return
        self._questions[question.run] = take
        self._send(question)

    def _stop_questions(self) -> None:
        for run in self._questions:
            self._send(messages.Stop(run))

    def _without_engine(self, why: messages.Failed, **changes: Any) -> None:
        """Change to a state without this engine, then answer the open questions."""
        questions, self._questions = self._questions, {}  # before: a listener may ask the next engine
        self._set(pair=None, reading=None, **changes)
        for run, take in questions.items():
            take(msgspec.structs.replace(why, run=run))

    def _send(self, command: messages.AnyCommand) -> None:
        if self._home is None and not self._closed:
            self._mailbox = Mailbox(self._deliver)
            make = partial(ServerHome, self._key_of) if self._at_server else self._make_home
            self._home = make(self._mailbox.post)
        if self._home is not None:
            self._home.send(command)

    def _next_id(self) -> int:
        self._ids += 1
        return self._ids

    def _set(self, **changes: Any) -> None:
        """Change fields of the state together, then notify. If a listener changes the state again, all
        listeners are notified of the first change before the second."""
        before, self.state = self.state, replace(self.state, **changes)
        if self.state.activity is not before.activity:
            self._overdue.stop()
        if self._telling:
            return
        self._telling = True
        try:
            while self.state != self._told:
                before, self._told = self._told, self.state
                self.changed.emit(self._told, before)
        finally:
            self._telling = False

    def _deliver(self, events: deque[messages.Event]) -> None:
        while events:
            run, rounds = self._run, list[Round]()
            while events and isinstance(event := events[0], messages.RoundFinished):
                events.popleft()
                if run is not None and event.run == run.id:
                    rounds.append(event.round)
            if run is not None and rounds:
                if self.activity is Activity.READING:
                    self._set(activity=Activity.GENERATING, reading=None)
                run.tokens += sum(len(round.emitted) for round in rounds)
                run.sink.run_rounds(rounds)
            if events:
                self._dispatch(events.popleft())

    def _dispatch(self, event: messages.Event) -> None:
        load, replaced, run = self._load, self._replaced, self._run
        loading = load is not None and event.run == load.run
        if isinstance(event, messages.Failed) and not event.expected:
            # The message of a bug may quote what the engine was working on.
            words = event.message if event.gone else "The engine had an unexpected error."
            log.error("%s\n%s", words, event.details)
        if loading or not isinstance(event, messages.LoadProgress):
            self._stuck.stop()
        if isinstance(event, messages.Failed) and event.gone:
            self._engine_gone(event)
        elif event.run in self._questions:
            if isinstance(event, Reply):
                self._questions.pop(event.run)(event)
        elif loading:
            self._about_load(event)
        elif replaced is not None and event.run == replaced.run and isinstance(event, messages.Loaded):
            # The replaced load finished before it was stopped: its pair stays if the next load fails.
            self._kept = replaced
            self._set(pair=event.pair, has_mtp=event.has_mtp)
        elif run is not None and event.run == run.id:
            self._about_run(event, run)

    def _about_load(self, event: messages.Event) -> None:
        if isinstance(event, messages.LoadProgress):
            self._set(reading=event)
        elif isinstance(event, messages.Loaded):
            load, self._load, self.pace = self._load, None, None
            assert load is not None
            left_out = load.carried and event.pair.draft is None
            self._kept = msgspec.structs.replace(load, draft=None) if left_out else load
            self._set(
                activity=Activity.READY, pair=event.pair, has_mtp=event.has_mtp, reading=None, failed=None
            )
        elif isinstance(event, messages.Failed):
            self._load = None
            self._set(activity=Activity.READY if self.pair else Activity.EMPTY, reading=None, failed=event)

    def _about_run(self, event: messages.Event, run: _Run) -> None:
        if isinstance(event, messages.PromptProgress):
            if self.activity is not Activity.STOPPING:
                self._set(reading=event)
            run.sink.run_progress(event)
        elif isinstance(event, messages.Started):
            run.sink.run_started(event.header)
        elif isinstance(event, messages.Finished):
            self._run = None
            if run.tokens:
                self.pace = (event.totals.lead_seconds + event.totals.seconds) / run.tokens
            self._set(activity=Activity.READY, reading=None)
            run.sink.run_finished(event.totals)
        elif isinstance(event, messages.Failed):
            self._run = None
            self._set(activity=Activity.READY, reading=None)
            run.sink.run_failed(event)

    def _end_stuck_load(self) -> None:
        """The engine did not start the load: repeat it in a new engine."""
        self._never_began = self._load is not None
        if self._never_began and self._home is not None:
            self._home.end()

    def _engine_gone(self, event: messages.Failed) -> None:
        """The engine died: load the same pair in a new one."""
        self._part()
        run, self._run = self._run, None
        died_loading, self._load = self._load, None
        if self._never_began:
            self._never_began = False
            self._kept, died_loading = died_loading, None
        # A file that kills the engine is not loaded again; the pair from before is.
        kept, died = (load and (load.target, load.draft) for load in (self._kept, died_loading))
        if kept == died:
            self._kept = None
        failed = event if died_loading is not None else self.state.failed
        self._without_engine(event, activity=Activity.EMPTY, failed=failed)
        if run is not None:
            run.sink.run_failed(event)
            self.run_died.emit(event)
        if self._kept is not None and self.activity is Activity.EMPTY:
            self._load_now(msgspec.structs.replace(self._kept, run=self._next_id()))
