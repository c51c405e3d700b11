"""The strip of a measurement keeps its height, so that what stands below it keeps its place."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.ui.widgets.ask_first import RunStrip


def test_the_strip_is_as_high_before_during_and_after_a_measurement(qtbot: QtBot) -> None:
    strip = RunStrip()
    qtbot.addWidget(strip)
    strip.show()
    remarks = ["Two files are left out."]
    heights = []
    for share in (None, 0.3, None):
        strip.set_at_work(share is not None, may_pause=False, paused=False)
        strip.set_share(share)
        if share is None:
            strip.conclude("Nothing was measured.", remarks)
        else:
            strip.say("half of it", remarks=remarks)
        heights.append(strip.heightForWidth(900))
        assert strip.bar.isVisible() is (share is not None)
    assert len(set(heights)) == 1
