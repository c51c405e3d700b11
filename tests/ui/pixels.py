"""What a picture shows: its colours, counted at once (pixel by pixel it takes seconds), and its texts."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
from PySide6.QtCore import QBuffer
from PySide6.QtGui import QImage
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget


def colours_of(image: QImage) -> Counter[str]:
    """How many pixels have each colour, written "#RRGGBB"."""
    plain = image.convertToFormat(QImage.Format.Format_RGB32)
    rows = np.frombuffer(plain.constBits(), np.uint32).reshape(plain.height(), -1)[:, : plain.width()]
    values, counts = np.unique(rows & 0xFFFFFF, return_counts=True)
    return Counter({f"#{value:06X}": int(n) for value, n in zip(values, counts, strict=True)})


def painted(widget: QWidget) -> list[tuple[str, float, float]]:
    """The texts that a widget paints, with their left end and baseline in pixels."""
    buffer, drawing = QBuffer(), QSvgGenerator()
    drawing.setOutputDevice(buffer)
    drawing.setSize(widget.size())
    drawing.setResolution(widget.logicalDpiX())
    widget.render(drawing)
    found = re.findall(
        r'<text .*?x="(.+?)" y="(.+?)".*?>(.*?)</text>', buffer.data().toStdString(), re.DOTALL
    )
    return [(text.strip(), float(x), float(y)) for x, y, text in found]
