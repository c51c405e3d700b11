"""Auditing the answer on the screen: the finding opens above its button, with the page."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtGui import QGuiApplication

from tests.audits import lenient_rule
from tests.ui.windows import Windows


def test_the_button_audits_and_shows_the_finding(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open(max_tokens=40, strategy="draft-simple:n_max=4")
    status, audit = desk.window.status, desk.window.audit
    assert not status.audit.isEnabled()
    desk.ask("abcabcabd abc")
    texts = desk.texts()
    desk.until(status.audit.isEnabled)
    said: list[str] = []
    audit.progressed.connect(lambda what: said.append(what or "ended"))
    status.audit.click()
    assert not status.measure.isEnabled()
    desk.until(audit.popover.isVisible)
    assert (
        said[:3] == ["Answering with drafting", "Looking into the cache", "Looking into the cache"]
        and said[-1] == "ended"
    )
    assert "Answering without drafting" in said
    panel = audit.panel
    assert panel.title.text() in ("Audit: the same text", "Audit: rounding")
    desk.until(panel.copy.isEnabled)
    panel.copy.click()
    page = QGuiApplication.clipboard().text()
    assert page.startswith("# Audit of drafting: ") and "sha256" in page
    shown = panel.page.toPlainText()
    sizes = []
    for scale in (1.0, 1.6):
        desk.window.appearance.set_scale(scale)
        code = panel.page.document().find("none")
        assert code.charFormat().fontFixedPitch()
        sizes.append(code.charFormat().fontPointSize())
    assert sizes[0] < sizes[1], "code grows with the text"
    assert "What was tried" in shown and "## What" not in shown and "|---" not in shown
    audit.choose = lambda *_words: str(tmp_path / "audit.md")
    panel.save.click()
    assert (tmp_path / "audit.md").read_text(encoding="utf-8") == page
    assert desk.texts() == texts and desk.error() == ""

    desk.window.audit.popover.close_panel()
    assert not audit.popover.isVisible()
    begun = len(said)
    status.audit.click()
    assert audit.popover.isVisible() and len(said) == begun, "it is not audited twice"


def test_a_fault_is_told_and_a_stop_is_said(windows: Windows) -> None:
    desk = windows.open("thread", max_tokens=40, strategy="draft-simple:n_max=4")
    desk.ask("abcabcabd abc")
    desk.until(desk.window.status.audit.isEnabled)
    with lenient_rule():
        desk.window.status.audit.click()
        desk.until(desk.window.audit.popover.isVisible)
    assert desk.window.audit.panel.title.text() == "Audit: a fault of a rule"

    desk.window.audit.popover.close_panel()
    desk.header.regenerate.click()
    desk.answered()
    desk.until(desk.window.status.audit.isEnabled)
    desk.window.status.audit.click()
    desk.session.stop()
    desk.until(lambda: desk.error() != "")
    # The Stop may come while the chat template is rendering, which says so.
    assert desk.error().startswith("The answer was not audited: ") and "topped" in desk.error()
    desk.until(desk.window.status.audit.isEnabled)
