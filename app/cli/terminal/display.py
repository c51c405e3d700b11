"""Whether a window can be opened here. Where it cannot, Qt would end the process."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
from collections.abc import Mapping

from app.engine.errors import UserError


def check_display(environment: Mapping[str, str] = os.environ) -> None:
    """Raise UserError where there is no display for a window."""
    if sys.platform in ("darwin", "win32"):
        return
    asked = environment.get("QT_QPA_PLATFORM", "")  # plug-ins with options, such as "wayland;xcb:…"
    if any(not plugin.startswith(("wayland", "xcb")) for plugin in asked.split(";") if plugin):
        return
    display = environment.get("DISPLAY", "")
    if _has_wayland(environment) or (display and _has_x11(display)):
        return
    raise UserError(
        f"The display {display} cannot be reached." if display else "There is no display for a window.",
        "These need no display: draftscope run, bench, sweep, tune and replay. draftscope --help lists all.",
    )


def _has_wayland(environment: Mapping[str, str]) -> bool:
    name = environment.get("WAYLAND_DISPLAY", "")
    if not name:
        return False
    path = os.path.join(environment.get("XDG_RUNTIME_DIR", ""), name)  # the name may be a whole path
    with socket.socket(socket.AF_UNIX) as compositor:
        try:
            compositor.connect(path)
        except OSError:
            return False
    return True


def _has_x11(display: str) -> bool:
    """Connect with the library that Qt uses: it knows every form of a display's name."""
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return True  # it is missing for Qt too, which reports it
    xcb.xcb_connect.restype = ctypes.c_void_p
    connection = ctypes.c_void_p(xcb.xcb_connect(os.fsencode(display), None))
    failed = xcb.xcb_connection_has_error(connection)
    xcb.xcb_disconnect(connection)
    return not failed
