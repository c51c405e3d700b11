"""The time from the start of the process to the window on the screen, and to the loaded models.

    python tests/benchmarks/ui/startup.py [--repeats 7]

The product is started as a person starts it, without a command, in a new home folder; a wrapper around
Qt's event loop reads the clock when the window was first painted. Goal: 1.5 s, with everything in the
system's cache. "event loop" is the time until it begins, before the first frame. On a busy machine the
processor time of the window's process is the better number; it is a little below the wall time of an idle
machine.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from typing_extensions import override

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

GOAL = 1.5
COLUMNS = ("event loop", "painted", "models loaded")


def child(began: float) -> None:
    """Start the product and print the seconds since `began`, on the clock that all processes share."""
    from importlib import import_module

    gc.disable()
    import_module("app.wiring")  # as `open_window` does: Qt is imported last
    gc.enable()
    from PySide6.QtCore import QEvent, QObject, QTimer
    from PySide6.QtWidgets import QApplication

    class Watch(QObject):
        def __init__(self, window: QObject) -> None:
            super().__init__(window)
            self.window = window
            self.painted = False

        @override
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if event.type() is QEvent.Type.UpdateRequest and not self.painted:
                self.painted = True
                # The event paints; a timer comes after it.
                QTimer.singleShot(0, lambda: tell("painted"))
            return False

    def tell(what: str) -> None:
        print(f"{what}={time.monotonic() - began:.4f}={time.process_time():.4f}", flush=True)

    def told(now: Any, _before: object) -> None:
        if now.activity == "ready":
            tell("models loaded")
            QTimer.singleShot(0, QApplication.closeAllWindows)

    run = QApplication.exec

    def exec_(*arguments: object) -> int:
        tell("event loop")
        from app.ui.window.main_window import MainWindow  # the window is there: this costs nothing

        window = next(shown for shown in QApplication.topLevelWidgets() if isinstance(shown, MainWindow))
        window.installEventFilter(Watch(window))
        window.session.changed.connect(told)
        return run()

    QApplication.exec = exec_  # type: ignore[method-assign]
    from app.cli import main

    sys.exit(main([]))


def measure_once(home: Path) -> dict[str, tuple[float, float]]:
    """For each of COLUMNS: seconds of wall time, and of the window process's processor time."""
    # Compiled modules are kept as anywhere, but not in the working tree.
    environment = os.environ | {"DRAFTSCOPE_HOME": str(home), "PYTHONPYCACHEPREFIX": str(home / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.monotonic()
    command = [sys.executable, __file__, "--child", repr(began)]
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, timeout=120, check=True
    )
    told = (line.split("=") for line in done.stdout.splitlines() if line.count("=") == 2)
    return {name: (float(seconds), float(processor)) for name, seconds, processor in told}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--child", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child)
    from tests.benchmarks.measure import spread
    from tests.benchmarks.ui.screen import screen

    with screen() as where, tempfile.TemporaryDirectory() as home:
        measure_once(Path(home))  # a warm-up
        runs = [measure_once(Path(home)) for _ in range(options.repeats)]
    print(f"\nstart of the process until …, seconds; median (range) of {options.repeats}; {where}\n")
    print(f"{'':16}{'by the clock':>22}{'processor time':>22}")
    for name in COLUMNS:
        clock, processor = zip(*(run[name] for run in runs), strict=True)
        goal = f"   goal {GOAL}" if name == "painted" else ""
        print(f"{name:16}{spread(clock, '{:.2f}'):>22}{spread(processor, '{:.2f}'):>22}{goal}")


if __name__ == "__main__":
    main()
