"""Which rounds the timeline shows, and where. No Qt here."""

from __future__ import annotations

_STEPS = (32, 24, 16, 12, 8, 6, 4)  # pixels a round while all rounds fit: bars keep their place for a while
_FOLLOWING = 8  # pixels a round where not all fit
_WIDEST = 48


class RoundAxis:
    """Places rounds in a width: round i covers `pitch` pixels from `x_of(i)` on.

    Until somebody zooms, all rounds are shown where they fit, and otherwise those around the round asked for.
    """

    def __init__(self) -> None:
        self.width = 1.0  # pixels
        self.scale = 1.0  # of text
        self.rounds = 0
        self._zoomed: float | None = None  # the pitch that somebody chose
        self._first = 0.0  # the round at the left edge, with its fraction

    @property
    def pitch(self) -> float:
        """Pixels a round."""
        whole = self.width / max(self.rounds, 1)
        if self._zoomed is not None:
            return min(max(self._zoomed, min(whole, _STEPS[0] * self.scale)), _WIDEST * self.scale)
        return next(
            (step * self.scale for step in _STEPS if step * self.scale <= whole), _FOLLOWING * self.scale
        )

    @property
    def shown(self) -> float:
        """How many rounds have room."""
        return self.width / self.pitch

    @property
    def first(self) -> float:
        """The round at the left edge, with its fraction."""
        return min(max(self._first, 0.0), max(self.rounds - self.shown, 0.0))

    @property
    def whole(self) -> bool:
        """Whether all rounds are in sight."""
        return self.shown >= self.rounds

    def x_of(self, index: float) -> float:
        """Pixel of a round's left edge."""
        return (index - self.first) * self.pitch

    def round_at(self, x: float) -> float:
        """The round at a pixel, with its fraction."""
        return self.first + x / self.pitch

    def zoom(self, factor: float, x: float) -> None:
        """Give each round `factor` times as many pixels; the round at pixel `x` keeps its place."""
        index = self.round_at(x)
        self._zoomed = self.pitch * factor
        self._zoomed = self.pitch  # within its bounds
        self._first = index - x / self.pitch
        self._first = self.first

    def pan(self, pixels: float) -> None:
        """Show what lies so many pixels to the right."""
        self._first = self.first + pixels / self.pitch

    def show(self, index: int) -> None:
        """Bring a round into sight: by as little as it takes, or into the middle if it is far away."""
        shown = self.shown
        if self.first <= index and index + 1 <= self.first + shown:
            return
        if not self.first - shown < index < self.first + 2 * shown:
            self._first = index - shown / 2
        else:
            self._first = float(index) if index < self.first else index + 1 - shown

    def show_all(self) -> None:
        """Show as many rounds as have room: all of them, however narrow their bars."""
        self._zoomed, self._first = 0.0, 0.0

    def reset(self) -> None:
        """Begin again, for another answer."""
        self._zoomed, self._first = None, 0.0
