"""Settings that are kept between starts, and their JSON file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_type_hints

import msgspec

from app.base import files
from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET
from app.engine.errors import SettingError, UserError
from app.engine.params import Param, param, params_of
from app.engine.strategy import StrategySpec, undrafted
from app.engine.types import ModelOptions, Sampling

VERSION = 1
RECENT_MODELS = 8

S = TypeVar("S")
UseDrafters = Callable[[Sequence[str]], Mapping[str, UserError]]
"""Registers the strategies of these files; returns an error for each file that cannot be used."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. Model paths may begin with `bundled:`.

    max_tokens: The most tokens of an answer; it also ends if the context is full. Usually 128 to 2,048.
        Longer answers measure the speed better.
    mode: Chat wraps messages by the model's template; completion continues the bare text; infill writes
        between two texts.
    palette: Colours of tokens and plots: the usual ones, safe for colour-blind eyes, or of high contrast.
    motion: Follow the system, full motion, or less: nothing glides, fades or drops by itself.
    """

    target: ModelOptions = field(default_factory=lambda: ModelOptions(BUNDLED_TARGET))
    draft: ModelOptions | None = field(default_factory=lambda: ModelOptions(BUNDLED_DRAFT))
    server: str = ""  # the address of the server that answers instead of the pair; "" for none
    strategy: str = "draft-simple:n_max=4"
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int = param(1024, low=1, high=1_000_000, unit="tokens")
    stop: tuple[str, ...] = ()
    system_prompt: str = ""
    mode: str = param("chat", choices=("chat", "completion", "infill"))
    theme: str = param("system", "Light, dark, or like the system.", choices=("system", "light", "dark"))
    palette: str = param("standard", choices=("standard", "colour-blind", "high contrast"))
    motion: str = param("system", choices=("system", "full", "less"))
    text_scale: float = param(1.0, "Multiplies the system's text size.", low=0.5, high=3)
    drafts_shown: bool = True
    rendered: bool = False
    instruments_shown: bool = True
    sidebar_shown: bool = True
    geometry: str = ""  # of the window, base64 as Qt saves it
    splitters: Mapping[str, str] = field(default_factory=dict)  # name -> state, base64
    last_chat: str = ""
    recent_models: tuple[str, ...] = ()
    drafters: tuple[str, ...] = ()  # files of plug-in drafters
    offline: bool = False  # the network is not used

    @property
    def usual_strategy(self) -> str:
        """The strategy to fall back to with this pair."""
        usual = Settings().strategy
        return usual if self.draft is not None else undrafted(usual)

    def with_recent(self, path: str) -> Settings:
        """These settings with `path` as the last used model file."""
        earlier = (recent for recent in self.recent_models if recent != path)
        return dataclasses.replace(self, recent_models=(path, *earlier)[:RECENT_MODELS])


class ConfigFile:
    """A JSON object with a version. If writing would lose data that this version cannot read, the file is
    first kept under a different name; if that fails, nothing is written."""

    def __init__(self, path: Path, subject: str, version: int, instead: str = "") -> None:
        """Sentences are about the `subject`, such as "settings". `instead` ends the sentence about an
        unusable object: it says what is used instead."""
        self.path = path
        self._subject, self._version, self._instead = subject, version, instead
        self._locked = ""  # why it must not be written

    def read(self, *, listed: str = "") -> tuple[dict[str, Any] | None, list[str]]:
        """(the object, or None without a usable one; a sentence for each problem). An object without the list
        `listed` is damaged. Never raises."""
        try:
            data = files.decode_object(files.read_file(self.path))
            if listed and not isinstance(data.get(listed), list):
                raise files.DamagedError(f"it contains no {listed}")
        except FileNotFoundError:
            return None, []
        except (OSError, files.DamagedError) as error:
            unread = isinstance(error, OSError)
            return None, self._kept(f"could not be read ({files.reason(error)})" if unread else "was damaged")
        version = data.get("version", self._version)
        if not isinstance(version, int) or version > self._version:
            return data, self._kept("is from a newer version", "newer")
        if version < self._version:
            told = self._kept(f"is of version {version}", f"version-{version}")
            return data, told if self._locked else []
        return data, []

    def _kept(self, what: str, word: str = "") -> list[str]:
        """Copy the file under its name and this word, or without one set it aside; says so."""
        try:
            kept = files.keep_as(self.path, word) if word else files.set_aside(self.path, "damaged")
            instead = "" if word else self._instead
            return [f"The {self._subject} file {what}; it is kept as {kept.name}{instead}."]
        except OSError as error:
            self._locked = f"{self.path} {what} and cannot be kept under a new name ({files.reason(error)})."
            return [f"{self._locked} {self._subject.capitalize()} are not saved."]

    def write(self, data: Mapping[str, Any]) -> None:
        """Write the file, whole or not at all; raises UserError if that fails."""
        what = f"The {self._subject} were not saved"
        if self._locked:
            raise UserError(f"{what}.", self._locked)
        files.write_json(self.path, {**data, "version": self._version}, what)


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings as read, and a sentence for each problem."""

    settings: Settings
    notices: tuple[str, ...] = ()


class SettingsStore:
    """The settings file. Keys that this version does not know are kept unchanged."""

    def __init__(self, path: Path, first: Settings | None = None) -> None:
        """`first` are used if no file can be read."""
        self.path = path
        self._file = ConfigFile(path, "settings", VERSION, ", and defaults are in use")
        self._first = first or Settings()
        self._kept: dict[str, Any] = {}

    def load(self, use_drafters: UseDrafters = lambda _files: {}) -> LoadedSettings:
        """Read the file. Never raises: a wrong value is named and replaced by its default.

        `use_drafters` gets the drafters' files first, because the strategy may be one of theirs.
        """
        data, notices = self._file.read()
        if data is None:
            return LoadedSettings(self._first, (*notices, *_problems(use_drafters(()))))
        self._kept = data
        settings = _read(Settings, data, Settings(), "", notices)
        notices += _problems(use_drafters(settings.drafters))
        try:
            StrategySpec.parse(settings.strategy)
        except SettingError as error:
            notices.append(_notice("strategy", settings.strategy, error))
            settings = dataclasses.replace(settings, strategy=settings.usual_strategy)
        return LoadedSettings(settings, tuple(notices))

    def save(self, settings: Settings) -> None:
        """Write the file, whole or not at all; raises UserError if that fails."""
        data = _merge(self._kept, cast("dict[str, Any]", msgspec.to_builtins(settings)))
        self._file.write(data)
        self._kept = data


def _problems(problems: Mapping[str, UserError]) -> tuple[str, ...]:
    return tuple(map(str, problems.values()))


def _merge(kept: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """`new`, completed on every level by the keys that only `kept` has."""
    merged = dict(kept) | dict(new)
    for key, value in new.items():
        before = kept.get(key)
        # Splitters are a mapping whose keys are all ours: a missing one was removed.
        if isinstance(value, dict) and isinstance(before, dict) and key != "splitters":
            merged[key] = _merge(before, value)
    return merged


def _read(owner: type[S], data: Mapping[str, Any], defaults: S, prefix: str, notices: list[str]) -> S:
    """Fill a settings dataclass from JSON; a wrong field gets its default and is named."""
    hints = get_type_hints(owner)
    described = {declared.name: declared for declared in params_of(owner)}
    values: dict[str, Any] = {}
    for name in (each.name for each in dataclasses.fields(cast(Any, owner))):
        default = getattr(defaults, name)
        section = _section(hints[name])
        if name not in data:
            values[name] = default
        elif section is not None and isinstance(data[name], dict):
            base = default if default is not None else ModelOptions("")
            values[name] = _read(section, data[name], base, f"{prefix}{name}.", notices)
        else:
            try:
                values[name] = _checked(data[name], hints[name], described.get(name))
            except (msgspec.ValidationError, SettingError) as error:
                notices.append(_notice(prefix + name, data[name], error))
                values[name] = default
    return owner(**values)


def _section(hint: Any) -> type[Any] | None:
    """The dataclass behind a type such as `ModelOptions | None`."""
    for kind in (hint, *get_args(hint)):
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            return kind
    return None


def _checked(raw: Any, hint: Any, described: Param | None) -> Any:
    value = msgspec.convert(raw, hint)
    if described is not None:
        described.check(value)
    return value


def _notice(name: str, raw: Any, error: msgspec.ValidationError | SettingError) -> str:
    shown = str(raw) if len(str(raw)) <= 40 else str(raw)[:40] + "…"
    allowed = f" {error.hint}" if isinstance(error, SettingError) else ""
    return f"The setting {name} cannot be {shown}; its default is in use.{allowed}"
