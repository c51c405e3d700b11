"""Scripts that no installed font may have: the window prints nothing about them on standard error."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
from PySide6.QtWidgets import QLabel
from app.ui.window.application import make_application
application = make_application()
for text in ("नमस्ते", "বাংলা", "ខ្មែរ", "བོད", "ߒߞߏ", "ᠮᠣᠩᠭᠣᠯ"):
    QLabel(text).grab()
"""


def test_a_script_without_a_font_is_no_warning() -> None:
    bare = {name: value for name, value in os.environ.items() if name != "QT_LOGGING_RULES"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=bare | {"QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
