"""Tries the remedies named in the advice on the answer on the screen, and measures them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from PySide6.QtCore import QEvent, QObject

from app.engine.errors import UserError
from app.engine.explain.advice import OTHER_DRAFTS, Remedy
from app.engine.explain.cost import disorder
from app.engine.process.messages import Forced
from app.engine.types import ModelOptions, PairInfo
from app.saved.measured import Calibrations
from app.saved.presets import Preset
from app.ui.chat.answers import CONTINUE
from app.ui.chat.asking import loaded_alike
from app.ui.chat.baseline import BaselineController
from app.ui.chat.chat_controller import ChatController
from app.ui.chat.chat_page import ChatPage
from app.ui.pair.library_drafts import LibraryDrafts
from app.ui.state.answer import AnswerModel
from app.ui.state.engine_session import Activity, EngineSession
from app.ui.state.engine_thread import Reply
from app.ui.state.settings_in_use import SettingsInUse
from app.ui.widgets.background import Query

_DISTURBED = 0.2  # times of passes that are out of order by this share are not kept


class AdviceController(QObject):
    """Connects the buttons below the advice with the settings."""

    def __init__(
        self,
        page: ChatPage,
        chat: ChatController,
        baseline: BaselineController,
        session: EngineSession,
        settings: SettingsInUse,
        library: LibraryDrafts,
        apply: Callable[[Preset], None],
        calibrations: Calibrations,
    ) -> None:
        """`apply` puts a preset into use, or raises UserError."""
        super().__init__(page)
        self._page = page
        self._card = page.instruments.cost
        self._chat = chat
        self._baseline = baseline
        self._shown = shown = chat.shown
        self._session = session
        self._settings = settings
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
        """Look for drafts anew when the chat is shown again: Models may have got one meanwhile."""
        if event.type() == QEvent.Type.Show:
            self._searched = None
            self._look_for_drafts()
        return False

    def _not_advised(self, _error: UserError) -> None:
        """The log has the details; nothing is said about the answer."""
        self._card.show_advice(None)

    def _applies(self, remedy: Remedy) -> bool:
        """Whether a remedy would change the settings; False while a recording is on the screen."""
        return self._shown.recording is None and not self._wanted(remedy).in_use(self._settings.now)

    def _wanted(self, remedy: Remedy) -> Preset:
        """The settings in use, with those that the remedy names replaced."""
        now = Preset.of("", self._settings.now)
        return dataclasses.replace(
            now,
            strategy=str(remedy.spec) if remedy.spec is not None else now.strategy,
            target=remedy.target or now.target,
            draft=remedy.draft or now.draft,
        )

    def _pair_changed(self) -> None:
        """Advise anew if that makes a difference: the session tells every step of loading."""
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
        """Give an answer what passes of its pair take here. They are timed once, after an answer, if no
        measured baseline says it."""
        if answer.header is None or answer.header.pair.server is not None:
            return
        pair = answer.header.pair
        answer.calibration = self._calibrations.of(pair)
        idle = self._session.activity is Activity.READY and not self._tries and not self._measures
        loaded = self._session.pair is not None and loaded_alike(self._session.pair, pair)
        if answer.calibration is None and idle and loaded and answer.whole and pair not in self._timed:
            self._timed.append(pair)
            self._session.questions.time_passes(partial(self._passes_timed, pair))

    def _passes_timed(self, pair: PairInfo, reply: Reply) -> None:
        if not isinstance(reply, Forced) or disorder(reply.seconds.target) > _DISTURBED:
            self._timed.remove(pair)  # something else was asked or ran meanwhile: the next answer brings them
            return
        with suppress(OSError):  # then they are timed again after the next start
            self._calibrations.keep(pair, reply.seconds)
        self._refresh()
        self._card.draw(0, 0)  # the whole curve is known now

    def _models(self) -> tuple[ModelOptions | None, ModelOptions | None]:
        """The load options of the pair, where the answer on the screen is of the loaded one."""
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
        """Whether a click also answers the question again and measures that: only the last answer of a chat
        can be given again, and strategy none is what others are measured against."""
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
        """Answer again as soon as the engine is ready, and then measure that answer; unless someone does
        something else meanwhile."""
        if self._session.activity is not Activity.READY:
            return
        tried, self._tries = self._tries, None
        if tried is not None and tried is self._shown.answer:
            self._measures = self._shown.id
            self._chat.regenerate()
        elif self._measures and self._shown.live is None:
            here, self._measures = self._measures == self._shown.id, ""
            note = self._shown.answer.note if self._shown.answer is not None else None
            if here and (note is None or note.action == CONTINUE):
                self._baseline.measure()
