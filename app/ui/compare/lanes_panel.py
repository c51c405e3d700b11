"""The panel of the lanes chip: the strategies beside the baseline, and the pair of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QButtonGroup, QLabel, QWidget

from app.engine.errors import SettingError
from app.engine.types import ModelOptions, PairInfo
from app.lab.experiment import MOST_LANES, Lane, Pair
from app.lab.lanes import with_server
from app.ui.compare.prompts_panel import QuantsPanel
from app.ui.compare.setup import CompareSetup
from app.ui.pair.model_panel import ask_for_model
from app.ui.pair.server_form import ServerForm
from app.ui.setup.strategy_panel import StrategyContext, StrategyPanel
from app.ui.state.servers import Servers
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.icons import IconButton
from app.ui.widgets.labels import ElidedButton, ElidedLabel
from app.ui.widgets.words import file_name

BASELINE = "Strategy none is each target's baseline. It is always measured; other lanes are compared with it."
MORE = ("draft-simple:n_max=8", "suffix", "ngram-mod", "draft-simple:n_max=2", "prompt-lookup", "ngram-cache")
"""Strategies of a new lane: the first one that no lane has yet."""


def pair_words(pair: Pair) -> str:
    """The file names of target and draft; of a server, its address."""
    if pair.is_server:
        return pair.target.path
    draft = f" ← {file_name(pair.draft.path)}" if pair.draft is not None else ", no draft"
    return f"{file_name(pair.target.path)}{draft}"


class LanesPanel(QWidget):
    """The list of lanes, and below it an editor for the chosen one."""

    changed = Signal(object)
    """The changed CompareSetup."""

    def __init__(
        self,
        theme: Theme,
        own_pair: Callable[[], Pair],
        n_ctx: Callable[[ModelOptions], int],
        servers: Servers,
        quants: QuantsPanel,
    ) -> None:
        """`own_pair` returns the pair of lanes that name none. `n_ctx` returns a target's loaded context
        size, 0 if not loaded."""
        super().__init__()
        self._theme = theme
        self._own_pair = own_pair
        self._n_ctx = n_ctx
        self._setup: CompareSetup | None = None
        self._at = 0
        self._group = QButtonGroup(self)
        self.new_server = ServerForm(theme, servers, "Add its lanes")
        self.new_server.described.connect(lambda info: self._take_server(self.new_server, info))
        self.new_server.hide()
        self.server = ServerForm(theme, servers, "Ask again")
        self.server.described.connect(lambda info: self._take_server(self.server, info))
        self._list = kit.column(spacing=2)
        self.add = kit.button("Add a lane", self._add)
        self.add_server = kit.button("Add a server…", tip="Add a running llama-server or vLLM as a lane")
        self.add_server.setCheckable(True)
        self.add_server.toggled.connect(self._show_new_server)
        self.quants = quants
        self.quants.hide()
        self.add_quants = kit.button(
            "Compare quantisations…",
            tip="Make more quantisations of the target and find which is fastest with drafts",
        )
        self.add_quants.setCheckable(True)
        self.add_quants.toggled.connect(self._show_quants)
        self._room = kit.label("", "caption")
        add_row = kit.row(self.add, self.add_server, self.add_quants, self._room, kit.Spring(1), spacing=12)
        self._editor = QWidget()
        self._build_editor()
        upper = kit.label("Lanes", "title"), kit.label(BASELINE, "secondary"), self._list
        lower = add_row, self.new_server, self.quants, kit.line(), self._editor
        kit.column(*upper, *lower, spacing=10, on=self)

    def _build_editor(self) -> None:
        self.label = kit.field("Label of the lane", "default: its strategy")
        self.label.textEdited.connect(lambda text: self._edit(label=text.strip()))
        self._pair = ElidedLabel()
        self.target = kit.button("Another target…", self._ask_target)
        self.draft = kit.button("Another draft…", self._ask_draft)
        self.same = kit.button("The chat's pair", lambda: self._edit(pair=None))
        self.strategy = StrategyPanel(self._theme)
        self.strategy.spec_changed.connect(lambda spec: self._edit(strategy=spec))
        names = kit.row(QLabel("Label"), (self.label, 1), spacing=12)
        pair = kit.row(QLabel("Pair"), (self._pair, 1), self.same, self.target, self.draft, spacing=8)
        self._here = kit.holder(kit.column(pair, self.strategy, spacing=10))  # of a lane that runs here
        kit.column(names, self.server, self._here, spacing=10, on=self._editor)

    @property
    def lane(self) -> Lane:
        """The lane that is edited."""
        assert self._setup is not None
        return self._setup.lanes[self._at]

    def set_setup(self, setup: CompareSetup) -> None:
        """Show a set-up, without a signal."""
        before = self._setup
        self._setup = setup
        self._at = min(self._at, max(len(setup.lanes) - 1, 0))
        if before is None or before.lanes != setup.lanes:
            self._list_lanes()
            self._show_lane()
        else:
            self._show_surroundings()

    # ------------------------------------------------------------------ showing

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._setup is not None and not event.spontaneous():
            self._show_lane()  # its drafter may have been reloaded with other parameters

    def _list_lanes(self) -> None:
        assert self._setup is not None
        kit.empty(self._list)
        for index, lane in enumerate(self._setup.lanes):
            self._list.addWidget(self._row(index, lane))
        full = len(self._setup.lanes) >= MOST_LANES - 1
        self.add.setEnabled(not full)
        self.add_server.setEnabled(not full)
        self._room.setText(f"At most {MOST_LANES} lanes, including baselines." if full else "")

    def _row(self, index: int, lane: Lane) -> QWidget:
        words = f"{lane.label}   {lane.strategy}" if lane.label else lane.strategy
        if lane.pair is not None and lane.pair.is_server:
            words = f"{lane.name}   {pair_words(lane.pair)}"
        elif lane.pair is not None:
            words += f"   on {pair_words(lane.pair)}"
        choose = ElidedButton(words)
        choose.setProperty("kind", "row")
        choose.setCheckable(True)
        choose.setChecked(index == self._at)
        choose.clicked.connect(lambda: self._select(index))
        choose.setProperty("role", "mono")
        self._group.addButton(choose)
        remove = IconButton(self._theme, "trash", f"Remove {lane.name}")
        remove.clicked.connect(lambda: self._remove(index))
        remove.setVisible(len(self._setup.lanes if self._setup else ()) > 1)
        return kit.holder(kit.row((choose, 1), remove, spacing=4))

    def _show_lane(self) -> None:
        lane = self.lane
        self.label.setText(lane.label)
        is_server = lane.pair is not None and lane.pair.is_server
        self.server.setVisible(is_server)
        self._here.setVisible(not is_server)
        if lane.pair is not None and is_server:
            self.server.set_address(lane.pair.target.path, fixed=True)
            return
        try:
            self.strategy.set_spec(lane.strategy)
        except SettingError as error:  # its drafter was removed
            self.strategy.text.set_spec(lane.strategy)
            self.strategy.text.show_error(str(error))
        self._show_surroundings()

    def _show_surroundings(self) -> None:
        assert self._setup is not None
        lane = self.lane
        pair = lane.pair or self._own_pair()
        if pair.is_server:
            return
        own = "" if lane.pair is not None else "the chat's: "
        self._pair.set_text(f"{own}{pair_words(pair)}")
        self.same.setVisible(lane.pair is not None)
        options = self._setup.options
        self.strategy.set_surroundings(
            StrategyContext(
                pair.target,
                pair.draft,
                options.sampling,
                self._setup.max_tokens,
                n_ctx=self._n_ctx(pair.target),
            )
        )

    # ------------------------------------------------------------------ what the user does

    def _select(self, index: int) -> None:
        self._at = index
        self._show_lane()

    def _change(self, lanes: tuple[Lane, ...]) -> None:
        assert self._setup is not None
        self._setup = dataclasses.replace(self._setup, lanes=lanes)
        self._list_lanes()
        self._show_surroundings()
        self.changed.emit(self._setup)

    def _edit(self, **changes: object) -> None:
        assert self._setup is not None
        lanes = list(self._setup.lanes)
        lanes[self._at] = msgspec.structs.replace(lanes[self._at], **changes)
        self._change(tuple(lanes))

    def _add(self) -> None:
        assert self._setup is not None
        lanes = self._setup.lanes
        there = {lane.strategy for lane in lanes}
        has_draft = self._own_pair().draft is not None
        fits = [strategy for strategy in MORE if has_draft or not strategy.startswith("draft")]
        spec = next(
            (strategy for strategy in fits if strategy not in there), "prompt-lookup:num_pred_tokens=16"
        )
        self._at = len(lanes)
        self._change((*lanes, Lane(spec)))
        self._show_lane()

    def _remove(self, index: int) -> None:
        assert self._setup is not None
        lanes = self._setup.lanes
        self._at = min(self._at - (index < self._at), len(lanes) - 2)
        self._change(lanes[:index] + lanes[index + 1 :])
        self._show_lane()

    def _show_new_server(self, shown: bool) -> None:
        self.new_server.setVisible(shown)
        if shown:
            self.new_server.address.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_quants(self, shown: bool) -> None:
        self.quants.setVisible(shown)
        if shown:
            self.quants.open()

    def _take_server(self, form: ServerForm, info: PairInfo) -> None:
        """Replace a server's lanes once it has described itself, or add them."""
        assert self._setup is not None
        lanes = with_server(self._setup.lanes, info)
        if len(lanes) >= MOST_LANES:
            form.notice.tell("There are too many lanes to add these.", "Remove other lanes first.")
            return
        address = info.target.path
        own = [index for index, lane in enumerate(lanes) if lane.pair and lane.pair.target.path == address]
        self._at = own[-1]
        if form is self.new_server:
            self.add_server.setChecked(False)
            form.set_address("", fixed=False)
        self._change(lanes)
        self._show_lane()

    def _ask_target(self) -> None:
        pair = self.lane.pair or self._own_pair()
        picked = self._ask(pair.target)
        if picked is not None:
            self._edit(pair=Pair(picked, pair.draft))

    def _ask_draft(self) -> None:
        pair = self.lane.pair or self._own_pair()
        picked = self._ask(pair.draft or pair.target)
        if picked is not None:
            self._edit(pair=Pair(pair.target, picked))

    def _ask(self, before: ModelOptions) -> ModelOptions | None:
        folder = before.path.replace("\\", "/").rpartition("/")[0]
        path = ask_for_model(self, folder)
        return dataclasses.replace(before, path=path) if path else None
