"""Self-describing parameters: type, default, range and one line of help.

A parameter dataclass is the single source for the strategy grammar, the generated forms, the tooltips
and the command line's help. A help that is too long for its field's line is in the class's docstring.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar, cast, get_type_hints
from weakref import WeakKeyDictionary

from app.engine.errors import SettingError

P = TypeVar("P")
Value = bool | int | float | str

_ACCEPTED: Mapping[type, tuple[type, ...]] = {bool: (bool,), int: (int,), float: (int, float), str: (str,)}
"""Kind of a parameter -> types allowed for its values, checked because scripts are not type-checked."""


class FileUse(Enum):
    """How a parameter's file is used."""

    READ = "read"
    WRITTEN = "written"  # it need not exist yet


@dataclasses.dataclass(frozen=True, slots=True)
class Param:
    """A field of a parameter dataclass, ready to be shown, parsed or checked."""

    name: str
    kind: type[bool] | type[int] | type[float] | type[str]
    default: Value
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    unit: str = ""
    file: FileUse | None = None  # the text is a path
    words: bool = False  # the text is words separated by spaces; a command line may give each by itself

    def range_text(self) -> str:
        """The allowed values in words, as shown in messages and tooltips."""
        if self.choices:
            return ", ".join(self.choices)
        if self.kind is bool:
            return "0 or 1"
        noun = "a whole number" if self.kind is int else "a number"
        if self.low is not None and self.high is not None:
            return f"{noun} from {_bound(self.low)} to {_bound(self.high)}"
        if self.low is not None:
            return f"{noun}, {_bound(self.low)} or more"
        return noun if self.kind is not str else "text"

    def check(self, value: Value) -> None:
        """Raise SettingError if `value` is not allowed."""
        wrong = not isinstance(value, _ACCEPTED[self.kind]) or (self.choices and value not in self.choices)
        if not wrong and isinstance(value, int | float):
            # NaN fails both comparisons and is refused too. Large whole numbers are compared without
            # conversion: as a float, the largest seed would be above its limit.
            inside_low = self.low is None or value >= self.low
            inside_high = self.high is None or value <= self.high
            wrong = not (inside_low and inside_high)
        if wrong:
            raise SettingError(f"{self.name} cannot be {value!r}.", f"Allowed: {self.range_text()}.")

    def parse(self, text: str) -> Value:
        """Read the value from its written form; raises SettingError with what is allowed."""
        try:
            value: Value
            if self.kind is bool:
                value = {"0": False, "1": True}[text]
            elif self.kind is int:
                value = int(text)
            elif self.kind is float:
                value = float(text)
            else:
                value = text
        except (KeyError, ValueError):
            raise SettingError(f"{self.name} cannot be {text!r}.", f"Allowed: {self.range_text()}.") from None
        self.check(value)
        return value

    def format(self, value: Value) -> str:
        """The written form that `parse` reads back."""
        if self.kind is bool:
            return "1" if value else "0"
        if self.kind is float:
            short = f"{value:.12g}"
            return short if float(short) == value else repr(float(value))
        return str(value)


def _bound(value: float) -> str:
    """A limit in words: whole numbers in full, in groups of three."""
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def param(
    default: Value,
    doc: str = "",
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    unit: str = "",
    file: FileUse | None = None,
    words: bool = False,
) -> Any:
    """Declare a dataclass field with its range and its help: `doc`, or `NAME: help` in the class's
    docstring, where indented lines continue it."""
    metadata = {"doc": doc, "low": low, "high": high, "choices": choices, "unit": unit, "file": file}
    return dataclasses.field(default=default, metadata=metadata | {"words": words})


def params_of(owner: type[Any]) -> tuple[Param, ...]:
    """The parameters of a dataclass in the order in which they are declared."""
    if owner not in _known:  # called for every use of a strategy, and reading type hints compiles them
        hints, docs = get_type_hints(owner), _docs(owner)
        described = {
            field: {**field.metadata, "doc": field.metadata["doc"] or docs.get(field.name, "")}
            for field in dataclasses.fields(owner)
            if "doc" in field.metadata
        }
        _known[owner] = tuple(
            Param(field.name, hints[field.name], cast(Any, field.default), **its)
            for field, its in described.items()
        )
    return _known[owner]


def _docs(owner: type[Any]) -> dict[str, str]:
    """The helps in the docstrings of a class and its bases, by the names of their fields."""
    texts = (inspect.cleandoc(base.__doc__ or "") for base in reversed(owner.__mro__))
    found = re.findall(r"^(\w+): (.+(?:\n +.+)*)", "\n".join(texts), re.MULTILINE)
    return {name: re.sub(r"\n +", " ", text) for name, text in found}


_known: WeakKeyDictionary[type[Any], tuple[Param, ...]] = WeakKeyDictionary()


def check_params(values: Any) -> None:
    """Check every parameter of a dataclass instance; raises SettingError for the first wrong value."""
    for described in params_of(type(values)):
        described.check(getattr(values, described.name))
