"""When something happened, in a few characters."""

from __future__ import annotations

from datetime import datetime

# Not strftime: its names follow the system's language, and nothing else here does.
MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"


def relative_time(then: datetime, now: datetime) -> str:
    """Such as "now", "5 min", "3 h", "yesterday", "4 d", "12 Mar", "12 Mar 2024".

    Both times carry their zone; days are those of the zone of `now`.
    """
    then = then.astimezone(now.tzinfo)
    seconds = (now - then).total_seconds()
    if seconds < 60:  # a clock that was set back makes it negative
        return "now"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min"
    days = (now.date() - then.date()).days
    if days == 0 or seconds < 12 * 3600:
        return f"{seconds // 3600:.0f} h"
    if days == 1:
        return "yesterday"
    if days < 7:
        return f"{days} d"
    month = MONTHS[3 * (then.month - 1) : 3 * then.month]
    year = f" {then.year}" if then.year != now.year else ""
    return f"{then.day} {month}{year}"
