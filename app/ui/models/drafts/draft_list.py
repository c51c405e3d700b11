"""The drafts of a target: found in the library, chosen by hand, and measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.engine.shards import size_of
from app.hub.library.drafts import Candidate
from app.hub.library.model import names_apart
from app.lab.drafts.kept import DraftResults
from app.lab.drafts.trials import DraftScore
from app.ui.models.drafts.drafts_table import DraftLine
from app.ui.models.drafts.drafts_work import DraftsWork
from app.ui.state.chat_side import ChatSide

_COMPARED = 3


class DraftList:
    """The drafts that the page shows for its target."""

    def __init__(self, chat: ChatSide, work: DraftsWork) -> None:
        self._chat = chat
        self._work = work
        self.target = ""  # its path; "" without any
        self.candidates: tuple[Candidate, ...] = ()  # of the library
        self.reading = True  # more candidates are to come
        self.kept: DraftResults | None = None  # results of an earlier day
        self._added: list[Path] = []  # drafts that were chosen by hand, for any target

    def begin(self, target: str) -> None:
        """List the drafts of another target."""
        self.target = target
        self.candidates, self.reading, self.kept = (), True, None

    def add(self, names: Sequence[str]) -> None:
        """Add files that were chosen by hand."""
        paths = [Path(name).absolute() for name in names]
        self._added += [path for path in dict.fromkeys(paths) if path not in self._added]

    @property
    def results(self) -> DraftResults | None:
        """The results for the target: of now, or of an earlier day."""
        mine = self._work.target == self.target
        if mine and (self._work.at_work or self._work.results is not None):
            return self._work.results
        return self.kept

    @property
    def names(self) -> dict[str, str]:
        """The drafts by path, each with a name of its own: those of the library, the chat's, those that were
        chosen by hand, and those of earlier results."""
        fitting = [candidate.model for candidate in self.candidates if candidate.shares_vocabulary]
        named = dict(zip((str(model.path) for model in fitting), names_apart(fitting), strict=True))
        pair = self._chat.pair()
        in_chat = [pair.draft.path] if pair.draft is not None and pair.target.path == self.target else []
        earlier = self.results.paths if self.results is not None else ()
        work = self._work
        now = work.drafts if work.at_work and work.target == self.target else ()
        for path in (*in_chat, *map(str, self._added), *earlier, *now):
            if path != self.target:
                named.setdefault(path, Path(path).name)
        return named

    @property
    def lines(self) -> list[DraftLine]:
        """The measured drafts, the best first, then the others."""
        named = self.names
        scores = self.results.scores if self.results is not None else {}
        order = [path for path in scores if path in named]
        order += [path for path in named if path not in scores]
        failed = [path for path in order if path in scores and scores[path].problem]
        order = [path for path in order if path not in failed] + failed
        return [self._line(path, named[path], scores.get(path)) for path in order]

    @property
    def best(self) -> list[str]:
        """The paths of the best drafts."""
        scores = self.results.scores if self.results is not None else {}
        return [path for path, score in scores.items() if score.factor is not None][:_COMPARED]

    @property
    def through_text(self) -> int:
        """The number of files that can draft through text only."""
        return sum(candidate.through_text for candidate in self.candidates)

    def _line(self, path: str, name: str, score: DraftScore | None) -> DraftLine:
        if score is not None:
            return DraftLine(path, name, score, score.problem)
        size, share = self._size(path)
        words = ""
        if self._work.target == self.target and self._work.waits(path):
            words = "being judged" if path == self._work.draft else "waits"
        return DraftLine(path, name, DraftScore(Path(path).name, size, share), words)

    def _size(self, path: str) -> tuple[int, float]:
        """The bytes of a draft that was not measured, and its share of the target."""
        for candidate in self.candidates:
            if str(candidate.model.path) == path:
                return candidate.model.size, candidate.share
        try:
            size = size_of(Path(path))
            return size, size / size_of(Path(self.target))
        except OSError:  # measuring says why
            return 0, 0.0
