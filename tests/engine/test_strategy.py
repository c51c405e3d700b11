"""The strategy grammar: what is printed is read back, and what is wrong is refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.drafters.base import StrategyKind
from app.engine.drafters.draft_simple import DraftSimpleParams
from app.engine.drafters.prompt_lookup import PromptLookupParams
from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.engine.lengths.ewma import Ewma
from app.engine.lengths.registry import LENGTHS
from app.engine.params import params_of
from app.engine.rules.registry import GREEDY, MATCH, RULES, SPECULATIVE
from app.engine.strategy import StrategyPart, StrategySpec
from app.engine.types import Sampling

lookups = st.builds(
    PromptLookupParams, max_ngram_size=st.integers(1, 64), num_pred_tokens=st.integers(1, 512)
).map(lambda params: StrategyPart("prompt-lookup", params))
greedy_drafts = st.builds(
    DraftSimpleParams, n_max=st.integers(1, 512), n_min=st.integers(0, 512), p_min=st.floats(0, 1)
)
sampled_drafts = st.builds(DraftSimpleParams, n_max=st.integers(1, 512), sample=st.just(True))
drafts = st.one_of(greedy_drafts, sampled_drafts).map(lambda params: StrategyPart("draft-simple", params))
parts = st.one_of(
    st.just(()),
    lookups.map(lambda part: (part,)),
    drafts.map(lambda part: (part,)),
    st.tuples(lookups, drafts),
)
specs = st.builds(StrategySpec, parts, st.one_of(st.none(), st.sampled_from(list(RULES.values()))))


@given(specs)
def test_what_is_printed_is_read_back(spec: StrategySpec) -> None:
    assert StrategySpec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("none", "none"),
        ("draft-simple", "draft-simple"),
        ("draft-simple:n_max=3:p_min=0", "draft-simple"),
        (" draft-simple : n_max=8 : p_min=0.50 ", "draft-simple:n_max=8:p_min=0.5"),
        ("prompt-lookup:num_pred_tokens=8:max_ngram_size=2", "prompt-lookup:max_ngram_size=2"),
        ("prompt-lookup+draft-simple:sample=1", "prompt-lookup+draft-simple:sample=1"),
        ("none:verify=match", "none:verify=match"),
        ("draft-simple:verify=match:n_max=4", "draft-simple:n_max=4:verify=match"),
        ("prompt-lookup:verify=match+draft-simple:verify=match", "prompt-lookup+draft-simple:verify=match"),
        ("draft-simple:length=fixed", "draft-simple"),
        ("draft-simple:n%5Fmax=4", "draft-simple:n_max=4"),
    ],
)
def test_the_grammar(text: str, printed: str) -> None:
    assert str(StrategySpec.parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", ["none", "draft-simple", "prompt-lookup"]),
        ("draft-clever", ["draft-clever", "none", "draft-simple", "prompt-lookup"]),
        ("Draft-Simple", ["Draft-Simple", "draft-simple"]),
        ("draft-simple:k=3", ["“k”", "n_max, n_min, p_min, sample", "verify", "length"]),
        ("none:n_max=3", ["n_max", "verify"]),
        ("draft-simple:n_max=0", ["n_max", "0", "from 1 to 512"]),
        ("draft-simple:n_max=513", ["n_max", "513", "from 1 to 512"]),
        ("draft-simple:n_max=3.5", ["n_max", "3.5", "whole number"]),
        ("draft-simple:n_max=", ["n_max", "whole number"]),
        ("draft-simple:p_min=1.01", ["p_min", "1.01", "from 0 to 1"]),
        ("draft-simple:p_min=nan", ["p_min", "nan"]),
        ("draft-simple:sample=yes", ["sample", "yes", "0 or 1"]),
        ("draft-simple:sample=1:n_min=2", ["n_min", "sample=1"]),
        ("draft-simple:n_max", ["n_max", "key=value"]),
        ("draft-simple:=3", ["=3", "key=value"]),
        ("draft-simple:", ["key=value"]),
        ("draft-simple+", ["none", "draft-simple"]),
        ("draft-simple+none", ["none"]),
        ("none+none", ["none"]),
        ("draft-simple+prompt-lookup", ["prompt-lookup+draft-simple"]),
        ("draft-simple+draft-simple:n_max=2", ["draft-simple", "twice"]),
        ("prompt-lookup+prompt-lookup+draft-simple", ["prompt-lookup", "twice"]),
        ("draft-simple:n_max=2:n_max=4", ["n_max", "2", "4"]),
        ("none:verify=match:verify=speculative", ["verify", "match", "speculative"]),
        ("prompt-lookup:verify=match+draft-simple:verify=greedy", ["verify", "match", "greedy"]),
        ("none:verify=blocks", ["verify", "blocks", ", ".join(RULES)]),
        ("none:length=long", ["length", "long", ", ".join(LENGTHS)]),
        ("none:length=", ["length", "fixed"]),
    ],
)
def test_refusals_name_what_is_wrong_and_what_is_allowed(text: str, named: list[str]) -> None:
    with pytest.raises(SettingError) as refused:
        StrategySpec.parse(text)
    for word in named:
        assert word in str(refused.value)
    assert refused.value.message.endswith(".")
    assert refused.value.hint.endswith(".")


@given(st.text(alphabet="nonedraft-simple:=+%n_max0123456789. ", max_size=40))
def test_any_other_text_is_refused_and_never_breaks(text: str) -> None:
    try:
        spec = StrategySpec.parse(text)
    except SettingError as refused:
        assert refused.message
    else:
        assert StrategySpec.parse(str(spec)) == spec


def test_the_rule_follows_the_temperature() -> None:
    assert StrategySpec.parse("draft-simple").verification_at(0) is GREEDY
    assert StrategySpec.parse("draft-simple").verification_at(0.8) is SPECULATIVE
    match = StrategySpec.parse("draft-simple:verify=match")
    assert match.verification_at(0) is match.verification_at(0.8) is MATCH
    with pytest.raises(SettingError, match=r"greedy.*temperature 0"):
        StrategySpec.parse("none:verify=greedy").verification_at(0.8)


def test_only_a_draft_model_strategy_needs_a_draft() -> None:
    needs = {name: StrategySpec.parse(name).needs_draft for name in ["none", *KINDS]}
    assert [name for name, needed in needs.items() if needed] == [
        "draft-simple", "draft-eagle3", "draft-dflash", "draft-dspark",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shortest", "longest"),
    [
        ("ngram-mod", 1, 64),  # its n_min looks at the draft before it is cut
        ("ngram-mod:n_max=16", 1, 16),
        ("ngram-simple", 1, 48),
        ("prompt-lookup", 1, 8),
        ("ngram-cache:n_draft=5", 1, 5),
        ("draft-simple", 1, 3),
        ("draft-simple:n_max=8:n_min=5", 5, 8),
        ("draft-simple:n_max=4:n_min=9", 4, 4),
    ],
)
def test_how_long_drafts_may_be(text: str, shortest: int, longest: int) -> None:
    (part,) = StrategySpec.parse(text).parts
    assert (part.shortest, part.longest) == (shortest, longest)


def test_every_strategy_names_the_setting_that_limits_its_drafts() -> None:
    for kind in KINDS.values():
        assert kind.limit in [param.name for param in params_of(kind.params)], kind.name
    (part,) = StrategySpec.parse("ngram-simple").parts
    assert part.length_key == "size_m"


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        (r"ngram-cache:lookup_cache_static=C:\\old.bin", r"lookup_cache_static=C%3A\\old.bin"),
        ("ngram-cache:lookup_cache_static=/c++/old.bin", "lookup_cache_static=/c%2B"),
        ("ngram-cache:lookup_cache_static=a+b.bin", "lookup_cache_static=a%2Bb.bin"),
    ],
)
def test_a_value_that_was_torn_apart_is_told_how_to_be_written(text: str, encoded: str) -> None:
    with pytest.raises(SettingError) as refused:
        StrategySpec.parse(text)
    assert "“:” is written %3A, “+” %2B and “%” %25" in refused.value.hint
    assert encoded in refused.value.hint


def test_settings_of_ewma_are_written_behind_its_rule() -> None:
    text = "suffix:length=ewma:ewma_start=5:ewma_weight=0.3"
    spec = StrategySpec.parse(text)
    assert spec.length == Ewma(ewma_start=5, ewma_weight=0.3)
    assert str(spec) == text
    assert str(StrategySpec.parse("suffix:length=ewma:ewma_start=3")) == "suffix:length=ewma"
    assert str(spec.with_length("auto")) == "suffix:length=auto"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("draft-simple:n_max=4:length=ewma:ewma_start=8", "ewma_start=8 is above the longest draft, 4"),
        ("draft-simple:n_max=4:length=ewma:ewma_min=5", "ewma_min=5 is above the longest draft, 4 tokens"),
        ("ngram-mod:n_max=64+draft-simple:n_max=4:length=ewma:ewma_start=8", ""),
        ("draft-simple:n_max=2:length=ewma", ""),
        ("draft-simple:n_max=4", ""),
    ],
)
def test_a_length_above_every_draft_is_refused_and_not_capped(text: str, said: str) -> None:
    spec = StrategySpec.parse(text)
    if not said:
        spec.check_lengths()
        return
    with pytest.raises(SettingError, match=said):
        spec.check_lengths()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("suffix:ewma_start=5", "ewma_start belongs to length=ewma"),
        ("suffix:length=auto:ewma_min=2", "ewma_min belongs to length=ewma"),
        ("suffix:length=ewma:ewma_weight=0", "ewma_weight cannot be"),
        ("suffix:length=ewma:ewma_lower=0.9", "ewma_lower=0.9 is above ewma_raise=0.7"),
    ],
)
def test_settings_of_ewma_that_cannot_be(text: str, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        StrategySpec.parse(text)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_lengths_and_thresholds_tell_what_is_usual(kind: StrategyKind) -> None:
    for param in params_of(kind.params):
        told = param.kind in (int, float) and "No effect" not in param.doc
        assert not told or "Usually" in param.doc, param.name


def test_sampler_settings_tell_what_is_usual() -> None:
    numbers = [param for param in params_of(Sampling) if param.kind in (int, float) and param.name != "seed"]
    assert len(numbers) > 12 and all("Usually" in param.doc for param in numbers)


def test_beside_a_setting_of_the_same_strategy_every_difference_is_written() -> None:
    now = StrategySpec.parse("draft-simple:n_max=4:length=auto")
    assert StrategySpec.parse("draft-simple").beside(now) == "draft-simple:n_max=3:length=fixed"
    assert StrategySpec.parse("draft-simple:n_max=4:p_min=0.5:length=auto").beside(now).count("n_max") == 1
    assert StrategySpec.parse("suffix").beside(StrategySpec.parse("none")) == "suffix"


@pytest.mark.parametrize("kind", [*KINDS.values()], ids=lambda kind: kind.name)
def test_help_of_a_strategy_has_no_unfilled_place(kind: StrategyKind) -> None:
    """A text with “{more}” in it was shown: the letter f before it was missing."""
    assert "{" not in kind.summary + "".join(param.doc for param in params_of(kind.params))
