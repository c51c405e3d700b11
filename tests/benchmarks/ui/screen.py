"""A screen for benchmarks of the window: the current display, or else a new Xvfb."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def screen(width: int = 1920, height: int = 1080) -> Iterator[str]:
    """Make sure that Qt finds a screen, and print which. Must be called before the first import of Qt."""
    if os.environ.get("QT_QPA_PLATFORM") or sys.platform != "linux":
        yield os.environ.get("QT_QPA_PLATFORM", sys.platform)
        return
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        yield f"display {os.environ.get('DISPLAY') or os.environ.get('WAYLAND_DISPLAY')}"
        return
    if shutil.which("Xvfb") is None:
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
        yield "no screen and no Xvfb: offscreen"
        return
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{width}x{height}x24", "-nolisten", "tcp"]
    with subprocess.Popen(command, pass_fds=(write,), stderr=subprocess.DEVNULL) as server:
        os.close(write)
        with os.fdopen(read) as told:
            number = told.readline().strip()
        os.environ["DISPLAY"] = f":{number}"
        os.environ["QT_QPA_PLATFORM"] = "xcb"
        try:
            yield f"Xvfb, {width} × {height}"
        finally:
            server.terminate()
