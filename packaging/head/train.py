"""Train the head on what the target wrote and computed, from checkpoint to checkpoint.

The loss is taken at the answers' tokens alone. It is the cross-entropy with the target's probabilities, and,
while the learning rate falls in the last steps, what the target would accept: -log of the sum of min(p, q).
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from model import Head, Shape, read_shape, read_weights, save
from state import BATCH, Claim, Dialogue, Ending, places_of, read_shard, shard_folders

VOCAB = 6_144  # tokens that the head can draft
CHUNK = 128  # rows whose logits are computed at once
POOL = 64  # dialogues that are sorted by length
RATE, WARM = 1.5e-3, 40
ALONE = 400  # steps before the first place is followed by others
CHAIN, DECAY = 3, 0.8  # chained steps, and how much less each counts than the one before
AVERAGE = 0.99  # of the averaged weights, which are judged and exported
SAVE_SECONDS = 240
JUDGED, JUDGE_EVERY = 48, 100


@dataclass(slots=True)
class Batch:
    """What a few dialogues hold, padded, as `Head.chain` wants it, and what the target said at each step."""

    given: Tensor
    features: Tensor
    rows: Tensor
    scored: list[Tensor]
    hidden: list[Tensor]
    best: list[Tensor]
    total: list[Tensor]

    @property
    def tokens(self) -> int:
        return int(self.scored[0].sum())


def collate(dialogues: list[Dialogue], embeddings: Tensor, steps: int, device: str) -> Batch:
    longest = max(len(each.features) for each in dialogues)
    found = [places_of(each, steps) for each in dialogues]
    most = max(len(rows) for rows, _, _ in found)
    size = len(dialogues)
    ids = np.zeros((size, longest + steps), np.int64)
    features = np.zeros((size, longest, dialogues[0].features.shape[1]), np.float16)
    rows = np.zeros((size, most), np.int64)
    scored = np.zeros((steps, size, most), bool)
    for i, (each, (places, judged, _)) in enumerate(zip(dialogues, found, strict=True)):
        ids[i, : len(each.ids) - 1] = each.ids[1:]
        features[i, : len(each.features)] = each.features
        rows[i, : len(places)] = places
        scored[:, i, : len(places)] = judged
    parts: dict[str, list[Tensor]] = {"hidden": [], "best": [], "total": []}
    for step in range(steps):
        for name, tensors in parts.items():
            values = [
                getattr(each, name)[at[step][ok[step]]]
                for each, (_, ok, at) in zip(dialogues, found, strict=True)
            ]
            joined = np.concatenate(values)
            kind = np.int64 if name == "best" else np.float32
            tensors.append(torch.from_numpy(joined.astype(kind)).to(device))
    return Batch(
        embeddings[torch.from_numpy(ids).to(device)],
        torch.from_numpy(features).to(device).float(),
        torch.from_numpy(rows).to(device),
        [torch.from_numpy(each).to(device) for each in scored],
        parts["hidden"],
        parts["best"],
        parts["total"],
    )


class Loss(torch.autograd.Function):
    """Mean loss of normed rows (places, width), whose logits are rows @ output.T.

    Its gradients are computed with it, a few rows at a time: whole logits do not fit a CPU's caches. `own` is
    the target's rows of the kept tokens, `hidden` its last hidden rows, `total` its log-sums over all tokens.
    """

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, output: Tensor, own: Tensor, hidden: Tensor, total: Tensor, accept: bool
    ) -> Tensor:
        count, loss = len(rows), torch.zeros((), device=rows.device)
        x, weights = rows.bfloat16(), output.bfloat16()
        along, across = torch.zeros_like(rows), torch.zeros_like(output)
        for at in range(0, count, CHUNK):
            part = slice(at, at + CHUNK)
            guess = (x[part] @ weights.T).float()
            chance = (hidden[part].bfloat16() @ own.T).float()
            if accept:
                p, q = chance.sub_(total[part, None]).exp_(), guess.softmax(-1)
                accepted = torch.minimum(p, q).sum(-1, keepdim=True) + 1e-4
                loss -= accepted.log().sum()
                below = q * (q < p)
                steep = (q * below.sum(-1, keepdim=True) - below) / accepted
            else:
                p = chance.softmax(-1)
                loss += (guess.logsumexp(-1) - torch.linalg.vecdot(p, guess)).sum()
                steep = guess.softmax(-1).sub_(p)
            steep = steep.div_(count).bfloat16()
            along[part] = (steep @ weights).float()
            across += (steep.T @ x[part]).float()
        ctx.save_for_backward(along, across)
        return loss / max(count, 1)

    @staticmethod
    def backward(ctx: Any, back: Tensor) -> tuple[Tensor | None, ...]:
        along, across = ctx.saved_tensors
        return back * along, back * across, None, None, None, None


def choose(work: Path, tokens: int) -> Tensor:
    """The tokens that answers hold and the target thought of most, in rising order; of equals the lower."""
    counts = np.zeros(tokens)
    for place in shard_folders(work):
        for each in read_shard(place):
            if not each.held_out:
                counts += np.bincount(each.ids[each.answer], minlength=tokens)
                counts += np.bincount(each.best, minlength=tokens)
    return torch.from_numpy(np.sort(np.argsort(-counts, kind="stable")[:VOCAB]))


class Stock:
    """The dialogues to learn from, in batches: each once, in a new order, then again with new ones."""

    def __init__(self, work: Path, epoch: int, taken: int) -> None:
        self._work, self.epoch, self.taken = work, epoch, taken
        self._fill()

    def _fill(self) -> None:
        every = [each for place in shard_folders(self._work) for each in read_shard(place)]
        self.held_out = [each for each in every if each.held_out][:JUDGED]
        self._learnt = [each for each in every if not each.held_out]
        rng = np.random.default_rng([self.epoch, 1])
        order = rng.permutation(len(self._learnt))
        self._batches: list[list[int]] = []
        for start in range(0, len(order), POOL):
            pool = sorted(order[start : start + POOL], key=lambda i: len(self._learnt[i].ids))
            batches = [pool[i : i + BATCH] for i in range(0, len(pool), BATCH)]
            self._batches += [batches[i] for i in rng.permutation(len(batches))]

    def next(self) -> list[Dialogue]:
        if self.taken >= len(self._batches):
            self.epoch, self.taken = self.epoch + 1, 0
            self._fill()
        self.taken += 1
        return [self._learnt[i] for i in self._batches[self.taken - 1]]


class Training:
    """A head, its averaged weights and its optimiser, in `head.pt`."""

    def __init__(self, work: Path, target: Path, device: str) -> None:
        self.work, self.device = work, device
        self.embeddings = read_weights(target, ("token_embd.",))["token_embd.weight"]
        self._path = work / "head.pt"
        known = torch.load(self._path, weights_only=True) if self._path.exists() else None
        self.kept = known["kept"] if known else choose(work, len(self.embeddings))
        self.shape = Shape(**known["shape"]) if known else read_shape(target, len(self.kept))
        self.head = Head(self.shape)
        if known:
            self.head.load_state_dict(known["last"])
        else:
            self.head.begin(target, self.kept)
        self.head.to(device)
        self.kept, self.embeddings = self.kept.to(device), self.embeddings.to(device)
        self.own = self.embeddings[self.kept].bfloat16()
        self.average = known["head"] if known else {k: v.clone() for k, v in self.head.state_dict().items()}
        self.optimiser = torch.optim.AdamW(
            self.head.parameters(), betas=(0.9, 0.95), weight_decay=0.0, fused=True
        )
        if known:
            self.optimiser.load_state_dict(known["optimiser"])
        self.counts = known["counts"] if known else {"step": 0, "seen": 0, "epoch": 0, "taken": 0}
        self.stock = Stock(work, self.counts["epoch"], self.counts["taken"])

    def step(self, rate: float, steps: int, accept: bool) -> float:
        batch = collate(self.stock.next(), self.embeddings, steps, self.device)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        loss = torch.zeros((), device=self.device)
        with torch.autocast(self.device, torch.bfloat16):  # 2.5 times as fast where the CPU has AVX-512
            made = self.head.chain(batch.given, self.head.fuse(batch.features), batch.rows, steps)
        for step, (rows, scored) in enumerate(zip(made, batch.scored, strict=True)):
            told = batch.hidden[step], batch.total[step]
            loss = loss + DECAY**step * Loss.apply(rows[scored], self.head.output, self.own, *told, accept)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.head.parameters(), 1.0)
        self.optimiser.step()
        self.counts["step"] += 1
        self.counts["seen"] += batch.tokens
        self.counts |= {"epoch": self.stock.epoch, "taken": self.stock.taken}
        keep = min(AVERAGE, self.counts["step"] / (self.counts["step"] + 10))
        for name, value in self.head.state_dict().items():
            self.average[name].lerp_(value, 1 - keep)
        return loss.item()

    @torch.no_grad()
    def judged(self) -> dict[str, list[float]]:
        """Of the averaged weights at held-out dialogues: by place, argmax found and chances accepted."""
        judged = Head(self.shape).to(self.device)
        judged.load_state_dict(self.average)
        sums = np.zeros((CHAIN, 3))
        held_out = self.stock.held_out
        for start in range(0, len(held_out), BATCH):
            batch = collate(held_out[start : start + BATCH], self.embeddings, CHAIN, self.device)
            made = judged.chain(batch.given, judged.fuse(batch.features), batch.rows, CHAIN)
            for step, (rows, scored) in enumerate(zip(made, batch.scored, strict=True)):
                q = (rows[scored] @ judged.output.T).softmax(-1)
                chance = (batch.hidden[step].bfloat16() @ self.own.T).float()
                p = (chance - batch.total[step][:, None]).exp()
                right = self.kept[q.argmax(-1)] == batch.best[step]
                sums[step] += len(q), right.sum().item(), torch.minimum(p, q).sum().item()
        shares = sums[:, 1:] / np.maximum(sums[:, :1], 1)
        return {"found": shares[:, 0].round(4).tolist(), "accepted": shares[:, 1].round(4).tolist()}

    def save(self, path: Path | None = None) -> None:
        save(
            path or self._path,
            self.average,
            self.shape,
            self.kept,
            last=self.head.state_dict(),
            optimiser=self.optimiser.state_dict(),
            counts=self.counts,
        )


def rate_at(step: int, steps: int, cool: int) -> float:
    """Rises for WARM steps, and falls in the last `cool`."""
    return RATE * min(1.0, (step + 1) / WARM, max(0.02, (steps - step) / cool) if cool else 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--steps", type=int, required=True, help="how many there are in the end")
    parser.add_argument(
        "--cool", type=int, default=0, help="how many of them, the last, learn to be accepted"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    ending, claim = Ending(), Claim(args.work, "train")
    training = Training(args.work, args.target, args.device)
    count = sum(p.numel() for p in training.head.parameters())
    claim.say(f"{count:,} parameters, {len(training.kept):,} tokens to draft, begins at {training.counts}")
    curve, loss, began, saved = args.work / "curve.jsonl", 0.0, time.monotonic(), time.monotonic()
    done = 0
    while (step := training.counts["step"]) < args.steps and not ending.asked:
        cooling = step >= args.steps - args.cool
        if cooling and step == args.steps - args.cool:
            training.save(args.work / "head-warm.pt")
        before = training.counts["seen"]
        new = training.step(rate_at(step, args.steps, args.cool), 1 if step < ALONE else CHAIN, cooling)
        loss = new if not done else 0.95 * loss + 0.05 * new
        done += training.counts["seen"] - before
        if not training.counts["step"] % JUDGE_EVERY:
            entry = {**training.counts, "loss": round(loss, 4), **training.judged()}
            with curve.open("a") as file:
                print(json.dumps(entry), file=file)
            claim.say(f"{entry} {done / (time.monotonic() - began):.0f} answer tokens/s")
        if time.monotonic() - saved > SAVE_SECONDS:
            training.save()
            saved = time.monotonic()
    if done:
        training.save()
        claim.say(f"ends at {training.counts}: {training.judged()}")
    claim.close()
    ending.leave()


if __name__ == "__main__":
    main()
