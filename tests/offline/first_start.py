"""Run by `tests/test_offline.py` without a network: a first start, a chat, a comparison."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.base.paths import find_paths
from app.engine.types import FinishReason
from app.lab.runs.journal import Journal
from app.ui.state.engine_session import Activity
from tests.ui.compare.measuring import opened
from tests.ui.windows import Desk


def test_first_start_chat_and_compare(qtbot: QtBot) -> None:
    from app.wiring import make_window

    interfaces = Path("/proc/net/dev").read_text().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in interfaces] in ([], ["lo"]), "there is a network here"
    paths = find_paths()
    assert not paths.data.exists(), "this is no first start"
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    window = make_window(application, paths, "process")
    desk = Desk(qtbot, window, paths)
    window.resize(1280, 800)
    window.show()
    desk.until_ready()
    desk.type("")  # Enter in the empty field sends a demo prompt
    answer = desk.answered()
    assert answer.text.strip() and desk.error() == ""

    place = opened(desk, tokens=16, repeats=1, prompt="Count from 3 to 9.")
    place.run()
    desk.until(lambda: desk.session.activity is Activity.LENT)
    desk.until_ready()
    (file,) = (paths.data / "compare").glob("*.jsonl")
    records = Journal.read(file).records
    assert len(records) == 4, "the baseline and three lanes"
    assert FinishReason.FAILED not in {record.finish_reason for record in records.values()}
    window.close()
