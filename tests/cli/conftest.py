"""The local Hub, also for the commands."""

from tests.hub.conftest import _server, home, server

__all__ = ["_server", "home", "server"]
