"""`make package-test`: tries the packages of `make package` in a system without Python and compiler.

The tarball is unpacked as README says; the single file is started as it is. With each, the window must open,
the demo must answer, and the answer's trace must verify. Every exit code must be 0, and nothing unexpected
may be printed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from console import SetupError, say
from linux.clean_root import in_root, make_root
from package import DIST, bundle_name
from steps import guarded

INSIDE = Path(__file__).with_name("trial.sh")
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
UNPACKING = re.compile(r"draftscope: unpacking into /root/\.cache/draftscope/programs/\S+, once\n")


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds from the call to the visible window, and to the demo's whole answer."""

    window: float
    answer: float


def main() -> int:
    return guarded(try_both)


def try_both() -> None:
    """Try the tarball and the single file; prints their table."""
    name = bundle_name()
    tarball, single = DIST / f"{name}.tar.xz", DIST / f"{name}.run"
    for file in (tarball, single):
        if not file.is_file():
            raise SetupError(f"{file.name} is not in dist/.", "Run make package first.")
    with tempfile.TemporaryDirectory(prefix="draftscope-trial-") as temporary:
        root = Path(temporary)
        make_root(root)
        for file in (tarball, single):
            shutil.copy2(file, root / "root")
        unpacked = _timed(root, "tar", "-xf", f"/root/{tarball.name}", "-C", "/root")
        of_folder = _try(root, f"/root/{name}/draftscope", "")
        first = _said(root, f"/root/{single.name}", "--version")
        if not UNPACKING.fullmatch(first.stderr) or not first.stdout.startswith("draftscope "):
            raise SetupError(f"The single file printed {first.stdout!r} and {first.stderr!r}.")
        of_file = _try(root, f"/root/{single.name}", "")
    print(f"\n{'':36}{'tarball':>12}{'one file':>12}")
    _row("size, MB", tarball.stat().st_size / 1e6, single.stat().st_size / 1e6)
    _row("unpacking, s", unpacked, first.seconds)
    for words, starts in (("first start", 0), ("second start", 1)):
        _row(f"{words}: the window shows after, s", of_folder[starts].window, of_file[starts].window)
        _row(f"{words}: the demo has answered, s", of_folder[starts].answer, of_file[starts].answer)
    print()


def _row(words: str, *values: float) -> None:
    print(f"{words:36}" + "".join(f"{value:12.1f}" for value in values))


def _try(root: Path, program: str, expected: str) -> list[Start]:
    """Start the program twice, the first time in an empty home; verify what it recorded."""
    say(f"trying {program}")
    shutil.rmtree(root / "tmp" / "home", ignore_errors=True)
    version = _said(root, program, "--version")
    if (version.stderr, version.stdout.split()[:1]) != ("", ["draftscope"]):
        raise SetupError(f"--version printed {version.stdout!r} and {version.stderr!r}.")
    starts = [_open_window(root, program) for _ in range(2)]
    traces = [
        path
        for path in (root / "tmp" / "home" / "data" / "chats").glob("*/*.jsonl")
        if path.name != "chat.jsonl"
    ]
    if len(traces) != 2:
        raise SetupError(f"Two answers should have been recorded; there are {len(traces)}.")
    for trace in traces:
        said = _said(root, program, "replay", f"/{trace.relative_to(root)}", "--verify")
        if not re.search(r"\d+ rounds verified\.\n$", said.stderr):
            raise SetupError(f"The window's trace does not verify: {said.stderr}")
    return starts


def _open_window(root: Path, program: str) -> Start:
    shutil.copyfile(INSIDE, root / "tmp" / "trial.sh")
    shutil.rmtree(root / "tmp" / ".X11-unix", ignore_errors=True)
    (root / "tmp" / ".X7-lock").unlink(missing_ok=True)
    done = in_root(root, ["sh", "/tmp/trial.sh", program], ENVIRONMENT)
    printed = (root / "tmp" / "said").read_text(encoding="utf-8", errors="replace")
    found = dict(re.findall(r"^(\w+) (\d+)$", done.stdout, re.MULTILINE))
    if done.returncode or found.get("code") != "0" or printed:
        raise SetupError(f"The window failed: {done.stdout}{done.stderr}It printed: {printed or 'nothing'}")
    return Start(int(found["window"]) / 1000, int(found["answer"]) / 1000)


@dataclass(frozen=True, slots=True)
class Said:
    """A program's output, and how long it took."""

    stdout: str
    stderr: str
    seconds: float


def _said(root: Path, *command: str) -> Said:
    """Run a command that must succeed."""
    began = time.monotonic()
    done: subprocess.CompletedProcess[str] = in_root(root, command, ENVIRONMENT)
    if done.returncode:
        raise SetupError(f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return Said(done.stdout, done.stderr, time.monotonic() - began)


def _timed(root: Path, *command: str) -> float:
    return _said(root, *command).seconds


if __name__ == "__main__":
    sys.exit(main())
