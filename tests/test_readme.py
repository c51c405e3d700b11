"""The README's script runs as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.skipif(not README.exists(), reason="there is no README.md")
def test_the_readme_script_prints_an_answer(demo_pair: tuple[Path, Path]) -> None:
    blocks = BLOCK.findall(README.read_text(encoding="utf-8"))
    assert blocks, "README.md shows no Python"
    for block in blocks:
        # A process of its own, from the folder that the README names its files from.
        done = subprocess.run(
            [sys.executable, "-c", block],
            cwd=ROOT,
            env=os.environ | {"PYTHONUTF8": "1"},
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert len(done.stdout.strip()) > 20
