"""States of Compare, Models, Settings, Help and of what appears above all places.

A scene needs no other one before it, but what it changes stays for the next ones.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app import wiring
from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET, REAL_DRAFT, REAL_TARGET, find_paths
from app.demo import SMALL_PAIR
from app.ui.state.engine_session import Activity
from tests.benchmarks.ui.window import turn
from tests.files.drafter_files import PATTERN, write_drafter
from tests.screenshots import compare, models
from tests.screenshots.answers import load, new_chat
from tests.screenshots.user import Key, close, open_panel, panel, press, ready, unfold, write
from tests.screenshots.variants import Scene, StateVisitor
from tests.servers.scripted import DRAFTING, llama_server, serving


def pair_panels(visitor: StateVisitor) -> None:
    window, header = visitor.window, visitor.window.header
    window.go("chat")
    for name, chip in (("target", header.target), ("draft", header.draft)):
        press(chip)
        visitor.calm()
        panel(visitor, f"panel-{name}")
        unfold(open_panel(visitor))
        panel(visitor, f"panel-{name}-unfolded")
        close(visitor)
    with TemporaryDirectory() as folder:
        broken = Path(folder, "a-broken-file.gguf")
        broken.write_bytes(b"PK\x03\x04 something else")
        with patch("app.ui.pair.model_panel.ask_for_model", lambda *_asked: str(broken)):
            press(header.target)
            visitor.click("Choose file…")
            panel(visitor, "panel-target-chosen")
            visitor.click("Apply")
            turn(lambda: bool(header.target_panel.notice.message))
        panel(visitor, "panel-target-refused")
        close(visitor)
        visitor.variants("chat-file-refused")
    press(header.draft)
    visitor.click("No draft")
    panel(visitor, "panel-no-draft")
    close(visitor)
    press(header.target)
    visitor.click("Use a server…")
    write(header.server_form.address, "http://127.0.0.1:9")
    turn(header.server_form.notice.isVisible)
    panel(visitor, "panel-no-server")
    with serving(llama_server(*DRAFTING)) as server:
        write(header.server_form.address, server.address)
        turn(lambda: window.session.server is not None)
        window.go("chat")
        close(visitor)
        visitor.variants("chat-server")
        press(header.target)
        panel(visitor, "panel-server")
        header.target_panel.own_wanted.emit(SMALL_PAIR)  # for the next scenes
        ready(visitor)
        close(visitor)


def strategy(visitor: StateVisitor) -> None:
    """Every strategy's form, several at once; every length rule; what is wrong, and the lists."""
    window = visitor.window
    window.go("chat")
    chip, shown = window.header.strategy, window.header.strategy_panel
    press(chip)
    specs = {
        "none": "none",
        "draft": "draft-simple:n_max=4",
        "lookups": "prompt-lookup+suffix+ngram-simple+ngram-mod",
        "maps": "ngram-map-k+ngram-map-k4v+ngram-cache+draft-simple",
        "eagle3": "draft-eagle3",
        "dflash": "draft-dflash",
        "dspark": "draft-dspark",
        "mtp": "draft-mtp",
        "ewma": "draft-simple:length=ewma",
        "auto": "prompt-lookup+draft-simple:length=auto:verify=block",
        "wrong": "draft-simpel:n_max=4",
    }
    for state, spec in specs.items():
        write(shown.text.line, spec)
        visitor.calm()
        panel(visitor, f"strategy-{state}")
    write(shown.text.line, "draft-simple:n_max=4")
    panel(visitor, "strategy-list", again=partial(press, shown.cards.add))
    shown.purpose.choice.setCurrentIndex(2)
    unfold(shown)
    command = "llama-server -m big.gguf -md small.gguf --draft-max 8 --draft-p-min 0.5"
    QTest.keyClicks(shown.reader.field, command)
    turn(shown.reader.use.isVisible)
    panel(visitor, "strategy-purpose-and-command")
    close(visitor)
    press(window.header.sampling)
    unfold(open_panel(visitor))
    panel(visitor, "panel-sampling")
    close(visitor)
    press(chip)
    write(shown.text.line, "draft-simple:verify=greedy")
    close(visitor)
    window.settings.change(sampling=replace(window.settings.now.sampling, temperature=0.8))
    visitor.variants("chat-doubt")
    press(chip)
    panel(visitor, "strategy-doubt")
    write(shown.text.line, "draft-simple:n_max=4")
    close(visitor)


def presets(visitor: StateVisitor) -> None:
    window = visitor.window
    window.go("chat")
    shown = window.header.presets_panel
    press(window.header.presets)
    panel(visitor, "presets-none")
    for name in ("Code", "Stories at temperature 0.8, with a rather long name for a preset"):
        write(shown.field, name)
        turn(lambda: not shown.field.text())
    panel(visitor, "presets")
    press(shown.rows[0].rename)
    panel(visitor, "presets-rename")
    QTest.keyClick(shown.rows[0].field, Key.Key_Escape)
    press(shown.rows[1].delete)
    panel(visitor, "presets-deleted")
    close(visitor)


# ------------------------------------------------------------------ Settings, Help, notices


def settings(visitor: StateVisitor) -> None:
    window = visitor.window
    visitor.click("Settings (Ctrl+,)")
    page = window.settings_page
    visitor.variants("settings", scroll=page)
    with TemporaryDirectory() as folder:
        wrong = write_drafter(Path(folder), "def propose(", file="wrong.py")
        for file in (PATTERN.resolve(), wrong):
            with patch("app.ui.settings.settings_page.ask_for_drafter", lambda *_asked, file=file: str(file)):
                visitor.click("Add a drafter file")
        window.settings.change(offline=False)
        visitor.click("Copy a report")
        find_paths().data.joinpath("downloads.json").write_bytes(b"{")
        visitor.click("Check my data")
        turn(page.care.asking.isVisible)
        visitor.variants("settings-told", scroll=page)
        visitor.click("Repair")
        turn(lambda: "repaired" in page.care.check_words.text())
        visitor.variants("settings-repaired", scroll=page)
        window.settings.change(offline=True)
        page.drafters.files_changed.emit(())


def help(visitor: StateVisitor) -> None:
    shown = visitor.window.help
    visitor.window.go("chat")
    press(visitor.window.rail.help)
    visitor.variants("help", scroll=shown.text, sizes=((1024, 768),))
    for section in ("words", "keys", "files", "about"):
        visitor.variants(f"help-{section}", again=partial(shown.text.scrollToAnchor, section))
    for state, words in (("found", "accept"), ("nothing", "zebra")):
        write(shown.field, words)
        visitor.variants(f"help-{state}")
    shown.close_panel()


def kill_engine(visitor: StateVisitor, when: Activity, button: str) -> None:
    """Click a button, and kill the engine as soon as it does this."""
    session = visitor.window.session
    (engine,) = (process for process in active_children() if process.name == "draftscope engine")
    killed = False

    def kill() -> None:
        nonlocal killed
        if session.activity is when and not killed:
            killed = True
            engine.kill()

    session.changed.connect(kill)
    visitor.click(button)
    turn(lambda: killed)
    session.changed.disconnect(kill)


def notices(visitor: StateVisitor) -> None:
    """A file that is no trace, an engine that was ended by a signal, a fault of the window."""
    window = visitor.window
    visitor.click("Chat")
    visitor.click("New chat")
    with TemporaryDirectory() as folder:
        (file := Path(folder, "broken.jsonl")).write_text("{")
        window.open_trace(file)
        turn(lambda: not window.opener.opening)
    visitor.variants("chat-no-trace")
    visitor.click("Dismiss")
    kill_engine(visitor, Activity.READING, "One name, everywhere")
    turn(lambda: bool(window.page.prompt.notices.strips))
    visitor.variants("chat-engine-ended")
    visitor.click("Dismiss")
    load(visitor, REAL_TARGET, REAL_DRAFT, "none")  # slow enough
    new_chat(visitor, "Write a long story about a fox and a lighthouse.", max_tokens=1500)
    kill_engine(visitor, Activity.GENERATING, "Send")
    turn(lambda: window.session.activity is Activity.READY)
    visitor.variants("chat-engine-ended-later")
    load(visitor, BUNDLED_TARGET, BUNDLED_DRAFT, "draft-simple:n_max=4")
    window.care.tell_bug("KeyError at store.py:12")
    window.care.tell_death("a segmentation fault in the engine's library, at 14:02")
    visitor.variants("chat-bug")


def first_run(visitor: StateVisitor) -> None:
    """A new user's window."""
    with TemporaryDirectory() as home:
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        window = wiring.make_window(application, find_paths({"DRAFTSCOPE_HOME": home}), "process")
        window.settings.change(offline=True)
        window.show()
        turn(lambda: window.session.activity is Activity.READY)
        StateVisitor(window, visitor.folder).variants("first-run")
        window.close()


_OWN = pair_panels, strategy, presets, settings, help, notices, first_run
SCENES: dict[str, Scene] = {scene.__name__: scene for scene in (*compare.SCENES, *models.SCENES, *_OWN)}
