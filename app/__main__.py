"""`python -m app` is the installed command `draftscope`."""

from __future__ import annotations

import sys

# The engine's process imports the main module again: it must do nothing and load nothing.
if __name__ == "__main__":
    from app.cli import main

    sys.exit(main())
