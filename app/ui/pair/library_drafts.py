"""The library's verdicts on drafts, found in the background, including the file in the draft's panel."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.base.paths import Paths
from app.engine.errors import UserError
from app.engine.explain.facts import DraftFile, size_verdict
from app.engine.types import ModelOptions, PairInfo
from app.ui.pair.model_panel import ModelPanel
from app.ui.state.chat_side import SettingsInUse
from app.ui.state.engine_session import EngineSession
from app.ui.widgets.background import Askers, Query

if TYPE_CHECKING:
    from app.hub.library.shelf import Shelf


Pair = tuple[str, str]  # real paths of a target and of a draft
Files = tuple[DraftFile, ...]


class LibraryDrafts(QObject):
    """Finds the files that suit a target as drafts, and says how well a file would draft."""

    found = Signal()  # `suiting` has more to say
    judged = Signal()  # `verdict` has more to say

    def __init__(self, paths: Paths) -> None:
        super().__init__()
        self._paths = paths
        self.askers = Askers()
        self.close = self.askers.close
        self._files: dict[str, Files] = {}
        self._searches: dict[str, Query[Files]] = {}
        self._verdicts: dict[Pair, str] = {}

    # ------------------------------------------------------------------ files for a target

    def suiting(self, target: str) -> Files | None:
        """The files that suit a target well, with paths as in the settings, then those of the catalogue,
        without a path. None until `find` has finished."""
        return self._files.get(target)

    def find(self, target: str) -> None:
        """Look for the files that suit a target; the library may have changed since the last search."""
        if target not in self._searches:
            self._searches[target] = Query(self.askers, partial(self._keep_files, target), _unknown)
        self._searches[target].ask(partial(self._find, Path(target)))

    def _keep_files(self, target: str, files: Files) -> None:
        if files != self.suiting(target):
            self._files[target] = files
            self.found.emit()

    def _find(self, target: Path) -> Files:
        from app.hub.cache import Cache  # these are slow to import
        from app.hub.catalogue import drafts_for, load_catalogue
        from app.hub.library.model import names_apart

        with self._shelf() as shelf:
            models = [candidate.model for candidate in shelf.suiting(target)]
        here = [
            DraftFile(self._paths.named(model.path), model.size, name)
            for model, name in zip(models, names_apart(models), strict=True)
        ]
        pairs = load_catalogue(self._paths.resources / "catalogue.json")
        listed = drafts_for(target.name, pairs, self._paths, Cache())
        return (*here, *(DraftFile("", entry.size, Path(entry.file).stem) for entry in listed))

    # ------------------------------------------------------------------ a file chosen by hand

    def verdict(self, target: str, draft: str) -> str:
        """A line about a file as a draft; "" until it is known."""
        return self._verdicts.get((target, draft), "")

    def judge(self, target: str, draft: str) -> None:
        """Find out how well a file would draft, unless that is known."""
        if (target, draft) not in self._verdicts:
            self._verdicts[target, draft] = ""
            question: Query[str] = Query(self.askers, partial(self._keep_verdict, (target, draft)), _unknown)
            question.ask(partial(self._judge, Path(target), Path(draft)))

    def _keep_verdict(self, pair: Pair, line: str) -> None:
        self._verdicts[pair] = line
        self.judged.emit()

    def _judge(self, target: Path, draft: Path) -> str:
        with self._shelf() as shelf:
            return shelf.judge(target, draft).line

    def _shelf(self) -> Shelf:
        from app.hub.library.shelf import Shelf, own_models  # slow to import

        return Shelf(self._paths.data, own=own_models(self._paths))


def _unknown(_error: UserError) -> None:
    """Say nothing about an unreadable file, because loading it says what is wrong."""


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
