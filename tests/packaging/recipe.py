"""The demo pair's recipe, run from its folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "packaging" / "demo_pair"


def in_recipe(code: str) -> str:
    """What the code prints in a process of its own: the recipe's modules are imported from its folder."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        cwd=RECIPE,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
