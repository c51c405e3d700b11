"""The baseline of an answer: its request, run cold with strategy none and with its own strategy in turns.
Also tries the advice's remedies on the answer on the screen, and measures them.

The lab is imported only for a measurement, to keep the start fast."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import msgspec
from PySide6.QtCore import QEvent, QObject, Signal

from app.engine.errors import TraceError, UserError
from app.engine.explain.advice import OTHER_DRAFTS, Remedy
from app.engine.explain.cost import disorder
from app.engine.explain.facts import Tried
from app.engine.process.messages import DOUBTFUL, Force, Forced
from app.engine.record.trace import Trace
from app.engine.strategy import NONE, StrategySpec
from app.engine.types import FinishReason, GenerationRequest, ModelOptions, PairInfo, TraceHeader
from app.saved.chats.conversation import Answer
from app.saved.measured import MOST_PAIRS, Calibrations, Measurement
from app.saved.presets import Preset
from app.ui.chat.answers import CONTINUE
from app.ui.chat.asking import Rerun, loaded_alike
from app.ui.chat.chat_controller import ChatController
from app.ui.pair.library_drafts import LibraryDrafts
from app.ui.state.answer import AnswerModel
from app.ui.state.engine_session import Activity, EngineSession, Reply
from app.ui.widgets.background import Query


def repeatable(chat: ChatController) -> GenerationRequest | None:
    """The request of the answer on the screen, if it can be answered again now; otherwise a notice says why
    not."""
    page, session = chat.page, chat.session
    request, answer = chat.request_of_answer(), chat.shown.answer
    if session.activity is not Activity.READY:
        return None
    if request is None or answer is None or answer.trace is None:
        page.prompt.notices.tell(
            "Only answers in this chat can be measured.", "Send its prompt here, then measure the new answer."
        )
        return None
    if session.pair is None or not loaded_alike(session.pair, answer.trace.header.pair):
        page.prompt.notices.tell(
            "This answer was made with different models or load options.",
            "Load those models with those options, or answer again with the current ones.",
        )
        return None
    return request


class BaselineMeasurement:
    """Runs pairs of a request until their factor is clear, and hands over the measurement."""

    def __init__(
        self,
        session: EngineSession,
        request: GenerationRequest,
        answer: TraceHeader,
        expected: int,
        on_progress: Callable[[float], None],
        on_end: Callable[[Measurement | None, str], None],
    ) -> None:
        """`answer` is the header of the answer that is measured again, `expected` its number of tokens.
        `on_end` is called with the measurement, or with None and the reason."""
        sampling = dataclasses.replace(request.sampling, seed=answer.seed)
        cold = dataclasses.replace(request, sampling=sampling, cold=True)
        self._requests = (dataclasses.replace(cold, strategy=NONE), cold)
        self._session = session
        self._prompt = answer.prompt
        self._expected = max(1, expected)
        self._on_progress = on_progress
        self._on_end = on_end
        self._runs: list[Trace] = []  # that ended
        self._loads: list[float | None] = []  # of other programs, in cores; by run

    def start(self) -> None:
        from app.lab.facts import OtherLoad

        self._load = OtherLoad()
        self._run = Rerun(self._session, self._prompt, self._answered, self._failed, self._report)
        self._session.generate(self._requests[len(self._runs) % 2], self._run)

    def _failed(self, error: UserError) -> None:
        self._on_end(None, error.message)

    def _report(self) -> None:
        trace = self._run.trace
        here = len(trace.token_ids) / self._expected if trace is not None else 0.0
        self._on_progress((len(self._runs) + min(1.0, here)) / (2 * MOST_PAIRS))

    def _answered(self, run: Trace) -> None:
        stopped = run.totals is not None and run.totals.finish_reason is FinishReason.CANCELLED
        if not stopped:
            self._runs.append(run)
            self._loads.append(self._load.cores())
        pairs, alone = divmod(len(self._runs), 2)
        if stopped and not pairs:
            self._on_end(None, "The measurement was stopped.")
        elif alone and not stopped:
            self.start()
        else:
            self._pair_ended(self._runs[: 2 * pairs], stopped)

    def _pair_ended(self, runs: list[Trace], stopped: bool) -> None:
        """Hand over the measurement, unless a further pair is needed and allowed."""
        try:
            measurement = Measurement(*runs, doubts=self._doubts(runs))
        except TraceError as error:
            self._on_end(None, error.message)
            return
        if stopped or measurement.is_clear:
            self._on_end(measurement, "")
        else:
            self.start()

    def _doubts(self, runs: list[Trace]) -> list[str]:
        """What disturbed the runs, in Compare's words."""
        from app.lab.runs.disturbance import other_load, unsteady
        from app.lab.runs.record import RunRecord

        threads = runs[0].header.pair.target.threads
        records = [
            msgspec.structs.replace(RunRecord.of(run, repeat=at // 2, lane=at % 2), other_load=load)
            for at, (run, load) in enumerate(zip(runs, self._loads, strict=False))
        ]
        return [*other_load(records, os.cpu_count() or 1, threads), *unsteady(records, 0, NONE)]


class BaselineController(QObject):
    """Runs one measurement at a time and stores it with its answer."""

    progressed = Signal(object)  # the share that is done; None: the measurement has ended

    def __init__(self, chat: ChatController) -> None:
        super().__init__()
        self.chat, self.page, self._store = chat, chat.page, chat.store
        self._versions: dict[str, Measurement | None] = {}  # read before, by trace
        chat.shown.answer_shown.connect(self._load)

    def measure(self) -> None:
        """Run the request again without and with drafts, or say why that is not possible."""
        if (request := repeatable(self.chat)) is None:
            return
        answer = self.chat.shown.answer
        assert answer is not None and answer.trace is not None
        trace = answer.trace

        chat_id, stored = self.chat.shown.id, self.chat.shown.stored
        measurement = BaselineMeasurement(
            self.chat.session,
            request,
            trace.header,
            len(trace.token_ids),
            self.progressed.emit,
            lambda measurement, why: self._measured(answer, chat_id, stored, measurement, why),
        )
        self.progressed.emit(0.0)
        measurement.start()

    def measured_versions(self) -> dict[str, Tried]:
        """Measurements of the other versions of the shown answer, by strategy. Answers to other questions do
        not count, because the gain depends on the text. Nor do versions with a different pair or sampling, or
        unreadable measurements; showing that version says why."""
        shown = self.chat.shown
        chat_id, answer, stored = shown.id, shown.answer, shown.stored
        if answer is None or answer.header is None or stored is None:
            return {}
        found: dict[str, Tried] = {}
        for version in stored.versions:
            if version.trace and version.trace != stored.trace:
                if version.trace not in self._versions:
                    with suppress(UserError):
                        self._versions[version.trace] = self._store.load_measurement(chat_id, version)
                measurement = self._versions.get(version.trace)
                if measurement is None:
                    continue
                run, here = measurement.strategy, answer.header
                sampling = dataclasses.replace(run.header.sampling, seed=here.sampling.seed)
                if loaded_alike(run.header.pair, here.pair) and sampling == here.sampling:
                    found[run.header.strategy] = Tried(measurement.range, run.rounds)
        return found

    def _measured(
        self,
        answer: AnswerModel,
        chat_id: str,
        stored: Answer | None,
        measurement: Measurement | None,
        why_not: str,
    ) -> None:
        if measurement is None:
            self.page.prompt.notices.tell(f"The baseline was not measured: {why_not}")
        else:
            answer.measure(measurement)
            self._versions.clear()
            try:
                if stored is not None and stored.trace:
                    self._store.keep_measurement(chat_id, stored, measurement)
            except UserError as error:
                self.page.prompt.notices.tell(error)
            self._load()  # the answer may have been read from the disk again meanwhile
        self.progressed.emit(None)

    def _load(self) -> None:
        """Load the stored measurement of the answer on the screen, if there is one."""
        answer, stored = self.chat.shown.answer, self.chat.shown.stored
        if answer is None or stored is None or answer.measurement is not None:
            return
        try:
            measurement = self._store.load_measurement(self.chat.shown.id, stored)
        except UserError as error:
            self.page.prompt.notices.tell(error)
            return
        if measurement is not None:
            answer.measure(measurement)


_SLOW = 1.5  # from this many times the answer's own on, a kept time of a pass is timed again


class AdviceController(QObject):
    """Connects the buttons below the advice with the settings."""

    def __init__(
        self,
        baseline: BaselineController,
        library: LibraryDrafts,
        apply: Callable[[Preset], None],
        calibrations: Calibrations,
    ) -> None:
        """`apply` puts a preset into use, or raises UserError."""
        page, session, shown = baseline.page, baseline.chat.session, baseline.chat.shown
        super().__init__(page)
        self._baseline, self._page, self._session, self._shown = baseline, page, session, shown
        self._card = page.instruments.cost
        self._settings = settings = baseline.chat.settings
        self._library = library
        self._apply = apply
        self._calibrations = calibrations
        self._timed: list[PairInfo] = []  # pairs whose passes were asked for
        self._searched: AnswerModel | None = None  # the answer for which other drafts were looked for
        self._tries: AnswerModel | None = None  # its remedy is tried when the engine is ready
        self._measures = ""  # the chat whose new answer is to be measured
        self._card.query = Query(library.askers, self._card.show_advice, self._not_advised)
        self._card.remedies.applies = self._applies
        self._card.remedies.tries = self._is_tried
        self._card.remedies.chosen.connect(self._use)
        for signal in (session.changed, shown.answer_shown):
            signal.connect(self._go_on)
        for signal in (shown.answer_shown, settings.changed, library.found):
            signal.connect(self._refresh)
        session.changed.connect(self._pair_changed)
        for signal in (session.changed, self._card.advised):
            signal.connect(self._look_for_drafts)
        page.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Look for drafts again when the chat is shown again: Models may have got one meanwhile."""
        if event.type() == QEvent.Type.Show:
            self._searched = None
            self._look_for_drafts()
        return False

    def _not_advised(self, _error: UserError) -> None:
        """Say nothing about the answer; the log has the details."""
        self._card.show_advice(None)

    def _applies(self, remedy: Remedy) -> bool:
        """Whether a remedy would change the settings; False while a recording is on the screen."""
        return self._shown.recording is None and not self._wanted(remedy).in_use(self._settings.now)

    def _wanted(self, remedy: Remedy) -> Preset:
        """The settings in use, with those that the remedy names replaced. Another draft is tried with the
        answer's strategy if the one in use drafts without a model."""
        now, answer = Preset.of("", self._settings.now), self._shown.answer
        strategy = now.strategy if remedy.spec is None else str(remedy.spec)
        idle = remedy.draft is not None and not StrategySpec.parse(strategy).needs_draft
        if idle and answer is not None and answer.header is not None:
            strategy = answer.header.strategy
        return dataclasses.replace(
            now, strategy=strategy, target=remedy.target or now.target, draft=remedy.draft or now.draft
        )

    def _pair_changed(self) -> None:
        """Advise again if that makes a difference: the session signals every step of loading."""
        if self._models() != self._card.models:
            self._refresh()

    def _refresh(self) -> None:
        if self._shown.answer is not None:
            self._shown.answer.tried = self._baseline.measured_versions()
            self._calibrate(self._shown.answer)
        self._card.models = self._models()
        self._card.drafts = self._library.suiting(self._target)
        self._card.show_numbers()

    def _calibrate(self, answer: AnswerModel) -> None:
        """Give an answer the pass times of its pair. Passes are timed once, after an answer, if no times are
        saved or these are in doubt, or if the answer's own passes were much faster."""
        if answer.header is None or answer.header.pair.server is not None:
            return
        pair = answer.header.pair
        known = answer.calibration = self._calibrations.of(pair)
        own = answer.cost.passes.seconds(1) if answer.cost.surely_priced else None
        slow = known is not None and own is not None and known.target[1] > _SLOW * own
        stale = known is None or slow or known.doubt > DOUBTFUL
        idle = self._session.activity is Activity.READY and not self._tries and not self._measures
        loaded = self._session.pair is not None and loaded_alike(self._session.pair, pair)
        if stale and idle and loaded and answer.whole and pair not in self._timed:
            self._timed.append(pair)
            self._session.ask(Force(0, ()), partial(self._passes_timed, pair))

    def _passes_timed(self, pair: PairInfo, reply: Reply) -> None:
        if not isinstance(reply, Forced) or disorder(reply.seconds.target) > DOUBTFUL:
            self._timed.remove(pair)  # something else was asked or ran meanwhile: the next answer brings them
            return
        with suppress(OSError):  # then they are timed again after the next start
            self._calibrations.keep(pair, reply.seconds)
        self._refresh()
        self._card.draw(0, 0)  # the whole curve is known now

    def _models(self) -> tuple[ModelOptions | None, ModelOptions | None]:
        """The load options of the pair, if the answer on the screen is of the loaded one."""
        answer, pair = self._shown.answer, self._session.pair
        header = answer.header if answer is not None else None
        alike = header is not None and pair is not None and loaded_alike(pair, header.pair)
        now = self._settings.now
        return (now.target, now.draft) if alike else (None, None)

    @property
    def _target(self) -> str:
        return self._settings.real(self._settings.now.target).path

    def _look_for_drafts(self) -> None:
        """Look for smaller drafts, once an answer is done whose draft is too large."""
        idle, answer = self._session.activity is Activity.READY, self._shown.answer
        if idle and self._card.finding in OTHER_DRAFTS and answer is not self._searched:
            self._searched = answer
            self._library.find(self._target)

    def _is_tried(self, remedy: Remedy) -> bool:
        """Whether a click also answers the question again and measures that. Only the last answer of a chat
        can be repeated, and strategy none is the baseline itself."""
        last = self._shown.stored is not None and self._shown.turn == len(self._shown.chat.turns) - 1
        return last and (remedy.spec is None or bool(remedy.spec.parts))

    def _use(self, remedy: Remedy) -> None:
        self._page.prompt.setFocus()  # the button goes; Qt would move the focus anywhere
        tried = self._is_tried(remedy)
        try:
            self._apply(self._wanted(remedy))
        except UserError as error:
            self._page.prompt.notices.tell(error)
            return
        if tried:
            self._tries = self._shown.answer
            self._go_on()

    def _go_on(self) -> None:
        """Answer again as soon as the engine is ready, then measure that answer, unless the user does
        something else meanwhile."""
        if self._session.activity is not Activity.READY:
            return
        tried, self._tries = self._tries, None
        if tried is not None and tried is self._shown.answer:
            self._measures = self._shown.id
            self._baseline.chat.regenerate()
        elif self._measures and self._shown.live is None:
            here, self._measures = self._measures == self._shown.id, ""
            note = self._shown.answer.note if self._shown.answer is not None else None
            if here and (note is None or note.action == CONTINUE):
                self._baseline.measure()
