"""The strategy grammar: `name(:key=value)*`, joined by `+`. One grammar for window, command line, traces."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from app.engine.compat import HEAD_STRATEGIES
from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError, UserError
from app.engine.lengths.base import Fixed, LengthAt, LengthFold, LengthRule, StrategyLimits
from app.engine.lengths.registry import LENGTHS
from app.engine.params import check_params, params_of
from app.engine.rules.base import Rule
from app.engine.rules.registry import RULES, default_rule
from app.engine.types import PairInfo, Round

NONE = "none"
DRAFT_SIMPLE = "draft-simple"
SERVER = "server"
"""Replaces a strategy's name if a server drafts by its own settings. Not part of the grammar."""
SYNTHETIC = "synthetic: it drafts the answer itself, known from a rehearsal, with planted errors"
"""What every output says of a synthetic strategy."""
UNDRAFTED = "ngram-mod"  # the strategy to propose where there is no draft model


def run_keys() -> list[str]:
    """Settings of the whole run, allowed after any strategy name; no parameter of a strategy may have these
    names."""
    return ["verify", "length", *(param.name for rule in LENGTHS.values() for param in params_of(rule))]


_UNLIMITED = 64  # for a strategy without such a setting


@dataclass(frozen=True, slots=True)
class StrategyPart:
    """One drafter of a strategy and its parameters."""

    name: str
    params: Any

    @property
    def shortest(self) -> int:
        """The fewest tokens worth asking for: a shorter proposal would be discarded."""
        if KINDS[self.name].least != "n_min":
            return 1
        return min(max(1, getattr(self.params, "n_min", 1)), self.longest)

    @property
    def longest(self) -> int:
        """The most tokens that a proposal may have."""
        return getattr(self.params, self.length_key, 0) if self.length_key else _UNLIMITED

    @property
    def length_key(self) -> str | None:
        """The setting that limits the length of drafts; None if there is none."""
        return KINDS[self.name].limit or None

    def written(self, shown: Collection[str] = ()) -> str:
        """Like `str`, but with the settings in `shown` (KEY or NAME.KEY) even if they have their defaults."""
        own = [key.removeprefix(f"{self.name}.") for key in shown]
        return ":".join([self.name, *_changed(self.params, own)])

    def __str__(self) -> str:
        return self.written()


@dataclass(frozen=True, slots=True)
class StrategySpec:
    """A parsed strategy: drafters in order of precedence, and the settings of the whole run."""

    parts: tuple[StrategyPart, ...] = ()
    verification: Rule | None = None  # None: by temperature
    length: LengthRule = Fixed()  # noqa: RUF009 # frozen

    @classmethod
    def parse(cls, text: str) -> StrategySpec:
        """Read a spec; raises SettingError that lists what is allowed."""
        parts: list[StrategyPart] = []
        run: dict[str, str] = {}
        before = ""
        for written in text.strip().split("+"):
            name, *pairs = (word.strip() for word in written.split(":"))
            values: dict[str, str] = {}
            for key, value in _split_pairs(pairs):
                if values.setdefault(key, value) != value:
                    raise SettingError(f"{key} is given as {values[key]} and as {value}.", "Give it once.")
            for key in run_keys():
                if key in values:
                    value = values.pop(key)
                    if run.setdefault(key, value) != value:
                        raise SettingError(
                            f"{key} is given as {run[key]} and as {value}.",
                            "It applies to the whole run: give it once.",
                        )
            part = _parse_part(unquote(name), values, before)
            if part is not None:
                parts.append(part)
            before = pairs[-1] if pairs else ""
        _check_order(parts, text)
        _check_choice("verify", run.get("verify"), RULES)
        return cls(tuple(parts), RULES.get(run.get("verify", "")), _parse_length(run))

    def written(self, shown: Collection[str] = ()) -> str:
        """Like `str`, but with the settings in `shown` (KEY or PART.KEY) even if they have their defaults."""
        written = "+".join(part.written(shown) for part in self.parts) or NONE
        if self.verification is not None:
            written += f":verify={self.verification}"
        if self.length != Fixed() or "length" in shown:
            written += f":length={self.length.name}"
        return written + "".join(f":{pair}" for pair in _changed(self.length, shown))

    def __str__(self) -> str:
        return self.written()

    def beside(self, other: StrategySpec) -> str:
        """Like `str`, but with every setting that differs from the same strategy's in `other`: beside
        draft-simple:n_max=4 the name draft-simple alone would not say what changes."""
        theirs = {part.name: part.params for part in other.parts}
        shown = {
            f"{part.name}.{param.name}"
            for part in self.parts
            if part.name in theirs
            for param in params_of(type(part.params))
            if getattr(part.params, param.name) != getattr(theirs[part.name], param.name)
        }
        return self.written(shown | ({"length"} if self.length != other.length else set()))

    @property
    def needs_draft(self) -> bool:
        return any(KINDS[part.name].needs_draft for part in self.parts)

    @property
    def is_synthetic(self) -> bool:
        """Whether it drafts from a rehearsal of the answer."""
        return any(KINDS[part.name].is_synthetic for part in self.parts)

    def without_draft(self) -> StrategySpec | None:
        """The spec without the strategies that need a draft model; None if no strategy is left."""
        parts = tuple(part for part in self.parts if not KINDS[part.name].needs_draft)
        return replace(self, parts=parts) if parts or not self.parts else None

    def verification_at(self, temperature: float) -> Rule:
        """The rule in use; raises SettingError if the chosen rule does not suit the temperature."""
        rule = self.verification
        if rule is None:
            return default_rule(temperature, keeps_text=self.is_synthetic)  # it drafts what was rehearsed
        if temperature > 0 and self.is_synthetic and not (rule.keeps_text and rule.any_temperature):
            raise SettingError(
                f"oracle drafts the answer itself, but verify={rule} may change it.",
                "Use verify=match, or temperature 0.",
            )
        if temperature > 0 and not rule.any_temperature:
            raise SettingError(
                f"verify={rule} needs temperature 0, not {temperature:g}.",
                "Set the temperature to 0, or use verify=speculative or verify=match.",
            )
        return rule

    def check_heads(self, pair: PairInfo, has_mtp: bool) -> None:
        """Raise SettingError if a strategy cannot draft with this draft, or needs an MTP head and none is
        loaded."""
        draft = pair.draft
        serves = HEAD_STRATEGIES.get(draft.architecture) if draft is not None else None
        for name, kind in ((part.name, KINDS[part.name]) for part in self.parts):
            if kind.needs_mtp and not has_mtp:
                raise SettingError(
                    f"No MTP head of {pair.target.name} is loaded.",
                    "Choose a different strategy, or a file with such a head.",
                )
            if draft is None or not kind.needs_draft:
                continue
            if serves and name != serves:
                raise SettingError(
                    f"{name} cannot draft with {draft.file}, which reads the target.", f"Choose {serves}."
                )
            if not serves and kind.is_head:
                raise SettingError(
                    f"{name} needs a draft that was trained for this target, but {draft.file} is an "
                    "independent model.",
                    "Choose draft-simple, or load such a file as the draft.",
                )

    def with_length(self, name: str) -> StrategySpec:
        """The spec with a different length rule; the rule in use keeps its settings."""
        return self if name == self.length.name else replace(self, length=_parse_length({"length": name}))

    def limits(self, relative_size: float = 0.0) -> list[StrategyLimits]:
        """What each strategy may draft; `relative_size` is the draft model's or head's / the target's."""
        return [
            StrategyLimits(
                part.name,
                part.shortest,
                part.longest,
                relative_size if KINDS[part.name].by_model else 0.0,
                KINDS[part.name].is_head,
            )
            for part in self.parts
        ]

    def length_fold(self) -> LengthFold | None:
        """Its length rule's state in recorded rounds; None if a record does not determine it."""
        return self.length.fold(self.limits()) if self.parts else None

    def check_lengths(self) -> None:
        """Raise SettingError if a length rule's first or least length is above every strategy's limit."""
        longest = max((part.longest for part in self.parts), default=0)
        for param in params_of(type(self.length)) if longest else ():
            value = getattr(self.length, param.name)
            if param.unit == "tokens" and param.default != value > longest:
                raise SettingError(
                    f"{param.name}={value} is above the longest draft, {longest} tokens.",
                    f"Lower {param.name}, or allow longer drafts.",
                )


def known_spec(written: str) -> StrategySpec | None:
    """A written spec; None for one of a different version."""
    try:
        return StrategySpec.parse(written)
    except UserError:
        return None


def is_synthetic(written: str) -> bool:
    """Whether a written spec drafts from a rehearsal of the answer; False for one of a different version."""
    spec = known_spec(written)
    return spec is not None and spec.is_synthetic


def undrafted(strategy: str) -> str:
    """A strategy spec without the strategies that need a draft model; ngram-mod if none is left."""
    return str(StrategySpec.parse(strategy).without_draft() or UNDRAFTED)


def drafting_with(strategy: str, architecture: str) -> str:
    """A strategy spec with the draft strategy for files of this architecture; settings that both have
    stay."""
    spec, name = StrategySpec.parse(strategy), HEAD_STRATEGIES.get(architecture, DRAFT_SIMPLE)
    keys = [param.name for param in params_of(KINDS[name].params)]

    def suited(part: StrategyPart) -> StrategyPart:
        if part.name == name or not KINDS[part.name].needs_draft:
            return part
        kept = {key: getattr(part.params, key) for key in keys if hasattr(part.params, key)}
        return StrategyPart(name, KINDS[name].params(**kept))

    return str(replace(spec, parts=tuple(map(suited, spec.parts))))


def is_by_clock(written: str) -> bool:
    """Whether times decide how long a written spec's drafts are; False for one of a different version."""
    spec = known_spec(written)
    return spec is not None and spec.length.by_clock


def length_fold(strategy: str) -> LengthFold | None:
    """The state of a written spec's length rule in recorded rounds. None if a record does not determine it,
    or the strategy is from a different version."""
    spec = known_spec(strategy)
    try:
        return spec.length_fold() if spec is not None else None
    except UserError:  # a plug-in's rule that cannot be made
        return None


def lengths_of(strategy: str, rounds: Iterable[Round]) -> list[LengthAt]:
    """The state of the length rule at every round; empty if `length_fold` is None."""
    fold = length_fold(strategy)
    return [fold.add(round) for round in rounds] if fold is not None else []


def longest_draft(strategy: str) -> int | None:
    """The most tokens that a draft of a strategy spec may have; None if that is not known."""
    spec = known_spec(strategy)
    parts = spec.parts if spec is not None else ()
    return max((getattr(part.params, part.length_key or "", 0) for part in parts), default=0) or None


def _changed(params: Any, shown: Collection[str]) -> list[str]:
    """The settings that differ from the default or are `shown`, in their written form."""
    return [
        f"{param.name}={quote(param.format(getattr(params, param.name)))}"
        for param in params_of(type(params))
        if getattr(params, param.name) != param.default or param.name in shown
    ]


def _parse_length(run: dict[str, str]) -> LengthRule:
    """The length rule among the settings of a run, with its own settings."""
    name = run.get("length", Fixed.name)
    _check_choice("length", name, LENGTHS)
    owners = {param.name: (rule.name, param) for rule in LENGTHS.values() for param in params_of(rule)}
    given = {key: owners[key][1].parse(value) for key, value in run.items() if key in owners}
    for key in given:
        if (owner := owners[key][0]) != name:
            raise SettingError(f"{key} belongs to length={owner}.", f"Add :length={owner}, or leave it out.")
    return LENGTHS[name](**given)


def quote(value: str) -> str:
    """A value in the grammar of strategy specs."""
    return value.replace("%", "%25").replace(":", "%3A").replace("+", "%2B")


def _split_pairs(pairs: Iterable[str]) -> Iterator[tuple[str, str]]:
    before = ""
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            hint = f"Write settings as key=value.{_meant(before, ':', pair)}"
            raise SettingError(f"“{pair}” is not a setting.", hint)
        before = pair
        yield unquote(key), unquote(value)


def _meant(before: str, sign: str, behind: str) -> str:
    """A hint for a value that contains a separator of the grammar; empty if no setting precedes it."""
    if "=" not in before:
        return ""
    return f" In values “:” is written %3A, “+” %2B and “%” %25: {before}{quote(sign)}{behind}."


def _parse_part(name: str, values: dict[str, str], before: str) -> StrategyPart | None:
    """Parse a part; None for `none`. `before` is the setting that precedes the part."""
    if name == NONE:
        if values:
            raise SettingError(
                f"none has no setting {next(iter(values))}.", f"Allowed: {', '.join(run_keys())}."
            )
        return None
    if name not in KINDS:
        said = f"There is no strategy “{name}”."
        allowed = ", ".join([NONE, *KINDS])
        hint = f"Allowed: {allowed}.{_meant(before, '+', name)}"
        raise SettingError(said, hint)
    kind = KINDS[name]
    known = {param.name: param for param in params_of(kind.params)}
    for key in values:
        if key not in known:
            allowed = ", ".join([*known, *run_keys()])
            raise SettingError(f"{name} has no setting “{key}”.", f"Allowed: {allowed}.")
    params = kind.params(**{key: known[key].parse(value) for key, value in values.items()})
    check_params(params)
    return StrategyPart(name, params)


def _check_order(parts: list[StrategyPart], text: str) -> None:
    names = [part.name for part in parts]
    if "+" in text and len(names) < text.count("+") + 1:
        raise SettingError("none cannot be mixed with other strategies.", "Leave it out.")
    for name in names:
        if names.count(name) > 1:
            raise SettingError(f"{name} is given twice.", "Give each strategy once.")
    needs = [KINDS[name].needs_draft for name in names]
    if needs != sorted(needs):
        raise SettingError(
            "A draft model comes after the strategies that need none.",
            f"Write {'+'.join(sorted(names, key=lambda name: KINDS[name].needs_draft))}.",
        )


def _check_choice(key: str, name: str | None, known: Iterable[str]) -> None:
    if name is not None and name not in known:
        raise SettingError(f"{key} cannot be {name!r}.", f"Allowed: {', '.join(known)}.")
