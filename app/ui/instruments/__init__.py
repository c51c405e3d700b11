"""Instruments: the numbers of an answer as plots (`plots/`), its rounds as a table (`rounds/`), and sums over
several answers (`sums_panel.py`)."""

from app.ui.instruments.panel import InstrumentsPanel
from app.ui.instruments.round_table import RoundTable

__all__ = ["InstrumentsPanel", "RoundTable"]
