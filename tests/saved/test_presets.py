"""Presets come back as they were saved, and a bad file loses nothing."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from app.engine.errors import SettingError, UserError
from app.engine.types import ModelOptions, Sampling
from app.saved.presets import VERSION, Preset, PresetStore
from app.saved.settings import Settings

FULL = Preset(
    "Fast",
    ModelOptions("/models/big.gguf", ctx_size=4096, flash_attn="on"),
    ModelOptions("/models/small.gguf", n_gpu_layers=0),
    "prompt-lookup:num_pred_tokens=4",
    Sampling(temperature=0.8, top_k=40, seed=7),
    99,
    ("\n\n", "END"),
)
PLAIN = Preset("Baseline", ModelOptions("bundled:demo_pair/target.gguf"), None, "none")


@pytest.fixture
def store(tmp_path: Path) -> PresetStore:
    return PresetStore(tmp_path / "config" / "presets.json")


def using(preset: Preset, settings: Settings) -> Settings:
    shared = [field.name for field in dataclasses.fields(Preset) if field.name != "name"]
    return dataclasses.replace(settings, **{name: getattr(preset, name) for name in shared})


def write(store: PresetStore, data: object) -> None:
    store.path.parent.mkdir(parents=True, exist_ok=True)
    store.path.write_text(data if isinstance(data, str) else json.dumps(data))


def test_no_file_is_no_preset(store: PresetStore) -> None:
    assert store.load().presets == () and store.load().notices == ()
    assert not store.path.exists()


def test_presets_come_back_in_their_order(store: PresetStore) -> None:
    store.save([FULL, PLAIN])
    loaded = PresetStore(store.path).load()
    assert loaded.presets == (FULL, PLAIN)
    assert loaded.notices == ()
    assert json.loads(store.path.read_text())["version"] == VERSION


def test_a_preset_holds_all_that_an_answer_depends_on() -> None:
    settings = Settings(theme="dark", system_prompt="Be short.")
    applied = using(FULL, settings)
    assert Preset.of("Fast", applied) == FULL
    assert (applied.theme, applied.system_prompt) == ("dark", "Be short.")
    shared = [field.name for field in dataclasses.fields(Preset) if field.name != "name"]
    assert [name for name in shared if getattr(applied, name) == getattr(settings, name)] == []


def test_in_use_only_where_all_of_it_is() -> None:
    settings = using(FULL, Settings())
    assert FULL.in_use(settings)
    assert FULL.in_use(dataclasses.replace(settings, theme="dark"))
    for change in ({"max_tokens": 98}, {"draft": None}, {"stop": ()}, {"sampling": Sampling()}):
        assert not FULL.in_use(dataclasses.replace(settings, **change))


@pytest.mark.parametrize("text", ["{", "[]", '{"presets": 3}', "{}", "\x00", '"' + "[" * 5000])
def test_a_damaged_file_is_set_aside(store: PresetStore, text: str) -> None:
    write(store, text)
    loaded = store.load()
    assert loaded.presets == ()
    kept = [file for file in store.path.parent.iterdir() if "damaged" in file.name]
    assert [file.read_text() for file in kept] == [text]
    assert kept[0].name in loaded.notices[0]
    store.save([PLAIN])
    assert store.load().presets == (PLAIN,)


@pytest.mark.parametrize(
    "change",
    [
        {"strategy": "magic"},
        {"max_tokens": 0},
        {"sampling": {"temperature": -1}},
        {"target": None},
        {"target": {"path": "a.gguf", "threads": -3}},
        {"name": " "},
        {"stop": "END"},
    ],
)
def test_one_bad_preset_costs_only_itself(store: PresetStore, change: dict[str, object]) -> None:
    store.save([FULL, PLAIN])
    data = json.loads(store.path.read_text())
    data["presets"][0].update(change)
    write(store, data)
    loaded = store.load()
    assert loaded.presets == (PLAIN,)
    assert "1 preset that cannot be used" in loaded.notices[0]
    store.save(loaded.presets)
    assert json.loads(store.path.read_text())["presets"][1] == data["presets"][0]


def test_a_preset_whose_drafter_comes_back_is_there_again(store: PresetStore) -> None:
    store.save([FULL, PLAIN])
    text = store.path.read_text()
    write(store, text.replace("prompt-lookup", "mine"))
    assert store.load().presets == (PLAIN,)
    store.save([PLAIN])
    write(store, store.path.read_text().replace("mine", "prompt-lookup"))
    assert set(PresetStore(store.path).load().presets) == {PLAIN, FULL}


def test_a_newer_file_is_kept(store: PresetStore) -> None:
    store.save([PLAIN])
    write(store, json.loads(store.path.read_text()) | {"version": VERSION + 1})
    loaded = store.load()
    assert loaded.presets == (PLAIN,)
    assert "newer" in loaded.notices[0]
    assert store.path.with_name("presets.json.newer").exists()


def test_what_could_not_be_rescued_is_not_overwritten(
    store: PresetStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, "{")

    def refuse(*_: object) -> Path:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("app.base.files.set_aside", refuse)
    assert "not saved" in store.load().notices[0]
    with pytest.raises(UserError, match="not saved"):
        store.save([PLAIN])
    assert store.path.read_text() == "{"


def test_a_full_disk_is_told(store: PresetStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save([PLAIN])

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.base.files.write_atomic", refuse)
    with pytest.raises(UserError, match="no space left on device"):
        store.save([])
    assert store.load().presets == (PLAIN,)


def test_names_and_values_are_checked() -> None:
    FULL.check()
    with pytest.raises(SettingError):
        dataclasses.replace(FULL, name="  ").check()
    with pytest.raises(SettingError):
        dataclasses.replace(FULL, max_tokens=0).check()


_SAVES = """
import sys
from pathlib import Path
from app.engine.types import ModelOptions
from app.saved.presets import Preset, PresetStore

store = PresetStore(Path(sys.argv[1]))
known = store.load().presets
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    made = Preset(f"{sys.argv[2]} {number}", ModelOptions("a.gguf"), None, "none")
    known = store.change(lambda presets: (*presets, made), known)
"""


def test_presets_that_two_processes_save_are_all_kept(store: PresetStore) -> None:
    store.save([PLAIN])
    command = [sys.executable, "-c", _SAVES, str(store.path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen([*command, "first"], **pipes) as first,
        subprocess.Popen([*command, "second"], **pipes) as second,
    ):
        for process in (first, second):
            assert process.stdout.readline() == "ready\n"
        for process in (first, second):
            process.stdin.write("go\n")
            process.stdin.flush()
        assert first.wait() == second.wait() == 0
    assert len(store.load().presets) == 41


def test_a_change_that_is_refused_changes_nothing(store: PresetStore) -> None:
    store.save([PLAIN])

    def refuse(_: object) -> tuple[Preset, ...]:
        raise UserError("There is one already.")

    with pytest.raises(UserError, match="already"):
        store.change(refuse, (PLAIN,))
    assert store.change(lambda presets: (*presets, FULL), (PLAIN,)) == (PLAIN, FULL)


def test_presets_that_another_program_holds_are_named(
    store: PresetStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.base.locks.PATIENCE", 0.05)
    store.save([PLAIN])
    second = PresetStore(store.path)
    lock = FileLock(store.path.with_name("presets.json.lock"))
    with lock, pytest.raises(UserError, match="presets are locked by another program"):
        second.change(lambda presets: presets, ())
