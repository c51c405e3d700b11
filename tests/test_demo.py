"""Reading the bundled pair's card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.demo import read_demo
from app.engine.errors import UserError
from app.engine.types import Sampling

PROMPT = {
    "category": "count",
    "title": "Counting",
    "prompt": "Count from 1 to 9.",
    "look": "Digits.",
    "strategy": "draft-simple:n_max=4",
}


@pytest.fixture
def resources(tmp_path: Path) -> Path:
    (tmp_path / "demo_pair").mkdir()
    return tmp_path


def write(resources: Path, **changes: Any) -> None:
    files = {"target": {"file": "target.gguf", "bytes": 1}, "draft": {"file": "draft.gguf"}}
    files["small-draft"] = {"file": "small.gguf"}
    again = PROMPT | {"title": "Counting again"}
    card = {"name": "A pair", "files": files, "prompts": [PROMPT | changes, again]}
    (resources / "demo_pair" / "pair.json").write_text(json.dumps(card), encoding="utf-8")


def test_what_is_not_said_is_greedy_with_the_first_draft(resources: Path) -> None:
    write(resources)
    demo, _ = read_demo(resources)
    assert (demo.temperature, demo.draft_path) == (0.0, "bundled:demo_pair/draft.gguf")
    assert (demo.mode, demo.sampling(Sampling(top_k=5, seed=3))) == ("chat", Sampling(top_k=5, seed=3))
    assert demo.spec.needs_draft
    write(resources, temperature=1, draft="small.gguf", strategy="prompt-lookup", seed=7)
    demo, _ = read_demo(resources)
    assert demo.sampling(Sampling(top_k=5, seed=3)) == Sampling(temperature=1.0, top_k=5, seed=7)
    assert (demo.temperature, demo.draft_path) == (1.0, "bundled:demo_pair/small.gguf")
    assert not demo.spec.needs_draft


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"strategy": "magic"}, "magic"),
        ({"strategy": "draft-simple:n_max=0"}, "n_max"),
        ({"strategy": "draft-simple:verify=greedy", "temperature": 0.5}, "greedy"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": "warm"}, "temperature"),
        ({"seed": -2}, "seed"),
        ({"mode": "song"}, "song"),
        ({"title": "Counting again"}, "same title"),
        ({"draft": "big.gguf"}, "no file big.gguf"),
        ({"strategie": "none"}, "strategie"),
        ({"look": None}, "look"),
    ],
)
def test_a_prompt_that_cannot_be_asked_is_named(resources: Path, changes: dict[str, Any], said: str) -> None:
    write(resources, **changes)
    with pytest.raises(UserError) as caught:
        read_demo(resources)
    assert said in str(caught.value) and "pair.json is damaged" in str(caught.value)


def test_a_card_that_is_not_there_or_no_json(resources: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_demo(resources)
    (resources / "demo_pair" / "pair.json").write_text("{")
    with pytest.raises(UserError, match="is damaged"):
        read_demo(resources)
