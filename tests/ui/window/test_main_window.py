"""The window as a whole: model files, settings, the next start, and closing."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QEvent, QObject, Qt, QThread, QTimer
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QProgressBar, QPushButton, QWidget
from shiboken6 import isValid
from typing_extensions import override

from app.demo import SMALL_PAIR
from app.engine.record.trace import write_trace
from app.engine.types import ModelOptions, Sampling
from app.ui.pair.model_panel import ModelPanel
from app.ui.setup.sampling_panel import AnswerOptions
from app.ui.state.engine_session import Activity
from app.ui.widgets.field import NumberField
from app.ui.widgets.icons import IconButton
from app.ui.widgets.words import SPACE, describe_model
from app.ui.window.main_window import MainWindow
from tests.files.tiny import Tiny
from tests.ui.named import named, words_in
from tests.ui.traces import make_round, make_trace
from tests.ui.windows import Windows, chip_text, doubted

on_posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")


# --------------------------------------------------------------------------------------- model files


@pytest.fixture
def broken(
    tmp_path: Path, pair_files: tuple[Path, Path], tiny_file: Callable[[Tiny], Path]
) -> dict[str, Path]:
    """Files that cannot be a target, by their fault."""
    whole = pair_files[0].read_bytes()
    contents = {
        "does not exist": None,
        "is empty": b"",
        "is not a GGUF file": b"PK\x03\x04 something else",
        "is cut short or damaged": whole[: len(whole) // 2],
    }
    files = {}
    for number, (words, data) in enumerate(contents.items()):
        files[words] = tmp_path / f"broken-{number}.gguf"
        if data is not None:
            files[words].write_bytes(data)
    strange = tmp_path / "strange.gguf"
    strange.write_bytes(
        whole.replace(b"\x05\x00\x00\x00\x00\x00\x00\x00llama", b"\x05\x00\x00\x00\x00\x00\x00\x00zlama")
    )
    files["has the architecture"] = strange
    files["has no vocabulary"] = tiny_file(Tiny(name="wordless", vocabulary=False))
    return files


def reading(panel: ModelPanel) -> bool:
    """Whether a panel says that its file is being read."""
    return any(not bar.isHidden() for bar in panel.findChildren(QProgressBar))


def test_a_target_that_cannot_be_loaded_leaves_the_pair_in_use(
    windows: Windows, broken: dict[str, Path]
) -> None:
    desk = windows.open()
    before = desk.saved()
    panel = desk.header.target_panel
    for words, path in broken.items():
        desk.load(path)
        assert words in desk.panel_error(panel), words
        assert desk.panel_error(panel).startswith(path.name)
        assert desk.panel_error(desk.header.draft_panel) == ""
        assert words in desk.error() and "target is still loaded" in desk.error()
        assert doubted(desk.header.target) and not doubted(desk.header.draft)
        assert chip_text(desk.header.target).startswith("target"), "the chip says what is in use"
        assert desk.session.activity is Activity.READY
        assert not reading(panel) and not reading(desk.header.draft_panel)
    assert desk.saved()["target"] == before["target"], "the next start does not load the pair that failed"
    desk.ask("hello")
    assert desk.tokens() == 24 and desk.error() == ""
    desk.load(windows.pair[0], ctx_size=256)
    assert desk.panel_error(panel) == "" and not doubted(desk.header.target)
    assert desk.saved()["target"]["ctx_size"] == 256  # type: ignore[index]


def test_a_draft_that_cannot_serve_is_told_in_its_own_panel(
    windows: Windows, tiny_file: Callable[[Tiny], Path], tmp_path: Path
) -> None:
    desk = windows.open()
    panel = desk.header.draft_panel
    mute = tiny_file(Tiny(name="mute", vocabulary=False))
    (tmp_path / "empty-draft.gguf").touch()
    for path, words in ((mute, "has no vocabulary"), (tmp_path / "empty-draft.gguf", "is empty")):
        desk.load(draft=path)
        assert words in desk.panel_error(panel)
        assert desk.panel_error(desk.header.target_panel) == ""
        assert doubted(desk.header.draft) and not doubted(desk.header.target)
        assert not reading(desk.header.target_panel)
        said = words_in(desk.header.target_panel)
        assert describe_model(desk.session.pair.target).replace(SPACE, " ") in said, (
            "it is loaded, and its panel says so"
        )
    desk.ask("hello")
    assert desk.trace is not None and desk.trace.header.pair.draft is not None


@pytest.mark.parametrize(
    ("before", "after"), [("suffix+draft-simple", "suffix"), ("draft-simple", "ngram-mod")]
)
def test_a_target_used_alone_leaves_no_strategy_that_needs_a_draft(
    windows: Windows, before: str, after: str
) -> None:
    desk = windows.open(strategy=before)
    desk.window.chat_side.use_models(desk.page.prompt.notices.tell, draft=None)
    now = desk.window.settings.now
    assert (now.draft, now.strategy) == (None, after)


def test_a_target_of_our_own_brings_its_draft_and_strategy(
    windows: Windows, tiny_file: Callable[[Tiny], Path]
) -> None:
    desk = windows.open(
        target=ModelOptions(str(tiny_file(Tiny(name="other")))), draft=None, strategy="suffix"
    )
    file = desk.window.settings.real(SMALL_PAIR.target).path
    desk.window.chat_side.use_models(desk.page.prompt.notices.tell, target=file)
    now = desk.window.settings.now
    assert (now.target, now.draft, now.strategy) == (SMALL_PAIR.target, SMALL_PAIR.draft, SMALL_PAIR.strategy)


def test_a_draft_of_another_vocabulary_says_so_on_its_chip(
    windows: Windows, tiny_file: Callable[[Tiny], Path]
) -> None:
    desk = windows.open()
    desk.load(draft=tiny_file(Tiny(name="other", letters="abcdefghij ")))
    assert desk.panel_error(desk.header.draft_panel) == ""
    assert "different: through text (" in desk.header.draft.toolTip()
    desk.ask("hello")
    assert desk.trace is not None
    assert desk.trace.header.pair.vocabulary.startswith("different: through text (")


@pytest.mark.parametrize("by", ["panel", "models"])
def test_a_draft_that_does_not_belong_to_another_target_is_offered_only(
    windows: Windows, tiny_file: Callable[[Tiny], Path], by: str
) -> None:
    desk = windows.open(strategy="draft-simple:n_max=2")
    draft = desk.window.settings.now.draft
    other = tiny_file(Tiny(name="other", letters="abcdefghij "))
    if by == "panel":
        desk.header.target_panel.applied.emit(ModelOptions(str(other)))
    else:
        desk.window.chat_side.use_models(desk.page.prompt.notices.tell, target=other)
    desk.type("bad cab")  # sent as soon as the target is there
    desk.until(lambda: desk.trace is not None and desk.trace.totals is not None)  # it may be over at once
    desk.until_ready()
    assert desk.trace is not None and desk.trace.header.pair.draft is None
    assert desk.trace.header.strategy == desk.window.settings.now.strategy == "ngram-mod"
    assert desk.window.settings.now.draft is None and chip_text(desk.header.draft) == "none"
    assert "was removed as the draft" in desk.error()
    assert "was removed as the draft" in desk.panel_error(desk.header.draft_panel)
    named(desk.page.prompt.notices, "Use it as the draft", QPushButton).click()
    desk.until_ready()
    pair = desk.session.pair
    assert (
        pair is not None and pair.draft is not None and pair.vocabulary.startswith("different: through text")
    )
    assert desk.window.settings.now.draft == draft and desk.error() == ""
    assert desk.window.settings.now.strategy == "draft-simple:n_max=2"


def test_a_draft_stays_for_a_target_of_its_vocabulary_and_where_it_was_chosen(
    windows: Windows, tiny_file: Callable[[Tiny], Path]
) -> None:
    desk = windows.open()
    draft = desk.window.settings.now.draft
    desk.load(target=tiny_file(Tiny(name="larger", n_layers=3)))
    assert desk.session.pair is not None and desk.session.pair.draft is not None
    assert desk.window.settings.now.draft == draft and desk.error() == ""
    other = ModelOptions(str(tiny_file(Tiny(name="other", letters="abcdefghij "))))
    desk.window.pair.load(other, draft)  # as a preset does
    desk.until_ready()
    assert desk.session.pair.draft is not None and desk.error() == ""


def test_the_first_pair_cannot_be_loaded(windows: Windows, tmp_path: Path) -> None:
    gone = tmp_path / "gone.gguf"
    desk = windows.open(ready=False, target=ModelOptions(str(gone)), draft=None)
    desk.until(desk.error)
    assert f"gone.gguf does not exist. Looked for {gone}. Choose a different model file." in desk.error()
    assert desk.window.status.state.text() == "No model loaded"
    desk.type("hello")
    assert "No model is loaded" in desk.error() and desk.page.prompt.text() == "hello"
    desk.load(windows.pair[0])
    desk.window.settings.change(strategy="none")
    desk.ask("hello")
    assert desk.tokens() == 24


def test_a_context_that_is_out_of_range(windows: Windows) -> None:
    desk = windows.open()
    field = desk.header.target_panel.form.field("ctx_size")
    assert isinstance(field, NumberField)
    field.control.lineEdit().setText("-3")
    field.control.edited.emit()
    desk.header.target.click()
    apply = named(desk.window, "Apply", QPushButton)
    assert "0" in field.error_text() and not apply.isEnabled()
    desk.load(windows.pair[0], ctx_size=-3)
    assert "ctx_size" in desk.panel_error(desk.header.target_panel)
    desk.ask("hello")
    assert desk.tokens() == 24


def test_a_question_without_a_model_leaves_the_reason_why_there_is_none(
    windows: Windows, broken: dict[str, Path]
) -> None:
    (words, path), *_others = broken.items()
    desk = windows.open(ready=False, target=ModelOptions(str(path)), draft=None, strategy="none")
    desk.until(desk.error)
    desk.type("hello")
    desk.until(lambda: "No model is loaded" in desk.error())
    assert words in desk.error(), "one notice does not replace another"
    assert desk.page.prompt.text() == "hello"


@on_posix
def test_the_engine_is_killed_while_it_loads(windows: Windows) -> None:
    desk = windows.open("process", ready=False)
    desk.until(lambda: desk.session.activity is Activity.LOADING)
    desk.until(lambda: windows.homes)
    os.kill(desk.engine_pid, signal.SIGKILL)
    desk.until(desk.error)
    assert "The engine was ended" in desk.error()
    assert desk.session.activity is Activity.EMPTY
    desk.load(windows.pair[0], ctx_size=512)
    desk.ask("hello")
    assert desk.tokens() == 24


def test_a_file_that_crashes_the_engine(windows: Windows, tiny_file: Callable[[Tiny], Path]) -> None:
    """A real crash: llama.cpp aborts on the file's metadata."""
    desk = windows.open("process")
    desk.ask("before")
    desk.load(tiny_file(Tiny(name="hostile", experts=4)))
    assert "contains values that llama.cpp cannot compute with" in desk.panel_error(desk.header.target_panel)
    desk.until_ready()
    assert "contains values" in desk.error(), "the pair from before is back; the notice is still shown"
    assert chip_text(desk.header.target).startswith("target")
    assert "hostile" not in str(desk.saved()["target"])
    desk.load(windows.pair[0], ctx_size=512)
    assert desk.error() == "", "another pair has been loaded"
    desk.ask("after")
    assert len(desk.items()) == 4 and desk.tokens() == 24


# ------------------------------------------------------------------------------------------ settings


def test_changes_act_at_the_next_answer_and_are_there_after_a_restart(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("one")
    desk.type_strategy("prompt-lookup:max_ngram_size=2")
    sampling = Sampling(temperature=0.7, top_k=9, seed=5)
    desk.header.sampling_panel.options_changed.emit(AnswerOptions(sampling, 11, ("@@",)))
    desk.ask("two")
    for _ in range(2):
        header = desk.trace.header if desk.trace else None
        assert header is not None
        assert (header.strategy, header.sampling, header.max_tokens, header.stop, header.seed) == (
            "prompt-lookup:max_ngram_size=2", sampling, 11, ("@@",), 5,
        )  # fmt: skip
        assert chip_text(desk.header.strategy).startswith("prompt-lookup:max_ngram_size=2")
        assert chip_text(desk.header.sampling).startswith("temperature 0.7")
        windows.close(desk)
        desk = windows.open()
        desk.ask("three")


def test_a_wrong_spec_is_told_where_it_was_typed_and_is_not_used(windows: Windows) -> None:
    desk = windows.open()
    before = desk.saved()["strategy"]
    desk.type_strategy("draft-simple:n_max=0")
    assert "n_max" in desk.header.strategy_panel.text.error.text()
    assert desk.saved()["strategy"] == before
    desk.type_strategy("draft-simple:verify=greedy")
    desk.header.sampling_panel.options_changed.emit(AnswerOptions(Sampling(temperature=1.0), 24))
    assert doubted(desk.header.strategy) and desk.panel_error(desk.header.strategy_panel)
    desk.type("hello")
    desk.until(desk.error)
    assert "greedy" in desk.error() and desk.page.prompt.text() == "hello"


def test_wrong_settings_in_the_file_are_named(windows: Windows) -> None:
    windows.settings()
    windows.paths.settings.write_text('{"strategy": "magic", "max_tokens": -1, "text_scale": "huge"}')
    desk = windows.open(ready=False)
    assert all(word in desk.error() for word in ("strategy", "max_tokens", "text_scale"))
    assert desk.window.settings.now.strategy == "draft-simple:n_max=4"
    desk.until(lambda: desk.session.pair)  # the bundled one


def test_the_next_window_shows_the_same_chat(windows: Windows) -> None:
    desk = windows.open(max_tokens=60)
    desk.system_prompt().set_text("Be brief.")
    desk.ask("one")
    desk.ask("two")
    texts, fates, chat_id = desk.texts(), desk.fates(), desk.controller.shown.id
    notes, statistics = desk.notes(), desk.page.instruments.answer.statistics
    desk.page.toggle_sidebar()
    desk.page.legend.drafts_shown.click()
    windows.close(desk)
    again = windows.open()
    assert again.controller.shown.id == chat_id
    assert again.texts() == texts == ["Be brief.", "one", texts[2], "two", texts[4]]
    assert again.fates() == fates and {"accepted", "rejected"} <= {token[1] for token in fates[0]}
    assert again.notes() == notes
    assert again.page.instruments.answer.statistics == statistics
    assert again.system_prompt().text() == "Be brief."
    assert not again.page.chats.isVisible() and not again.page.transcript.drafts_shown
    again.ask("three")
    trace = again.trace
    assert trace is not None and all(word in trace.header.prompt for word in ("Be brief.", "one", "two"))


def files_open_in(folder: Path) -> list[str]:
    return [file.path for file in psutil.Process().open_files() if Path(file.path).is_relative_to(folder)]


def test_an_answer_cut_off_by_closing_comes_back_as_far_as_it_came(windows: Windows) -> None:
    desk = windows.open(max_tokens=900, strategy="none")
    desk.type("go")
    desk.until_streaming(20)
    shown = desk.fates()[0]
    assert files_open_in(desk.paths.chats)
    windows.close(desk)
    assert not files_open_in(desk.paths.chats)
    again = windows.open()
    assert again.fates()[0][: len(shown)] == shown
    assert again.notes() == ["The answer was cut off."]


# ------------------------------------------------------------------------------------------- the rest


def test_the_demo_is_sent_as_soon_as_the_models_are_there(windows: Windows) -> None:
    desk = windows.open(ready=False)
    desk.window.shown_first.connect(desk.window.start_demo)
    desk.answered()
    assert desk.texts()[0].startswith("Write a small Python function") and desk.tokens() == 24


def by_key(window: MainWindow) -> dict[str, QAction]:
    """The actions of a window by their keys."""
    return {keys.toString(): action for action in window.actions() for keys in action.shortcuts()}


def test_the_keyboard_reaches_every_place(windows: Windows) -> None:
    desk = windows.open()
    window = desk.window

    def shortcut(text: str) -> None:
        by_key(window)[text].trigger()

    desk.ask("hello")
    shortcut("Ctrl+,")
    assert window.settings_page.isVisible()
    named(window.rail, "Chat", IconButton).click()
    assert desk.page.isVisible()
    shortcut("Ctrl+B")
    assert not desk.page.chats.isVisible()
    shortcut("Ctrl+I")
    assert not desk.page.instruments.isVisible()
    shortcut("Ctrl+F")
    assert desk.page.transcript.find_bar.isVisible()
    scale = window.appearance.theme.scale
    shortcut("Ctrl++")
    assert window.appearance.theme.scale == pytest.approx(scale + 0.1)
    shortcut("Ctrl+0")
    shortcut("Ctrl+R")
    desk.answered()
    shortcut("Ctrl+N")
    assert desk.items() == []
    desk.press(Qt.Key.Key_Up)
    assert desk.page.prompt.text() == ""


def test_every_place_opens_by_its_button_and_by_its_keys(windows: Windows) -> None:
    window = windows.open().window
    keys = by_key(window)
    buttons = {button.toolTip(): button for button in window.rail.findChildren(QAbstractButton)}
    shortcuts = [f" ({place.shortcut})" if place.shortcut else "" for place in window.places]
    titles = [place.title + shortcut for place, shortcut in zip(window.places, shortcuts, strict=True)]
    assert list(buttons) == [*titles, "Help (F1)"]
    for place, button in zip(window.places, list(buttons.values())[:-1], strict=True):
        button.click()
        assert place.widget.isVisible() and button.isChecked()
        if place.shortcut:
            window.go("chat")
            keys[place.shortcut].trigger()
            assert place.widget.isVisible() and button.isChecked()


def test_fields_leave_the_keys_of_the_places_alone(windows: Windows) -> None:
    class Greedy(QLineEdit):
        """Takes every key as its own, as fields do with Ctrl+E where that means the end of the line."""

        @override
        def event(self, event: QEvent) -> bool:
            if event.type() == QEvent.Type.ShortcutOverride:
                event.accept()
                return True
            return super().event(event)

    window = windows.open().window
    field = Greedy(window)
    field.show()
    field.setFocus()
    for key, taken in ((Qt.Key.Key_E, False), (Qt.Key.Key_K, False), (Qt.Key.Key_A, True)):
        asked = QKeyEvent(QEvent.Type.ShortcutOverride, key, Qt.KeyboardModifier.ControlModifier)
        asked.ignore()
        QApplication.sendEvent(field, asked)
        assert asked.isAccepted() is taken


def test_keys_of_the_chat_do_nothing_unseen(windows: Windows) -> None:
    desk = windows.open()
    window = desk.window
    keys = by_key(window)
    window.go("models")
    for key in ("Ctrl+R", "Ctrl+F", "Ctrl+B", "Ctrl+I"):
        assert not keys[key].isEnabled()
    keys["Ctrl+N"].trigger()
    assert desk.page.isVisible() and keys["Ctrl+F"].isEnabled()
    window.go("settings")
    keys["Ctrl+L"].trigger()
    assert desk.page.isVisible()


def running_threads() -> list[QThread]:
    """The threads of Qt that run."""
    threads = [each for each in gc.get_objects() if issubclass(type(each), QThread)]
    return [thread for thread in threads if isValid(thread) and thread.isRunning()]


def test_closing_leaves_nothing_behind(windows: Windows) -> None:
    threads = set(threading.enumerate())
    desk = windows.open(max_tokens=900, strategy="none")
    desk.type("go")
    desk.until_streaming()
    assert "engine" in {thread.name for thread in set(threading.enumerate()) - threads}
    timers = desk.window.findChildren(QTimer)
    assert timers
    windows.close(desk)
    assert running_threads() == []
    # Python keeps a dummy thread for every Qt thread that waited for a Python thread.
    left = [thread for thread in set(threading.enumerate()) - threads if not thread.name.startswith("Dummy-")]
    assert left == []
    assert QApplication.topLevelWidgets() == []


def test_no_frame_shows_half_a_layout(windows: Windows, tmp_path: Path) -> None:
    class Frames(QObject):
        """Notes where the figures stand below the cards whenever the window is painted."""

        def __init__(self, figures: QWidget) -> None:
            super().__init__()
            self.figures = figures
            self.seen: list[int] = []

        @override
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if event.type() == QEvent.Type.Paint:
                self.seen.append(self.figures.y())
            return False

    rounds = [make_round(0, (b"a",), b"b"), make_round(1, (b"a",) * 16, b"b", position=2)]
    write_trace(tmp_path / "two.jsonl", make_trace(rounds))
    desk = windows.open(ready=False)
    desk.window.resize(1280, 1000)
    desk.open_trace(tmp_path / "two.jsonl")
    desk.window.go("inspector")
    answer = desk.window.inspection.answer
    assert answer is not None
    frames = Frames(desk.place("inspector").shape)
    desk.until_laid_out()
    desk.window.installEventFilter(frames)
    for index in (0, 1):
        before = frames.figures.y()
        answer.pin(index)
        desk.until(lambda before=before: frames.figures.y() != before)  # type: ignore[misc]
        desk.until_laid_out()
        assert set(frames.seen) == {frames.figures.y()}
        frames.seen.clear()
