"""The curated pairs, confirmed with the Hub."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from app.base.paths import REAL_TARGET, find_paths
from app.hub.cache import Cache
from app.hub.catalogue import (
    CataloguePair,
    Confirmed,
    Entry,
    confirm,
    drafts_for,
    find_entry,
    find_here,
    load_catalogue,
    wanted_pair,
)
from app.hub.errors import HubError, Trouble
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
    with pytest.raises(ValueError, match="a is not a pair"):
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


OLD, NEW = "a" * 40, "b" * 40
REPO = "owner/model-GGUF"


def put(cache: Cache, commit: str, *names: str) -> Path:
    folder = cache.folder / "models--owner--model-GGUF" / "snapshots" / commit
    for name in names:
        path = folder.joinpath(*name.split("/"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"GGUF")
    os.utime(folder, (ord(commit[0]), ord(commit[0])))  # the later letter is the newer one
    return folder


def test_a_file_is_found_in_the_newest_commit_that_has_it(cache: Cache) -> None:
    old = put(cache, OLD, "m-Q8_0.gguf", "m-Q4_0.gguf", "mmproj-m-F16.gguf")
    new = put(cache, NEW, "m-Q8_0.gguf")
    assert find_here(cache, REPO, "m-Q8_0.gguf") == find_here(cache, REPO, "q8_0") == new / "m-Q8_0.gguf"
    assert find_here(cache, REPO, "Q4_0") == old / "m-Q4_0.gguf"
    assert find_here(cache, REPO, "F16") is None and find_here(cache, "owner/other", "Q8_0") is None


def test_a_model_in_parts_is_here_when_all_of_them_are(cache: Cache) -> None:
    put(cache, OLD, "Q8_0/m-00001-of-00002.gguf")
    new = put(cache, NEW, "Q8_0/m-00002-of-00002.gguf")
    for wanted in ("Q8_0", "Q8_0/m-00001-of-00002.gguf", "Q8_0/m-00002-of-00002.gguf"):
        assert find_here(cache, REPO, wanted) is None
    put(cache, NEW, "Q8_0/m-00001-of-00002.gguf")
    for wanted in ("Q8_0", "Q8_0/m-00001-of-00002.gguf", "Q8_0/m-00002-of-00002.gguf"):
        assert find_here(cache, REPO, wanted) == new / "Q8_0" / "m-00001-of-00002.gguf"


def test_of_a_revision_only_its_commit_counts(cache: Cache) -> None:
    old = put(cache, OLD, "m-Q8_0.gguf")
    put(cache, NEW, "m-Q4_0.gguf")
    assert find_here(cache, REPO, "Q8_0", "refs/pr/1") is None
    ref = cache.folder / "models--owner--model-GGUF" / "refs" / "refs" / "pr" / "1"
    ref.parent.mkdir(parents=True)
    ref.write_text(OLD)
    assert find_here(cache, REPO, "Q8_0", "refs/pr/1") == old / "m-Q8_0.gguf"
    assert find_here(cache, REPO, "Q8_0", OLD) == old / "m-Q8_0.gguf"
    assert find_here(cache, REPO, "Q8_0", NEW) is None


def test_of_several_files_here_none_is_chosen_by_chance(cache: Cache) -> None:
    folder = put(cache, OLD, "a-Q8_0.gguf", "b-Q8_0.gguf")
    with pytest.raises(HubError, match="2 files of Q8_0"):
        find_here(cache, REPO, "Q8_0")
    assert find_here(cache, REPO, "b-Q8_0.gguf") == folder / "b-Q8_0.gguf"
    assert find_entry(cache, Entry(REPO, "c-Q8_0.gguf", 4)) is None


def test_a_renamed_model_of_the_catalogue_is_found_by_its_quantisation(cache: Cache) -> None:
    folder = put(cache, OLD, "renamed-Q8_0.gguf", "renamed-Q4_0.gguf")
    assert find_entry(cache, Entry(REPO, "m-Q8_0.gguf", 4)) == folder / "renamed-Q8_0.gguf"


def test_a_targets_drafts_are_known_by_its_files_name_until_they_are_here(cache: Cache) -> None:
    draft = Entry(REPO, "m-Q8_0.gguf", 4, role="draft")
    pair = CataloguePair("pair", "", "", (Entry("owner/big", "Big-7B-Q4_K_M.gguf", 100), draft))
    alone = CataloguePair("alone", "", "", (Entry("owner/big", "Big-7B-Q4_K_M.gguf", 100),))

    def named(target: str) -> list[Entry]:
        return [*drafts_for(target, (alone, pair), find_paths(), cache)]

    assert named("big-7b-Q8_0.gguf") == [draft], "in any quantisation"
    assert named("Big-7B-Instruct-Q4_K_M.gguf") == []
    put(cache, OLD, "m-Q8_0.gguf")
    assert named("big-7b-Q8_0.gguf") == []
