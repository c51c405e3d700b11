"""A picture of the window as a small PNG file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PySide6.QtGui import QImage, QImageWriter

FOLDER = Path("resources/screenshots")
MOST_BYTES = 150_000
_COLOURS = 256


def save(image: QImage, file: Path) -> None:
    """Write it with the 256 colours that stand for all others best: a third of the bytes, and nothing to see.

    A window has few colours, and thousands of shades at the edges of its letters.
    """
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    height, width = image.height(), image.width()
    pixels = np.frombuffer(image.constBits(), np.uint8).reshape(height, width, 4)[:, :, 2::-1]
    colours, places, counts = np.unique(
        pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    colours = colours.astype(int)
    chosen = [int(counts.argmax())]
    distances = ((colours - colours[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < min(_COLOURS, len(colours)):
        chosen.append(int((distances * counts).argmax()))  # the colour whose pixels are worst off so far
        distances = np.minimum(distances, ((colours - colours[chosen[-1]]) ** 2).sum(axis=1))
    palette = colours[chosen]
    nearest = ((colours[:, None] - palette) ** 2).sum(axis=2).argmin(axis=1).astype(np.uint8)
    rows = np.zeros((height, -width % 4 + width), np.uint8)  # Qt wants rows of whole words
    rows[:, :width] = nearest[places.reshape(-1)].reshape(height, width)
    data = rows.tobytes()
    small = QImage(data, width, height, rows.shape[1], QImage.Format.Format_Indexed8)
    small.setColorTable([0xFF000000 | red << 16 | green << 8 | blue for red, green, blue in palette.tolist()])
    writer = QImageWriter(str(file), b"png")
    writer.setCompression(100)
    if not writer.write(small):
        raise OSError(f"{file}: {writer.errorString()}")
    assert file.stat().st_size <= MOST_BYTES, f"{file} has {file.stat().st_size} bytes"
