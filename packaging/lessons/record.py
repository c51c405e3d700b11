"""Record the answers of the lessons, by the bundled pair through the engine, and check the lessons on them.

Run by `make lessons` from the project's folder; names of lessons record only these.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import msgspec

from app.engine import Engine, GenerationRequest, Message
from app.engine.errors import UserError
from app.engine.process.messages import Finished, RoundFinished, Started
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace, write_trace
from app.engine.types import Sampling
from app.lessons.lesson import lesson_files, read_lesson
from app.lessons.told import recorded, trace_file, untrue
from app.saved.chats.measurement import Measurement, run_files

RESOURCES = Path("resources")  # relative: traces hold the paths of the models
RECORDINGS = Path(__file__).with_name("recordings.toml")
_REPEATS = 15


class Recording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked for a lesson."""

    prompt: str
    strategy: str
    temperature: float = 0.0
    seed: int = 0
    draft: str = "draft.gguf"
    max_tokens: int = 48
    baseline: bool = False

    def request(self, strategy: str) -> GenerationRequest:
        return GenerationRequest(
            messages=(Message("user", self.prompt),),
            strategy=strategy,
            sampling=Sampling(temperature=self.temperature, seed=self.seed),
            max_tokens=self.max_tokens,
            cold=True,
        )


def main(names: list[str]) -> int:
    asked = msgspec.convert(tomllib.loads(RECORDINGS.read_text(encoding="utf-8")), dict[str, Recording])
    lessons = {path.stem: path for path in lesson_files(RESOURCES)}
    if set(asked) != set(lessons):
        print(f"Not in both: {sorted(set(asked) ^ set(lessons))}")
        return 1
    for name in names or sorted(asked):
        record(asked[name], trace_file(lessons[name]))
        print(name, "recorded", flush=True)
    wrong = [line for path in lessons.values() for line in check(path)]
    print("\n".join(wrong) or "All that the lessons say is true.")
    return bool(wrong)


def record(recording: Recording, file: Path) -> None:
    """Ask, and write the trace; where a baseline is wanted, that of the median run and its baseline."""
    pair = RESOURCES / "demo_pair"
    baseline = run_files(file)[0]
    with Engine(pair / "target.gguf", pair / recording.draft) as engine:
        if not recording.baseline:
            write_trace(file, answer(engine, recording.request(recording.strategy)))
            baseline.unlink(missing_ok=True)
            return
        runs = [
            Measurement(
                *(answer(engine, recording.request(strategy)) for strategy in ("none", recording.strategy))
            )
            for _ in range(_REPEATS)
        ]
        kept = sorted(runs, key=lambda run: run.factor)[_REPEATS // 2]
        write_trace(file, kept.strategy)
        write_trace(baseline, kept.baseline)


def answer(engine: Engine, request: GenerationRequest) -> Trace:
    """The trace of an answer."""
    trace: Trace | None = None
    for event in engine.generate(request):
        if isinstance(event, Started):
            trace = Trace(event.header)
        elif trace is not None and isinstance(event, RoundFinished):
            trace.rounds.append(event.round)
        elif trace is not None and isinstance(event, Finished):
            trace.totals = event.totals
    assert trace is not None
    return trace


def check(lesson: Path) -> list[str]:
    """What is wrong with a lesson and its recorded answer."""
    try:
        trace, measurement = recorded(lesson)
        return [*recheck(trace), *untrue(lesson.stem, read_lesson(lesson), trace, measurement)]
    except UserError as error:
        return [str(error)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
