"""The folders that the app reads and writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.base.paths import BUNDLED_TARGET, HOME_VARIABLE, REAL_TARGET, Paths, find_paths, make_folder
from app.engine.errors import UserError


def test_one_variable_moves_everything_that_is_written(tmp_path: Path) -> None:
    paths = find_paths({HOME_VARIABLE: str(tmp_path)})
    paths.prepare()
    for folder in (paths.data, paths.config, paths.logs, paths.chats):
        assert folder.is_dir()
        assert folder.is_relative_to(tmp_path)
    assert paths.settings.is_relative_to(tmp_path)
    assert not paths.resources.is_relative_to(tmp_path)


def test_without_it_the_systems_folders_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    paths = find_paths({})
    assert "draftscope" in str(paths.data)
    assert "draftscope" in str(paths.config)


def test_resources_of_the_source_tree_are_found() -> None:
    assert (find_paths({}).fonts / "Inter-Regular.otf").is_file()


def test_a_bundled_model_is_looked_up_where_the_app_is_now() -> None:
    here = Paths(Path("/here/resources"), Path("d"), Path("c"), Path("l"))
    there = Paths(Path("/there/resources"), Path("d"), Path("c"), Path("l"))
    assert Path(here.model(BUNDLED_TARGET)) == Path("/here/resources/demo_pair/target.gguf")
    assert Path(there.model(BUNDLED_TARGET)) == Path("/there/resources/demo_pair/target.gguf")
    assert here.model("/models/own.gguf") == "/models/own.gguf"


def test_a_file_in_the_way_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder")
    paths = find_paths({HOME_VARIABLE: str(tmp_path)})
    with pytest.raises(UserError) as caught:
        paths.prepare()
    assert str(tmp_path / "data") in caught.value.message
    assert HOME_VARIABLE in caught.value.hint


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that nobody can write")
def test_a_folder_that_cannot_be_written_is_a_clear_error() -> None:
    with pytest.raises(UserError, match="cannot be used"):
        make_folder(Path("/proc/self"))  # it exists, but nothing can be made in it


@pytest.mark.real
def test_set_ups_model_has_a_symbol(tmp_path: Path) -> None:
    paths = find_paths({HOME_VARIABLE: str(tmp_path)})
    assert paths.named(paths.model(REAL_TARGET)) == REAL_TARGET
    inside = Paths(tmp_path, tmp_path, tmp_path, tmp_path)
    (tmp_path / "real").mkdir()
    file = tmp_path / "real" / paths.real_target.name
    file.write_bytes(b"in a package")
    assert inside.model(REAL_TARGET) == str(file), "a package's own comes first"
