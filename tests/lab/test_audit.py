"""The audit on the real engine: it finds what is planted there, and nothing where nothing is."""

from __future__ import annotations

from typing import Any

import pytest

from app.engine import Engine, GenerationRequest, Sampling
from app.engine.errors import SettingError
from app.engine.process.messages import JudgedRow
from app.engine.types import Alternatives
from app.lab.audit import _apart, audit
from app.lab.audit_finding import Audit, AuditFinding, Cause, audit_page
from tests.audits import PLANTS, audited


def request_of(strategy: str, prompt: str = "abcabcabd abc", **sampling: Any) -> GenerationRequest:
    return GenerationRequest(
        prompt=prompt,
        strategy=strategy,
        sampling=Sampling(seed=5, **sampling),
        max_tokens=40,
        ignore_eos=True,
    )


@pytest.mark.parametrize(
    ("strategy", "temperature", "finding"),
    [
        ("draft-simple:n_max=4", 0.0, AuditFinding.SAME),
        ("prompt-lookup:verify=match", 0.8, AuditFinding.SAME),
        ("draft-simple:n_max=4:sample=1:verify=block", 0.8, AuditFinding.LAW),
    ],
)
def test_a_sound_engine_has_no_fault(
    engine: Engine, strategy: str, temperature: float, finding: AuditFinding
) -> None:
    found, _ = audited(engine, request_of(strategy, temperature=temperature))
    # On another processor a tie may fall otherwise.
    assert found.finding is finding or found.finding is AuditFinding.ROUNDING, found.words
    assert found.rows is not None and found.rows.most < found.rows.allowed


CAUSES = dict(zip(PLANTS, (Cause.CACHE, Cause.CACHE, Cause.RULE, Cause.RULE), strict=True))


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize(
    ("strategy", "temperature"),
    [("draft-simple:n_max=4", 0.0), ("draft-simple:n_max=4:sample=1:verify=match", 0.8)],
)
def test_a_planted_fault_is_found(demo_engine: Engine, plant: str, strategy: str, temperature: float) -> None:
    extra = {"repeat_penalty": 1.2} if "penalty" in plant else {}
    found, acted = audited(
        demo_engine,
        request_of(strategy, "Tell me a short story about", temperature=temperature, **extra),
        plant,
    )
    assert acted, "the fault had nothing to act on"
    assert (found.finding, found.cause) == (AuditFinding.FAULT, CAUSES[plant]), found.words
    if found.problems and found.parting:
        assert "The texts diverge at token" in found.words, "ids alone say little"


@pytest.mark.parametrize(
    ("rule", "filtered"), [("match", {"min_p": 0.05}), ("speculative", {"typical_p": 0.9})]
)
def test_a_filter_hides_no_fault(demo_engine: Engine, rule: str, filtered: dict[str, float]) -> None:
    """It may leave one token where a penalty that is applied twice drops the other."""
    asked = request_of(
        f"draft-simple:n_max=4:verify={rule}",
        "Tell me a short story about",
        temperature=0.8,
        frequency_penalty=0.3,
        **filtered,
    )
    found, acted = audited(demo_engine, asked, "a penalty applied twice")
    assert acted and (found.finding, found.cause) == (AuditFinding.FAULT, Cause.RULE), found.words
    assert audited(demo_engine, asked)[0].finding in (
        AuditFinding.SAME,
        AuditFinding.LAW,
        AuditFinding.ROUNDING,
    )


def test_a_token_that_fell_out_of_the_list_differs() -> None:
    def row(*ids: int) -> Alternatives:
        p = [2.0**-place for place in range(1, 11)]
        return Alternatives(ids, (b"",) * 10, tuple(p))

    def apart(one: Alternatives, other: Alternatives) -> float:
        return _apart(one, JudgedRow(other, other), Sampling())

    as_read = row(*range(10))
    assert apart(as_read, as_read) == 0
    assert apart(row(*range(9), 77), as_read) == 0, "as good as the tenth"
    assert apart(row(0, 1, 2, 3, 5, 6, 7, 8, 9, 77), as_read) > 3, "the fifth is none of the ten"


def test_rounding_is_told_with_its_gap(engine: Engine) -> None:
    found, acted = audited(engine, request_of("draft-simple:n_max=4"), "rounding")
    assert acted and found.finding is AuditFinding.ROUNDING, found.words
    assert found.parting is not None and len(found.parting.shapes) == 5
    gap = abs(found.parting.shapes[-1].lead or 0.0)
    assert 0 < gap < 0.25 and f"{gap:.4f}" in found.words
    page = audit_page(found, lambda path: f"digest of {path[-4:]}")
    for told in ("rounding", "judged again, in a pass of", "digest of gguf", "`greedy`", "abcabcabd abc"):
        assert told in page
    assert all(f"({token.id})" in page for token in found.parting.tokens if token)


def test_what_cannot_be_audited_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(SettingError, match="no drafting"):
        next(audit(request_of("none")))
    with pytest.raises(SettingError, match="temperature 0"):
        next(audit(request_of("server", temperature=0.8)))


def test_tokens_that_look_like_markup_stay_text(engine: Engine) -> None:
    found, _ = audited(engine, request_of("prompt-lookup", prompt="a```b|c `x` <b>"))
    page = audit_page(Audit(found.finding, "“`*” |", *found[2:]))
    assert "“\\`\\*” \\|" in page and "````\na```b|c `x` <b>\n````" in page
