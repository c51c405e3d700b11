"""A busy machine and a baseline that drifts are noticed, and reported with the numbers."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from app.cli.measure.measuring import outcome_lines
from app.engine.process.host import ThreadHome
from app.engine.types import FinishReason, ModelOptions, Sampling
from app.lab.experiment import Experiment, Lane, Pair, Prompt, make_experiment
from app.lab.facts import OtherLoad
from app.lab.report.export import markdown
from app.lab.report.page import html_page
from app.lab.report.report import Report, make_report
from app.lab.runs.disturbance import disturbances, other_load
from app.lab.runs.events import RunDone
from app.lab.runs.record import RunRecord
from app.lab.runs.runner import Runner
from tests.lab.experiments import finished, small
from tests.lab.report.reports import made_report


def changed(report: Report, change: Callable[[RunRecord], RunRecord]) -> Report:
    """The report with other runs, on two cores of which one thread uses one."""
    system = msgspec.structs.replace(report.system, cores=2, threads=1)
    return msgspec.structs.replace(report, runs=tuple(map(change, report.runs)), system=system)


def slower(run: RunRecord, factor: float) -> RunRecord:
    assert run.tokens_per_second is not None
    return msgspec.structs.replace(run, tokens_per_second=run.tokens_per_second / factor)


def test_a_quiet_machine_is_no_matter() -> None:
    quiet = changed(made_report(), lambda run: msgspec.structs.replace(run, other_load=0.2))
    assert disturbances(quiet) == []
    assert disturbances(changed(made_report(), lambda run: run)) == [], "a system that does not tell"


def test_other_programs_that_want_the_same_cores_are_said() -> None:
    busy = changed(made_report(), lambda run: msgspec.structs.replace(run, other_load=1.7))
    said = disturbances(busy)
    assert said == [
        "The machine was busy: for 100\N{NO-BREAK SPACE}% of the time other programs took 1.7 of 2 cores. "
        "Close them and measure again."
    ]
    for text in (markdown(busy), html.unescape(html_page(busy)), "\n".join(outcome_lines(busy))):
        assert " ".join(said[0].split()) in " ".join(text.split())


def test_a_moment_of_other_work_is_no_matter() -> None:
    once = changed(
        made_report(),
        lambda run: msgspec.structs.replace(
            run, other_load=1.7 if run.repeat == run.prompt_index == 0 else 0.0
        ),
    )
    assert disturbances(once) == []


def test_cores_that_are_left_over_may_be_used_by_others() -> None:
    runs = [msgspec.structs.replace(run, other_load=3.0) for run in made_report().runs]
    assert list(other_load(runs, cores=8, threads=4)) == []
    assert len(list(other_load(runs, cores=8, threads=7))) == 1


@pytest.mark.parametrize(("cores", "threads"), [(4, 4), (2, 4), (4, 3)])
def test_a_little_other_work_is_no_matter_where_our_threads_use_all_cores(cores: int, threads: int) -> None:
    def said(load: float) -> list[str]:
        runs = [msgspec.structs.replace(run, other_load=load) for run in made_report().runs]
        return list(other_load(runs, cores, threads))

    assert said(0.0) == said(0.5) == []
    assert len(said(0.51)) == 1


def test_a_baseline_that_drifts_is_said() -> None:
    drifting = changed(
        made_report(), lambda run: slower(run, 1.25) if (run.lane, run.repeat) == (0, 2) else run
    )
    assert disturbances(drifting) == [
        "The baseline drifted: “none” was 20.0\N{NO-BREAK SPACE}% slower in repeat 3 than in repeat 1."
    ]


def test_a_baseline_that_is_now_fast_and_now_slow_is_said() -> None:
    odd = changed(
        made_report(repeats=4),
        lambda run: slower(run, 1.4) if run.lane == 0 and (run.repeat + run.prompt_index) % 2 else run,
    )
    assert len(disturbances(odd)) == 1
    assert disturbances(odd)[0].startswith("The baseline was unsteady: “none” differed by 1")


def in_time(speeds: Sequence[float], repeats: int = 1, *, known: bool = True) -> Report:
    """A report whose baseline had these speeds, one run after another in the order of the experiment."""
    experiment = make_experiment(
        Experiment(
            Pair(ModelOptions("t.gguf")),
            (Lane("suffix"),),
            tuple(Prompt(str(at)) for at in range(len(speeds) // repeats)),
            Sampling(seed=3),
            repeats=repeats,
        )
    )
    jobs, left = experiment.jobs(), iter(speeds)
    records = {
        job: msgspec.structs.replace(
            RunRecord.of_failed(experiment, job, ""),
            finish_reason=FinishReason.LENGTH,
            n_tokens=100,
            tokens_per_second=next(left) if job.lane == 0 else 100.0,
            started_at=f"2026-11-24T12:{at:02}:00+00:00" if known else "",
        )
        for at, job in enumerate(jobs)
    }
    return make_report(experiment, records, {})


RISING = [75 * (160 / 75) ** (at / 11) for at in range(12)]


@pytest.mark.parametrize("speeds", [RISING, RISING[::-1]])
def test_a_baseline_that_drifts_within_one_repeat_is_said(speeds: list[float]) -> None:
    noisy = [speed * (1 + 0.03 * (-1) ** at) for at, speed in enumerate(speeds)]
    (said,) = disturbances(in_time(noisy))
    assert said.startswith("The baseline drifted: “none” went from ") and "first and its last run" in said
    ends = [float(word) for word in said.split() if word[0].isdigit()]
    assert ends == pytest.approx([speeds[0], speeds[-1]], rel=0.05)


def test_prompts_of_different_speeds_are_no_drift() -> None:
    """What is no trend over time, what is small, and runs of which nobody knows the order."""
    assert disturbances(in_time([100, 60, 110, 70, 100, 65, 105, 62, 99, 71])) == []
    assert disturbances(in_time([100 + at / 2 for at in range(12)])) == []
    assert disturbances(in_time(RISING, known=False)) == []
    assert disturbances(in_time([75, 160])) == []


def test_with_repeats_a_drift_is_told_from_what_prompts_add() -> None:
    """Six prompts twice; the machine is 40 % slower at the end of both repeats than at their start."""
    experiment = in_time([1.0] * 12, repeats=2)
    order = [run.prompt_index for run in experiment.runs if run.lane == 0]
    saw = [100 * (1 - 0.4 * (at % 6) / 5) * (1 + prompt) for at, prompt in enumerate(order)]
    assert any("drifted" in said or "unsteady" in said for said in disturbances(in_time(saw, repeats=2)))
    steady = [100.0 * (1 + prompt) for prompt in order]
    assert disturbances(in_time(steady, repeats=2)) == []


def test_a_measurement_that_was_resumed_says_so_in_table_json_and_page(
    pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    journal = tmp_path / "j.jsonl"
    experiment = small(pair_files, repeats=2)
    first = Runner(experiment, ThreadHome, journal=journal)
    for event in first.run():
        if isinstance(event, RunDone) and event.done == 2:
            first.control.cancel()
    assert make_report(experiment, first.records, first.pairs).resumed == 0
    second, _events = finished(experiment, journal=journal)
    report = make_report(experiment, second.records, second.pairs)
    assert report.complete and report.resumed == 1 and json.loads(report.to_json())["resumed"] == 1
    assert sorted({run.resumed for run in report.runs}) == [0, 1]
    said = f"The measurement was resumed once: 2 of {len(report.runs)} runs were made before the first break"
    for text in (markdown(report), html_page(report), "\n".join(outcome_lines(report))):
        assert said in text
    third, _events = finished(experiment, journal=journal)
    assert make_report(experiment, third.records, third.pairs).resumed == 1, "nothing was left to do"
    for runner in (first, second, third):
        runner.close()


def write_proc(proc: Path, everything: int, engine: int) -> None:
    """/proc as Linux writes it, in seconds: two cores, this process, the server that it forks from, the
    engine's."""
    ticks = os.sysconf("SC_CLK_TCK")
    for parent, child in (("self", "6"), ("6", "7")):
        (proc / parent / "task" / "1").mkdir(parents=True, exist_ok=True)
        (proc / parent / "task" / "1" / "children").write_text(f"{child} ")
    (proc / "stat").write_text(f"cpu  {everything * ticks} 0 0 99999 50 0 0 {ticks} 0 0\ncpu0 1 2 3\n")
    for pid, user in ((os.getpid(), 5), (7, engine)):
        (proc / str(pid)).mkdir(exist_ok=True)
        before = " ".join(["0"] * 10)
        (proc / str(pid) / "stat").write_text(f"{pid} (a) b) S {before} {user * ticks} {ticks} 0 0 0\n")


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="Windows does not tell")
def test_own_work_and_the_engines_is_not_other_work(tmp_path: Path) -> None:
    now = [0.0]
    write_proc(tmp_path, everything=100, engine=20)
    load = OtherLoad(tmp_path, lambda: now[0])
    now[0] = 10.0
    write_proc(tmp_path, everything=118, engine=29)
    assert load.cores() == pytest.approx(0.9), "18 seconds of processor time, 9 of the engine's"


def test_where_the_system_does_not_tell_nothing_is_said(tmp_path: Path) -> None:
    assert OtherLoad(tmp_path).cores() is None


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="Windows does not tell")
def test_an_engine_is_not_other_load_where_children_are_not_listed(tmp_path: Path) -> None:
    write_proc(tmp_path, everything=100, engine=20)
    (tmp_path / "self" / "task" / "1" / "children").unlink()
    now = [0.0]
    load = OtherLoad(tmp_path, lambda: now[0])
    now[0] = 10.0
    assert load.cores() is None


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="only Linux tells")
def test_a_run_knows_what_else_went_on(pair_files: tuple[Path, Path]) -> None:
    runner, _events = finished(small(pair_files))
    loads = [record.other_load for record in runner.records.values()]
    assert all(load is not None and 0 <= load <= (os.cpu_count() or 1) for load in loads)
