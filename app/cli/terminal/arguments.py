"""Parsing of arguments: errors on one line, and options made from parameter dataclasses."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn, TypeVar

from typing_extensions import override

from app.base import numbers
from app.engine.errors import SettingError, UserError
from app.engine.explain.llama_flags import LAYERS, NAMES, other_names
from app.engine.params import Param, Value, params_of

T = TypeVar("T")

HOMES = ("process", "thread")


class UsageError(UserError):
    """The command line cannot be understood."""


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises UsageError, whose message is one line."""

    def __init__(
        self, prog: str, description: str, usage: str, epilog: str = "", *, add_help: bool = True
    ) -> None:
        super().__init__(
            prog=prog,
            description=description,
            usage=usage,
            epilog=epilog,
            formatter_class=_Help,
            add_help=add_help,
            allow_abbrev=False,  # a new option must not change what an old script means
        )

    @override
    def _get_option_tuples(self, option_string: str) -> list[tuple[argparse.Action, str, str | None]]:
        """Return no options: argparse would read -cx as -c with the value x, and llama.cpp's names have
        common beginnings."""
        return []

    @override
    def error(self, message: str) -> NoReturn:
        message = message.removesuffix(".")
        raise UsageError(f"{message}.", f"See {self.prog} --help.")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Shows only the short ones of llama.cpp's names for an option, if there are any."""

    @override
    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        names = list(action.option_strings)
        short = any(name in NAMES and not name.startswith("--") for name in names)
        shown = [name for name in names if not (short and name in NAMES and name.startswith("--"))]
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(shown)} {value}".rstrip()


_OPTION = re.compile(r"(\S+)(?: (\[)?([^\s\]]+)( \.\.\.)?\]?)?(?:  |\n)(.*)", re.DOTALL)


def add_options(
    group: argparse._ActionsContainer,
    text: str,
    every: Callable[[str], Any] | None = None,
    *,
    required: bool = False,
    **reads: Any,
) -> None:
    """Add the options that a text describes, almost as --help prints them: a line for each, with two spaces
    before its help. Indented lines continue the help.

    `--name` is a switch. `--name V` takes a value. `--name V ...` may be given several times. `name V` and
    `name V ...` are arguments, and `name [V]` and `name [V ...]` may be left out. `reads` has by name what
    reads a value, by default `every`, or (what reads it, the default). llama.cpp's names for an option also
    work.
    """
    for line in re.split(r"\n(?=\S)", text.strip()):
        found = _OPTION.fullmatch(line)
        assert found is not None, line
        name, optional, metavar, many, words = found.groups()
        action: dict[str, Any] = {"help": " ".join(words.split()).replace("%", "%%")}
        read = reads.pop(name.lstrip("-").replace("-", "_"), every)
        kind, default = read if isinstance(read, tuple) else (read, None)
        is_argument = not name.startswith("-")
        if metavar is None:
            action["action"] = "store_true"
        else:
            action |= {"metavar": metavar, "type": kind} | ({} if default is None else {"default": default})
        if is_argument and (optional or many):
            action["nargs"] = "?" if not many else "*" if optional else "+"
        elif many:
            action |= {"action": "append", "default": []}
        if required:
            action["required"] = True
        group.add_argument(name, *([] if is_argument else other_names(name)), **action)
    assert not reads, reads


def add_engine_option(group: argparse._ActionsContainer) -> None:
    """Add --engine: where the models run. `make_home` takes its value."""
    group.add_argument(
        "--engine",
        choices=HOMES,
        default=HOMES[0],
        help=f"Where the models run: in a separate process, so a crash ends only that process, or on a "
        f"thread (default {HOMES[0]})",
    )


def plain_text(argument: str) -> str:
    """An argument as UTF-8, in any locale."""
    return os.fsencode(argument).decode("utf-8", errors="replace")


class ParamOptions:
    """The options of one parameter dataclass, with its defaults, ranges and lines of help."""

    def __init__(
        self, owner: type[Any], *, suffix: str = "", only: Collection[str] = (), shared: Collection[str] = ()
    ) -> None:
        """`suffix` ends every option's name. `only` picks parameters, by default all. `shared` parameters
        default to the value of the option without the suffix. llama.cpp's names for an option also work."""
        self._suffix = suffix
        self._shared = shared
        self._params = [param for param in params_of(owner) if not only or param.name in only]

    def add_to(self, group: argparse._ArgumentGroup, default: str = "") -> None:
        """Add the options; `default` describes the command's own default, if any."""
        for param in self._params:
            action: dict[str, Any]
            if param.kind is bool:
                action = {"action": "store_const", "const": not param.default}
            elif param.words:
                action = {"action": "append", "type": _word, "metavar": "TEXT"}
            else:
                action = {"type": _reader(param), "metavar": _metavar(param)}
            names = [self.flag(param), *other_names(self.flag(param))]
            group.add_argument(
                *names, dest=self._dest(param), default=None, help=self._help(param, default), **action
            )

    def flag(self, param: Param) -> str:
        no = "no-" if param.kind is bool and param.default else ""
        return f"--{no}{param.name.replace('_', '-')}{self._suffix}"

    def given(self, arguments: argparse.Namespace) -> dict[str, Any]:
        """The parameters given on the command line: name -> value, of the parameter's type."""
        values = {param: getattr(arguments, self._dest(param)) for param in self._params}
        return {
            param.name: " ".join(value) if param.words else value
            for param, value in values.items()
            if value is not None
        }

    def flags_given(self, arguments: argparse.Namespace) -> list[str]:
        given = self.given(arguments)
        return [self.flag(param) for param in self._params if param.name in given]

    def resolved(self, arguments: argparse.Namespace, others: Mapping[str, Any]) -> dict[str, Any]:
        """`given`, completed by the shared parameters of `others`."""
        shared = {name: value for name, value in others.items() if name in self._shared}
        return shared | self.given(arguments)

    def _dest(self, param: Param) -> str:
        return param.name + self._suffix.replace("-", "_")

    def _help(self, param: Param, default: str) -> str:
        """The help text, followed by range and default; an option with a suffix refers to the one without."""
        doc, notes = param.doc, [param.range_text(), f"default {default or param.format(param.default)}"]
        if param.kind is bool:
            doc, notes = (f"Do not {doc[:1].lower()}{doc[1:]}" if param.default else doc), []
        elif param.words:
            notes = ["one text each time it is given", *notes[1:]]
        elif param.default == "":
            notes = []
        if self._suffix:
            doc = f"As {self.flag(param).removesuffix(self._suffix)}, for the {self._suffix.strip('-')}"
            notes = ["default: the same"] if param.name in self._shared else notes[1:]
        if notes:
            doc = f"{doc.removesuffix('.')} ({'; '.join(notes)})"
        return doc.replace("%", "%%")


def typed(parse: Callable[[str], T]) -> Callable[[str], T]:
    """An argparse type."""

    def read(text: str) -> T:
        try:
            return parse(text)
        except SettingError as error:
            raise argparse.ArgumentTypeError(f"cannot be {text!r}. {error.hint}") from None

    return read


def positive(allowed: str) -> Callable[[str], float]:
    """An argparse type for a number above 0; `allowed` says that in a sentence."""

    def parse(text: str) -> float:
        if (number := numbers.positive(text)) is None:
            raise SettingError("It is not a number above 0.", allowed)
        return number

    return typed(parse)


def _reader(param: Param) -> Callable[[str], Value]:
    layers = LAYERS if param.name == "n_gpu_layers" else {}
    return typed(lambda text: param.parse(layers.get(text, text)))


def _word(text: str) -> str:
    """A word of a list, with its white space escaped, so that it stays one word."""
    return re.sub(r"\s", _escaped, plain_text(text))


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"\\x{byte:02x}" for byte in found[0].encode())


def _metavar(param: Param) -> str:
    if param.choices:
        return "TYPE" if "type" in param.name else "MODE"
    return {int: "N", str: "LIST"}.get(param.kind, "X")
