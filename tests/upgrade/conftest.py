"""The window's fixtures, for the test that opens one."""

from __future__ import annotations

from tests.ui.conftest import collected_here, collector, windows

__all__ = ["collected_here", "collector", "windows"]
