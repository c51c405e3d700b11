"""The curated pairs, confirmed with the Hub."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.base.paths import REAL_TARGET, find_paths
from app.hub.catalogue import Confirmed, Entry, confirm, load_catalogue, wanted_pair
from app.hub.errors import Trouble
from app.hub.hub import Hub
from app.hub.repo import read_repo
from tests.hub.server import FakeHub, FakeRepo
from tests.hub.stock import LARGE, PAIR, SMALL, stock, trouble


@pytest.fixture(autouse=True)
def everything(server: FakeHub) -> None:
    stock(server)


def test_the_catalogue_that_comes_along() -> None:
    pairs = load_catalogue(find_paths().resources / "catalogue.json")
    assert pairs[0].id == "smollm2-1.7b"  # first choice for a laptop
    assert len({pair.id for pair in pairs}) == len(pairs) >= 8
    for pair in pairs:
        if pair.draft is None:  # what stands in for a draft is said before anything is fetched
            assert re.search(r"draft-\w+|Look-ups draft for it|look-ups draft:", pair.limits)
        else:
            assert pair.draft.size < pair.target.size and not pair.limits
        assert all(model.licence and model.size and model.file.endswith(".gguf") for model in pair.models)
        assert pair.good_for.endswith(".") and "/" not in pair.id
        # A number that was not measured here names who published it, and where it was measured.
        assert not pair.published or re.search(r", on an? .+ \(\w+\.(com?|ai)[^)]*\)\.$", pair.published)
        assert "ublished" not in pair.note + pair.good_for
    titles = " ".join(pair.title for pair in pairs)
    asked = (
        "Llama 3.1 70B with 8B, Llama 3.3 70B, Qwen2.5 72B, Qwen2.5 32B, Qwen3 30B-A3B, Coder 14B, Coder 32B"
    )
    asked += ", Llama 3.1 70B with Llama 3.2 3B, Qwen2.5 72B with 7B, Mixtral 8x7B with Mistral 7B"
    asked += ", DeepSeek Coder 33B with Qwen2.5 Coder 1.5B, Coder 14B at 8 bits with 0.5B"
    for name in (*asked.split(", "), "DeepSeek R1 Distill Qwen 32B", "gpt-oss", "MTP"):
        assert name in titles
    assert max(pair.size for pair in pairs) > 40e9, "up to 70B"
    own = [(pair.id, model.role) for pair in pairs for model in pair.models if model.own == REAL_TARGET]
    assert own == [("smollm2-1.7b", "draft"), ("smollm2-360m", "draft"), ("smollm2-135m", "target")]
    said = {(model.file, model.size, model.repo, model.licence) for pair in pairs for model in pair.models}
    assert len(said) == len({model.file for pair in pairs for model in pair.models}), "one size for one file"


def test_the_pair_of_llama_cpps_preset_is_the_one_that_it_names() -> None:
    """arg.cpp of llama.cpp, --fim-qwen-14b-spec."""
    pairs = load_catalogue(find_paths().resources / "catalogue.json")
    (pair,) = (pair for pair in pairs if "--fim-qwen-14b-spec" in pair.good_for)
    assert [(model.repo, model.file) for model in pair.models] == [
        ("ggml-org/Qwen2.5-Coder-14B-Q8_0-GGUF", "qwen2.5-coder-14b-q8_0.gguf"),
        ("ggml-org/Qwen2.5-Coder-0.5B-Q8_0-GGUF", "qwen2.5-coder-0.5b-q8_0.gguf"),
    ]


def test_a_catalogue_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.json"
    path.write_text('{"version": 1, "pairs": [{"id": "a", "title": "", "good_for": "", "models": []}]}')
    with pytest.raises(ValueError, match="a is no pair"):
        load_catalogue(path)


def test_sizes_and_names_are_confirmed(hub: Hub) -> None:
    target, draft = confirm(hub, PAIR.models)
    assert target.entry.role == "target"
    assert target.quantisation is not None and target.quantisation.size == len(LARGE)
    assert target.replaced == "" and target.problem is None
    wanted = wanted_pair([target, draft])
    assert [(item.repo, item.files[0].name, item.size) for item in wanted] == [
        ("owner/Llama-GGUF", "Llama-Q8_0.gguf", len(LARGE)),
        ("owner/Qwen-GGUF", "q.gguf", len(SMALL)),
    ]


def test_a_renamed_file_is_replaced_by_its_quantisation(hub: Hub, server: FakeHub) -> None:
    files = server.repos["owner/Llama-GGUF"].files
    files["New-Q8_0.gguf"] = files.pop("Llama-Q8_0.gguf")
    target, _ = confirm(hub, PAIR.models)
    assert target.quantisation is not None and target.quantisation.file == "New-Q8_0.gguf"
    assert target.replaced == "Llama-Q8_0.gguf"


def test_of_several_files_none_is_chosen_by_chance(hub: Hub, server: FakeHub) -> None:
    server.repos["owner/two-GGUF"] = FakeRepo({"base-Q8_0.gguf": SMALL, "instruct-Q8_0.gguf": LARGE})
    repo = read_repo(hub, "owner/two-GGUF")
    assert repo.holding("instruct-Q8_0.gguf").size == len(LARGE)
    error = trouble(lambda: repo.holding("q8_0"))
    assert "2 files" in error.message
    assert "base-Q8_0.gguf, instruct-Q8_0.gguf" in error.hint
    renamed = Entry("owner/two-GGUF", "chat-Q8_0.gguf", 1)
    (confirmed,) = confirm(hub, [renamed])
    assert confirmed.problem is not None and confirmed.quantisation is None


def test_what_is_gone_is_a_problem_of_the_pair(hub: Hub, server: FakeHub) -> None:
    del server.repos["owner/Llama-GGUF"].files["Llama-Q8_0.gguf"]
    target, draft = confirm(hub, PAIR.models)
    assert target.problem is not None and target.problem.trouble is Trouble.NOT_FOUND
    assert draft.problem is None
    assert trouble(lambda: wanted_pair([draft, target])) is target.problem
    assert isinstance(target, Confirmed)
