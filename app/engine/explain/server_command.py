"""What a llama-server command line does, why it does not draft, and the lane that does the same here.

Flags and their effects are those of the built-in version's common/arg.cpp. `llama_command.py` is the other
direction.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.engine.explain.llama_command import LLAMA_TYPES, spec_flag
from app.engine.params import params_of
from app.engine.strategy import LLAMA_CPP_ONLY, NONE, StrategySpec, quote
from app.engine.types import ModelOptions, Sampling

_ENVIRONMENT = "LLAMA_ARG_"
_SOURCES = {
    "-m": "target", "--model": "target",
    "-hf": "target", "-hfr": "target", "--hf-repo": "target", "-hff": "file", "--hf-file": "file",
    "-md": "draft", "--model-draft": "draft", "--spec-draft-model": "draft",
    "-hfd": "draft", "-hfrd": "draft", "--hf-repo-draft": "draft", "--spec-draft-hf": "draft",
}  # fmt: skip
_SHORT = {
    "-c": "--ctx-size", "-t": "--threads", "-tb": "--threads-batch", "-b": "--batch-size",
    "-ub": "--ubatch-size", "-ngl": "--n-gpu-layers", "--gpu-layers": "--n-gpu-layers",
    "-ctk": "--cache-type-k", "-ctv": "--cache-type-v", "-fa": "--flash-attn", "-dev": "--device",
    "-sm": "--split-mode", "-ts": "--tensor-split", "-mg": "--main-gpu", "-cmoe": "--cpu-moe",
    "-ncmoe": "--n-cpu-moe", "-nkvo": "--no-kv-offload", "-nr": "--no-repack",
    "-td": "--threads-draft", "-tbd": "--threads-batch-draft", "-ngld": "--n-gpu-layers-draft",
    "--gpu-layers-draft": "--n-gpu-layers-draft", "-devd": "--device-draft",
    "-ctkd": "--cache-type-k-draft", "-ctvd": "--cache-type-v-draft", "-cmoed": "--cpu-moe-draft",
    "-ncmoed": "--n-cpu-moe-draft", "--temp": "--temperature", "-s": "--seed",
    "--typical": "--typical-p", "--draft-p-min": "--spec-draft-p-min",
    "--spec-draft-ngl": "--n-gpu-layers-draft", "--spec-draft-device": "--device-draft",
    "--spec-draft-threads": "--threads-draft", "--spec-draft-threads-batch": "--threads-batch-draft",
    "--spec-draft-type-k": "--cache-type-k-draft", "--spec-draft-type-v": "--cache-type-v-draft",
    "--spec-draft-cpu-moe": "--cpu-moe-draft", "--spec-draft-n-cpu-moe": "--n-cpu-moe-draft",
    "-lcs": "--lookup-cache-static", "-lcd": "--lookup-cache-dynamic",
    "-np": "--parallel",
}  # fmt: skip
_REMOVED = {
    **dict.fromkeys(("--draft", "--draft-n", "--draft-max"), "n_max"),
    **dict.fromkeys(("--draft-min", "--draft-n-min"), "n_min"),
    "--spec-ngram-size-n": "size_n",
    "--spec-ngram-size-m": "size_m",
    "--spec-ngram-min-hits": "min_hits",
}
"""Flags with which llama-server no longer starts, and the setting that each strategy now has of its own."""
_FROM_FILE = "an MTP, DFlash or DSpark file"  # llama.cpp knows these types by the file
_SERVER_SAMPLING = {"temperature": "0.8", "top_k": "40", "top_p": "0.95", "min_p": "0.05"}
"""llama-server's defaults where they differ from ours: they hold for requests that say nothing else."""


@dataclass(slots=True)
class ServerCommand:
    """A llama-server command, in our terms."""

    target: str = ""  # a file, or a name on the Hub; "" where none is named
    draft: str = ""
    strategy: str = NONE  # in the grammar of strategy.py
    options: list[str] = field(default_factory=list)
    """Words for `draftscope bench`: how models are loaded and tokens drawn."""
    problems: list[str] = field(default_factory=list)
    """Why it does not start, or does not draft as it seems to be meant to."""
    notes: list[str] = field(default_factory=list)
    """What is different here, and what has no effect there."""

    @property
    def bench(self) -> list[str]:
        """The words of our command that measures the same."""
        words = ["draftscope", "bench", "--target", self.target]
        if self.draft:
            words += ["--draft", self.draft]
        return [*words, "--strategy", self.strategy, *self.options, "--suite", "general"]


def explain_command(text: str) -> ServerCommand:
    """Read a command as typed in a shell. Raises SettingError where it cannot be read as one."""
    try:
        words = shlex.split(text.replace("\\\r\n", " ").replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise SettingError(
            f"The command cannot be read: {str(error).lower()}.", "Check its quotes."
        ) from None
    return _FlagReader(_flags(words)).read()


def _flags(words: Sequence[str]) -> list[tuple[str, str | None]]:
    """The flags in order, each with its value, None where the next word is another flag; environment
    variables of llama.cpp as the flags that they stand for."""
    found: list[tuple[str, str | None]] = []
    for word in words:
        if word.startswith(_ENVIRONMENT) and "=" in word:
            name, value = word.removeprefix(_ENVIRONMENT).split("=", 1)
            found.append(("--" + name.lower().replace("_", "-"), value))
        elif _is_flag(word):
            name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
            found.append((name, value if equals else None))
        elif found and found[-1][1] is None:
            found[-1] = (found[-1][0], word)
    return found


def _is_flag(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and not word[1].isdigit() and word[1] != "."


class _FlagReader:
    """Reads one command's flags."""

    def __init__(self, flags: Sequence[tuple[str, str | None]]) -> None:
        self._flags = flags
        self._command = ServerCommand()
        self._types: list[str] = []
        self._keys: dict[str, dict[str, str]] = {}  # strategy -> key -> value
        self._meant: dict[str, dict[str, str]] = {}  # the same, of removed flags
        self._sampling = dict(_SERVER_SAMPLING)
        self._others: list[str] = []  # flags that nothing here stands for
        self._file = ""

    def read(self) -> ServerCommand:
        for name, value in self._flags:
            self._take(_SHORT.get(name, name), value or "")
        command = self._command
        if self._file and command.target:
            command.target = f"{command.target.split(':')[0]}/{self._file}"
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

    def _take(self, name: str, value: str) -> None:
        command = self._command
        if name in _REMOVED:
            owners = [kind for kind in LLAMA_TYPES if _REMOVED[name] in _keys_of(kind)]
            flags = " or ".join(spec_flag(kind, _REMOVED[name]) for kind in owners)
            command.problems.append(f"llama-server does not start: {name} has been removed. Use {flags}.")
            for kind in owners:
                self._meant.setdefault(kind, {})[_REMOVED[name]] = value
        elif name in _SOURCES:
            where = _SOURCES[name]
            if where == "file":
                self._file = value
            else:
                setattr(command, where, value)
        elif name == "--spec-type":
            self._types += [part.strip() for part in value.split(",") if part.strip()]
        elif name == "--spec-default":
            self._types.append("ngram-mod")
        elif name in _STRATEGY_FLAGS:
            for strategy, key in _STRATEGY_FLAGS[name]:
                self._keys.setdefault(strategy, {})[key] = value
        elif (key := name.removeprefix("--").replace("-", "_")) in _SAMPLING:
            self._sampling[key] = value
        elif name in _LOADING:
            if name.startswith("--n-gpu-layers"):
                value = {"all": "-1", "auto": "-1"}.get(value, value)
            command.options += [name, value] if value else [name]
        elif name == "--parallel":
            if value not in ("", "1"):
                command.notes.append(
                    f"{value} requests share the machine there; here a lane answers one at a time."
                )
        else:
            self._others.append(name)

    def _why_not(self) -> Iterator[str]:
        """Why the server does not draft, or not with everything that is named."""
        types = [kind for kind in self._types if kind != NONE]
        draft = self._command.draft
        if draft and not any(kind.startswith("draft-") for kind in types):
            why = (
                f"--spec-type is {','.join(self._types)}. Add draft-simple to it."
                if self._types
                else f"without --spec-type llama-server drafts with {_FROM_FILE} only. Add --spec-type "
                "draft-simple."
            )
            yield f"The draft model is not used: {why}"
        if not draft and "draft-simple" in types:
            yield "draft-simple has no draft model: give one with --model-draft or --hf-repo-draft."
        if not types and not draft:
            why = "--spec-type is none" if self._types else "there is neither --spec-type nor a draft model"
            yield f"Nothing drafts: {why}."
        for kind in types:
            if kind not in LLAMA_TYPES and kind not in LLAMA_CPP_ONLY:
                allowed = ", ".join(sorted({*LLAMA_TYPES, *LLAMA_CPP_ONLY}))
                yield f"llama-server does not start: it has no type {kind}. It has {allowed}."

    def _strategy(self) -> str:
        """Our spec: llama.cpp's order of precedence is that of the registry, n-grams before a draft."""
        types = self._types
        if self._command.draft and not types:
            self._command.notes.append("The lane drafts as the command seems to be meant: draft-simple.")
            types = ["draft-simple"]
        missing = [kind for kind in types if kind in LLAMA_CPP_ONLY]
        if missing:
            self._command.notes.append(f"Draftscope has no {' and no '.join(missing)}: it is left out.")
        parts = [kind for kind in KINDS if kind in types and kind in LLAMA_TYPES]
        specs = []
        for part in parts:
            keys = self._meant.get(part, {}) | self._keys.get(part, {})
            specs.append(":".join([part, *(f"{key}={quote(value)}" for key, value in keys.items())]))
        try:
            return str(StrategySpec.parse("+".join(specs) or NONE))
        except SettingError as error:
            self._command.problems.append(str(error))
            return "+".join(parts) or NONE

    def _without_effect(self) -> Iterator[str]:
        used = {*self._types} or ({"draft-simple"} if self._command.draft else set())
        for strategy, keys in self._keys.items():
            if strategy not in used and not (strategy == "draft-simple" and used & {*LLAMA_CPP_ONLY}):
                flags = ", ".join(spec_flag(strategy, key) for key in keys)
                has = "has" if len(keys) == 1 else "have"
                yield f"{flags} {has} no effect: {strategy} is not in --spec-type."


def _keys_of(strategy: str) -> list[str]:
    return [param.name for param in params_of(KINDS[strategy].params)]


def _strategy_flags() -> dict[str, list[tuple[str, str]]]:
    flags: dict[str, list[tuple[str, str]]] = {}
    for kind in KINDS.values():
        if kind.name in LLAMA_TYPES:
            for key in _keys_of(kind.name):
                flags.setdefault(spec_flag(kind.name, key), []).append((kind.name, key))
    return flags


_STRATEGY_FLAGS = _strategy_flags()
_SAMPLING = {param.name for param in params_of(Sampling)}
_LOADING = {
    f"--{no}{param.name.replace('_', '-')}{whose}"
    for param in params_of(ModelOptions)
    for no in ("", *(("no-",) if param.kind is bool else ()))
    for whose in ("", "-draft")
}
