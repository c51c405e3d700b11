"""Notes, the editor, actions, the menu, the empty chat."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QFontMetricsF, QGuiApplication
from PySide6.QtWidgets import QMenu, QPushButton
from pytestqt.qtbot import QtBot

from app.saved.chats.conversation import Question
from app.ui.state.answer import AnswerModel, Note
from app.ui.theme import Theme
from app.ui.transcript import AnswerTurn, AnswerView, SystemTurn, TranscriptView, UserTurn
from app.ui.transcript.controls import EmptyState, NoteCard, TurnActions, VersionBar
from app.ui.transcript.text.spans import Turn
from tests.ui.named import words_in
from tests.ui.traces import drawing, make_round, simulate
from tests.ui.transcript.places import add, answer, note, open_editor, point, turn

WORDS = "The windows overlap, so every value is seen, and the loop costs what it does, and no more.\n"
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def chat(view: TranscriptView) -> TranscriptView:
    view.set_turns(
        [SystemTurn("Be brief."), UserTurn("Rewrite mean."), AnswerTurn(AnswerModel(drawing()), "demo 32M")]
    )
    view.repaint()
    return view


def actions(view: TranscriptView) -> TurnActions:
    return view.findChild(TurnActions)


def point_at(qtbot: QtBot, view: TranscriptView, kind: str) -> None:
    top = view.stack.top(view.stack.index_of(turn(view, kind))) - view.scroller.top
    qtbot.mouseMove(view.viewport(), QPoint(view.column[0] + 200, top + 9))
    qtbot.mouseMove(view.viewport(), QPoint(view.column[0] + 200, top + 10))


# ------------------------------------------------------------------------------------------- notes


def notes(view: TranscriptView) -> list[NoteCard]:
    return [card for card in view.findChildren(NoteCard) if not card.isHidden()]


def test_a_note_stands_below_its_turn_and_moves_with_it(chat: TranscriptView) -> None:
    note(chat, Note("The prompt is too long.", "Shorten it."))
    (card,) = notes(chat)
    assert card.message.text() == "The prompt is too long."
    assert card.hint.text() == "Shorten it."
    assert not card.action.isVisible()
    assert point(chat, "mean.", "u").y() < point(chat, "arithmetic").y() < card.y()
    chat.resize(900, 200)
    before = card.y()
    bar = chat.verticalScrollBar()
    bar.setValue(bar.value() - 50)
    assert card.y() == before + 50
    note(chat, None)
    assert notes(chat) == []


def test_a_view_of_whole_lines_shows_a_note_whole_or_not_at_all(qtbot: QtBot, theme: Theme) -> None:
    view = AnswerView(theme)
    qtbot.addWidget(view)
    view.resize(700, 600)
    view.show()
    view.set_turns([AnswerTurn(AnswerModel(drawing()), "")])
    note(view, Note("The answer reached its length limit.", "The limit is set in the sampling panel."))
    qtbot.waitUntil(lambda: len(notes(view)) == 1)
    (card,) = notes(view)
    view.resize(700, card.geometry().bottom() - 4)
    bar = view.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0 and notes(view) == [card])
    bar.setValue(0)
    assert notes(view) == []
    bar.setValue(bar.maximum())
    assert notes(view) == [card]


def test_the_button_of_a_note_is_told(qtbot: QtBot, chat: TranscriptView) -> None:
    note(chat, Note("The engine is gone.", "Nothing is lost.", "Start the engine again"))
    (card,) = notes(chat)
    with qtbot.waitSignal(chat.note_action) as told:
        qtbot.mouseClick(card.action, LEFT)
    assert told.args == [turn(chat, "a")]


def test_a_long_note_wraps_in_a_narrow_window(chat: TranscriptView) -> None:
    note(chat, Note("A message of many words that does not fit into one line. " * 3, "Hint."))
    wide = notes(chat)[0].height()
    chat.resize(300, 600)
    assert notes(chat)[0].height() > wide


@pytest.mark.parametrize("framed", [None, 3, -1])
def test_a_note_covers_no_line_after_the_window_shrinks(view: TranscriptView, framed: int | None) -> None:
    """In the Inspector a round is framed, and scrolled into view."""
    view.resize(1200, 800)
    view.set_turns([UserTurn("Write."), AnswerTurn(AnswerModel(simulate(WORDS * 30, seed=1)), "demo")])
    note(view, Note("The answer reached its length limit.", "The limit is set in the sampling panel."))
    if framed is not None:
        view.frame_round(turn(view, "a"), range(len(answer(view).answer.rounds))[framed])
    for width, height in ((700, 500), (420, 300), (1200, 800), (300, 700), (420, 300)):
        view.resize(width, height)
        view.repaint()
        (card,) = notes(view)
        index = view.stack.index_of(turn(view, "a"))
        text_ends = view.stack.top(index) + answer(view).body_bottom - view.scroller.top
        assert card.y() - text_ends in range(4, 40)
        assert view.verticalScrollBar().maximum() == max(0, view.stack.height - view.viewport().height())


def test_notes_are_plain_text(chat: TranscriptView) -> None:
    note(chat, Note("<b>not bold</b>"))
    assert notes(chat)[0].message.textFormat() == Qt.TextFormat.PlainText


# ------------------------------------------------------------------------------------------ editor


def test_double_click_edits_and_enter_sends(qtbot: QtBot, chat: TranscriptView) -> None:
    qtbot.mouseDClick(chat.viewport(), LEFT, Qt.KeyboardModifier.NoModifier, point(chat, "mean", "u"))
    field = open_editor(chat)
    assert field is not None
    assert field.field.toPlainText() == "Rewrite mean."
    assert chat.focusWidget() is field.field
    qtbot.keyClicks(field.field, " Now")
    qtbot.keyClick(field.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(field.field, "please")
    with qtbot.waitSignal(chat.edit_submitted) as told:
        qtbot.keyClick(field.field, Qt.Key.Key_Return)
    assert told.args == [turn(chat, "u"), Question("Rewrite mean. Now\nplease")]
    assert open_editor(chat) is None
    assert chat.text_of(turn(chat, "u")) == "Rewrite mean."  # the owner decides what happens


def test_escape_leaves_everything_as_it_was(qtbot: QtBot, chat: TranscriptView) -> None:
    height = chat.stack.height
    chat.edit(turn(chat, "u"))
    assert chat.stack.height > height
    told: list[object] = []
    chat.edit_submitted.connect(lambda *what: told.append(what))
    qtbot.keyClick(open_editor(chat).field, Qt.Key.Key_Escape)
    assert (open_editor(chat), told, chat.stack.height) == (None, [], height)
    assert chat.hasFocus()


def test_an_empty_message_is_not_sent(qtbot: QtBot, chat: TranscriptView) -> None:
    chat.edit(turn(chat, "u"))
    told: list[object] = []
    chat.edit_submitted.connect(lambda *what: told.append(what))
    open_editor(chat).field.setPlainText("  \n")
    qtbot.keyClick(open_editor(chat).field, Qt.Key.Key_Return)
    assert told == [] and open_editor(chat) is not None


def test_the_editor_grows_with_its_text(qtbot: QtBot, chat: TranscriptView) -> None:
    chat.edit(turn(chat, "u"))
    before = open_editor(chat).height()
    below = chat.stack.top(2)
    open_editor(chat).field.setPlainText("a\nb\nc\nd")
    assert open_editor(chat).height() > before
    assert chat.stack.top(2) - below == open_editor(chat).height() - before
    open_editor(chat).field.setPlainText("line\n" * 100)
    assert open_editor(chat).height() < 400


def test_only_user_messages_are_edited_and_not_while_an_answer_is_written(chat: TranscriptView) -> None:
    chat.edit(turn(chat, "s"))
    assert open_editor(chat) is None
    chat.edit(turn(chat, "a"))
    assert open_editor(chat) is None
    chat.add_turn(AnswerTurn(AnswerModel(live=True), "m"))
    chat.edit(turn(chat, "u"))
    assert open_editor(chat) is None


# ------------------------------------------------------------------------------- actions and menu


def test_actions_follow_the_pointer(qtbot: QtBot, chat: TranscriptView) -> None:
    assert not actions(chat).isVisible()
    point_at(qtbot, chat, "u")
    shown = actions(chat)
    assert shown.isVisible() and shown.turn is turn(chat, "u")
    assert shown.edit.isVisible() and not shown.regenerate.isVisible()
    point_at(qtbot, chat, "a")
    assert shown.turn is turn(chat, "a")
    assert shown.regenerate.isVisible() and not shown.edit.isVisible()
    point_at(qtbot, chat, "s")
    assert not shown.edit.isVisible() and not shown.regenerate.isVisible()
    top = chat.stack.top(0) - chat.scroller.top
    assert abs(shown.geometry().center().y() - top - 9) < 10


def test_actions_act(qtbot: QtBot, chat: TranscriptView) -> None:
    point_at(qtbot, chat, "a")
    qtbot.mouseClick(actions(chat).copy, LEFT)
    assert QGuiApplication.clipboard().text() == drawing().text
    with qtbot.waitSignal(chat.regenerate_requested) as told:
        qtbot.mouseClick(actions(chat).regenerate, LEFT)
    assert told.args == [turn(chat, "a")]
    point_at(qtbot, chat, "u")
    qtbot.mouseClick(actions(chat).edit, LEFT)
    assert open_editor(chat) is not None


def test_while_an_answer_is_written_it_cannot_be_regenerated(qtbot: QtBot, chat: TranscriptView) -> None:
    chat.add_turn(AnswerTurn(AnswerModel(live=True), "m"))
    add(chat, [make_round(0, [], "x")])
    point_at(qtbot, chat, "a")
    assert actions(chat).copy.isVisible() and not actions(chat).regenerate.isVisible()


def menu_of(view: TranscriptView, where: QPoint) -> dict[str, bool]:
    menu = view.make_menu(where)
    found = {action.text(): action.isEnabled() for action in menu.actions() if action.text()}
    menu.close()
    menu.deleteLater()
    return found


def test_the_menu_offers_what_can_be_done(chat: TranscriptView) -> None:
    answer = menu_of(chat, point(chat, "adds"))
    assert answer == {
        "Copy": False, "Copy answer": True, "Select all": True, "Find…": True, "Regenerate": True,
    }  # fmt: skip
    chat.select_all()
    message = menu_of(chat, point(chat, "mean", "u"))
    assert message == {
        "Copy": True, "Copy message": True, "Select all": True, "Find…": True,
        "Edit and send again": True,
    }  # fmt: skip
    chat.add_turn(AnswerTurn(AnswerModel(live=True), "m"))
    assert menu_of(chat, point(chat, "mean", "u"))["Edit and send again"] is False


def menu_by_key(view: TranscriptView) -> list[str]:
    """The actions of the menu that the menu key opens."""
    middle = view.viewport().rect().center()
    asked = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, middle, view.mapToGlobal(middle))
    QGuiApplication.sendEvent(view, asked)
    (menu,) = [menu for menu in view.findChildren(QMenu) if menu.isVisible()]
    words = [action.text() for action in menu.actions()]
    menu.close()
    menu.setParent(None)
    return words


def test_the_menu_key_reaches_every_message(qtbot: QtBot, view: TranscriptView) -> None:
    turns: list[Turn] = []
    for _ in range(12):
        turns.append(UserTurn("Rewrite mean."))
        turns.append(AnswerTurn(AnswerModel(drawing()), "demo 32M"))
    view.set_turns(turns)
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_Home)
    assert "Edit and send again" in menu_by_key(view)
    qtbot.keyClick(view, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
    assert view.hover.token is not None
    assert "Regenerate" in menu_by_key(view)
    view.hover.clear()
    view.verticalScrollBar().setValue(view.stack.top(4))
    assert "Edit and send again" in menu_by_key(view)


@pytest.mark.parametrize("scale", [1.0, 1.6, 2.0])
def test_buttons_are_at_the_middle_of_their_label(view: TranscriptView, theme: Theme, scale: float) -> None:
    view.set_turns([AnswerTurn(AnswerModel(drawing()), "demo 32M", versions=2)])
    theme.set_scale(scale)
    bar, label = view.findChild(VersionBar), QFontMetricsF(view.stack.setting.styles.label).height()
    top = view.stack.top(0) - view.scroller.top
    assert abs(bar.y() + bar.height() / 2 - (top + label / 2)) <= 1


# -------------------------------------------------------------------------------------- empty chat


def test_an_empty_chat_offers_prompts(qtbot: QtBot, view: TranscriptView) -> None:
    view.set_suggestions({"Dates": "Write a date parser.", "Say & do": "Say this and do that."})
    empty = view.findChild(EmptyState)
    assert empty.isVisible()
    buttons = [button for button in view.findChildren(QPushButton) if button.isVisible()]
    assert [button.accessibleName() for button in buttons] == ["Dates", "Say & do"]
    with qtbot.waitSignal(view.suggestion_chosen) as told:
        qtbot.mouseClick(buttons[1], LEFT)
    assert told.args == ["Say & do"]
    view.add_turn(UserTurn("Hi"))
    assert not empty.isVisible()
    view.set_turns([])
    assert empty.isVisible()


def test_nothing_of_an_empty_chat_is_cut_in_a_low_window(view: TranscriptView) -> None:
    view.set_suggestions({"Dates": "Write a date parser."})
    view.offer_tour()
    empty = view.findChild(EmptyState)
    parts = [*empty.buttons, empty.tour, empty.line]
    for height in range(400, 60, -10):
        view.resize(160, height)
        assert empty.geometry().bottom() < view.height()
        shown = [part.isVisible() for part in parts]
        assert shown == sorted(shown), "prompts go first"
    assert not any(shown)


def test_other_words_for_an_empty_chat(view: TranscriptView) -> None:
    view.set_empty_words("No pair is loaded", "Choose a target and a draft above.")
    assert words_in(view).startswith("No pair is loaded\nChoose a target")


def test_everything_has_a_name_for_screen_readers(qtbot: QtBot, chat: TranscriptView) -> None:
    note(chat, Note("Broken.", "Mend it.", "Mend"))
    chat.edit(turn(chat, "u"))
    chat.open_find()
    assert chat.accessibleName() == "Chat"
    for button in chat.findChildren(QPushButton):
        assert button.accessibleName() or button.text()
    bar = chat.find_bar
    for widget in (bar.field, bar.before, bar.next, bar.close_button, open_editor(chat).field):
        assert widget.accessibleName()


def test_a_chat_with_many_notes_scrolls(chat: TranscriptView) -> None:
    turns: list[Turn] = []
    for _ in range(10):
        turns.append(UserTurn("Hi"))
        turns.append(AnswerTurn(AnswerModel(simulate("words " * 40), Note("Broken.", "", "Again")), "m"))
    chat.set_turns(turns)
    bar = chat.verticalScrollBar()
    while bar.value():
        bar.setValue(bar.value() - 150)
        below = [
            chat.stack.top(index) + item.note_top - chat.scroller.top
            for index, item in enumerate(chat.stack.items)
            if item.note is not None
        ]
        assert sorted(card.y() - 10 for card in notes(chat)) == below
