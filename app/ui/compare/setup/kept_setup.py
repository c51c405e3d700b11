"""The set-up of the Compare place, saved from one start to the next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.base.files import decode_kept, put_aside, read_file, write_atomic
from app.base.paths import make_folder
from app.engine.errors import SettingError
from app.engine.params import check_params
from app.lab.experiment import MOST_LANES, Lane
from app.lab.suites import Suite
from app.ui.compare.setup.setup import Amount, CompareSetup, Source
from app.ui.setup.sampling_panel import AnswerOptions

_VERSION = 1


class _SetupFields(msgspec.Struct, frozen=True):
    suite: str  # by its name: its prompts come with the app
    lanes: tuple[Lane, ...]
    source: Source
    categories: tuple[str, ...]
    own: str
    file: Suite | None
    chat: bool
    amount: Amount
    options: AnswerOptions
    version: int = _VERSION


_FIELDS = ("lanes", "source", "categories", "own", "file", "chat", "amount", "options")


class KeptSetup:
    """The file of the set-up."""

    def __init__(self, path: Path, suites: Sequence[Suite]) -> None:
        """The first of `suites` replaces a suite that no longer exists."""
        self._path = path
        self._suites = tuple(suites)

    def load(self) -> tuple[CompareSetup | None, str]:
        """The saved set-up or None, and a sentence on what was wrong with its file or ""."""
        try:
            kept = _checked(decode_kept(read_file(self._path), _SetupFields, _VERSION))
        except FileNotFoundError:
            return None, ""
        except (OSError, ValueError) as error:
            return None, put_aside(self._path, "The set-up of Compare", error)
        suite = next((suite for suite in self._suites if suite.name == kept.suite), self._suites[0])
        return CompareSetup(suite, **{name: getattr(kept, name) for name in _FIELDS}), ""

    def save(self, setup: CompareSetup) -> None:
        """Save atomically; raises UserError where the folder cannot be used, and OSError."""
        kept = _SetupFields(setup.suite.name, **{name: getattr(setup, name) for name in _FIELDS})
        make_folder(self._path.parent)
        write_atomic(self._path, msgspec.json.encode(kept))


def _checked(kept: _SetupFields) -> _SetupFields:
    """The set-up as read; raises ValueError for values that the panels would refuse."""
    try:
        check_params(kept.amount)
        check_params(kept.options.sampling)
    except SettingError as error:
        raise ValueError(str(error)) from error
    if not 0 < len(kept.lanes) < MOST_LANES:
        raise ValueError("it has no lanes, or too many")
    return kept
