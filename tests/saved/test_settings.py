"""Settings come back as they were, and a wrong value in the file costs only itself."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET, REAL_TARGET
from app.engine.errors import UserError
from app.engine.types import ModelOptions, Sampling
from app.saved.settings import RECENT_MODELS, VERSION, Settings, SettingsStore

CHANGED = Settings(
    target=ModelOptions("/models/Größe 8B.gguf", ctx_size=4096, threads=3, cache_type_k="q8_0"),
    draft=None,
    strategy="prompt-lookup:num_pred_tokens=5",
    sampling=Sampling(temperature=0.8, top_k=40, seed=2**63 - 1),
    max_tokens=99,
    stop=("\n\n", "„Ende“"),
    system_prompt="Be short.\nBe exact.",
    mode="completion",
    theme="dark",
    palette="colour-blind",
    motion="less",
    text_scale=1.25,
    drafts_shown=False,
    rendered=True,
    instruments_shown=False,
    sidebar_shown=False,
    offline=True,
    geometry="AdnQ",
    splitters={"main": "AAAA/w=="},
    last_chat="0f0f0f0f",
    server="http://127.0.0.1:8080",
    recent_models=("/models/a.gguf",),
    drafters=("/plugins/trie.py",),
)


@pytest.fixture
def store(tmp_path: Path) -> SettingsStore:
    return SettingsStore(tmp_path / "config" / "settings.json")


def write(store: SettingsStore, data: Any) -> None:
    store.path.parent.mkdir(exist_ok=True)
    store.path.write_text(data if isinstance(data, str) else json.dumps(data))


def test_the_first_start_has_the_defaults_and_nothing_to_say(store: SettingsStore) -> None:
    loaded = store.load()
    assert loaded.settings == Settings()
    assert loaded.notices == ()
    assert loaded.settings.target.path == BUNDLED_TARGET
    assert loaded.settings.draft is not None
    assert loaded.settings.draft.path == BUNDLED_DRAFT
    assert loaded.settings.strategy == "draft-simple:n_max=4"


def test_what_a_first_start_has_is_in_use_until_something_is_kept(store: SettingsStore) -> None:
    first = Settings(ModelOptions(REAL_TARGET), None, strategy="ngram-mod")
    starting = SettingsStore(store.path, first)
    assert starting.load().settings == first
    write(store, {"max_tokens": 9})
    kept = starting.load().settings
    assert (kept.target.path, kept.max_tokens) == (BUNDLED_TARGET, 9), "its other values stay the defaults"
    write(store, "damaged")
    assert starting.load().settings == first
    write(store, {"draft": None, "strategy": "gone"})
    assert starting.load().settings.strategy == "ngram-mod", "the usual one needs a draft"


def test_every_field_comes_back(store: SettingsStore) -> None:
    unchanged = [
        field.name
        for field in dataclasses.fields(Settings)
        if getattr(CHANGED, field.name) == getattr(Settings(), field.name)
    ]
    assert unchanged == []  # or the next lines would prove nothing about them
    store.save(CHANGED)
    loaded = SettingsStore(store.path).load()
    assert loaded.settings == CHANGED
    assert loaded.notices == ()


def test_the_file_is_versioned_and_names_no_place_of_the_installation(store: SettingsStore) -> None:
    store.save(Settings())
    data = json.loads(store.path.read_text())
    assert data["version"] == VERSION
    assert data["target"]["path"] == "bundled:demo_pair/target.gguf"


def test_unknown_keys_are_kept(store: SettingsStore) -> None:
    write(store, {"later": {"a": 1}, "sampling": {"temperature": 0.5, "mirostat": 2}})
    settings = store.load().settings
    assert settings.sampling.temperature == 0.5
    store.save(dataclasses.replace(settings, max_tokens=7))
    data = json.loads(store.path.read_text())
    assert data["later"] == {"a": 1}
    assert data["sampling"]["mirostat"] == 2
    assert data["sampling"]["temperature"] == 0.5
    assert data["max_tokens"] == 7


def test_a_splitter_that_is_gone_does_not_come_back(store: SettingsStore) -> None:
    store.save(CHANGED)
    store.load()
    store.save(dataclasses.replace(CHANGED, splitters={}))
    assert SettingsStore(store.path).load().settings.splitters == {}


@pytest.mark.parametrize(
    ("data", "name", "allowed"),
    [
        ({"max_tokens": 0}, "max_tokens", "from 1 to 1,000,000"),
        ({"max_tokens": True}, "max_tokens", ""),
        ({"max_tokens": "many"}, "max_tokens", ""),
        ({"text_scale": 40}, "text_scale", "from 0.5 to 3"),
        ({"theme": "pink"}, "theme", "system, light, dark"),
        ({"mode": None}, "mode", ""),
        ({"stop": "END"}, "stop", ""),
        ({"target": None}, "target", ""),
        ({"target": "model.gguf"}, "target", ""),
        ({"target": {"ctx_size": -1}}, "target.ctx_size", "from 0"),
        ({"draft": {"cache_type_k": "q9"}}, "draft.cache_type_k", "q8_0"),
        ({"sampling": {"temperature": -1}}, "sampling.temperature", "from 0 to 10"),
        ({"sampling": {"top_p": 1.5}}, "sampling.top_p", "from 0 to 1"),
        ({"splitters": ["a"]}, "splitters", ""),
    ],
)
def test_a_wrong_value_falls_back_alone(
    store: SettingsStore, data: dict[str, Any], name: str, allowed: str
) -> None:
    write(store, {"strategy": "prompt-lookup", **data})
    loaded = store.load()
    assert loaded.settings == Settings(strategy="prompt-lookup")
    assert len(loaded.notices) == 1
    assert name in loaded.notices[0]
    assert allowed in loaded.notices[0]


def test_the_rest_of_a_section_is_kept(store: SettingsStore) -> None:
    write(store, {"target": {"path": "/m.gguf", "ctx_size": -1, "threads": 3}})
    loaded = store.load()
    assert loaded.settings.target == ModelOptions("/m.gguf", threads=3)
    assert len(loaded.notices) == 1


def test_several_wrong_values_have_a_sentence_each(store: SettingsStore) -> None:
    write(store, {"max_tokens": 0, "theme": 1, "sampling": {"top_k": "x" * 500}})
    notices = store.load().notices
    assert len(notices) == 3
    assert all(len(notice) < 160 for notice in notices)


@pytest.mark.parametrize("spec", ["medusa", "draft-simple:n_max=0", "draft-simple:k"])
def test_a_strategy_that_is_unknown_falls_back(store: SettingsStore, spec: str) -> None:
    write(store, {"strategy": spec, "max_tokens": 7})
    loaded = store.load()
    assert loaded.settings == Settings(max_tokens=7)
    assert "strategy" in loaded.notices[0]


def test_a_draft_that_is_switched_off_stays_off(store: SettingsStore) -> None:
    write(store, {"draft": None})
    loaded = store.load()
    assert loaded.settings.draft is None
    assert loaded.notices == ()


@pytest.mark.parametrize("contents", ["", "{", "[]", "\x00\x00", '{"max_tokens": 5', "[" * 100_000])
def test_a_damaged_file_is_set_aside_and_named(store: SettingsStore, contents: str) -> None:
    write(store, contents)
    loaded = store.load()
    assert loaded.settings == Settings()
    (aside,) = store.path.parent.glob("settings.json.damaged-*")
    assert aside.read_text() == contents
    assert len(loaded.notices) == 1
    assert aside.name in loaded.notices[0]
    store.save(CHANGED)
    assert SettingsStore(store.path).load().settings == CHANGED


def test_a_file_that_can_be_neither_read_nor_moved_is_not_overwritten(
    store: SettingsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, "{")

    def refuse(path: Path, word: str) -> Path:
        raise OSError(13, "Permission denied")

    monkeypatch.setattr("app.base.files.set_aside", refuse)
    loaded = store.load()
    assert "not saved" in loaded.notices[0]
    with pytest.raises(UserError, match="not saved"):
        store.save(Settings())
    assert store.path.read_text() == "{"


def test_a_newer_file_is_read_and_copied(store: SettingsStore) -> None:
    write(store, {"version": VERSION + 1, "max_tokens": 33, "new": True})
    before = store.path.read_bytes()
    loaded = store.load()
    assert loaded.settings.max_tokens == 33
    assert "settings.json.newer" in loaded.notices[0]
    store.save(loaded.settings)
    assert (store.path.parent / "settings.json.newer").read_bytes() == before


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("in the way")
    store = SettingsStore(tmp_path / "config" / "settings.json")
    with pytest.raises(UserError, match="were not saved"):
        store.save(Settings())


def test_a_file_name_that_is_no_text_is_a_clear_error(store: SettingsStore) -> None:
    odd = dataclasses.replace(Settings(), target=ModelOptions("/models/\udcff.gguf"))
    with pytest.raises(UserError, match="not valid text"):
        store.save(odd)


def test_recent_models_are_few_and_the_last_is_first() -> None:
    settings = Settings()
    for number in range(RECENT_MODELS + 3):
        settings = settings.with_recent(f"/m{number}.gguf")
    settings = settings.with_recent("/m5.gguf")
    assert settings.recent_models[0] == "/m5.gguf"
    assert len(settings.recent_models) == RECENT_MODELS == len(set(settings.recent_models))
