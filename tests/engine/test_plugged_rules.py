"""Rules and lengths from a plug-in: engine, grammar, help, Inspector, traces and their check know them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.cli.answer.strategies import strategy_help
from app.engine.drafters.foreign import foreign_kinds
from app.engine.engine import Engine
from app.engine.errors import DrafterError, SettingError
from app.engine.explain.what_if import what_if, with_settings
from app.engine.fates import Verdict
from app.engine.lengths.registry import LENGTHS
from app.engine.plugins import use_drafters
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace, read_trace, write_trace
from app.engine.rules.registry import RULES
from app.engine.strategy import StrategySpec, length_fold, lengths_of
from app.engine.types import GenerationRequest, Sampling
from app.lab.axes import with_value
from app.ui.inspector.contents import cards_of
from tests.answers import answer

EXAMPLES = Path(__file__).parents[2] / "resources" / "plugins"
HALVING, TYPICAL = (str(EXAMPLES / f"{name}.py") for name in ("halving", "typical"))
WARM = Sampling(temperature=0.5, seed=5)


@pytest.fixture(autouse=True)
def plugged() -> Iterator[None]:
    assert use_drafters([HALVING, TYPICAL]) == {}
    yield
    use_drafters([])
    assert foreign_kinds() == []


def test_a_length_rule_of_a_plug_in_works_everywhere(engine: Engine) -> None:
    strategy = "draft-simple:n_max=8:length=halving:halving_start=5"
    assert str(StrategySpec.parse(strategy)) == strategy
    assert with_value(strategy, "halving_start", "2").endswith("halving_start=2")
    assert "halving_start=4" in strategy_help()
    trace = answer(engine, strategy=strategy, max_tokens=60, cold=True)
    assert recheck(trace) == []
    states = lengths_of(strategy, trace.rounds)
    assert [state.k for state in states] == [round.k for round in trace.rounds]
    assert states[0].k == 5 and len({state.k for state in states}) > 2
    first, *rest = trace.rounds
    altered = Trace(trace.header, [replace(first, k=(first.k or 0) + 1), *rest], trace.totals)
    assert any("its drafts give" in problem for problem in recheck(altered))
    spec = StrategySpec.parse(trace.header.strategy)
    assert what_if(trace, with_settings(spec, longest=2)).rounds >= len(trace.rounds)
    with pytest.raises(SettingError, match="belongs to length=halving"):
        StrategySpec.parse("suffix:halving_start=2")


def test_a_verification_rule_of_a_plug_in_works_everywhere(engine: Engine, tmp_path: Path) -> None:
    strategy = "prompt-lookup:max_ngram_size=1:verify=typical"
    trace = answer(engine, strategy=strategy, max_tokens=80, sampling=WARM)
    assert trace.header.verification == "typical" and recheck(trace) == []
    judged = [token for round in trace.rounds for token in round.drafted if token.u is not None]
    assert {token.verdict for token in judged} == {Verdict.ACCEPTED, Verdict.REJECTED}
    sums = [line for round in trace.rounds for card in cards_of(round, trace.header) for line in card.sums]
    assert any(line.name == "threshold, p" and line.verdict == "accepted" for line in sums)
    at = next(at for at, round in enumerate(trace.rounds) if round.rejected)
    halved = (replace(token, u=(token.p or 0) / 2) for token in trace.rounds[at].drafted)
    rounds = [replace(round, drafted=tuple(halved)) if round.index == at else round for round in trace.rounds]
    assert any("its threshold" in problem for problem in recheck(Trace(trace.header, rounds, trace.totals)))

    file = tmp_path / "typical.jsonl"
    write_trace(file, trace)
    use_drafters([HALVING])  # the file opens without its rule, and the check says so
    found = read_trace(file)
    assert recheck(found) == ["Header: the rule typical is not known here, so no verdict was computed again."]
    assert all(cards_of(round, found.header) for round in found.rounds if round.drafted)


def test_an_error_of_a_rule_ends_the_answer_with_a_sentence(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    text = Path(TYPICAL).read_text(encoding="utf-8").replace('"typical"', '"broken"')
    file.write_text(text.replace("least = threshold(p.p)", "least = 1 / 0"), encoding="utf-8")
    assert use_drafters([str(file)]) == {}
    with pytest.raises(DrafterError, match=r"verify=broken raised ZeroDivisionError.*broken\.py, line"):
        engine.answer(GenerationRequest(prompt="abcabc", strategy="draft-simple:verify=broken"))


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        ("None", "gave None instead of an Outcome"),
        ("Outcome((), -1, 'plain')", "gave the id -1, but"),
        ("Outcome((), 10**6, 'plain')", "gave the id 1,000,000, but"),
        ("Outcome((), 'a', 'plain')", "gave an invalid outcome: Expected `int`"),
        ("Outcome((), 1, 'bonus')", "calls the token after 0 of 0 accepted ones bonus"),
        ("Outcome((yes,), 1, 'bonus')", "judged 1 of 0 tokens, and accepted 1"),
        ("Outcome((no, yes), 1, 'resampled')", "accepted a token after one that it rejected"),
    ],
)
def test_an_outcome_that_no_round_can_have_is_refused(
    engine: Engine, tmp_path: Path, outcome: str, told: str
) -> None:
    file = tmp_path / "broken.py"
    text = Path(TYPICAL).read_text(encoding="utf-8").replace('"typical"', '"broken"')
    lines = f"yes, no = Judgement(True), Judgement(False)\n        return {outcome}\n        judged = []"
    file.write_text(text.replace("judged = []", lines, 1), encoding="utf-8")
    assert use_drafters([str(file)]) == {}
    with pytest.raises(DrafterError, match=re.escape(f"verify=broken {told}")):
        engine.answer(GenerationRequest(prompt="xyz", strategy="prompt-lookup:verify=broken"))


def test_after_an_error_of_a_length_rule_nothing_is_drafted(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    text = Path(HALVING).read_text(encoding="utf-8").replace('"halving"', '"broken"')
    file.write_text(text.replace("k = self._k[last.name]\n", "k = 1 // 0\n"), encoding="utf-8")
    assert use_drafters([str(file)]) == {}
    trace = answer(engine, strategy="draft-simple:length=broken", max_tokens=12)
    assert trace.rounds[0].drafted and not any(round.drafted for round in trace.rounds[1:])
    assert trace.rounds[1].draft_end.startswith("broken raised ZeroDivisionError")


def test_a_file_with_two_rules_is_read_again_as_a_whole(tmp_path: Path) -> None:
    file, head = tmp_path / "two.py", "from __future__ import annotations\n"
    both = [Path(each).read_text(encoding="utf-8").replace(head, "") for each in (HALVING, TYPICAL)]
    file.write_text(head + "\n".join(both), encoding="utf-8")
    for _ in range(2):
        assert use_drafters([str(file)]) == {}
        assert "halving" in LENGTHS and "typical" in RULES
        with file.open("a", encoding="utf-8") as text:
            text.write("# another version\n")
    with file.open("a", encoding="utf-8") as text:
        text.write("RULE = None\n")
    for _ in range(2):
        assert "cannot be used" in use_drafters([str(file)])[str(file)].message
        assert "halving" not in LENGTHS and "typical" not in RULES


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("class R(Rule):\n    name = 'greedy'\nRULE = R\n", "the name “greedy” is taken (Draftscope)"),
        ("class R(Rule):\n    name = 'mine'\n    summary = 'x'\nRULE = R\n", "R has no judge and no recheck"),
        ("class L(LengthRule):\n    name = 'mine'\n    summary = 'x'\nLENGTH = L\n", "L has no make"),
        (
            "@dataclass(frozen=True)\nclass L(LengthRule):\n    name = 'mine'\n    summary = 'x'\n"
            "    n_max: int = param(1, 'x')\n    def make(self): return None\nLENGTH = L\n",
            "the parameter n_max is already in use",
        ),
    ],
)
def test_what_is_no_rule_is_refused_in_one_sentence(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "bad.py"
    names = "from dataclasses import dataclass\nfrom app.engine.plugins import LengthRule, Rule, param\n"
    file.write_text(names + text, encoding="utf-8")
    assert why in use_drafters([str(file)])[str(file)].message


def test_a_record_is_read_if_its_rule_cannot_be_made(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(
        "from dataclasses import dataclass\nfrom app.engine.plugins import LengthRule\n"
        "@dataclass(frozen=True)\nclass Broken(LengthRule):\n    name = 'broken'\n    summary = 'x'\n"
        "    def make(self): raise OSError('no table')\nLENGTH = Broken\n",
        encoding="utf-8",
    )
    assert use_drafters([str(file)]) == {}
    assert str(StrategySpec.parse("suffix:length=broken")) == "suffix:length=broken"
    assert length_fold("suffix:length=broken") is None
