"""The panel of the strategy chip: which strategies draft, and by which rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QLabel, QWidget

from app.engine.compat import FitKind
from app.engine.drafters.draft_simple import DraftSimpleParams
from app.engine.drafters.lookup_caches import glance_at_caches
from app.engine.drafters.ngram_cache import NgramCacheParams
from app.engine.drafters.through_text import refuse_sampling
from app.engine.errors import SettingError
from app.engine.explain.llama_command import CopiedCommand, llama_command, vllm_command
from app.engine.lengths.base import LengthRule
from app.engine.lengths.registry import LENGTHS
from app.engine.params import params_of
from app.engine.process.messages import PassSeconds
from app.engine.rules.registry import RULES, default_rule
from app.engine.strategy import StrategySpec
from app.engine.templates.options import TemplateOptions
from app.engine.types import ModelOptions, PairInfo, Sampling
from app.ui.setup.lookup_caches import LookupMaker
from app.ui.setup.strategy_cards import StrategyCards
from app.ui.setup.strategy_text import CommandReader, CommandText, PurposeChoice, SpecText
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.form import ParamForm
from app.ui.widgets.labels import OneOf
from app.ui.widgets.notice import Notice
from app.ui.widgets.segmented import Segmented

IDLE = "Not used: strategy none drafts nothing."


class RuleChoice(QWidget):
    """A heading, the choices, and a text on the chosen one, in the room that the longest text takes."""

    picked = Signal(str)
    """The user chose a different one."""

    def __init__(self, theme: Theme, name: str, words: Mapping[str, str]) -> None:
        """`words` has the text on each choice."""
        super().__init__()
        self._idle = False
        self._heading = kit.label(name, "strong")
        self.choices = Segmented(theme, name, list(words))
        self.choices.picked.connect(self._picked)
        self._words: dict[str, QLabel] = {}
        top = Qt.AlignmentFlag.AlignTop
        self._caption = partial(kit.label, role="caption", wrap=True, side=top, on=self)
        self._no_effect = self._caption(IDLE)
        self._shown = OneOf()
        self._shown.addWidget(self._no_effect)
        self.set_words(words)
        kit.column(self._heading, kit.row(self.choices, kit.Spring()), self._shown, spacing=6, on=self)
        self._explain()

    def set_words(self, words: Mapping[str, str]) -> None:
        """Offer these choices. Plug-ins may add or remove some."""
        if words == {choice: label.text() for choice, label in self._words.items()}:
            return
        for label in self._words.values():
            self._shown.removeWidget(label)
            label.deleteLater()
        self._words = {choice: self._caption(meaning) for choice, meaning in words.items()}
        for label in self._words.values():
            self._shown.addWidget(label)
        self.choices.set_choices(list(words))

    def set_choice(self, choice: str) -> None:
        """Show a choice, without emitting a signal."""
        self.choices.set_choice(choice)
        self._explain()

    def set_idle(self, idle: bool) -> None:
        """Dim it if the rule has no effect; it can still be chosen."""
        self._idle = idle
        self.choices.set_dim(idle)
        set_role(self._heading, role="secondary" if idle else "strong")
        self._explain()

    def _picked(self, choice: str) -> None:
        self._explain()
        self.picked.emit(choice)

    def _explain(self) -> None:
        label = self._no_effect if self._idle else self._words[self.choices.choice()]
        self._shown.setCurrentWidget(label)
        self.choices.setAccessibleDescription(label.text())


WIDTH = 880  # of the panel's popover
_TWO_COLUMNS = 700  # wide enough for the rules beside the cards; at text scale 1
AUTO = "auto"
ANY_VOCABULARY = 2**31 - 1  # the number of tokens while no target is loaded


@dataclass(frozen=True, slots=True)
class StrategyContext:
    """What a strategy is used with: the models (their real paths) and how tokens are drawn."""

    target: ModelOptions
    draft: ModelOptions | None
    sampling: Sampling
    max_tokens: int
    vocabulary: str = ""  # how the draft's fits the target's, as PairInfo says; empty: not known yet
    n_ctx: int = 0  # the target's context as it was loaded; 0: not known yet
    n_vocab: int = ANY_VOCABULARY  # the target's number of tokens
    template_options: TemplateOptions = field(default_factory=dict)  # for llama.cpp's command
    pair: PairInfo | None = None  # as it was loaded; None: not known yet
    has_mtp: bool = False  # an MTP head is loaded with it
    passes: Callable[[str, str], PassSeconds | None] = lambda target, draft: None
    """The times of two files' passes, as far as they were timed."""


def _lengths() -> dict[str, str]:
    """The length rules, and what each does."""
    return {name: rule.summary for name, rule in LENGTHS.items()}


def _rules() -> dict[str, str]:
    """The rules of verification, and what each does; by default it depends on the temperature."""
    usual = f"{default_rule(0)} at temperature 0, else {default_rule(1)}."
    return {AUTO: usual.capitalize()} | {name: rule.summary for name, rule in RULES.items()}


def check_together(spec: StrategySpec, context: StrategyContext) -> None:
    """Raise SettingError if a strategy cannot be used in this context."""
    spec.verification_at(context.sampling.temperature)
    spec.check_lengths()
    if spec.needs_draft and context.draft is None:
        raise SettingError(
            "This strategy needs a draft model, but none is chosen.",
            "Choose a draft at the top of the window, or a different strategy.",
        )
    if context.pair is not None:
        spec.check_heads(context.pair, context.has_mtp)
    if context.vocabulary.startswith(FitKind.THROUGH_TEXT):
        for part in spec.parts:
            if isinstance(part.params, DraftSimpleParams):
                refuse_sampling(part.params)
    for part in spec.parts:
        if isinstance(part.params, NgramCacheParams):
            files = part.params.lookup_cache_static, part.params.lookup_cache_dynamic
            glance_at_caches(*files, context.n_vocab)


class StrategyPanel(QWidget):
    """Cards, rules and text show one spec; a change of any of them changes the others.

    Every valid change is in use from the next answer on: there is nothing to apply.
    """

    spec_changed = Signal(str)
    """The user changed the spec; the new one is valid."""
    compare_wanted = Signal(str)
    """The user wants to compare this spec with the one in use."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._spec = StrategySpec()
        self._with: StrategyContext | None = None
        self.purpose = PurposeChoice()
        self.purpose.taken.connect(self._purpose_taken)
        self.purpose.compared.connect(lambda spec: self.compare_wanted.emit(str(spec)))
        self.cards = StrategyCards(theme)
        self.cards.changed.connect(lambda parts: self._change(dataclasses.replace(self._spec, parts=parts)))
        self.lookup_maker = LookupMaker()
        self.lookup_maker.hide()
        self._makes_caches = False
        self.length = RuleChoice(theme, "Draft length", _lengths())
        self.length.picked.connect(self._length_picked)
        self.rule = RuleChoice(theme, "Verification", _rules())
        self.rule.picked.connect(self._rule_picked)
        self.text = SpecText(theme)
        self.text.typed.connect(self._typed)
        self.command = CommandText(theme)
        self.reader = CommandReader(theme)
        self.reader.strategy_wanted.connect(lambda text: self._purpose_taken(StrategySpec.parse(text)))
        self._settings = kit.column()
        self._forms: dict[type[LengthRule], ParamForm] = {}
        self.notice = Notice(theme)
        self._columns = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._columns.setSpacing(24)
        for stretch, widgets in (
            (5, (self.purpose, self.cards, self.lookup_maker)),
            # What appears and disappears is below the controls, so that these do not move.
            (4, (self.length, self.rule, self.text, self.notice, self.command, self.reader, self._settings)),
        ):
            column = kit.column(*widgets, kit.Spring(), spacing=16)
            self._columns.addLayout(column, stretch)
        kit.column(self._columns, spacing=8, on=self)
        self._show()

    def spec(self) -> str:
        """The spec in use, as written."""
        return str(self._spec)

    def set_spec(self, text: str) -> None:
        """Show a spec, without emitting a signal; raises SettingError if it cannot be parsed."""
        self._spec = StrategySpec.parse(text)
        self._show()

    def set_surroundings(self, surroundings: StrategyContext) -> None:
        """Set what the strategy is used with, on which it depends what can be chosen."""
        self._with = surroundings
        self.cards.set_has_draft(surroundings.draft is not None)
        self.cards.set_context(surroundings.n_ctx)
        self._check()

    def offer_lookup_caches(self) -> LookupMaker:
        """Offer to make lookup caches from now on; returns the part that asks for them."""
        self._makes_caches = True
        self._show_choices()
        return self.lookup_maker

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        beside = event.size().width() >= round(_TWO_COLUMNS * self._theme.scale)
        direction = QBoxLayout.Direction
        self._columns.setDirection(direction.LeftToRight if beside else direction.TopToBottom)

    # ------------------------------------------------------------------ what the user does

    def _purpose_taken(self, spec: StrategySpec) -> None:
        """The rule of verification stays: it belongs to the sampling, not to the work."""
        self._change(dataclasses.replace(spec, verification=self._spec.verification))

    def _length_picked(self, choice: str) -> None:
        form = self._form(LENGTHS[choice])
        rule = form.value() if form is not None and form.valid() else LENGTHS[choice]()
        self._change(dataclasses.replace(self._spec, length=rule))

    def _length_edited(self) -> None:
        form = self._form(type(self._spec.length))
        if form is not None and form.valid():
            self._change(dataclasses.replace(self._spec, length=form.value()))

    def _rule_picked(self, choice: str) -> None:
        rule = RULES.get(choice)
        self._change(dataclasses.replace(self._spec, verification=rule))

    def _typed(self, text: str) -> None:
        try:
            spec = StrategySpec.parse(text)
        except SettingError as error:
            self.text.show_error(str(error))
            return
        changed = spec != self._spec
        self._spec = spec
        self.text.accept(self.spec())  # text that is being typed stays as it is
        if changed:
            self._show_choices()
            self.spec_changed.emit(self.spec())

    # ------------------------------------------------------------------ showing

    def _change(self, spec: StrategySpec) -> None:
        changed = spec != self._spec
        self._spec = spec
        self._show()
        if changed:
            self.spec_changed.emit(self.spec())

    def _show(self) -> None:
        self.text.set_spec(self.spec())
        self._show_choices()

    def _show_choices(self) -> None:
        self.cards.show_parts(self._spec.parts)
        counts = any(isinstance(part.params, NgramCacheParams) for part in self._spec.parts)
        self.lookup_maker.setVisible(counts and self._makes_caches)
        rule = self._spec.length
        self.length.set_words(
            _lengths() | {rule.name: rule.summary}
        )  # which a removed plug-in may have brought
        self.length.set_choice(rule.name)
        shown = self._form(type(rule)) if self._spec.parts else None
        if shown is not None and shown.valid() and shown.value() != rule:  # what is being typed stays
            shown.set_value(rule)
        for form in self._forms.values():
            form.setVisible(form is shown)
        verify = self._spec.verification
        self.rule.set_words(_rules() | ({verify.name: verify.summary} if verify is not None else {}))
        self.rule.set_choice(str(verify or AUTO))
        for choice in (self.length, self.rule):
            choice.set_idle(not self._spec.parts)
        self._check()

    def _form(self, rule: type[LengthRule]) -> ParamForm | None:
        """The form of a length rule's settings; None if it has none."""
        if rule not in self._forms and (settings := params_of(rule)):
            form = self._forms[rule] = ParamForm(self._theme, rule, first=(settings[0].name,))
            form.hide()
            form.changed.connect(self._length_edited)
            self._settings.addWidget(form)
        return self._forms.get(rule)

    def _check(self) -> None:
        """Show what does not go together with the rest of the set-up, and llama.cpp's command for it."""
        if self._with is None:
            return
        context = self._with
        in_use = dataclasses.replace(self._spec, verification=None)
        draft = context.draft.path if context.draft is not None else ""
        loaded = context.pair.draft if context.pair is not None else None
        self.purpose.set_context(str(in_use), context.target.path, draft, context.passes)
        try:
            StrategySpec.parse(self.spec())
        except SettingError as error:  # its drafter was removed
            self.notice.tell(error)
            return
        try:
            settings = (
                self._spec,
                context.target,
                context.draft,
                context.sampling,
                context.max_tokens,
                context.n_ctx,
            )
            self.command.set_commands(
                llama_command(*settings, context.template_options, loaded.architecture if loaded else ""),
                vllm_command(*settings),
            )
        except SettingError as error:
            why = CopiedCommand("", (f"No command: {error.message}",))
            self.command.set_commands(why, why)
        try:
            check_together(self._spec, context)
        except SettingError as error:
            self.notice.tell(error)
        else:
            self.notice.clear()
