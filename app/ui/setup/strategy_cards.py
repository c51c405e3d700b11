"""The strategies in use, a card each in order of precedence with its settings; and the list of all
strategies, from which one is added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QModelIndex, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QLabel, QSizePolicy, QWidget

from app.engine.drafters.base import StrategyKind
from app.engine.drafters.foreign import ForeignKind
from app.engine.drafters.registry import KINDS
from app.engine.params import params_of
from app.engine.strategy import NONE, StrategyPart
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.buttons import RowButton
from app.ui.widgets.entry_list import EntryList, ListEntry
from app.ui.widgets.form import ParamForm
from app.ui.widgets.icons import IconButton, icon
from app.ui.widgets.kit import reveal
from app.ui.widgets.words import file_size

WIDTH = 600  # at text scale 1
EDGE = 12  # pixels of the list's frame, at both sides together


class StrategyList(QFrame):
    """A popup: arrow keys move, letters jump to a name, Enter or a click chooses, Escape closes."""

    picked = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self._theme = theme
        self._view = EntryList(theme, code=True)
        self._view.setFrameShape(QFrame.Shape.NoFrame)
        self._view.activated.connect(self._take)
        self._view.clicked.connect(self._take)
        self.setProperty("kind", "list")
        kit.column(self._view, margins=(5, 5, 5, 5), on=self)

    def open_at(self, anchor: QWidget, name: str, choices: Sequence[ListEntry], current: str = "") -> None:
        """Open below a control, or as near as the window allows; `name` says what the list is."""
        self._view.setAccessibleName(name)
        self._view.set_entries(choices)
        self._place(anchor)
        names = [choice.title for choice in choices]
        possible = [at for at, choice in enumerate(choices) if choice.possible]
        self._view.select(names.index(current) if current in names else next(iter(possible), 0))
        self.show()
        self._view.setFocus(Qt.FocusReason.PopupFocusReason)

    def _place(self, anchor: QWidget) -> None:
        """Inside the part of the window that is on the screen."""
        room = anchor.window().frameGeometry().intersected(anchor.screen().availableGeometry())
        width = min(round(WIDTH * self._theme.scale), room.width())
        rows = sum(self._view.painter.height(entry, width - EDGE) for entry in self._view.entries)
        height = min(rows + EDGE, room.height())
        corner = anchor.mapToGlobal(QPoint(0, anchor.height() + 2))
        left = max(room.left(), min(corner.x(), room.right() + 1 - width))
        top = max(room.top(), min(corner.y(), room.bottom() + 1 - height))
        self.setGeometry(left, top, width, height)

    def _take(self, index: QModelIndex) -> None:
        if self.isVisible() and index.flags() & Qt.ItemFlag.ItemIsEnabled:
            self.close()
            self.picked.emit(index.data())


class StrategyPicker(RowButton):
    """The name and when the strategy helps; a click, Space, Enter or Down asks to change it."""

    keys = (*RowButton.keys, Qt.Key.Key_Down)

    def __init__(self, theme: Theme, name: str, summary: str) -> None:
        super().__init__(theme)
        self.setAccessibleName(f"Strategy {name}")
        self.setAccessibleDescription(summary)
        self.setToolTip("Choose a different strategy")
        self._chevron = QLabel()
        self.summary = kit.label(summary, "caption", wrap=True, plain=True)
        # A strategy from outside may contain any text.
        head = kit.row(kit.label(name, "mono", plain=True), self._chevron, kit.Spring(1), spacing=6)
        kit.column(head, self.summary, margins=(8, 6, 8, 6), spacing=2, on=self)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.follow(self._restyle)

    def _restyle(self) -> None:
        side = round(14 * self._theme.scale)
        chevron = icon("chevron-down", self._theme.palette.secondary)
        self._chevron.setPixmap(chevron.pixmap(QSize(side, side), self.devicePixelRatio()))
        self.update()


NONE_SUMMARY = "The target alone, one token per pass. Speed-ups are measured against it."


class StrategyCard(QFrame):
    """A card: a picker, the generated form of the strategy's settings, and buttons to move or remove it.

    It keeps its settings while it is hidden, so a strategy that is picked again has them.
    """

    edited = Signal()
    """A setting was edited; its value may be wrong."""
    pick_wanted = Signal()
    moved = Signal(int)
    """The card is moved: up is -1, down is 1."""
    removed = Signal()

    def __init__(self, theme: Theme, kind: StrategyKind | None, parent: QWidget) -> None:
        """None stands for strategy none, which has no settings and cannot be removed."""
        super().__init__(parent)
        self.kind = kind
        self.name = NONE if kind is None else kind.name
        self._shown: Any = None  # the parameters that the form showed last
        self.setProperty("kind", "card")
        self.picker = StrategyPicker(theme, self.name, NONE_SUMMARY if kind is None else kind.summary)
        self.picker.clicked.connect(self.pick_wanted)
        self.up = IconButton(theme, "arrow-up", f"Ask {self.name} earlier")
        self.down = IconButton(theme, "arrow-down", f"Ask {self.name} later")
        self.remove = IconButton(theme, "close", f"Remove {self.name}")
        self.up.clicked.connect(lambda: self.moved.emit(-1))
        self.down.clicked.connect(lambda: self.moved.emit(1))
        self.remove.clicked.connect(self.removed)
        head = kit.row((self.picker, 1), spacing=2)
        for button in (self.up, self.down, self.remove):
            head.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        if kind is None:
            self.remove.hide()
        layout = kit.column(head, margins=(4, 4, 4, 4), spacing=6, on=self)
        self.form: ParamForm | None = None
        if kind is not None and any(params_of(kind.params)):
            self.form = ParamForm(theme, kind.params)
            self.form.changed.connect(self.edited)
            self.form.setContentsMargins(8, 0, 8, 4)
            layout.addWidget(self.form)
            self.form.changed.connect(self._show_memory)
        self._n_ctx = 0
        self.memory = kit.label("", "caption")
        self.memory.setIndent(8)  # in line with the form: the style sheet overrides margins
        self.memory.setContentsMargins(0, 0, 0, 4)
        layout.addWidget(self.memory)
        self._show_memory()

    def set_context(self, n_ctx: int) -> None:
        """Set the size of the context in tokens, 0 if it is not known."""
        self._n_ctx = n_ctx
        self._show_memory()

    def _show_memory(self) -> None:
        """Say what the strategy keeps with the settings shown."""
        most = self.kind.memory_at(self.part().params, self._n_ctx) if self.kind is not None else 0
        self.memory.setText(f"Uses up to {file_size(most)} of main memory with these settings.")
        self.memory.setVisible(most > 0)

    def valid(self) -> bool:
        """Whether the settings go together."""
        return self.form is None or self.form.valid()

    def part(self) -> StrategyPart:
        """The strategy with its settings, or with the defaults if the settings in the form conflict."""
        assert self.kind is not None
        if self.form is None or not self.form.valid():
            return StrategyPart(self.name, self.kind.params())
        return StrategyPart(self.name, self.form.value())

    def show_params(self, params: Any) -> None:
        """Show these settings in the form, unless they are the ones shown last."""
        if self.form is None or params == self._shown:
            return
        self._shown = params
        # Text that the user just typed stays as it is, also if it is wrong.
        if not self.form.valid() or self.form.value() != params:
            self.form.set_value(params)
        self._show_memory()

    def show_moves(self, up: bool, down: bool) -> None:
        """Enable the moves that are possible; if none is, the buttons are hidden."""
        for button, possible in ((self.up, up), (self.down, down)):
            button.setVisible(up or down)
            button.setEnabled(possible)


ORDER = "Asked from top to bottom. The round uses the first that finds a draft."
ALL_USED = "Every strategy is in use."


class StrategyCards(QWidget):
    """Every change keeps the order legal: strategies that need a draft model come last, each once."""

    changed = Signal(object)
    """The user changed the parts: tuple[StrategyPart, ...]."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._parts: tuple[StrategyPart, ...] = ()
        self._n_ctx = 0
        self._has_draft = True
        self._cards: dict[str, StrategyCard] = {}  # also of strategies that are not in use now
        self._placed: list[StrategyCard] = []
        self._for = ""  # the card that the open list belongs to; empty: the list adds one
        self._list = StrategyList(theme, self)
        self._list.picked.connect(self._picked)
        self._order = kit.label(ORDER, "caption", wrap=True)
        self.add = kit.button("Add a strategy", self._add_wanted, kind="flat")
        self._why_not = kit.label(ALL_USED, "caption")
        self._column = kit.column(spacing=8)
        row = kit.row(kit.label("Strategy", "title"), kit.Spring(1), self._why_not, self.add, spacing=8)
        kit.column(row, self._order, self._column, spacing=8, on=self)
        theme.follow(self._restyle)
        self.show_parts(())

    @property
    def shown(self) -> list[StrategyCard]:
        """The cards in use, in the order in which the strategies are asked."""
        return [self._cards[name] for name in self._names() or [NONE]]

    def show_parts(self, parts: tuple[StrategyPart, ...]) -> None:
        """Show these strategies, without emitting a signal."""
        self._parts = parts
        for part in parts:
            self._card(part.name).show_params(part.params)
        if not parts:
            self._card(NONE)
        shown = self.shown
        if shown != self._placed:
            self._place(shown)
        free = [card for card in shown if card.kind is not None and not card.kind.needs_draft]
        for card in shown:
            at = free.index(card) if card in free else None
            card.show_moves(at is not None and at > 0, at is not None and at < len(free) - 1)
        self._order.setVisible(len(parts) > 1)
        self.add.setEnabled(len(parts) < len(KINDS))
        self._why_not.setVisible(not self.add.isEnabled())

    def _place(self, shown: list[StrategyCard]) -> None:
        """Lay the cards out, unless they and their order are unchanged: a change of a setting moves
        nothing."""
        self._placed = shown
        for card in self._cards.values():
            self._column.removeWidget(card)
            card.setVisible(card in shown)
        for card in shown:
            self._column.addWidget(card)
            card.raise_()  # Tab follows the order of the parent's children

    def set_has_draft(self, has_draft: bool) -> None:
        """Whether a draft model is chosen. The list says if a strategy needs one."""
        self._has_draft = has_draft

    def set_context(self, n_ctx: int) -> None:
        """Set the size of the context in tokens, 0 if it is not known."""
        self._n_ctx = n_ctx
        for card in self._cards.values():
            card.set_context(n_ctx)

    # ------------------------------------------------------------------ what the user does

    def _add_wanted(self) -> None:
        self._for = ""
        self._list.open_at(self.add, "Strategies to add", self._choices(""))

    def _pick_wanted(self, card: StrategyCard) -> None:
        self._for = card.name
        self._list.open_at(card.picker, "Strategies", self._choices(card.name), card.name)

    def _picked(self, name: str) -> None:
        """Replace the strategy that the list was opened from, or append one."""
        taken = () if name == NONE else (self._card(name).part(),)
        names = self._names()
        at = names.index(self._for) if self._for in names else len(names)
        self._change((*self._parts[:at], *taken, *self._parts[at + 1 :]))
        self._go_to(self._card(name).picker)

    def _moved(self, card: StrategyCard, by: int) -> None:
        at = self._names().index(card.name)
        parts = list(self._parts)
        parts[at], parts[at + by] = parts[at + by], parts[at]
        self._change(tuple(parts))
        button, other = (card.up, card.down) if by < 0 else (card.down, card.up)
        self._go_to(button if button.isEnabled() else other)

    def _removed(self, card: StrategyCard) -> None:
        at = self._names().index(card.name)
        self._change((*self._parts[:at], *self._parts[at + 1 :]))
        shown = self.shown
        self._go_to(shown[min(at, len(shown) - 1)].picker)

    def _edited(self) -> None:
        cards = [self._cards[name] for name in self._names()]
        self._change(
            tuple(
                card.part() if card.valid() else part for card, part in zip(cards, self._parts, strict=True)
            )
        )

    def _change(self, parts: tuple[StrategyPart, ...]) -> None:
        self.show_parts(tuple(sorted(parts, key=lambda part: KINDS[part.name].needs_draft)))
        self.changed.emit(self._parts)

    def _go_to(self, control: QWidget) -> None:
        """Focus a control, and scroll to it once everything has its place."""
        control.setFocus(Qt.FocusReason.OtherFocusReason)
        QTimer.singleShot(0, control, lambda: reveal(control))

    # ------------------------------------------------------------------ inside

    def _names(self) -> list[str]:
        return [part.name for part in self._parts]

    def _card(self, name: str) -> StrategyCard:
        """The strategy's card; a new one if its drafter was reloaded and has changed."""
        kind, before = KINDS.get(name), self._cards.get(name)
        if before is not None and before.kind is kind:
            return before
        if before is not None:
            self._column.removeWidget(before)
            before.hide()
            before.deleteLater()
        card = self._cards[name] = StrategyCard(self._theme, kind, self)
        card.set_context(self._n_ctx)
        card.edited.connect(self._edited)
        card.pick_wanted.connect(lambda: self._pick_wanted(card))
        card.moved.connect(lambda by: self._moved(card, by))
        card.removed.connect(lambda: self._removed(card))
        return card

    def _choices(self, current: str) -> Sequence[ListEntry]:
        """What the list offers to replace the strategy `current`, or, if that is empty, to add."""
        used = set(self._names()) - {current}
        choices = [
            ListEntry(name, "in use", kind.summary, possible=False)
            if name in used
            else ListEntry(name, self._mark(kind), kind.summary)
            for name, kind in KINDS.items()
        ]
        if not current:
            return choices
        alone = len(self._parts) <= 1
        none = ListEntry(NONE, "" if alone else "cannot be combined", NONE_SUMMARY, possible=alone)
        return [none, *choices]

    def _mark(self, kind: StrategyKind) -> str:
        if kind.needs_draft:
            if kind.is_head:
                return "needs a draft that reads this target"
            return "draft model" if self._has_draft else "needs a draft model; none is chosen"
        return "from your file" if isinstance(kind, ForeignKind) else ""

    def _restyle(self) -> None:
        colours = self._theme.palette
        self.add.setIcon(icon("plus", colours.secondary, colours.faint))
