"""What the Models place and the Compare place take from the chat, and what they bring to it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt

from app.base.paths import BUNDLED
from app.engine.errors import UserError
from app.engine.types import ModelOptions
from app.lab.experiment import Pair
from app.ui.chat.prompt.prompt_box import PromptBox
from app.ui.compare.door import ChatSide
from app.ui.pair.pair_controller import PairController
from app.ui.setup.chips_controller import ChipsController
from app.ui.state.engine_session import BUSY, EngineSession
from app.ui.state.settings_in_use import SettingsInUse


class BetweenPlaces:
    """The other places know the chat by this alone."""

    def __init__(
        self,
        session: EngineSession,
        settings: SettingsInUse,
        pair: PairController,
        chips: ChipsController,
        prompt: PromptBox,
        go: Callable[[str], None],
    ) -> None:
        """`go` shows a place."""
        self._session = session
        self._settings = settings
        self._pair = pair
        self._chips = chips
        self._prompt = prompt
        self._go = go

    def use_models(self, target: str | None, draft: str | None) -> None:
        """Load models that were chosen elsewhere; None keeps what is in use, "" takes the draft away.

        Raises UserError.
        """
        if self._session.activity in BUSY:
            raise UserError("The engine is still at work.", "Stop the answer first.")
        settings = self._settings.now
        self._pair.load(
            settings.target if target is None else ModelOptions(target),
            settings.draft if draft is None else ModelOptions(draft) if draft else None,
        )
        self._chips.show()
        self._go("chat")
        self._prompt.setFocus(Qt.FocusReason.OtherFocusReason)

    def models_in_use(self) -> tuple[str, str]:
        """The files of the target and of the draft, or ""."""
        target, draft = self._settings.real_pair()
        return target.path, draft.path if draft is not None else ""

    def chat_side(self) -> ChatSide:
        """What Compare may take and give."""
        return ChatSide(
            engine=self._session,
            pair=lambda: Pair(*self._settings.real_pair()),
            is_bundled=lambda: self._settings.now.target.path.startswith(BUNDLED),
            drafters=lambda: self._session.drafters,
            use_strategy=self._use_strategy,
            go=self._go,
        )

    def _use_strategy(self, spec: str) -> None:
        self._chips.use_strategy(spec)
        self._go("chat")
