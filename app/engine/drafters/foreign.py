"""Plug-in strategies, length rules and verification rules: what they must provide, and their registration."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from app.engine.drafters.base import Drafter, Keeps, Resources, StrategyKind
from app.engine.drafters.guarded import GuardedDrafter, GuardedLength, error_words, guarded_rule
from app.engine.drafters.registry import KINDS
from app.engine.errors import DrafterError, SettingError
from app.engine.lengths.base import DraftLength, LengthRule
from app.engine.lengths.registry import LENGTHS
from app.engine.params import check_params, params_of
from app.engine.rules.base import GIVEN, Rule
from app.engine.rules.registry import RULES
from app.engine.strategy import NONE, run_keys

Stamp = tuple[int, int]
"""A file's version: time of modification (ns), size (bytes)."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class ForeignKind(StrategyKind):
    """A plug-in strategy. Its drafter is made behind a guard."""

    source: str = ""  # the file's path or the entry point; empty if a script registered it
    stamp: Stamp | None = None  # None if it comes from no file


class Foreign(Protocol):
    """Part of a plug-in: a ForeignKind, or a guarded length rule or verification rule."""

    name: str
    summary: str
    source: str
    stamp: Stamp | None


def foreign_kinds() -> list[Foreign]:
    """All parts of plug-ins."""
    every: list[Any] = [*KINDS.values(), *LENGTHS.values(), *RULES.values()]
    return [thing for thing in every if hasattr(thing, "source")]


def register(
    thing: StrategyKind | type[LengthRule] | type[Rule], source: str = "", stamp: Stamp | None = None
) -> None:
    """Add a guarded strategy, length rule or verification rule to grammar, forms, help and engine.

    Raises DrafterError if it is not valid, or if its name is taken.
    """
    given: Any = thing
    add: Callable[[Any, str, Stamp | None], None]
    if inspect.isclass(given) and issubclass(given, LengthRule):
        wrong, add = _wrong_with_length(given), _add_length
    elif inspect.isclass(given) and issubclass(given, Rule):
        wrong, add = _wrong_with_rule(given), _add_rule
    else:
        wrong, add = _what_is_wrong(given), _add_strategy
    if wrong:
        raise DrafterError(f"{source_name(source)} cannot be used: {wrong}.")
    add(given, source, stamp)


def _add_strategy(kind: StrategyKind, source: str, stamp: Stamp | None) -> None:
    described = {field.name: getattr(kind, field.name) for field in dataclasses.fields(StrategyKind)}
    described["make"] = partial(_make_guarded, kind)
    described["keeps"] = Keeps()  # its word for it would have to be checked
    if kind.length is None and "n_max" not in [param.name for param in params_of(kind.params)]:
        described["length"] = ""
    described["walks"] = False  # it may wait, and run anything
    described["params"] = _guarded_params(kind.params)
    KINDS[kind.name] = ForeignKind(**described, source=source, stamp=stamp)


def _add_length(rule: type[LengthRule], source: str, stamp: Stamp | None) -> None:
    def make(self: LengthRule) -> DraftLength:
        return GuardedLength(rule.name, partial(rule.make, self))

    LENGTHS[rule.name] = _guarded_params(rule, {"make": make, "source": source, "stamp": stamp})


def _add_rule(rule: type[Rule], source: str, stamp: Stamp | None) -> None:
    RULES[rule.name] = guarded_rule(rule, source=source, stamp=stamp)


def unregister(name: str) -> None:
    """Remove a plug-in's part with this name; built-in ones stay."""
    for known in (KINDS, LENGTHS, RULES):
        if hasattr(known.get(name), "source"):
            del known[name]


def source_name(source: str) -> str:
    """The origin of a strategy, short enough for a sentence."""
    return source.replace("\\", "/").rsplit("/", 1)[-1] or "A strategy of this script"


def _make_guarded(kind: StrategyKind, params: Any, resources: Resources) -> Drafter:
    theirs = Resources(resources.vocabulary)  # the draft model's cache is the engine's alone

    def make(params: Any) -> Any:
        return kind.make(params, theirs)

    return GuardedDrafter(kind.name, make, params, resources.vocabulary.size)


def _guarded_params(owner: type[Any], more: Mapping[str, Any] | None = None) -> type[Any]:
    """The same dataclass with `more` attributes. Every error of its constructor becomes a SettingError, as
    callers expect that parse a spec or fill in a form."""

    def init(self: Any, *values: Any, **named: Any) -> None:
        try:
            owner.__init__(self, *values, **named)
        except SettingError:
            raise
        except Exception as error:  # foreign code
            raise SettingError(f"These settings cannot be used: {error_words(error)}.") from error

    own = {"__init__": init, "__slots__": (), "__module__": owner.__module__, "__doc__": owner.__doc__}
    return type(owner.__name__, (owner,), own | dict(more or {}))


def _what_is_wrong(kind: Any) -> str:
    """The reason why a strategy cannot be used, worded to follow a colon; empty for a valid one."""
    if not isinstance(kind, StrategyKind):
        return f"its STRATEGY is of type {type(kind).__name__} and not StrategyKind"
    if wrong := _wrong_with_name(kind, KINDS, NONE):
        return wrong
    name = kind.name
    if kind.needs_draft:
        return f"{name} asks for the draft model, but plug-in drafters draft without one"
    if not callable(kind.make):
        return f"make of {name} cannot be called"
    if inspect.isclass(kind.make):
        if not issubclass(kind.make, Drafter):
            return f"{kind.make.__name__} is not derived from Drafter"
        if inspect.isabstract(kind.make):
            return f"{kind.make.__name__} has no {' and no '.join(sorted(kind.make.__abstractmethods__))}"
    return _wrong_with_params(kind.params, kind) or _wrong_with_memory(kind)


def _wrong_with_name(thing: Any, known: Mapping[str, Any], reserved: str) -> str:
    name, summary = getattr(thing, "name", None), getattr(thing, "summary", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        return (
            f"{name!r} is not a valid name (lower-case letters and digits, joined by single hyphens, at most "
            f"{_LONGEST_NAME})"
        )
    if name in known or name == reserved:
        where = source_name(getattr(known.get(name), "source", "Draftscope"))
        return f"the name “{name}” is taken ({where})"
    if not isinstance(summary, str) or not summary.strip():
        return f"{name} has no summary"
    return ""


def _wrong_with_length(rule: type[LengthRule]) -> str:
    wrong = _wrong_with_name(rule, LENGTHS, "") or _unfinished(rule)
    if wrong or (wrong := _wrong_with_fields(rule)):
        return wrong
    taken = {param.name for kind in KINDS.values() for param in params_of(kind.params)} | set(run_keys())
    both = [param.name for param in params_of(rule) if param.name in taken]
    return f"the parameter {both[0]} is already in use: choose a different name" if both else ""


def _wrong_with_rule(rule: type[Rule]) -> str:
    wrong = _wrong_with_name(rule, RULES, "auto") or _unfinished(rule)
    gives: Any = getattr(rule, "gives", None)
    if not wrong and not (isinstance(gives, frozenset) and gives <= GIVEN):
        return f"gives of {rule.name} is not a frozenset of {', '.join(sorted(GIVEN))}"
    return wrong


def _unfinished(owner: type[Any]) -> str:
    missing = " and no ".join(sorted(getattr(owner, "__abstractmethods__", ())))
    return f"{owner.__name__} has no {missing}" if missing else ""


def _wrong_with_memory(kind: StrategyKind) -> str:
    memory: Any = kind.memory
    known = {param.name for param in params_of(kind.params)}
    if memory is None or (isinstance(memory, tuple) and known.issuperset(memory)):
        return ""
    return "its memory is not a tuple of names of its parameters"


def _wrong_with_fields(owner: object) -> str:
    """What is wrong with the parameter dataclass of a strategy or a length rule."""
    if not inspect.isclass(owner) or not dataclasses.is_dataclass(owner):
        return "its params are not a dataclass"
    try:
        described = list(params_of(owner))
        check_params(owner())
    except Exception as error:  # foreign code: it may raise anything
        return f"its params cannot be made: {error_words(error)}"
    for param in described:
        if param.kind not in (bool, int, float, str):
            return f"the parameter {param.name} is not a bool, int, float or str"
    return ""


def _wrong_with_params(owner: type[Any], kind: StrategyKind) -> str:
    if wrong := _wrong_with_fields(owner):
        return wrong
    described = params_of(owner)
    for param in described:
        if param.name in run_keys():
            return f"a parameter cannot be called {param.name}, which applies to the whole run"
        if param.name in (kind.limit, kind.least, "n_min") and param.kind is not int:
            return f"the parameter {param.name} is a number of tokens, and must be an int"
    counts = [param.name for param in described if param.kind is int]
    if kind.limit not in counts and (kind.length or (kind.length is None and counts)):
        return (
            f"it has no parameter {kind.limit}: say in StrategyKind which one limits a draft's length, as "
            f'in length="{(counts or ["k"])[0]}", or length="" if none does'
        )
    return ""
