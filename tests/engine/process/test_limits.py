"""The limits on an engine process's main memory, read from files like the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.engine.process.limits import free_memory

GB = 2**30
_SYSTEM = f"MemAvailable: {16 * 2**20} kB\nSwapFree: {4 * 2**20} kB\nHugePages_Total: 0"


def _write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n", encoding="ascii")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    _write(tmp_path / "proc", meminfo=_SYSTEM)
    _write(tmp_path / "proc/self", cgroup="0::/")
    return tmp_path


def _limit(group: Path, limit: str, taken: int = 0, cache: int = 0) -> None:
    stat = f"anon {taken - cache}\ninactive_file {cache // 2}\nactive_file {cache // 2}"
    _write(group, memory__max=limit, memory__current=str(taken), memory__stat=stat)


def test_without_control_groups_the_system_says_what_is_free(root: Path) -> None:
    (root / "proc/self/cgroup").unlink()
    assert free_memory(root) == (16 * GB, 4 * GB)


def test_the_root_group_and_one_without_limits_change_nothing(root: Path) -> None:
    _write(root / "proc/self", cgroup="0::/user")
    _limit(root / "sys/fs/cgroup/user", "max", taken=3 * GB)
    _write(root / "sys/fs/cgroup/user", memory__swap__max="max", memory__swap__current="0")
    assert free_memory(root) == (16 * GB, 4 * GB)


def test_a_container_has_what_its_group_has_left_and_its_cache(root: Path) -> None:
    _limit(root / "sys/fs/cgroup", str(4 * GB), taken=3 * GB, cache=GB)
    _write(root / "sys/fs/cgroup", memory__swap__max=str(GB), memory__swap__current=str(GB // 4))
    assert free_memory(root) == (2 * GB, 3 * GB // 4)


def test_the_tightest_of_the_groups_around_a_process_counts(root: Path) -> None:
    _write(root / "proc/self", cgroup="1:name=systemd:/\n0::/slice/service")
    _limit(root / "sys/fs/cgroup/slice", str(2 * GB), taken=GB)
    _limit(root / "sys/fs/cgroup/slice/service", str(8 * GB), taken=GB)
    assert free_memory(root)[0] == GB


def test_a_group_that_cannot_be_seen_leaves_those_that_can(root: Path) -> None:
    _write(root / "proc/self", cgroup="0::/host/name/of/it")
    _limit(root / "sys/fs/cgroup", str(2 * GB))
    assert free_memory(root)[0] == 2 * GB


def test_a_group_that_has_more_than_the_system_leaves_the_systems(root: Path) -> None:
    _limit(root / "sys/fs/cgroup", str(64 * GB))
    assert free_memory(root)[0] == 16 * GB


def test_a_group_beyond_its_limit_has_nothing_left(root: Path) -> None:
    _limit(root / "sys/fs/cgroup", str(GB), taken=2 * GB)
    assert free_memory(root)[0] == 0
