"""Instruments: the numbers of an answer as plots, and single rounds as tables."""

from app.ui.instruments.panel import InstrumentsPanel
from app.ui.instruments.round_table import RoundTable

__all__ = ["InstrumentsPanel", "RoundTable"]
