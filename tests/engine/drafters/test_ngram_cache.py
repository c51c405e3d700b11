"""ngram-cache: the drafts of llama.cpp's own class, call for call; its files read and written; and bad
files."""

from __future__ import annotations

import gzip
import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.engine.drafters import ngram_cache
from app.engine.drafters.base import RunContext
from app.engine.drafters.cache_file import Followers, LookupCache, count_ngrams, glance_at_cache, read_cache
from app.engine.drafters.lookup_caches import glance_at_caches
from app.engine.drafters.ngram_cache import NgramCache, NgramCacheParams
from app.engine.engine import Engine
from app.engine.errors import SettingError
from app.engine.process.messages import Finished
from app.engine.sampling.draws import Draws
from app.engine.sampling.sampler import Sampler
from app.engine.types import FinishReason, GenerationRequest, Sampling
from tests.answers import answer
from tests.equality import Baselines

SURROUNDINGS = RunContext(Sampler(Sampling()), Draws(0), 0, frozenset())
VECTORS = Path(__file__).parents[2] / "vectors"


def ids(tokens: list[int]) -> np.ndarray:
    return np.array(tokens, np.int32)


def unpacked(name: str) -> Any:
    return json.loads(gzip.decompress((VECTORS / name).read_bytes()))


def scenarios() -> list[dict[str, Any]]:
    with gzip.open(VECTORS / "ngram_cache.jsonl.gz") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lookup caches written by the original, read-only."""
    folder = tmp_path_factory.mktemp("lookup")
    for packed in VECTORS.glob("*.bin.gz"):
        (folder / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    return folder


def drafter_of(scenario: dict[str, Any], files: Path) -> NgramCache:
    paths: dict[str, Any] = {
        f"lookup_cache_{kind}": str(files / f"{kind}_{scenario['vocab']}.bin")
        for kind in ("static", "dynamic")
        if scenario[kind]
    }
    return NgramCache(NgramCacheParams(**paths), scenario["vocab"])


def play(drafter: NgramCache, events: list[list[Any]]) -> list[tuple[list[int], list[Any]]]:
    """Replay a scenario: our draft, and the original's with its unordered maps walked in ascending order,
    as they come, and in descending order (None: as ascending)."""
    text: list[int] = []
    drafts = []
    for kind, *event in events:
        if kind == "begin":
            text = list(event[0])
            drafter.begin(ids(text), SURROUNDINGS)
        else:
            text += event[0]
            drafts.append((drafter.propose(ids(text), event[1]).ids, event[2:]))
    return drafts


@pytest.mark.parametrize("number", range(32))
def test_drafts_are_those_of_the_original(number: int, files: Path) -> None:
    """Ties included, where its maps are walked in ascending order of the tokens."""
    scenario = scenarios()[number]
    drafts = play(drafter_of(scenario, files), scenario["events"])
    assert [ours for ours, _ in drafts] == [ascending for _, (ascending, _, _) in drafts]
    for ours, (ascending, plain, descending) in drafts:
        # Up to the first tie, where the orders give different drafts, it is the unmodified build's too.
        sure = shared_length(ascending, ascending if descending is None else descending)
        assert ours[:sure] == (ascending if plain is None else plain)[:sure]
        if descending is None:
            assert plain is None


def shared_length(first: list[int], second: list[int]) -> int:
    for at, (here, there) in enumerate(zip(first, second, strict=False)):
        if here != there:
            return at
    return min(len(first), len(second))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_LAX", ((2, 66), (2, 50), (2, 50), (1, 50))),
        ("_LAX", ((2, 66), (2, 51), (1, 50), (1, 50))),
        ("_STRICT", ((4, 75), (2, 66), (2, 66), (2, 66))),
        ("_STRICT", ((4, 75), (3, 66), (2, 66), (3, 66))),
        ("_STRICT", ((4, 75), (3, 80), (2, 80), (2, 80))),
        ("MAX_SIZE", 3),
    ],
)
def test_the_vectors_would_show_a_fault(
    name: str, value: object, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ngram_cache, name, value)
    assert any_parts(files)


def test_the_vectors_would_show_statistics_left_aside(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Followers, "best_beside", lambda followers, static: (followers.best, followers.best_count)
    )
    assert any_parts(files)


def test_the_vectors_would_show_single_tokens_learned(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The n-grams that the original misses between the texts learned by two calls."""

    texts: list[np.ndarray] = []

    def propose(drafter: NgramCache, context: np.ndarray, k: int) -> Any:
        texts.append(context)
        return original(drafter, context, k)

    def count(counts: dict[bytes, Followers], tokens: np.ndarray) -> None:
        count_ngrams(counts, texts[-1], first=len(texts[-1]) - len(tokens))

    original = NgramCache.propose
    monkeypatch.setattr(NgramCache, "propose", propose)
    monkeypatch.setattr(ngram_cache, "count_ngrams", count)
    assert any_parts(files)


def any_parts(files: Path) -> bool:
    played = (play(drafter_of(scenario, files), scenario["events"]) for scenario in scenarios())
    return any(ours != ascending for drafts in played for ours, (ascending, _, _) in drafts)


def test_drafts_end_with_k_and_n_draft() -> None:
    text = ids([1, 2, 3, 4, 5, 6, 7, 8] * 4)
    drafter = NgramCache(NgramCacheParams(n_draft=6), 9)
    assert drafter.propose(text, 99).ids == [1, 2, 3, 4, 5, 6]
    assert drafter.propose(text, 99).end == "n_draft"
    assert drafter.propose(text, 2).end == "answer at its length limit"
    assert drafter.propose(ids([8]), 2).end == "no match"
    drafter.reset()
    assert drafter.propose(ids([0, 1, 2]), 9).ids == []


def contents(cache: LookupCache) -> list[Any]:
    """A cache as the original prints it."""
    listed = []
    for key in cache:
        followers = cache.get(key)
        assert followers is not None
        tokens = np.frombuffer(key, "<i4").tolist()
        listed.append([tokens, *(list(pair) for pair in sorted(followers.items().items()))])
    return sorted(listed)


@pytest.mark.parametrize("name", ["static_12", "dynamic_12"])
def test_a_file_of_the_original_is_read_as_it_reads_it(name: str, files: Path) -> None:
    assert contents(read_cache(files / f"{name}.bin", 12)) == unpacked("ngram_cache_files.json.gz")[name]


def test_a_file_of_ours_is_what_llama_lookup_would_have_saved(files: Path, tmp_path: Path) -> None:
    """The recorded contents are what the original read from its own file and from ours (by checksum)."""
    recorded = unpacked("ngram_cache_files.json.gz")
    path = tmp_path / "dynamic.bin"
    path.write_bytes((files / "dynamic_12.bin").read_bytes())
    NgramCache(NgramCacheParams(lookup_cache_dynamic=str(path)), 12).finish(ids(recorded["text"]))
    assert contents(read_cache(path, 12)) == recorded["lookup"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == recorded["ours_sha256"]


def test_every_answer_is_added_once(tmp_path: Path) -> None:
    path = tmp_path / "made.bin"
    drafter = NgramCache(NgramCacheParams(lookup_cache_dynamic=str(path)), 50)
    assert not path.exists()
    text = list(range(20))
    drafter.finish(ids(text[:12]))
    drafter.reset()  # cold again; the file keeps its contents
    drafter.finish(ids(text))
    expected: dict[bytes, Followers] = {}
    count_ngrams(expected, ids(text))
    read = read_cache(path, 50)
    assert len(read) == len(expected) == 19 + 18 + 17 + 16
    for key, counted in expected.items():
        followers = read.get(key)
        assert followers is not None and followers.items() == counted.items()
    written = path.read_bytes()
    drafter.finish(ids(text))
    assert path.read_bytes() == written
    # A text is added to what another window wrote.
    drafter.finish(ids([0, 1, 9]))
    again = read_cache(path, 50).get(struct.pack("<i", 0))
    assert again is not None and again.items() == {1: 1}  # 0 1 is the beginning shared with the previous text
    assert not list(tmp_path.glob("*.partial"))


RECORD = struct.pack("<7i", 1, 2, -1, -1, 1, 3, 5)
BAD = {
    "cut in a number": RECORD[:-1],
    "cut in a record": RECORD[:-8],
    "cut in a head": RECORD + RECORD[:12],
    "no followers": struct.pack("<5i", 1, 2, -1, -1, 0),
    "followers below zero": struct.pack("<5i", 1, 2, -1, -1, -3),
    "more followers than there is": struct.pack("<7i", 1, 2, -1, -1, 2**31 - 1, 3, 5),
    "count of zero": struct.pack("<7i", 1, 2, -1, -1, 1, 3, 0),
    "follower below zero": struct.pack("<7i", 1, 2, -1, -1, 1, -1, 5),
    "token below zero": struct.pack("<7i", 1, -2, -1, -1, 1, 3, 5),
    "gap in the n-gram": struct.pack("<7i", 1, -1, 2, -1, 1, 3, 5),
    "empty n-gram": struct.pack("<7i", -1, -1, -1, -1, 1, 3, 5),
    "twice the same n-gram": RECORD + RECORD,
    "another vocabulary: n-gram": struct.pack("<7i", 1, 60, -1, -1, 1, 3, 5),
    "another vocabulary: follower": struct.pack("<7i", 1, 2, -1, -1, 1, 50, 5),
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(200)),
}


@pytest.mark.parametrize("kind", ["static", "dynamic"])
@pytest.mark.parametrize("fault", BAD)
def test_a_bad_file_is_refused_and_left_alone(kind: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.bin"
    path.write_bytes(BAD[fault])
    params: dict[str, Any] = {f"lookup_cache_{kind}": str(path)}
    with pytest.raises(SettingError, match=r"bad\.bin") as refused:
        NgramCache(NgramCacheParams(**params), 50)
    assert ("vocabulary" in refused.value.message) == ("vocabulary" in fault)
    assert path.read_bytes() == BAD[fault]


@pytest.mark.parametrize("kind", ["static", "dynamic"])
@pytest.mark.parametrize("fault", sorted(BAD.keys() - {"twice the same n-gram"}))
def test_a_glance_says_what_reading_says(kind: str, fault: str, tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.bin", tmp_path / "good.bin"
    bad.write_bytes(BAD[fault])
    good.write_bytes(RECORD)
    with pytest.raises(SettingError) as read:
        read_cache(bad, 50)
    names = {"static": str(good), "dynamic": str(good)}
    glance_at_caches(**names, n_vocab=50)
    with pytest.raises(SettingError) as seen:
        glance_at_caches(**names | {kind: str(bad)}, n_vocab=50)
    assert (seen.value.message, seen.value.hint) == (read.value.message, read.value.hint)


def test_a_glance_is_at_the_beginning_of_a_large_file(tmp_path: Path) -> None:
    path, records = tmp_path / "large.bin", 20_000
    path.write_bytes(RECORD * records + BAD["another vocabulary: n-gram"])
    glance_at_caches(str(path), str(tmp_path / "new.bin"), 50)
    path.write_bytes(BAD["another vocabulary: n-gram"] + RECORD * records)
    with pytest.raises(SettingError, match="a different vocabulary than the target's"):
        glance_at_caches(str(path), "", 50)


def test_a_file_of_more_than_a_gibibyte_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.bin"
    with path.open("wb") as file:
        file.truncate(2**30 + 4)  # a hole: it takes no room on the disk
    for look in (read_cache, glance_at_cache):
        with pytest.raises(SettingError, match=r"huge\.bin is larger than 1 GiB"):
            look(path, 50)


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_a_cut_file_of_the_original_is_never_read_as_a_whole_one(
    kind: str, files: Path, tmp_path: Path
) -> None:
    """A file cut between two records is a smaller cache: the format cannot show the cut."""
    whole = (files / f"{kind}_3.bin").read_bytes()
    path, refused = tmp_path / "cut.bin", 0
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        try:
            assert len(read_cache(path, 3)) < len(read_cache(files / f"{kind}_3.bin", 3))
        except SettingError:
            refused += 1
    assert refused > 0.8 * len(whole)


def test_a_file_that_went_bad_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "dynamic.bin"
    drafter = NgramCache(NgramCacheParams(lookup_cache_dynamic=str(path)), 50)
    path.write_bytes(b"a letter")
    with pytest.raises(SettingError, match="damaged"):
        drafter.finish(ids([1, 2, 3]))
    assert path.read_bytes() == b"a letter"


def test_missing_files(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.bin")
    NgramCache(NgramCacheParams(lookup_cache_dynamic=missing), 50)
    with pytest.raises(SettingError, match="does not exist"):
        NgramCache(NgramCacheParams(lookup_cache_static=missing), 50)
    with pytest.raises(SettingError, match="no folder"):
        NgramCache(NgramCacheParams(lookup_cache_dynamic=str(tmp_path / "no" / "file.bin")), 50)
    with pytest.raises(SettingError, match="not a file"):
        NgramCache(NgramCacheParams(lookup_cache_dynamic=str(tmp_path)), 50)
    glance_at_caches("", missing, 50)
    with pytest.raises(SettingError, match="does not exist"):
        glance_at_caches(missing, "", 50)
    with pytest.raises(SettingError, match="no folder"):
        glance_at_caches("", str(tmp_path / "no" / "file.bin"), 50)


def test_an_empty_file_is_an_empty_cache(tmp_path: Path) -> None:
    (tmp_path / "empty.bin").touch()
    assert len(read_cache(tmp_path / "empty.bin", 50)) == 0


def test_an_answer_is_the_baseline_and_holds_accepted_drafts(
    engine: Engine, baselines: Baselines, tmp_path: Path
) -> None:
    """Drafts come from a file with the answer, because a tiny random model does not repeat itself."""
    request = GenerationRequest(prompt="abcabcabd abc", max_tokens=60, ignore_eos=True)
    baseline = answer(engine, request.prompt or "", strategy="none", max_tokens=60, ignore_eos=True)
    tokens = [token.id for round in baseline.rounds for token in round.emitted]
    known: dict[bytes, Followers] = {}
    for _ in range(4):
        count_ngrams(known, ids(tokens))
    path = tmp_path / "known.bin"
    for verify in ("greedy", "speculative", "match"):
        path.write_bytes(LookupCache.empty().merged(known))
        trace = baselines.check(engine, request, f"ngram-cache:lookup_cache_dynamic={path}:verify={verify}")
        assert sum(round.accepted for round in trace.rounds) > 10


def test_the_engine_saves_the_answer_and_refuses_a_bad_file_first(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "dynamic.bin"
    strategy = f"ngram-cache:lookup_cache_dynamic={str(path).replace('%', '%25')}"
    trace = answer(engine, strategy=strategy, max_tokens=20, ignore_eos=True)
    assert sum(len(round.emitted) for round in trace.rounds) == 20
    assert len(read_cache(path, engine.target.model.vocabulary.size)) > 0
    path.write_bytes(b"a letter")
    bad = strategy.replace("dynamic=", "static=")
    events = engine.generate(GenerationRequest(prompt="abc", strategy=bad))
    with pytest.raises(SettingError, match="damaged"):
        next(events)


def test_an_answer_stands_where_its_statistics_cannot_be_saved(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "dynamic.bin"
    request = GenerationRequest(
        prompt="abc",
        strategy=f"ngram-cache:lookup_cache_dynamic={str(path).replace('%', '%25')}",
        max_tokens=8,
        ignore_eos=True,
    )
    events = engine.generate(request)
    next(events)
    path.write_bytes(b"a letter")
    last = list(events)[-1]
    assert isinstance(last, Finished)
    assert last.totals.finish_reason is FinishReason.LENGTH
    assert "damaged" in last.totals.error
