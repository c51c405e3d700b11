"""Which of the drafts is best for a target: judged in seconds, kept, used, compared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QComboBox, QLabel, QMenu, QWidget

from app.base import numbers
from app.base.paths import BUNDLED
from app.engine.errors import UserError
from app.engine.types import ModelOptions
from app.hub.library.library import DraftsChanged
from app.hub.library.model import names_apart
from app.lab.drafts import ANSWER_TOKENS, DraftResults, DraftScore, first_of_each
from app.lab.experiment import Experiment, Lane, Pair
from app.lab.suites import Suite
from app.ui.models.drafts_table import DraftList, DraftsTable, DraftsWork
from app.ui.models.hub_session import HubSession
from app.ui.models.library_page import ask_for_files
from app.ui.state.chat_side import KEEP, ChatSide
from app.ui.state.engine_session import BUSY
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.access import announce
from app.ui.widgets.ask_first import RunStrip
from app.ui.widgets.background import Query
from app.ui.widgets.kit import WrapLayout
from app.ui.widgets.notice import Notices, Placeholder
from app.ui.widgets.plot import choose_file, write_export

ABOUT = (
    "α is how often a draft token would be accepted. c is its cost in target passes. Together they give the "
    "predicted speed-up. The target answers a few prompts, and both models read these answers once (teacher "
    "forcing). This is a quick estimate; Compare measures real runs."
)
NO_DRAFT = "No model in the library has its vocabulary. Download a pair from the catalogue, or add files."


class DraftsPage(QWidget):
    """The target on top, its drafts as a table, and what to do with the best."""

    catalogue_wanted = Signal()

    def __init__(
        self, theme: Theme, session: HubSession, chat: ChatSide, work: DraftsWork, suites: Sequence[Suite]
    ) -> None:
        """The first of `suites` is for the bundled pair, the one named "general" for others."""
        super().__init__()
        self._session = session
        self._chat = chat
        self._work = work
        work.setParent(self)
        self._suites = {suite.name: suite for suite in suites}
        self._drafts = DraftList(chat, work)
        self._build(theme)
        self._asked: Query[DraftResults | None] = Query(session.askers, self._show_kept, self.notice.tell)
        session.library_changed.connect(self._list_targets)
        session.drafts_changed.connect(self._drafts_found)
        work.stage_changed.connect(self._show)
        work.progressed.connect(self._show)
        work.failed.connect(self.notice.tell)
        work.not_kept.connect(self.notice.tell)
        work.over.connect(self._over)
        self._list_targets()
        self._show()

    def _build(self, theme: Theme) -> None:
        about = kit.label(ABOUT, "secondary", wrap=True)
        self.strip = RunStrip()
        self.strip.cancel.setToolTip("Stop now and keep the finished results")
        self.strip.cancel.clicked.connect(self._work.cancel)
        self.notice = Notices(theme)
        self.table = DraftsTable(theme)
        self.table.use_wanted.connect(self._use)
        self.placeholder = Placeholder()
        self.placeholder.add_button("Open the catalogue", self.catalogue_wanted)
        self._stack = kit.stack(self.placeholder, self.table)
        above = kit.column(about, self._build_bar(), self.notice, margins=(24, 12, 24, 0), spacing=12)
        below = kit.column(self._stack, margins=(24, 6, 24, 12))
        kit.column(above, self.strip, (below, 1), spacing=0, on=self)

    def _build_bar(self) -> QWidget:
        """The target, and at the right the buttons."""
        self.target = QComboBox()
        self.target.setAccessibleName("Target")
        self.target.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.target.setMinimumContentsLength(24)
        self.target.currentIndexChanged.connect(self._target_chosen)
        label = QLabel("Target")
        label.setBuddy(self.target)
        self.add = kit.button("Add drafts…", self._add, tip="Choose files outside the library")
        self.export_menu = QMenu(self)
        self.export_menu.addAction("Save all as JSON…", self._save_json)
        self.export_menu.addAction("Save table as CSV…", self._save_csv)
        self.export_menu.addAction("Copy the table", self.table.copy_all)
        self.export = kit.button("Export", lambda: kit.open_below(self.export, self.export_menu))
        self.compare = kit.button(
            "Compare these",
            self._compare,
            tip="Set up Compare with the best three as lanes, to measure them in real runs",
        )
        self.measure = kit.button("Measure", self._measure, kind="primary")
        bar = QWidget()
        row = WrapLayout(bar, 8)
        for widget in (label, self.target):
            row.addWidget(widget)
        for button in (self.add, self.export, self.compare, self.measure):
            row.add_at_right(button)
        return bar

    # ------------------------------------------------------------------ the target and its drafts

    @property
    def chosen(self) -> str:
        """The path of the chosen target; "" without any."""
        return str(self.target.currentData() or "")

    def show_target(self, path: Path) -> None:
        """Choose a target of the library."""
        place = self.target.findData(str(path))
        if place >= 0:
            self.target.setCurrentIndex(place)

    def _list_targets(self) -> None:
        """List the models of the library, and the chat's target, which need not be one of them."""
        models = [model for model in self._session.models if model.is_read and not model.refusal]
        named = dict(zip((str(model.path) for model in models), names_apart(models), strict=True))
        in_chat = self._chat.pair().target.path
        named.setdefault(in_chat, Path(in_chat).stem)
        before = self.chosen
        self.target.blockSignals(True)
        self.target.clear()
        for path, name in sorted(named.items(), key=lambda item: item[1].lower()):
            self.target.addItem(name, path)
            self.target.setItemData(self.target.count() - 1, path, Qt.ItemDataRole.ToolTipRole)
        self.target.setCurrentIndex(self.target.findData(before if before in named else in_chat))
        self.target.blockSignals(False)
        if self.chosen != before:
            self._target_chosen()

    def _target_chosen(self) -> None:
        self._drafts.begin(self.chosen)
        self.notice.clear()
        self._look()
        self._show()

    def _look(self) -> None:
        """Ask for the drafts of the target and for its earlier results, if they are seen."""
        if self.chosen and self.isVisible():
            self._session.library.find_drafts(Path(self.chosen))
            self._asked.ask(partial(self._work.kept.read, self.chosen))

    def _drafts_found(self, found: DraftsChanged) -> None:
        if str(found.target) == self.chosen:
            self._drafts.candidates, self._drafts.reading = found.candidates, found.reading
            self._show()

    def _show_kept(self, kept: DraftResults | None) -> None:
        if kept is None or kept.target == self.chosen:
            self._drafts.kept = kept
            self._show()

    def _add(self) -> None:
        self._drafts.add(ask_for_files(self))
        self._show()

    # ------------------------------------------------------------------ measuring

    def _measure(self) -> None:
        self.notice.clear()
        if self._work.at_work:
            return
        if not self._work.may_start:
            busy = self._chat.engine.activity in BUSY
            what = "An answer is still running in Chat." if busy else "Another measurement is still running."
            self.notice.tell(what, "Wait a moment, or stop it; then press Measure again.")
            return
        is_bundled = self._session.settings.named(self.chosen).path.startswith(BUNDLED)
        suite = self._suites["bundled" if is_bundled else "general"]
        experiment = Experiment(
            Pair(self._options()),
            (),
            first_of_each(suite),
            self._chat.settings.now.sampling,
            max_tokens=ANSWER_TOKENS,
            chat=suite.chat,
            title=suite.title,
        )
        self._work.start(experiment, [ModelOptions(path) for path in self._drafts.names])

    def _options(self) -> ModelOptions:
        """How the target is loaded: as in the chat, if the chat uses it."""
        target = self._chat.pair().target
        return target if target.path == self.chosen else ModelOptions(self.chosen)

    def _over(self) -> None:
        self._look()
        if (results := self._work.results) is not None:
            announce(self, f"{numbers.count(len(results.paths), 'draft')} judged.")

    # ------------------------------------------------------------------ showing

    def _show(self) -> None:
        work, drafts, results = self._work, self._drafts, self._drafts.results
        held = next((button for button in (self.measure, self.strip.cancel) if button.hasFocus()), None)
        lines = drafts.lines
        self.table.set_rows(lines)
        self._stack.setCurrentIndex(1 if lines else 0)
        if drafts.reading:
            self.placeholder.say("Comparing vocabularies…")
        else:
            self.placeholder.say("No draft for this target yet", NO_DRAFT)
        self.measure.setEnabled(bool(lines) and not drafts.reading and not work.at_work)
        self.export.setEnabled(results is not None)
        self.compare.setEnabled(bool(drafts.best) and not work.at_work)
        self.strip.set_at_work(work.at_work, may_pause=False, paused=False)
        self.strip.set_share(work.share if work.at_work else None)
        if work.at_work:
            self.strip.say(work.said, remarks=self._remarks())
        else:
            self.strip.conclude(_facts(results), self._remarks())
        if held is not None and not (held.isEnabled() and held.isVisible()):
            self.table.setFocus(Qt.FocusReason.OtherFocusReason)  # a second press starts and stops nothing

    def _remarks(self) -> list[str]:
        """What is not in the table, and why."""
        left_out = self._drafts.through_text
        if not left_out:
            return []
        files = numbers.count(left_out, "other file")
        return [f"{files} can draft only through text. Teacher forcing cannot judge that; Compare can."]

    # ------------------------------------------------------------------ what the user does with them

    def _use(self, path: str) -> None:
        in_chat = self._chat.pair().target.path == self.chosen
        self._session.use(self.notice.tell, target=KEEP if in_chat else self.chosen, draft=path)

    def _compare(self) -> None:
        """Set up a lane for each of the best drafts, with the draft length that was predicted best."""
        results = self._drafts.results
        if results is None:
            return
        drawn = ":sample=1" if results.report.sampling.temperature > 0 else ""
        named = self._drafts.names
        lanes = tuple(
            Lane(
                f"draft-simple:n_max={results.scores[path].n_max}{drawn}",
                named[path],
                Pair(self._options(), ModelOptions(path)),
            )
            for path in self._drafts.best
        )
        self._chat.compare_lanes(lanes, results.report.sampling)

    def _save_json(self) -> None:
        if (results := self._drafts.results) is not None:
            self._save("drafts.json", "JSON (*.json)", results.report.to_json())

    def _save_csv(self) -> None:
        if (results := self._drafts.results) is not None:
            names = DraftScore.__struct_fields__
            rows = [[getattr(score, name) for name in names] for score in results.report.drafts]
            self._save("drafts.csv", "CSV table (*.csv)", numbers.csv_text(names, rows).encode())

    def _save(self, name: str, pattern: str, data: bytes) -> None:
        path = choose_file(self.window(), name, pattern)
        if path:
            try:
                write_export(Path(path), data)
            except UserError as error:
                self.notice.tell(error)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not event.spontaneous():
            self._list_targets()  # the chat may use another target now
            self._look()  # the library answers for one target at a time: another view may have asked

    def close_page(self) -> None:
        """End a measurement before the window closes."""
        self._work.close()


def _facts(results: DraftResults | None) -> str:
    """What was measured, and when."""
    if results is None:
        return "Nothing has been measured for this target."
    report = results.report
    when = f"{results.measured.astimezone():%d %B %Y, %H:%M}".lstrip("0")
    answers, tokens = numbers.count(report.texts, "answer"), numbers.count(report.tokens, "token")
    drawn = (
        f"temperature {report.sampling.temperature:g}, drafts drawn (sample=1)"
        if report.sampling.temperature > 0
        else "temperature 0"
    )
    return f"Measured {when}, over {answers} of {report.target}, {tokens}, {drawn}: “{results.prompts}”."
