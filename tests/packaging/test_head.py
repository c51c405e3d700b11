"""The recipe of the head for SmolLM2, on tiny models: all of it but what needs PyTorch."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.files.tiny import Tiny

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "packaging" / "head"
MODULES = ("state", "export", "target", "text", "drafting", "measure", "card")
LAYERS = (0, 1, 1)
ROOM = 96
BYTES = Tiny(seed=3)
FEW = Tiny(letters="abc", scale=0.5, seed=3)


@pytest.fixture(scope="module")
def recipe() -> Iterator[SimpleNamespace]:
    """The recipe's modules, imported from its folder, for a target of two layers."""
    sys.path.insert(0, str(RECIPE))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    found = SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    found.text.LAYERS = found.export.LAYERS = LAYERS
    yield found
    sys.path.remove(str(RECIPE))
    for name in MODULES:
        del sys.modules[name]
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def work(recipe: SimpleNamespace, tiny_file, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to write text in, with short dialogues."""
    recipe.target.widen(tiny_file(BYTES), tmp_path / "target-16bit.gguf")
    (tmp_path / "shards" / "new").mkdir(parents=True)  # as a killed process leaves it
    for name, value in {"ROWS": 4, "LENGTH": 80, "QUESTION": 8, "SHARD": 300}.items():
        monkeypatch.setattr(recipe.text, name, value)
    monkeypatch.setattr(recipe.text, "SYSTEM", "a")
    monkeypatch.setattr(recipe.text, "RECIPE", tmp_path)
    openings = {"trained": {"some": ["cab", "dab"]}, "held out": ["bad"], "systems": ["ab"]}
    (tmp_path / "openings.json").write_text(json.dumps(openings))
    (tmp_path / "held_out.json").write_text("{}")
    return tmp_path


@pytest.fixture
def write_text(recipe: SimpleNamespace, work: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list]:
    def write(tokens: int) -> list:
        monkeypatch.setattr(sys, "argv", ["text", "--work", str(work), "--tokens", str(tokens)])
        recipe.text.main()
        return [each for place in recipe.state.shard_folders(work) for each in recipe.state.read_shard(place)]

    return write


def test_text_is_kept_with_what_the_target_computed(
    recipe: SimpleNamespace, work: Path, write_text: Callable[[int], list]
) -> None:
    dialogues = write_text(600)
    assert {each.held_out for each in dialogues} == {each.about["kind"] == "held out" for each in dialogues}
    target = recipe.target.Target(work / "target-16bit.gguf", 1, ROOM, LAYERS)
    (end,) = target.tokenize("<|im_end|>")
    answers = 0
    for each in dialogues:
        n = len(each.ids) - 1
        target.forget(0)
        target.read(each.ids[:-1], range(n), [0] * n)
        assert np.allclose(target.features(n), each.features, atol=0.02)
        said = each.answer[:-1]
        logits = target.logits(n)[said]
        assert np.allclose(target.hidden(n)[said], each.hidden, atol=0.02)
        assert np.allclose(np.log(np.exp(logits).sum(1)), each.total, atol=0.02)
        assert (logits.max(1) - logits[np.arange(len(logits)), each.best] < 0.02).all()
        follows = each.ids[1:][said]
        assert each.about["temperature"] > 0 or ((follows == each.best) | (follows == end)).all()
        answers += len(each.best)
    assert answers > 200


def test_what_was_written_stays_and_more_comes(
    recipe: SimpleNamespace, work: Path, write_text: Callable[[int], list], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, passes = recipe.target.Target.read, []

    def ask_to_end(*words):
        passes.append(len(passes))
        if len(passes) == 60:
            os.kill(os.getpid(), signal.SIGTERM)
        real(*words)

    monkeypatch.setattr(recipe.target.Target, "read", ask_to_end)
    with pytest.raises(SystemExit) as ended:
        write_text(100_000)
    assert ended.value.code == 128 + signal.SIGTERM
    assert not (work / "text.pid").exists()
    (place,) = recipe.state.shard_folders(work)
    first = recipe.state.read_shard(place)
    assert {len(each.ids) for each in first} == {61} and all(each.best.size for each in first)
    every = write_text(900)
    assert [each.ids.tolist() for each in every[: len(first)]] == [each.ids.tolist() for each in first]
    assert sum(len(each.ids) for each in every) >= 900
    assert write_text(900)[-1].ids.tolist() == every[-1].ids.tolist()


def test_a_held_out_prompt_is_asked_by_no_dialogue(
    recipe: SimpleNamespace, work: Path, write_text: Callable[[int], list], monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "held_out.json").write_text(json.dumps({"talk": ["Cab?"]}))
    monkeypatch.setattr(recipe.text, "QUESTION", 1)  # the openings alone are asked
    monkeypatch.setattr(recipe.text, "SECOND_TURN", 0.0)
    target = recipe.target.Target(work / "target-16bit.gguf", 1, ROOM, LAYERS)
    asked = {
        target.text(each.ids.tolist()).split("user\n")[1].split("<|im_end|>")[0] for each in write_text(500)
    }
    assert asked <= {"dab", "bad"} and "dab" in asked


def test_a_step_runs_once_in_a_folder(recipe: SimpleNamespace, tmp_path: Path) -> None:
    claim = recipe.state.Claim(tmp_path, "text")
    with pytest.raises(SystemExit, match=f"process {os.getpid()}"):
        recipe.state.Claim(tmp_path, "text")
    claim.close()
    recipe.state.Claim(tmp_path, "text").close()


def test_only_tokens_of_one_answer_are_learnt(recipe: SimpleNamespace) -> None:
    answer = np.array([0, 0, 1, 1, 1, 0, 1, 1], bool)
    rows, scored, at = recipe.state.places_of(SimpleNamespace(answer=answer), 2)
    assert rows.tolist() == [1, 2, 3, 5]
    # Nothing was computed at token 7, the last. Token 5 ends an answer.
    assert scored.tolist() == [[True, True, True, True], [True, True, False, False]]
    assert at[0].tolist() == [0, 1, 2, 3] and at[1][scored[1]].tolist() == [1, 2]


def test_drafts_that_pass_or_are_replaced_follow_the_target(recipe: SimpleNamespace) -> None:
    rng = np.random.default_rng(0)
    p, q = np.array([0.5, 0.3, 0.1, 0.1, 0.0]), np.array([0.1, 0.2, 0.3, 0.0, 0.4])
    logits = np.log(np.maximum(q, 1e-30))
    drafts = [recipe.text.draw(logits, 1.0, rng) for _ in range(10_000)]
    assert np.abs(np.bincount(drafts, minlength=5) / len(drafts) - q).max() < 0.02
    settled = [recipe.drafting.accepts(p, q, token, rng) for token in drafts]
    assert abs(np.mean([stays for stays, _ in settled]) - np.minimum(p, q).sum()) < 0.02
    found = np.bincount([token for _, token in settled], minlength=5) / len(drafts)
    assert np.abs(found - p).max() < 0.02


def test_an_exported_head_drafts_and_changes_no_text(
    recipe: SimpleNamespace, tiny_file, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny_file(FEW)
    target = recipe.target.Target(path, 1, ROOM, LAYERS)
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

    arrays = np.arange(3, dtype=np.uint16), np.array([0, 1, 1], bool), *[np.zeros((2, 4))] * 4
    recipe.state.write_shard(tmp_path, [recipe.state.Dialogue(*arrays)])
    entry = {"step": 100, "seen": 12_345, "found": [0.5, 0.25, 0.125], "accepted": [0.4, 0.3, 0.2]}
    (tmp_path / "curve.jsonl").write_text(json.dumps(entry) + "\n")
    (tmp_path / "table.md").write_text("| the table |\n")
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.setattr(sys, "argv", ["card", "--work", str(tmp_path), "--out", str(out)])
    recipe.card.main()
    told = (out / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert hashlib.sha256((out / recipe.card.NAME).read_bytes()).hexdigest() in told
    assert f"head of {sum(each.size for each in weights.values()):,} parameters" in told
    assert "| 100 | 12,345 | 0.50 0.25 0.12 | 0.40 0.30 0.20 |" in told and "| the table |" in told


def test_sixty_prompts_of_three_kinds_are_held_out(recipe: SimpleNamespace) -> None:
    groups = json.loads((RECIPE / "held_out.json").read_text(encoding="utf-8"))
    assert [len(prompts) for prompts in groups.values()] == [20, 20, 20]
    assert len({recipe.text.plain(each) for prompts in groups.values() for each in prompts}) == 60
    openings = json.loads((RECIPE / "openings.json").read_text(encoding="utf-8"))
    trained = {each for kind in openings["trained"].values() for each in kind}
    assert not trained.intersection(openings["held out"])
