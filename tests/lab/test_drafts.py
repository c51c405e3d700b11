"""Drafts of a target: judged by teacher forcing, and what is kept of that."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from app.engine.engine import Engine
from app.engine.errors import UserError
from app.engine.process.host import make_home
from app.engine.process.messages import Agreement, Forced, PassSeconds
from app.engine.record.stats import Statistics
from app.engine.types import ModelOptions, Sampling
from app.lab.drafts import (
    MEASURED_COLUMNS,
    DraftJudged,
    DraftReads,
    DraftResults,
    DraftScore,
    DraftsReport,
    DraftTrials,
    KeptDrafts,
    TargetAnswers,
    rank,
    score,
)
from app.lab.experiment import Experiment, Pair, Prompt
from app.lab.runs.events import Control, Ended, LabEvent
from tests.answers import answer
from tests.files.tiny import Tiny

PROMPTS = ("abcabcabd abc", "the quick brown fox", "one two three")
NOISES = (0.0, 0.02, 0.05, 0.1, 0.4)
UNJUDGED = DraftScore("d.gguf", 100, 0.1)


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


def tried(asked: Experiment, drafts: Sequence[Path | str]) -> tuple[list[LabEvent], DraftsReport]:
    """The events of judging these drafts, and the report."""
    files = [ModelOptions(str(draft)) for draft in drafts]
    trials = DraftTrials(asked, files, lambda: make_home("thread"), Control())
    return list(trials.run()), trials.report()


def test_five_drafts_are_ordered_as_real_runs_order_them(tiny_file: Callable[[Tiny], Path]) -> None:
    target = tiny_file(Tiny(name="wide", scale=2.0))
    drafts = [tiny_file(Tiny(name=f"near-{noise}", scale=2.0, noise=noise, noise_seed=7)) for noise in NOISES]
    asked = experiment(target)
    events, report = tried(asked, drafts)
    assert (report.texts, report.tokens) == (3, 240)
    judged = [event for event in events if isinstance(event, DraftJudged)]
    assert [event.draft.path for event in judged] == [str(draft) for draft in drafts]
    alphas, accepted = [], []
    for draft, found in zip(drafts, (event.score for event in judged), strict=True):
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


def test_a_draft_that_cannot_be_judged_says_why_and_the_others_go_on(
    pair_files: tuple[Path, Path], tiny_file: Callable[[Tiny], Path]
) -> None:
    other, broken = tiny_file(Tiny(name="other", letters="xyz")), tiny_file(Tiny(name="b", vocabulary=False))
    files: list[Path | str] = [other, broken, "/nowhere/gone.gguf", pair_files[1]]
    events, _ = tried(experiment(pair_files[0]), files)
    scores = [event.score for event in events if isinstance(event, DraftJudged)]
    assert "through text" in scores[0].problem
    assert scores[0].alpha is None and scores[0].factor is None
    assert scores[1].problem
    assert scores[2].problem == "It cannot be read: no such file or directory."
    assert not scores[3].problem and scores[3].factor is not None
    assert events[-1] == Ended(True)


def test_a_draft_reads_every_turn_of_a_conversation(pair_files: tuple[Path, Path]) -> None:
    turns = Prompt("abc"), Prompt("abd", before=("abc",)), Prompt("xyz")
    asked = msgspec.structs.replace(experiment(pair_files[0]), prompts=turns, chat=True)
    _, report = tried(asked, [pair_files[1]])
    assert (report.texts, report.tokens) == (3, 240)
    long = "abc " * 500
    refused = (Prompt(long), Prompt("abd", before=(long,)), Prompt("xyz"))
    _, report = tried(msgspec.structs.replace(asked, prompts=refused), [pair_files[1]])
    assert report.texts == 1, "a turn behind a refused one is left out, too"


def test_a_prompt_that_does_not_fit_is_left_out(pair_files: tuple[Path, Path]) -> None:
    asked = experiment(pair_files[0])
    long = Prompt("abc " * 500)
    _, report = tried(msgspec.structs.replace(asked, prompts=(long, *asked.prompts)), [pair_files[1]])
    assert report.texts == 3
    with pytest.raises(UserError, match="context has room for"):
        tried(msgspec.structs.replace(asked, prompts=(long,)), [pair_files[1]])


def test_progress_is_told_answer_by_answer(pair_files: tuple[Path, Path]) -> None:
    events, _ = tried(experiment(pair_files[0]), [pair_files[1]])
    assert [event.done for event in events if isinstance(event, TargetAnswers)] == [0, 1, 2]
    assert [event.done for event in events if isinstance(event, DraftReads)] == [0, 1, 2, 3]


def test_cancelling_leaves_the_drafts_that_were_judged(pair_files: tuple[Path, Path]) -> None:
    control = Control()
    drafts = [ModelOptions(str(pair_files[1]))] * 3
    trials = DraftTrials(experiment(pair_files[0]), drafts, lambda: make_home("thread"), control)
    for event in trials.run():
        if isinstance(event, DraftJudged):
            control.cancel()
    assert event == Ended(False)
    assert len(trials.report().drafts) == 1


def test_the_prediction_is_that_of_the_cost_model() -> None:
    forced = Forced(
        0,
        (Agreement(100, 80.0, 85), Agreement(100, 90.0, 88), Agreement(50, 40.0, 44)),
        PassSeconds({1: 0.1, 2: 0.1, 3: 0.1, 5: 0.1, 9: 0.1, 17: 0.1}, 0.01),
    )
    found = score(UNJUDGED, forced, [forced.seconds])
    assert found.alpha == pytest.approx(210 / 250)
    assert found.agreement == pytest.approx(217 / 250)
    assert found.c == pytest.approx(0.1)
    assert found.n_max is not None and found.alpha is not None
    k, alpha = found.n_max, found.alpha
    expected = (1 - alpha ** (k + 1)) / ((1 - alpha) * (1 + k * 0.1))
    assert found.factor == pytest.approx(expected)
    assert found.factor_low is not None and found.factor_high is not None
    assert found.factor_low < expected < found.factor_high


def test_a_slow_pass_beside_one_draft_does_not_change_the_order() -> None:
    """Passes of the target cost the same whatever draft was loaded beside it."""
    even = PassSeconds({1: 0.1, 2: 0.1, 3: 0.1, 5: 0.1, 9: 0.1, 17: 0.1}, 0.01)
    slow = PassSeconds({1: 0.2, 2: 0.5, 3: 0.6, 5: 0.7, 9: 0.8, 17: 0.9}, 0.02)
    better, worse = Forced(0, (Agreement(100, 90.0, 90),), slow), Forced(0, (Agreement(100, 80.0, 80),), even)
    passes = [slow, even, even]
    first, second = (score(UNJUDGED, forced, passes) for forced in (better, worse))
    assert first.c == second.c == pytest.approx(0.1)
    assert first.factor is not None and second.factor is not None
    assert first.factor > second.factor


def test_few_texts_have_no_interval() -> None:
    forced = Forced(0, (Agreement(10, 8.0, 8),) * 2, PassSeconds({1: 0.1, 2: 0.1}, 0.01))
    found = score(UNJUDGED, forced, [forced.seconds])
    assert found.alpha_low is None
    assert MEASURED_COLUMNS[0].text(found) == "0.80"
    known = msgspec.structs.replace(found, alpha_low=0.7, alpha_high=0.9)
    assert MEASURED_COLUMNS[0].text(known) == "0.80 (0.70 to 0.90)"


def test_the_best_is_first_and_the_report_is_read_back() -> None:
    scores = [
        msgspec.structs.replace(UNJUDGED, file="none.gguf", problem="It is damaged."),
        msgspec.structs.replace(UNJUDGED, file="slow.gguf", factor=1.1),
        msgspec.structs.replace(UNJUDGED, file="fast.gguf", factor=1.9),
    ]
    report = DraftsReport("1.0", "t.gguf", Sampling(), 3, 100, tuple(sorted(scores, key=rank)))
    assert [draft.file for draft in report.drafts] == ["fast.gguf", "slow.gguf", "none.gguf"]
    assert msgspec.json.decode(report.to_json(), type=DraftsReport) == report


@pytest.fixture
def files(pair_files: tuple[Path, Path], tmp_path: Path) -> list[Path]:
    """A target, a draft that is the target again, and a draft near it."""
    copies = [tmp_path / name for name in ("target.gguf", "same.gguf", "draft.gguf")]
    for source, copy in zip((pair_files[0], *pair_files), copies, strict=True):
        shutil.copy(source, copy)
    return copies


@pytest.fixture
def results(files: list[Path]) -> DraftResults:
    target, *drafts = (ModelOptions(str(file)) for file in files)
    prompts = tuple(map(Prompt, ("abcabc", "the fox", "one two")))
    experiment = Experiment(Pair(target), (), prompts, max_tokens=16, chat=False, ignore_eos=True)
    missing = ModelOptions(str(files[0].with_name("missing.gguf")))
    trials = DraftTrials(experiment, [missing, *drafts], lambda: make_home("thread"), Control())
    assert list(trials.run())
    return DraftResults.of(target.path, "Three prompts", trials)


def test_what_was_kept_is_read_again(results: DraftResults, tmp_path: Path, files: list[Path]) -> None:
    kept = KeptDrafts(tmp_path / "kept")
    assert kept.read(results.target) is None
    kept.keep(results)
    again = kept.read(results.target)
    assert again is not None
    assert (again.measured, again.prompts) == (results.measured, "Three prompts")
    judged = {path: score for path, score in results.scores.items() if not path.endswith("missing.gguf")}
    assert again.scores == judged and set(judged) == {str(file) for file in files[1:]}
    assert list(results.scores)[-1].endswith("missing.gguf")


def test_a_draft_that_changed_is_left_out(results: DraftResults, tmp_path: Path, files: list[Path]) -> None:
    kept = KeptDrafts(tmp_path / "kept")
    kept.keep(results)
    files[2].write_bytes(files[2].read_bytes() + b"more")
    again = kept.read(results.target)
    assert again is not None and list(again.scores) == [str(files[1])]
    files[1].unlink()
    assert kept.read(results.target) is None


def test_results_of_a_target_that_changed_are_not_shown(
    results: DraftResults, tmp_path: Path, files: list[Path]
) -> None:
    kept = KeptDrafts(tmp_path / "kept")
    kept.keep(results)
    shutil.copy(files[2], files[0])
    assert kept.read(results.target) is None


def test_damaged_results_are_measured_again(results: DraftResults, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    kept = KeptDrafts(folder)
    kept.keep(results)
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes()[:-9])
    assert kept.read(results.target) is None
    kept.keep(results)
    assert kept.read(results.target) is not None
