"""Depth measurements: what may be asked for, and what is refused before anything runs."""

from __future__ import annotations

import msgspec
import pytest

from app.engine.errors import SettingError
from app.engine.types import ModelOptions, Sampling
from app.lab.depths import (
    at_depths,
    check_room,
    has_depths,
    parse_depths,
    room_for_depth,
    suggested_depths,
    without_depths,
)
from app.lab.experiment import Experiment, Lane, Pair, Prompt, conversations, make_experiment
from app.lab.suites import Suite

LONG_SUITE = Suite("long", "Long", (Prompt("Sum it up:\n\nOnce upon a time", "story"),))


def experiment(*lanes: Lane, tokens: int = 100) -> Experiment:
    prompts = (Prompt("one", "code"), Prompt("two", "story"))
    return Experiment(
        Pair(ModelOptions("t.gguf")), lanes or (Lane("suffix"),), prompts, Sampling(seed=1), tokens
    )


def test_depths_are_written_as_numbers_or_in_k() -> None:
    assert parse_depths(" 0, 1k,1024 ,16K,300") == (0, 1024, 16_384, 300)


@pytest.mark.parametrize("text", ["", "0,,1", "1.5k", "-1", "k", "²", "0,99999999999"])
def test_what_is_no_depth_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SettingError, match="such as 0,1k,4k"):
        parse_depths(text)


def test_every_prompt_is_asked_at_every_depth_and_known_again() -> None:
    base = experiment()
    deep = at_depths(base, (0, 64), LONG_SUITE)
    assert [(prompt.depth, prompt.prompt) for prompt in deep.prompts] == [
        (0, "one"), (0, "two"), (64, "one"), (64, "two")
    ]  # fmt: skip
    assert deep.documents == "Once upon a time"
    assert has_depths(deep) and not has_depths(base)
    assert without_depths(deep) == without_depths(base) == base.prompts


def test_conversations_stay_whole_at_every_depth() -> None:
    turns = Prompt("one"), Prompt("two", before=("one",)), Prompt("one"), Prompt("three", before=("one",))
    base = msgspec.structs.replace(experiment(), prompts=turns)
    deep = make_experiment(at_depths(base, (0, 64), LONG_SUITE))
    assert [len(asked) for asked in conversations(deep.prompts)] == [2, 2, 2, 2]
    assert without_depths(deep) == turns


def test_the_long_documents_are_not_put_behind_themselves() -> None:
    base = Experiment(Pair(ModelOptions("t.gguf")), (Lane("suffix"),), LONG_SUITE.prompts)
    with pytest.raises(SettingError, match="Choose other prompts"):
        at_depths(base, (0, 64), LONG_SUITE)


def test_the_smallest_context_of_the_lanes_is_the_room() -> None:
    sizes = {"t.gguf": 4096, "small.gguf": 1024, "new.gguf": 0}
    lanes = [Lane("suffix", pair=Pair(ModelOptions(path))) for path in sizes]

    def n_ctx(target: ModelOptions) -> int:
        return sizes[target.path]

    assert room_for_depth(experiment(*lanes), n_ctx) == 924
    assert room_for_depth(experiment(*lanes[:1]), n_ctx) == 3996
    assert room_for_depth(experiment(lanes[2]), n_ctx) is None
    assert room_for_depth(experiment(lanes[1], tokens=2000), n_ctx) == 0


def test_a_depth_that_does_not_fit_is_refused_with_the_context() -> None:
    check_room((0, 923), 924, 100)
    check_room((0, 10_000), None, 100)
    check_room((0,), 0, 100)  # the prompt alone may fit: its run will say
    with pytest.raises(SettingError, match=r"1,000 tokens does not fit: the context holds 1,024,"):
        check_room((0, 1000), 924, 100)


@pytest.mark.parametrize("room", [None, 0, 100, 1888, 7000, 40_000, 200_000])
def test_suggested_depths_fit_and_begin_at_0(room: int | None) -> None:
    depths = parse_depths(suggested_depths(room))
    assert depths[0] == 0 and len(depths) <= 4
    check_room(depths, room, 100)
    assert room is None or room < 100 or len(depths) > 1
