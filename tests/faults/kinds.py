"""Every kind of file of the campaign; deaths, whose files are plans, where signals are POSIX."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.faults import saved
from tests.faults.campaign import Kind
from tests.faults.deaths import Deaths
from tests.faults.disks import Disks
from tests.faults.downloads import Downloads
from tests.faults.liars import LyingHubs, LyingServers
from tests.faults.memory import Memory
from tests.faults.models import Models
from tests.faults.templates import HostileTemplates
from tests.faults.window.clocks import Clocks
from tests.faults.window.deaths import WindowDeaths
from tests.faults.window.logout import Logouts
from tests.faults.window.models import WindowModels
from tests.faults.window.two import TwoWindows

KINDS: dict[str, Callable[[], Kind]] = {
    "models": Models,
    "models in the window": WindowModels,
    "templates": HostileTemplates,
    "deaths": Deaths,
    "deaths in the window": WindowDeaths,
    "downloads": Downloads,
    "lying servers": LyingServers,
    "lying hubs": LyingHubs,
    "disks": Disks,
    "memory": Memory,
    "two windows": TwoWindows,
    "logouts": Logouts,
    "clocks": Clocks,
    **{name: partial(saved.SavedFile, name) for name in saved.KINDS},
}
"""What makes the object of a kind, by its name."""
