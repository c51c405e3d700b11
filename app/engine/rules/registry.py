"""The verification rules by name. Grammar, forms and help texts are generated from these entries."""

from __future__ import annotations

from collections.abc import Iterator

from app.engine.rules.base import Drafted, Outcome, Rule
from app.engine.rules.block import BlockRule
from app.engine.rules.checks import Check, Judged
from app.engine.rules.greedy import GreedyRule
from app.engine.rules.match import MatchRule
from app.engine.rules.speculative import SpeculativeRule

GREEDY, SPECULATIVE, MATCH, BLOCK = GreedyRule(), SpeculativeRule(), MatchRule(), BlockRule()
RULES: dict[str, Rule] = {rule.name: rule for rule in (GREEDY, SPECULATIVE, MATCH, BLOCK)}


def default_rule(temperature: float, *, keeps_text: bool = False) -> Rule:
    """Greedy at temperature 0, else speculative, or match if the text must equal that without drafting."""
    if temperature == 0:
        return GREEDY
    return MATCH if keeps_text else SPECULATIVE


def rule_of(name: str) -> Rule:
    """The rule of a record, which may come from a different version or from a missing plug-in."""
    return RULES.get(name) or UnknownRule(name)


class UnknownRule(Rule):
    """A rule that this version lacks: its record is shown, and nothing is recomputed."""

    summary = ""
    gives = frozenset()

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc] # that of the record

    def judge(self, draft: Drafted) -> Outcome:
        raise NotImplementedError

    def recheck(self, at: Judged, check: Check) -> Iterator[str]:
        return iter(())
