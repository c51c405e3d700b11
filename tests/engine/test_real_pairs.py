"""Pairs with the vocabularies of real models and small weights: equal to the baseline, whole characters.

Here are a few strategies and one other draft for most; every strategy and every draft are in tests/verify.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.engine.engine import Engine
from app.engine.process.messages import RoundFinished, trace_of
from app.engine.types import GenerationRequest, Message, Sampling
from tests.answers import events_of
from tests.equality import STRATEGIES, Baselines, drafted
from tests.files.llama_models import (
    PROMPT,
    TEXT,
    VOCABULARIES,
    assert_drafts_the_text,
    real_pair,
    write_text_model,
)


@pytest.fixture(scope="module", params=VOCABULARIES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with real_pair(tmp_path_factory.mktemp("pair"), request.param) as engine:
        yield engine


@pytest.mark.parametrize("rule", [":verify=greedy", ":verify=block"])
def test_greedy_is_the_baseline(pair: Engine, baselines: Baselines, rule: str) -> None:
    request = GenerationRequest(prompt=PROMPT, max_tokens=24, ignore_eos=True)
    trace = baselines.check(pair, request, STRATEGIES["both"].format(k=4) + rule)
    assert drafted(trace) > sum(round.rejected for round in trace.rounds) > 0
    assert sum(round.accepted for round in trace.rounds) > 0


@pytest.mark.verify
def test_match_under_filters_is_plain_sampling(pair: Engine, baselines: Baselines) -> None:
    sampling = Sampling(temperature=0.8, top_k=40, top_p=0.95, min_p=0.05, repeat_penalty=1.1, seed=1)
    request = GenerationRequest(prompt=PROMPT, max_tokens=24, ignore_eos=True, sampling=sampling)
    assert drafted(baselines.check(pair, request, "draft-simple:n_max=4:sample=1:verify=match")) > 0


@pytest.mark.parametrize("pair", ["command-r"], indirect=True)
def test_of_several_templates_the_default_one_is_used(pair: Engine) -> None:
    """The file has others for tools and for documents too."""
    request = GenerationRequest(messages=(Message("user", "Hello"),), max_tokens=1)
    assert pair.answer(request).header.prompt == (
        "<BOS_TOKEN><|START_OF_TURN_TOKEN|><|USER_TOKEN|>Hello<|END_OF_TURN_TOKEN|>"
        "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"
    )


# --------------------------------------------------------------------------------- through text

DRAFTS = {
    "baichuan": "gpt-2", "deepseek-coder": "phi-3", "falcon": "llama-spm", "gpt-2": "deepseek-coder",
    "gpt-neox": "refact", "llama-bpe": "llama-spm", "llama-spm": "falcon", "mpt": "starcoder",
    "phi-3": "mpt", "refact": "baichuan", "starcoder": "gpt-2",
}  # fmt: skip
"""By target, of the vocabularies that load quickly."""


@pytest.fixture(scope="module")
def text_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """Models that write TEXT, by the name of their vocabulary."""
    folder = tmp_path_factory.mktemp("text")
    yield functools.cache(lambda name: write_text_model(folder, name))
    shutil.rmtree(folder)


@pytest.fixture(scope="module", params=DRAFTS)
def mixed_engine(request: pytest.FixtureRequest, text_files: Callable[[str], Path]) -> Iterator[Engine]:
    """A target, and a draft that writes the same text in other tokens."""
    with Engine(text_files(request.param), text_files(DRAFTS[request.param])) as engine:
        yield engine


def test_a_draft_of_another_vocabulary_is_accepted(mixed_engine: Engine, baselines: Baselines) -> None:
    assert mixed_engine.pair.vocabulary.startswith("different: through text (")
    assert_drafts_the_text(mixed_engine, baselines)


def test_an_answer_comes_in_whole_characters(mixed_engine: Engine) -> None:
    request = GenerationRequest(prompt=TEXT, strategy="draft-simple:n_max=3", max_tokens=30, ignore_eos=True)
    events = events_of(mixed_engine, request)
    shown = [event.text for event in events if isinstance(event, RoundFinished)]
    assert not any("\ufffd" in text for text in shown)
    assert (TEXT * 5).startswith("".join(shown))
    assert trace_of(events).text.startswith("".join(shown))
