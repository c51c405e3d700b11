"""Modules that the server of child processes loads before it forks (app/base/processes.py)."""

import contextlib

with contextlib.suppress(Exception):  # the engine's process says what is wrong, when it imports that itself
    import app.engine.native
    import app.engine.process.host  # noqa: F401
