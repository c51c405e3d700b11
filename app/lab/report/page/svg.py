"""Small pieces of SVG: elements, scales, ticks. Pure functions from numbers to text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


def element(name: str, content: str = "", **attributes: object) -> str:
    """An element; `content` is markup. Underscores in names stand for hyphens."""
    written = "".join(
        f' {key.strip("_").replace("_", "-")}="{escape(_plain(value))}"' for key, value in attributes.items()
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def label(x: float, y: float, text: str, **attributes: object) -> str:
    return element("text", escape(text), x=x, y=y, **attributes)


def drawing(width: float, height: float, title: str, *parts: str) -> str:
    """A whole picture; `title` is read out by screen readers."""
    return element(
        "svg",
        element("title", escape(title)) + "".join(parts),
        viewBox=f"0 0 {_plain(width)} {_plain(height)}",
        width=width,
        height=height,
        role="img",
        xmlns="http://www.w3.org/2000/svg",
    )


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear map from values to coordinates."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round values from `low` to `high`, in steps of 1, 2, 2.5 or 5 times a power of ten."""
    if not high > low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * multiple for multiple in (1, 2, 2.5, 5, 10) if power * multiple >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(n * step, 10) for n in range(first, last + 1)]


def spread_out(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Coordinates moved apart so that neighbours are at least `gap` apart, near where they were."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    at = low - gap
    for index in order:
        at = moved[index] = max(moved[index], at + gap)
    over = at - high
    if over > 0:  # move back from the edge, the last first
        at = high + gap
        for index in reversed(order):
            at = moved[index] = min(moved[index], at - gap)
    return moved


def _plain(value: object) -> str:
    """A value as text, numbers with at most two decimals: a picture needs no more."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
