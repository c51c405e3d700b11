"""A busy machine and a baseline that drifts are noticed, and reported with the numbers."""

from __future__ import annotations

import html
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from app.cli.measure.measuring import outcome_lines
from app.lab.report.export.markdown_export import markdown
from app.lab.report.page.page import html_page
from app.lab.report.report import Report
from app.lab.runs.disturbance import disturbances, other_load
from app.lab.runs.journal.run_record import RunRecord
from app.lab.runs.other_load import OtherLoad
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


def test_a_baseline_that_drifts_is_said() -> None:
    drifting = changed(
        made_report(), lambda run: slower(run, 1.25) if (run.lane, run.repeat) == (0, 2) else run
    )
    assert disturbances(drifting) == [
        "The baseline drifted: none was 20.0\N{NO-BREAK SPACE}% slower in repeat 3 than in repeat 1."
    ]


def test_a_baseline_that_is_now_fast_and_now_slow_is_said() -> None:
    odd = changed(
        made_report(repeats=4),
        lambda run: slower(run, 1.4) if run.lane == 0 and (run.repeat + run.prompt_index) % 2 else run,
    )
    assert len(disturbances(odd)) == 1
    assert disturbances(odd)[0].startswith("The baseline was unsteady: none differed by 1")


def write_proc(proc: Path, everything: int, engine: int) -> None:
    """/proc as Linux writes it, in seconds: two cores, this process and the engine's."""
    ticks = os.sysconf("SC_CLK_TCK")
    (proc / "self" / "task" / "1").mkdir(parents=True, exist_ok=True)
    (proc / "self" / "task" / "1" / "children").write_text("7 ")
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
def test_an_engine_is_not_other_load_where_children_are_not_listed(
    tmp_path: Path,
) -> None:
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
    assert all(load is not None and 0 <= load <= (os.cpu_count() or 1) + 1 for load in loads)
