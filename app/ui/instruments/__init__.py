"""Instruments: the numbers of an answer as plots, its rounds as a table, and sums over several answers.

`InstrumentsPanel` is the column. `by_round.py` and `cost_card.py` are its plots: each is a `PlotCard` with a
canvas (words, input) and a `PlotView` (axes and values, drawn by pyqtgraph). `round_rows.py` and
`round_table.py` show one round, `sums_panel.py` the sums.
"""

from app.ui.instruments.panel import InstrumentsPanel
from app.ui.instruments.round_table import RoundTable

__all__ = ["InstrumentsPanel", "RoundTable"]
