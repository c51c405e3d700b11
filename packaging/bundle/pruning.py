"""Removes what a bundle does not need: tests, headers, stubs, and parts of Qt that this window does not
use."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from console import run

# Installed by pip for itself and for builds, or by CMake for those who compile against llama.cpp.
_FOLDERS = (
    "bin", "include", "lib", "lib64", "share", "Scripts", "setuptools*", "_distutils_hack", "pkg_resources",
    "distutils-precedence.pth", "llama_cpp/server", "llama_cpp/include",
    "numpy/_core/include", "numpy/_core/lib", "numpy/random/lib", "numpy/f2py", "pyqtgraph/examples",
)  # fmt: skip

# Parts of Qt: those that Python imports here (for pyqtgraph OpenGL too), and those that only Qt's own
# libraries and plug-ins need.
IMPORTED = ("Core", "Gui", "Widgets", "Svg", "DBus", "OpenGL", "OpenGLWidgets")
_BELOW = ("XcbQpa", "WaylandClient", "WlShellIntegration")
_PART = re.compile(r"(?:lib)?Qt6?([A-Z3][A-Za-z0-9]*)(?=\.|$)")
_QT_TOOLS = (
    "assistant*", "Assistant*", "designer*", "Designer*", "linguist*", "Linguist*", "lrelease*", "lupdate*",
    "qml*", "svgtoqml*", "balsam*", "*.exe", "*.json", "*pyside6qml*", "doc", "glue", "include", "scripts",
    "typesystems", "translations", "resources", "metatypes", "libexec",
)  # fmt: skip
_PLUGINS = re.compile(
    r"platforms/(?:lib)?q(?:xcb|wayland|offscreen|minimal|cocoa|windows)\."
    r"|platformthemes/|styles/|iconengines/|wayland-(?:decoration-client|shell-integration)/"
    r"|platforminputcontexts/lib(?:compose|ibus)|imageformats/(?:lib)?q(?:gif|ico|jpeg|svg|webp|icns)\."
)


_IMPORT_ALL = """
import importlib, pkgutil, draftscope
for module in pkgutil.walk_packages(draftscope.__path__, "draftscope."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def check_imports(python: Path) -> None:
    """Import every module of Draftscope with a bundle's Python, to show that nothing was removed that it
    needs."""
    run([str(python), "-I", "-c", _IMPORT_ALL], env={**os.environ, "QT_QPA_PLATFORM": "offscreen"})


def prune(site: Path) -> None:
    """Remove what is not needed from a folder of installed libraries."""
    for pattern in _FOLDERS:
        _remove(site.glob(pattern))
    _remove(site.glob("numpy/**/tests"))
    for stub in ("*.pyi", "*.pxd", "*.a", "*.lib"):
        _remove(site.rglob(stub))
    _prune_qt(site / "PySide6")


def _prune_qt(pyside: Path) -> None:
    """Keep the modules that the window imports, their libraries, and the plug-ins of desktops."""
    root = pyside / "Qt" if (pyside / "Qt").is_dir() else pyside  # Windows has all in one folder
    for tool in _QT_TOOLS:
        _remove((*pyside.glob(tool), *root.glob(tool)))
    _remove(item for item in pyside.iterdir() if _part(item) not in (None, *IMPORTED))
    _remove(
        item
        for item in (*root.glob("lib/*"), *root.glob("*.dll"))
        if _part(item) not in (None, *IMPORTED, *_BELOW)
    )
    plugins = root / "plugins"
    _remove(item for item in plugins.glob("*/*") if not _PLUGINS.match(item.relative_to(plugins).as_posix()))
    _remove(folder for folder in plugins.iterdir() if not any(folder.iterdir()))


def _part(file: Path) -> str | None:
    """The part of Qt to which a module or library belongs, such as "Core"."""
    match = _PART.match(file.name)
    return match[1] if match else None


def _remove(items: Iterable[Path]) -> None:
    for item in list(items):
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item)
        else:
            item.unlink(missing_ok=True)
