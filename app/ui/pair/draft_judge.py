"""Says in the draft's panel how well the file shown there would do."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from app.engine.explain.draft_size import size_verdict
from app.engine.types import ModelOptions, PairInfo
from app.ui.pair.library_drafts import LibraryDrafts
from app.ui.pair.model_panel import ModelPanel
from app.ui.state.engine.engine_session import EngineSession
from app.ui.state.settings_in_use import SettingsInUse


class DraftJudge(QObject):
    """A loaded draft is judged by its pair; a file that was only chosen is opened by the library first."""

    def __init__(
        self,
        target: ModelPanel,
        draft: ModelPanel,
        session: EngineSession,
        settings: SettingsInUse,
        library: LibraryDrafts,
    ) -> None:
        super().__init__(draft)  # ends with the panel
        self._target = target
        self._draft = draft
        self._session = session
        self._settings = settings
        self._library = library
        for signal in (target.edited, draft.edited, draft.opened, session.changed, library.judged):
            signal.connect(self._show)

    @Slot()
    def _show(self) -> None:
        target, draft = self._target.path, self._draft.path
        if target is None or draft is None or not self._draft.isVisible():
            self._draft.facts.set_verdict("")
        else:
            line = self._line(target, draft)
            self._draft.facts.set_verdict(line, comes=not line)

    def _line(self, target: str, draft: str) -> str:
        target, draft = (self._real(path) for path in (target, draft))
        pair = self._session.pair
        if pair is not None and pair.draft is not None and (target, draft) == _paths(pair):
            said = size_verdict(
                pair.draft.size / pair.target.size, pair.target.architecture, pair.draft.architecture
            )
            return f"{said}."
        self._library.judge(target, draft)
        line = self._library.verdict(target, draft)
        return f"{line}." if line else ""

    def _real(self, path: str) -> str:
        return self._settings.real(ModelOptions(path)).path


def _paths(pair: PairInfo) -> tuple[str, str]:
    return pair.target.path, pair.draft.path if pair.draft is not None else ""
