"""Every field of a recorded trace is changed slightly: `recheck` notices, or the field cannot be checked.

NEVER and PARTLY list the fields that cannot be checked, and why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.engine.engine import Engine
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace
from app.engine.types import Sampling
from tests.answers import answer
from tests.engine.record.changes import changes

WARM = Sampling(temperature=0.9, seed=11)
KINDS = {
    "plain": ("none", WARM),
    "greedy": ("draft-simple:n_max=3", Sampling(seed=2)),
    "speculative": ("draft-simple:n_max=3", WARM),
    "sampled": ("draft-simple:n_max=3:sample=1", WARM),
    "block": ("draft-simple:n_max=3:sample=1:verify=block", WARM),
    "match": ("draft-simple:n_max=2:verify=match", Sampling(temperature=0.9, top_k=5, seed=11)),
    "one-hot": ("draft-simple:n_max=3:verify=speculative", Sampling()),
    "ewma": ("draft-simple:n_max=6:length=ewma", Sampling(seed=2)),
    "copied": ("prompt-lookup:num_pred_tokens=3:max_ngram_size=1+draft-simple:n_max=2", Sampling()),
}

MACHINE = "a fact about the machine or the files"
MODEL = "needs the model: its tokenizer or its logits"
RARE = "a token that occurs nowhere else in the trace, or is not among the alternatives of its place"
OTHERS = "of a distribution of which only the drafted token's part is recorded, or of a rare token"
BOUNDED = "only bounded by what stands beside it"
NEVER = {
    "header.app_version": MACHINE,
    "header.machine": MACHINE,
    "header.started_at": MACHINE,
    **{
        f"header.pair.{model}.{field}": MACHINE
        for model in ("target", "draft")
        for field in (
            *("path", "name", "architecture", "quantisation", "size", "n_params", "n_layers", "n_ctx_train"),
            *("n_ctx", "threads", "has_chat_template", "n_gpu_layers", "memory[]", "memory.device"),
            *("memory.weights", "memory.context", "memory.compute", "memory.mapped", "memory.layers"),
            "memory.repacked",
            "n_experts",
        )
    },
    "header.pair.vocabulary": MACHINE,
    "header.pair.devices": MACHINE,
    "header.pair.fills_middle": MACHINE,
    "header.prompt": MODEL,
    "header.context_ids": "none, as before format 1.9",
    **{
        f"header.sampling.{field}": MODEL
        for field in (
            *("min_p", "top_n_sigma", "xtc_probability", "xtc_threshold"),
            *("repeat_penalty", "frequency_penalty", "presence_penalty", "repeat_last_n"),
            *("dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n"),
            "dry_sequence_breaker",
        )
    },
    "header.stop": "a text that was never reached",
    "header.stop[]": "a text that was never reached",
    "round.draft_end": "words",
    "totals.error": "words",
}
PARTLY = {
    "header.cold": "nothing was cached, for whatever reason",
    "header.cached_tokens": "how much of the prompt a warm run had read",
    "header.context_ids[]": "a token of the prompt that was never copied",
    "header.format": "an older format with all fields that are used",
    "header.strategy": "settings of another version",
    "header.seed": "nothing was drawn, and no seed was asked for",
    "header.prompt_tokens": MODEL,
    "header.pair.target.n_vocab": BOUNDED,
    "header.pair.draft.n_vocab": BOUNDED,
    "header.sampling.temperature": "above 0: " + MODEL,
    "header.sampling.top_k": MODEL,
    "header.sampling.top_p": MODEL,
    "header.sampling.typical_p": MODEL,
    "round.drafted[]": "ignored at the end of a draft without alternatives",
    "round.asked[]": "who was asked in vain",
    **dict.fromkeys(
        [
            *("round.offset", "round.seconds", "round.draft_seconds", "round.verify_seconds"),
            *("round.sample_seconds", "round.native_seconds", "round.accept_seconds", "totals.seconds"),
        ],
        BOUNDED,
    ),
    **dict.fromkeys(
        [
            *("round.drafted.id", "round.drafted.piece", "round.drafted.label", "round.emitted.id"),
            *("round.emitted.label", "round.target_top.ids", "round.target_top.pieces"),
            *("round.draft_top.ids", "round.draft_top.pieces", "round.drafted.p", "round.emitted.p"),
            *("round.emitted.race.rival", "round.emitted.race.piece", "round.drafted.draft_race.piece"),
        ],
        RARE,
    ),
    "round.target_top.p": "between its neighbours, where there are more than ten tokens: " + MODEL,
    "round.target_top[]": "two places with the same best token",
    "round.draft_top[]": "two places with the same best token",
    "round.drafted.draft_p": "of a drawn token: " + BOUNDED,
    "round.drafted.h": "of a drawn token: " + BOUNDED,
    "round.emitted.race.score": OTHERS,
    "round.emitted.race.rival_score": OTHERS,
    "round.drafted.draft_race.rival": OTHERS,
    "round.drafted.draft_race.rival_score": OTHERS,
}


def changed(trace: Trace) -> Iterator[tuple[str, Trace]]:
    for path, header in changes(trace.header, "header"):
        yield path, Trace(header, trace.rounds, trace.totals)
    for path, totals in changes(trace.totals, "totals"):
        yield path, Trace(trace.header, trace.rounds, totals)
    for index in sorted({0, len(trace.rounds) // 2, len(trace.rounds) - 1}):  # these stand for all
        for path, altered in changes(trace.rounds[index], "round"):
            rounds = [*trace.rounds[:index], altered, *trace.rounds[index + 1 :]]
            yield path, Trace(trace.header, rounds, trace.totals)


@pytest.fixture(scope="module")
def recorded(pair_files: tuple[Path, Path]) -> dict[str, Trace]:
    with Engine(*pair_files) as engine:
        return {
            kind: answer(
                engine,
                strategy=strategy,
                sampling=sampling,
                max_tokens=8,
                ignore_eos=True,
                stop=("never",),
                cold=kind == "ewma",
            )
            for kind, (strategy, sampling) in KINDS.items()
        }


def without_stalls(trace: Trace) -> Trace:
    """The trace with the times of rounds that nothing held up: where other work stops a round for a second,
    the record allows times that are a thousand times as long."""
    rounds = [
        replace(
            round,
            offset=0.01 * round.index,
            seconds=0.009,
            draft_seconds=0.002,
            verify_seconds=0.005,
            sample_seconds=0.001,
            native_seconds=0.006,
            read_seconds=min(round.read_seconds, 0.001),
            accept_seconds=min(round.accept_seconds, 0.0005),
        )
        for round in trace.rounds
    ]
    return Trace(trace.header, rounds, trace.totals)


def test_every_little_change_is_noticed_or_not_determined(recorded: dict[str, Trace]) -> None:
    noticed: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for kind, trace in recorded.items():
        assert recheck(trace) == [], kind
        for path, altered in changed(trace):
            (noticed if recheck(altered) else missed)[path] += 1
    assert set(missed) <= {*NEVER, *PARTLY}, "not noticed"
    assert not set(NEVER) & set(noticed), "noticed: it belongs to PARTLY"
    checked = {path for path, why in PARTLY.items() if why != BOUNDED}
    assert checked <= set(noticed), "no check of it is left"


@pytest.mark.parametrize(
    ("field", "factor"),
    [
        *(("seconds", 0.01), ("seconds", 1000), ("verify_seconds", 1000), ("sample_seconds", 1000)),
        *(("native_seconds", 1000), ("native_seconds", -1), ("offset", 0.01), ("offset", 1000)),
    ],
)
def test_falsified_times_of_a_round_are_noticed(
    recorded: dict[str, Trace], field: str, factor: float
) -> None:
    for trace in map(without_stalls, recorded.values()):
        for index, round in enumerate(trace.rounds[1:], 1):
            rounds = list(trace.rounds)
            rounds[index] = replace(round, **{field: getattr(round, field) * factor})
            assert recheck(Trace(trace.header, rounds, trace.totals)), f"round {index}"


def test_falsified_totals_are_noticed(recorded: dict[str, Trace]) -> None:
    trace = recorded["greedy"]
    assert trace.totals is not None
    for field in ("seconds", "prompt_seconds", "first_token_seconds"):
        totals = replace(trace.totals, **{field: getattr(trace.totals, field) / 1000})
        assert recheck(Trace(trace.header, trace.rounds, totals)), field


def test_a_changed_last_id_with_its_piece_kept_is_noticed(recorded: dict[str, Trace]) -> None:
    trace = recorded["greedy"]
    for index, round in enumerate(trace.rounds):
        last = replace(round.emitted[-1], id=round.emitted[-1].id + 1)
        rounds = list(trace.rounds)
        rounds[index] = replace(round, emitted=(*round.emitted[:-1], last))
        assert recheck(Trace(trace.header, rounds, trace.totals)), f"round {index}"


def test_a_strategy_that_the_header_does_not_name_is_noticed(recorded: dict[str, Trace]) -> None:
    trace = recorded["greedy"]
    rounds = [replace(round, strategy="suffix" if round.drafted else None) for round in trace.rounds]
    found = recheck(Trace(trace.header, rounds))
    assert "Round 0: “suffix” is not part of “draft-simple”." in found
