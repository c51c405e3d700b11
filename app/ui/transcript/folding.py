"""Folds reasoning, automatically and at the reader's wish, and lines far from a filled gap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu

from app.ui.transcript.layout.answer_item import AnswerItem
from app.ui.transcript.layout.stack import BlockPlace, Stack
from app.ui.transcript.text.folds import TextFold

if TYPE_CHECKING:
    from app.ui.transcript.surface import Surface


class Folding:
    """Folds and unfolds text in the answers of a surface."""

    def __init__(self, view: Surface, stack: Stack) -> None:
        self._view = view
        self._stack = stack

    def toggle(self, place: BlockPlace) -> None:
        """Fold or unfold the text of a block, or below a fold line; that line keeps its place on the
        screen."""
        answer = self._stack.answer(place.item)
        fold = answer.fold_of(place.block) if answer is not None else None
        if answer is not None and fold is not None:
            self._view.hover.clear()
            self._set(place.item, answer, fold, not fold.folded)
            self._view.refresh()

    def toggle_seen(self) -> bool:
        """Fold or unfold the text pointed at, else the first on the screen; False where there is none."""
        top = self._view.scroller.top
        place = self._stack.first_fold(top, top + self._view.scroller.room)
        token = self._view.hover.token
        answer = self._stack.answer(token.item) if token is not None else None
        if token is not None and answer is not None:
            row = answer.block_of(token.span)
            place = BlockPlace(token.item, row) if answer.fold_of(row) is not None else None
        if place is not None:
            self.toggle(place)
        return place is not None

    def unfold(self, item: int, block: int) -> None:
        """Unfold the text of a block, so that something in it can be shown."""
        answer = self._stack.answer(item)
        fold = answer.fold_of(block) if answer is not None else None
        if answer is not None and fold is not None and fold.folded:
            self._set(item, answer, fold, folded=False)

    def toggle_drafts(self, item: int) -> None:
        """Show the struck drafts of an answer, or fold them; its label keeps its place on the screen."""
        answer, scroller = self._stack.answer(item), self._view.scroller
        if answer is not None:
            self._view.hover.clear()
            scroller.hold(item, -1)
            answer.fold_drafts(not answer.drafts.folded)
            self._stack.touch(item)
            scroller.resume()
            self._view.refresh()

    def _set(self, item: int, answer: AnswerItem, fold: TextFold, folded: bool) -> None:
        scroller = self._view.scroller
        scroller.hold(item, answer.row_of(fold))
        answer.set_folded(fold, folded)
        self._stack.touch(item)
        scroller.resume()

    def fold_over(self, answer: AnswerItem) -> bool:
        """Fold finished reasoning, and drafts where hardly any was accepted, except while the reader has
        scrolled up; True where that changed anything."""
        if not self._view.scroller.following or not answer.fold_over():
            return False
        answer.count()
        self._view.hover.clear()
        return True

    def offer(self, menu: QMenu, answer: AnswerItem, place: BlockPlace) -> None:
        """Add actions to the menu of an answer with reasoning: for the reasoning at the place, else for the
        first."""
        fold: TextFold = answer.fold_of(place.block) or next(iter(answer.folds.values()))
        there = BlockPlace(place.item, answer.row_of(fold))
        clipboard = QGuiApplication.clipboard()
        menu.addAction(
            "Copy answer without reasoning", lambda: clipboard.setText(answer.text_without_reasoning)
        )
        words = "Unfold reasoning" if fold.folded else "Fold reasoning"
        menu.addAction(words, lambda: self.toggle(there))

    def repaint_lines(self, item: int) -> None:
        """Repaint an answer's fold lines, whose numbers changed."""
        answer, viewport = self._stack.answer(item), self._view.viewport()
        if answer is None:
            return
        for fold in answer.folds.values():
            top = self._stack.block_top(item, answer.row_of(fold)) - self._view.scroller.top
            viewport.update(0, top, viewport.width(), self._stack.setting.styles.label_height)
