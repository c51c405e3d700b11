"""The bundled pair's files, and the parts of its recipe that need no PyTorch."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec
import pytest

from app.demo import DemoPrompt, read_demo
from app.saved.settings import Settings
from tests.packaging.recipe import RECIPE, ROOT, in_recipe

PAIR = ROOT / "resources" / "demo_pair"
MOST_BYTES = 40_000_000
MADE = {"target.gguf", "draft.gguf", "small-draft.gguf"}  # by the recipe


@pytest.fixture(scope="module")
def card() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((PAIR / "pair.json").read_text(encoding="utf-8"))
    return found


def test_the_files_are_those_that_the_recipe_made(card: dict[str, Any]) -> None:
    for entry in card["files"].values():
        content = (PAIR / entry["file"]).read_bytes()
        assert len(content) == entry["bytes"]
        assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    assert {entry["file"] for entry in card["files"].values()} == {path.name for path in PAIR.glob("*.gguf")}


def test_the_card_tells_the_files_that_are_here(card: dict[str, Any]) -> None:
    told = (PAIR / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert all(entry["sha256"] in told for entry in card["files"].values())
    assert card["prompts"] == json.loads((RECIPE / "prompts.json").read_text(encoding="utf-8"))


def test_target_and_draft_are_small_enough_for_a_repository(card: dict[str, Any]) -> None:
    assert sum(card["files"][role]["bytes"] for role in ("target", "draft")) <= MOST_BYTES


def test_every_prompt_says_what_to_look_for() -> None:
    found = read_demo(ROOT / "resources")
    assert found == made_from(json.loads((PAIR / "pair.json").read_text(encoding="utf-8"))["prompts"])
    check_prompts(found)


def test_the_recipe_has_sixteen_prompts_for_the_files_that_it_makes() -> None:
    prompts = made_from(json.loads((RECIPE / "prompts.json").read_text(encoding="utf-8")))
    check_prompts(prompts)
    for prompt in prompts:
        prompt.check(frozenset(MADE))
    assert {prompt.draft for prompt in prompts} == MADE - {"target.gguf"}


def made_from(entries: list[dict[str, Any]]) -> tuple[DemoPrompt, ...]:
    return msgspec.convert(entries, tuple[DemoPrompt, ...])


def check_prompts(prompts: tuple[DemoPrompt, ...]) -> None:
    """Sixteen, each with words of its own, and not all asked alike."""
    assert len(prompts) == 16
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


@pytest.mark.verify
def test_answers_of_the_generator_pass_the_checks_that_judge_the_model() -> None:
    told = in_recipe(
        """
from judging import judge
from scenes import world
from base.scene import Dice
for held_out in (False, True):
    dice = Dice(1, held_out=held_out)
    for name, kind in world.KINDS.items():
        for _ in range(2):
            for turn in kind.make(dice):
                fault = judge.fault(turn.assistant, turn.expect)
                if fault:
                    print(name, fault, turn)
"""
    )
    assert told == ""


@pytest.mark.parametrize(
    ("answer", "expect", "fault"),
    [
        ("one two", "Expect(text='one  two')", "differs"),
        ("a then b", "Expect(phrases=('b', 'a'))", "lacks"),
        ("```python\ndef f():\n    return 1\n```", "Expect(calls=(('f()', '2'),))", "gives"),
        ("```python\ndef f(:\n```", "Expect(calls=(('f()', '2'),))", "does not run"),
        ("```python\nwhile True:\n    pass\n```", "Expect(calls=(('1', '1'),))", "does not run"),
        ('```json\n{"a": 1}\n```', "Expect(value={'a': 2})", "other fields"),
        ("{a: 1}", "Expect(value={'a': 1})", "no JSON"),
    ],
)
def test_wrong_answers_are_found(answer: str, expect: str, fault: str) -> None:
    told = in_recipe(
        "from base.scene import Expect\nfrom judging import judge\njudge.SECONDS = 1\n"
        f"print(judge.fault({answer!r}, {expect}))"
    )
    assert fault in told


@pytest.mark.verify
def test_what_is_held_out_is_never_trained_on() -> None:
    told = in_recipe(
        """
from base import scene, words
from scenes import copying, counting, fields, lists, stories, talk, world
from scenes.code import coding
options = {
    id(value): f"{module.__name__}.{name}"
    for module in (coding, copying, counting, fields, lists, stories, talk)
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, tuple) and all(isinstance(word, str) for word in value)
    if len(set(value)) == len(value) > 1 and value is not getattr(words, name, None)
}
both = set()  # lists that are chosen from without a look at what is held out
plain, part = scene.Dice.choice, scene.part
used = set()
def choice(dice, values):
    both.update({options[id(values)]} if id(values) in options else ())
    return plain(dice, values)
def parted(values, held_out):
    used.update({options[id(values)]} if id(values) in options else ())
    kept, trained = part(values, True), part(values, False)
    assert len(values) == 1 or (kept and trained and not set(kept) & set(trained)), values[:9]
    return kept if held_out else trained
scene.Dice.choice, scene.part = choice, parted
talks = world.conversations(scene.Dice(5))
for _ in range(1500):
    next(talks)
print(len(used))
same = "fields.PLACES", "fields.JOBS", "fields.LICENCES", "stories.OPENINGS"
assert both <= {f"scenes.{name}" for name in same}, both
trained = {words.name(dice) for dice in [scene.Dice(1)] for _ in range(500)}
kept = {words.name(dice) for dice in [scene.Dice(1, held_out=True)] for _ in range(500)}
assert not trained & kept
"""
    )
    assert int(told) > 30


def test_the_judged_prompts_are_a_hundred_of_every_kind() -> None:
    told = in_recipe(
        """
import collections
from judging import judge
from scenes import world
cases = judge.load()
assert all(case.messages[-1][0] == "user" and case.expect != judge.Expect() for case in cases)
counts = collections.Counter(case.kind for case in cases)
assert counts == {name: kind.judged for name, kind in world.KINDS.items()}, counts
print(len(cases))
"""
    )
    assert int(told) == 100
