"""Every field of a recorded trace is changed slightly: `recheck` notices, or the field cannot be checked.

docs/traces.md lists the fields that cannot be checked, never or not always, and why.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
from msgspec.structs import replace

from app.engine.drafters.base import ENOUGH
from app.engine.engine import Engine
from app.engine.fates import Verdict
from app.engine.record.frame import header_problems
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace
from app.engine.types import Message, Round, Sampling
from tests.answers import answer
from tests.engine.record.changes import changes
from tests.engine.record.test_recheck_exactly import sound

ROOT = Path(__file__).resolve().parents[3]
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


def listed(heading: str) -> dict[str, str]:
    """Fields of the table behind these words in docs/traces.md, and what is said of them; * is any text."""
    rows = (
        (ROOT / "docs" / "traces.md").read_text().split(heading)[1].split("|---|---|\n")[1].split("\n\n")[0]
    )
    cells = [line.strip("| ").split(" | ") for line in rows.splitlines()]
    return {field: why for fields, why in cells for field in re.findall(r"`([a-z][^`]*[.][^`]*)`", fields)}


NEVER, PARTLY = listed("are never checked:"), listed("some changes pass:")
BOUNDED = "only bounded by the fields beside it"


def in_table(path: str, table: dict[str, str]) -> str | None:
    """The row of a field."""
    rows = (re.escape(field).replace(r"\*", ".*") for field in table)
    return next((field for field, row in zip(table, rows, strict=True) if re.fullmatch(row, path)), None)


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
    assert [path for path in missed if not in_table(path, NEVER | PARTLY)] == [], "not noticed"
    often = [path for path in noticed if not in_table(path, PARTLY)]
    assert [path for path in often if in_table(path, NEVER)] == [], "noticed: it belongs to the second table"
    idle = [path for path in NEVER if not any(in_table(each, {path: ""}) for each in missed)]
    assert idle == [], "it is always noticed, or no field"
    checked = {path for path, why in PARTLY.items() if why != BOUNDED}
    assert checked <= set(noticed), "no check of it is left"


def cut_to_one(trace: Trace) -> Iterator[Round]:
    for round in trace.rounds:
        tops = [replace(top, ids=top.ids[:1], pieces=top.pieces[:1], p=top.p[:1]) for top in round.target_top]
        yield replace(round, target_top=tuple(tops))


def cut_drafts_to_one(trace: Trace) -> Iterator[Round]:
    for round in trace.rounds:
        tops = [replace(top, ids=top.ids[:1], pieces=top.pieces[:1], p=(1.0,)) for top in round.draft_top]
        drafted = [replace(token, draft_p=token.draft_p and 1.0) for token in round.drafted]
        yield replace(round, draft_top=tuple(tops), drafted=tuple(drafted))


def of_ignored(**fields: Any) -> Callable[[Trace], Iterator[Round]]:
    def altered(trace: Trace) -> Iterator[Round]:
        for round in trace.rounds:
            drafted = [
                replace(token, **fields) if token.verdict is Verdict.IGNORED else token
                for token in round.drafted
            ]
            yield replace(round, drafted=tuple(drafted))

    return altered


def last_value(trace: Trace) -> Iterator[Round]:
    """Another h at a draft's last place, which is the product of min(1, p/q)."""
    for round in trace.rounds:
        drafted = round.drafted
        if drafted and drafted[-1].h:
            drafted = (*drafted[:-1], replace(drafted[-1], h=drafted[-1].h * 0.9999))
        yield replace(round, drafted=drafted)


TOGETHER: dict[str, Callable[[Trace], Iterable[Round]]] = {
    "no time in llama.cpp": lambda trace: [replace(round, native_seconds=0.0) for round in trace.rounds],
    "one alternative": cut_to_one,
    "one alternative of the draft": cut_drafts_to_one,
    "an ignored token is another": of_ignored(id=1),
    "an ignored token has another piece": of_ignored(piece=b"?"),
    "an ignored token has another p": of_ignored(draft_p=1.0),
    "drafts ended by p_min": lambda trace: [replace(round, draft_end="p_min") for round in trace.rounds],
    "drafts ended by room": lambda trace: [replace(round, draft_end=ENOUGH) for round in trace.rounds],
    "drafts ended by n_max": lambda trace: [replace(round, draft_end="n_max") for round in trace.rounds],
    "the last value of a block": last_value,
}


@pytest.mark.parametrize("name", TOGETHER)
def test_what_is_changed_throughout_is_noticed(recorded: dict[str, Trace], name: str) -> None:
    altered = {kind: list(TOGETHER[name](trace)) for kind, trace in recorded.items()}
    changed = [kind for kind, rounds in altered.items() if rounds != recorded[kind].rounds]
    assert changed
    for kind in changed:
        trace = recorded[kind]
        assert recheck(Trace(trace.header, altered[kind], trace.totals)), kind


ASKED_BY = (
    "{{ text }}",
    "{{ text | trim | upper }}",
    "{{ text | e }}",
    "{{ text | tojson }}",
    "{{ text | truncate(30) }}",
    "{{ text[:20] }} … {{ text[-9:] }} {#truncate#}",
)


def test_another_question_is_noticed(recorded: dict[str, Trace]) -> None:
    trace = recorded["copied"]
    asked = replace(trace.header, messages=(Message("user", "bcab"), Message("user", "abc")))
    assert recheck(Trace(asked, trace.rounds, trace.totals)) == []
    for header in (
        replace(asked, messages=(Message("user", "bcad"),)),
        replace(asked, prompt=asked.prompt.replace("c", "d")),
        replace(asked, context_ids=()),
    ):
        assert recheck(Trace(header, trace.rounds, trace.totals))


@pytest.mark.parametrize("template", ASKED_BY)
def test_a_template_may_cut_and_escape_a_question(template: str) -> None:
    question = ' Is “naïve” <b>R&D</b> a "word" of\nyours, or yours of a word? '
    made = jinja2.Environment().from_string(template).render(text=question)
    messages = (Message("user", "An earlier question."), Message("user", question))
    header = replace(sound().header, prompt=f"<|user|>{made}<|end|>", messages=messages)
    assert list(header_problems(header)) == []
    if "truncate" not in template:
        told = replace(messages[1], content=question.replace("or yours", "or mine"))
        found = list(header_problems(replace(header, messages=(told,))))
        assert found == ["its prompt does not contain “mine” of its messages"]


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
    assert "Round 1: “suffix” is not part of “draft-simple”." in found
