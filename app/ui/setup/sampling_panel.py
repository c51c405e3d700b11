"""The panel of the sampling chip: how tokens are drawn, and where an answer ends."""

from __future__ import annotations

from dataclasses import dataclass, field

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.engine.params import params_of
from app.engine.types import Sampling
from app.saved.settings import Settings
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.field import NumberField
from app.ui.widgets.form import ParamForm
from app.ui.widgets.keys import Typing

STOP_LINES = 3
_FIRST = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "repeat_last_n", "seed")
"""The settings that most people use; the others are folded away."""
_ESCAPES = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """What the panel edits."""

    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int = Settings().max_tokens
    stop: tuple[str, ...] = ()


def chip_words(sampling: Sampling) -> tuple[str, str]:
    """Value and detail of the sampling chip, such as ("temperature 0.8", "top_k 40")."""
    changed = [
        f"{param.name} {param.format(getattr(sampling, param.name))}"
        for param in params_of(Sampling)
        if param.name != "temperature" and getattr(sampling, param.name) != param.default
    ]
    value = "greedy" if sampling.temperature == 0 else f"temperature {sampling.temperature:g}"
    return value, " · ".join(changed)


def write_stop(stop: tuple[str, ...]) -> str:
    """Stop strings as lines of text; line breaks in them are written \\n."""
    lines = []
    for text in stop:
        for character, written in _ESCAPES:
            text = text.replace(character, written)  # noqa: PLW2901
        lines.append(text)
    return "\n".join(lines)


def read_stop(text: str) -> tuple[str, ...]:
    """The stop strings in lines that `write_stop` or a person wrote; empty lines are none."""
    plain = {written: character for character, written in _ESCAPES}
    found = []
    for line in text.split("\n"):
        pieces = []
        place = 0
        while place < len(line):
            pair = line[place : place + 2]
            pieces.append(plain.get(pair, line[place]))
            place += 2 if pair in plain else 1
        found.append("".join(pieces))
    return tuple(stop for stop in found if stop)


class SamplingPanel(QWidget):
    """Every valid change is in use from the next answer on: there is nothing to apply."""

    options_changed = Signal(object)
    """The user changed the AnswerOptions, all of which are valid."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._options = AnswerOptions()
        self._form = ParamForm(theme, Sampling, first=_FIRST)
        self._form.changed.connect(self._edited)
        self._limit = NumberField(next(param for param in params_of(Settings) if param.name == "max_tokens"))
        self._limit.edited.connect(self._edited)
        stop_help = kit.label(
            "The answer ends before any of these texts. One per line; write \\n for a line break.",
            "caption",
            wrap=True,
        )
        self._stop = kit.text_box("stop")
        self._typing = Typing(self._stop, self._stop.textChanged)
        self._typing.settled.connect(self._edited)
        upper = kit.label("Sampling", "title"), self._form, 8, kit.label("End of the answer", "title")
        lower = self._limit, kit.label("stop", "mono"), stop_help, self._stop
        kit.column(*upper, *lower, spacing=8, on=self)
        self._theme = theme
        theme.follow(self._restyle)

    def hide_limit(self) -> None:
        """Hide the length limit, which is chosen elsewhere."""
        self._limit.hide()

    def options(self) -> AnswerOptions:
        """The options in use."""
        return self._options

    def set_options(self, options: AnswerOptions) -> None:
        """Show options, without emitting a signal."""
        self._options = options
        self._form.set_value(options.sampling)
        self._limit.set_value(options.max_tokens)
        if read_stop(self._stop.toPlainText()) != options.stop:
            self._stop.blockSignals(True)
            self._stop.setPlainText(write_stop(options.stop))
            self._stop.blockSignals(False)
            self._typing.forget()

    def _edited(self) -> None:
        if not self._form.valid():
            return  # the form says what is wrong; the last valid options stay in use
        limit = self._limit.held()
        assert isinstance(limit, int)
        options = AnswerOptions(self._form.value(), limit, read_stop(self._stop.toPlainText()))
        if options != self._options:
            self._options = options
            self.options_changed.emit(options)

    def _restyle(self) -> None:
        self._stop.setFont(self._theme.mono())
        self._stop.setFixedHeight(self._stop.fontMetrics().lineSpacing() * STOP_LINES + 24)
