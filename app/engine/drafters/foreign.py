"""Plug-in strategies: what is required of them, and their registration beside the built-in ones."""

from __future__ import annotations

import dataclasses
import inspect
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from app.engine.drafters.base import Drafter, Keeps, Resources, StrategyKind
from app.engine.drafters.guarded import GuardedDrafter, error_words
from app.engine.drafters.registry import KINDS
from app.engine.errors import DrafterError, SettingError
from app.engine.params import check_params, params_of
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


def foreign_kinds() -> list[ForeignKind]:
    """The plug-in strategies that are registered."""
    return [kind for kind in KINDS.values() if isinstance(kind, ForeignKind)]


def register(kind: StrategyKind, source: str = "", stamp: Stamp | None = None) -> None:
    """Add a strategy to grammar, forms, help and engine, behind a guard.

    Raises DrafterError if it is not a valid strategy, or if its name is taken.
    """
    wrong = _what_is_wrong(kind)
    if wrong:
        raise DrafterError(f"{source_name(source)} cannot be used: {wrong}.")
    described = {field.name: getattr(kind, field.name) for field in dataclasses.fields(StrategyKind)}
    described["make"] = partial(_make_guarded, kind)
    described["keeps"] = Keeps()  # its word for it would have to be checked
    if kind.length is None and "n_max" not in [param.name for param in params_of(kind.params)]:
        described["length"] = ""
    described["walks"] = False  # it may wait, and run anything
    described["params"] = _guarded_params(kind.params)
    KINDS[kind.name] = ForeignKind(**described, source=source, stamp=stamp)


def unregister(name: str) -> None:
    """Remove a plug-in strategy; built-in ones stay."""
    if isinstance(KINDS.get(name), ForeignKind):
        del KINDS[name]


def source_name(source: str) -> str:
    """Where a strategy came from, short enough for a sentence."""
    return source.replace("\\", "/").rsplit("/", 1)[-1] or "A strategy of this script"


def _make_guarded(kind: StrategyKind, params: Any, resources: Resources) -> Drafter:
    theirs = Resources(resources.vocabulary)  # the draft model's cache is the engine's alone

    def make(params: Any) -> Any:
        return kind.make(params, theirs)

    return GuardedDrafter(kind.name, make, params, resources.vocabulary.size)


def _guarded_params(owner: type[Any]) -> type[Any]:
    """The same dataclass, but every error that its constructor raises becomes a SettingError, which callers
    that parse a spec or fill in a form expect."""

    def init(self: Any, *values: Any, **named: Any) -> None:
        try:
            owner.__init__(self, *values, **named)
        except SettingError:
            raise
        except Exception as error:  # foreign code
            raise SettingError(f"These settings cannot be used: {error_words(error)}.") from error

    own = {"__init__": init, "__slots__": (), "__module__": owner.__module__, "__doc__": owner.__doc__}
    return type(owner.__name__, (owner,), own)


def _what_is_wrong(kind: Any) -> str:
    """The reason why a strategy cannot be used, worded to follow a colon; empty for a valid one."""
    if not isinstance(kind, StrategyKind):
        return f"its STRATEGY is of type {type(kind).__name__} and not StrategyKind"
    name: Any = kind.name
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        return (
            f"{name!r} is not a valid strategy name (lower-case letters and digits, joined by single "
            f"hyphens, "
            f"at most {_LONGEST_NAME})"
        )
    if name in KINDS or name == NONE:
        owner = KINDS.get(name)
        where = source_name(owner.source) if isinstance(owner, ForeignKind) else "Draftscope"
        return f"the name “{name}” is taken ({where})"
    summary: Any = kind.summary
    if not isinstance(summary, str) or not summary.strip():
        return f"{name} has no summary"
    if kind.needs_draft:
        return f"{name} asks for the draft model, and drafters from outside draft without one"
    if not callable(kind.make):
        return f"make of {name} cannot be called"
    if inspect.isclass(kind.make):
        if not issubclass(kind.make, Drafter):
            return f"{kind.make.__name__} is not derived from Drafter"
        if inspect.isabstract(kind.make):
            return f"{kind.make.__name__} has no {' and no '.join(sorted(kind.make.__abstractmethods__))}"
    return _wrong_with_params(kind.params, kind) or _wrong_with_memory(kind)


def _wrong_with_memory(kind: StrategyKind) -> str:
    memory: Any = kind.memory
    known = {param.name for param in params_of(kind.params)}
    if memory is None or (isinstance(memory, tuple) and known.issuperset(memory)):
        return ""
    return "its memory is not a tuple of names of its parameters"


def _wrong_with_params(owner: object, kind: StrategyKind) -> str:
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
        if param.name in run_keys():
            return f"a parameter cannot be called {param.name}, which holds for the whole run"
        if param.name in (kind.limit, kind.least, "n_min") and param.kind is not int:
            return f"the parameter {param.name} is a number of tokens, and must be an int"
    counts = [param.name for param in described if param.kind is int]
    if kind.limit not in counts and (kind.length or (kind.length is None and counts)):
        return (
            f"it has no parameter {kind.limit}: say in StrategyKind which one limits a draft's length, as "
            f'in length="{(counts or ["k"])[0]}", or length="" if none does'
        )
    return ""
