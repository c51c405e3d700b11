"""Where things live: what the app brings along, and what it writes."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from app.base.files import make_own_folder, reason
from app.engine.errors import UserError

HOME_VARIABLE = "DRAFTSCOPE_HOME"
BUNDLED = "bundled:"
BUNDLED_TARGET = BUNDLED + "demo_pair/target.gguf"
BUNDLED_DRAFT = BUNDLED + "demo_pair/draft.gguf"


@dataclass(frozen=True, slots=True)
class Paths:
    """The folders in use. Those that are written to exist once `prepare` has returned."""

    resources: Path
    data: Path
    config: Path
    logs: Path

    @property
    def fonts(self) -> Path:
        return self.resources / "fonts"

    @property
    def icons(self) -> Path:
        return self.resources / "icons"

    @property
    def settings(self) -> Path:
        return self.config / "settings.json"

    @property
    def presets(self) -> Path:
        return self.config / "presets.json"

    @property
    def checked(self) -> Path:
        """Which downloaded files had their checksum."""
        return self.data / "checked.json"

    @property
    def chats(self) -> Path:
        return self.data / "chats"

    def model(self, path: str) -> str:
        """The real path of a model path; those that begin with `bundled:` lie in the resources."""
        if not path.startswith(BUNDLED):
            return path
        return str(self.resources.joinpath(*path.removeprefix(BUNDLED).split("/")))

    def prepare(self) -> None:
        """Make the folders that are written to; raises UserError where one cannot be used."""
        for folder in (self.data, self.config, self.logs, self.chats):
            make_folder(folder)


def resource_folder() -> Path:
    """The folder of what the app brings along, in a source tree and in a bundle."""
    unpacked = getattr(sys, "_MEIPASS", None)
    root = Path(unpacked) if unpacked is not None else Path(__file__).resolve().parents[2]
    return root / "resources"


def find_paths(environment: Mapping[str, str] = os.environ) -> Paths:
    """The folders of this user, or those under DRAFTSCOPE_HOME where that is set."""
    home = environment.get(HOME_VARIABLE, "")
    if home:
        root = Path(home).expanduser().absolute()
        return Paths(resource_folder(), root / "data", root / "config", root / "logs")
    dirs = platformdirs.PlatformDirs("draftscope", appauthor=False)
    return Paths(
        resource_folder(),
        Path(dirs.user_data_dir),
        Path(dirs.user_config_dir),
        Path(dirs.user_log_dir),
    )


def make_folder(folder: Path) -> None:
    """Make a folder of the user's own and try it out; raises UserError where nothing can be written there."""
    try:
        make_own_folder(folder)
        # Permission bits do not tell (network drives, full disks, sandboxes); writing does.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(
            f"The folder {folder} cannot be used: {reason(error)}.",
            f"Make it writable, or set {HOME_VARIABLE} to another folder.",
        ) from error
