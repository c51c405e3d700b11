"""Prompts without a chat template: fill in the middle, and token ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from app.base.paths import resource_folder
from app.engine.engine import Engine
from app.engine.errors import PromptError
from app.engine.process.messages import Started
from app.engine.record.recheck import recheck
from app.engine.templates.chat import filled
from app.engine.types import GenerationRequest, Message, TraceHeader
from app.lab.depths import documents_of
from app.lab.suites import LONG, read_suite
from tests.answers import answer, events_of
from tests.equality import Baselines, drafted
from tests.files.llama_models import real_pair

TOKENS = {
    "deepseek-coder": ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    "refact": ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    "starcoder": ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
}
PREFIX, SUFFIX = "def add(a, b):\n    ", "\n\nprint(add(1, 2))\n"


@pytest.fixture(scope="module", params=TOKENS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with real_pair(tmp_path_factory.mktemp("pair"), request.param) as engine:
        yield engine


@pytest.fixture
def names(request: pytest.FixtureRequest, pair: Engine) -> tuple[str, str, str]:
    name: str = request.node.callspec.params["pair"]
    return TOKENS[name]


def asked(engine: Engine, prefix: str, suffix: str) -> str:
    """The prompt that is read, spelled with the names of its control tokens."""
    vocabulary = engine.vocabulary
    request = GenerationRequest(prompt=prefix, suffix=suffix, max_tokens=1)
    ids = engine.prompt_ids(request)
    return b"".join(vocabulary.piece(id) or vocabulary.raw_text(id) for id in ids).decode()


def test_prefix_and_suffix_stand_behind_their_own_tokens(pair: Engine, names: tuple[str, str, str]) -> None:
    before, behind, middle = names
    assert asked(pair, PREFIX, SUFFIX).endswith(f"{before}{PREFIX}{behind}{SUFFIX}{middle}")
    assert asked(pair, "", "").endswith(before + behind + middle)


def test_text_of_people_is_no_control_token(pair: Engine, names: tuple[str, str, str]) -> None:
    vocabulary = pair.vocabulary
    assert vocabulary.fim is not None
    ids = pair.prompt_ids(GenerationRequest(prompt=names[1], suffix=names[2] + names[0], max_tokens=1))
    assert [ids.count(id) for id in vocabulary.fim] == [1, 1, 1]


def test_a_filled_gap_is_the_baselines_and_is_recorded(pair: Engine, baselines: Baselines) -> None:
    request = GenerationRequest(prompt=PREFIX, suffix=SUFFIX, max_tokens=24, ignore_eos=True)
    trace = baselines.check(pair, request, "prompt-lookup:num_pred_tokens=4+draft-simple:n_max=4")
    assert drafted(trace) > 0
    assert recheck(trace) == []
    header = trace.header
    assert (header.prompt, header.suffix, header.pair.fills_middle) == (PREFIX, SUFFIX, True)
    assert header.prompt_tokens == len(pair.prompt_ids(request))


def test_a_model_without_the_tokens_refuses_in_a_sentence(engine: Engine) -> None:
    assert not engine.pair.fills_middle
    with pytest.raises(PromptError, match="This model has no tokens to fill in the middle"):
        events_of(engine, GenerationRequest(prompt=PREFIX, suffix=SUFFIX))


def test_a_suffix_needs_a_prompt(engine: Engine) -> None:
    with pytest.raises(PromptError, match="A suffix needs a prompt"):
        events_of(engine, GenerationRequest(messages=(Message("user", "a"),), suffix="b"))


# ------------------------------------------------------------------------------------- token ids


@pytest.mark.same_text
def test_token_ids_are_read_as_they_are(engine: Engine) -> None:
    of_text = answer(engine, "abcabcabd abc", max_tokens=16)
    ids = engine.prompt_ids(GenerationRequest(prompt="abcabcabd abc"))
    trace = engine.answer(GenerationRequest(prompt_ids=ids, max_tokens=16))
    assert trace.token_ids == of_text.token_ids
    assert trace.header.prompt_ids == ids
    assert trace.header.prompt.endswith("abcabcabd abc")


@pytest.mark.parametrize("id", [-1, 1_000_000])
def test_an_unknown_token_id_is_refused(engine: Engine, id: int) -> None:
    with pytest.raises(PromptError, match=f"This model has no token {id}"):
        events_of(engine, GenerationRequest(prompt_ids=(1, id)))


def test_one_kind_of_prompt_is_given(engine: Engine) -> None:
    with pytest.raises(PromptError, match="Give exactly one"):
        events_of(engine, GenerationRequest(prompt="a", prompt_ids=(1,)))


@pytest.mark.parametrize("chat", [False, True])
def test_a_document_of_so_many_tokens_stands_before_the_question(demo_engine: Engine, chat: bool) -> None:
    text = documents_of(read_suite(resource_folder() / "suites" / f"{LONG}.json"))
    question = GenerationRequest(prompt="Why?", max_tokens=1, cold=True)
    if chat:
        question = replace(question, prompt=None, messages=(Message("user", "Why?"),))

    def read(depth: int) -> TraceHeader:
        request = replace(question, filler=text, depth=depth)
        (header,) = (event.header for event in demo_engine.generate(request) if isinstance(event, Started))
        return header

    plain, deep = read(0), read(500)
    assert 498 <= deep.prompt_tokens - plain.prompt_tokens <= 504, "and the line break before the question"
    assert text[:200] in deep.prompt and deep.prompt.index(text[:200]) < deep.prompt.index("Why?")
    with pytest.raises(PromptError, match="tokens of this model, not 1,000,000"):
        read(1_000_000)
    with pytest.raises(PromptError, match="context has room for"):
        read(4_000)


def test_a_document_stands_before_a_whole_conversation() -> None:
    said = (
        Message("system", "Be brief."),
        Message("user", "Why?"),
        Message("assistant", "So."),
        Message("user", "How?"),
    )
    request = filled(GenerationRequest(messages=said, filler="A text", depth=2), "A text")
    assert request.messages == (said[0], Message("user", "A text\n\nWhy?"), *said[2:]) and not request.depth


def test_only_a_question_can_stand_behind_a_document(demo_engine: Engine) -> None:
    with pytest.raises(PromptError, match="Only a question"):
        list(demo_engine.generate(GenerationRequest(prompt_ids=(1, 2), filler="a b c d e f", depth=2)))
