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
from app.engine.errors import SettingError, UserError
from app.engine.params import check_params, params_of
from app.engine.strategy import StrategySpec
from app.engine.types import ModelOptions, Sampling
from app.saved.settings import Settings

VERSION = 1
_NOT_SAVED = "The presets were not saved"
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
        self._lock = lock_at(path.with_name(path.name + ".lock"))
        self._locked = ""
        self._unusable: list[Any] = []  # kept and written back: a missing part may return

    def load(self) -> LoadedPresets:
        """Read the file. Never raises: a wrong entry is left out and named, a wrong file is kept under a
        different name."""
        try:
            entries, version = self._read()
        except FileNotFoundError:
            return LoadedPresets()
        except OSError as error:
            return self._keep(f"could not be read ({files.reason(error)})", (), whole=True)
        except files.DamagedError:
            return self._keep("was damaged", (), whole=True)
        presets, unusable = _sorted(entries)
        if not isinstance(version, int) or version > VERSION:
            return self._keep("is from a newer version", presets, whole=False)
        if version < VERSION:
            try:
                files.keep_version(self.path, version)
            except OSError as error:
                self._locked = (
                    f"{self.path} cannot be kept as version {version} wrote it ({files.reason(error)})."
                )
                return LoadedPresets(presets, (f"{self._locked} Presets are not saved.",))
        self._unusable = unusable
        if not unusable:
            return LoadedPresets(presets)
        missing = len(unusable)
        notice = (
            f"The presets file contains {missing} preset{'s' * (missing != 1)} that cannot be used now; "
            f"{'they stay' if missing != 1 else 'it stays'} in the file."
        )
        return LoadedPresets(presets, (notice,))

    def change(self, change: Callable[[Presets], Presets], known: Presets) -> Presets:
        """Apply `change` to the file's current presets, which a different window may have changed, and return
        the result. `known` replaces presets that cannot be read. Raises UserError, as `change` may."""
        with files.explained(_NOT_SAVED, folder=self.path.parent):
            files.make_own_folder(self.path.parent)
        with held(self._lock, "presets"):
            changed = change(self._latest(known))
            self.save(changed)
        return changed

    def _latest(self, known: Presets) -> Presets:
        try:
            entries, _version = self._read()
        except (OSError, files.DamagedError):
            return known
        presets, self._unusable = _sorted(entries, known)
        return presets

    def save(self, presets: Sequence[Preset]) -> None:
        """Write the file, whole or not at all; raises UserError if that fails."""
        if self._locked:
            raise UserError("The presets were not saved.", self._locked)
        entries = [*map(msgspec.to_builtins, presets), *self._unusable]
        files.write_json(self.path, {"version": VERSION, "presets": entries}, _NOT_SAVED)

    def _read(self) -> tuple[list[Any], Any]:
        """(presets as JSON, the file's version); raises OSError or DamagedError."""
        data = files.decode_object(files.read_file(self.path))
        entries = data.get("presets")
        if not isinstance(entries, list):
            raise files.DamagedError("it contains no presets")
        return entries, data.get("version", VERSION)

    def _keep(self, what: str, presets: Presets, whole: bool) -> LoadedPresets:
        """Keep the file under a new name: moved if the `whole` is unusable, else copied."""
        try:
            if whole:
                kept = files.set_aside(self.path, "damaged")
            else:
                kept = self.path.with_name(self.path.name + ".kept")
                files.write_atomic(kept, files.read_file(self.path))
        except OSError as error:
            # Saving now would overwrite the file that could not be kept.
            self._locked = f"{self.path} {what} and cannot be kept under a new name ({files.reason(error)})."
            return LoadedPresets(presets, (f"{self._locked} Presets are not saved.",))
        return LoadedPresets(presets, (f"The presets file {what}; it is kept as {kept.name}.",))


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
