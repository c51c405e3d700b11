"""Carries out a plan of `disks.py`: `unshare --mount python -m tests.faults.mounted FOLDER < plan`.

The disk is an ext4 image in a file, mounted in this process's mounts alone, so that it goes with the process.
Prints what became of the plan; without a plan the disk is only mounted.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import msgspec

from app.base.paths import find_paths
from app.care.check import check_data, repair
from app.lab.runs.journal import Journal
from app.saved.chats.store import ChatStore
from tests.faults.campaign import Fate, checked
from tests.faults.window.driven import DrivenWindow, chats_on_disk, furnish
from tests.files.tiny import Tiny, write_tiny
from tests.hub.server import FakeHub, FakeRepo, Fault, running

FULL, READ_ONLY, UNPLUGGED = FAULTS = ("full", "read-only", "unplugged")
CHATTING, DOWNLOADING, MEASURING = ACTIVITIES = ("chatting", "downloading", "measuring")
_SIZE = 96 << 20  # bytes; downloads leave 64 MB free
_SHUTDOWN, _AT_ONCE = 0x8004587D, b"\2\0\0\0"  # FS_IOC_SHUTDOWN, without writing anything more
_REPO, _FILE = "owner/model-GGUF", "model-Q4_K_M.gguf"
_DATA = Random(1).randbytes(2_000_000)
_PATIENCE = 240.0  # seconds for a command, on a busy machine


class Plan(msgspec.Struct):
    """What happens to the disk."""

    doing: str
    fault: str
    after: float  # seconds from the beginning of what is done
    room: int  # bytes that a full disk has left
    mended: bool  # while the window is still open
    asks_again: bool = True  # after that; else it is closed at once


class Disk:
    """A disk that can be filled, broken, unplugged, and mended."""

    def __init__(self, folder: Path) -> None:
        self._image = folder / "disk-0"
        self.place = folder / "disk"
        self.place.mkdir()
        with self._image.open("wb") as file:
            file.truncate(_SIZE)
        _ran("mke2fs", "-q", "-t", "ext4", "-m", "0", str(self._image))
        self._filler = self.place / "filler"
        self._plug()

    def _plug(self) -> None:
        _ran("mount", "-o", "loop,errors=remount-ro", str(self._image), str(self.place))

    def hurt(self, plan: Plan) -> None:
        """Let it be full, read-only, or gone."""
        if plan.fault == FULL:
            with self._filler.open("wb", buffering=0) as file:
                with suppress(OSError):  # of a full disk
                    while file.write(bytes(1 << 16)):
                        pass
                file.truncate(max(0, file.tell() - plan.room))
        elif plan.fault == READ_ONLY:
            device = _ran("findmnt", "-no", "SOURCE", str(self.place)).strip()
            Path("/sys/fs/ext4", Path(device).name, "trigger_fs_error").write_text("1")
        else:
            folder = os.open(self.place, os.O_RDONLY)
            fcntl.ioctl(folder, _SHUTDOWN, _AT_ONCE)
            os.close(folder)

    def mend(self, plan: Plan) -> None:
        """Make room, or plug it in again, with what had reached it."""
        if plan.fault == FULL:
            self._filler.unlink()
            return
        _ran("umount", "--lazy", str(self.place))
        copy = self._image.with_name("disk-1")  # the kernel still has the first one while files are open
        _ran("cp", "--sparse=always", str(self._image), str(copy))
        self._image = copy
        self._plug()


def _ran(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _chat(disk: Disk, folder: Path, plan: Plan) -> Fate:
    """A window goes on with its chat while the disk fails, and afterwards."""
    home = disk.place / "home"
    furnish(home, _target(folder), max_tokens=300)
    window = DrivenWindow(home)
    window.idle()
    asked = ["abcab before", "abcab meanwhile", "abcab on the damaged disk", "abcab after"]
    window.do("ask", text=asked[0])
    window.idle()
    window.do("ask", text=asked[1])
    time.sleep(plan.after)
    disk.hurt(plan)
    window.idle()
    window.do("ask", text=asked[2])
    look = window.idle()
    checked(look.error)
    assert [text for text in look.texts if "abcab " in text] == asked[:3], look
    assert look.tokens and all(look.texts), "an answer is missing"
    if plan.mended:
        disk.mend(plan)
    if plan.mended and plan.asks_again:
        deadline = time.monotonic() + _PATIENCE
        while any(text not in chats_on_disk(home) for text in asked[:3]):
            assert time.monotonic() < deadline, "a question is not saved"
            window.do("look")  # a moment
            time.sleep(0.2)
        window.do("ask", text=asked[3])
        look = window.idle()
        assert look.texts[6:7] == [asked[3]] and look.tokens, look
    assert window.close() == 0
    if not plan.mended:
        disk.mend(plan)
    kept = 1 if not plan.mended else 4 if plan.asks_again else 3
    _check_chat(home, asked[:kept])
    return Fate.SAID


def _check_chat(home: Path, asked: list[str]) -> None:
    """What is on the disk: these questions; and a store that can go on with it."""
    on_disk = chats_on_disk(home)
    assert [text for text in asked if text not in on_disk] == [], "a question is lost"
    paths = find_paths({"DRAFTSCOPE_HOME": str(home)})
    findings = check_data(paths)
    for finding in findings:
        checked(finding.words)
    assert repair(findings) == ()
    store = ChatStore(paths.chats)
    (head,) = store.heads()
    went_on = store.ask(store.load(head.id), "And then?")
    assert store.load(head.id).turns == went_on.turns


def _download(disk: Disk, folder: Path, plan: Plan) -> Fate:
    """`draftscope pull`, and the same again when the disk is well."""
    with running() as server:
        server.repos[_REPO] = FakeRepo({_FILE: _DATA})
        server.always["cdn"] = Fault(pace=0.002)
        environment = _hub(server, disk.place, folder)
        command = ("pull", _REPO, _FILE)
        fate = _hurt_meanwhile(command, environment, disk, plan)
        server.clear()
        code, out, err = _command(command, environment)
        assert code == 0, err
        assert Path(out.strip()).read_bytes() == _DATA
    return fate


def _hub(server: FakeHub, place: Path, folder: Path) -> dict[str, str]:
    own = {"HF_ENDPOINT": server.address, "HF_HOME": str(place / "hub"), "NO_PROXY": "127.0.0.1"}
    return own | {"DRAFTSCOPE_HOME": str(folder / "home")}


def _measure(disk: Disk, folder: Path, plan: Plan) -> Fate:
    """`draftscope bench` with its journal on the disk, and the same again when the disk is well."""
    journal = disk.place / "suite.jsonl"
    words = "--strategy prompt-lookup --prompt abcabc --max-tokens 200 --repeat 8 --ignore-eos"
    command = ("bench", "--target", str(_target(folder)), *words.split(), "--journal", str(journal))
    environment = {"DRAFTSCOPE_HOME": str(folder / "home")}
    fate = _hurt_meanwhile(command, environment, disk, plan)
    code, _, err = _command(command, environment)
    assert code == 0, err
    kept = Journal.read(journal)
    assert set(kept.records) == set(kept.experiment.jobs())
    return fate


def _hurt_meanwhile(command: tuple[str, ...], environment: dict[str, str], disk: Disk, plan: Plan) -> Fate:
    """Run a command, on whose disk something happens; then mend that."""
    with _begun(command, environment) as process:
        deadline = time.monotonic() + _PATIENCE
        while process.poll() is None and not any(disk.place.rglob("*.*")) and time.monotonic() < deadline:
            time.sleep(0.02)  # until it has written something
        time.sleep(plan.after)
        disk.hurt(plan)
        _, err = process.communicate(timeout=_PATIENCE)
    disk.mend(plan)
    assert "Traceback" not in err, err
    if process.returncode == 0:
        return Fate.OPENED
    assert process.returncode == 1, (process.returncode, err)
    checked(err.splitlines()[-1])
    return Fate.ENDED


@contextmanager
def _begun(command: tuple[str, ...], environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "app", *command],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _command(command: tuple[str, ...], environment: dict[str, str]) -> tuple[int, str, str]:
    with _begun(command, environment) as process:
        out, err = process.communicate(timeout=_PATIENCE)
    return process.returncode, out, err


def _target(folder: Path) -> Path:
    tiny = Tiny(name="slow", n_layers=6, n_embd=128, n_ff=512, n_ctx=8192)
    return write_tiny(folder / "target.gguf", tiny)


_DOING: dict[str, Callable[[Disk, Path, Plan], Fate]] = {
    CHATTING: _chat,
    DOWNLOADING: _download,
    MEASURING: _measure,
}


def main(folder: str, data: bytes) -> None:
    """Carry out a plan in a new folder in `folder`."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        disk = Disk(Path(own))
        try:
            if data:
                plan = msgspec.json.decode(data, type=Plan)
                print(_DOING[plan.doing](disk, Path(own), plan))
        finally:
            _ran("umount", "--lazy", str(disk.place))


if __name__ == "__main__":
    main(sys.argv[1], sys.stdin.buffer.read())
