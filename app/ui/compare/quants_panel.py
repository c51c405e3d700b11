"""Part of the lanes panel: which quantisations of the chat's target are made, and get a lane."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox

from app.base.numbers import count, file_size, listed, percent
from app.engine.errors import SettingError, UserError
from app.hub.quantiser import USUAL, Quantiser, QuantPlan
from app.lab.experiment import MOST_LANES, Pair
from app.ui.compare.exports import Saving
from app.ui.compare.start_panels import StartPanel
from app.ui.widgets import kit

WORDS = (
    "Makes more quantisations of the chat's target with llama.cpp's quantiser, and a lane for each. Press "
    "Run to find which is fastest with drafts. The files are kept; manage them in Models."
)
_AT_ONCE = MOST_LANES // 2  # each file has a baseline of its own


class QuantsPanel(StartPanel):
    """A box for each quantisation, what making them takes, and a button that makes them or stops."""

    wanted = Signal(object)
    """Compare these files: (kind, path) of each."""
    told = Signal(str)

    def __init__(self, pair: Callable[[], Pair], folder: Path) -> None:
        """`pair` returns the chat's; files are made in `folder`."""
        super().__init__("Quantisations", WORDS, "Set up the lanes", "")
        self._pair = pair
        self._quantiser = Quantiser(folder)
        self._plan: QuantPlan | None = None  # of all boxes
        self._problem = ""
        self._thread: Saving | None = None
        self._making = False  # rather than planning
        self._stopped = False
        self.boxes = [QCheckBox() for _ in range(1 + len(USUAL))]
        for box in self.boxes:
            box.hide()
            box.toggled.connect(self._chose)
        self.notes = kit.label("", "secondary", wrap=True)
        boxes = kit.row(*self.boxes, kit.Spring(1), spacing=12)
        self.lay_out(kit.column(boxes, self.notes, spacing=12))
        self.told.connect(self.amount.setText)

    @property
    def at_work(self) -> bool:
        """Whether files are being read or made."""
        return self._thread is not None

    def open(self) -> None:
        """Look what is here of the chat's target."""
        if self.at_work:
            return
        target = self._pair().target.path
        self._plan, self._problem = None, ""
        if self._pair().is_server:
            self._failed(UserError("A server's model cannot be quantised here.", "Choose a file in Chat."))
            return

        def plan(stopped: Callable[[], bool]) -> None:
            self._plan = self._quantiser.plan(Path(target), USUAL, stopped)

        self.amount.setText("Reading the file…")
        self._begin(plan, making=False)

    def amount_words(self) -> str:
        chosen = self._chosen()
        if self._problem:
            raise SettingError(self._problem)
        if not 1 < len(chosen.files) <= _AT_ONCE:
            raise SettingError(
                f"Choose 2 to {_AT_ONCE} files.", "Each needs two lanes, one for its baseline."
            )
        missing = [f"{file.kind} {file_size(file.size)}" for file in chosen.missing]
        room = f"{self._quantiser.folder}, where {file_size(self._quantiser.free)} are free"
        return f"Writes {listed(missing)} to {room}." if missing else "All files are already here."

    def check(self) -> None:
        if self.at_work:
            return
        super().check()
        chosen = self._chosen()
        made = f"Make {count(len(chosen.missing), 'file')} ({file_size(chosen.size)})"
        self.start.setText(made if chosen.missing else "Set up the lanes")
        warning = self._plan.warning if self._plan else ""
        self.notes.setText(" ".join([*(file.note for file in chosen.files if file.note), warning]))

    def _chosen(self) -> QuantPlan:
        """The plan with the files whose boxes are checked."""
        boxes = zip(self._plan.files if self._plan else (), self.boxes, strict=False)
        return QuantPlan(tuple(file for file, box in boxes if box.isChecked()))

    def _begin(self, work: Callable[[Callable[[], bool]], None], *, making: bool) -> None:
        def run(stopped: Callable[[], bool]) -> None:
            with contextlib.suppress(InterruptedError):
                work(stopped)

        self._making, self._stopped = making, False
        self._thread = Saving(run, "The file")
        self._thread.done.connect(self._done)
        self._thread.failed.connect(self._failed)
        for box in self.boxes:
            box.setEnabled(False)
        self.start.setEnabled(True)
        self.start.setText("Cancel")
        self._thread.start()

    def _done(self) -> None:
        self._failed(UserError("Stopped.", "Files that were complete are kept.") if self._stopped else None)
        plan, chosen = self._plan, self._chosen()
        if self._stopped or plan is None:
            return
        if self._making:
            self.wanted.emit([(file.kind, str(file.path)) for file in chosen.files])
            return
        for at, box in enumerate(self.boxes):
            box.setVisible(at < len(plan.files))
            box.setChecked(at < min(len(plan.files), _AT_ONCE))
            if at < len(plan.files):
                box.setText(f"{plan.files[at].kind}{'' if at else ', as it is'}")

    def _failed(self, error: UserError | None) -> None:
        if self._thread is not None:
            self._thread.wait()
        self._thread = None
        self._problem = str(error or "")
        for box in self.boxes:
            box.setEnabled(True)
        self.check()

    def _chose(self) -> None:
        self._problem = ""
        self.check()

    def _start(self) -> None:
        if self._thread is not None:
            self._stopped = True
            self.close_work()
            return
        chosen, plan = self._chosen(), self._plan
        assert plan is not None

        def make(stopped: Callable[[], bool]) -> None:
            self._quantiser.make(
                QuantPlan((plan.source, *chosen.missing)),
                lambda file, share: self.told.emit(f"Making {file.kind}: {percent(share, 0)}"),
                stopped,
            )

        self._begin(make, making=True)

    def close_work(self) -> None:
        """Stop before the window closes; no part of a file stays."""
        if self._thread is not None:
            self._thread.end()
