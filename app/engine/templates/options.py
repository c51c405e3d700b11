"""Options of a chat template: variables that it may read besides the messages. Some turn thinking on or set
its effort."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

import msgspec

from app.engine.errors import SettingError

TemplateValue = bool | int | float | str
TemplateOptions = dict[str, TemplateValue]

GIVEN = (
    "messages", "tools", "add_generation_prompt", "bos_token", "eos_token", "raise_exception", "strftime_now"
)  # fmt: skip
"""Variables that every template receives; they cannot be options."""
LARGEST = 2**53  # the largest whole number that every JSON reader keeps exact
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ALLOWED = "Allowed: true, false, a number or a text."


def check_options(options: Mapping[str, object]) -> None:
    """Raise SettingError if a name or a value cannot be given to a template."""
    for name, value in options.items():
        if not _NAME.fullmatch(name):
            raise SettingError(
                f"“{name}” is not a valid name of a template option.",
                "Allowed: letters, digits and underscores.",
            )
        if name in GIVEN:
            raise SettingError(f"Every chat template already receives {name}.", "Leave that option out.")
        if not isinstance(value, TemplateValue):
            what = "null" if value is None else "a list" if isinstance(value, list) else "an object"
            raise SettingError(f"The template option {name} cannot be {what}.", _ALLOWED)
        if isinstance(value, int | float) and not abs(value) <= LARGEST:
            raise SettingError(
                f"The template option {name} is too large a number.", f"Allowed: up to {LARGEST:,}."
            )


def read_option(text: str) -> tuple[str, TemplateValue]:
    """Read `KEY=VALUE`, with the value as JSON if it is valid JSON, else as text; raises SettingError."""
    name, equals, written = text.partition("=")
    if not equals:
        raise SettingError(f"“{text}” is not a template option.", "Write KEY=VALUE.")
    try:
        value = msgspec.json.decode(written)
    except (msgspec.DecodeError, UnicodeEncodeError):
        value = written
    name = name.strip()
    check_options({name: value})
    return name, value


def option_text(name: str, value: TemplateValue) -> str:
    """An option as it is written on a command line: enable_thinking=false."""
    return f"{name}={value if isinstance(value, str) else msgspec.json.encode(value).decode()}"


SWITCHES = ("enable_thinking", "thinking")
EFFORT = "reasoning_effort"
_NONE = ("none", "no_think")  # efforts that turn thinking off
_EFFORTS = ("low", "medium", "high")
_NO_EFFORT = "no such effort"

Render = Callable[[TemplateOptions], str | None]
"""Renders a short chat with options; None if the template refuses them."""


class Thinking(msgspec.Struct, frozen=True):
    """A chat template's options for thinking."""

    names: tuple[str, ...]  # the names in SWITCHES and EFFORT that it reads
    on: bool | None = None  # whether thinking is on by default; None without a switch
    efforts: tuple[str, ...] = ()  # without a switch: efforts that differ in effect, least first
    effort: str = ""  # the default effort

    def is_on(self, options: Mapping[str, TemplateValue]) -> bool:
        """Whether thinking is on with these options."""
        told = [bool(options[name]) for name in self.names if name in SWITCHES and name in options]
        return any(told) if told else bool(self.on)

    def effort_of(self, options: Mapping[str, TemplateValue]) -> str:
        """The effort with these options; if set for a different template, it may not be in `efforts`."""
        return str(options.get(EFFORT, self.effort))


def switched(on: bool) -> TemplateOptions:
    """The options that turn thinking on or off, by all names that templates use."""
    return dict.fromkeys(SWITCHES, on)


def find_thinking(names: Collection[str], render: Render) -> Thinking | None:
    """The thinking options of a template that reads the variables `names`; None if it has none.

    Its defaults show only in the rendered text: templates test whether a switch is true, false or defined.
    """
    known = tuple(name for name in (*SWITCHES, EFFORT) if name in names)
    if not known:
        return None
    default = render({})
    if known != (EFFORT,):
        # A template whose default differs from both leaves thinking to the model.
        return Thinking(known, default != render(switched(False)) or default == render(switched(True)))
    efforts = _find_efforts(render)
    alike = [word for word, text in efforts.items() if text == default]
    return Thinking(known, None, tuple(efforts), alike[0] if alike else next(reversed(efforts), ""))


def _find_efforts(render: Render) -> dict[str, str]:
    """Effort -> rendered text, least effort first; empty if there is no choice."""
    texts = {word: render({EFFORT: word}) for word in (*_NONE, *_EFFORTS)}
    nonsense = render({EFFORT: _NO_EFFORT})
    if nonsense is not None and nonsense != render({}):
        # The template writes any word into the text. It does not say which its model knows, but all models
        # know these.
        texts = {word: texts[word] for word in _EFFORTS}
    found: dict[str, str] = {}  # text -> its highest effort
    for word, text in reversed(texts.items()):
        if text is not None:
            found.setdefault(text, word)
    return {word: text for text, word in reversed(found.items())} if len(found) > 1 else {}
