"""Copied drafts are found where they stand, and nothing is claimed that the trace does not determine."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.engine.engine import Engine
from app.engine.explain.copied import ContextText, Copied, is_copied
from app.engine.record.trace import Trace
from app.engine.types import GenerationRequest, Round, Sampling
from tests.answers import answer

PROMPT = "one two three, four five six. one two three, seven eight. one two"


def copied_from(trace: Trace, round: Round) -> Copied | None:
    text = ContextText(trace.header)
    text.read(trace.rounds[: round.index])
    text.read(trace.rounds)
    return text.copied(round)


def copies(engine: Engine, strategy: str, **settings: object) -> Trace:
    return answer(engine, PROMPT, strategy=strategy, max_tokens=80, **settings)


@pytest.mark.parametrize(
    "strategy", ["prompt-lookup", "ngram-simple:size_n=2:size_m=4", "suffix", "ngram-map-k:size_n=2:size_m=4"]
)
def test_a_recorded_place_is_the_one_that_is_shown(engine: Engine, strategy: str) -> None:
    trace = copies(engine, strategy, sampling=Sampling(temperature=0.6, seed=5))
    ids = engine.prompt_ids(GenerationRequest(prompt=PROMPT))
    pieces = engine.target.model.vocabulary.pieces
    begins = [0]
    for id in ids:
        begins.append(begins[-1] + len(pieces[id]))
    seen = 0
    for round in trace.rounds:
        found = copied_from(trace, round)
        assert (found is not None) == bool(round.drafted)
        if found is None or round.match is None:
            continue
        seen += 1
        text = b"".join(token.piece or token.label.encode() for token in round.drafted).decode(
            errors="ignore"
        )
        assert found.in_prompt == (round.match < len(ids))
        if found.places:
            assert found.copied == text
        if found.in_prompt and found.places == 1:
            offset = begins[round.match]
            assert PROMPT.encode()[:offset].decode(errors="ignore").endswith(found.before + found.matched)
        if not found.in_prompt:
            assert found.places == 1
            assert found.source is not None
            index, place = found.source
            assert trace.rounds[index].position + place == round.match - len(ids)
    assert seen > 3


def test_several_places_that_fit_are_counted(engine: Engine) -> None:
    trace = copies(engine, "prompt-lookup")
    round = next(round for round in trace.rounds if round.match is not None)
    header = replace(trace.header, prompt="1xyab 2xyab 3xyab -xy")
    token = replace(round.drafted[0], piece=b"ab", label="")
    drafted = replace(round, index=0, position=0, drafted=(token,), emitted=(), match=1)
    found = copied_from(Trace(header, [drafted]), drafted)
    assert found is not None and found.places == 3 and found.in_prompt
    assert (found.before, found.matched, found.copied, found.after) == ("1xyab 2xyab 3", "xy", "ab", " -xy")


def test_what_is_not_found_is_said(engine: Engine) -> None:
    trace = copies(engine, "prompt-lookup")
    round = next(round for round in trace.rounds if round.match is not None)
    header = replace(trace.header, prompt="nothing of the kind")
    token = replace(round.drafted[0], piece=b"@@", label="")
    drafted = replace(round, index=0, position=0, drafted=(token,), emitted=(), match=1)
    found = copied_from(Trace(header, [drafted]), drafted)
    assert found is not None and found.places == 0


def test_a_models_draft_is_not_copied(engine: Engine) -> None:
    for strategy in ("draft-simple:n_max=3", "draft-simple:n_max=3:sample=1"):
        trace = copies(engine, strategy, sampling=Sampling(temperature=0.8, seed=1))
        for round in trace.rounds:
            assert not is_copied(round) and copied_from(trace, round) is None
