"""The strip along the bottom: what the engine is doing, and the few numbers that matter."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from app.engine.record.stats import Statistics
from app.saved.chats.measurement import Measurement
from app.ui.instruments import definitions
from app.ui.instruments.styles import flat_button
from app.ui.theme import Theme
from app.ui.widgets.text.giving_label import GivingLabel
from app.ui.widgets.text.tips import as_text
from app.ui.widgets.throttle import Throttle
from app.ui.widgets.words import numbers

EDGE, SPACING = 18, 22  # pixels
LONGEST_STATE = "Reading prompt 100 %"


class Readout(QWidget):
    """A number between its name and its unit. It keeps its width while the number changes."""

    def __init__(self, before: str, widest: str, after: str, tooltip: str) -> None:
        """`widest` is the widest number to make room for, such as "0.888"."""
        super().__init__()
        self._widest = widest
        self.before, self.value, self.after = QLabel(before), QLabel(numbers.NONE), QLabel(after)
        self.setToolTip(tooltip)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        for label in (self.before, self.value, self.after):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setVisible(label is self.value or bool(label.text()))
            row.addWidget(label)
        # The figures grow away from what stays in place: the name before, or the unit behind.
        side = Qt.AlignmentFlag.AlignRight if after else Qt.AlignmentFlag.AlignLeft
        self.value.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)

    def make_room(self, widest: str) -> None:
        """Keep room for a number as wide as this."""
        self._widest = widest
        self._fit()

    def set_value(self, text: str) -> None:
        self.value.setText(text)
        self.value.setAccessibleName(f"{self.before.text()} {text} {self.after.text()}".strip())

    def apply_theme(self, theme: Theme) -> None:
        palette = theme.palette
        for label in (self.before, self.after):
            label.setFont(theme.sans(-1))
            label.setStyleSheet(f"color: {palette.secondary}")
        self.value.setFont(theme.sans(-1, QFont.Weight.Medium))
        self.value.setStyleSheet(f"color: {palette.text}")
        self._fit()

    def _fit(self) -> None:
        metrics = QFontMetrics(self.value.font())
        # Widths of texts are rounded, each in its own way: a pixel to spare keeps them all inside.
        self.value.setMinimumWidth(metrics.horizontalAdvance(self._widest) + 2)


class StatusBar(QWidget):
    """Told by the window what happens; asks it for one thing, a measured baseline."""

    measure_baseline_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._statistics: Statistics | None = None
        self._measurement: Measurement | None = None
        self._busy = False
        self._measuring = ""
        self._recorded = False
        self.state = GivingLabel()
        self.state.setAccessibleName("Engine")
        self.alpha = Readout("judged α", "0.888", "", definitions.ALPHA)
        self.tau = Readout("τ", "88.88", "", definitions.TAU)
        self.speed = Readout("", "8,888", "tok/s", definitions.TOKENS_PER_SECOND)
        self.speed_up = GivingLabel()
        self.measure = QPushButton("Measure baseline")
        self.measure.setCursor(Qt.CursorShape.PointingHandCursor)
        self.context = Readout("context", "8,888 / 8,888", "", definitions.CONTEXT)
        self.device = QLabel()
        self.device.setToolTip("Threads of the target, and the devices that hold its layers.")
        self._numbers = Throttle(self._show_numbers, self)

        row = QHBoxLayout(self)
        row.setContentsMargins(EDGE, 0, EDGE, 0)
        row.setSpacing(SPACING)
        row.addWidget(self.state)
        for readout in (self.alpha, self.tau, self.speed):
            row.addWidget(readout)
        row.addWidget(self.speed_up)
        row.addWidget(self.measure)
        row.addStretch(1)
        row.addWidget(self.context)
        row.addWidget(self.device)
        self.measure.clicked.connect(self.measure_baseline_requested)
        theme.changed.connect(self._apply_theme)
        self._apply_theme()
        self.set_state("Starting", busy=True)
        self.set_context(None, None)

    def set_state(self, text: str, busy: bool) -> None:
        """What the engine is doing, in a few words; `busy` while it does it."""
        self._busy = busy
        self.state.setText(text)
        self.state.setToolTip(as_text(text))
        self._show_state()
        self._show_baseline()

    def set_statistics(self, statistics: Statistics | None) -> None:
        """α, τ and tokens/s of the answer so far; None: there is no answer."""
        self._statistics = statistics
        self._numbers.request()

    def set_measurement(self, measurement: Measurement | None) -> None:
        """The measured baseline of the answer; None: it was not measured."""
        self._measurement = measurement
        self._numbers.now()

    def set_measuring(self, fraction: float | None) -> None:
        """The baseline is being measured, `fraction` of it done; None: no longer."""
        self._measuring = "" if fraction is None else numbers.percent(fraction)
        self._show_baseline()

    def set_context(self, used: int | None, size: int | None) -> None:
        """Tokens in the target's cache, of how many."""
        known = used is not None and size is not None
        if known:
            self.context.make_room(f"{numbers.count(size)} / {numbers.count(size)}")
        shown = f"{numbers.count(used)} / {numbers.count(size)}" if known else numbers.NONE
        self.context.set_value(shown)

    def set_recorded(self, recorded: bool) -> None:
        """Offer no measurement, and name no device, while a recording is on the screen."""
        self._recorded = recorded
        self._show_baseline()
        self._fit()

    def set_device(self, text: str) -> None:
        """Threads and devices in use, such as "1 thread · CPU"."""
        self.device.setText(text)

    def set_prompt_speed(self, tokens_per_second: float | None, first_token_seconds: float | None) -> None:
        """Numbers of the prompt, told in the tooltip of tokens/s."""
        self.speed.setToolTip(
            f"{definitions.TOKENS_PER_SECOND}\n"
            f"Prompt: {numbers.per_second(tokens_per_second)}. "
            f"First token after {numbers.duration(first_token_seconds)}."
        )

    def _show_numbers(self) -> None:
        statistics = self._statistics or Statistics()
        self.alpha.set_value(numbers.ratio(statistics.alpha))
        self.tau.set_value(numbers.significant(statistics.tau))
        self.speed.set_value(numbers.significant(statistics.tokens_per_second))
        self._show_baseline()

    def _show_baseline(self) -> None:
        measurement = self._measurement if not self._measuring else None
        self.measure.setVisible(measurement is None and not self._recorded)
        self.speed_up.setVisible(measurement is not None)
        if measurement is not None:
            # The run beside the baseline has a speed of its own, which the factor is about.
            measured, baseline = map(
                numbers.significant, (measurement.strategy_speed, measurement.baseline_speed)
            )
            factor = numbers.factor(measurement.factor)
            self.speed_up.setText(f"{factor} measured, {measured} against baseline {baseline}")
            self.speed_up.setToolTip(definitions.SPEED_UP)
        share = f" {self._measuring}" if self._measuring else ""
        self.measure.setText(f"Measuring baseline{share}" if share else "Measure baseline")
        answered = self._statistics is not None and self._statistics.rounds > 0
        self.measure.setEnabled(answered and not self._busy and not self._measuring)
        self.measure.setToolTip(self._why_not(answered))

    def _why_not(self, answered: bool) -> str:
        if self._measuring:
            return "Answering again, first without drafts and then with them."
        if not answered:
            return "Needs an answer to measure against."
        if self._busy:
            return "Possible once the engine is ready."
        return "Answers again, first without drafts and then with them, and compares the speeds."

    def _show_state(self) -> None:
        palette = self._theme.palette
        colour = palette.text if self._busy else palette.secondary
        self.state.setStyleSheet(f"color: {colour}")

    @Slot()
    def _apply_theme(self) -> None:
        theme, palette = self._theme, self._theme.palette
        small = theme.sans(-1)
        for label in (self.state, self.speed_up, self.device, self.measure):
            label.setFont(small)
        self.device.setStyleSheet(f"color: {palette.secondary}")
        self.speed_up.setStyleSheet(f"color: {palette.text}")
        self.measure.setStyleSheet(flat_button(palette))
        metrics = QFontMetrics(small)
        self.state.setFixedWidth(metrics.horizontalAdvance(LONGEST_STATE) + 2)
        for readout in (self.alpha, self.tau, self.speed, self.context):
            readout.apply_theme(theme)
        self.setFixedHeight(metrics.height() + 14)
        self._show_state()
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return super().event(event)

    def _fit(self) -> None:
        """Where the strip is short of room, what is least about the answer goes first."""
        shown = [self.state, self.alpha, self.tau, self.speed, self.context, self.device]
        shown.append(self.speed_up if self.speed_up.isVisibleTo(self) else self.measure)
        for part in (self.device, self.context, self.tau):
            wanted = sum(one.sizeHint().width() for one in shown) + SPACING * len(shown) + 2 * EDGE
            gone = wanted > self.width() or (part is self.device and self._recorded)
            if gone:
                shown.remove(part)
            if part.isHidden() != gone:
                part.setVisible(not gone)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        painter = QPainter(self)
        painter.fillRect(self.rect(), palette.panel)
        painter.fillRect(0, 0, self.width(), 1, palette.line)

    def sizeHint(self) -> QSize:
        return QSize(900, self.height())
