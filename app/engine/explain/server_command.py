"""Explains a llama.cpp command: what it does, why it does not draft, and the same lane here.

Flags and their effects are those of the built-in version's common/arg.cpp. `llama_command.py` is the other
direction.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import takewhile
from pathlib import PurePosixPath

from app.engine.compat import HEAD_STRATEGIES
from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.engine.explain.llama_flags import DRAFT_KEYS, LAYERS, NAMES, PRESETS, PROGRAMS, known_flags
from app.engine.params import Param, params_of
from app.engine.strategy import NONE, StrategySpec, quote
from app.engine.types import ModelOptions, Sampling

LLAMA_TYPES = {
    kind.name: kind.llama
    for kind in sorted(KINDS.values(), key=lambda kind: not kind.by_model)
    if kind.llama is not None
}
"""llama.cpp's types, those of draft models first, and their flags."""
_ENVIRONMENT = "LLAMA_ARG_"
_VARIABLES = {
    "--n-parallel": "--parallel", "--batch": "--batch-size", "--ubatch": "--ubatch-size",
    "--spec-draft-hf-repo": "--spec-draft-hf", "--spec-draft-cache-type-k": "--spec-draft-type-k",
    "--spec-draft-cache-type-v": "--spec-draft-type-v",
}  # fmt: skip
"""Environment variables whose name differs from their flag's: as flags -> the flag."""
API_SERVER = "vllm.entrypoints.openai.api_server"
_IMAGES = {"llama.cpp:server": PROGRAMS[0], "vllm/vllm-openai": API_SERVER}
_ENDS = frozenset((";", "&&", "||", "|", "&"))  # words of a shell that end a command
_REMOVED = {
    **dict.fromkeys(("--draft", "--draft-n", "--draft-max"), "n_max"),
    **dict.fromkeys(("--draft-min", "--draft-n-min"), "n_min"),
    "--spec-ngram-size-n": "size_n",
    "--spec-ngram-size-m": "size_m",
    "--spec-ngram-min-hits": "min_hits",
}
"""Flags with which llama-server no longer starts, and the setting of each strategy that replaced them."""
_SIMPLE = "draft-simple"
_FROM_FILE = "an MTP, DFlash or DSpark file"  # llama.cpp knows these types by the file
_SERVER_SAMPLING = {"temperature": "0.8", "top_k": "40", "top_p": "0.95", "min_p": "0.05"}
"""llama-server's defaults that differ from ours; requests may override them."""


@dataclass(slots=True)
class ServerCommand:
    """A command of another program, in our terms."""

    program: str = PROGRAMS[0]
    target: str = ""  # a file, or a name on the Hub; "" where none is named
    draft: str = ""
    strategy: str = NONE  # in the grammar of strategy.py
    options: list[str] = field(default_factory=list)
    """Words for `draftscope bench`: load options and sampling."""
    prompt: str | None = None
    problems: list[str] = field(default_factory=list)
    """Why it does not start, or not draft as probably intended."""
    notes: list[str] = field(default_factory=list)
    """What differs here, and what has no effect there."""

    @property
    def bench(self) -> list[str]:
        """The words of our command for the same measurement."""
        words = ["draftscope", "bench", "--target", self.target]
        if self.draft:
            words += ["--draft", self.draft]
        prompts = ["--suite", "general"] if self.prompt is None else ["--prompt", self.prompt]
        return [*words, "--strategy", self.strategy, *self.options, *prompts]


@dataclass(frozen=True, slots=True)
class _Flag:
    name: str  # as written, with - for _
    values: tuple[str, ...] = ()  # the words up to the next flag
    written: bool = True  # on the command line, not as a variable


def split_command(text: str, programs: Collection[str]) -> tuple[str, list[str], list[str]]:
    """Split a command into (first of the `programs`, "" for none; words before it; words after it). Raises
    SettingError if the text is not valid in a shell."""
    words = _shell_words(text)
    for at, word in enumerate(words):
        if (program := program_of(word)) in programs:
            return program, words[:at], list(takewhile(lambda other: other not in _ENDS, words[at + 1 :]))
        if words[at - 1 : at] == ["-c"] and (inner := split_command(word, programs))[0]:  # of a shell
            return inner
    return "", words, []


def _shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text.replace("\\\r\n", " ").replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise SettingError(
            f"The command cannot be read: {str(error).lower()}.", "Check its quotes."
        ) from None


def explain_command(text: str) -> ServerCommand:
    """Read a llama.cpp command as typed in a shell. Raises SettingError if it is not one."""
    program, before, words = split_command(text, PROGRAMS)
    variables = [word for word in before if word.startswith(_ENVIRONMENT)]
    return _FlagReader(program or PROGRAMS[0], _flags([*variables, *words])).read()


def program_of(word: str) -> str:
    """The name of the program that a word of a command runs, or the image of a container."""
    for image, program in _IMAGES.items():
        if image in word:
            return program
    return PurePosixPath(word.replace("\\", "/")).name.removesuffix(".exe")


def _flags(words: Sequence[str]) -> list[_Flag]:
    """The flags in order, each with the words after it. Environment variables of llama.cpp appear as their
    flags."""
    found: list[_Flag] = []
    for word in words:
        if word.startswith(_ENVIRONMENT) and "=" in word:
            name, value = word.removeprefix(_ENVIRONMENT).split("=", 1)
            flag = "--" + name.lower().replace("_", "-")
            found.append(_Flag(_VARIABLES.get(flag, flag), (value,), written=False))
        elif is_flag(word):
            name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
            if name.startswith("--"):
                name = name.replace("_", "-")  # as llama.cpp does
            found.append(_Flag(name + equals if equals else name, (value,) if equals else ()))
        elif found:
            last = found[-1]
            found[-1] = _Flag(last.name, (*last.values, word), last.written)
    return found


def is_flag(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and not word[1].isdigit() and word[1] != "."


class _FlagReader:
    """Reads one command's flags."""

    def __init__(self, program: str, flags: Sequence[_Flag]) -> None:
        self._program = program
        self._flags = flags
        self._command = ServerCommand(program)
        self._types: list[str] = []
        self._keys: dict[str, dict[str, str]] = {}  # strategy -> key -> value
        self._meant: dict[str, dict[str, str]] = {}  # the same, of removed flags
        self._replaced: list[tuple[str, ...]] = []
        self._sampling = dict(_SERVER_SAMPLING)
        self._others: list[str] = []  # flags without an equivalent here
        self._file = ""
        self._of_the_hub = False  # the target

    def read(self) -> ServerCommand:
        for flag in self._flags:
            name = flag.name.removesuffix("=")
            if name != flag.name:
                self._stops(f"it takes {name} VALUE, not {name}=VALUE")
            carried = self._take(name, flag.values)
            if flag.written and name not in known_flags(self._program):
                self._unknown(name, carried)
            elif not carried:
                self._others.append(name)
        command = self._command
        if self._file and command.target:
            command.target = f"{command.target.split(':')[0]}/{self._file}"
        if self._replaced:
            pairs = json.dumps(self._replaced, ensure_ascii=False)
            self._keys.setdefault("draft-simple", {})["replace"] = pairs
        command.problems += self._why_not()
        command.strategy = self._strategy()
        command.options += [
            word for key, value in self._sampling.items() for word in ("--" + key.replace("_", "-"), value)
        ]
        command.notes += self._without_effect()
        if self._others:
            command.notes.append(f"Not carried over: {', '.join(dict.fromkeys(self._others))}.")
        if not command.target:
            command.problems.append("No model is named: --model or --hf-repo is missing.")
        return command

    def _stops(self, why: str) -> None:
        self._command.problems.append(f"{self._program} does not start: {why}.")

    def _unknown(self, name: str, carried: bool) -> None:
        """A flag with which the program does not start."""
        near = get_close_matches(name, known_flags(self._program), 1, 0.8)
        if carried:
            ours = "draft-simple:replace=…" if name == "--spec-replace" else NAMES.get(name, name)
            rest = f". {ours} does the same here"
        else:
            rest = f". You may mean {near[0]}" if near else ", and Draftscope has nothing similar"
        self._stops(f"it has no {name}{rest}")

    def _take(self, name: str, values: tuple[str, ...]) -> bool:
        """Carry a flag over; False if it has no equivalent here."""
        command = self._command
        value = values[0] if values else ""
        ours = NAMES.get(name, name)
        if name in _REMOVED:
            owners = [kind for kind in LLAMA_TYPES if _REMOVED[name] in _keys_of(kind)]
            flags = " or ".join(dict.fromkeys(LLAMA_TYPES[kind].flag(_REMOVED[name]) for kind in owners))
            command.problems.append(f"{self._program} does not start: {name} has been removed. Use {flags}.")
            for kind in owners:
                self._meant.setdefault(kind, {})[_REMOVED[name]] = value
        elif name in ("-hff", "--hf-file"):
            self._file = value
        elif ours in ("--target", "--draft"):
            setattr(command, ours.removeprefix("--"), value)
            self._of_the_hub = self._of_the_hub or (ours == "--target" and "hf" in name)
        elif name in PRESETS:
            preset = PRESETS[name]
            command.target, command.draft = preset.target, preset.draft
            command.options += preset.options
            self._sampling |= preset.sampling
        elif name == "--spec-type":
            self._types += [part.strip() for part in value.split(",") if part.strip()]
        elif name == "--spec-default":
            self._types.append("ngram-mod")
        elif name == "--spec-replace":
            self._replaced.append(values[:2])
        elif ours in DRAFT_KEYS:
            self._keys.setdefault("draft-simple", {})[DRAFT_KEYS[ours]] = value
        elif ours in _STRATEGY_FLAGS:
            for strategy, key in _STRATEGY_FLAGS[ours]:
                self._keys.setdefault(strategy, {})[key] = value
        elif (key := ours.removeprefix("--").replace("-", "_")) in _SAMPLING:
            return self._take_checked(ours, _SAMPLING[key], value, into_sampling=True)
        elif ours in _LOADING:
            return self._take_loading(name, ours, values)
        elif ours == "--prompt":
            command.prompt = value
        elif ours == "--max-tokens":
            if not value.isdecimal() or not int(value):
                return False  # llama.cpp's -1: until the model ends the answer
            command.options += [ours, value]
        elif ours == "--stop":
            command.options += [ours, value]
        elif ours == "--parallel":
            if value not in ("", "1"):
                command.notes.append(
                    f"{value} requests share the machine there; here a lane answers one at a time."
                )
        else:
            return False
        return True

    def _take_loading(self, name: str, ours: str, values: tuple[str, ...]) -> bool:
        param = _LOADING[ours]
        if param.kind is bool:
            if ours.startswith("--no-") == param.default:  # the other is our default
                self._command.options.append(ours)
            return True
        if not values:
            bare = name in ("-fa", "--flash-attn")
            self._stops(f"{name} needs a value{': on, off or auto' if bare else ''}")
            if bare:  # as older versions had it
                self._command.options += [ours, "on"]
            return bare
        value = LAYERS.get(values[0], values[0]) if param.name == "n_gpu_layers" else values[0]
        return self._take_checked(ours, param, value)

    def _take_checked(self, ours: str, param: Param, value: str, *, into_sampling: bool = False) -> bool:
        """Carry over an allowed value; note any other."""
        try:
            param.parse(value)
        except SettingError as error:
            self._command.notes.append(f"{ours} {value} is not carried over. {error.hint}")
            return True
        if into_sampling:
            self._sampling[param.name] = value
        else:
            self._command.options += [ours, value]
        return True

    def _why_not(self) -> Iterator[str]:
        """Why the program does not draft, or not with everything named."""
        types = [kind for kind in self._types if kind != NONE]
        draft = self._command.draft
        drafts_anyway = self._program == "llama-speculative"  # which has no types
        if draft and not drafts_anyway and not any(kind.startswith("draft-") for kind in types):
            why = (
                f"--spec-type is {','.join(self._types)}. Add draft-simple to it."
                if self._types
                else f"without --spec-type {self._program} drafts with {_FROM_FILE} only. Add --spec-type "
                "draft-simple."
            )
            yield f"The draft model is not used: {why}"
        for kind in types if not draft else ():
            # From the target's repository it takes the file of a head, if there is one.
            if kind in LLAMA_TYPES and KINDS[kind].needs_draft and (kind == _SIMPLE or not self._of_the_hub):
                what = "draft model" if kind == _SIMPLE else "file of its head"
                yield f"{kind} has no {what}: give one with --model-draft or --hf-repo-draft."
        if not types and not draft:
            why = "--spec-type is none" if self._types else "there is neither --spec-type nor a draft model"
            yield f"Nothing drafts: {why}."
        for kind in types:
            if kind not in LLAMA_TYPES:
                allowed = ", ".join(sorted(LLAMA_TYPES))
                yield f"{self._program} does not start: it has no type {kind}. It has {allowed}."

    def _strategy(self) -> str:
        """Our spec. llama.cpp's order of precedence is the registry's: n-grams before a draft."""
        types = self._types
        if self._command.draft and NONE not in types and not any(kind.startswith("draft-") for kind in types):
            types = [*types, "draft-simple"]
            if self._program != "llama-speculative":
                meant = " and ".join(types)
                self._command.notes.append(f"It is read as {meant}, which the command probably intends.")
        parts = [kind for kind in KINDS if kind in types and kind in LLAMA_TYPES]
        # Where a draft model is, --draft-max was that of the draft.
        of_the_draft = set(DRAFT_KEYS.values()) if self._command.draft else set()
        specs = []
        for part in parts:
            drafts = part.startswith("draft-")
            kept = set() if drafts else of_the_draft
            meant_keys = {key: value for key, value in self._meant.get(part, {}).items() if key not in kept}
            keys = (
                meant_keys | (self._keys.get("draft-simple", {}) if drafts else {}) | self._keys.get(part, {})
            )
            specs.append(":".join([part, *(f"{key}={quote(value)}" for key, value in keys.items())]))
        try:
            return str(StrategySpec.parse("+".join(specs) or NONE))
        except SettingError as error:
            self._command.problems.append(str(error))
            return "+".join(parts) or NONE

    def _without_effect(self) -> Iterator[str]:
        heads = [kind for kind in self._types if kind in HEAD_STRATEGIES.values()]
        if self._of_the_hub and heads and not self._command.draft:
            yield (
                f"{self._program} takes the head from the target's repository, if a file name there "
                f"contains {heads[0].removeprefix('draft-')}-. Here it is the draft: add --draft "
                "OWNER/REPO/FILE."
            )
        used = {*self._types} | ({"draft-simple"} if self._command.draft else set())
        for strategy, keys in self._keys.items():
            drafts = strategy.startswith("draft-") and any(kind.startswith("draft-") for kind in used)
            if strategy not in used and not drafts:
                flags = ", ".join(LLAMA_TYPES[strategy].flag(key) for key in keys)
                has = "has" if len(keys) == 1 else "have"
                yield f"{flags} {has} no effect: {strategy} is not in --spec-type."


def _keys_of(strategy: str) -> list[str]:
    return [param.name for param in params_of(KINDS[strategy].params)]


def _strategy_flags() -> dict[str, list[tuple[str, str]]]:
    flags: dict[str, list[tuple[str, str]]] = {}
    for name, ours in LLAMA_TYPES.items():
        for key in _keys_of(name):
            flags.setdefault(ours.flag(key), []).append((name, key))
    return flags


_STRATEGY_FLAGS = _strategy_flags()
_SAMPLING = {param.name: param for param in params_of(Sampling)}
_LOADING = {
    f"--{no}{param.name.replace('_', '-')}{whose}": param
    for param in params_of(ModelOptions)
    for no in ("", *(("no-",) if param.kind is bool else ()))
    for whose in ("", "-draft")
}
