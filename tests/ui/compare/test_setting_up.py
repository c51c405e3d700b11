"""What the Compare place measures: lanes, prompts, amounts, and where a set-up cannot run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QComboBox, QWidget

from app.base import numbers
from app.base.paths import resource_folder
from app.cli.measure.bench import parse_bench
from app.engine.types import ModelOptions
from app.lab.experiment import Lane, Pair, Prompt
from app.lab.quants import usual_strategy
from app.lab.runs.record import RunRecord
from app.lab.suites import Suite, built_in
from app.ui.compare.setup import Amount, Source, first_setup
from app.ui.state.engine_session import Activity
from app.ui.state.lab_work import Stage
from app.ui.theme.style import chosen, style_sheet
from app.ui.widgets.field import NumberField
from app.ui.widgets.icons import IconButton
from app.ui.widgets.labels import ElidedButton
from tests.ui.compare.measuring import measured, opened, reopened
from tests.ui.named import named, words_in
from tests.ui.windows import Windows


def test_an_amount_is_typed_without_being_rewritten(windows: Windows) -> None:
    place = opened(windows.open(), tokens=256)
    field = place.head.prompts_panel.amount.field("max_tokens")
    assert isinstance(field, NumberField)
    box = field.control
    box.lineEdit().setCursorPosition(0)
    QTest.keyClicks(box.lineEdit(), "10")
    QTest.keyClick(box.lineEdit(), Qt.Key.Key_Return)
    assert box.lineEdit().text() == "10256" and place.chips.setup.amount.max_tokens == 10256


def test_how_long_it_takes_stands_before_run(windows: Windows) -> None:
    place = opened(windows.open(), tokens=16, repeats=2)
    before = place.strip.text
    assert " cold runs of up to 16 tokens, one at a time" in before, "nothing was answered yet"
    place.chat.engine.pace = 0.5  # as after an answer in the chat
    place.chips.show_setup()
    runs = (len(place.chips.setup.lanes) + 1) * len(place.chips.setup.prompts) * 2
    assert f", at most about {numbers.duration(runs * 16 * 0.5)}, one at a time" in place.strip.text
    experiment = place.chips.experiment()
    job = experiment.jobs()[0]
    run = RunRecord.of_failed(experiment, job, "")
    run = msgspec.structs.replace(run, n_tokens=10, seconds=30.0, prompt_seconds=10.0)
    place.chips.learn(experiment, [run])
    assert f" tokens, about {numbers.duration(runs * 40.0)} (" in place.head.run.toolTip()


def test_built_in_prompts_have_their_template_again_after_a_plain_file(
    windows: Windows, tmp_path: Path
) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("Once upon\n")
    place = opened(windows.open(), tokens=16)
    panel = place.head.prompts_panel
    panel.choose = lambda _parent: str(plain)
    panel.source.picked.emit(Source.FILE)
    panel.open.click()
    assert not place.chips.setup.chat and not panel.chat.isChecked()
    panel.source.picked.emit(Source.SUITE)
    assert place.chips.setup.chat and panel.chat.isChecked()
    assert "up to 16 tokens" in words_in(panel)


def test_every_turn_of_a_published_conversation_is_measured(windows: Windows, tmp_path: Path) -> None:
    questions = tmp_path / "question.jsonl"
    questions.write_text('{"question_id": 81, "category": "qa", "turns": ["abc", "more"]}')
    desk = windows.open()
    place = opened(desk, tokens=4, repeats=1)
    panel = place.head.prompts_panel
    panel.choose = lambda _parent: str(questions)
    panel.source.picked.emit(Source.FILE)
    panel.open.click()
    assert "sent with the conversation before it" in words_in(panel) and "2 of 2 prompts used" in words_in(
        panel
    )
    report = measured(desk, place)
    assert {(run.prompt_index, run.turn) for run in report.runs} == {(0, 1), (1, 2)}
    assert not any(run.failure for run in report.runs)
    assert named(place, "Prompt that the lanes show", QComboBox).itemText(1) == "2 · qa · turn 2 · more"


def test_lanes_and_prompts_are_there_again_after_a_restart(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, tokens=24, repeats=4, prompt="xyzxyz")
    place.head.lanes_panel.strategy.text.typed.emit("draft-simple:n_max=2")
    before = place.chips.setup
    desk, again = reopened(windows, desk)
    assert again.chips.setup == before
    assert again.head.prompts_panel.own.toPlainText() == "xyzxyz"
    assert "draft-simple:n_max=2" in [lane.strategy for lane in again.chips.setup.lanes]


@pytest.mark.parametrize("damage", [b"rubbish", b'{"version": 99}', b'{"suite": "general", "lanes": []}'])
def test_a_damaged_set_up_is_set_aside_and_said(windows: Windows, damage: bytes) -> None:
    desk = windows.open()
    place = opened(desk, prompt="xyzxyz")
    folder = place.earlier.journals.folder
    windows.close(desk)
    (folder / "setup.json").write_bytes(damage)
    desk = windows.open()
    desk.window.go("compare")
    again = desk.place("compare")
    assert again is not None
    assert again.chips.setup.source is Source.SUITE
    assert "The set-up of Compare could not be read" in again.notice.message
    assert [path.read_bytes() for path in folder.glob("setup.json.*")] == [damage]


def test_the_copied_command_has_the_context_that_is_there(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    desk.until_ready()
    assert desk.session.pair is not None
    place.chips.show_setup()
    copy = next(
        widget
        for widget in place.head.lanes_panel.findChildren(QWidget)
        if widget.toolTip() == "Copy the llama.cpp command"
    )
    assert isinstance(copy, QAbstractButton)
    copy.click()
    assert f"--ctx-size {desk.session.pair.target.n_ctx} " in QGuiApplication.clipboard().text()


def test_a_pair_being_loaded_does_not_have_the_name_of_the_pair_before(
    windows: Windows, pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    target = tmp_path / "other.gguf"
    target.write_bytes(pair_files[0].read_bytes())
    desk = windows.open()
    place = opened(desk)
    desk.until_ready()
    before = place.head.pair.text_shown(1000)[0]
    desk.header.target_panel.applied.emit(ModelOptions(str(target)))
    assert desk.session.activity is Activity.LOADING
    assert place.head.pair.text_shown(1000)[0] == "other.gguf" != before
    desk.until_ready()
    assert place.head.pair.text_shown(1000)[0] == before, "both files have the same name in their metadata"


def test_a_pair_that_cannot_be_loaded_says_so_and_the_place_stays_usable(
    windows: Windows, tmp_path: Path
) -> None:
    desk = windows.open()
    place = opened(desk)
    real = place.chat.pair()
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF rubbish")
    object.__setattr__(place.chat, "pair", lambda: Pair(type(real.target)(str(broken)), real.draft))
    place.run()
    desk.until(lambda: place.works.session.stage is Stage.FAILED)
    assert place.notice.isVisible()
    assert place.head.run.isVisible()
    desk.until_ready()


def test_a_set_up_that_cannot_run_says_why(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk, prompt="  ")
    place.run()
    assert not place.works.session.at_work
    assert place.notice.message == "There is no prompt."
    place.head.prompts_panel.own.setPlainText("abc")
    alone = Lane("draft-simple", pair=Pair(place.chat.pair().target))
    place.head.lanes_panel.changed.emit(dataclasses.replace(place.chips.setup, lanes=(alone,)))
    place.run()
    assert "needs a draft" in place.notice.message


def test_while_the_chat_answers_nothing_is_measured(windows: Windows) -> None:
    desk = windows.open(max_tokens=900)
    place = opened(desk)
    desk.window.go("chat")
    desk.type("abc")
    desk.until_streaming()
    place.run()
    assert "still being answered" in place.notice.message
    assert not place.works.session.at_work
    desk.controller.stop()
    desk.until_ready()


def test_lanes_are_added_labelled_and_removed(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    panel = place.head.lanes_panel
    panel.add.click()
    assert len(place.chips.setup.lanes) == 4
    panel.label.setText("mine")
    panel.label.textEdited.emit("mine")
    assert place.chips.setup.lanes[3].name == "mine"
    panel.strategy.text.typed.emit("draft-simple:n_max=2")
    assert place.chips.setup.lanes[3] == Lane("draft-simple:n_max=2", "mine")
    for _ in range(5):
        panel.add.click()
    assert len(place.chips.setup.lanes) == 7  # eight with the baseline
    assert not panel.add.isEnabled()
    named(panel, "Remove prompt-lookup", IconButton).click()
    assert place.chips.setup.lanes[0].strategy != "prompt-lookup"
    assert len(place.outcome.stage.lanes.cards) == 7
    assert len({lane.strategy for lane in place.chips.setup.lanes}) == 6


def test_rows_of_lanes_follow_the_theme(windows: Windows) -> None:
    desk = windows.open()
    panel = opened(desk).head.lanes_panel
    row = named(panel, "prompt-lookup", ElidedButton)
    theme = desk.window.appearance.theme
    assert row.property("kind") == "row" and row.isChecked()
    for mode in ("dark", "light"):
        theme.set_mode(mode)
        look = f'QPushButton[kind="row"]:checked {{ background: {chosen(theme.palette)}; }}'
        assert look in style_sheet(theme, resource_folder() / "icons")


def test_the_first_lanes_draft_with_what_is_loaded() -> None:
    suite = built_in(resource_folder())[0]
    head = first_setup(suite, "draft-eagle3")
    assert [lane.strategy for lane in head.lanes][1:] == [
        "draft-eagle3:n_max=4",
        "prompt-lookup+draft-eagle3:n_max=4",
    ]
    assert all("draft-" not in lane.strategy for lane in first_setup(suite, None).lanes)
    kinds = {"eagle3": "draft-eagle3:length=auto", "llama": "draft-simple:length=auto"}
    assert {draft: usual_strategy(draft) for draft in kinds} == kinds
    assert usual_strategy(None) == "prompt-lookup:length=auto"


def test_prompts_are_taken_by_category() -> None:
    suite = next(suite for suite in built_in(resource_folder()) if suite.name == "bundled")
    setup = first_setup(suite, "draft-simple")
    assert len(setup.prompts) == len(suite.categories)
    assert {prompt.category for prompt in setup.prompts} == set(suite.categories)
    code = dataclasses.replace(setup, categories=("code",), amount=Amount(1, 0))
    assert {prompt.category for prompt in code.prompts} == {"code"}
    assert len(code.prompts) == sum(prompt.category == "code" for prompt in suite.prompts)
    assert not dataclasses.replace(setup, source=Source.FILE).prompts
    none = dataclasses.replace(setup, source=Source.FILE, file=Suite("a", "a", ()))
    assert none.prompts == ()
    talk = Prompt("a", "qa"), Prompt("b", "qa", before=("a",)), Prompt("c", "qa")
    one = dataclasses.replace(setup, source=Source.FILE, file=Suite("a", "a", talk), amount=Amount(1, 1))
    assert one.prompts == talk[:2], "a conversation is taken whole"


def test_window_and_bench_ask_for_the_same_runs(windows: Windows) -> None:
    desk = windows.open()
    desk.window.go("compare")
    place = desk.place("compare")
    assert place is not None
    real = place.chat.pair()
    assert real.draft is not None
    lanes = [lane.strategy for lane in place.chips.setup.lanes]
    suites = place.head.prompts_panel.suite
    for at in range(suites.count()):
        suites.activated.emit(at)
        suite = place.chips.setup.suite
        assert suite.title == suites.itemText(at)
        place.head.prompts_panel.amount.field("per_category").set_value(0)
        place.head.prompts_panel.amount.changed.emit()
        shown = place.chips.experiment()
        arguments = (
            "--target", real.target.path, "--draft", real.draft.path, "--suite", suite.name,
            "--repeat", str(shown.repeats), *[word for lane in lanes for word in ("--strategy", lane)],
        )  # fmt: skip
        asked = parse_bench(list(arguments)).experiment
        seed = shown.sampling.seed
        asked = msgspec.structs.replace(asked, sampling=dataclasses.replace(asked.sampling, seed=seed))
        assert shown.max_tokens == suite.max_tokens
        for field in (field.name for field in msgspec.structs.fields(shown) if field.name != "pair"):
            assert getattr(shown, field) == getattr(asked, field), field
    place.head.prompts_panel.amount.field("max_tokens").set_value(33)
    place.head.prompts_panel.amount.changed.emit()
    assert place.chips.experiment().max_tokens == 33


def test_a_purpose_is_compared_with_the_strategy_in_use(windows: Windows) -> None:
    desk = windows.open(strategy="draft-simple:n_max=2")
    desk.qtbot.mouseClick(desk.header.strategy, Qt.MouseButton.LeftButton)
    purpose = desk.header.strategy_panel.purpose
    purpose.choice.setCurrentText("Structured output")
    proposed = purpose.use.text().removeprefix("Use ")
    desk.qtbot.mouseClick(purpose.compare, Qt.MouseButton.LeftButton)
    place = desk.place("compare")
    assert place.isVisible() and not desk.header.strategy_panel.isVisible()
    lanes = [lane.strategy for lane in place.chips.setup.lanes]
    assert lanes == ["draft-simple:n_max=2", proposed]
    assert [lane.strategy for lane in place.chips.experiment().lanes] == ["none", *lanes]
    assert place.head.run.isEnabled() and place.head.run.hasFocus()
    assert desk.window.settings.now.strategy == "draft-simple:n_max=2", "only proposed"
    place.chips.set_setup(dataclasses.replace(place.chips.setup, lanes=place.chips.setup.lanes[:1]))
    desk.window.go("chat")
    desk.window.go("compare")
    assert len(place.chips.setup.lanes) == 1, "what is changed here afterwards stays"


def test_without_drafting_today_only_the_proposal_is_compared(windows: Windows) -> None:
    desk = windows.open(strategy="none")
    desk.window.chat_side.compare("suffix")
    assert [lane.strategy for lane in desk.place("compare").chips.setup.lanes] == ["suffix"]


def test_no_button_of_the_head_is_cut_in_the_smallest_window(windows: Windows) -> None:
    desk = windows.open()
    place = opened(desk)
    buttons = place.head.buttons
    desk.window.resize(1600, 900)
    desk.until(lambda: place.head.width() > 1500)
    wide = [button.width() for button in buttons]
    desk.until_laid_out()
    high = place.head.height()
    desk.window.resize(desk.window.minimumSize())
    desk.until(lambda: place.head.width() < 800)
    desk.until(lambda: all(button.width() >= button.sizeHint().width() for button in buttons))
    assert place.head.run.geometry().right() < place.head.width()
    desk.until_laid_out()
    assert place.head.height() == high, "they are beside the chips"
    desk.window.resize(1600, 900)
    desk.until(lambda: [button.width() for button in buttons] == wide)
