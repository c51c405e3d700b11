"""A report to copy into a message or an issue: versions, devices, settings, the end of the log.

It contains no chat text. Text settings are given by length alone, unless `texts` asks for them. The user's
home folder is written "~".
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import platform
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app import __version__
from app.base.files import DamagedError, decode_object, read_file, reason
from app.base.numbers import file_size
from app.base.paths import Paths
from app.care.log import last_lines
from app.engine.devices.memory import cpu_name
from app.engine.errors import UserError
from app.engine.process.messages import DevicesListed
from app.saved.chats.store import ChatStore
from app.saved.settings import Settings

LOG_LINES = 100
_LIBRARIES = ("PySide6-Essentials", "llama-cpp-python", "numpy", "huggingface-hub", "msgspec")
_LEFT_OUT = ("geometry", "splitters", "last_chat")  # no one reads them
_TEXTS = ("system_prompt", "stop", "server")


def make_report(paths: Paths, devices: DevicesListed | str, *, texts: bool = False) -> str:
    """The report. `devices` are the engine's, or a sentence why they are not known. With `texts` it includes
    the system prompt and stop strings. Damaged or missing files never raise."""
    parts = {
        "Versions": _versions(),
        "Devices": [devices] if isinstance(devices, str) else _devices(devices),
        "Settings": _settings(paths.settings, texts),
        "Chats": _chats(paths.chats),
        f"Log, its last {LOG_LINES} lines": _log(paths.logs),
    }
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    lines = [f"Draftscope {__version__}, report of {when}"]
    for title, found in parts.items():
        lines += ["", title, *(f"  {line}" for line in found)]
    return shortened("\n".join(lines)) + "\n"


def shortened(text: str) -> str:
    """The text with "~" for the user's home folder, also in JSON's spelling."""
    for home in {str(Path.home()), os.path.realpath(Path.home())}:
        for form in {home, json.dumps(home)[1:-1]}:
            if len(form.rstrip("/\\")) > 1:
                text = re.sub(re.escape(form) + r"(?=[/\\\s\"'”:,;)\]]|\.?$)", "~", text, flags=re.MULTILINE)
    return text


def _versions() -> Iterable[str]:
    yield f"Python {platform.python_version()}, {platform.platform(terse=True)}, {platform.machine()}"
    yield ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES)
    yield f"{cpu_name()}, {os.cpu_count() or 1} cores"


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return "(unknown)"


def _devices(listed: DevicesListed) -> Iterable[str]:
    for device in listed.devices:
        memory = f"{file_size(device.free)} free of {file_size(device.total)}" if device.total else "memory ?"
        yield f"{device.name}: {device.kind}, {device.backend}, {device.description}, {memory}"
    yield f"backends of this build: {', '.join(listed.backends)}"


def _settings(path: Path, texts: bool) -> list[str]:
    try:
        found = decode_object(read_file(path))
    except FileNotFoundError:
        return ["none are saved: the defaults are in use"]
    except (OSError, DamagedError) as error:
        return [f"cannot be read: {reason(error)}"]
    known = [field.name for field in dataclasses.fields(Settings) if field.name not in _LEFT_OUT]
    shown = {name: found[name] for name in known if name in found}
    if not texts:
        shown |= {name: _length(shown[name]) for name in _TEXTS if name in shown}
    return json.dumps(shown, indent=1, ensure_ascii=False).splitlines()


def _length(text: Any) -> str:
    words = "".join(map(str, text)) if isinstance(text, list) else str(text)
    return f"({len(words)} characters)"


def _chats(folder: Path) -> Iterable[str]:
    try:
        heads = ChatStore(folder).heads()
    except UserError as error:
        yield error.message
        return
    yield f"{len(heads)}, {sum(bool(head.damaged) for head in heads)} damaged"


def _log(folder: Path) -> list[str]:
    try:
        return last_lines(folder, LOG_LINES) or ["empty"]
    except OSError as error:
        return [f"cannot be read: {reason(error)}"]
