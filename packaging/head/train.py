"""Train the head on what the target wrote, in steps that can be continued.

The target reads the dialogues again at each step, which is faster than reading features from a disk. Only the
answers' tokens count. The loss is the cross-entropy with the target's probabilities. While the learning rate
falls, the loss is -log of the share that the target would accept, the sum of min(p, q).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from model import Head, Shape, read_shape, save
from teacher import Teacher
from words import BATCH

VOCAB = 6_144  # tokens that the head can draft
CHUNK = {"cpu": 128, "cuda": 16_384}  # rows whose logits are computed at once
POOL = 16  # batches that are sorted by length together
RATE, WARM = 1.5e-3, 200
ALONE = 400  # steps before the first place is followed by others
CHAIN, DECAY = 3, 0.8  # chained steps, and how much less each counts than the one before
COOL = 0.5  # the share of the steps, the last, in which the rate falls and the head learns to be accepted
SHARP = 0.8  # the temperature at which it learns that
AVERAGE = 0.999  # of the averaged weights, which are judged and exported
JUDGED, JUDGE_EVERY = 256, 200


class Text:
    """The dialogues of `text.npz`, on the device."""

    def __init__(self, path: Path, device: str) -> None:
        found = np.load(path)
        self.ids = torch.from_numpy(found["ids"].astype(np.int32)).to(device)
        self.answer = torch.from_numpy(found["answer"]).to(device)
        self.length, self.greedy = found["length"], found["greedy"]
        self.learnt, self.held_out = np.flatnonzero(~found["held_out"]), np.flatnonzero(found["held_out"])

    def most(self, count: int, tokens: int) -> Tensor:
        """The `count` most frequent tokens of answers, of all `tokens`, in rising order. Of equally frequent
        ones the lower counts."""
        learnt = torch.from_numpy(self.learnt).to(self.ids.device)
        seen = torch.bincount(self.ids[learnt][self.answer[learnt]].long(), minlength=tokens).cpu().numpy()
        return torch.from_numpy(np.sort(np.argsort(-seen, kind="stable")[:count]))

    def batches(self, size: int) -> Iterator[np.ndarray]:
        """The dialogues to learn from, in an endless loop, those of similar length together."""
        rng = np.random.default_rng(1)
        while True:
            order = rng.permutation(self.learnt)
            for start in range(0, len(order), size * POOL):
                pool = order[start : start + size * POOL]
                pool = pool[np.argsort(self.length[pool], kind="stable")]
                parts = [pool[i : i + size] for i in range(0, len(pool), size)]
                for i in rng.permutation(len(parts)):
                    yield parts[i]


@dataclass(slots=True)
class Batch:
    """A few dialogues, padded for `Head.chain`, with the target's rows at each step's places."""

    given: Tensor
    features: Tensor
    rows: Tensor
    scored: list[Tensor]
    hidden: list[Tensor]
    total: list[Tensor]  # log-sums of the logits


def read(teacher: Teacher, text: Text, which: np.ndarray, steps: int, heat: float | None) -> Batch:
    """The dialogues `which`; log-sums at the temperature `heat`, if there is one."""
    device = text.ids.device
    longest = int(text.length[which].max())
    chosen = torch.from_numpy(which).to(device)
    lengths = torch.from_numpy(text.length[which]).to(device)[:, None]
    spots = torch.arange(longest, device=device)
    ids = torch.where(spots < lengths, text.ids[chosen, :longest].long(), 0)
    answer = text.answer[chosen, :longest] & (spots < lengths - 1)  # nothing follows the last token
    features, hidden = teacher.read(ids)
    # Places P that are given an answer's token, P+1, first; then the others, which do not count.
    count = answer[:, 1:].sum(1)
    rows = torch.argsort((~answer[:, 1:]).int(), dim=1, stable=True)[:, : int(count.max())]
    scored = [torch.arange(rows.shape[1], device=device) < count[:, None]]
    wide = functional.pad(answer, (0, steps))
    for step in range(1, steps):
        scored.append(scored[-1] & wide.gather(1, rows + 1 + step))
    batch = torch.arange(len(which), device=device)[:, None].expand_as(rows)
    places = [(batch[ok], rows[ok] + 1 + step) for step, ok in enumerate(scored)]
    total: list[Tensor] = []
    if heat:
        sums = torch.zeros(answer.shape, device=device)
        parts = hidden[answer].split(CHUNK[device.type])
        logits = ((part @ teacher.output.T).float() for part in parts)
        sums[answer] = torch.cat([each.div_(heat).logsumexp(-1) for each in logits])
        total = [sums[each] for each in places]
    given = teacher.embeddings[functional.pad(ids[:, 1:], (0, steps + 1))]
    return Batch(given, features.float(), rows, scored, [hidden[each] for each in places], total)


class Loss(torch.autograd.Function):
    """Mean loss of normed rows (places, width), whose logits are rows @ output.T.

    Its gradients are computed with it, a few rows at a time, because whole logits do not fit into a CPU's
    caches. `own` is the target's rows of the kept tokens, `hidden` its last hidden rows. `total` is its
    log-sums over all tokens; with it, the loss is -log of the share that the target would accept.
    """

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, output: Tensor, own: Tensor, hidden: Tensor, total: Tensor | None
    ) -> Tensor:
        count, loss = len(rows), torch.zeros((), device=rows.device)
        x, weights = rows.bfloat16(), output.bfloat16()
        along, across = torch.zeros_like(rows), torch.zeros_like(output)
        chunk = CHUNK[rows.device.type]
        for at in range(0, count, chunk):
            part = slice(at, at + chunk)
            guess = (x[part] @ weights.T).float()
            chance = (hidden[part].bfloat16() @ own.T).float()
            if total is not None:
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
        return back * along, back * across, None, None, None


class Training:
    """A head, its averaged weights and its optimiser, in `head.pt`."""

    def __init__(self, work: Path, target: Path, device: str) -> None:
        self.device, self._path = device, work / "head.pt"
        self.text, self.teacher = Text(work / "text.npz", device), Teacher(target, device)
        known = torch.load(self._path, weights_only=True) if self._path.exists() else None
        self.kept = known["kept"] if known else self.text.most(VOCAB, len(self.teacher.output))
        self.shape = Shape(**known["shape"]) if known else read_shape(target, len(self.kept))
        self.head = Head(self.shape)
        if known:
            self.head.load_state_dict(known["last"])
        else:
            self.head.begin(target, self.kept)
        self.head.to(device)
        self.own = self.teacher.output[self.kept.to(device)]
        start = known["head"] if known else self.head.state_dict()
        self.average = {name: value.clone().to(device) for name, value in start.items()}
        self.optimiser = torch.optim.AdamW(
            self.head.parameters(), betas=(0.9, 0.95), weight_decay=0.0, fused=True
        )
        if known:
            self.optimiser.load_state_dict(known["optimiser"])
        self.steps, self.seen = (known["steps"], known["seen"]) if known else (0, 0)

    def _made(self, head: Head, batch: Batch, chain: int) -> list[Tensor]:
        with torch.autocast(self.device, torch.bfloat16):  # 2.5 times as fast where the CPU has AVX-512
            return head.chain(batch.given, head.fuse(batch.features), batch.rows, chain)

    def step(self, which: np.ndarray, rate: float, accept: bool) -> Tensor:
        chain, heat = 1 if self.steps < ALONE else CHAIN, SHARP if accept else 1.0
        batch = read(self.teacher, self.text, which, chain, heat if accept else None)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        loss = torch.zeros((), device=self.device)
        made = self._made(self.head, batch, chain)
        for step, (rows, scored) in enumerate(zip(made, batch.scored, strict=True)):
            told = batch.hidden[step], batch.total[step] if accept else None
            part = Loss.apply(rows[scored] / heat, self.head.output, self.own / heat, *told)
            loss = loss + DECAY**step * part
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.head.parameters(), 1.0)
        self.optimiser.step()
        self.steps += 1
        self.seen += len(batch.hidden[0])
        keep = min(AVERAGE, self.steps / (self.steps + 10))
        for name, value in self.head.state_dict().items():
            self.average[name].lerp_(value, 1 - keep)
        return loss.detach()

    @torch.no_grad()
    def judged(self, size: int) -> dict[str, Any]:
        """Judges the averaged weights at held-out dialogues.

        By place: how often the argmax is right, and the share of probability that is accepted. In rounds of
        CHAIN drafts over greedy answers: `first` is the accepted share of first drafts, `tokens` are those a
        round.
        """
        judged = Head(self.shape).to(self.device)
        judged.load_state_dict(self.average)
        kept, sums = self.kept.to(self.device), np.zeros((CHAIN, 3))
        rounds, firsts, tokens = 0, 0, 0
        held_out = self.text.held_out[:JUDGED]
        for which in np.split(held_out, range(size, len(held_out), size)):
            batch = read(self.teacher, self.text, which, CHAIN, 1.0)
            right = torch.zeros((CHAIN, *batch.rows.shape), dtype=torch.int, device=self.device)
            made = self._made(judged, batch, CHAIN)
            for step, (rows, scored) in enumerate(zip(made, batch.scored, strict=True)):
                q = (rows[scored].float() @ judged.output.T).softmax(-1)
                hidden = batch.hidden[step]
                p = ((hidden @ self.own.T).float() - batch.total[step][:, None]).exp()
                found = kept[q.argmax(-1)] == (hidden @ self.teacher.output.T).argmax(-1)
                right[step][scored] = found.int()
                sums[step] += len(q), found.sum().item(), torch.minimum(p, q).sum().item()
            counts = batch.scored[0].sum(1).tolist()
            for passed, count, greedy in zip(
                right.cumprod(0).sum(0).tolist(), counts, self.text.greedy[which], strict=True
            ):
                place = 0 if greedy else count
                while place < count:
                    rounds, firsts = rounds + 1, firsts + (passed[place] > 0)
                    tokens += 1 + passed[place]
                    place += 1 + passed[place]
        found, accepted = (sums[:, 1:] / np.maximum(sums[:, :1], 1)).round(4).T.tolist()
        first, a_round = (round(each / max(1, rounds), 4) for each in (firsts, tokens))
        return {"found": found, "accepted": accepted, "first": first, "tokens": a_round}

    def save(self) -> None:
        save(
            self._path,
            self.average,
            self.shape,
            self.kept,
            last=self.head.state_dict(),
            optimiser=self.optimiser.state_dict(),
            steps=self.steps,
            seen=self.seen,
        )


def rate_at(step: int, steps: int) -> float:
    """Rises for WARM steps, and falls in the last COOL share of all steps."""
    return RATE * min(1.0, (step + 1) / WARM, max(0.01, (1 - step / steps) / COOL))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=4_100)
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    training = Training(args.work, args.target, args.device)
    count = sum(each.numel() for each in training.head.parameters())
    print(f"{count:,} parameters, {len(training.kept):,} tokens to draft, begins at step {training.steps}")
    losses: list[Tensor] = []
    began = time.monotonic()
    for number, which in enumerate(training.text.batches(BATCH)):
        if number < training.steps:
            continue  # learnt before an interruption
        if number >= args.steps:
            break
        losses.append(training.step(which, rate_at(number, args.steps), number >= (1 - COOL) * args.steps))
        if not training.steps % JUDGE_EVERY or training.steps == args.steps:
            entry: dict[str, Any] = {"step": training.steps, "seen": training.seen}
            entry |= {"loss": round(torch.stack(losses).mean().item(), 4), **training.judged(BATCH)}
            losses.clear()
            training.save()
            with (args.work / "curve.jsonl").open("a", encoding="utf-8") as file:
                print(json.dumps(entry), file=file)
            print(f"{time.monotonic() - began:6.1f} s: {entry}", flush=True)


if __name__ == "__main__":
    main()
