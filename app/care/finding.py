"""Something that is wrong with the user's data, and what would be done about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DataFault:
    """A sentence for what is wrong and one for the remedy, "" where there is nothing to do.

    `mend` applies the remedy; raises UserError or OSError. It deletes nothing: files are moved to the trash
    or kept under another name.
    """

    words: str
    remedy: str = ""
    mend: Callable[[], object] | None = field(default=None, compare=False)
