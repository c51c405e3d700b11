"""Part of the lanes panel: which quantisations of the chat's target are made, and get a lane."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QThread, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QVBoxLayout

from app.base.numbers import count, file_size, listed, percent
from app.engine.errors import SettingError, UserError
from app.hub.quantiser import USUAL, QuantFile, Quantiser, QuantPlan
from app.lab.experiment import MOST_LANES, Pair
from app.ui.compare.start_panel import StartPanel

log = logging.getLogger("draftscope")
WORDS = (
    "Makes other quantisations of the chat's target with llama.cpp's quantiser, and a lane for each. Run "
    "says which is the fastest with drafts. The files are kept; Models lists and deletes them."
)
_AT_ONCE = MOST_LANES // 2  # each file has a baseline of its own


class _Quantising(QThread):
    """Plans, then makes what is missing, on a thread of its own."""

    told = Signal(str)
    ended = Signal(object)
    """The QuantPlan, or a UserError; None where it was stopped."""

    def __init__(self, work: Callable[[_Quantising], QuantPlan]) -> None:
        super().__init__()
        self._work = work
        self._stopped = False

    def tell(self, file: QuantFile, share: float) -> None:
        self.told.emit(f"Making {file.kind}: {percent(share, 0)}")

    def stopped(self) -> bool:
        return self._stopped

    def stop(self) -> None:
        self._stopped = True

    def run(self) -> None:
        try:
            self.ended.emit(self._work(self))
        except InterruptedError:
            self.ended.emit(None)
        except UserError as error:
            self.ended.emit(error)
        except Exception:  # a bug: it is logged, and the panel says so
            log.exception("Quantising broke")
            self.ended.emit(UserError("Quantising broke.", "The log has the details."))


class QuantsPanel(StartPanel):
    """A box for each quantisation, what making them takes, and a button that makes them or stops."""

    wanted = Signal(object)
    """Compare these files: (kind, path) of each."""

    def __init__(self, pair: Callable[[], Pair], folder: Path) -> None:
        """`pair` returns the chat's; files are made in `folder`."""
        super().__init__("Quantisations", WORDS, "Set up the lanes", "")
        self._pair = pair
        self._quantiser = Quantiser(folder)
        self._plan: QuantPlan | None = None
        self._problem = ""
        self._thread: _Quantising | None = None
        self._making = False  # rather than planning
        self.boxes = [QCheckBox() for _ in range(1 + len(USUAL))]
        boxes = QHBoxLayout()
        boxes.setSpacing(12)
        for box in self.boxes:
            box.hide()
            box.toggled.connect(self._chose)
            boxes.addWidget(box)
        boxes.addStretch(1)
        self.notes = QLabel()
        self.notes.setProperty("role", "secondary")
        self.notes.setWordWrap(True)
        self.notes.hide()
        fields = QVBoxLayout()
        fields.setSpacing(12)
        fields.addLayout(boxes)
        fields.addWidget(self.notes)
        self.lay_out(fields)

    @property
    def at_work(self) -> bool:
        """Whether files are being read or made."""
        return self._thread is not None

    @Slot()
    def open(self) -> None:
        """Look what is here of the chat's target."""
        pair = self._pair()
        if self.at_work:
            return
        self._plan, self._problem = None, ""
        if pair.is_server:
            self._problem = "A server's model cannot be quantised here. Choose a model file in Chat."
            self.check()
            return
        self._begin(lambda thread: self._quantiser.plan(Path(pair.target.path), USUAL, thread.stopped))
        self.amount.setText("Reading the file…")

    def amount_words(self) -> str:
        if self._problem:
            raise SettingError(self._problem)
        chosen = self._chosen()
        if not 1 < len(chosen.files) <= _AT_ONCE:
            raise SettingError(f"Choose 2 to {_AT_ONCE} files.", "Each takes two lanes, with its baseline.")
        missing = [f"{file.kind} {file_size(file.size)}" for file in chosen.missing]
        room = f"{self._quantiser.folder}, where {file_size(self._quantiser.free)} are free"
        return f"Writes {listed(missing)} to {room}." if missing else "All of them are here."

    @Slot()
    def check(self) -> None:
        if self.at_work:
            return
        if self._plan is None and not self._problem:
            return
        super().check()
        chosen = self._chosen()
        made = f"Make {count(len(chosen.missing), 'file')} ({file_size(chosen.size)})"
        self.start.setText(made if chosen.missing else "Set up the lanes")
        self.notes.setText(
            " ".join(
                [*(file.note for file in chosen.files if file.note), self._plan.warning if self._plan else ""]
            )
        )
        self.notes.setVisible(bool(self.notes.text().strip()))

    def _chosen(self) -> QuantPlan:
        """The plan with the files whose boxes are checked."""
        files = self._plan.files if self._plan else ()
        boxes = zip(files, self.boxes, strict=False)
        return QuantPlan(tuple(file for file, box in boxes if box.isChecked()))

    def _begin(self, work: Callable[[_Quantising], QuantPlan], *, making: bool = False) -> None:
        self._making = making
        thread = self._thread = _Quantising(work)
        thread.told.connect(self.amount.setText)
        thread.ended.connect(self._ended)
        thread.start()
        for box in self.boxes:
            box.setEnabled(False)
        self.start.setEnabled(True)
        self.start.setText("Cancel")

    @Slot(object)
    def _ended(self, result: object) -> None:
        if self._thread is not None:
            self._thread.wait()
        self._thread = None
        for box in self.boxes:
            box.setEnabled(True)
        if isinstance(result, UserError):
            self._problem = str(result)
        elif isinstance(result, QuantPlan) and not self._making:
            self._show(result)
        elif isinstance(result, QuantPlan):
            self.wanted.emit([(file.kind, str(file.path)) for file in result.files])
        elif self._making:
            self._problem = "Stopped. Files that were complete are kept."
        self.check()

    @Slot()
    def _chose(self) -> None:
        self._problem = ""
        self.check()

    def _show(self, result: QuantPlan) -> None:
        """Show a plan: the first files are chosen."""
        self._plan = result
        for at, box in enumerate(self.boxes):
            box.setVisible(at < len(result.files))
            if at < len(result.files):
                box.setText(f"{result.files[at].kind}{'' if at else ', as it is'}")
                box.setChecked(at < _AT_ONCE)

    @Slot()
    def _start(self) -> None:
        if self._thread is not None:
            self._thread.stop()
            return
        chosen, source = self._chosen(), self._plan

        def make(thread: _Quantising) -> QuantPlan:
            assert source is not None
            self._quantiser.make(QuantPlan((source.source, *chosen.missing)), thread.tell, thread.stopped)
            return chosen

        self._problem = ""
        self._begin(make, making=True)

    def close_work(self) -> None:
        """Stop before the window closes; no part of a file stays."""
        if self._thread is not None:
            self._thread.stop()
            self._thread.wait()
