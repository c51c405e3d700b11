"""Presets: named sets of a pair, a strategy and a sampling, and their JSON file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from app.base import files
from app.base.locks import held, lock_at
from app.engine.errors import SettingError
from app.engine.params import check_params, params_of
from app.engine.strategy import StrategySpec
from app.engine.types import ModelOptions, Sampling
from app.saved.settings import ConfigFile, Settings

VERSION = 1
NAME_LENGTH = 60
Presets = tuple["Preset", ...]


@dataclass(frozen=True, slots=True)
class Preset:
    """A pair, a strategy and a sampling. Model paths may begin with `bundled:`."""

    name: str
    target: ModelOptions
    draft: ModelOptions | None
    strategy: str
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int = 256
    stop: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, settings: Settings) -> Preset:
        """The preset of these settings."""
        return cls(name, **{key: getattr(settings, key) for key in _SHARED})

    def in_use(self, settings: Settings) -> bool:
        """Whether these settings use this preset unchanged."""
        return self == Preset.of(self.name, settings)

    def check(self) -> None:
        """Raise SettingError for a value that is not allowed."""
        if not self.name.strip():
            raise SettingError("A preset needs a name.")
        for part in (self.target, self.draft, self.sampling):
            if part is not None:
                check_params(part)
        next(param for param in params_of(Settings) if param.name == "max_tokens").check(self.max_tokens)
        StrategySpec.parse(self.strategy)


_SHARED = tuple(field.name for field in dataclasses.fields(Preset) if field.name != "name")


@dataclass(frozen=True, slots=True)
class LoadedPresets:
    """Presets as read, and a sentence for each problem."""

    presets: Presets = ()
    notices: tuple[str, ...] = ()


class PresetStore:
    """The presets file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = ConfigFile(path, "presets", VERSION)
        self._lock = lock_at(path.with_name(path.name + ".lock"))
        self._unusable: list[Any] = []  # kept and written back: a missing part may return

    def load(self) -> LoadedPresets:
        """Read the file. Never raises: a wrong entry is left out and named, a wrong file is kept under a
        different name."""
        data, notices = self._file.read(listed="presets")
        presets, self._unusable = _sorted(data["presets"] if data is not None else ())
        if missing := len(self._unusable):
            notices.append(
                f"The presets file contains {missing} preset{'s' * (missing != 1)} that cannot be used now; "
                f"{'they stay' if missing != 1 else 'it stays'} in the file."
            )
        return LoadedPresets(presets, tuple(notices))

    def change(self, change: Callable[[Presets], Presets], known: Presets) -> Presets:
        """Apply `change` to the file's current presets, which a different window may have changed, and return
        the result. `known` replaces presets that cannot be read. Raises UserError, as `change` may."""
        with files.explained("The presets were not saved", folder=self.path.parent):
            files.make_own_folder(self.path.parent)
        with held(self._lock, "presets"):
            changed = change(self._latest(known))
            self.save(changed)
        return changed

    def _latest(self, known: Presets) -> Presets:
        try:
            entries = files.decode_object(files.read_file(self.path)).get("presets")
        except (OSError, files.DamagedError):
            return known
        if not isinstance(entries, list):
            return known
        presets, self._unusable = _sorted(entries, known)
        return presets

    def save(self, presets: Sequence[Preset]) -> None:
        """Write the file, whole or not at all; raises UserError if that fails."""
        self._file.write({"presets": [*map(msgspec.to_builtins, presets), *self._unusable]})


def _sorted(entries: Sequence[Any], known: Presets = ()) -> tuple[Presets, list[Any]]:
    """(presets that are usable or `known`, the first of each name; all other entries)"""
    found: dict[str, Preset] = {}
    unusable = []
    for entry in entries:
        try:
            preset = msgspec.convert(entry, Preset)
            if preset not in known:
                preset.check()
        except (msgspec.ValidationError, SettingError):
            unusable.append(entry)
            continue
        if found.setdefault(preset.name, preset) is not preset:
            unusable.append(entry)
    return tuple(found.values()), unusable
