"""Whether drafting changes a drawn text: `none` and verify=match with every kind of draft, token by token.

    python tests/benchmarks/same_text.py [--pair bundled|smollm2 ...] [--pairs 200] [--tokens 64]
                                         [--threads 1] [--deep 0] [--lane STRATEGY ...]
                                         [--journal FILE] [--target FILE [--draft FILE] [--raw]]

A pair is a prompt and a seed; `none` and every lane answer it at temperature 0.8 and 1.2. All runs are cold,
except that the lanes reuse the prompt that `none` read. Texts are compared up to the first divergence,
because later tokens follow different texts. A lane's figure is its divergences / the tokens compared,
including the first different one. A divergence is rounding if both answers drew with the same luck, and the
gap is smaller than what rounding moves. The gap is between `none`'s logits of the two tokens, and the move is
the change of that gap in the lane's pass.

Models take turns, the one with the least processor time first. Every answer is a line of the journal, and an
interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.base.paths import find_paths
from app.engine import Engine, GenerationRequest, Sampling
from app.engine.native.model import quantise
from app.engine.record.trace import Trace
from app.lab.runs.compare import first_divergence
from tests.benchmarks.measure import DEMO_PAIR, ROOT, as_user, one_thread

TEMPERATURES = (0.8, 1.2)
DRAFTLESS = ("prompt-lookup", "ngram-map-k:size_n=3:size_m=8", "ngram-cache", "suffix")
LENGTHS = (1, 3, 8)
COUNTS = ("tokens", "compared", "rounds", "drafted", "accepted")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pair", nargs="*", choices=("bundled", "smollm2"), default=["bundled", "smollm2"])
    parser.add_argument("--pairs", type=int, default=200, help="prompts and seeds")
    parser.add_argument("--tokens", type=int, default=64, help="most tokens of an answer")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--deep", type=int, default=0, help="least tokens of a prompt: others come before it")
    parser.add_argument("--lane", nargs="*", help="only these strategies")
    parser.add_argument("--target", type=Path, help="another target besides")
    parser.add_argument("--draft", type=Path, help="its draft model or head")
    parser.add_argument("--raw", action="store_true", help="it reads prompts as they are, without a template")
    parser.add_argument(
        "--journal", type=Path, default=Path(tempfile.gettempdir()) / "draftscope-same-text.jsonl"
    )
    options = parser.parse_args()
    files = {name: files_of(name) for name in options.pair}
    if options.target:
        files[options.target.name] = options.target, options.draft
    lines = list(map(json.loads, options.journal.open())) if options.journal.exists() else []
    done = {tuple(line["key"]): line for line in lines}
    with ExitStack() as stack:
        journal = stack.enter_context(options.journal.open("a"))
        lanes, answering = {}, {}
        for name, (target, draft) in files.items():
            own = replace(one_thread(target), threads=options.threads)
            engine = stack.enter_context(Engine(own, one_thread(draft) if draft else None))
            lanes[name] = options.lane or lanes_of(engine)
            answering[name] = measured(engine, name, lanes[name], options, done)
        spent = dict.fromkeys(files, 0.0)
        while answering:
            name, began = min(answering, key=spent.__getitem__), time.process_time()
            if line := next(answering[name], None):
                journal.write(json.dumps(line) + "\n")
                journal.flush()
                done[tuple(line["key"])] = line
            else:
                del answering[name]
            spent[name] += time.process_time() - began
    for name in files:
        show(name, lanes[name], [line for line in done.values() if line["key"][0] == name])


def files_of(name: str) -> tuple[Path, Path]:
    """Target and draft. That of SmolLM2 is SmolLM2 itself in two bits a weight, which is often wrong."""
    if name == "bundled":
        return DEMO_PAIR / "target.gguf", DEMO_PAIR / "draft.gguf"
    target, draft = find_paths().real_target, Path(tempfile.gettempdir()) / "draftscope-smollm2-q2_k.gguf"
    if not draft.exists():
        quantise(target, "Q2_K", draft)
    return target, draft


def lanes_of(engine: Engine) -> list[str]:
    """Strategies: draftless ones, and those of the draft, chosen and drawn."""
    lanes = [f"{strategy}:verify=match" for strategy in DRAFTLESS]
    if engine.draft is not None:
        name = "draft-eagle3" if engine.draft.reads_target else "draft-simple"
        kinds = (name, "{}"), (name, "{}:sample=1")
        lanes += [f"{name}:n_max={kind.format(k)}:verify=match" for name, kind in kinds for k in LENGTHS]
    return lanes


def prompts_of(name: str) -> list[str]:
    suite = "bundled" if name == "bundled" else "general"
    entries = json.loads((ROOT / "resources" / "suites" / f"{suite}.json").read_text())["prompts"]
    return [entry["prompt"] for entry in entries if "prompt" in entry]


def measured(
    engine: Engine,
    name: str,
    lanes: list[str],
    options: argparse.Namespace,
    done: dict[tuple[Any, ...], dict[str, Any]],
) -> Iterator[dict[str, Any]]:
    """A line for every answer that is not done yet, however long those that are were."""
    prompts = prompts_of(name)
    raw = options.raw and options.target.name == name
    for number in range(options.pairs):
        for temperature in TEMPERATURES:
            missing = [lane for lane in lanes if (name, number, temperature, lane) not in done]
            baseline: Trace | None = None
            if missing:
                engine.reset()
            for lane in ["none", *missing] if missing else ():
                prompt = deep_prompt(engine, prompts, number, options.deep)
                request = GenerationRequest(
                    prompt=prompt if raw else None,
                    messages=() if raw else as_user(prompt),
                    strategy=lane,
                    sampling=Sampling(temperature=temperature, seed=number),
                    max_tokens=options.tokens,
                )
                trace = engine.answer(request)
                if baseline is not None:
                    yield {"key": (name, number, temperature, lane)} | line_of(trace, baseline)
                baseline = baseline or trace


def deep_prompt(engine: Engine, prompts: list[str], number: int, least: int) -> str:
    """Prompt `number`, after so many of those before it that all have `least` tokens."""
    tokens, text, before = engine.target.model.vocabulary, prompts[number % len(prompts)], number
    while len(tokens.tokenize(text, special=False, parse_special=False)) < least:
        before -= 1
        text = f"{prompts[before % len(prompts)]}\n\n{text}"
    return text


def line_of(trace: Trace, baseline: Trace) -> dict[str, Any]:
    ids, base = trace.token_ids, baseline.token_ids
    rounds = trace.rounds
    found = first_divergence(ids, base, trace, baseline)
    parting = None
    if found is not None:
        at, temperature = found.index, trace.header.sampling.temperature
        gaps = [_gap(answer, at) * temperature for answer in (baseline, trace)]
        parting = {"index": at, "gap": gaps[0], "moved": sum(gaps), "rounding": found.near_tie}
    return {
        "tokens": len(ids),
        "compared": found.index + 1 if found is not None else len(base),
        "parting": parting,
        "rounds": len(rounds),
        "drafted": sum(len(round.drafted) for round in rounds),
        "accepted": sum(round.accepted for round in rounds),
    }


def _gap(trace: Trace, index: int) -> float:
    round = next(round for round in reversed(trace.rounds) if round.position <= index)
    race = round.emitted[index - round.position].race
    return race.gap if race is not None else 0.0


def show(name: str, lanes: list[str], lines: list[dict[str, Any]]) -> None:
    """Print a table of lanes, and every parting."""
    by_lane = defaultdict(list)
    for line in lines:
        by_lane[line["key"][3]].append(line)
    print(f"\n{name}, {len({line['key'][1] for line in lines})} prompts and seeds, temperature 0.8 and 1.2\n")
    print("| strategy | tokens compared | drawn otherwise | of 1,000 | accepted | tokens a pass |")
    print("|---|---|---|---|---|---|")
    for lane in lanes:
        own = by_lane[lane]
        total = {name: sum(line[name] for line in own) for name in COUNTS}
        parted, compared = sum(line["parting"] is not None for line in own), total["compared"]
        told = [f"{compared:,}", f"{parted}", f"{1000 * parted / compared:.2f}"]
        told.append(f"{total['accepted'] / total['drafted']:.3f}" if total["drafted"] else "no draft")
        told.append(f"{total['tokens'] / total['rounds']:.2f}")
        print(f"| `{lane}` | {' | '.join(told)} |")
    partings = [(line["key"], line["parting"]) for line in lines if line["parting"]]
    if partings:
        moves = sorted(parting["moved"] for _, parting in partings)
        kinds = [parting["rounding"] for _, parting in partings]
        print(f"\n{len(kinds)} partings: {kinds.count(True)} rounding, {kinds.count(None)} unknown, "
              f"{kinds.count(False)} not; logits moved by {moves[len(moves) // 2]:.4f} in the median, "
              f"{moves[-1]:.4f} at most")  # fmt: skip
    for key, parting in sorted(partings, key=lambda pair: -pair[1]["moved"])[:20]:
        print(f"  {key[3]}, prompt {key[1]}, temperature {key[2]}: token {parting['index']}, "
              f"gap {parting['gap']:.4f}, moved {parting['moved']:.4f}")  # fmt: skip


if __name__ == "__main__":
    main()
