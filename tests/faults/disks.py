"""Disks that are full, turn read-only or are unplugged while a window chats, a model is downloaded, a bench
measures.

A "file" of this kind is a plan: what happens to the disk, when, and in the middle of what. It is carried out
by `mounted.py`, in a process with mounts of its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

import msgspec

from tests.faults.campaign import Fate, UnableError
from tests.faults.mounted import ACTIVITIES, FAULTS, Plan

_ROOT = Path(__file__).resolve().parents[2]
_LONGEST = 600.0  # seconds for a plan, on a busy machine
_ALONE = ("unshare", "--mount", "--propagation", "private")


class Disks:
    """Each plan has a disk of its own, which is gone with its process."""

    name = "disks"

    def __init__(self) -> None:
        """Raises UnableError where this user may not mount a disk."""
        self._folder = tempfile.TemporaryDirectory(prefix="faults-")
        tried = self._run(b"")
        if tried.returncode:
            self._folder.cleanup()
            raise UnableError(f"no disk can be mounted here ({tried.stderr.decode().splitlines()[-1]})")

    def make(self, random: Random) -> bytes:
        after = random.choice((0.0, random.uniform(0, 0.5), random.uniform(0, 3.0)))
        room = random.choice((0, 0, 4096, random.randrange(100_000)))
        doing, fault = random.choice(ACTIVITIES), random.choice(FAULTS)
        plan = Plan(doing, fault, after, room, random.random() < 0.8, random.random() < 0.5)
        return msgspec.json.encode(plan)

    def open(self, data: bytes) -> Fate:
        done = self._run(data)
        assert done.returncode == 0, done.stderr.decode()[-6000:]
        return Fate(done.stdout.decode().splitlines()[-1])

    def _run(self, data: bytes) -> subprocess.CompletedProcess[bytes]:
        command = [*_ALONE, sys.executable, "-m", "tests.faults.mounted", self._folder.name]
        try:
            return subprocess.run(
                command, input=data, capture_output=True, cwd=_ROOT, timeout=_LONGEST, check=False
            )
        except OSError as error:
            raise UnableError(f"no disk can be mounted here ({error})") from error

    def close(self) -> None:
        self._folder.cleanup()
