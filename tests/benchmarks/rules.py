"""What a rule costs: tokens/s and acceptance of `speculative`, `match` and `block` side by side.

    python tests/benchmarks/rules.py [--minutes 7.5] [--tokens 64] [--pair bundled|smollm2 ...]

Each prompt is answered at temperature 0.8 and 1.2, cold, one thread, by `none` and by draft-simple with
n_max=3, whose tokens are chosen or drawn, under every rule, in a shuffled order. The pairs take turns until
the time is over. Factors of tokens/s are geometric means over prompts, with their 95 % intervals.
Accepted and tokens a pass are pooled over prompts, and free of timing noise. "same drafts" is what block
promises on its own drafts over `speculative`, in tokens a drafted round, without the luck of the verdicts: it
compares, under both rules, the sum of the chances to accept up to each token.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from math import exp, log, sqrt
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.engine import Engine, GenerationRequest, Sampling
from app.engine.record.stats import Statistics
from app.engine.rules.block import block_reach
from app.engine.types import Round
from tests.benchmarks.measure import Answer, as_user, measure, one_thread
from tests.benchmarks.same_text import TEMPERATURES, files_of, prompts_of

DRAFTS = {"chosen": "draft-simple", "drawn": "draft-simple:sample=1"}
RULES = ("speculative", "match", "block")
LANES = ["none", *(f"{draft}:verify={rule}" for draft in DRAFTS.values() for rule in RULES)]
Answers = dict[tuple[float, str], list[Answer]]
"""By temperature and strategy, in the order of prompts."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=7.5)
    parser.add_argument("--tokens", type=int, default=64, help="most tokens of an answer")
    parser.add_argument("--pair", nargs="*", choices=("bundled", "smollm2"), default=["bundled", "smollm2"])
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    shuffle = random.Random(0).shuffle
    with ExitStack() as stack:
        engines = {}
        for name in options.pair:
            target, draft = map(one_thread, files_of(name))
            engines[name] = stack.enter_context(Engine(target, draft))
        spent, number = dict.fromkeys(engines, 0.0), dict.fromkeys(engines, 0)
        taken: dict[str, Answers] = {name: defaultdict(list) for name in engines}
        for name, engine in engines.items():  # a warm-up
            measure(engine, _request(prompts_of(name)[0], LANES[1], 0.8, 0, 16))
        while (began := time.monotonic()) < end:
            name = min(engines, key=spent.__getitem__)
            prompts = prompts_of(name)
            lanes = [(temperature, lane) for temperature in TEMPERATURES for lane in LANES]
            shuffle(lanes)
            for temperature, lane in lanes:
                prompt, seed = prompts[number[name] % len(prompts)], number[name]
                request = _request(prompt, lane, temperature, seed, options.tokens)
                taken[name][temperature, lane].append(measure(engines[name], request))
            number[name] += 1
            spent[name] += time.monotonic() - began
    print("| pair, temperature, prompts | draft, rule | tokens/s of `none` | of `speculative` | accepted | "
          "tokens a pass |\n|---|---|---|---|---|---|")  # fmt: skip
    for name, answers in taken.items():
        for temperature in TEMPERATURES:
            _show(f"{name}, {temperature}, {number[name]}", temperature, answers)


def _request(prompt: str, lane: str, temperature: float, seed: int, tokens: int) -> GenerationRequest:
    return GenerationRequest(
        messages=as_user(prompt),
        strategy=lane,
        sampling=Sampling(temperature=temperature, seed=seed),
        max_tokens=tokens,
        cold=True,
    )


def _show(where: str, temperature: float, answers: Answers) -> None:
    """Print the rows of one pair at one temperature."""
    for kind, draft in DRAFTS.items():
        for rule in RULES:
            own = answers[temperature, f"{draft}:verify={rule}"]
            factors = [
                _factor(own, answers[temperature, lane]) for lane in ("none", f"{draft}:verify=speculative")
            ]
            rounds = [round for answer in own for round in answer.rounds]
            fold = Statistics.of(rounds)
            told = f"{fold.acceptance_rate or 0:.3f} | {fold.tokens_per_pass or 0:.2f}"
            more = f", same drafts {_promised(rounds):+.1f} %" if rule == "block" else ""
            print(f"| {where} | {kind}, `{rule}` | {' | '.join(factors)} | {told}{more} |")


def _factor(own: Sequence[Answer], others: Sequence[Answer]) -> str:
    """Tokens/s over that of others on the same prompts, with its interval."""
    if own is others:
        return "1"
    speeds = [[answer.tokens / answer.totals.seconds for answer in lane] for lane in (own, others)]
    logs = [log(mine / theirs) for mine, theirs in zip(*speeds, strict=True)]
    mean = statistics.mean(logs)
    half = 1.96 * statistics.stdev(logs) / sqrt(len(logs)) if len(logs) > 1 else 0.0
    return f"{exp(mean):.2f}× ({exp(mean - half):.2f} to {exp(mean + half):.2f})"


def _promised(rounds: Iterable[Round]) -> float:
    """The percentage by which tokens a drafted round are more under block, by the chances alone."""
    single = block = drafts = 0.0
    for round in rounds:
        reach = chance = 1.0
        drafts += bool(round.drafted)
        for token in round.drafted:
            if token.p is None or not token.q:
                break  # no later token can pass
            reach = block_reach(reach, token.p, token.q)
            chance *= min(1.0, token.p / token.q)
            block += reach
            single += chance
    return 100 * ((drafts + block) / (drafts + single) - 1)


if __name__ == "__main__":
    main()
