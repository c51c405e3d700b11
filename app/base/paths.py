"""The folders of the app: its resources, and what it writes."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import platformdirs

from app.base.files import explained, make_own_folder

HOME_VARIABLE = "DRAFTSCOPE_HOME"
BUNDLED = "bundled:"
BUNDLED_TARGET = BUNDLED + "demo_pair/target.gguf"
BUNDLED_DRAFT = BUNDLED + "demo_pair/draft.gguf"
REAL_TARGET = "real:target"
"""SmolLM2-135M-Instruct, which set-up or a package brings; it may be missing."""
REAL_DRAFT = "real:draft"
"""Its EAGLE-3 head, which comes with Draftscope."""
QUANTISED = "quantised"
OWN = (BUNDLED, REAL_TARGET, REAL_DRAFT)
"""How the symbols of our own models begin."""
_REAL_HEAD = "smollm2_head/SmolLM2-135M-Instruct-eagle3.Q8_0.gguf"
_REAL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True, slots=True)
class Paths:
    """The folders in use. After `prepare`, all folders that are written to exist."""

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
        """The list of downloaded files whose checksum was verified."""
        return self.data / "checked.json"

    @property
    def calibrations(self) -> Path:
        """What passes of each pair take on this machine."""
        return self.data / "calibrations.json"

    @property
    def chats(self) -> Path:
        return self.data / "chats"

    @property
    def quantised(self) -> Path:
        """The models that were made from others here."""
        return self.data / QUANTISED

    @property
    def real_target(self) -> Path:
        """Where SmolLM2 is: inside a package, or where set-up links it (packaging/setup/real_model.py)."""
        inside = self.resources / "real" / _REAL_FILE
        return inside if inside.is_file() else Path(sys.prefix, "share", "draftscope", _REAL_FILE)

    def model(self, path: str) -> str:
        """The real path of a model path: `bundled:` stands for the resources, `real:target` for SmolLM2,
        `real:draft` for its head."""
        if path == REAL_TARGET:
            return str(self.real_target)
        if path == REAL_DRAFT:
            return str(self.resources / _REAL_HEAD)
        if not path.startswith(BUNDLED):
            return path
        return str(self.resources.joinpath(*path.removeprefix(BUNDLED).split("/")))

    def named(self, path: Path | str) -> str:
        """A model's path as it is written in settings: our own models by their symbol."""
        own = (BUNDLED_TARGET, BUNDLED_DRAFT, REAL_TARGET, REAL_DRAFT)
        return next((name for name in own if self.model(name) == str(path)), str(path))

    def prepare(self) -> None:
        """Make all folders that are written to; raises UserError if one cannot be used."""
        for folder in (self.data, self.config, self.logs, self.chats):
            make_folder(folder)


@cache
def resource_folder() -> Path:
    """The folder of the app's resources: inside an installed package, or beside `app` in a source tree."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "resources"
    return inside if inside.is_dir() else package.parent / "resources"


def find_paths(environment: Mapping[str, str] = os.environ) -> Paths:
    """The user's folders, or those under DRAFTSCOPE_HOME if it is set."""
    home = environment.get(HOME_VARIABLE, "")
    if home:
        root = Path(home).expanduser().absolute()
        return Paths(resource_folder(), root / "data", root / "config", root / "logs")
    dirs = platformdirs.PlatformDirs("draftscope", appauthor=False)
    return Paths(
        resource_folder(), Path(dirs.user_data_dir), Path(dirs.user_config_dir), Path(dirs.user_log_dir)
    )


def make_folder(folder: Path) -> None:
    """Make a folder for this user alone; raises UserError if nothing can be written there."""
    with explained(
        f"The folder {folder} cannot be used",
        f"Make it writable, or set {HOME_VARIABLE} to a different folder.",
    ):
        make_own_folder(folder)
        # Only writing proves it: permission bits say nothing of network drives, full disks and sandboxes.
        with tempfile.TemporaryFile(dir=folder):
            pass
