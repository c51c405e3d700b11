"""Options of a chat template: variables that it may read besides the messages."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from app.engine.errors import SettingError

TemplateValue = bool | int | float | str
TemplateOptions = dict[str, TemplateValue]

GIVEN = (
    "messages",
    "tools",
    "add_generation_prompt",
    "bos_token",
    "eos_token",
    "raise_exception",
    "strftime_now",
)
"""Variables that every template is given, which cannot be options."""
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
            raise SettingError(f"Every chat template is given {name} already.", "Leave that option out.")
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
