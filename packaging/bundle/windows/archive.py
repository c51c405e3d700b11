"""A zip with a folder that can be run.

Only the hosted workflow makes and starts it; it is untested elsewhere. Draftscope.cmd opens the window,
without a console of its own; draftscope-cli.cmd is the command line.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from console import run, say
from recipe import ROOT

DIST = ROOT / "dist"
WINDOW = '@start "" "%~dp0python\\pythonw.exe" -I -m draftscope %*\r\n'
COMMAND = '@"%~dp0python\\python.exe" -I -m draftscope %*\r\n'


def make_archive(folder: Path) -> None:
    """Add the launchers to a collected folder, and write the zip into dist/."""
    (folder / "Draftscope.cmd").write_text(WINDOW, encoding="ascii", newline="")
    command = folder / "draftscope-cli.cmd"
    command.write_text(COMMAND, encoding="ascii", newline="")
    run(["cmd", "/c", str(command), "--version"])
    made = Path(shutil.make_archive(str(DIST / folder.name), "zip", folder.parent, folder.name))
    say(f"{made.relative_to(ROOT)}: {made.stat().st_size / 1e6:.0f} MB")
