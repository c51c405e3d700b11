from tests.ui.test_presets import *
from tests.ui.conftest import *
def test_v1(windows):
    desk = windows.open(strategy="draft-simple:n_max=4")
    t,d = desk.window._settings.target, desk.window._settings.draft
    desk.header.draft_panel.applied.emit(None)
    desk.until(lambda: desk.session.pair is not None and desk.session.pair.draft is None)
    desk.header.draft_panel.applied.emit(d)
    desk.until_ready()
def test_v2(desk):
    save(desk, "Pair")
    desk.header.draft_panel.applied.emit(None)
    desk.until(lambda: desk.session.pair is not None and desk.session.pair.draft is None)
    save(desk, "Alone")
    row(desk, "Pair").button.click()
    desk.until_ready()
def test_v3(desk):
    save(desk, "Pair")
    save(desk, "Alone")
    row(desk, "Pair").button.setFocus()
    desk.press(Qt.Key.Key_Return, row(desk, "Pair").button)
    desk.qtbot.wait(600)
def test_v4(desk):
    save(desk, "Pair")
    row(desk, "Pair").button.setFocus()
    desk.press(Qt.Key.Key_Space, row(desk, "Pair").button)
    desk.qtbot.wait(600)
