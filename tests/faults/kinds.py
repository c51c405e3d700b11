"""Every kind of file of the campaign; deaths, whose files are plans, where signals are POSIX."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.faults import saved
from tests.faults.campaign import Kind
from tests.faults.deaths import Deaths
from tests.faults.models import Models
from tests.faults.templates import HostileTemplates

KINDS: dict[str, Callable[[], Kind]] = {
    "models": Models,
    "templates": HostileTemplates,
    "deaths": Deaths,
    **{name: partial(saved.SavedFile, name) for name in saved.KINDS},
}
"""What makes the object of a kind, by its name."""
