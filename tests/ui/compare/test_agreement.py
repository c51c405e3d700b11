"""The window and `draftscope bench` measure the same thing: the same seed gives the same tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.cli import main
from app.engine.process.host import ThreadHome
from app.engine.types import ModelOptions, Sampling
from app.lab.experiment import Lane, Pair
from app.lab.report.report import Report
from app.lab.suites import Suite, read_suite
from app.ui.compare.lab_session import LabSession
from app.ui.compare.setup import Amount, CompareSetup, Source
from app.ui.setup.sampling_panel import AnswerOptions
from app.ui.state.engine_session import EngineSession
from app.ui.state.lab_work import Stage

LANES = ("draft-simple:n_max=4", "draft-simple:n_max=3:verify=match", "prompt-lookup:num_pred_tokens=4")
SUITE = {
    "name": "mine",
    "title": "Mine",
    "chat": False,
    "max_tokens": 20,
    "prompts": [{"category": "code", "prompt": "abcabcabd abc"}, {"prompt": "xyxy"}],
}


def in_the_window(qtbot: QtBot, suite: Suite, pair: Pair, sampling: Sampling, journal: Path) -> Report:
    """Set up and run as the Compare place does it, the chat's engine lent."""
    setup = CompareSetup(
        suite,
        tuple(map(Lane, LANES)),
        source=Source.FILE,
        file=suite,
        chat=suite.chat,
        amount=Amount(repeats=2, per_category=0),
        options=AnswerOptions(sampling),
    )
    engine = EngineSession(ThreadHome)
    session = LabSession(engine, ThreadHome, lambda _sweep: journal)
    try:
        session.start(setup.experiment(pair))
        qtbot.waitUntil(lambda: session.stage is Stage.ENDED and session.may_start, timeout=60_000)
        report = session.report
    finally:
        session.close()
        engine.close()
    assert report is not None
    return report


@pytest.mark.same_text
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_bench_and_window_agree_token_for_token(
    qtbot: QtBot, pair_files: tuple[Path, Path], tmp_path: Path, temperature: float
) -> None:
    target, draft = pair_files
    prompts, out = tmp_path / "suite.json", tmp_path / "out.json"
    prompts.write_text(json.dumps(SUITE))
    words = ["bench", "--target", target, "--draft", draft, "--prompts", prompts, "--repeat", 2]
    for strategy in LANES:
        words += ["--strategy", strategy]
    words += ["--seed", 11, "--temperature", temperature, "--engine", "thread", "--json", out]
    assert main([str(word) for word in words]) == 0
    bench = Report.from_json(out.read_bytes())
    pair = Pair(ModelOptions(str(target)), ModelOptions(str(draft)))
    window = in_the_window(
        qtbot, read_suite(prompts), pair, Sampling(temperature=temperature, seed=11), tmp_path / "j.jsonl"
    )
    assert window.settings == bench.settings
    assert window.lanes == bench.lanes
    assert window.prompts == bench.prompts
    places = [(run.lane, run.repeat, run.prompt_index) for run in bench.runs]
    assert [(run.lane, run.repeat, run.prompt_index) for run in window.runs] == places
    assert len(places) == 4 * 2 * 2
    assert [run.token_ids for run in window.runs] == [run.token_ids for run in bench.runs]
    # The answers are long, and differ where they are sampled: the equality is not trivial.
    assert all(run.n_tokens == 20 for run in bench.runs)
    assert len({run.token_ids for run in bench.runs}) > 1
