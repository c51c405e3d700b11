"""What `search`, `pull` and `models` share: offline mode, the folder of the library."""

from __future__ import annotations

from pathlib import Path

from app.base.files import DamagedError, decode_object, read_file
from app.base.paths import find_paths
from app.hub.hub import Hub
from app.hub.library.shelf import Shelf, own_models


def make_hub() -> Hub:
    """The Hub, offline where HF_HUB_OFFLINE or the window's settings say so."""
    offline = _is_offline(find_paths().settings)
    return Hub(lambda: offline)


def _is_offline(settings: Path) -> bool:
    """Whether the settings file says offline; other problems of that file are the window's to report."""
    try:
        return decode_object(read_file(settings)).get("offline") is True
    except (OSError, DamagedError):
        return False


def open_shelf() -> Shelf:
    """The window's library."""
    paths = find_paths()
    return Shelf(paths.data, own=own_models(paths))
