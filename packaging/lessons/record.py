"""Record the answers of the lessons with the bundled pair or SmolLM2.

Check the lessons on them, and write the lessons' texts with the numbers of these answers. `make lessons` runs
this from the project's folder. If lessons are named, only these are recorded; "texts" records none.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from pathlib import Path

import gguf
import msgspec

from app.base.paths import REAL_DRAFT, REAL_TARGET, find_paths
from app.engine import Engine, GenerationRequest, Message
from app.engine.errors import UserError
from app.engine.process.messages import Finished, RoundFinished, Started
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace, write_trace
from app.engine.types import Sampling, TraceHeader
from app.lessons.lesson import recorded, trace_file
from app.saved.measured import Measurement, run_files
from lesson_texts import FOLDER, read_text, text_files, told, untrue

RESOURCES = Path("resources")  # relative: traces hold the paths of the models
CUT = "smollm2-without-layers.gguf"  # the name of a draft that is made here
LESSONS = RESOURCES / "lessons"
RECORDINGS = FOLDER / "recordings.toml"
_REPEATS = 15


class Recording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request for a lesson's answer."""

    prompt: str
    strategy: str
    temperature: float = 0.0
    min_p: float = 0.0
    seed: int = 0
    draft: str = "draft.gguf"
    """A file of the bundled pair; unused if SmolLM2 answers."""
    real: bool = False
    """Whether SmolLM2 answers, without a draft model or with one made by `without`."""
    without: tuple[int, ...] = ()
    """The layers of SmolLM2 that its draft lacks."""
    head: bool = False
    """Whether SmolLM2's head drafts."""
    max_tokens: int = 48
    baseline: bool = False

    def request(self, strategy: str) -> GenerationRequest:
        return GenerationRequest(
            messages=(Message("user", self.prompt),),
            strategy=strategy,
            sampling=Sampling(temperature=self.temperature, min_p=self.min_p, seed=self.seed),
            max_tokens=self.max_tokens,
            cold=True,
        )


def main(names: list[str]) -> int:
    asked = msgspec.convert(tomllib.loads(RECORDINGS.read_text(encoding="utf-8")), dict[str, Recording])
    if set(asked) != {text.stem for text in text_files()}:
        print(f"No recording or no text for: {sorted(set(asked) ^ {text.stem for text in text_files()})}")
        return 1
    for name in [] if names == ["texts"] else names or sorted(asked):
        record(asked[name], trace_file(LESSONS / name))
        print(name, "recorded", flush=True)
    wrong = [line for text in text_files() for line in check(text, LESSONS)]
    print("\n".join(wrong) or "Every statement of the lessons is true.")
    return bool(wrong)


def record(recording: Recording, file: Path) -> None:
    """Ask, and write the trace. If a baseline is wanted, write the trace of the median run, and its
    baseline's."""
    baseline = run_files(file)[0]
    with tempfile.TemporaryDirectory() as folder, _engine(recording, Path(folder, CUT)) as engine:
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


def _engine(recording: Recording, cut: Path) -> Engine:
    """The engine that answers. A draft without some layers is written to `cut`."""
    if not recording.real:
        pair = RESOURCES / "demo_pair"
        return Engine(pair / "target.gguf", pair / recording.draft)
    target = find_paths().real_target
    if recording.without:
        cut_layers(target, cut, set(recording.without))
    if recording.head:
        return Engine(target, find_paths().model(REAL_DRAFT))
    return Engine(target, cut if recording.without else None)


def cut_layers(model: Path, to: Path, without: set[int]) -> None:
    """Write a model file without some of its layers."""
    reader = gguf.GGUFReader(model)
    architecture = reader.fields["general.architecture"].contents()
    kept = [n for n in range(reader.fields[f"{architecture}.block_count"].contents()) if n not in without]
    writer = gguf.GGUFWriter(to, architecture)
    for key, field in reader.fields.items():
        if key == f"{architecture}.block_count":
            writer.add_block_count(len(kept))
        elif field.types and field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        elif not key.startswith("GGUF.") and key != "general.architecture":
            writer.add_key_value(key, field.contents(), field.types[0])
    for tensor in reader.tensors:
        name = tensor.name.split(".")
        if name[0] == "blk":
            if int(name[1]) in without:
                continue
            name[1] = str(kept.index(int(name[1])))
        writer.add_tensor(
            ".".join(name), tensor.data, raw_shape=tensor.data.shape, raw_dtype=tensor.tensor_type
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def answer(engine: Engine, request: GenerationRequest) -> Trace:
    """The trace of an answer."""
    trace: Trace | None = None
    for event in engine.generate(request):
        if isinstance(event, Started):
            trace = Trace(_named(event.header))
        elif trace is not None and isinstance(event, RoundFinished):
            trace.rounds.append(event.round)
        elif trace is not None and isinstance(event, Finished):
            trace.totals = event.totals
    assert trace is not None
    return trace


def _named(header: TraceHeader) -> TraceHeader:
    """The header with names instead of this machine's paths of SmolLM2 and its draft."""
    pair = header.pair
    if pair.target.path.startswith(str(RESOURCES)):
        return header
    target = msgspec.structs.replace(pair.target, path=REAL_TARGET)
    name = REAL_DRAFT if pair.draft is not None and pair.draft.architecture == "eagle3" else CUT
    draft = msgspec.structs.replace(pair.draft, path=name) if pair.draft is not None else None
    return msgspec.structs.replace(header, pair=msgspec.structs.replace(pair, target=target, draft=draft))


def check(text: Path, folder: Path) -> list[str]:
    """The faults of a lesson and its recorded answer in that folder. If there are none, the lesson is written
    there."""
    file = folder / f"{text.stem}.json"
    try:
        trace, measurement = recorded(file)
        wrong = [*recheck(trace), *untrue(text.stem, read_text(text), trace, measurement)]
        if not wrong:
            lesson = told(text.stem, read_text(text), trace, measurement)
            file.write_bytes(msgspec.json.format(msgspec.json.encode(lesson), indent=1) + b"\n")
        return wrong
    except UserError as error:
        return [str(error)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
