"""The colours of a picture, counted at once: asking Qt pixel by pixel takes seconds."""

from __future__ import annotations

from collections import Counter

import numpy as np
from PySide6.QtGui import QImage


def colours_of(image: QImage) -> Counter[str]:
    """How many pixels have each colour, written "#RRGGBB"."""
    plain = image.convertToFormat(QImage.Format.Format_RGB32)
    rows = np.frombuffer(plain.constBits(), np.uint32).reshape(plain.height(), -1)[:, : plain.width()]
    values, counts = np.unique(rows & 0xFFFFFF, return_counts=True)
    return Counter({f"#{value:06X}": int(n) for value, n in zip(values, counts, strict=True)})
