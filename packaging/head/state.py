"""What a run leaves in its folder, and how a step ends: shards of text with features, locks, SIGTERM."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

LAYERS = (2, 15, 29)  # whose inputs the head reads; the last block reads the third
SHARDS = "shards"
ARRAYS = ("ids", "answer", "features", "hidden", "best", "total")
BATCH = 8  # dialogues of a training step
RECIPE = Path(__file__).parent


class Ending:
    """Whether the process was asked to end: a step looks at it where it can go on from later."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True

    def leave(self) -> None:
        """End the process as the signal would have, so that no further step begins."""
        if self.asked:
            raise SystemExit(128 + signal.SIGTERM)


class Claim:
    """A step that runs once per folder: `NAME.pid` has its process while it runs, `NAME.log` its words."""

    def __init__(self, work: Path, name: str) -> None:
        self._path = work / f"{name}.pid"
        self._file = self._path.open("a")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise SystemExit(f"{name} runs already in {work}: process {self._path.read_text()}") from None
        self._log = (work / f"{name}.log").open("a", encoding="utf-8")
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def say(self, words: str) -> None:
        line = f"{time.strftime('%m-%d %H:%M:%S')} {words}"
        print(line, flush=True)
        print(line, file=self._log, flush=True)

    def close(self) -> None:
        self._path.unlink()
        self._file.close()
        self._log.close()


@dataclass(slots=True)
class Dialogue:
    """Tokens, and what the target computed at all of them but the last.

    `ids` (n + 1), `answer` (n + 1) whether the assistant wrote the token, `features` (n, 3 x width) float16.
    Of the m tokens of `answer[:n]`: `hidden` (m, width) float16, the normed last hidden rows; `best` (m) the
    most likely next token, `total` (m) the logarithm of the sum of all e^logits.
    """

    ids: np.ndarray
    answer: np.ndarray
    features: np.ndarray
    hidden: np.ndarray
    best: np.ndarray
    total: np.ndarray
    held_out: bool = False
    about: dict[str, Any] = field(default_factory=dict)


def shard_folders(work: Path) -> list[Path]:
    return sorted((work / SHARDS).glob("[0-9]*"))


def write_shard(work: Path, dialogues: list[Dialogue]) -> Path:
    """Write a shard under the next number: whole, or not at all."""
    folders = shard_folders(work)
    number = int(folders[-1].name) + 1 if folders else 0
    place = work / SHARDS / f"{number:05d}"
    fresh = work / SHARDS / "new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for name in ARRAYS:
        np.save(fresh / f"{name}.npy", np.concatenate([getattr(each, name) for each in dialogues]))
    about = [{"tokens": len(each.ids), "held_out": each.held_out, **each.about} for each in dialogues]
    (fresh / "dialogues.json").write_text(json.dumps(about))
    fresh.rename(place)
    return place


def read_shard(place: Path) -> list[Dialogue]:
    """The dialogues of a shard; their features stay on the disk until they are read."""
    arrays = {name: np.load(place / f"{name}.npy", mmap_mode="r") for name in ARRAYS}
    found, token, told = [], 0, 0
    for about in json.loads((place / "dialogues.json").read_text()):
        n = about.pop("tokens")
        row = token - len(found)  # the last token of each dialogue has none
        ids, answer = (arrays[name][token : token + n] for name in ("ids", "answer"))
        answers = slice(told, told + int(answer[:-1].sum()))
        features = arrays["features"][row : row + n - 1]
        rest = (arrays[name][answers] for name in ("hidden", "best", "total"))
        found.append(Dialogue(ids, answer, features, *rest, about.pop("held_out"), about))
        token, told = token + n, answers.stop
    return found


def places_of(dialogue: Dialogue, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places P that are given an answer's token, P+1, to draft the next one.

    Also (steps, places) whether step s is given a token of the same answer, and where that token's row is.
    """
    answer = dialogue.answer[:-1]
    index = np.cumsum(answer) - 1
    rows = np.flatnonzero(answer[1:])
    rows = rows[rows > 0]  # the attention sink teaches nothing
    given = np.minimum(rows[None] + 1 + np.arange(steps)[:, None], len(answer) - 1)
    scored = np.logical_and.accumulate(answer[given], axis=0)
    scored &= rows[None] + 1 + np.arange(steps)[:, None] < len(answer)
    return rows, scored, index[given]
