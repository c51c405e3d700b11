"""Train one model of the pair on the CPU; run again after an interruption to go on.

The target learns from the text. The draft learns from the text and, given `--teacher`, from the
target's probabilities as well, because a draft is worth what it agrees with.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from model import SHAPES, Llama, Shape
from windows import Batch, Corpus

WARM_UP = 20
HOLD = 0.5
FLOOR = 0.03
MATRIX_RATE = 0.02
OTHER_RATE = 3e-3
TEACHER_SHARE = 0.8
SAVE_EVERY = 25
ROW_TOKENS = 6144


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and on what: `long_steps` at the end see windows of `long_length` tokens."""

    steps: int
    long_steps: int
    length: int
    long_length: int
    source_share: float
    full_rate: float

    def window(self, step: int) -> int:
        return self.long_length if step >= self.steps - self.long_steps else self.length

    def rate(self, step: int) -> float:
        """Factor of the learning rates: warm-up, hold, straight down."""
        if step < WARM_UP:
            return self.full_rate * (step + 1) / WARM_UP
        hold = int(self.steps * HOLD)
        if step < hold:
            return self.full_rate
        left = (self.steps - step) / (self.steps - hold)
        return self.full_rate * (FLOOR + (1 - FLOOR) * left)

    def kinds(self, step: int) -> list[str]:
        """Which part each row comes from; code grows rarer towards the end."""
        rows = max(1, ROW_TOKENS // self.window(step))
        share = self.source_share * (1.0 if step < self.steps * HOLD else 0.5)
        rng = np.random.default_rng((5, step))
        return ["source" if rng.random() < share else "talk" for _ in range(rows)]


def loss_of(model: Llama, batch: Batch, teacher: Llama | None) -> tuple[Tensor, Tensor]:
    """The loss to go down on, and the plain cross-entropy in nats per token (both scalars)."""
    used = batch.weights > 0
    weights = batch.weights[used]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model.logits(model.states(batch.inputs)[used])
    logits = logits.float()
    plain = (functional.cross_entropy(logits, batch.labels[used], reduction="none") * weights).sum()
    plain = plain / weights.sum()
    if teacher is None:
        return plain, plain.detach()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        wanted = teacher.logits(teacher.states(batch.inputs)[used])
    wanted_log = functional.log_softmax(wanted.float(), dim=-1)
    own_log = functional.log_softmax(logits, dim=-1)
    apart = (wanted_log.exp() * (wanted_log - own_log)).sum(-1)
    distilled = (apart * weights).sum() / weights.sum()
    return TEACHER_SHARE * distilled + (1 - TEACHER_SHARE) * plain, plain.detach()


def optimisers(model: Llama) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the blocks, AdamW for the embedding and the norms."""
    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.dim() == 2 and name.startswith("blk.")]
    others = [p for name, p in named if p.dim() != 2 or not name.startswith("blk.")]
    return [
        torch.optim.Muon(matrices, lr=MATRIX_RATE, momentum=0.95, weight_decay=0.01),
        torch.optim.AdamW(others, lr=OTHER_RATE, betas=(0.9, 0.95), weight_decay=0.0),
    ]


@torch.no_grad()
def evaluate(model: Llama, corpus: Corpus, length: int) -> dict[str, float]:
    """Cross-entropy in nats per token on text held out from training."""
    rows = max(1, 8192 // length)
    return {
        kind: float(loss_of(model, corpus.batch((7, 0), [kind] * rows, length), None)[1])
        for kind in ("talk_test", "source_test")
    }


def load_model(path: Path) -> Llama:
    """The model of a checkpoint, ready to be read from."""
    saved = torch.load(path, weights_only=True)
    model = Llama(Shape(**saved["shape"]))
    model.load_state_dict(saved["model"])
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=list(SHAPES), required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--long-steps", type=int, default=0)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--long-length", type=int, default=2048)
    parser.add_argument("--source-share", type=float, default=0.25)
    parser.add_argument("--rate", type=float, default=1.0)
    parser.add_argument("--teacher", type=Path)
    parser.add_argument("--start", type=Path, help="take the weights of this checkpoint first")
    parser.add_argument("--name", help="name of the checkpoint, the model's unless given")
    args = parser.parse_args()
    plan = Plan(
        steps=args.steps,
        long_steps=args.long_steps,
        length=args.length,
        long_length=args.long_length,
        source_share=args.source_share,
        full_rate=args.rate,
    )

    torch.manual_seed(11)
    torch.set_num_threads(2)
    corpus = Corpus(args.work / "corpus.npz")
    checkpoint = args.work / f"{args.name or args.model}.pt"
    model = Llama(SHAPES[args.model])
    if args.start and not checkpoint.exists():
        model.load_state_dict(load_model(args.start).state_dict())
    teacher = load_model(args.teacher) if args.teacher else None
    solvers = optimisers(model)
    step, seconds = 0, 0.0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        for solver, state in zip(solvers, saved["solvers"], strict=True):
            solver.load_state_dict(state)
        step, seconds = saved["step"], saved["seconds"]
    full_rates = (MATRIX_RATE, OTHER_RATE)
    print(f"{args.model}: {model.parameter_count:,} parameters, from step {step}", flush=True)

    recent: list[float] = []
    while step < plan.steps:
        begun = time.monotonic()
        batch = corpus.batch((9, step), plan.kinds(step), plan.window(step))
        loss, plain = loss_of(model, batch, teacher)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for solver, full in zip(solvers, full_rates, strict=True):
            solver.param_groups[0]["lr"] = full * plan.rate(step)
            solver.step()
            solver.zero_grad(set_to_none=True)
        step += 1
        seconds += time.monotonic() - begun
        recent.append(float(plain))
        if step % SAVE_EVERY == 0 or step == plan.steps:
            print(
                f"step {step} loss {np.mean(recent):.3f} "
                f"{batch.inputs.numel() / (time.monotonic() - begun):.0f} tokens/s "
                f"{seconds:.0f} s",
                flush=True,
            )
            recent.clear()
            state = {
                "shape": asdict(model.shape),
                "model": model.state_dict(),
                "solvers": [solver.state_dict() for solver in solvers],
                "step": step,
                "seconds": seconds,
            }
            fresh = checkpoint.with_suffix(".new")
            torch.save(state, fresh)
            fresh.replace(checkpoint)
    for length in (plan.length, plan.long_length):
        print(f"held out at {length}: {evaluate(model, corpus, length)}", flush=True)


if __name__ == "__main__":
    main()
