"""The names of models, and how models of one name are distinguished."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from app.engine.compat import FitKind, VocabularyFit
from app.engine.engine import Engine
from app.engine.errors import ModelFileError, PairError
from app.hub.library.model import (
    Candidate,
    DraftVerdict,
    FileOrigin,
    LocalModel,
    best_first,
    judge_draft,
    names_apart,
)
from app.hub.library.probe import Facts, short_number
from app.hub.library.shelf import Shelf
from tests.files.tiny import Tiny


def model(path: str, name: str = "", quantisation: str = "", repo: str = "") -> LocalModel:
    facts = Facts("llama", name, 1, quantisation, 1, 1, 1, "digest")
    origin = FileOrigin.HUB if repo else FileOrigin.ADDED
    return LocalModel(Path(path), (Path(path),), 1, 1, origin, repo, facts)


@pytest.mark.parametrize(
    ("named", "said", "told"),
    [
        ("Q4_K_M", "Q8_0", "Q8_0"),
        ("Q4_K_M", "", "Q4_K_M"),
        ("x", "F16", "F16"),
        ("x", "", "?"),
        ("UD-Q4_K_XL", "Q4_K_M", "UD-Q4_K_XL"),
        ("UD-Q4_K_XL", "Q8_0", "Q8_0"),
        ("Q4_K_L", "Q4_K_M", "Q4_K_L"),
        ("Q3_K_L", "Q3_K_M", "Q3_K_M"),
        ("UD-IQ2_XXS", "IQ2_XXS", "UD-IQ2_XXS"),
    ],
)
def test_the_quantisation_is_the_files_not_its_names(named: str, said: str, told: str) -> None:
    assert model(f"/m/a-{named}.gguf", quantisation=said).quantisation == told


def test_a_file_that_is_not_read_yet_goes_by_its_name() -> None:
    unread = LocalModel(Path("/m/a-Q4_0.gguf"), (Path("/m/a-Q4_0.gguf"),), 1, 1, FileOrigin.ADDED)
    assert unread.quantisation == "Q4_0"


def test_models_of_one_name_are_told_apart() -> None:
    assert names_apart(
        [
            model("/a/one-Q4_0.gguf", "Llama"),
            model("/a/one-Q8_0.gguf", "Llama"),
            model("/a/two.gguf", "Qwen"),
            model("/x/c.gguf", "Gemma", repo="owner/c-GGUF"),
            model("/y/c.gguf", "Gemma", repo="other/c-GGUF"),
            model("/b/same.gguf"),
            model("/c/same.gguf"),
        ]
    ) == (
        "Llama · Q4_0",
        "Llama · Q8_0",
        "Qwen",
        "Gemma · c · owner/c-GGUF",
        "Gemma · c · other/c-GGUF",
        "same · /b",
        "same · /c",
    )


PATIENCE = 40.0
TARGET = Tiny(name="target", n_embd=128, n_ff=256, n_layers=4)
DRAFT = Tiny(name="draft")
Put = Callable[..., Path]


def test_every_other_file_is_a_draft_with_its_reason(shelf: Shelf, put: Put, folder: Path) -> None:
    path = put(TARGET)
    put(DRAFT, "good.gguf")
    put(Tiny(name="padded", padding=8), "padded.gguf")
    put(Tiny(name="large", n_embd=128, n_ff=256, n_layers=4, seed=5), "large.gguf")
    put(Tiny(name="other", order=3), "through-text.gguf")
    put(Tiny(name="spm", sentencepiece=True), "through-text-too.gguf")
    put(Tiny(name="hybrid", architecture="lfm2"), "hybrid.gguf")
    put(Tiny(architecture="llada"), "diffusion.gguf")
    put(Tiny(vocabulary=False), "mute.gguf")
    put(DRAFT, "part-00001-of-00002.gguf")
    (folder / "broken.gguf").write_bytes(b"GGUF")
    shelf.add([folder])
    models = shelf.scan()
    target = shelf.at(path, models)
    said = {candidate.model.path.stem: candidate for candidate in shelf.candidates(target, models)}
    assert {name: candidate.verdict for name, candidate in said.items()} == {
        "good": DraftVerdict.GOOD,
        "padded": DraftVerdict.GOOD,
        "large": DraftVerdict.WORKS,
        "through-text": DraftVerdict.WORKS,
        "through-text-too": DraftVerdict.WORKS,
        "hybrid": DraftVerdict.WORKS,
        "diffusion": DraftVerdict.CANNOT,
        "mute": DraftVerdict.CANNOT,
        "part-00001-of-00002": DraftVerdict.CANNOT,
        "broken": DraftVerdict.CANNOT,
    }
    words = {
        "good": "good",
        "large": "works, because the vocabulary fits; 100 % of the target's size: it will hardly",
        "through-text": "works, because it can draft through text; token 5 is",
        "hybrid": "works, because the vocabulary fits; its state cannot be rolled back",
        "diffusion": "cannot, because it does not write text token by token",
        "mute": "cannot, because it has no vocabulary",
        "part-00001-of-00002": "cannot, because 1 of its 2 parts are here",
        "broken": "cannot, because broken.gguf is cut short or damaged",
    }
    for name, beginning in words.items():
        assert str(said[name]).startswith(beginning), str(said[name])
    assert "tokens" in said["padded"].reason
    order = [candidate.verdict for candidate in best_first(said.values())]
    assert order == sorted(order, key=list(DraftVerdict).index)


def test_a_target_that_was_chosen_elsewhere(shelf: Shelf, put: Put, tmp_path: Path) -> None:
    path = put(TARGET)
    target = shelf.at(path, [])
    assert list(shelf.candidates(target, [])) == []
    with pytest.raises(ModelFileError, match="does not exist"):
        shelf.at(tmp_path / "gone.gguf", [])


def test_a_target_of_no_use_is_said(shelf: Shelf, put: Put) -> None:
    for tiny in (Tiny(vocabulary=False), Tiny(architecture="llada")):
        target = shelf.at(put(tiny), [])
        with pytest.raises(ModelFileError, match="is not a language model"):
            list(shelf.candidates(target, []))


def test_an_mtp_head_drafts_only_for_a_target_of_its_architecture(shelf: Shelf, put: Put) -> None:
    qwen, lfm2, gemma = (Tiny(architecture=kind) for kind in ("qwen35", "lfm2", "gemma4"))
    heads = replace(qwen, mtp=1, trunk=False), replace(gemma, architecture="gemma4-assistant", n_embd=32)
    models = [shelf.at(put(head, f"head{place}.gguf"), []) for place, head in enumerate(heads)]
    for target, good in ((qwen, [True, False]), (gemma, [False, True]), (lfm2, [False, False])):
        found = list(shelf.candidates(shelf.at(put(target, f"{target.architecture}.gguf"), []), models))
        assert [each.verdict is DraftVerdict.GOOD for each in found] == good
        words = "it was made for a different target: one of architecture "
        assert all(each.reason.startswith(words) for each in found if each.verdict is DraftVerdict.CANNOT)


def test_a_head_drafts_only_for_a_target_that_it_can_read(shelf: Shelf, put: Put) -> None:
    """As the engine judges, before anything is loaded."""
    head = Tiny(architecture="eagle3", n_layers=1)
    block = replace(head, architecture="dflash")
    cases = (
        (head, Tiny(), "good"),
        (block, Tiny(), "good"),
        (replace(block, markov=True), Tiny(architecture="qwen35"), "good"),
        (head, Tiny(n_embd=32), "because it needs an embedding size of 64, and the target has 32"),
        (block, Tiny(n_embd=32), "because it needs an embedding size of 64, and the target has 32"),
        (replace(head, reads=(0, 5)), Tiny(), "because it reads layer 5, but the target has 2 layers"),
        (
            replace(block, reads=(-1, 1)),
            Tiny(),
            "because it reads layer -1, but the target has 2 layers",
        ),
        (head, Tiny(architecture="gemma3"), "does not expose these layers of architecture gemma3"),
        (replace(head, reads=(0, 2)), Tiny(), "does not expose these layers of architecture llama"),
        (replace(head, n_embd=32, target_width=64), Tiny(), "its embedding size is 32, not 64"),
    )
    for number, (draft, target, said) in enumerate(cases):
        files = [shelf.at(put(made, f"{number}-{made.architecture}.gguf"), []) for made in (draft, target)]
        (found,) = shelf.candidates(files[1], files[:1])
        assert said in str(found)
        assert (found.verdict is DraftVerdict.CANNOT) == (said != "good")
        drafted = contextlib.nullcontext() if said == "good" else pytest.raises(PairError, match=said[8:])
        with drafted, Engine(files[1].path, files[0].path) as engine:
            assert engine.draft is not None


@pytest.mark.parametrize("key", ["eagle3.target_hidden_size", "eagle3.embedding_length"])
def test_a_head_whose_file_names_no_width_is_refused(shelf: Shelf, put: Put, key: str) -> None:
    target, head = shelf.at(put(Tiny()), []), put(Tiny(architecture="eagle3", n_layers=1), "head.gguf")
    head.write_bytes(head.read_bytes().replace(key.encode(), key[:-1].encode() + b"_"))
    (found,) = shelf.candidates(target, [shelf.at(head, [])])
    assert str(found) == f"cannot, because its file gives no embedding size: {key} is missing"
    with pytest.raises(ModelFileError, match=key):  # as llama.cpp says
        Engine(target.path, head)


def test_a_head_whose_file_speaks_of_another_target_is_in_doubt() -> None:
    """Names, tokenizer types and the usual layers are no proof: it may be tried."""

    def judged(**of_head: object) -> str:
        facts = Facts("llama", "Qwen3-8B-Instruct", 1, "", 1, 36, 1, "v", width=64, bases=("Qwen3 8B Base",))
        target = LocalModel(Path("/t"), (Path("/t"),), 9, 0, FileOrigin.ADDED, facts=facts)
        target = replace(target, facts=msgspec.structs.replace(facts, splits="qwen2"))
        facts = Facts("eagle3", "head", 1, "", 1, 1, 1, "v", width=64, reads=(2, 18, 33))
        facts = msgspec.structs.replace(facts, **of_head)
        draft = LocalModel(Path("/d"), (Path("/d"),), 1, 0, FileOrigin.ADDED, facts=facts)
        return str(judge_draft(target, draft, VocabularyFit(FitKind.SAME)))

    doubt = "works, because it may be for a different target: "
    assert judged() == judged(bases=("Qwen3-8B",)) == judged(splits="qwen2") == "good"
    assert judged(bases=("Qwen3 1.7B",)) == (
        f"{doubt}its file names Qwen3 1.7B, and the target is Qwen3-8B-Instruct"
    )
    assert judged(splits="llama-bpe").startswith(f"{doubt}its tokenizer is of type llama-bpe")
    assert judged(reads=(2, 16, 29)) == (
        f"{doubt}layers 2, 16 and 29 are usual for 32 layers, but the target has 36"
    )


def local(size: int, architecture: str = "llama", name: str = "x") -> LocalModel:
    facts = Facts(architecture, name, 1, "", 1, 1, 1, "v")
    path = Path(f"/{name}-{size}.gguf")
    return LocalModel(path, (path,), size, 0, FileOrigin.ADDED, facts=facts)


def test_the_best_is_first() -> None:
    """SmolLM2 1.7B: the 135M before the 360M, both before another family, a heavy one, another vocabulary."""
    target = local(1_060_000_000)
    same, text = VocabularyFit(FitKind.SAME), VocabularyFit(FitKind.THROUGH_TEXT, "token 7 differs")
    wished = [
        judge_draft(target, local(145_000_000), same),
        judge_draft(target, local(386_000_000), same),
        judge_draft(target, local(120_000_000, "qwen2"), same),
        judge_draft(target, local(700_000_000), same),
        judge_draft(target, local(700_000_000, "qwen2"), same),
        judge_draft(target, local(110_000_000), text),
        Candidate(local(1, name="c"), DraftVerdict.CANNOT, "it is broken"),
    ]
    assert list(best_first(reversed(wished))) == wished
    assert [candidate.shares_vocabulary for candidate in wished] == [True] * 5 + [False] * 2


def test_numbers_as_people_write_them() -> None:
    written = [short_number(n) for n in (0, 135_000_000, 1_711_376_384, 8_030_261_248, 70_553_706_496, 1500)]
    assert written == ["", "135M", "1.7B", "8B", "70.6B", "1.5K"]
