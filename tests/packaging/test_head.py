"""The recipe of the head for SmolLM2, on tiny models: all of it but what needs PyTorch."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.files.tiny import Tiny

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "packaging" / "head"
MODULES = ("words", "export", "target", "drafting", "measure", "card")
LAYERS = (0, 1, 1)
ROOM = 96
FEW = Tiny(letters="abc", scale=0.5, seed=3)


@pytest.fixture(scope="module")
def recipe() -> Iterator[SimpleNamespace]:
    """The recipe's modules, imported from its folder, for a target of two layers."""
    sys.path.insert(0, str(RECIPE))
    found = SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    found.export.LAYERS = LAYERS
    yield found
    sys.path.remove(str(RECIPE))
    for name in MODULES:
        del sys.modules[name]


def test_words_are_tokens_and_no_dialogue_may_ask_what_is_held_out(
    recipe: SimpleNamespace, tiny_file, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openings = {"trained": {"some": ["cab", "dab"]}, "held out": ["bad"], "systems": ["ab"]}
    (tmp_path / "openings.json").write_text(json.dumps(openings))
    (tmp_path / "held_out.json").write_text(json.dumps({"talk": ["Cab?"]}))
    monkeypatch.setattr(recipe.words, "RECIPE", tmp_path)
    path = tiny_file(Tiny(seed=3))
    monkeypatch.setattr(sys, "argv", ["words", "--work", str(tmp_path), "--target", str(path)])
    recipe.words.main()
    told = json.loads((tmp_path / "words.json").read_text(encoding="utf-8"))
    ids = recipe.target.Target(path, ROOM, ()).tokenize
    assert told["forbidden"] == [ids("Cab?")] and told["trained"] == [[ids("cab"), ids("dab")]]
    assert told["held out"] == [ids("bad")] and len(told["systems"]) == 2
    assert told["end"] == ids("<|im_end|>")[0]


def test_drafts_that_pass_or_are_replaced_follow_the_target(recipe: SimpleNamespace) -> None:
    rng = np.random.default_rng(0)
    p, q = np.array([0.5, 0.3, 0.1, 0.1, 0.0]), np.array([0.1, 0.2, 0.3, 0.0, 0.4])
    logits = np.log(np.maximum(q, 1e-30))
    drafts = [recipe.drafting.draw(logits, 1.0, rng) for _ in range(10_000)]
    assert np.abs(np.bincount(drafts, minlength=5) / len(drafts) - q).max() < 0.02
    settled = [recipe.drafting.accepts(p, q, token, rng) for token in drafts]
    assert abs(np.mean([stays for stays, _ in settled]) - np.minimum(p, q).sum()) < 0.02
    found = np.bincount([token for _, token in settled], minlength=5) / len(drafts)
    assert np.abs(found - p).max() < 0.02


def test_an_exported_head_drafts_and_changes_no_text(
    recipe: SimpleNamespace, tiny_file, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny_file(FEW)
    target = recipe.target.Target(path, ROOM, LAYERS)
    rng = np.random.default_rng(2)
    width, inner = target.width, 96
    sizes = {"fc": (width, 3 * width), "attn_output": (width, width), "ffn_down": (width, inner)}
    sizes |= dict.fromkeys(("attn_q", "attn_k", "attn_v"), (width, 2 * width))
    sizes |= dict.fromkeys(("ffn_gate", "ffn_up"), (inner, width)) | {"output": (3, width)}
    weights = {name: rng.normal(0, 0.3, size).astype(np.float32) for name, size in sizes.items()}
    for name in ("attn_norm", "attn_norm_2", "ffn_norm", "output_norm"):
        weights[name] = np.ones(width, np.float32)
    kept = np.sort([target.tokenize(letter)[0] for letter in FEW.letters])
    shape = {"width": width, "heads": 4, "keys": 4, "head_width": 16, "hidden": inner, "rope_base": 1e4}
    recipe.export.export(weights, shape | {"eps": 1e-5}, kept, path, tmp_path / "head.gguf")

    head = recipe.drafting.HeadContext(tmp_path / "head.gguf", target, ROOM)
    prompt = target.tokenize("abcab")
    plain = recipe.drafting.write(target, None, prompt, 60, 0, 0.0, rng)
    drafted = recipe.drafting.write(target, head, prompt, 60, 3, 0.0, rng)
    assert recipe.measure.equal_texts(drafted, plain)
    first, a_round, by_place = recipe.measure.rates([drafted])
    assert (
        0 < by_place[1] < 1
        and first == by_place[0]
        and a_round == 1 + sum(drafted.accepted) / drafted.tried[0]
    )
    again = recipe.drafting.write(target, head, prompt, 60, 3, 0.0, rng)
    assert again.ids[:20] == drafted.ids[:20]  # nothing of the first text is left in the head's memory
    drawn = recipe.drafting.write(target, head, prompt, 60, 3, 0.8, rng)
    assert 0 < sum(drawn.accepted) < sum(drawn.tried)
    head.close()

    np.savez(tmp_path / "text.npz", length=[3, 1200], answer=np.array([[0, 1, 1], [0, 0, 1]], bool))
    entry = {"step": 100, "seen": 12_345, "found": [0.5, 0.25, 0.125], "accepted": [0.4, 0.3, 0.2]}
    (tmp_path / "curve.jsonl").write_text(json.dumps(entry) + "\n")
    (tmp_path / "table.md").write_text("| the table |\n")
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.setattr(sys, "argv", ["card", "--work", str(tmp_path), "--out", str(out)])
    recipe.card.main()
    told = (out / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert hashlib.sha256((out / recipe.card.NAME).read_bytes()).hexdigest() in told
    assert "1,203 tokens of dialogues, 3 of them in answers" in told
    assert f"head of {sum(each.size for each in weights.values()):,} parameters" in told
    assert "| 100 | 12,345 | 0.50 0.25 0.12 | 0.40 0.30 0.20 |" in told and "| the table |" in told


def test_sixty_prompts_of_three_kinds_are_held_out(recipe: SimpleNamespace) -> None:
    groups = json.loads((RECIPE / "held_out.json").read_text(encoding="utf-8"))
    assert [len(prompts) for prompts in groups.values()] == [20, 20, 20]
    assert len({each.casefold() for prompts in groups.values() for each in prompts}) == 60
    openings = json.loads((RECIPE / "openings.json").read_text(encoding="utf-8"))
    trained = {each for kind in openings["trained"].values() for each in kind}
    assert not trained.intersection(openings["held out"])
