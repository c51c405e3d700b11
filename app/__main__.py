"""`python -m app` is the installed command `draftscope`."""

from __future__ import annotations

import sys

# The engine's own process imports the main module again: it must find nothing to do, and nothing to load.
if __name__ == "__main__":
    from app.cli import main

    sys.exit(main())
