"""The list of chats: choose, search, rename, delete, undo; by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from PySide6.QtCore import QModelIndex, Qt, QTimer
from PySide6.QtWidgets import QLabel, QLineEdit, QListView, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from app.engine.errors import UserError
from app.saved.chats import ChatHead
from app.ui.chat import chat_list as module
from app.ui.chat.chat_list import ChatList
from app.ui.chat.chat_rows import ID, IS_OPEN, TIME
from app.ui.theme import Theme


def head(number: int, title: str, minutes: int = 0, damaged: str = "") -> ChatHead:
    stamp = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat(timespec="milliseconds")
    return ChatHead(f"{number:08x}", title, stamp, stamp, damaged=damaged)


HEADS = (
    head(1, "Haiku", 0),
    head(2, "Mean of a list", 5),
    head(3, "Could not be read", 90, damaged="This chat could not be read: it is damaged."),
)


class Found:
    """Stands for the store's search."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.heads: Sequence[ChatHead] = ()
        self.error: UserError | None = None

    def __call__(self, words: str) -> Sequence[ChatHead]:
        self.asked.append(words)
        if self.error is not None:
            raise self.error
        return self.heads


@pytest.fixture
def found() -> Found:
    return Found()


@pytest.fixture
def chats(qtbot: QtBot, theme: Theme, found: Found) -> ChatList:
    made = ChatList(theme, found)
    made.set_chats(HEADS)
    qtbot.addWidget(made)
    made.resize(260, 400)
    made.show()
    qtbot.waitExposed(made)
    return made


def view(chats: ChatList) -> QListView:
    found = chats.findChild(QListView)
    assert found is not None
    return found


def timer(chats: ChatList, milliseconds: int) -> QTimer:
    """The timer of the list that runs for so long."""
    return next(timer for timer in chats.findChildren(QTimer) if timer.interval() == milliseconds)


def index(chats: ChatList, row: int) -> QModelIndex:
    return view(chats).model().index(row, 0)


def titles(chats: ChatList) -> list[str]:
    model = view(chats).model()
    return [index(chats, row).data() for row in range(model.rowCount())]


def field(chats: ChatList) -> QLineEdit:
    return next(field for field in chats.findChildren(QLineEdit) if field.accessibleName() == "Search chats")


def click(qtbot: QtBot, chats: ChatList, row: int) -> None:
    place = view(chats).visualRect(index(chats, row)).center()
    qtbot.mouseClick(view(chats).viewport(), Qt.MouseButton.LeftButton, pos=place)


def texts(chats: ChatList) -> list[str]:
    return [label.text() for label in chats.findChildren(QLabel) if label.isVisible()]


def button(chats: ChatList, text: str) -> QPushButton:
    return next(button for button in chats.findChildren(QPushButton) if button.text() == text)


def select(chats: ChatList, row: int) -> None:
    view(chats).setCurrentIndex(index(chats, row))
    view(chats).setFocus()


def test_chats_stand_with_title_and_time(chats: ChatList) -> None:
    # Made now: the other heads are as old as the collection of the tests.
    chats.set_chats([head(1, "Haiku", 0), head(2, "Mean of a list", 5), HEADS[2]])
    assert titles(chats) == ["Haiku", "Mean of a list", "Could not be read"]
    assert [index(chats, row).data(TIME) for row in range(2)] == ["now", "5 min"]
    spoken = index(chats, 1).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "Mean of a list, 5 min"


def test_a_click_chooses(qtbot: QtBot, chats: ChatList) -> None:
    with qtbot.waitSignal(chats.chat_chosen) as told:
        click(qtbot, chats, 1)
    assert told.args == [HEADS[1].id]


def test_enter_chooses_and_arrows_only_move(qtbot: QtBot, chats: ChatList) -> None:
    select(chats, 0)
    with qtbot.assertNotEmitted(chats.chat_chosen):
        qtbot.keyClick(view(chats), Qt.Key.Key_Down)
    with qtbot.waitSignal(chats.chat_chosen) as told:
        qtbot.keyClick(view(chats), Qt.Key.Key_Return)
    assert told.args == [HEADS[1].id]


def test_the_open_chat_is_marked(chats: ChatList) -> None:
    before = view(chats).grab().toImage()
    chats.set_current(HEADS[1].id)
    assert [index(chats, row).data(IS_OPEN) for row in range(3)] == [False, True, False]
    assert view(chats).grab().toImage() != before
    chats.set_current("")
    assert not any(index(chats, row).data(IS_OPEN) for row in range(3))


def test_new_and_fold(qtbot: QtBot, chats: ChatList) -> None:
    with qtbot.waitSignal(chats.new_requested):
        qtbot.mouseClick(button(chats, "New chat"), Qt.MouseButton.LeftButton)
    fold = next(
        button
        for button in chats.findChildren(QToolButton)
        if button.accessibleName() == "Hide the list of chats"
    )
    with qtbot.waitSignal(chats.fold_requested):
        qtbot.mouseClick(fold, Qt.MouseButton.LeftButton)


def start_rename(qtbot: QtBot, chats: ChatList) -> QLineEdit:
    select(chats, 1)
    qtbot.keyClick(view(chats), Qt.Key.Key_F2)
    editors = view(chats).findChildren(QLineEdit)
    return next(editor for editor in editors if editor.accessibleName() == "Title of the chat")


def rename(qtbot: QtBot, chats: ChatList, title: str, key: Qt.Key) -> None:
    editor = start_rename(qtbot, chats)
    editor.selectAll()
    qtbot.keyClicks(editor, title)
    qtbot.keyClick(editor, key)


def test_f2_renames_in_place(qtbot: QtBot, chats: ChatList) -> None:
    with qtbot.waitSignal(chats.renamed) as told, qtbot.assertNotEmitted(chats.chat_chosen):
        rename(qtbot, chats, " Two  words ", Qt.Key.Key_Return)
    assert told.args == [HEADS[1].id, "Two words"]
    assert titles(chats)[1] == "Two words"


def test_renaming_outlives_what_happens_meanwhile(qtbot: QtBot, chats: ChatList) -> None:
    editor = start_rename(qtbot, chats)
    editor.setText("Halfway")
    timer(chats, module.TICK_MS).timeout.emit()
    chats.set_current(HEADS[1].id)
    chats.set_chats((head(9, "Newer"), *HEADS))
    assert editor.text() == "Halfway"
    assert editor.isVisible()
    with qtbot.waitSignal(chats.renamed) as told, qtbot.assertNotEmitted(chats.chat_chosen):
        qtbot.keyClick(editor, Qt.Key.Key_Return)
    assert told.args == [HEADS[1].id, "Halfway"]
    qtbot.waitUntil(lambda: titles(chats)[0] == "Newer")  # the rows that waited are shown now


@pytest.mark.parametrize(("title", "key"), [("Other", Qt.Key.Key_Escape), ("   ", Qt.Key.Key_Return)])
def test_a_rename_given_up_changes_nothing(qtbot: QtBot, chats: ChatList, title: str, key: Qt.Key) -> None:
    with qtbot.assertNotEmitted(chats.renamed):
        rename(qtbot, chats, title, key)
    assert titles(chats)[1] == "Mean of a list"


def test_a_double_click_renames(qtbot: QtBot, chats: ChatList) -> None:
    place = view(chats).visualRect(index(chats, 0)).center()
    qtbot.mouseClick(view(chats).viewport(), Qt.MouseButton.LeftButton, pos=place)
    qtbot.mouseDClick(view(chats).viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert view(chats).state() == QListView.State.EditingState


def test_a_damaged_chat_can_be_deleted_but_not_renamed(qtbot: QtBot, chats: ChatList) -> None:
    assert not index(chats, 2).flags() & Qt.ItemFlag.ItemIsEditable
    assert "damaged" in index(chats, 2).data(Qt.ItemDataRole.ToolTipRole)
    menu = chats.menu_for(index(chats, 2))
    qtbot.addWidget(menu)
    enabled = {action.text(): action.isEnabled() for action in menu.actions()}
    assert enabled == {"Open": True, "Rename": False, "Delete": True}
    with qtbot.waitSignal(chats.delete_requested) as told:
        next(action for action in menu.actions() if action.text() == "Delete").trigger()
    assert told.args == [HEADS[2].id]


def test_a_menu_acts_on_the_chat_that_it_was_opened_for(qtbot: QtBot, chats: ChatList) -> None:
    menu = chats.menu_for(index(chats, 0))
    qtbot.addWidget(menu)
    chats.set_chats([HEADS[1], HEADS[0], *HEADS[2:]])
    act = {action.text(): action.trigger for action in menu.actions()}
    with qtbot.waitSignal(chats.delete_requested) as told:
        act["Delete"]()
    assert told.args == [HEADS[0].id]
    act["Rename"]()
    assert view(chats).currentIndex().row() == 1 or view(chats).indexWidget(index(chats, 1)) is not None


def test_delete_asks_and_undo_brings_back(qtbot: QtBot, chats: ChatList) -> None:
    select(chats, 0)
    with qtbot.waitSignal(chats.delete_requested) as told:
        qtbot.keyClick(view(chats), Qt.Key.Key_Delete)
    assert told.args == [HEADS[0].id]
    chats.set_chats(HEADS[1:])
    chats.show_deleted("Haiku")
    assert "Deleted “Haiku”" in texts(chats)
    with qtbot.waitSignal(chats.undo_requested):
        qtbot.mouseClick(button(chats, "Undo"), Qt.MouseButton.LeftButton)
    assert "Deleted “Haiku”" not in texts(chats)


def test_ctrl_z_undoes_while_it_is_offered(qtbot: QtBot, chats: ChatList) -> None:
    select(chats, 0)
    with qtbot.assertNotEmitted(chats.undo_requested):
        qtbot.keyClick(view(chats), Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    chats.show_deleted("Haiku")
    with qtbot.waitSignal(chats.undo_requested):
        qtbot.keyClick(view(chats), Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)


def test_the_offer_to_undo_goes_away(qtbot: QtBot, chats: ChatList) -> None:
    timer(chats, module.UNDO_SECONDS * 1000).setInterval(1)
    chats.show_deleted("Haiku")
    qtbot.waitUntil(lambda: "Deleted “Haiku”" not in texts(chats))


def test_search_shows_what_was_found(qtbot: QtBot, chats: ChatList, found: Found) -> None:
    found.heads = HEADS[1:2]
    qtbot.keyClicks(field(chats), "mean")
    qtbot.waitUntil(lambda: titles(chats) == ["Mean of a list"])
    assert found.asked == ["mean"]  # once, when the typing paused
    qtbot.keyClick(field(chats), Qt.Key.Key_Down)
    assert view(chats).hasFocus()
    with qtbot.waitSignal(chats.chat_chosen) as told:
        qtbot.keyClick(view(chats), Qt.Key.Key_Return)
    assert told.args == [HEADS[1].id]
    qtbot.keyClick(field(chats), Qt.Key.Key_Escape)
    assert titles(chats) == [head.title for head in HEADS]
    assert field(chats).text() == ""


def test_a_search_without_a_find_says_so(qtbot: QtBot, chats: ChatList) -> None:
    qtbot.keyClicks(field(chats), "zzz")
    qtbot.waitUntil(lambda: "Nothing found for “zzz”." in texts(chats))
    assert not view(chats).isVisible()


def test_a_search_that_fails_says_why(qtbot: QtBot, chats: ChatList, found: Found) -> None:
    found.error = UserError("The chats cannot be read.", "Check the folder.")
    qtbot.keyClicks(field(chats), "a")
    qtbot.waitUntil(lambda: "The chats cannot be read. Check the folder." in texts(chats))


def test_a_search_goes_on_while_chats_change(qtbot: QtBot, chats: ChatList, found: Found) -> None:
    found.heads = HEADS[:1]
    qtbot.keyClicks(field(chats), "h")
    qtbot.waitUntil(lambda: titles(chats) == ["Haiku"])
    chats.set_chats((head(9, "Newer"), *HEADS))
    assert titles(chats) == ["Haiku"]


def test_an_empty_list_says_what_will_be_here(chats: ChatList) -> None:
    chats.set_chats(())
    assert module.EMPTY in texts(chats)


def test_the_chosen_row_stays_chosen_when_the_list_changes(chats: ChatList) -> None:
    select(chats, 1)
    chats.set_chats((head(9, "Newer"), *HEADS))
    assert view(chats).currentIndex().data(ID) == HEADS[1].id


def test_it_follows_the_theme(chats: ChatList, theme: Theme) -> None:
    light = view(chats).grab().toImage()
    row = view(chats).sizeHintForRow(0)
    theme.set_mode("dark")
    assert view(chats).grab().toImage() != light
    theme.set_scale(1.5)
    assert view(chats).sizeHintForRow(0) > row * 1.2


def test_no_timer_runs_while_it_is_hidden(chats: ChatList) -> None:
    tick = timer(chats, module.TICK_MS)
    assert tick.isActive()
    chats.hide()
    assert not tick.isActive()


def test_chats_of_one_title_are_told_apart(chats: ChatList) -> None:
    before = chats.grab().toImage()
    chats.set_chats(
        (head(4, "Haiku"), head(1, "Haiku", 5), head(2, "Mean of a list", 7), head(3, "Haiku", 9))
    )
    rows = chats.findChild(QListView).model()
    spoken = [rows.index(row, 0).data(Qt.ItemDataRole.AccessibleTextRole) for row in range(4)]
    assert [words.partition(",")[0] for words in spoken] == [
        "Haiku (3)",
        "Haiku (2)",
        "Mean of a list",
        "Haiku",
    ]
    assert rows.index(0, 0).data() == "Haiku", "the title to edit"
    assert rows.index(0, 0).data(Qt.ItemDataRole.ToolTipRole) == "Haiku (3)"
    assert chats.grab().toImage() != before
