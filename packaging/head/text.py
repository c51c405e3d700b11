"""The model writes its own dialogues, many at once; what it computes at each token is kept as it comes.

A dialogue begins with a system prompt and, often, with a few words of a question. The model goes on with the
question, answers it, and sometimes asks and answers once more. Every pass reads one token of each dialogue.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from state import LAYERS, RECIPE, Claim, Dialogue, Ending, shard_folders, write_shard
from target import Target

ROWS = 96  # dialogues at once
LENGTH = 512  # tokens of a dialogue at most
QUESTION = 200  # tokens of a question at most
SHARD = 20_000  # tokens
HELD_OUT_SHARE = 1 / 16
SECOND_TURN = 0.25
OWN_SYSTEM = 0.75  # the share of dialogues with the system prompt that the chat template adds
TEMPERATURES = (0.0, 0.0, 0.0, 0.4, 0.6, 0.8, 0.8, 1.0)  # of answers
QUESTION_NUCLEUS = 0.95
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
LOOP, LONGEST_PERIOD = 96, 40


def plain(text: str) -> str:
    """The words of a text alone, to find a held-out prompt again."""
    return " ".join(re.findall(r"\w+", text.lower()))


def draw(row: np.ndarray, temperature: float, rng: np.random.Generator, nucleus: float = 1.0) -> int:
    """A token by its logits; the most likely at temperature 0. What is e^16 times less likely never comes."""
    best = int(row.argmax())
    if temperature == 0:
        return best
    near = np.flatnonzero(row > row[best] - 16 * temperature)
    chances = np.exp((row[near] - row[best]) / temperature)
    if nucleus < 1:
        order = np.argsort(-chances)
        near, chances = near[order], chances[order]
        kept = int(np.searchsorted(np.cumsum(chances), nucleus * chances.sum())) + 1
        near, chances = near[:kept], chances[:kept]
    sums = np.cumsum(chances, dtype=np.float64)
    return int(near[np.searchsorted(sums, rng.random() * sums[-1], side="right")])


def log_sum(logits: np.ndarray) -> float:
    """The logarithm of the sum of e^logits."""
    best = logits.max()
    return float(best + np.log(np.exp(logits - best).sum()))


def loops(ids: list[int]) -> bool:
    """Whether the last LOOP tokens repeat a few tokens again and again."""
    end = ids[-LOOP:]
    return len(end) == LOOP and any(end[period:] == end[:-period] for period in range(1, LONGEST_PERIOD))


class Writer:
    """One dialogue at a time, token by token: `next` is what is read in the coming pass."""

    def __init__(self, target: Target, rng: np.random.Generator, openings: dict[str, Any]) -> None:
        self._target, self._rng, self._openings = target, rng, openings
        tokens = {words: target.tokenize(words) for words in ("<|im_start|>", "<|im_end|>")}
        (self._begin,), (self._end,) = tokens.values()
        self._answer = target.tokenize("<|im_end|>\n<|im_start|>assistant\n")
        self._again = target.tokenize("<|im_end|>\n<|im_start|>user\n")
        self._features = np.empty((LENGTH, len(target.layers) * target.width), np.float16)
        self._hidden = np.empty((LENGTH, target.width), np.float16)
        self._best = np.empty(LENGTH, np.uint16)
        self._total = np.empty(LENGTH, np.float32)
        self.start()

    def start(self) -> None:
        rng = self._rng
        self.held_out = rng.random() < HELD_OUT_SHARE
        if self.held_out:
            self.kind, choices = "held out", self._openings["held out"]
        else:
            self.kind = str(rng.choice(list(self._openings["trained"])))
            choices = self._openings["trained"][self.kind]
        system = SYSTEM if rng.random() < OWN_SYSTEM else str(rng.choice(self._openings["systems"]))
        head = f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n"
        self.temperature = float(rng.choice(TEMPERATURES))
        prefix = self._target.tokenize(head)
        self._question = len(prefix)
        self._queue = prefix + self._target.tokenize(str(rng.choice(choices)))
        self.ids: list[int] = []
        self.answer: list[bool] = []
        self._answering = False
        self._told = 0
        self.questions: list[str] = []

    @property
    def next(self) -> int:
        """The token to read; it stands at place len(ids)."""
        return self._queue[0]

    def take(self, features: np.ndarray, hidden: np.ndarray, logits: np.ndarray) -> Dialogue | None:
        """Keep the row of `next`, choose what follows it; the dialogue if it is over."""
        token = self._queue.pop(0)
        written = self._answering
        self._features[len(self.ids)] = np.clip(features, -60_000, 60_000)
        if written:
            self._hidden[self._told], self._best[self._told] = hidden, logits.argmax()
            self._total[self._told] = log_sum(logits)
            self._told += 1
        self.ids.append(token)
        self.answer.append(written)
        if len(self.ids) == LENGTH - 1:
            return self._finish(draw(logits, self.temperature, self._rng))
        if self._queue:
            if len(self._queue) == 1 and self._queue[0] < 0:  # the tag before an answer ends here
                self._queue.clear()
                self._answering = True
            else:
                return None
        if self._answering:
            return self._go_on(draw(logits, self.temperature, self._rng))
        return self._ask(draw(logits, 1.0, self._rng, QUESTION_NUCLEUS))

    def cut(self) -> Dialogue:
        """The dialogue as far as it got."""
        return self._finish(self.next)

    def _ask(self, token: int) -> Dialogue | None:
        asked = len(self.ids) - self._question
        if not asked and token in (self._begin, self._end):
            return self._finish(token)  # nothing was asked
        if token in (self._begin, self._end) or asked >= QUESTION:
            self.questions.append(self._target.text(self.ids[self._question :]))
            self._queue = [*self._answer, -1]
        else:
            self._queue = [token]
        return None

    def _go_on(self, token: int) -> Dialogue | None:
        if token not in (self._begin, self._end):
            if len(self.ids) % 16 or not loops(self.ids):
                self._queue = [token]
                return None
            return self._finish(token)
        if self._rng.random() >= SECOND_TURN or len(self.ids) > LENGTH - 128:
            return self._finish(token)
        # The end of the answer is its own token; what follows is not.
        self._queue = list(self._again)
        self._question = len(self.ids) + len(self._again)
        self._answering = False
        return None

    def _finish(self, last: int) -> Dialogue:
        n = len(self.ids)
        about = {"kind": self.kind, "temperature": self.temperature}
        return Dialogue(
            np.array([*self.ids, last], np.uint16),
            np.array([*self.answer, self._answering]),
            self._features[:n].copy(),
            self._hidden[: self._told].copy(),
            self._best[: self._told].copy(),
            self._total[: self._told].copy(),
            self.held_out,
            about,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--tokens", type=int, required=True, help="how many there are in the end")
    args = parser.parse_args()
    ending, claim = Ending(), Claim(args.work, "text")
    openings = json.loads((RECIPE / "openings.json").read_text())
    forbidden = {
        plain(each) for group in json.loads((RECIPE / "held_out.json").read_text()).values() for each in group
    }
    folders = shard_folders(args.work)
    total = sum(len(np.load(folder / "ids.npy", mmap_mode="r")) for folder in folders)
    rng = np.random.default_rng([len(folders), total])
    claim.say(f"{total:,} tokens are there, {args.tokens:,} are wanted.")
    if total >= args.tokens:
        claim.close()
        return
    target = Target(args.work / "target-16bit.gguf", ROWS, LENGTH, LAYERS)
    writers = [Writer(target, rng, openings) for _ in range(ROWS)]
    sequences = np.arange(ROWS)
    done: list[Dialogue] = []
    waiting = 0

    def keep(found: Dialogue, writer: Writer) -> None:
        nonlocal waiting
        if found.answer.sum() > 4 and not forbidden.intersection(map(plain, writer.questions)):
            done.append(found)
            waiting += len(found.ids)

    while total + waiting < args.tokens and not ending.asked:
        target.read([each.next for each in writers], [len(each.ids) for each in writers], sequences)
        features, hidden, logits = target.features(ROWS), target.hidden(ROWS), target.logits(ROWS)
        for row, writer in enumerate(writers):
            found = writer.take(features[row], hidden[row], logits[row])
            if found is not None:
                keep(found, writer)
                target.forget(row)
                writer.start()
        if waiting >= SHARD:
            total += waiting
            claim.say(f"{write_shard(args.work, done).name}: {total:,} tokens, {len(done)} dialogues more")
            done, waiting = [], 0
    if ending.asked:
        for writer in writers:
            keep(writer.cut(), writer)
    if done:
        write_shard(args.work, done)
        claim.say(f"{total + waiting:,} tokens")
    claim.close()
    ending.leave()


if __name__ == "__main__":
    main()
