"""The pair in use: loading it, and saying in panels, chips and status bar what came of it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot

from app.engine.messages import Failed
from app.engine.types import ModelOptions, PairInfo
from app.paths import BUNDLED
from app.settings import Settings
from app.ui.engine_session import BUSY, EngineSession
from app.ui.header import Header
from app.ui.panels.model_panel import ModelPanel
from app.ui.prompt_box import PromptBox
from app.ui.status_bar import StatusBar


class PairController(QObject):
    """Loads what the panels ask for. Where a file fails, the pair from before stays in use."""

    changed = Signal()  # the pair, or what is known of it

    def __init__(
        self,
        header: Header,
        status: StatusBar,
        prompt: PromptBox,
        session: EngineSession,
        real: Callable[[ModelOptions], ModelOptions],
        settings: Callable[[], Settings],
        change: Callable[..., None],
    ) -> None:
        """`real` turns the settings' symbolic paths into files; `settings` reads them, `change` takes over
        changed ones by name."""
        super().__init__()
        self._header = header
        self._status = status
        self._prompt = prompt
        self._session = session
        self._real = real
        self._settings = settings
        self._change = change
        self._in_use: tuple[ModelOptions, ModelOptions | None] | None = None  # what is loaded
        self._fatal: ModelPanel | None = None  # the panel of a file that took the engine along
        session.load_progress.connect(self._load_progress)
        session.loaded.connect(self._loaded)
        session.load_failed.connect(self._load_failed)
        header.target_panel.applied.connect(self._target_applied)
        header.draft_panel.applied.connect(self._draft_applied)

    @Slot(object)
    def _target_applied(self, options: ModelOptions) -> None:
        if self._may_load(self._header.target_panel):
            self.load(options, self._settings().draft)

    @Slot(object)
    def _draft_applied(self, options: ModelOptions | None) -> None:
        if self._may_load(self._header.draft_panel):
            self.load(self._settings().target, options)

    def _may_load(self, panel: ModelPanel) -> bool:
        if self._session.activity in BUSY:
            panel.set_error("The engine is still at work.", "Stop the answer first.")
            return False
        return True

    def load(self, target: ModelOptions, draft: ModelOptions | None) -> None:
        """Load this pair and remember it; while an answer is written, nothing happens."""
        if self._session.activity in BUSY:
            return
        settings = self._settings()
        for options in (draft, target):
            if options is not None and not options.path.startswith(BUNDLED):
                settings = settings.with_recent(options.path)  # the bundled one has a button of its own
        self._change(target=target, draft=draft, recent_models=settings.recent_models)
        self._header.target_panel.set_options(target)
        self._header.draft_panel.set_options(draft)
        self._session.load(self._real(target), self._real(draft) if draft is not None else None)

    @Slot(str, float)
    def _load_progress(self, file: str, fraction: float) -> None:
        target, draft = self._settings().target, self._settings().draft
        is_draft = draft is not None and file == file_words(draft) != file_words(target)
        panel = self._header.draft_panel if is_draft else self._header.target_panel
        if panel is not self._fatal:
            panel.set_loading(file, fraction)
        self._status.set_state(
            f"Loading {'draft' if is_draft else 'target'} {fraction * 100:.0f} %", busy=True
        )

    @Slot(object)
    def _loaded(self, pair: PairInfo) -> None:
        settings = self._settings()
        self._in_use = (settings.target, settings.draft)
        fatal, self._fatal = self._fatal, None
        for panel, info, chip in (
            (self._header.target_panel, pair.target, self._header.target),
            (self._header.draft_panel, pair.draft, self._header.draft),
        ):
            if panel is fatal:
                continue  # the pair from before is back; what happened is still to be read here
            panel.set_info(info)
            panel.set_recent(settings.recent_models)
            chip.set_alert(False)
        threads = pair.target.threads
        self._status.set_device(f"{threads} thread{'s' if threads != 1 else ''} · {pair.devices}")
        self._status.set_context(0, pair.target.n_ctx)
        self.changed.emit()

    @Slot(object)
    def _load_failed(self, failed: Failed) -> None:
        """Say it in the panel of the file that failed."""
        header, pair = self._header, self._session.pair
        about_draft = self._is_about_draft(failed)
        wrong, right = (header.target_panel, header.draft_panel)[:: -1 if about_draft else 1]
        chip = header.draft if about_draft else header.target
        if self._in_use is not None:
            # What failed stays in its panel, to be mended there; what is loaded is what is remembered.
            target, draft = self._in_use
            self._change(target=target, draft=draft)
            right.set_options(target if about_draft else draft)
        wrong.set_error(failed.message, failed.hint)
        self._fatal = wrong if failed.gone and self._in_use is not None else None
        right.set_info((pair.target if about_draft else pair.draft) if pair is not None else None)
        self.changed.emit()
        chip.set_alert(True)
        kept = f"{pair.target.name} is still loaded." if pair is not None else ""
        self._prompt.show_error(failed.message, f"{failed.hint} {kept}".strip())

    def _is_about_draft(self, failed: Failed) -> bool:
        target, draft = self._settings().target, self._settings().draft
        if draft is None:
            return False
        names = file_words(target), file_words(draft)
        if names[0] != names[1]:
            named = [name in failed.message for name in names]
            if named[0] != named[1]:
                return named[1]
        if failed.message.startswith("The draft"):
            return True
        # The message names no file: it is about the one that was changed.
        return self._in_use is not None and self._in_use[0] == target


def file_words(options: ModelOptions) -> str:
    """The name of a model's file, as it is shown."""
    return options.path.replace("\\", "/").rsplit("/", 1)[-1]
