"""Details of the model selected in the library: what it is, what can be done with it, and its drafts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QShowEvent
from PySide6.QtWidgets import QWidget

from app.engine.errors import UserError
from app.hub.library.library import DraftsChanged
from app.hub.library.model import Candidate, DraftVerdict, FileOrigin, LocalModel, names_apart
from app.ui.models.entry_rows import joined, model_words, more_words
from app.ui.models.hub_session import HubSession
from app.ui.state.chat_side import KEEP
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.ask_first import AskFirst, Confirmation
from app.ui.widgets.entry_list import EntryList, ListEntry
from app.ui.widgets.icons import IconButton
from app.ui.widgets.kit import WrapLayout
from app.ui.widgets.labels import ElidedLabel, as_text
from app.ui.widgets.notice import Notice, Placeholder
from app.ui.widgets.words import file_size, own_words

ModelsInUse = Callable[[], tuple[str, str]]
"""The files that the chat uses: target, and draft or ""."""
EMPTY = ("", "Choose a model to see its details and which models can draft for it.")

BEST = "Compare all drafts for this target on its own answers"
NONE_TO_JUDGE = "Needs a model with this target's vocabulary. Drafts through text are not judged."


class ModelDetails(QWidget):
    """Shows the selected model."""

    drafts_wanted = Signal(object)
    """Show which draft is best for the target of this path."""

    def __init__(self, theme: Theme, session: HubSession, in_use: ModelsInUse) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self._in_use = in_use
        self.model: LocalModel | None = None
        self.candidates: tuple[Candidate, ...] = ()
        self.reading = True  # more candidates are to come
        self._build()
        session.drafts_changed.connect(self._show_drafts)
        self.show_model(None)

    def _build(self) -> None:
        placeholder = Placeholder()
        placeholder.say(*EMPTY)
        inner = QWidget()
        self._stack = kit.stack(placeholder, inner)
        kit.column(self._stack, on=self)
        self._name = ElidedLabel(Qt.TextElideMode.ElideMiddle, role="title")
        self._file = ElidedLabel(Qt.TextElideMode.ElideMiddle, role="caption")
        self._facts = kit.label("", "secondary", wrap=True, plain=True)
        self._more = kit.label("", "caption", wrap=True, plain=True)
        self._refusal = kit.label("", "error", wrap=True, plain=True)
        self.notice = Notice(self._theme)
        self.asking = AskFirst()
        self._drafts_title = kit.label("Drafts for this target", "strong")
        self._drafts_state = kit.label("", "caption", wrap=True, plain=True)
        self.drafts = EntryList(self._theme, "Drafts for this target")
        self.drafts.selectionModel().selectionChanged.connect(self._draft_chosen)
        self.drafts.doubleClicked.connect(self._use_pair)
        self.pair = kit.button(
            "Use this pair",
            self._use_pair,
            kind="primary",
            tip="Load this target and the chosen draft into the chat",
        )
        self.best = kit.button("Which is best?", self._find_best)
        model = self._name, self._file, self._facts, self._more, self._refusal, 4, self._build_buttons()
        drafts = self._drafts_title, self._drafts_state, (self.drafts, 1), 4
        foot = (
            self.asking,
            self.notice,
            12,
            *drafts,
            kit.row(self.pair, self.best, kit.Spring(1)),
            kit.Spring(),
        )
        kit.column(*model, *foot, margins=(16, 16, 16, 16), spacing=4, on=inner)

    def _build_buttons(self) -> QWidget:
        self.target = kit.button("Use as target", self._use_target)
        self.draft = kit.button("Use as draft", self._use_draft)
        self.reveal = IconButton(self._theme, "folder", "Show it in the file manager", act=self._reveal)
        self.remove = IconButton(
            self._theme, "close", "Remove from the list; the file stays", act=self._remove
        )
        self.delete = IconButton(
            self._theme, "trash", "Delete from disk…", act=lambda: self.asking.ask(self._confirmation)
        )
        holder = QWidget()
        row = WrapLayout(holder, 8)
        for button in (self.target, self.draft):
            row.addWidget(button)
        for icon in (self.reveal, self.remove, self.delete):
            row.add_at_right(icon)
        return holder

    # ------------------------------------------------------------------ what the page says

    def show_model(self, model: LocalModel | None) -> None:
        """Show a model, or that none is selected."""
        changed = (model.path if model else None) != (self.model.path if self.model else None)
        self.model = model
        self._stack.setCurrentIndex(0 if model is None else 1)
        self._draft_chosen()
        self.asking.refresh()
        if changed:
            self.asking.withdraw()
            self.notice.clear()
            self.candidates = ()
            self.reading = True
            self.drafts.set_entries(())
            self._drafts_state.setText("Comparing vocabularies…")
            self._draft_chosen()
            self._look()
        if model is not None:
            self._show(model)

    def _look(self) -> None:
        """Ask for the drafts of the model, if they are seen: the library answers for one target at a time,
        and the view Drafts asks too."""
        if self.isVisible():
            self._session.library.find_drafts(self.model.path if self.model is not None else None)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._look()

    def _show(self, model: LocalModel) -> None:
        in_use = self._in_use()
        roles = [
            role for role, path in zip(("target", "draft"), in_use, strict=True) if path == str(model.path)
        ]
        self._name.set_text(model.name)
        self._file.set_text(joined(model.repo, model.path.name))
        self._file.setToolTip(as_text("\n".join(map(str, model.files[:12]))))
        self._facts.setText(model_words(model))
        used = f"the chat's {' and '.join(roles)}" if roles else ""
        own = own_words(self._session.settings.named(model.path).path)
        self._more.setText(joined(own, more_words(model), used))
        self._more.setVisible(bool(self._more.text()))
        self._refusal.setText(f"{model.refusal} {model.hint}".strip() if model.refusal else "")
        self._refusal.setVisible(bool(model.refusal))
        usable = not model.refusal
        self.target.setEnabled(usable)
        self.target.setToolTip("Load it into the chat" if usable else as_text(model.refusal))
        drafts = usable or model.is_head
        self.draft.setEnabled(drafts)
        self.draft.setToolTip("Load it as the chat's draft" if drafts else as_text(model.refusal))
        for part in (self._drafts_title, self.drafts, self.pair, self.best):
            part.setVisible(usable)
        self._drafts_state.setVisible(usable and bool(self._drafts_state.text()))
        place = self._session.place_of(model) if model.origin is FileOrigin.ADDED else None
        self.remove.setVisible(place is not None)
        if place is not None:
            subject = "it" if place == model.path else f"the folder {place}"
            self.remove.set_tooltip(f"Remove {subject} from the list; the files stay")
        self.delete.setVisible(model.can_delete)

    def _show_drafts(self, told: DraftsChanged) -> None:
        if self.model is None or told.target != self.model.path:
            return
        chosen = None if self.reading else self._chosen()  # while more are to come, the best so far
        self.reading = told.reading
        self.candidates = told.candidates
        self.drafts.set_entries(_entries(told.candidates))
        if told.problem:
            self._drafts_state.setText(told.problem)
        elif told.reading:
            self._drafts_state.setText("Comparing vocabularies…")
        elif not told.candidates:
            self._drafts_state.setText("There are no other models.")
        else:
            self._drafts_state.setText("")
        self._drafts_state.setVisible(bool(self._drafts_state.text()) and not self.model.refusal)
        paths = [candidate.model.path for candidate in told.candidates]
        kept = paths.index(chosen.model.path) if chosen is not None and chosen.model.path in paths else 0
        usable = bool(told.candidates) and told.candidates[kept].verdict is not DraftVerdict.CANNOT
        self.drafts.select(kept if usable else -1)
        self._draft_chosen()

    # ------------------------------------------------------------------ what the user wants

    def _chosen(self) -> Candidate | None:
        row = self.drafts.current
        return self.candidates[row] if 0 <= row < len(self.candidates) else None

    def _draft_chosen(self) -> None:
        candidate = self._chosen()
        self.pair.setEnabled(
            candidate is not None and candidate.verdict in (DraftVerdict.GOOD, DraftVerdict.WORKS)
        )
        judged = any(candidate.shares_vocabulary for candidate in self.candidates)
        self.best.setEnabled(judged)
        self.best.setToolTip(BEST if judged else NONE_TO_JUDGE)

    def _use_pair(self) -> None:
        candidate = self._chosen()
        if self.model is not None and candidate is not None and self.pair.isEnabled():
            self.notice.clear()
            self._session.use(self.notice.tell, target=self.model.path, draft=candidate.model.path)

    def _find_best(self) -> None:
        if self.model is not None:
            self.drafts_wanted.emit(self.model.path)

    def _use_target(self) -> None:
        """Load the target. The draft stays, unless it is known that it cannot serve this target."""
        if self.model is None:
            return
        draft = self._in_use()[1]
        cannot = any(
            str(candidate.model.path) == draft and candidate.verdict is DraftVerdict.CANNOT
            for candidate in self.candidates
        )
        self.notice.clear()
        self._session.use(self.notice.tell, target=self.model.path, draft=None if cannot else KEEP)

    def _use_draft(self) -> None:
        if self.model is not None:
            self.notice.clear()
            self._session.use(self.notice.tell, draft=self.model.path)

    def _reveal(self) -> None:
        if self.model is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.model.path.parent)))

    def _remove(self) -> None:
        place = self._session.place_of(self.model) if self.model is not None else None
        if place is None:
            return
        try:
            self._session.library.remove(place)
        except UserError as error:
            self.notice.tell(error)

    def _confirmation(self) -> Confirmation | None:
        model = self.model
        if model is None:
            return None
        files = f"its {len(model.files)} files" if len(model.files) > 1 else model.path.name
        used = " The chat is using it." if str(model.path) in self._in_use() else ""
        words = f"Delete {files} ({file_size(model.size)}) from disk?{used}"
        delete = partial(self._session.library.delete, model)
        return Confirmation(words, "Delete", delete, (model.files, model.size, model.changed, used))


def _entries(candidates: Sequence[Candidate]) -> list[ListEntry]:
    names = names_apart([candidate.model for candidate in candidates])
    return [_entry(candidate, name) for candidate, name in zip(candidates, names, strict=True)]


def _entry(candidate: Candidate, name: str) -> ListEntry:
    detail = joined(candidate.model.quantisation.replace("?", ""), file_size(candidate.model.size))
    return ListEntry(
        name, detail, candidate.line, str(candidate.model.path), candidate.verdict is DraftVerdict.CANNOT
    )
