"""bench, sweep and tune on the command line: tables, files, journals, exit codes."""

from __future__ import annotations

import csv
import html
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from app.base.numbers import digits
from app.engine.errors import UserError
from app.engine.record.trace import parse_trace
from app.lab.report.page import embedded_json
from app.lab.report.plots import MAPS, heat_map
from app.lab.report.report import Report
from app.lab.report.summary import speedup_words
from app.lab.report.verdict import verdict
from app.lab.runs.journal import Journal, PairLine, RunLine, lock_journal
from tests.commands import Command, Ended
from tests.files.drafter_files import write_drafter
from tests.files.tiny import Tiny
from tests.lab.report.reports import made_report

ROOT = Path(__file__).parents[2]
PATIENCE = 90.0


@pytest.fixture
def measure(command: Command, pair_files: tuple[Path, Path], tmp_path: Path) -> Command:
    """Runs a measuring command over the tiny pair and two prompts."""
    target, draft = pair_files
    prompts = tmp_path / "prompts.json"
    prompts.write_text('["abcabcabd abc", {"category": "code", "prompt": "def a(): def b():"}]')
    pair = ["--target", target, "--draft", draft, "--prompts", prompts]
    more = ["--max-tokens", 12, "--ignore-eos", "--engine", "thread", "--seed", 7]

    def run(name: str, *arguments: object) -> Ended:
        return command(name, *pair, *more, *arguments)

    return run


def test_bench_prints_its_table_and_writes_everything(measure: Command, tmp_path: Path) -> None:
    files = {name: tmp_path / f"out.{name}" for name in ("json", "csv", "html", "md", "zip")}
    ended = measure(
        "bench",
        *("--strategy", "draft-simple:n_max=4", "--strategy", "prompt-lookup", "--repeat", 2),
        *("--json", files["json"], "--csv", files["csv"], "--html", files["html"]),
        *("--markdown", files["md"], "--traces", files["zip"], "--export", tmp_path / "lanes"),
    )
    assert ended.code == 0
    assert {file.name for file in (tmp_path / "lanes").iterdir()} == {
        f"{lane}.{kind}"
        for lane in ("none", "draft-simple-n_max=4", "prompt-lookup")
        for kind in ("speed-bench.json", "acceptance.jsonl")
    }
    rows = ended.out.splitlines()
    assert rows[0].startswith("strategy") and "tokens/s" in rows[0]
    end = rows.index("")
    assert [row.split()[0] for row in rows[2:end]] == ["none", "draft-simple:n_max=4", "prompt-lookup"]
    assert "end to end" in rows[0]
    names = ["acc per pos", "of drafted there", "of judged there"]
    assert any(re.split("  +", row)[1:4] == names for row in rows[end:]), "three names"
    assert any(row.startswith("tokens/s: Median over runs") for row in rows), "numbers have their definition"
    assert "12/12" in ended.err

    report = Report.from_json(files["json"].read_bytes())
    assert len(report.runs) == 3 * 2 * 2
    assert {run.category for run in report.runs} == {None, "code"}
    assert all(run.seed == 7 and run.cold for run in report.runs)
    assert re.fullmatch(r"[0-9a-f]{64}", report.pair.target.sha256)
    assert Report.from_json(embedded_json(files["html"].read_text(encoding="utf-8"))) == report
    assert verdict(report) in rows
    assert len(list(csv.DictReader(io.StringIO(files["csv"].read_text(encoding="utf-8"))))) == 12
    assert "| `prompt-lookup` |" in files["md"].read_text(encoding="utf-8")
    with zipfile.ZipFile(files["zip"]) as archive:
        names = archive.namelist()
        assert len(names) == 12
        trace = parse_trace(io.BytesIO(archive.read(names[1])))
    assert trace.totals is not None and len(trace.token_ids) == 12


@pytest.mark.same_text
def test_bench_and_run_agree_on_the_tokens(
    measure: Command, command: Command, pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    target, draft = pair_files
    spec = "draft-simple:n_max=4:verify=speculative"
    bench_json, run_json = tmp_path / "b.json", tmp_path / "r.json"
    assert measure("bench", "--strategy", spec, "--temperature", 0.9, "--json", bench_json).code == 0
    words = ["run", "--target", target, "--draft", draft, "--prompt", "abcabcabd abc", "--seed", 7]
    words += [
        "--strategy",
        spec,
        "--temperature",
        0.9,
        "--max-tokens",
        12,
        "--ignore-eos",
        "--json",
        run_json,
    ]
    assert command(*words).code == 0
    mine = json.loads(run_json.read_text())
    runs = json.loads(bench_json.read_text())["runs"]
    same = [run for run in runs if run["prompt_index"] == 0 and run["lane"] == 1]
    assert len(same) == 3
    assert {tuple(run["token_ids"]) for run in same} == {tuple(mine["token_ids"])}


def test_a_journal_is_gone_on_with_although_the_seed_was_left_open(measure: Command, tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    words = ["bench", "--strategy", "suffix", "--repeat", 1, "--journal", journal, "--seed", -1]
    assert measure(*words).code == 0
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]))  # as if it had been broken off before the last run
    again = measure(*words)
    assert again.code == 0
    assert "3 of 4 runs are done" in again.err
    assert journal.read_bytes().count(b"\n") == len(lines) + 0
    ended = measure("bench", "--strategy", "prompt-lookup", "--repeat", 1, "--journal", journal)
    assert ended.code == 1 and "a different measurement" in ended.err


def test_lanes_from_a_file_with_another_draft(
    measure: Command, tiny_file: Callable[[Tiny], Path], tmp_path: Path
) -> None:
    near = tiny_file(Tiny(name="near", n_ctx=1024, noise=0.05, noise_seed=3))
    lanes = tmp_path / "lanes.json"
    lanes.write_text(json.dumps([{"strategy": "draft-simple", "label": "near", "draft": str(near)}]))
    out = tmp_path / "out.json"
    ended = measure("bench", "--strategy", "draft-simple", "--lanes", lanes, "--repeat", 1, "--json", out)
    assert ended.code == 0
    report = Report.from_json(out.read_bytes())
    own = report.pairs[report.lanes[1].pair].draft.file
    assert [lane.name for lane in report.lanes] == ["none", f"draft-simple with {own}", "near"]
    assert report.pairs[report.lanes[2].pair].draft.name == "near"
    assert report.summary[2].acceptance_rate > report.summary[1].acceptance_rate


def test_a_journal_is_gone_on_with_from_another_folder(
    command: Command, pair_files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal holds the models' absolute paths, however they were named."""
    target, draft = pair_files
    words = ["bench", "--prompt", "abcabc", "--strategy", "draft-simple", "--repeat", 1, "--max-tokens", 4]
    words += ["--engine", "thread", "--seed", 7, "--journal", tmp_path / "j.jsonl"]
    monkeypatch.chdir(target.parent)
    assert command(*words, "--target", target.name, "--draft", f"./{draft.name}").code == 0
    monkeypatch.chdir(tmp_path)
    ended = command(*words, "--target", target, "--draft", draft)
    assert ended.code == 0
    assert "2 of 2 runs are done" in ended.err


def test_a_second_bench_into_the_same_journal_is_one_clear_line(measure: Command, tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    words = ("bench", "--strategy", "suffix", "--repeat", 1, "--journal", journal)
    assert measure(*words).code == 0
    before = journal.read_bytes()
    lock = lock_journal(journal)  # as another process has it
    ended = measure(*words)
    lock.release()
    assert ended.code == 1
    assert "Another window or command is measuring into j.jsonl." in ended.err
    assert ended.err.count("\n") == 1
    assert journal.read_bytes() == before


def test_a_baseline_alone_is_no_success(measure: Command, tmp_path: Path) -> None:
    lanes, out = tmp_path / "lanes.json", tmp_path / "out.json"
    lanes.write_text(json.dumps([{"strategy": "draft-simple", "draft": str(tmp_path / "missing.gguf")}]))
    ended = measure("bench", "--lanes", lanes, "--repeat", 1, "--json", out)
    assert ended.code == 1
    report = Report.from_json(out.read_bytes())
    assert [(summary.runs, summary.failed) for summary in report.summary] == [(2, 0), (0, 2)]
    last = ended.err.splitlines()[-1]
    assert last.startswith("draftscope bench: Nothing but the baseline could be measured. ")
    assert "missing.gguf" in last
    assert "2 runs failed:" in ended.out and "missing.gguf" in ended.out.split("2 runs failed:")[1]


def test_bench_says_what_failed_and_compares_the_rest(
    measure: Command, pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    prompts, out = tmp_path / "some.json", tmp_path / "out.json"
    prompts.write_text(json.dumps(["abcabcabd abc", "abc " * 2000]))
    ended = measure("bench", "--prompts", prompts, "--strategy", "suffix", "--repeat", 1, "--json", out)
    assert ended.code == 1
    assert ended.err.splitlines()[-1].startswith("draftscope bench: 2 of 4 runs failed. The prompt has ")
    assert (
        "Only answers that every lane completed are compared: 1 of 2 prompts is left out, because"
        in ended.out
    )
    report = Report.from_json(out.read_bytes())
    assert [summary.runs for summary in report.summary] == [1, 1]
    assert [failed.lanes for failed in report.left_out] == [(0, 1)]


def test_none_alone_is_a_measurement(measure: Command, tmp_path: Path) -> None:
    out, page, table = tmp_path / "out.json", tmp_path / "out.html", tmp_path / "out.md"
    words = ("--repeat", 1, "--json", out, "--html", page, "--markdown", table)
    ended = measure("bench", "--strategy", "none", *words)
    assert ended.code == 0, ended.err
    report = Report.from_json(out.read_bytes())
    assert [(summary.strategy, summary.runs) for summary in report.summary] == [("none", 2)]
    speed = digits(report.summary[0].tokens_per_second.median)
    said = f"Measured none {speed} tokens/s (median of 2 runs). Nothing was compared with it."
    assert said in ended.out.splitlines()
    for file in (page, table):
        assert said in file.read_text(encoding="utf-8")


def test_none_alone_that_fails_is_one_clear_line(
    command: Command, pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    words = ["bench", "--target", pair_files[0], "--prompt", "a" * 5000, "--repeat", 1, "--engine", "thread"]
    ended = command(*words, "--strategy", "none")
    assert ended.code == 1
    last = ended.err.splitlines()[-1]
    assert last.startswith("draftscope bench: Nothing could be measured. The prompt has")


def test_an_error_on_the_way_leaves_what_came(
    measure: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails as on a full disk."""
    add = Journal.add

    def until_full(journal: Journal, line: RunLine | PairLine) -> None:
        if len(journal.records) == 3:
            raise UserError("The disk is full.")
        add(journal, line)

    monkeypatch.setattr(Journal, "add", until_full)
    journal, out = tmp_path / "j.jsonl", tmp_path / "out.json"
    ended = measure("bench", "--strategy", "suffix", "--repeat", 2, "--journal", journal, "--json", out)
    assert ended.code == 1 and "The disk is full." in ended.err
    assert len(Report.from_json(out.read_bytes()).runs) == 3
    assert ended.out.startswith("strategy")


def test_a_category_by_its_name_in_speed_bench(measure: Command, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    ended = measure("bench", "--category", "coding", "--strategy", "suffix", "--repeat", 1, "--json", out)
    assert ended.code == 0
    assert [prompt.category for prompt in Report.from_json(out.read_bytes()).prompts] == ["code"]


def test_sweep_prints_three_maps(measure: Command, tmp_path: Path) -> None:
    out = tmp_path / "s.json"
    ended = measure(
        "sweep",
        "--strategy",
        "draft-simple",
        "--x",
        "n_max=1..3",
        "--y",
        "p_min=0,0.9",
        "--repeat",
        1,
        "--json",
        out,
    )
    assert ended.code == 0
    assert "speed-up over none; across n_max, down p_min" in ended.out
    assert ended.out.count("×") >= 6
    report = Report.from_json(out.read_bytes())
    assert len(report.sweep.cells) == 6
    begun = ended.err.splitlines()
    lanes, runs = len(report.lanes), len(report.runs)
    assert begun[0] == f"{lanes} lanes × 2 prompts × 1 repeat: {runs} answers of up to 12 tokens."
    first = next(at for at, line in enumerate(begun) if line.startswith("1/"))
    assert any(line.startswith("That takes at most about ") for line in begun[:first])
    lines = ended.out.splitlines()
    head = lines.index("tokens/s; across n_max, down p_min")
    shown = [row.split()[1:] for row in lines[head + 3 : head + 5]]
    speeds = [digits(cell.tokens_per_second) for cell in heat_map(report)]
    assert shown == [speeds[:3], speeds[3:]]
    assert {f"{each.title}: {each.definition}" for each in MAPS} <= set(lines)
    assert any(line.endswith(("for an interval.", "includes 1×.")) for line in lines), (
        "no fastest without a caveat"
    )
    assert [lane.name for lane in report.lanes[1:4]] == [f"draft-simple:n_max={n}:p_min=0" for n in (1, 2, 3)]


def test_a_sweep_over_load_settings_is_in_every_file_and_is_resumed(
    measure: Command, pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    files = {name: tmp_path / f"s.{name}" for name in ("json", "csv", "html", "md")}
    missing = tmp_path / "missing.gguf"
    words = ["sweep", "--strategy", "draft-simple", "--repeat", 1, "--journal", tmp_path / "j.jsonl"]
    words += ["--x", f"target={pair_files[0]},{missing}", "--y", "n_max=2,0"]
    words += [
        "--json",
        files["json"],
        "--csv",
        files["csv"],
        "--html",
        files["html"],
        "--markdown",
        files["md"],
    ]
    ended = measure(*words)
    assert ended.code == 1 and "4 of 8 runs failed. " in ended.err.splitlines()[-1]
    report = Report.from_json(files["json"].read_bytes())
    cells = heat_map(report)
    assert [bool(cell.tokens_per_second) for cell in cells] == [True, False, False, False]
    reasons = [cell.problem for cell in cells]
    assert "missing.gguf" in reasons[1] and "n_max cannot be 0" in reasons[2]
    for text in (ended.out, *(files[name].read_text(encoding="utf-8") for name in ("html", "md"))):
        assert all(reason in html.unescape(text) for reason in reasons[1:])
    rows = list(csv.DictReader(io.StringIO(files["csv"].read_text(encoding="utf-8"))))
    assert len(rows) == 2 * 2 * 2 + 2, "two lanes on two targets for two prompts, and the cells not allowed"
    assert {(Path(row["target"]).name, row["n_max"]) for row in rows if row["name"].startswith("none")} == {
        (pair_files[0].name, "2"),
        (missing.name, "2"),
    }
    assert [row["error"] for row in rows[-2:]] == reasons[2:]
    again = measure(*words)
    assert again.code == 1
    assert "4 of 8 runs are done" in again.err, "those that failed are tried again"


def test_tune_ends_with_a_strategy(measure: Command, tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    words = [
        "tune",
        "--seconds",
        3,
        "--strategy",
        "draft-simple:n_max=2",
        "--strategy",
        "suffix",
        "--json",
        out,
    ]
    ended = measure(*words)
    assert ended.code == 0
    assert ended.out.splitlines()[-1] in ("none", "draft-simple:n_max=2", "suffix")
    for defined in (
        "speed-up (95 %): tokens/s divided by",
        "end to end: Speed-up including",
        "acceptance: Accepted / drafted",
    ):
        assert f"\n{defined}" in ended.out
    written = json.loads(out.read_text())
    assert written["winner"] == ended.out.splitlines()[-1]
    assert written["reason"] in ended.out
    assert {score["strategy"] for score in written["rungs"][0]["scores"]} == {
        "draft-simple:n_max=2",
        "suffix",
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bench"], "nothing to measure"),
        (["bench", "--strategy", "nosuch"], "no strategy"),
        (["bench", "--strategy", "suffix", "--repeat", "0"], "--repeat"),
        (["bench", "--strategy", "suffix", "--json", "x", "--csv", "x"], "same file"),
        (["bench", "--strategy", "suffix", "--json", "x", "--journal", "./x"], "same file"),
        (["sweep", "--strategy", "suffix", "--x", "n_max", "--y", "p_min=0"], "not an axis"),
        (["tune", "--seconds", "0"], "--seconds"),
        (["bench", "--strategy", "suffix", "--category", "nosuch"], "no category"),
    ],
)
def test_wrong_usage_is_one_line(measure: Command, words: list[str], message: str) -> None:
    ended = measure(*words)
    assert ended.code in (1, 2)
    assert message in ended.err and ended.err.count("\n") == 1


def test_a_suite_that_is_not_there(command: Command) -> None:
    ended = command("bench", "--suite", "nosuch", "--strategy", "suffix")
    assert ended.code == 2
    assert "Allowed: bundled, fim, general, long" in ended.err


def test_depths_are_in_every_output_and_what_does_not_fit_says_why(measure: Command, tmp_path: Path) -> None:
    files = {name: tmp_path / f"d.{name}" for name in ("json", "csv", "html", "md")}
    words = [
        "bench",
        "--strategy",
        "prompt-lookup",
        "--repeat",
        1,
        "--depth",
        "0,200,2000",
        "--json",
        files["json"],
    ]
    ended = measure(*words, "--csv", files["csv"], "--html", files["html"], "--markdown", files["md"])
    assert ended.code == 1 and "4 of 12 runs failed. " in ended.err.splitlines()[-1]
    report = Report.from_json(files["json"].read_bytes())
    rows = {(row.depth, row.lane): row for row in report.by_depth}
    assert set(rows) == {(depth, lane) for depth in (0, 200, 2000) for lane in (0, 1)}
    read = [rows[depth, 0].prompt_tokens.median for depth in (0, 200)]
    assert 198 <= read[1] - read[0] <= 204
    assert all(rows[depth, 1].speedup and rows[depth, 1].first_token_seconds for depth in (0, 200))
    assert rows[2000, 1].runs == 0 and "the context has room for" in rows[2000, 1].failure
    line = f"left out, depth 2,000: {rows[2000, 1].failure}"
    for text in (ended.out, *(files[name].read_text(encoding="utf-8") for name in ("html", "md"))):
        assert line in html.unescape(text)
        assert "Depth is the number of a document's tokens before the question" in html.unescape(text)
    page = files["html"].read_text(encoding="utf-8")
    assert page.count("<polyline") == 2 + 1 + 2, "speed-up and first token of both lanes, acceptance of one"
    table = list(csv.DictReader(io.StringIO(files["csv"].read_text(encoding="utf-8"))))
    assert [row["depth"] for row in table].count("200") == 2 * 2
    for row in report.by_depth:
        runs = [run for run in report.runs if (run.lane, run.depth) == (row.lane, row.depth)]
        assert row.runs + row.failed == len(runs) == 2


def test_the_long_suite_fills_no_context_with_itself(command: Command) -> None:
    ended = command("bench", "--suite", "long", "--strategy", "suffix", "--depth", "0,1024")
    assert ended.code == 2 and "Choose other prompts." in ended.err


def test_a_suite_is_a_file_of_spec_bench_too(
    command: Command, pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    questions, out = tmp_path / "question.jsonl", tmp_path / "out.json"
    questions.write_text('{"question_id": 81, "category": "qa", "turns": ["abc", "more"]}')
    words = ["--target", pair_files[0], "--suite", questions, "--strategy", "suffix", "--repeat", 1]
    words += ["--max-tokens", 4, "--ignore-eos", "--engine", "thread", "--json", out]
    table, page = tmp_path / "out.csv", tmp_path / "out.html"
    for more in (["bench", "--csv", table, "--html", page], ["sweep", "--x", "n_max=1,2", "--y", "p_min=0"]):
        ended = command(*more, *words)
        assert ended.code == 0 and "sent with the conversation before it." in ended.err
        report = Report.from_json(out.read_bytes())
        assert [(prompt.category, prompt.before) for prompt in report.prompts] == [
            ("qa", ()),
            ("qa", ("abc",)),
        ]
        assert {(run.prompt_index, run.turn, run.failure) for run in report.runs} == {(0, 1, ""), (1, 2, "")}
    rows = list(csv.DictReader(io.StringIO(table.read_text(encoding="utf-8"))))
    assert {row["turn"] for row in rows} == {"1", "2"}
    assert "[turn 2] more" in page.read_text(encoding="utf-8")


def test_an_output_that_cannot_be_written_is_told_before_anything_runs(
    measure: Command, tmp_path: Path
) -> None:
    ended = measure("bench", "--strategy", "suffix", "--json", tmp_path / "no" / "x.json")
    assert ended.code == 1 and "cannot be written" in ended.err and "/4" not in ended.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_an_output_that_fails_costs_no_other(measure: Command, tmp_path: Path) -> None:
    table = tmp_path / "out.csv"
    also = tmp_path / "full"
    also.symlink_to("/dev/full")
    words = ["--json", "/dev/full", "--csv", table, "--html", also]
    ended = measure("bench", "--strategy", "suffix", "--repeat", 1, *words)
    assert ended.code == 1
    assert ended.err.splitlines()[-1].count("full cannot be written") == 2
    assert ended.out.startswith("strategy")
    assert table.read_text().count("\n") == 5


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes by name")
def test_traces_go_to_a_pipe_and_leave_it_there(measure: Command, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        came = pool.submit(pipe.read_bytes)
        assert measure("bench", "--strategy", "suffix", "--repeat", 1, "--traces", pipe).code == 0
        with zipfile.ZipFile(io.BytesIO(came.result(PATIENCE))) as archive:
            assert len(archive.namelist()) == 4
    assert pipe.is_fifo()


def test_a_good_run_shows_its_speed_whatever_was_not_done_behind_it(measure: Command, tmp_path: Path) -> None:
    # With a name to which nothing can be added, not even for a moment.
    kept = str(tmp_path / ("d" * 250)).replace("%", "%25")
    page, out = tmp_path / "out.html", tmp_path / "out.json"
    strategy = f"ngram-cache:lookup_cache_dynamic={kept}"
    ended = measure("bench", "--strategy", strategy, "--repeat", 1, "--html", page, "--json", out)
    assert ended.code == 0
    assert sum("tokens/s" in line for line in ended.err.splitlines()) == 4
    errors = [run.error for run in Report.from_json(out.read_bytes()).runs]
    assert sum("cannot be saved" in error for error in errors) == 2
    assert "<td>length</td>" in page.read_text(encoding="utf-8")
    assert "cannot be saved" not in page.read_text(encoding="utf-8").partition("<script")[0]


@pytest.mark.usefixtures("known_strategies")
@pytest.mark.parametrize(
    "words",
    [["bench"], ["sweep", "--x", "n_max=1,2", "--y", "threads=1"], ["tune", "--seconds", 2]],
    ids=lambda words: words[0],
)
def test_what_a_drafter_did_wrong_is_said_at_the_end(
    measure: Command, tmp_path: Path, words: list[object]
) -> None:
    file = write_drafter(tmp_path, "def propose(self, context, k):\n    raise ValueError('no')", "faulty")
    ended = measure(*words, "--drafter", file, "--strategy", "faulty")
    assert ended.code == 0, ended.err
    told = [line for line in ended.err.splitlines() if "faulty raised ValueError: no" in line]
    assert told == ended.err.splitlines()[-1:], ended.err
    assert re.search(r"That cost [\d,]+ of [\d,]+ rounds a draft; the answers are complete\.$", told[0])


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_writes_what_came(
    pair_files: tuple[Path, Path], tmp_path: Path, by: signal.Signals
) -> None:
    target, draft = pair_files
    out, temporary = tmp_path / "out.json", tmp_path / "temporary"
    temporary.mkdir()
    words = ["bench", "--target", target, "--draft", draft, "--prompt", "abc", "--strategy", "draft-simple"]
    words += ["--max-tokens", 400, "--ignore-eos", "--repeat", 500, "--json", out]
    process = subprocess.Popen(
        [sys.executable, "-m", "app", *map(str, words)],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    until = time.monotonic() + PATIENCE
    for line in process.stderr:
        if line.startswith("3/") or time.monotonic() > until:
            break
    assert list(temporary.glob("draftscope-*")), "its traces are there"
    process.send_signal(by)
    text, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert not list(temporary.iterdir()), "nothing is left behind"
    report = Report.from_json(out.read_bytes())
    assert 3 <= len(report.runs) < 1000
    assert not report.complete
    assert "Interrupted: only the runs that were done are counted." in text


def test_tune_writes_its_page_and_its_json_with_the_circumstances(measure: Command, tmp_path: Path) -> None:
    page, out = tmp_path / "t.html", tmp_path / "t.json"
    words = ["tune", "--seconds", 2, "--strategy", "suffix", "--json", out, "--html", page]
    ended = measure(*words)
    assert ended.code == 0
    written = json.loads(embedded_json(page.read_text(encoding="utf-8")))
    assert written | {"created_at": ""} == json.loads(out.read_text()) | {"created_at": ""}
    assert written["reason"] in ended.out
    assert [prompt["prompt"] for prompt in written["prompts"]] == ["abcabcabd abc", "def a(): def b():"]
    assert re.fullmatch(r"[0-9a-f]{64}", written["pairs"][0]["target"]["sha256"])
    assert written["rungs"][-1]["scores"][0]["answers"] >= 1
    assert measure(*words[:-1], out).code == 2, "both into one file"


def test_where_tune_could_measure_nothing_it_says_so_on_standard_error(
    measure: Command, tmp_path: Path, command: Command, pair_files: tuple[Path, Path]
) -> None:
    target, draft = pair_files
    long = ["tune", "--target", target, "--draft", draft, "--prompt", "a" * 5000, "--seconds", 2]
    ended = command(*long, "--strategy", "suffix", "--engine", "thread")
    assert ended.code == 1
    last = ended.err.splitlines()[-1]
    assert last.startswith("draftscope tune: No setting could be measured: ")
    assert ended.out.splitlines()[-1] == "none"


def test_compare_reads_what_bench_wrote(measure: Command, command: Command, tmp_path: Path) -> None:
    files = [tmp_path / "before.json", tmp_path / "after.json"]
    for file in files:
        assert measure("bench", "--strategy", "suffix", "--repeat", 3, "--json", file).code == 0
    ended = command("compare", *files)
    assert ended.code == 0, ended.err
    head, _, *rows = ended.out.splitlines()
    assert head.split()[0] == "lane"
    assert [row.split()[0] for row in rows[:2]] == ["none", "suffix"]
    assert rows[0].endswith("6 of 6")
    for defined in (
        "tokens/s: Median",
        "speed-up (95 %): tokens/s divided by",
        "acceptance: Accepted",
        "after / before: ",
    ):
        assert f"\n{defined}" in ended.out
    assert "Over 2 prompts that both files have." in rows


def write_faster(path: Path, report: Report, by: float) -> Path:
    """Write the report of lanes that are faster by about a factor."""
    runs = tuple(
        msgspec.structs.replace(run, tokens_per_second=run.tokens_per_second * by * (1 + run.repeat / 500))
        for run in report.runs
    )
    path.write_bytes(msgspec.structs.replace(report, runs=runs).to_json())
    return path


def test_compare_is_a_gate_on_the_interval(command: Command, tmp_path: Path) -> None:
    report = made_report()
    before = tmp_path / "before.json"
    before.write_bytes(report.to_json())
    slower = write_faster(tmp_path / "slower.json", report, 0.9)
    ended = command("compare", before, slower, "--fail-below", "0.8")
    assert (ended.code, ended.err) == (0, "")
    ended = command("compare", before, slower, "--fail-below", "0.97")
    assert ended.code == 3
    assert ended.err.startswith("draftscope compare: Below 0.97 of the tokens/s before: none 0.90× (0.")
    assert ended.err.count("\n") == 1
    alone = made_report(repeats=1)  # two prompts, once: no interval
    before.write_bytes(alone.to_json())
    slower = write_faster(tmp_path / "slower.json", alone, 0.5)
    ended = command("compare", before, slower, "--fail-below", "0.97")
    assert (
        ended.code == 1
        and "Too few prompts and repeats for an interval of none, draft-simple and " in ended.err
    )
    assert command("compare", before, slower, "--fail-below", "-1").code == 2


def test_history_shows_the_results_of_a_folder(command: Command, tmp_path: Path) -> None:
    write_faster(tmp_path / "a.json", made_report(), 1.0)
    write_faster(tmp_path / "b.json", made_report(), 2.0)
    (tmp_path / "other.json").write_text("{}")
    os.mkfifo(tmp_path / "pipe.json")
    ended = command("history", tmp_path, "--html", tmp_path / "h.html")
    assert ended.code == 0, ended.err
    rows = [row for row in ended.out.splitlines() if row.startswith("draft-simple ")]
    factor = speedup_words(made_report().summary[1].speedup)
    assert len(rows) == 2 and all(factor in row and "●" in row for row in rows)
    assert "No results of bench or sweep: other.json." in ended.out
    assert (tmp_path / "h.html").read_text(encoding="utf-8").count("<svg") == 1
    (tmp_path / "empty").mkdir()
    for folder, why in (("empty", "has no result of bench"), ("none", "is not a folder")):
        ended = command("history", tmp_path / folder)
        assert ended.code == 1 and why in ended.err


def test_compare_refuses_other_files_in_a_sentence(command: Command, tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_text('{"format": "1.6"}')
    ended = command("compare", tmp_path / "trace.jsonl", tmp_path / "trace.jsonl")
    assert ended.code == 1
    assert "trace.jsonl is not a result of bench." in ended.err
    (tmp_path / "deep.json").write_text('{"format": "1.0", "deep": ' + "[" * 100_000 + "]" * 100_000 + "}")
    ended = command("compare", tmp_path / "deep.json", tmp_path / "deep.json")
    assert ended.code == 1
    assert "deep.json is not a result of bench." in ended.err
    (tmp_path / "later.json").write_text('{"format": "99.0", "other": "fields"}')
    ended = command("compare", tmp_path / "later.json", tmp_path / "later.json")
    assert ended.code == 1
    assert "later.json has format 99.0; this version reads" in ended.err
    ended = command("compare", tmp_path / "missing.json", tmp_path / "missing.json")
    assert ended.code == 1
    assert "missing.json cannot be read" in ended.err
