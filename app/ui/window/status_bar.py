"""The strip along the bottom: what the engine is doing, and the main numbers of an answer."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QSize, Qt, Signal, SignalInstance
from PySide6.QtGui import QFont, QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.engine.process.messages import LoadProgress, LoadStage, PromptProgress
from app.engine.record.stats import Statistics
from app.engine.strategy import NONE
from app.engine.types import ServerInfo
from app.saved.measured import Measurement
from app.servers.address import baseline_words
from app.ui.instruments import definitions
from app.ui.state.answer import AnswerModel, reconnect
from app.ui.state.engine_session import Activity, EngineState
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets import words as numbers
from app.ui.widgets.background import Throttle
from app.ui.widgets.labels import GivingLabel, as_text

EDGE, SPACING, WITHIN = 18, 22, 4  # pixels; within a readout
LONGEST_STATE = "Reading prompt 100 %"
HELD = "Waiting for a step"
SLOW = "Slow motion"
_AUDIT = "Audit text"
_AUDIT_HELP = "Answer with and without drafting, to check whether drafting changes the text."
_MEASURE_HELP = "Answer again, alternating with and without drafts, and compare the speeds."
_WORDS = {
    Activity.EMPTY: "No model loaded",
    Activity.LOADING: "Loading",
    Activity.READY: "Ready",
    Activity.READING: "Reading prompt",
    Activity.GENERATING: "Generating",
    Activity.STOPPING: "Stopping",
    Activity.LENT: "Measuring",
}


class Readout(QWidget):
    """A number between its name and its unit. It keeps its width while the number changes."""

    def __init__(self, before: str, widest: str, after: str, tooltip: str) -> None:
        """`widest` is the widest number to make room for, such as "0.888"."""
        super().__init__()
        self._widest = widest
        words = before, numbers.NONE, after
        self.before, self.value, self.after = (
            kit.label(text, role, plain=True)
            for text, role in zip(words, ("caption", "number", "caption"), strict=True)
        )
        self.setToolTip(tooltip)
        labels = self.before, self.value, self.after
        kit.row(*labels, spacing=WITHIN, on=self)
        for label in labels:
            label.setVisible(label is self.value or bool(label.text()))
        # A number is aligned to the text beside it, which stays in place: the name or the unit.
        side = Qt.AlignmentFlag.AlignRight if after else Qt.AlignmentFlag.AlignLeft
        self.value.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)

    def make_room(self, widest: str) -> None:
        """Keep room for a number as wide as this."""
        self._widest = widest
        self.fit(self._font)

    def set_value(self, text: str) -> None:
        self.value.setText(text)
        self.value.setAccessibleName(f"{self.before.text()} {text} {self.after.text()}".strip())

    def fit(self, font: QFont) -> None:
        """Keep room for numbers in this font, which is the style sheet's."""
        self._font = font
        metrics = QFontMetrics(font)
        # Widths of texts are rounded differently: the spare pixels keep all of them inside.
        self.value.setMinimumWidth(metrics.horizontalAdvance(self._widest) + 2)
        self.value.setIndent(self.value.indent())  # else it asks for the width that large text had


class StatusBar(QWidget):
    """Shows what the engine does and the numbers of an answer, with a button to measure its baseline."""

    measure_baseline_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.answer: AnswerModel | None = None
        self._engine = EngineState()
        self._measuring: float | None = None  # the share of the baseline measured so far
        self._auditing = ""  # what an audit is doing
        self._recorded = False
        self._server: ServerInfo | None = None
        self.state = GivingLabel()
        self.alpha = Readout("α", "0.888", "of judged", definitions.ALPHA)
        self.tau = Readout("τ", "88.88", "", definitions.TAU)
        self.speed = Readout("", "8,888", "tok/s", definitions.TOKENS_PER_SECOND)
        self.speed_up = GivingLabel()
        self.speed_up.setProperty("role", "small")
        self.measure = kit.button("Measure baseline", self.measure_baseline_requested, kind="word")
        self.audit = kit.button(_AUDIT, kind="word")
        for button in (self.measure, self.audit):
            button.setProperty("size", "small")
            button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.context = Readout("context", "8,888 / 8,888", "", definitions.CONTEXT)
        tip = "The target's threads, and the devices with its layers."
        self.device = kit.label("", "caption", tip=tip)
        self._numbers = Throttle(self._show_numbers, self)

        left = self.state, self.alpha, self.tau, self.speed, self.speed_up
        right = self.measure, self.audit, kit.Spring(1), self.context, self.device
        kit.row(*left, *right, margins=(EDGE, 0, EDGE, 0), spacing=SPACING, on=self)
        self._readouts = self.findChildren(Readout)
        kit.ground(self, "foot")
        theme.follow(self._apply_theme)
        self._show_state()
        self.set_context(None, None)

    def show_engine(self, state: EngineState) -> None:
        """Show what the engine is doing, in a few words."""
        self._engine = state
        self._show_state()
        self._show_baseline()

    def set_answer(self, answer: AnswerModel | None) -> None:
        """Show the numbers of a different answer; None for none."""
        reconnect(self._slots, self.answer, answer)
        self.answer = answer
        self._numbers.now()

    def _slots(self, answer: AnswerModel) -> tuple[tuple[SignalInstance, Callable[[], None]], ...]:
        return (
            *((signal, self._numbers.request) for signal in (answer.began, answer.grew, answer.moved)),
            *((signal, self._numbers.now) for signal in (answer.ended, answer.measured)),
        )

    def set_measuring(self, fraction: float | None) -> None:
        """Show that `fraction` of the baseline is measured; None: no measurement runs."""
        self._measuring = fraction
        self._show_state()
        self._show_baseline()

    def set_auditing(self, what: str | None) -> None:
        """Show what an audit is doing; None: no audit runs."""
        self._auditing = what or ""
        self._show_baseline()

    def set_context(self, used: int | None, size: int | None) -> None:
        """Show how many tokens are in the target's cache, and its size; None if unknown."""
        if used is None or size is None:
            self.context.set_value(numbers.NONE)
            return
        self.context.make_room(f"{numbers.count(size)} / {numbers.count(size)}")
        # The last token of an answer is in no cache.
        self.context.set_value(f"{numbers.count(min(used, size))} / {numbers.count(size)}")

    def set_recorded(self, recorded: bool) -> None:
        """Hide the measurement button and the device while a recording is on the screen."""
        self._recorded = recorded
        self._show_baseline()
        self._fit()

    def set_device(self, text: str) -> None:
        """Show the threads and devices in use, such as "1 thread · CPU", or the server."""
        self.device.setText(text)

    def set_server(self, server: ServerInfo | None) -> None:
        """Set the server that answers; None if none does. A server may be unable to answer without drafts."""
        self._server = server
        self._show_baseline()

    def _show_numbers(self) -> None:
        statistics = self.answer.statistics if self.answer is not None else Statistics()
        self.alpha.set_value(numbers.ratio(statistics.alpha))
        self.tau.set_value(numbers.significant(statistics.tau))
        header = self.answer.header if self.answer is not None else None
        warm = header is not None and header.warm
        self.speed.after.setText("tok/s, warm" if warm else "tok/s")
        self.speed.set_value(numbers.significant(statistics.tokens_per_second))
        told = definitions.TOKENS_PER_SECOND
        if self.answer is not None and self.answer.totals is not None:
            first = numbers.duration(self.answer.totals.first_token_seconds)
            told += f"\nPrompt: {numbers.per_second(self.answer.prompt_speed)}. First token after {first}."
        self.speed.setToolTip(f"{told}\n{definitions.WARM}" if warm else told)
        self._show_baseline()

    def _show_baseline(self) -> None:
        answer, measuring = self.answer, self._measuring is not None
        measurement = answer.measurement if answer is not None and not measuring else None
        doubtful = measurement is not None and bool(measurement.doubts)
        self.measure.setVisible((measurement is None or doubtful) and not self._recorded)
        self.speed_up.setVisible(measurement is not None)
        if measurement is not None:
            words = measured_words(measurement)
            self.speed_up.set_text(*words)
            about = (words[0], *measurement.doubts, definitions.SPEED_UP, definitions.END_TO_END)
            self.speed_up.setToolTip(as_text("\n".join(about)))
        share = numbers.percent(self._measuring) if self._measuring is not None else ""
        idle = "Measure again" if doubtful else "Measure baseline"
        self.measure.setText(f"Measuring baseline {share}" if share else idle)
        answered = answer is not None and answer.statistics.rounds > 0
        possible = self._server is None or self._server.has_baseline
        free = answered and possible and not self._busy and not measuring and not self._auditing
        self.measure.setEnabled(free)
        self.measure.setToolTip(self._why_not(answered) or _MEASURE_HELP)
        drafted = answer is not None and answer.header is not None and answer.header.strategy != NONE
        self.audit.setVisible(not self._recorded)
        self.audit.setText(f"{self._auditing}…" if self._auditing else _AUDIT)
        self.audit.setEnabled(free and drafted)
        why = "Needs an answer with drafting." if not drafted and not self._busy else self._why_not(answered)
        self.audit.setToolTip(why or _AUDIT_HELP)

    def _why_not(self, answered: bool) -> str:
        """Why the answer cannot be repeated now; "" if it can."""
        if self._auditing:
            return "Answering with and without drafting, and checking the text."
        if self._measuring is not None:
            return "Answering again with and without drafts, until the difference is clear."
        if not answered:
            return "Ask something first."
        if self._server is not None and not self._server.has_baseline:
            return baseline_words(self._server)
        return "Available when the engine is ready." if self._busy else ""

    @property
    def _busy(self) -> bool:
        return self._engine.activity not in (Activity.EMPTY, Activity.READY)

    def _show_state(self) -> None:
        measuring = self._measuring is not None and self._engine.activity is Activity.GENERATING
        waits = self._server is not None and self._engine.activity is Activity.READING
        text = "Measuring" if measuring else "Waiting for server" if waits else state_words(self._engine)
        self.state.setText(text)
        self.state.setAccessibleName(f"Engine: {text}")
        self.state.setToolTip(as_text(text))
        set_role(self.state, role="small" if self._busy else "caption")

    def _apply_theme(self) -> None:
        metrics = QFontMetrics(self._theme.sans(-1))
        self.state.setFixedWidth(metrics.horizontalAdvance(LONGEST_STATE) + 2)
        for readout in self._readouts:
            readout.fit(self._theme.sans(-1, QFont.Weight.Medium))
        self.setFixedHeight(metrics.height() + 14)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return super().event(event)

    def _fit(self) -> None:
        """Hide readouts if the strip is short of room, those least about the answer first, and last the words
        after α: a measured factor needs their room."""
        shown = [self.state, *self._readouts, self.device]
        shown += [part for part in (self.speed_up, self.measure, self.audit) if part.isVisibleTo(self)]
        words = self.alpha.after
        # So that hiding them changes nothing else.
        kept = words.sizeHint().width() + WITHIN if words.isHidden() else 0
        for part in (self.device, self.context, self.tau):
            wanted = kept + sum(label.sizeHint().width() for label in shown) + SPACING * len(shown) + 2 * EDGE
            gone = wanted > self.width() or (part is self.device and self._recorded)
            if gone:
                shown.remove(part)
            if part.isHidden() != gone:
                part.setVisible(not gone)
        gone = self.speed_up.isVisibleTo(self) and self.tau.isHidden()
        if words.isHidden() != gone:
            words.setVisible(not gone)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.height())

    def sizeHint(self) -> QSize:
        return QSize(900, self.height())


def measured_words(measurement: Measurement) -> tuple[str, ...]:
    """What was measured, and whether it is doubtful, from the whole to the least. The factor compares the
    measured runs; the answer itself may have run at a different speed."""
    factor, low, high, whole = map(
        numbers.factor, (measurement.factor, measurement.low, measurement.high, measurement.end_to_end_factor)
    )
    span = f" ({low} to {high})" if measurement.pairs > 1 else ""
    speeds = map(numbers.significant, (measurement.strategy_speed, measurement.baseline_speed))
    result = f"{measurement.verdict.capitalize()}: {factor}{span}"
    doubts = "".join(f". {doubt.partition(':')[0]}" for doubt in measurement.doubts[:1])
    with_speeds = f"{result}, {' against baseline '.join(speeds)}"
    least = f"{factor}: {measurement.verdict}"  # its end may be cut
    return f"{with_speeds}; {whole} end to end{doubts}", with_speeds, result, least


def state_words(state: EngineState) -> str:
    """What the engine does, and its progress."""
    if state.held and state.activity is Activity.GENERATING:
        return SLOW if state.slow else HELD
    match state.reading:
        case PromptProgress(done=done, total=total) if 0 < total <= done + 1:
            return HELD if state.held else "Prompt read"  # the first round reads its last token
        case PromptProgress(done=done, total=total):
            return f"Reading prompt {100 * done // total if total else 0} %"
        case LoadProgress(role=role, stage=LoadStage.TESTING):
            return f"Testing {role}"
        case LoadProgress(role=role, fraction=fraction):
            return f"Loading {role} {fraction * 100:.0f} %"
        case None:
            return _WORDS[state.activity]
