"""What the engine benchmarks share: the bundled pair, one measured answer, the text of a median."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.engine import Engine, GenerationRequest, Message, ModelOptions
from app.engine.process.messages import Finished, PassSeconds, PromptProgress, RoundFinished, Started
from app.engine.record.trace import TraceWriter
from app.engine.types import Role, Round, Totals

ROOT = Path(__file__).resolve().parents[2]
DEMO_PAIR = ROOT / "resources" / "demo_pair"


def demo_entries(count: int) -> list[dict[str, str]]:
    """The first demo prompts of the bundled pair, each with its category."""
    entries: list[dict[str, str]] = json.loads((DEMO_PAIR / "pair.json").read_text())["prompts"]
    return entries[:count]


def demo_prompts(count: int) -> list[str]:
    return [entry["prompt"] for entry in demo_entries(count)]


def one_thread(path: Path) -> ModelOptions:
    return ModelOptions(str(path), ctx_size=2048, threads=1)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, and the seconds that it took from the start of round 0."""

    rounds: Sequence[Round]
    totals: Totals
    processor_seconds: float
    """Of all threads, from the end of the target's reading of the prompt on: what other work on the machine
    takes away does not count. The draft's reading of the prompt does."""

    @property
    def tokens(self) -> int:
        return sum(len(round.emitted) for round in self.rounds)

    @property
    def accepted(self) -> int:
        return sum(round.accepted for round in self.rounds)

    @property
    def drafted(self) -> int:
        return sum(len(round.drafted) for round in self.rounds)

    @property
    def native_seconds(self) -> float:
        return sum(round.native_seconds for round in self.rounds)

    @property
    def loop_seconds(self) -> float:
        """Seconds inside the rounds, without the caller's work between them."""
        return sum(round.seconds for round in self.rounds)


def measure(
    engine: Engine, request: GenerationRequest, trace: Path | None = None, passes: PassSeconds | None = None
) -> Answer:
    """Run a request to its end; the trace is written as rounds come, and length=auto knows `passes`."""
    taken: list[Round] = []
    writer: TraceWriter | None = None
    began = time.process_time()
    for event in engine.generate(request, passes=passes):
        match event:
            case Started():
                writer = TraceWriter(trace, event.header) if trace else None
            case PromptProgress(role=Role.TARGET):
                began = time.process_time()
            case RoundFinished():
                taken.append(event.round)
                if writer is not None:
                    writer.add(event.round)
            case Finished():
                if writer is not None:
                    writer.close()
                return Answer(taken, event.totals, time.process_time() - began)
    raise RuntimeError("The engine did not finish.")


def as_user(prompt: str) -> tuple[Message, ...]:
    return (Message("user", prompt),)


def spread(values: Iterable[float], form: str) -> str:
    """Median and range: `spread([1, 2, 4], "{:.1f}")` is "2.0 (1.0-4.0)"."""
    known = sorted(values)
    show = form.format
    return f"{show(statistics.median(known))} ({show(known[0])}-{show(known[-1])})"
