"""The model writes its own dialogues, questions and answers, many in parallel and best on a GPU.

A dialogue begins with a system prompt and, often, with a few words of a question. The model continues the
question, answers it, and sometimes asks and answers once more. Only tokens are kept, in `WORK/text.npz`.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from torch import Tensor

from teacher import Teacher

LENGTH, QUESTION = 512, 200  # tokens of a dialogue, and of a question, at most
BUCKET = 64  # by how much the memory that a pass reads grows
SECOND_TURN, OWN_SYSTEM, HELD_OUT_SHARE = 0.25, 0.75, 1 / 64
TEMPERATURES = (0.0, 0.0, 0.0, 0.4, 0.6, 0.8, 0.8, 1.0)  # of answers
QUESTION_MIN_P = 0.02
LOOP, LONGEST_PERIOD = 96, 40
PREFIX, ASK, TO_ANSWER, ANSWER, TO_ASK, DONE = range(6)


class Writers:
    """Dialogues in parallel: each pass reads the tokens of all of them at one place."""

    def __init__(self, teacher: Teacher, words: dict[str, Any], rows: int) -> None:
        self.teacher, self.words, self.rows = teacher, words, rows
        self.device = device = teacher.output.device
        self._rng = np.random.default_rng(0)
        room = (len(teacher.blocks), rows, teacher.keys, LENGTH, teacher.head_width)
        self._memory = [torch.zeros(room, device=device, dtype=torch.bfloat16) for _ in range(2)]
        groups = (*words["trained"], words["held out"])
        longest = max(map(len, words["systems"])) + max(len(each) for group in groups for each in group)
        self.prefix = torch.zeros(rows, longest, dtype=torch.long, device=device)
        self.begun = torch.zeros(rows, dtype=torch.long, device=device)  # tokens of the prefix
        self.temperature = torch.zeros(rows, 1, device=device)
        self.ids = torch.zeros(rows, LENGTH, dtype=torch.long, device=device)
        self.answer = torch.zeros(rows, LENGTH, dtype=torch.bool, device=device)
        self.mode, self.at, self.asked, self.length = (torch.zeros_like(self.begun) for _ in range(4))
        self.place = torch.zeros(1, dtype=torch.long, device=device)
        self._tags = [torch.tensor(words[name], device=device) for name in ("answer", "again")]
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}

    def start(self) -> np.ndarray:
        """Begin new dialogues; returns which of them are held out."""
        rng, words = self._rng, self.words
        prefix, begun = np.zeros(self.prefix.shape, np.int64), np.zeros(self.rows, np.int64)
        held_out = rng.random(self.rows) < HELD_OUT_SHARE
        for row in range(self.rows):
            group = (
                words["held out"] if held_out[row] else words["trained"][rng.integers(len(words["trained"]))]
            )
            system = 0 if rng.random() < OWN_SYSTEM else rng.integers(1, len(words["systems"]))
            ids = words["systems"][system] + group[rng.integers(len(group))]
            prefix[row, : len(ids)], begun[row] = ids, len(ids)
        self.prefix.copy_(torch.from_numpy(prefix))
        self.begun.copy_(torch.from_numpy(begun))
        self.temperature.copy_(torch.from_numpy(rng.choice(TEMPERATURES, (self.rows, 1))))
        for each in (self.mode, self.asked, self.place, self.ids, self.answer):
            each.zero_()
        self.at.fill_(1)
        self.length.fill_(LENGTH)
        self.ids[:, 0] = self.prefix[:, 0]
        return held_out

    @torch.no_grad()
    def _pass(self, room: int) -> None:
        """Read the tokens at `place`, which is below `room`, and choose those at the next."""
        teacher, place = self.teacher, self.place
        keys, values = self._memory
        later = torch.arange(room, device=self.device) > place

        def attend(i: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            keys[i].index_copy_(2, place, key.transpose(1, 2))
            values[i].index_copy_(2, place, value.transpose(1, 2))
            groups = query.view(self.rows, teacher.keys, -1, teacher.head_width)
            scores = (groups @ keys[i][:, :, :room].transpose(-1, -2)).float() * teacher.head_width**-0.5
            shares = scores.masked_fill_(later, -torch.inf).softmax(-1)
            return shares.bfloat16() @ values[i][:, :, :room]

        now = self.ids.gather(1, place.expand(self.rows, 1))
        _, hidden = teacher.run(now, place.expand(self.rows, 1), attend)
        self._choose((hidden[:, 0] @ teacher.output.T).float())
        place += 1

    def _choose(self, logits: Tensor) -> None:
        """Choose the next token of each dialogue, without a branch, so that a GPU can record it."""
        words, at = self.words, self.at
        tags, again = self._tags
        self.mode.masked_fill_((self.mode == PREFIX) & (at >= self.begun), ASK)
        asking, answering = self.mode == ASK, self.mode == ANSWER
        least = logits.amax(-1, keepdim=True) + math.log(QUESTION_MIN_P)
        logits.masked_fill_(asking[:, None] & (logits < least), -torch.inf)
        heat = self.temperature.masked_fill(asking[:, None], 1.0)
        luck = torch.empty_like(logits).exponential_().clamp_(min=1e-20).log_()
        token = (logits - heat * luck).argmax(-1)  # at temperature 0 the most likely one
        over = (token == words["begin"]) | (token == words["end"])

        prefix = self.prefix.gather(1, at.clamp(max=self.prefix.shape[1] - 1)[:, None])[:, 0]
        mode, then = self.mode.clone(), at + 1
        for here, script in ((PREFIX, prefix), (TO_ANSWER, tags), (TO_ASK, again)):
            said = script if here == PREFIX else script[at.clamp(max=len(script) - 1)]
            token = torch.where(self.mode == here, said, token)
        mode.masked_fill_((self.mode == TO_ANSWER) & (then >= len(tags)), ANSWER)
        mode.masked_fill_((self.mode == TO_ASK) & (then >= len(again)), ASK)
        self.asked.masked_fill_(self.mode == TO_ASK, 0)

        asked = asking & (over | (self.asked >= QUESTION))
        nothing = asked & (self.asked == 0)
        self.asked += asking & ~asked
        more = answering & over & (torch.rand(self.rows, device=self.device) < SECOND_TURN)
        more &= self.place < LENGTH - 128
        for here, first, mode_then in ((asked & ~nothing, tags[0], TO_ANSWER), (more, again[0], TO_ASK)):
            mode.masked_fill_(here, mode_then)
            token = torch.where(here, first, token)
            then.masked_fill_(here, 1)
        ended = nothing | (answering & over & ~more)
        token.masked_fill_(ended, words["end"])
        self.length.copy_(torch.where(ended, self.place + 2, self.length).clamp(max=LENGTH))
        self.mode.copy_(mode.masked_fill_(ended, DONE))
        at.copy_(then)
        spot = (self.place + 1).expand(self.rows, 1)
        for kept, new in ((self.ids, token), (self.answer, answering)):
            kept.scatter_(1, spot, new[:, None])

    def _pass_at(self, place: int) -> None:
        """`_pass`; on a GPU it replays a recording, because requesting its thousand small steps takes longer
        than computing them."""
        room = min(LENGTH, (place // BUCKET + 1) * BUCKET)
        if self.device.type != "cuda":
            self._pass(room)
            return
        if room not in self._graphs:
            state = (self.ids, self.answer, self.mode, self.at, self.asked, self.length, self.place)
            before = [each.clone() for each in state]
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):  # a warm-up that does not count
                self._pass(room)
            torch.cuda.current_stream().wait_stream(side)
            for each, was in zip(state, before, strict=True):
                each.copy_(was)
            pool = next(iter(self._graphs.values())).pool() if self._graphs else None
            self._graphs[room] = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graphs[room], pool=pool):
                self._pass(room)
        self._graphs[room].replay()

    def _stop_loops(self, end: int) -> None:
        """End the answers whose last LOOP tokens repeat a few tokens again and again."""
        last = self.ids[:, end - LOOP : end]
        loops = torch.zeros_like(self.mode, dtype=torch.bool)
        for period in range(1, LONGEST_PERIOD):
            loops |= (last[:, period:] == last[:, :-period]).all(-1)
        loops &= self.mode == ANSWER
        self.length.masked_fill_(loops, end)
        self.mode.masked_fill_(loops, DONE)

    def write(self) -> dict[str, np.ndarray]:
        """The arrays of `text.npz`: `ids` and `answer` (rows, LENGTH); `length` tokens of a row count."""
        held_out = self.start()
        for place in range(LENGTH - 1):
            self._pass_at(place)
            if place % 16 == 15 and place > LOOP + 64:
                self._stop_loops(place + 2)
        length = self.length.cpu().numpy()
        return {
            "ids": self.ids.cpu().numpy().astype(np.uint16),
            "answer": self.answer.cpu().numpy() & (np.arange(LENGTH) < length[:, None]),
            "length": length,
            "held_out": held_out,
            "greedy": self.temperature[:, 0].cpu().numpy() == 0,
        }


class Forbidden:
    """Finds dialogues that contain a prompt of the measurement."""

    def __init__(self, target: Path, words: dict[str, Any]) -> None:
        fields = gguf.GGUFReader(target).fields
        self._tokens = fields[gguf.Keys.Tokenizer.LIST].contents()
        # GPT-2's alphabet: a character for each byte.
        shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
        rest = [each for each in range(256) if each not in shown]
        self._bytes = {chr(each): each for each in shown} | {
            chr(256 + i): each for i, each in enumerate(rest)
        }
        self._mark, self._end = words["question"], words["end"]
        self._prompts = {self._plain(each) for each in words["forbidden"]}

    def _plain(self, ids: list[int]) -> str:
        """The words of a text, without anything else."""
        shown = "".join(self._tokens[i] for i in ids)
        text = bytes(self._bytes.get(each, 32) for each in shown).decode(errors="replace").lower()
        return " ".join("".join(each if each.isalnum() else " " for each in text).split())

    def __call__(self, ids: list[int]) -> bool:
        mark = len(self._mark)
        for i in [i for i, token in enumerate(ids) if token == self._mark[0]]:
            if ids[i : i + mark] == self._mark:
                rest = ids[i + mark :]
                asked = rest[: rest.index(self._end)] if self._end in rest else rest
                if self._plain(asked) in self._prompts:
                    return True
        return False


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=8_300_000)
    parser.add_argument("--rows", type=int, default=2048, help="dialogues in step")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    torch.manual_seed(0)
    words = json.loads((args.work / "words.json").read_text(encoding="utf-8"))
    forbidden = Forbidden(args.target, words)
    writers = Writers(Teacher(args.target, args.device), words, args.rows)
    parts: list[dict[str, np.ndarray]] = []
    began, tokens, refused = time.monotonic(), 0, 0
    while tokens < args.tokens:
        written = writers.write()
        kept = written["answer"].sum(1) > 4
        for row in np.flatnonzero(kept):
            if forbidden(written["ids"][row, : written["length"][row]].tolist()):
                kept[row] = False
                refused += 1
        parts.append({name: values[kept] for name, values in written.items()})
        tokens += int(parts[-1]["length"].sum())
        took = time.monotonic() - began
        print(f"{took:6.1f} s: {tokens:,} tokens, {refused} dialogues refused", flush=True)
    fresh = args.work / "text.new.npz"
    np.savez_compressed(fresh, **{name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
    fresh.replace(args.work / "text.npz")


if __name__ == "__main__":
    main()
