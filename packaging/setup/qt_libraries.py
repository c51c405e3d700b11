"""The system libraries that PySide6's wheels need: which are missing, and how to install them."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from console import CommandError, SetupError, answer, run, say

# library -> (Debian and Ubuntu, Arch). RPM systems find a library by its own name.
_PACKAGES = {
    "libEGL.so.1": ("libegl1", "libglvnd"),
    "libGL.so.1": ("libgl1", "libglvnd"),
    "libGLX.so.0": ("libglx0", "libglvnd"),
    "libOpenGL.so.0": ("libopengl0", "libglvnd"),
    "libX11.so.6": ("libx11-6", "libx11"),
    "libX11-xcb.so.1": ("libx11-xcb1", "libx11"),
    "libdbus-1.so.3": ("libdbus-1-3", "dbus"),
    "libfontconfig.so.1": ("libfontconfig1", "fontconfig"),
    "libfreetype.so.6": ("libfreetype6", "freetype2"),
    "libglib-2.0.so.0": ("libglib2.0-0", "glib2"),
    "libgthread-2.0.so.0": ("libglib2.0-0", "glib2"),
    "libxcb.so.1": ("libxcb1", "libxcb"),
    "libxcb-cursor.so.0": ("libxcb-cursor0", "xcb-util-cursor"),
    "libxcb-icccm.so.4": ("libxcb-icccm4", "xcb-util-wm"),
    "libxcb-image.so.0": ("libxcb-image0", "xcb-util-image"),
    "libxcb-keysyms.so.1": ("libxcb-keysyms1", "xcb-util-keysyms"),
    "libxcb-randr.so.0": ("libxcb-randr0", "libxcb"),
    "libxcb-render.so.0": ("libxcb-render0", "libxcb"),
    "libxcb-render-util.so.0": ("libxcb-render-util0", "xcb-util-renderutil"),
    "libxcb-shape.so.0": ("libxcb-shape0", "libxcb"),
    "libxcb-shm.so.0": ("libxcb-shm0", "libxcb"),
    "libxcb-sync.so.1": ("libxcb-sync1", "libxcb"),
    "libxcb-util.so.1": ("libxcb-util1", "xcb-util"),
    "libxcb-xfixes.so.0": ("libxcb-xfixes0", "libxcb"),
    "libxcb-xkb.so.1": ("libxcb-xkb1", "libxcb"),
    "libxkbcommon.so.0": ("libxkbcommon0", "libxkbcommon"),
    "libxkbcommon-x11.so.0": ("libxkbcommon-x11-0", "libxkbcommon-x11"),
    "libz.so.1": ("zlib1g", "zlib"),
    "libzstd.so.1": ("libzstd1", "zstd"),
}

_START = "from PySide6.QtWidgets import QApplication; QApplication([])"


def ensure(python: Path, *, window: bool) -> str:
    """Make Qt start; return "window", or "offscreen" if only the X11 part is missing.

    With `window`, libraries of X11 are needed, too. If needed libraries are missing and this user may not
    install them, raises SetupError with the command that installs them.
    """
    missing = _missing(python)
    if any(missing) and apt_allowed():
        apt_install(_names(0, (*missing[0], *missing[1])))
        missing = _missing(python)
    core, x11 = missing
    if core or (x11 and window):
        wanted = (*core, *x11)
        raise SetupError(
            f"Qt's window needs system libraries that are missing ({', '.join(wanted)}).",
            f"Install them with: {_command(wanted)}",
        )
    _start(python)
    if x11:
        say(f"tests can run; a window on X11 needs: {_command(x11)}")
        return "offscreen"
    return "window"


def apt_allowed() -> bool:
    """Whether this user may install Debian packages without being asked for a password."""
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(packages: Sequence[str]) -> None:
    """Install Debian packages. Package lists are fetched first only if the present ones are not enough."""
    say(f"installing system packages: {' '.join(packages)}")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    try:
        run(install, env=env)
    except (CommandError, SetupError):
        run(["apt-get", "update"], env=env)
        run(install, env=env)


def _missing(python: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of missing libraries: those that any widget needs, and those that X11 needs besides."""
    if sys.platform != "linux" or shutil.which("ldd") is None:
        return (), ()
    where = "import PySide6; print(PySide6.__path__[0])"
    found = answer([str(python), "-c", where])
    if found is None:
        return (), ()  # starting Qt will say why
    qt = Path(found)
    plugins = qt / "Qt" / "plugins" / "platforms"
    widgets = [*qt.glob("QtWidgets*.so"), *qt.glob("QtOpenGLWidgets*.so")]
    core = _unresolved([*widgets, plugins / "libqoffscreen.so"])
    return core, tuple(name for name in _unresolved([plugins / "libqxcb.so"]) if name not in core)


def _unresolved(libraries: Sequence[Path]) -> tuple[str, ...]:
    text = answer(["ldd", *(str(path) for path in libraries)]) or ""
    return tuple(sorted(set(re.findall(r"(\S+) => not found", text))))


def _names(column: int, libraries: Sequence[str]) -> list[str]:
    return sorted({_PACKAGES[name][column] for name in libraries if name in _PACKAGES})


def _command(libraries: Sequence[str]) -> str:
    """The command that installs the libraries here. If a library's package is unknown, the library is
    named."""
    by_name = " ".join(f"'{name}()(64bit)'" for name in libraries)
    if shutil.which("apt-get"):
        return _by_package("sudo apt-get install", 0, libraries)
    if shutil.which("dnf"):
        return f"sudo dnf install {by_name}"
    if shutil.which("pacman"):
        return _by_package("sudo pacman -S --needed", 1, libraries)
    if shutil.which("zypper"):
        return f"sudo zypper install {by_name}"
    return _by_name(libraries)


def _by_package(install: str, column: int, libraries: Sequence[str]) -> str:
    packages = _names(column, libraries)
    unknown = [name for name in libraries if name not in _PACKAGES]
    ways = [" ".join([install, *packages])] if packages else []
    return "; and ".join([*ways, _by_name(unknown)] if unknown else ways)


def _by_name(libraries: Sequence[str]) -> str:
    return "your package manager, by these names: " + " ".join(libraries)


def _start(python: Path) -> None:
    """Start Qt once without a screen, which is more reliable than a list of libraries."""
    try:
        run([str(python), "-c", _START], env={**os.environ, "QT_QPA_PLATFORM": "offscreen"})
    except CommandError as error:
        last = (error.output.strip().splitlines() or ["no message"])[-1]
        raise SetupError(
            f"Qt does not start: {last}", "PySide6 needs Linux with glibc, or macOS 13 or later."
        ) from None
