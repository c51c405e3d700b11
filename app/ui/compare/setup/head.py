"""The strip on top of Compare: what is compared, as chips, and buttons."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Slot
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from app.ui.compare.curves.curves_panel import CurvesPanel
from app.ui.compare.curves.depth_panel import DepthPanel
from app.ui.compare.curves.load_panel import LoadPanel
from app.ui.compare.setup.lanes_panel import LanesPanel
from app.ui.compare.setup.pair_panel import PairPanel
from app.ui.compare.setup.prompts_panel import PromptsPanel
from app.ui.compare.setup.sweep_panel import SweepPanel
from app.ui.compare.setup.tune_panel import TunePanel
from app.ui.setup.sampling_panel import SamplingPanel
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets.chip import Chip
from app.ui.widgets.chip_row import GAP, ChipRow
from app.ui.widgets.popover import Popover
from app.ui.widgets.wrap_layout import WrapLayout

TUNE = "Tune for me"
PANEL_WIDTH = 880  # of the lanes' popover: the strategy panel needs two columns


class CompareHead(ChipRow):
    """Chips with their panels, and buttons; the place fills and connects them."""

    def __init__(
        self,
        theme: Theme,
        lanes: LanesPanel,
        prompts: PromptsPanel,
        sweep: SweepPanel,
        depth: DepthPanel,
        load: LoadPanel,
    ) -> None:
        super().__init__(theme)
        self._tight = False
        self._widths: dict[bool, int] = {}  # of all buttons, by whether they are tight
        self.pair_panel = PairPanel()
        self.lanes_panel = lanes
        self.prompts_panel = prompts
        self.sampling_panel = SamplingPanel(theme)
        self.sampling_panel.hide_limit()  # the prompts panel has the length of answers
        self.pair = self._chip("pair", self.pair_panel)
        self.lanes = self._chip("lanes", lanes, PANEL_WIDTH)
        self.prompts = self._chip("prompts", prompts)
        self.sampling = self._chip("sampling", self.sampling_panel)
        self.sweep_panel = sweep
        self.sweep = QPushButton("Sweep")
        self.sweep.setToolTip("Measure a grid of two parameters")
        self.sweep.clicked.connect(self._open_sweep)
        self._sweep_popover = Popover(theme, sweep)
        self._sweep_popover.setParent(self)
        self._sweep_popover.opened.connect(sweep.check)
        self.depth_panel, self.load_panel = depth, load
        self.depths = QPushButton("Depth")
        self.depths.setToolTip("Measure the lanes over the length of the context")
        self._depth_popover = self._curves_popover(self.depths, depth)
        self.loads = QPushButton("Load")
        self.loads.setToolTip("Measure servers with several requests at once")
        self._load_popover = self._curves_popover(self.loads, load)
        self.tune_panel = TunePanel()
        self.tune = QPushButton(TUNE)
        self.tune.setAccessibleName(TUNE)
        self.tune.setToolTip("Search for the fastest setting on these prompts")
        self.tune.clicked.connect(self._open_tune)
        self._tune_popover = Popover(theme, self.tune_panel)
        self._tune_popover.setParent(self)
        self.export_menu = QMenu(self)
        self.export = QPushButton("Export")
        self.export.clicked.connect(self._open_exports)
        self.export.setEnabled(False)
        self.run = QPushButton("Run")
        self.run.setProperty("kind", "primary")
        self.chips = (self.pair, self.lanes, self.sampling, self.prompts)
        self.starting = (self.sweep, self.depths, self.loads, self.tune, self.run)
        self.buttons = (self.sweep, self.depths, self.loads, self.tune, self.export, self.run)
        self._buttons = QWidget()
        row = WrapLayout(self._buttons, GAP)
        for button in self.buttons:
            row.addWidget(button)
        for chip in (self.pair, self.lanes, self.prompts, self.sampling):
            self.row.addWidget(chip)
        self.row.addStretch(1)
        self.row.addWidget(self._buttons)
        self.restyle()

    def share_room(self) -> None:
        """Fit the row: before names are cut, buttons lose the room beside their words, and Tune two words;
        where that is not enough, as with large text, they stand below the chips."""
        self.others = self.buttons
        beside = self.room() + self._buttons_width(self._tight)
        widths = [chip.widths() for chip in self.chips]
        below = beside - self._buttons_width(tight=True) < sum(least for *_, least in widths)
        named = sum(bare for _, _, bare, _ in widths)
        self._set_tight(not below and beside - self._buttons_width(tight=False) < named)
        if below:
            self.others = ()
        if below is not (self.rows.indexOf(self._buttons) >= 0):
            (self.rows if below else self.row).addWidget(self._buttons)
        super().share_room()

    def _buttons_width(self, tight: bool) -> int:
        """The width of all buttons. Measured once: trying the other form lays out the whole row again."""
        if tight not in self._widths:
            before = self._tight
            self._set_tight(tight)
            self._widths[tight] = sum(button.sizeHint().width() for button in self.buttons)
            self._set_tight(before)
        return self._widths[tight]

    def _set_tight(self, tight: bool) -> None:
        if tight != self._tight:
            self._tight = tight
            for button in self.buttons:
                set_role(button, shape="icon" if tight else "")  # the padding of a button without words
                button.updateGeometry()
            self.tune.setText("Tune" if tight else TUNE)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.StyleChange:
            self._widths.clear()
        super().changeEvent(event)

    def close_panels(self) -> None:
        """Close the panels once a measurement has begun, which they no longer change."""
        for chip in self.chips:
            if chip.isChecked():
                chip.click()
        popovers = (self._tune_popover, self._sweep_popover, self._depth_popover, self._load_popover)
        for popover in popovers:
            popover.close_panel()

    def set_at_work(self, at_work: bool) -> None:
        """Disable the chips and the buttons that start something while work runs; all keep their places."""
        for widget in (*self.starting, self.lanes, self.prompts, self.sampling):
            widget.setEnabled(not at_work)

    def _chip(self, caption: str, panel: QWidget, width: int = 480) -> Chip:
        chip = Chip(self._theme, caption)
        chip.set_popover(Popover(self._theme, panel, width))
        return chip

    def _curves_popover(self, button: QPushButton, panel: CurvesPanel) -> Popover:
        """The panel of a button, which a click opens."""
        popover = Popover(self._theme, panel)
        popover.setParent(self)
        popover.opened.connect(panel.open)
        button.clicked.connect(lambda: popover.open_below(button))
        return popover

    @Slot()
    def _open_sweep(self) -> None:
        self._sweep_popover.open_below(self.sweep)

    @Slot()
    def _open_tune(self) -> None:
        self._tune_popover.open_below(self.tune)

    @Slot()
    def _open_exports(self) -> None:
        self.export_menu.popup(self.export.mapToGlobal(self.export.rect().bottomLeft()))
