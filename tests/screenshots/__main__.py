"""Runs `make screenshots`: takes the pictures of README and docs from the running window.

The window is the real one, with settings of its own, the bundled pair and an engine process; everything in a
picture was asked, measured or chosen as a user would. The numbers are those of this machine at that moment:
run it while the machine is quiet.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from tests.benchmarks.ui.screen import screen


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", description=__doc__)
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help="only these (chat, inspector, …)")
    parser.add_argument(
        "--states", metavar="FOLDER", help="instead, every state in twelve variants, to look at"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, screen():
        os.environ |= {"DRAFTSCOPE_HOME": home, "HF_HOME": home}  # no models but the bundled ones
        from tests.screenshots import scenes, states  # import Qt, which wants a screen

        if asked.states:
            states.visit(Path(asked.states), asked.scenes)
        else:
            scenes.visit(asked.scenes)


# The engine's own process imports this file again.
if __name__ == "__main__":
    main()
