"""Drafts judged by teacher forcing: their order is that of real runs, and what cannot be judged says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from app.engine.engine import Engine
from app.engine.process.host import make_home
from app.engine.process.messages import Agreement, Forced, ForcedText, PassSeconds
from app.engine.record.stats import Statistics
from app.engine.types import GenerationRequest, ModelOptions, Sampling
from app.lab.drafts import DraftScore, DraftsReport, answers_of, drafts_report, judged, score
from app.lab.experiment import Experiment, Pair, Prompt
from app.lab.runs.control import Control
from app.lab.runs.lab_engine import LabEngine
from tests.answers import answer
from tests.tiny import Tiny

PROMPTS = ("abcabcabd abc", "the quick brown fox", "one two three")
NOISES = (0.0, 0.02, 0.05, 0.1, 0.4)
UNJUDGED = DraftScore("d.gguf", 100, 0.1)


@pytest.fixture
def lab() -> Iterator[LabEngine]:
    engine = LabEngine(lambda: make_home("thread"), Control())
    yield engine
    engine.close()


def experiment(target: Path, temperature: float = 1.0) -> Experiment:
    return Experiment(
        Pair(ModelOptions(str(target))),
        (),
        tuple(map(Prompt, PROMPTS)),
        Sampling(temperature=temperature, seed=3),
        max_tokens=80,
        chat=False,
        ignore_eos=True,
    )


def test_five_drafts_are_ordered_as_real_runs_order_them(
    lab: LabEngine, tiny_file: Callable[[Tiny], Path]
) -> None:
    target = tiny_file(Tiny(name="wide", scale=2.0))
    drafts = [tiny_file(Tiny(name=f"near-{noise}", scale=2.0, noise=noise, noise_seed=7)) for noise in NOISES]
    asked = experiment(target)
    texts = list(answers_of(lab, asked))
    assert [len(text.answer) for text in texts] == [80, 80, 80]
    alphas, accepted = [], []
    for draft in drafts:
        found = judged(lab, ModelOptions(str(target)), ModelOptions(str(draft)), texts)
        assert not found.problem and found.alpha is not None and found.places == 240
        assert found.alpha_low is not None and found.alpha_high is not None
        assert found.alpha_low <= found.alpha <= found.alpha_high
        alphas.append(found.alpha)
        with Engine(target, draft) as engine:
            runs = [
                Statistics.of(
                    answer(
                        engine,
                        prompt,
                        strategy="draft-simple:n_max=1:sample=1",
                        sampling=asked.sampling,
                        max_tokens=160,
                        ignore_eos=True,
                    ).rounds
                )
                for prompt in PROMPTS
            ]
        accepted.append(Statistics.pooled(runs).acceptance_rate or 0.0)
    assert alphas == sorted(alphas, reverse=True)
    assert accepted == sorted(accepted, reverse=True)
    assert accepted == pytest.approx(alphas, abs=0.12)


def test_a_draft_that_cannot_be_judged_says_why(
    lab: LabEngine, pair_files: tuple[Path, Path], tiny_file: Callable[[Tiny], Path]
) -> None:
    target = ModelOptions(str(pair_files[0]))
    texts = [ForcedText(GenerationRequest(prompt="abc"), (97, 98))]
    other = judged(lab, target, ModelOptions(str(tiny_file(Tiny(name="other", letters="xyz")))), texts)
    assert "through text" in other.problem
    assert other.alpha is None and other.factor is None
    broken = judged(lab, target, ModelOptions(str(tiny_file(Tiny(name="broken", vocabulary=False)))), texts)
    assert broken.problem
    gone = judged(lab, target, ModelOptions("/nowhere/gone.gguf"), texts)
    assert gone.problem == "It cannot be read: no such file or directory."
    assert not judged(lab, target, ModelOptions(str(pair_files[1])), texts).problem


def test_the_prediction_is_that_of_the_cost_model() -> None:
    forced = Forced(
        0,
        (Agreement(100, 80.0, 85), Agreement(100, 90.0, 88), Agreement(50, 40.0, 44)),
        PassSeconds({1: 0.1, 2: 0.1, 3: 0.1, 5: 0.1, 9: 0.1, 17: 0.1}, 0.01),
    )
    found = score(UNJUDGED, forced)
    assert found.alpha == pytest.approx(210 / 250)
    assert found.agreement == pytest.approx(217 / 250)
    assert found.c == pytest.approx(0.1)
    assert found.n_max is not None and found.alpha is not None
    k, alpha = found.n_max, found.alpha
    expected = (1 - alpha ** (k + 1)) / ((1 - alpha) * (1 + k * 0.1))
    assert found.factor == pytest.approx(expected)
    assert found.factor_low is not None and found.factor_high is not None
    assert found.factor_low < expected < found.factor_high


def test_few_texts_have_no_interval() -> None:
    forced = Forced(0, (Agreement(10, 8.0, 8),) * 2, PassSeconds({1: 0.1, 2: 0.1}, 0.01))
    assert score(UNJUDGED, forced).alpha_low is None


def test_the_best_is_first_and_the_report_is_read_back() -> None:
    scores = [
        msgspec.structs.replace(UNJUDGED, file="none.gguf", problem="It is damaged."),
        msgspec.structs.replace(UNJUDGED, file="slow.gguf", factor=1.1),
        msgspec.structs.replace(UNJUDGED, file="fast.gguf", factor=1.9),
    ]
    report = drafts_report(ModelOptions("/models/t.gguf"), Sampling(), [], scores)
    assert [draft.file for draft in report.drafts] == ["fast.gguf", "slow.gguf", "none.gguf"]
    assert msgspec.json.decode(report.to_json(), type=DraftsReport) == report
