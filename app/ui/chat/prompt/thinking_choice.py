"""Whether, or how much, the model thinks: the options of the chat template for it, chosen beside the prompt
box."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QWidget

from app.engine.templates.options import TemplateOptions
from app.engine.templates.thinking import EFFORT, Thinking, switched
from app.ui.theme import Theme
from app.ui.theme.rings import by_mouse
from app.ui.widgets.fields.field import QuietCombo
from app.ui.widgets.fields.switch import QuietSwitch

WORD = "Thinking"
KEPT = "Kept with this chat; applies from the next answer on."
SWITCH_HELP = f"Whether the model thinks before it answers.\n{KEPT}"
EFFORT_HELP = f"How much the model thinks before it answers.\n{KEPT}"
_BESIDE = 8  # pixels


class _Efforts(QuietCombo):
    """The list of efforts. Where a click opened it, it gives the focus up when it closes: typing would
    otherwise still choose in it."""

    left = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._clicked = False

    def showPopup(self) -> None:  # noqa: N802
        self._clicked = by_mouse(self)
        super().showPopup()

    def hidePopup(self) -> None:  # noqa: N802
        super().hidePopup()
        if self._clicked:
            self._clicked = False
            self.left.emit()


class ThinkingChoice(QWidget):
    """A switch, or a choice of efforts where the template has no switch. Shown where it has either."""

    picked = Signal(dict)
    """The options of the chat template that the user chose."""
    changed = Signal()
    """The options of the chat template changed, by the user or otherwise."""
    left = Signal()
    """The user has clicked a choice; the focus returns to the prompt."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._thinking: Thinking | None = None
        self.options: TemplateOptions = {}
        """The options of the chat template."""
        self.switch = QuietSwitch(theme, WORD)
        self.switch.setToolTip(SWITCH_HELP)
        self.switch.clicked.connect(self._switched)
        self._words = QLabel(WORD)
        self._words.setProperty("role", "caption")
        self.efforts = _Efforts()
        self.efforts.left.connect(self.left)
        self.efforts.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.efforts.setAccessibleName(WORD)
        self.efforts.setToolTip(EFFORT_HELP)
        self.efforts.activated.connect(self._effort_picked)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(_BESIDE)
        for widget in (self.switch, self._words, self.efforts):
            row.addWidget(widget)
        self._show()

    @property
    def offered(self) -> bool:
        """Whether the template has anything to choose."""
        thinking = self._thinking
        return thinking is not None and (thinking.on is not None or bool(thinking.efforts))

    def set_thinking(self, thinking: Thinking | None) -> None:
        """Set what can be chosen for the template; None: nothing."""
        self._thinking = thinking
        self._show()

    def set_options(self, options: TemplateOptions) -> None:
        """Show the options of the template; `picked` is not emitted."""
        changed = options != self.options
        self.options = options
        self._show()
        if changed:
            self.changed.emit()

    def _show(self) -> None:
        thinking = self._thinking
        has_switch = thinking is not None and thinking.on is not None
        self.switch.setVisible(has_switch)
        self._words.setVisible(not has_switch)
        self.efforts.setVisible(not has_switch)
        if thinking is not None:
            self.switch.setChecked(thinking.is_on(self.options))
            effort = thinking.effort_of(self.options)
            self.efforts.clear()
            self.efforts.addItems(list(dict.fromkeys((*thinking.efforts, effort))))
            self.efforts.setCurrentText(effort)

    @Slot(bool)
    def _switched(self, on: bool) -> None:
        if by_mouse(self.switch):
            self.left.emit()
        self._pick(switched(on))

    @Slot(int)
    def _effort_picked(self, index: int) -> None:
        self._pick({EFFORT: self.efforts.itemText(index)})

    def _pick(self, told: TemplateOptions) -> None:
        self.set_options(self.options | told)
        self.picked.emit(self.options)
