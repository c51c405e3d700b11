"""The bundled pair's files and prompts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.demo import DemoPrompt, read_demo
from app.saved.settings import Settings

ROOT = Path(__file__).parents[2]
PAIR = ROOT / "resources" / "demo_pair"
MOST_BYTES = 40_000_000


@pytest.fixture(scope="module")
def card() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((PAIR / "pair.json").read_text(encoding="utf-8"))
    return found


def test_the_files_are_those_of_the_card(card: dict[str, Any]) -> None:
    for entry in card["files"].values():
        content = (PAIR / entry["file"]).read_bytes()
        assert len(content) == entry["bytes"]
        assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    assert {entry["file"] for entry in card["files"].values()} == {path.name for path in PAIR.glob("*.gguf")}


def test_the_card_tells_the_files_that_are_here(card: dict[str, Any]) -> None:
    told = (PAIR / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert all(entry["sha256"] in told for entry in card["files"].values())


def test_target_and_draft_are_small_enough_for_a_repository(card: dict[str, Any]) -> None:
    assert sum(card["files"][role]["bytes"] for role in ("target", "draft")) <= MOST_BYTES


def test_every_prompt_says_what_to_look_for(card: dict[str, Any]) -> None:
    """Sixteen, each with words of its own, and not all asked alike."""
    prompts = read_demo(ROOT / "resources")
    assert prompts == msgspec.convert(card["prompts"], tuple[DemoPrompt, ...])
    assert len(prompts) == 16
    assert {prompt.draft for prompt in prompts} == {"draft.gguf", "small-draft.gguf"}
    for demo in prompts:
        assert all(text.strip() == text != "" for text in (demo.category, demo.title, demo.prompt, demo.look))
    for field in ("title", "look"):
        assert len({getattr(demo, field) for demo in prompts}) == len(prompts)
    assert len({demo.prompt for demo in prompts}) == len(prompts) - 1, "one is asked again with another seed"
    assert prompts[0].strategy == Settings().strategy, "the first one is asked with what a first start has"
    assert len({demo.strategy for demo in prompts}) >= 5
    assert {demo.temperature for demo in prompts} == {0.0, 1.0}
    assert any("length=auto" in demo.strategy for demo in prompts)
    assert any("verify=block" in demo.strategy for demo in prompts)
    assert any(demo.mode == "completion" for demo in prompts)
    assert any(demo.strategy != "none" and not demo.spec.needs_draft for demo in prompts)
