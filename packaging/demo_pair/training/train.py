"""Train the target, or the drafts together; run again after an interruption to go on.

The target learns from all kinds of text (`windows.SHARES`), and from random tokens said twice. It begins
with its first layers alone, which learn most at less than half the cost, and grows later. The drafts learn
from the same text and from the probabilities of the target, because a draft is worth what it agrees with; one
pass of the target serves them all.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from training import begin
from training.induction import teach_copying
from training.model import SHAPES, Llama, Shape
from training.muon import Muon
from training.windows import LAST_SHARES, SHARES, Batch, Corpus, Twice

RUNS = {"target": ("target",), "drafts": ("draft", "small-draft")}
FIRST_LAYERS = 2
WARM_UP = 20
FLOOR = 0.03
MATRIX_RATE = 0.02
OTHER_RATE = 3e-3
TEACHER_SHARE = 0.8
STEP_TOKENS = 8192
TWICE_EVERY = 16  # row of a step: what keeps the copying alive
VARIETY = (16, 1024)  # of what the grown target copies
FIRST_STEP_TOKENS = 4096
SAVE_SECONDS = 600.0
REPORT_EVERY = 10
MEASURE_EVERY = 50
MEASURE_TOKENS = 8192  # of each kind


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and on what: windows of 256 tokens, of 512 from `middle_step` on, of 1,024 in the last
    `long_steps`.

    Short windows cut most long dialogues, and their ends are what is hardest to copy; long ones cost more.
    """

    steps: int
    cool_steps: int
    long_steps: int
    grow_step: int
    middle_step: int
    height: float
    length: int = 256

    def cools(self, step: int) -> bool:
        """Whether the learning rates fall."""
        return step >= self.steps - self.cool_steps

    def window(self, step: int) -> int:
        if step >= self.steps - self.long_steps:
            return 4 * self.length
        return 2 * self.length if step >= self.middle_step else self.length

    def tokens(self, step: int) -> int:
        """How many one step sees: at first the gradient is clear from few."""
        return FIRST_STEP_TOKENS if step < self.grow_step else STEP_TOKENS

    def layers(self, name: str, step: int) -> int:
        full = SHAPES[name].layers
        return min(full, FIRST_LAYERS) if step < self.grow_step else full

    def twice(self, step: int) -> Twice | None:
        """Of what a step sees: until the learning rates fall, and harder once the model has grown."""
        if self.cools(step):
            return None
        if not self.grow_step:
            return None  # it goes on from a model that copies
        rows = self.tokens(step) // self.window(step) // TWICE_EVERY
        return Twice(rows, None) if step < self.grow_step else Twice(2 * rows, VARIETY)

    def rate(self, step: int) -> float:
        """Factor of the learning rates: warm-up, `height`, straight down over the last `cool_steps`."""
        left = min(1.0, (self.steps - step) / self.cool_steps)
        return self.height * min(1.0, (step + 1) / WARM_UP) * (FLOOR + (1 - FLOOR) * left)


def has_bfloat16(device: str) -> bool:
    """Whether sums of products in bfloat16 are faster than in float32: a CPU without AVX-512 takes ten times
    as long."""
    return device != "cpu" or not torch.backends.cpu.get_cpu_capability().startswith(("AVX2", "DEFAULT"))


def precision(device: str) -> torch.autocast:
    return torch.autocast(device, dtype=torch.bfloat16, enabled=has_bfloat16(device))


def born(name: str, layers: int) -> Llama:
    """A model that has learnt nothing but to copy."""
    model = Llama(replace(SHAPES[name], layers=layers))
    teach_copying(model)
    return model


class Learner:
    """One model and its optimisers: Muon for the matrices of the blocks, AdamW for the rest."""

    def __init__(self, name: str, model: Llama, device: str = "cpu") -> None:
        self.name = name
        self.device = device
        self.adopt(model)

    def adopt(self, model: Llama) -> None:
        self.model = model.to(self.device)
        named = list(self.model.named_parameters())
        matrices = [p for key, p in named if p.dim() == 2 and key.startswith("blk.")]
        others = [p for key, p in named if p.dim() != 2 or not key.startswith("blk.")]
        muon = torch.optim.Muon if has_bfloat16(self.device) else Muon
        self.solvers = {
            MATRIX_RATE: muon(matrices, lr=MATRIX_RATE, momentum=0.95, weight_decay=0.01),
            OTHER_RATE: torch.optim.AdamW(others, lr=OTHER_RATE, betas=(0.9, 0.95), weight_decay=0.0),
        }

    def grow(self, layers: int) -> None:
        """Add blocks to this depth, as copies of the first ones that do not change the output yet."""
        model = Llama(replace(self.model.shape, layers=layers))
        model.load_state_dict(self.model.state_dict(), strict=False)
        known = len(self.model.blk)
        with torch.no_grad():
            for number in range(known, layers):
                model.blk[number].load_state_dict(self.model.blk[number % known].state_dict())
                model.blk[number].silence()
        self.adopt(model)

    def learn(self, batch: Batch, wanted: Tensor | None, rate: float) -> float:
        """Take one step; the plain cross-entropy in nats per token."""
        loss, plain = loss_of(self.model, batch, wanted)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for full, solver in self.solvers.items():
            solver.param_groups[0]["lr"] = full * rate
            solver.step()
            solver.zero_grad(set_to_none=True)
        return plain

    def state(self) -> dict[str, object]:
        return {
            "shape": asdict(self.model.shape),
            "model": self.model.state_dict(),
            "solvers": [solver.state_dict() for solver in self.solvers.values()],
        }

    def load(self, saved: dict[str, object]) -> None:
        self.adopt(Llama(Shape(**saved["shape"])))
        self.model.load_state_dict(saved["model"])
        for solver, state in zip(self.solvers.values(), saved["solvers"], strict=True):
            solver.load_state_dict(state)


@dataclass(slots=True)
class Progress:
    """How far a run is. Losses are (step, learner, nats per token), those of held-out text by kind."""

    step: int = 0
    seconds: float = 0.0
    trained: list[tuple[int, str, float]] = field(default_factory=list)
    held_out: list[tuple[int, str, str, float]] = field(default_factory=list)


def loss_of(model: Llama, batch: Batch, wanted: Tensor | None) -> tuple[Tensor, float]:
    """The loss to go down on, and the plain cross-entropy in nats per token.

    `wanted` are the teacher's log-probabilities (learnt positions, vocab).
    """
    with precision(batch.inputs.device.type):
        logits = model.logits(model.states(batch.inputs)[batch.learnt])
    own = functional.log_softmax(logits.float(), dim=-1)
    plain = functional.nll_loss(own, batch.labels[batch.learnt])
    if wanted is None:
        return plain, float(plain.detach())
    distilled = (wanted.exp() * (wanted - own)).sum(-1).mean()
    return TEACHER_SHARE * distilled + (1 - TEACHER_SHARE) * plain, float(plain.detach())


@torch.no_grad()
def taught(teacher: Llama, batch: Batch) -> Tensor:
    """The teacher's log-probabilities at the learnt positions of a batch."""
    with precision(batch.inputs.device.type):
        logits = teacher.logits(teacher.states(batch.inputs)[batch.learnt])
    return functional.log_softmax(logits.float(), dim=-1)


def as_stored(target: Llama) -> None:
    """Let the target run, and learn, with the weights that its file will have (see export.py)."""
    for block in target.blk:
        block.rounding = True


@torch.no_grad()
def measure(learner: Learner, corpus: Corpus, length: int) -> dict[str, float]:
    """Cross-entropy in nats per token on held-out text of each kind."""
    found = {}
    for kind in SHARES:
        batch = corpus.batch("held_out", (7, 0), MEASURE_TOKENS // length, length, shares={kind: 1.0})
        found[kind] = loss_of(learner.model, batch.to(learner.device), None)[1]
    return found


def load_model(path: Path, name: str) -> Llama:
    """One model of a checkpoint, ready to be read from, in main memory."""
    saved = torch.load(path, map_location="cpu", weights_only=True)["learners"][name]
    model = Llama(Shape(**saved["shape"]))
    model.load_state_dict(saved["model"])
    if name == "target":
        as_stored(model)
    return model.eval()


def save(path: Path, learners: list[Learner], progress: Progress) -> None:
    """Write the checkpoint; whoever reads it sees the old or the new one, whole."""
    fresh = path.with_suffix(".new")
    states = {learner.name: learner.state() for learner in learners}
    with fresh.open("wb") as file:
        torch.save({"learners": states, "progress": asdict(progress)}, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


class Clock:
    """Tokens a second since the last report, and the time that is left at that rate."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tokens = 0
        self.seconds = 0.0

    def add(self, tokens: int, seconds: float) -> None:
        self.tokens += tokens
        self.seconds += seconds

    def report(self, learners: list[Learner], progress: Progress) -> None:
        means = []
        for learner in learners:
            losses = [loss for _, name, loss in progress.trained[-200:] if name == learner.name]
            means.append(f"{learner.name} {np.mean(losses[-REPORT_EVERY:]):.3f}")
        rate = self.tokens / self.seconds
        left = sum(self.plan.tokens(step) for step in range(progress.step, self.plan.steps)) / rate
        print(
            f"step {progress.step} of {self.plan.steps}: loss {', '.join(means)}; {rate:.0f} tokens/s; "
            f"{hours(progress.seconds)} so far, about {hours(left)} left",
            flush=True,
        )
        self.tokens, self.seconds = 0, 0.0


def hours(seconds: float) -> str:
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02} h"


class Training:
    """A run: its learners, what they learn from, and how far they are."""

    def __init__(self, run: str, work: Path, plan: Plan, begun_from: Path | None, device: str) -> None:
        """Learners as they are born, as in the pair in the folder `begun_from`, or as in the checkpoint in
        `work`."""
        self.run, self.work, self.plan, self.device = run, work, plan, device
        self.learners = []
        for name in RUNS[run]:
            model = (
                begin.model_of(begun_from / f"{name}.gguf")
                if begun_from
                else born(name, plan.layers(name, 0))
            )
            self.learners.append(Learner(name, model, device))
        self.progress = Progress()
        self.checkpoint = work / f"{run}.pt"
        if self.checkpoint.exists():
            saved = torch.load(self.checkpoint, map_location=device, weights_only=True)
            self.progress = Progress(**saved["progress"])
            for learner in self.learners:
                learner.load(saved["learners"][learner.name])

    def go_on(self, save_seconds: float) -> None:
        """Train to the end of the plan; a checkpoint is written every `save_seconds`."""
        plan, progress = self.plan, self.progress
        corpus = Corpus(self.work / "corpus.npz")
        teacher = None
        if self.run == "drafts":
            teacher = load_model(self.work / "target.pt", "target").to(self.device)
        clock = Clock(plan)
        saved_at = time.monotonic()
        while progress.step < plan.steps:
            if progress.step == plan.steps - plan.cool_steps:
                # A longer run can go on from here, at the full rate.
                save(self.work / f"{self.run}-warm.pt", self.learners, progress)
            begun = time.monotonic()
            tokens = self.step(corpus, teacher)
            spent = time.monotonic() - begun
            progress.seconds += spent
            clock.add(tokens, spent)
            if progress.step % MEASURE_EVERY == 0 or progress.step == plan.steps:
                self.measure(corpus)
            if progress.step % REPORT_EVERY == 0:
                clock.report(self.learners, progress)
            if time.monotonic() - saved_at > save_seconds or progress.step == plan.steps:
                save(self.checkpoint, self.learners, progress)
                saved_at = time.monotonic()

    def step(self, corpus: Corpus, teacher: Llama | None) -> int:
        """Let each learner take one step on the same batch; returns how many tokens that has."""
        plan, step = self.plan, self.progress.step
        length, tokens = plan.window(step), plan.tokens(step)
        twice = None if teacher else plan.twice(step)
        shares = LAST_SHARES if plan.cools(step) else SHARES
        batch = corpus.batch("train", (9, step), tokens // length, length, twice, shares).to(self.device)
        wanted = taught(teacher, batch) if teacher else None
        for learner in self.learners:
            if learner.name == "target" and plan.cools(step):
                as_stored(learner.model)
            layers = plan.layers(learner.name, step)
            if layers > learner.model.shape.layers:
                learner.grow(layers)
            loss = learner.learn(batch, wanted, plan.rate(step))
            self.progress.trained.append((step, learner.name, loss))
        self.progress.step += 1
        return tokens

    def measure(self, corpus: Corpus) -> None:
        """Keep and print the losses on held-out text."""
        step = self.progress.step
        for learner in self.learners:
            found = measure(learner, corpus, self.plan.length)
            self.progress.held_out += [(step, learner.name, kind, loss) for kind, loss in found.items()]
            told = ", ".join(f"{kind} {loss:.3f}" for kind, loss in found.items())
            print(f"held out at step {step}: {learner.name}: {told}", flush=True)


def main() -> None:
    args = arguments()
    plan = Plan(args.steps, args.cool_steps, args.long_steps, args.grow_step, args.middle_step, args.rate)
    torch.manual_seed(11)
    torch.set_num_threads(args.threads)
    training = Training(args.run, args.work, plan, args.begin, args.device)
    step = training.progress.step
    for learner in training.learners:
        print(f"{learner.name}: {learner.model.parameter_count:,} parameters, from step {step}", flush=True)
    if step < plan.steps:
        training.go_on(args.save_seconds)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", choices=list(RUNS))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--cool-steps", type=int, required=True)
    parser.add_argument("--long-steps", type=int, default=0)
    parser.add_argument("--grow-step", type=int, default=0)
    parser.add_argument("--middle-step", type=int, default=0)
    parser.add_argument("--rate", type=float, default=1.0, help="factor of the learning rates")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu", help="cpu, or cuda where there is one")
    parser.add_argument("--begin", type=Path, help="folder of a pair of this recipe to go on from")
    parser.add_argument("--save-seconds", type=float, default=SAVE_SECONDS, help="between two checkpoints")
    return parser.parse_args()


if __name__ == "__main__":
    main()
