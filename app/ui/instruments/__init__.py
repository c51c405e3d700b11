"""Instruments: the numbers of an answer as plots (`plots/`), and its rounds as a table (`rounds/`)."""

from app.ui.instruments.panel import InstrumentsPanel
from app.ui.instruments.rounds.table import RoundTable

__all__ = ["InstrumentsPanel", "RoundTable"]
