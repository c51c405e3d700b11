"""Verdicts on draft sizes."""

from __future__ import annotations

import pytest

from app.engine.explain.facts import size_verdict


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.004, "0.4 % of the target's size: a small draft costs little"),
        (0.05, "5 % of the target's size: a good size"),
        (0.2, "20 % of the target's size: a good size"),
        (0.3, "30 % of the target's size: it may pay"),
        (0.45, "45 % of the target's size: it pays only if nearly all"),
        (0.6, "60 % of the target's size: it will hardly save time"),
        (28.25, "28 times the target's size: it will hardly save time"),
    ],
)
def test_a_drafts_share_of_the_target_is_judged(share: float, said: str) -> None:
    assert size_verdict(share).startswith(said)


def test_another_family_is_named() -> None:
    assert size_verdict(0.1, "llama", "qwen2").endswith("; it is from a different family (qwen2, not llama)")
    assert "family" not in size_verdict(0.1, "llama", "llama") + size_verdict(0.1)
