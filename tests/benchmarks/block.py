"""The gain of block verification over the token-wise rule, with sampled drafts of the bundled pair.

    python tests/benchmarks/block.py [--seeds 10] [--prompts 12] [--tokens 128]

tau is 1 + accepted / rounds with a draft, tokens per pass is emitted / rounds; both are free of timing noise.
They are pooled over all prompts of a seed; shown are the mean over seeds and, after ±, its standard error.
"same drafts" is the expected gain in tau on block's own drafts, without the luck of the verdicts: it
compares, under both rules, the sum of the chances to accept up to each token, averaged over rounds. The rules
take turns prompt by prompt, cold, one thread. The last column is block's tokens/s over speculative's: median
and range over seeds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.engine import Engine, GenerationRequest, Sampling
from app.engine.record.stats import Statistics
from app.engine.rules.block import block_reach
from app.engine.types import Round
from tests.benchmarks.measure import DEMO_PAIR, as_user, demo_prompts, measure, one_thread, spread

LENGTHS = (4, 8)
TEMPERATURES = (0.8, 1.0, 1.5)
RULES = ("speculative", "block")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--prompts", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=128, help="most tokens of an answer")
    options = parser.parse_args()
    columns = ("tau, speculative", "tau, block", "gain", "same drafts", "tokens/pass, s", "tokens/pass, b")
    print(
        f"{'draft-simple:sample=1':24}" + "".join(f"{column:>18}" for column in (*columns, "tokens/s ratio"))
    )
    target, draft = (one_thread(DEMO_PAIR / name) for name in ("target.gguf", "draft.gguf"))
    with Engine(target, draft) as engine:
        list(engine.generate(_request(RULES[0], LENGTHS[0], 1.0, 0, demo_prompts(1)[0], 32)))  # a warm-up
        for n_max in LENGTHS:
            for temperature in TEMPERATURES:
                seeds = [
                    _seed(engine, n_max, temperature, seed, demo_prompts(options.prompts), options.tokens)
                    for seed in range(options.seeds)
                ]
                print(f"{f'n_max={n_max}, temperature {temperature:g}':24}" + _cells(seeds), flush=True)


def _seed(
    engine: Engine, n_max: int, temperature: float, seed: int, prompts: Sequence[str], tokens: int
) -> tuple[Sequence[Round], Sequence[Round], float]:
    """All rounds of both rules, and the ratio of their tokens/s."""
    rounds: dict[str, list[Round]] = {rule: [] for rule in RULES}
    speeds = dict.fromkeys(RULES, 0.0)
    for number, prompt in enumerate(prompts):
        for rule in RULES if (seed + number) % 2 else reversed(RULES):
            request = _request(rule, n_max, temperature, seed * len(prompts) + number, prompt, tokens)
            answer = measure(engine, request)
            rounds[rule] += answer.rounds
            speeds[rule] += answer.totals.seconds
    emitted = {rule: sum(len(round.emitted) for round in taken) for rule, taken in rounds.items()}
    ratio = emitted["block"] / speeds["block"] * speeds["speculative"] / emitted["speculative"]
    return rounds["speculative"], rounds["block"], ratio


def _request(
    rule: str, n_max: int, temperature: float, seed: int, prompt: str, tokens: int
) -> GenerationRequest:
    return GenerationRequest(
        messages=as_user(prompt),
        strategy=f"draft-simple:n_max={n_max}:sample=1:verify={rule}",
        sampling=Sampling(temperature=temperature, seed=seed),
        max_tokens=tokens,
        cold=True,
    )


def _cells(seeds: Sequence[tuple[Sequence[Round], Sequence[Round], float]]) -> str:
    folds = [(Statistics.of(single), Statistics.of(block)) for single, block, _ in seeds]
    single = [fold.tau or 1.0 for fold, _ in folds]
    block = [fold.tau or 1.0 for _, fold in folds]
    cells = (
        _mean(single),
        _mean(block),
        _mean([100 * (b / s - 1) for s, b in zip(single, block, strict=True)], "{:+.1f}", " %"),
        _mean([_promised(rounds) for _, rounds, _ in seeds], "{:+.1f}", " %"),
        _mean([fold.tokens_per_pass or 0 for fold, _ in folds]),
        _mean([fold.tokens_per_pass or 0 for _, fold in folds]),
        spread((ratio for *_, ratio in seeds), "{:.2f}"),
    )
    return "".join(f"{cell:>18}" for cell in cells)


def _promised(rounds: Iterable[Round]) -> float:
    """The percentage by which tau is larger for block, by the chances alone."""
    single = block = drafts = 0.0
    for round in rounds:
        reach = chance = 1.0
        drafts += bool(round.drafted)
        for token in round.drafted:
            if token.p is None:
                break  # no later token can pass
            reach = block_reach(reach, token.p, token.q)
            chance *= min(1.0, token.p / token.q)
            block += reach
            single += chance
    return 100 * ((drafts + block) / (drafts + single) - 1)


def _mean(values: Sequence[float], form: str = "{:.3f}", unit: str = "") -> str:
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{form.format(statistics.mean(values))} ± {form.replace('+', '').format(error)}{unit}"


if __name__ == "__main__":
    main()
