"""What the window imports before it is on the screen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LATER = (
    "app.care.check", "app.hub", "app.lab", "app.ui.compare", "app.ui.inspector", "app.ui.lessons",
    "app.ui.models", "huggingface_hub", "importlib.metadata", "jinja2", "llama_cpp", "markdown_it",
    "pygments", "pyqtgraph",
)  # fmt: skip
LATER_MADE = {"ModelForm", "ParamFields"}  # what panels are filled with when they are opened
BEFORE_QT = ("numpy", "msgspec", "app.engine.process.host", "app.saved.chats", "app.saved.settings")
START = """
import app.cli, app.wiring
from PySide6.QtWidgets import QApplication

def while_it_runs(*_):
    {look}
    return 0

QApplication.exec = while_it_runs
assert app.cli.main([]) == 0
"""


def modules_after(script: str, home: Path) -> list[str]:
    """The names of the modules that a process has imported at the end of `script`, in order."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{script}\nprint(*sys.modules)"],
        cwd=ROOT,
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen", "DRAFTSCOPE_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_start_imports_nothing_that_is_opened_later(tmp_path: Path) -> None:
    modules = modules_after(START.format(look="pass"), tmp_path)
    assert "app.ui.window.main_window" in modules
    assert [name for name in LATER if name in modules] == []


def test_the_start_makes_nothing_that_closed_panels_hold(tmp_path: Path) -> None:
    look = (
        "made = {type(widget).__name__ for widget in QApplication.allWidgets()}; "
        f"assert 'MainWindow' in made and not made & {LATER_MADE}, made"
    )
    modules_after(START.format(look=look), tmp_path)


def test_what_needs_no_qt_is_imported_before_it(tmp_path: Path) -> None:
    modules = modules_after("import app.wiring", tmp_path)
    assert max(map(modules.index, BEFORE_QT)) < modules.index("PySide6")
