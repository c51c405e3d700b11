"""What the audit finds: every fault planted in the real engine, and no fault in the engine as it is.

    python tests/benchmarks/audit.py [--pair bundled|smollm2] [--sound 500] [--faulty 100] [--tokens 32]
                                     [--journal FILE]

Prompts, strategies, rules, temperatures, filters and penalties are random. Each planted fault is audited
`--faulty` times; answers in which it changed no recorded value do not count. Every audit is a line of the
journal, and an interrupted run continues. The exit code is 1 if a fault was missed, or if one was found in
the engine as it is.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.engine import Engine, GenerationRequest, Sampling
from app.lab.audit_finding import AuditFinding
from tests.audits import PLANTS, audited
from tests.benchmarks.measure import as_user, one_thread
from tests.benchmarks.same_text import files_of, prompts_of

DRAFTED = [
    *(f"draft-simple:n_max={k}" for k in (1, 3, 8)),
    *(f"draft-simple:n_max={k}:sample=1" for k in (3, 8)),
    "prompt-lookup", "suffix", "ngram-cache", "draft-simple:length=ewma",
]  # fmt: skip
FILTERS: list[dict[str, float]] = [
    {}, {}, {"top_p": 0.9}, {"top_k": 20}, {"min_p": 0.05}, {"typical_p": 0.9}, {"top_n_sigma": 1.5},
    {"xtc_probability": 0.5}, {"dry_multiplier": 0.8},
]  # fmt: skip
PENALTIES: list[dict[str, float]] = [
    {"repeat_penalty": 1.1}, {"repeat_penalty": 1.3}, {"frequency_penalty": 0.3}, {"presence_penalty": 0.5},
]  # fmt: skip


def request_of(chance: random.Random, prompts: list[str], tokens: int, plant: str) -> GenerationRequest:
    """A request by chance, on which this fault can act."""
    temperature = chance.choice((0.0, 0.8, 1.2))
    strategy = chance.choice(DRAFTED)
    rules = ["match", "match", "speculative"] + ["block"] * ("rule" not in plant)
    rule = chance.choice(rules) if temperature else ""
    penalised = chance.random() < 0.2 or "penalty" in plant
    extra = chance.choice(FILTERS) | (chance.choice(PENALTIES) if penalised else {})
    return GenerationRequest(
        messages=as_user(chance.choice(prompts)),
        strategy=f"{strategy}:verify={rule}" if rule else strategy,
        sampling=Sampling(temperature=temperature, seed=chance.randrange(2**31), **extra),  # type: ignore[arg-type]
        max_tokens=tokens,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pair", choices=("bundled", "smollm2"), default="bundled")
    parser.add_argument("--sound", type=int, default=500, help="audits of the engine as it is")
    parser.add_argument("--faulty", type=int, default=100, help="audits of each planted fault")
    parser.add_argument("--tokens", type=int, default=32, help="most tokens of an answer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--journal", type=Path, default=Path(tempfile.gettempdir()) / "draftscope-audit.jsonl"
    )
    options = parser.parse_args()
    target, draft = files_of(options.pair)
    prompts, wrong = prompts_of(options.pair), 0
    lines = list(map(json.loads, options.journal.open())) if options.journal.exists() else []
    done = {tuple(line["key"]): line for line in lines}
    with (
        Engine(one_thread(target), one_thread(draft)) as engine,
        options.journal.open("a") as journal,
    ):
        for plant in (*PLANTS, ""):
            wanted = options.faulty if plant else options.sound
            found: Counter[str] = Counter()
            most, idle = 0.0, 0
            for number in count():
                if found.total() >= wanted:
                    break
                key = (options.pair, options.tokens, options.seed, plant, number)
                if (line := done.get(key)) is None:
                    line = {"key": key} | line_of(engine, key, prompts)
                    journal.write(json.dumps(line) + "\n")
                    journal.flush()
                if not line["acted"]:
                    idle += 1
                    continue
                found[line["finding"]] += 1
                most = max(most, line["most"])
                if line["finding"].startswith(AuditFinding.FAULT) is not bool(plant):
                    wrong += 1
                    print(f"WRONG, {number}: {line['asked']}: {line['words']}", flush=True)
            told = ", ".join(f"{many} {name}" for name, many in found.most_common())
            beside = (
                f"; {idle} where it changed nothing are not counted"
                if plant
                else f"; the largest difference is {most:.0%} of what is allowed"
            )
            print(f"{plant or 'no fault'}: {told}{beside}", flush=True)
    return 1 if wrong else 0


def line_of(engine: Engine, key: tuple[str, int, int, str, int], prompts: list[str]) -> dict[str, Any]:
    """Audit the answer with this key."""
    _pair, tokens, seed, plant, number = key
    chance = random.Random(f"{seed} {plant} {number}")
    request = request_of(chance, prompts, tokens, plant)
    audit, acted = audited(engine, request, plant, chance.randrange(3))
    return {
        "acted": bool(acted) or not plant,
        "finding": f"{audit.finding}{f' of {audit.cause}' if audit.cause else ''}",
        "words": audit.words,
        "asked": f"{request.strategy}, {request.sampling}",
        "most": audit.rows.most / audit.rows.allowed if audit.rows is not None else 0.0,
    }


if __name__ == "__main__":
    sys.exit(main())
