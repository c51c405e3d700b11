"""Memory by device: what a pair needs or uses, what is free, and ways to need less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.engine.devices.memory import CPU, Device, DeviceMemory, ModelMemory, PairMemory, freed
from app.engine.devices.placement import LighterPair
from app.engine.types import ModelInfo, PairInfo
from app.ui.theme import Theme
from app.ui.theme.palette import Palette, blend
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.labels import as_text
from app.ui.widgets.words import file_size

KINDS = ("weights", "context", "compute")
HEADINGS = {"weights": "weights", "context": "KV cache", "compute": "compute"}
NAMES = {CPU: "Main memory"}


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One device: its memory, and what each model takes of it."""

    device: Device
    models: tuple[tuple[str, DeviceMemory], ...]  # ("target" or "draft", what it takes here)

    @property
    def needed(self) -> int:
        return sum(memory.total for _role, memory in self.models)

    @property
    def excess(self) -> int:
        """Bytes that are missing; 0 if the pair fits, or if the device's free memory is not known."""
        return max(0, self.needed - self.device.free) if self.device.total else 0

    @property
    def name(self) -> str:
        return NAMES.get(self.device.name, self.device.name)

    @property
    def sentence(self) -> str:
        """The bytes needed and the bytes free."""
        needed = file_size(self.needed)
        if not self.device.total:
            return f"{needed}; free memory unknown"
        if self.excess:
            return f"{needed} of {file_size(self.device.free)} free: {file_size(self.excess)} too much"
        return f"{needed} of {file_size(self.device.free)} free"


def memory_rows(memory: PairMemory) -> tuple[MemoryRow, ...]:
    """The devices that the pair uses or will use, in llama.cpp's order, main memory last."""
    roles = [("target", memory.target)]
    if memory.draft is not None:
        roles.append(("draft", memory.draft))
    rows = []
    for device in memory.devices:
        models = [
            (role, memory) for role, model in roles for memory in model.memory if memory.device == device.name
        ]
        if any(memory.total for _role, memory in models):
            rows.append(MemoryRow(device, tuple(models)))
    return tuple(rows)


def taken_memory(pair: PairInfo, devices: Sequence[Device]) -> PairMemory:
    """What a loaded pair took, by llama.cpp's own report; `devices` are as they are now, with the pair
    loaded."""
    target = _taken(pair.target)
    draft = _taken(pair.draft) if pair.draft is not None else None
    models = (target,) if draft is None else (target, draft)
    return PairMemory(target, draft, freed(devices, models))


def _taken(info: ModelInfo) -> ModelMemory:
    return ModelMemory(info.memory, info.n_gpu_layers, info.n_layers + 1, info.n_ctx)


def advice(rows: Sequence[MemoryRow]) -> str:
    """What to lower if the pair does not fit; "" if it fits."""
    over = [row for row in rows if row.excess]
    if not over:
        return ""
    if all(row.device.name == CPU for row in over):
        return (
            "It does not fit. Lower ctx_size or ubatch_size, or choose a smaller KV format or quantisation."
        )
    return (
        "It does not fit. Lower n_gpu_layers (or choose Fit for me), ctx_size or ubatch_size, or choose a "
        "smaller KV format."
    )


FITS, ONE_FITS = "Any of these makes it fit:", "This makes it fit:"
SAVES = "Each of these takes less memory:"


class LighterOffers(QWidget):
    """A button for each way to need less memory; hidden if there is none."""

    chosen = Signal(object)  # LighterPair

    def __init__(self) -> None:
        super().__init__()
        self._pairs: tuple[LighterPair, ...] = ()
        self._title = kit.label("", "caption")
        self._column = kit.column(self._title, margins=(0, 2, 0, 0), spacing=4, on=self)
        self.hide()

    def show_pairs(self, pairs: Sequence[LighterPair], title: str = FITS) -> None:
        """Show these ways below a line."""
        self._title.setText(ONE_FITS if title == FITS and len(pairs) == 1 else title)
        if tuple(pairs) == self._pairs:
            return
        self._pairs = tuple(pairs)
        for button in self.findChildren(QPushButton):
            button.hide()
            button.deleteLater()
        for pair in self._pairs:
            button = QPushButton(f"Load with {pair.words}: saves {file_size(pair.saves)}")
            if pair.draft is None:
                button.setToolTip(as_text("Replaces a strategy that needs the draft by one that does not."))
            button.clicked.connect(lambda _checked, pair=pair: self.chosen.emit(pair))
            self._column.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        self.setVisible(bool(self._pairs))


_SHADES = {"weights": 1.0, "context": 0.62, "compute": 0.38}
"""Share of the text's colour. Colours are for the fates of tokens; here only an excess has one."""


class MemoryBar(QWidget):
    """Its width is the free memory; the draft's parts are hatched. The numbers are beside it."""

    def __init__(self, theme: Theme, row: MemoryRow) -> None:
        super().__init__()
        self._theme = theme
        self._row = row
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(f"{row.name}: {row.sentence}")
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(100, round(8 * self._theme.scale))

    def minimumSizeHint(self) -> QSize:
        return QSize(40, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        colours, row = self._theme.palette, self._row
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        whole = QRectF(self.rect())
        clip = QPainterPath()
        clip.addRoundedRect(whole, 3, 3)
        painter.setClipPath(clip)
        painter.fillRect(whole, QColor(colours.line))
        scale = max(row.needed, row.device.free if row.device.total else 0, 1)
        left = 0.0
        for role, memory in row.models:
            for kind in KINDS:
                width = whole.width() * getattr(memory, kind) / scale
                place = QRectF(left, 0, width, whole.height())
                painter.fillRect(place, QColor(shade(colours, kind)))
                if role == "draft":
                    hatch = QColor(colours.ground)
                    hatch.setAlphaF(0.55)
                    painter.fillRect(place, QBrush(hatch, Qt.BrushStyle.BDiagPattern))
                left += width
        if row.excess:
            edge = whole.width() * row.device.free / scale
            painter.fillRect(QRectF(edge, 0, whole.width() - edge, whole.height()), QColor(colours.error))


def shade(colours: Palette, kind: str) -> str:
    """The colour of weights, KV cache or compute buffers."""
    return blend(colours.text, colours.ground, _SHADES[kind])


EXPECTED = "Memory needed after Apply"
MEASURING = "Memory: measuring…"
TAKEN = "Memory in use, as llama.cpp reports it"
MAPPED = "is mapped from the file: the system frees it when other programs need the memory."
REPACKED = "is a copy of the weights, reordered for this processor (repack)."
_NONE = "–"
LAYERS = "Layers including the output layer, as llama.cpp counts them"
_COLUMNS = 6  # role, layers, weights, KV cache, compute, sum

Files = tuple[str, str]
"""Paths of the target and of the draft, "" for no draft."""


class MemoryView(QWidget):
    """A bar with its numbers for every device that is used."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.memory: PairMemory | None = None
        self._files: Files = ("", "")  # the files that the numbers are for
        self._known = False
        self._table: QWidget | None = None
        self._title = kit.label(EXPECTED, "strong")
        self._state = kit.label(wrap=True, plain=True)
        self.lighter = LighterOffers()
        kit.column(self._title, self._state, self.lighter, spacing=4, on=self)
        theme.changed.connect(self._show)
        self.say("Not measured yet.")

    def show_memory(self, memory: PairMemory, taken: bool, files: Files) -> None:
        """Show what a pair would take, or (`taken`) what llama.cpp says that it took."""
        self.memory, self._files, self._known = memory, files, True
        self._title.setText(TAKEN if taken else EXPECTED)
        self.lighter.show_pairs(())
        self._show()

    def wait(self, files: Files) -> None:
        """Show that a pair is being measured. Until then, numbers for the same files stay and numbers for
        other files are removed. The table does not move."""
        self._title.setText(MEASURING)
        self.lighter.show_pairs(())
        if self.memory is None:
            self._tell("", error=False)
        if files != self._files:
            self._files, self._known = files, False
            self._show()

    def say(self, words: str, error: bool = False) -> None:
        """Show a sentence instead of numbers, which would be misleading under other settings."""
        self.memory, self._files = None, ("", "")
        self.lighter.show_pairs(())
        self._title.setText(EXPECTED)
        self._clear()
        self._tell(words, error)

    def _tell(self, words: str, error: bool) -> None:
        self._state.setText(words)
        self._state.setVisible(bool(words))
        set_role(self._state, role="error" if error else "caption")

    def _clear(self) -> None:
        if self._table is not None:
            self._table.hide()
            self._table.deleteLater()
            self._table = None

    def _show(self) -> None:
        memory = self.memory
        if memory is None:
            return
        self._clear()
        rows = memory_rows(memory)
        self._table = self._build(rows)
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        column.insertWidget(1, self._table)
        self._tell(advice(rows) if self._known else "", error=True)

    def _build(self, rows: tuple[MemoryRow, ...]) -> QWidget:
        grid = kit.grid((12, 2))
        table = kit.holder(grid)
        for column in range(2, _COLUMNS):
            grid.setColumnStretch(column, 1)
        at = 0
        for number, row in enumerate(rows):
            name = kit.label(row.name, plain=True)
            name.setToolTip(as_text(row.device.description))
            words = kit.label(row.sentence if self._known else "", "error" if row.excess else "caption")
            grid.addWidget(name, at, 0, 1, 2)
            grid.addWidget(words, at, 2, 1, _COLUMNS - 2, Qt.AlignmentFlag.AlignRight)
            bar = MemoryBar(self._theme, row if self._known else MemoryRow(row.device, ()))
            grid.addWidget(bar, at + 1, 0, 1, _COLUMNS)
            at += 2
            if number == 0:
                self._add_headings(grid, at)
                at += 1
            for role, memory in row.models:
                words_of = [role, str(memory.layers) if memory.layers else _NONE]
                words_of += [
                    file_size(size) if size else _NONE for size in (getattr(memory, k) for k in KINDS)
                ]
                words_of.append(file_size(memory.total))
                if not self._known:
                    words_of[1:] = [_NONE] * (_COLUMNS - 1)
                for column, text in enumerate(words_of):
                    cell = kit.label(text, "caption")
                    if column == 2 and self._known:
                        parts = ((memory.mapped, MAPPED), (memory.repacked, REPACKED))
                        told = (f"{file_size(size)} of it {words}" for size, words in parts if size)
                        cell.setToolTip("\n".join(told))
                    grid.addWidget(cell, at, column, _side(column))
                at += 1
            grid.setRowMinimumHeight(at, 6)
            at += 1
        return table

    def _add_headings(self, grid: QGridLayout, at: int) -> None:
        colours = {kind: shade(self._theme.palette, kind) for kind in KINDS}
        kinds = [f'<span style="color:{colours[kind]}">■</span> {HEADINGS[kind]}' for kind in KINDS]
        headings = ["", "layers", *kinds, "in all"]
        for column, text in enumerate(headings):
            heading = kit.label(text, "caption")
            heading.setToolTip(LAYERS if text == "layers" else "")
            grid.addWidget(heading, at, column, _side(column))


def _side(column: int) -> Qt.AlignmentFlag:
    return Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft
