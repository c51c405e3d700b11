"""The trial that finds the widest pass whose logits equal those of single-token passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.native.context import Context

ROWS = 16
"""The fewest tokens whose logits are compared: different kernels give some equal rows by chance."""


def widest_alike(context: Context, held: NDArray[np.int32], read: NDArray[np.int32], most: int) -> int:
    """The most tokens in a pass, up to `most`, with which `read` after `held` has exactly the logits of
    single-token passes; 1 if there is no such width. Both have shape [n]; the context then contains `held`.
    If passes of `most` tokens are alike, narrower passes are too: kernels change at some width. Raises
    Cancelled.
    """

    def single(count: int) -> list[NDArray[np.float32]]:
        context.sync(held)
        return [context.decode(read[at : at + 1], logits=1)[0].copy() for at in range(count)]

    def same(width: int, rows: list[NDArray[np.float32]]) -> bool:
        context.sync(held)
        parts = (slice(at, min(at + width, len(rows))) for at in range(0, len(rows), width))
        return all(
            np.array_equal(context.decode(read[part], part.stop - part.start), rows[part]) for part in parts
        )

    found = 1
    if same(2, single(2)):  # usually they differ at once, if they do
        rows = single(len(read))
        for width in dict.fromkeys((most, *range(2, most))):
            alike = same(width, rows)
            found = width if alike else found
            if alike == (width == most):
                break
    context.sync(held)
    return found
