"""Servers on the command line: run, and lanes of bench."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from app.engine.strategy import NONE, SERVER
from app.lab.report.page import embedded_json
from app.lab.report.report import Report
from tests.commands import Command
from tests.servers.scripted import Answer, counted, ended, llama_server, serving

DRAFTING = (counted(1, "One", 1), counted(2, " two", 2, 2, 1), counted(3, " three", 3, 2, 1), ended(3, 2, 1))
PLAIN = (counted(1, "One", 1), counted(2, " two", 2), counted(3, " three", 3), ended(3))


def test_run_prints_a_server_s_answer_and_records_it(command: Command, tmp_path: Path):
    trace, numbers = tmp_path / "answer.jsonl", tmp_path / "answer.json"
    with serving(llama_server(*DRAFTING)) as server:
        done = command(
            "run",
            *("--server", server.address, "--prompt", "Count", "--max-tokens", 3),
            *("--trace", trace, "--json", numbers),
        )

    assert (done.code, done.out) == (0, "One two three\n"), done.err
    assert "draft acceptance = 0.50000 (    1 accepted /     2 generated)" in done.err
    assert "statistics" not in done.err, "a server does not tell how often a strategy was asked"
    record = json.loads(numbers.read_bytes())
    assert (record["strategy"], record["accepted"], record["target_seconds"]) == (SERVER, 1, None)
    assert command("replay", trace, "--verify").code == 0


def test_run_asks_a_server_not_to_draft_where_none_is_given(command: Command):
    with serving(llama_server(*PLAIN)) as server:
        done = command(
            "run", "--server", server.address, "--strategy", NONE, "--prompt", "a", "--max-tokens", 3
        )
        asked = [body for body in server.bodies("/completion") if body.get("stream")]

    assert done.code == 0 and asked[0]["speculative.n_max"] == 0


def test_the_key_goes_to_the_server_and_into_no_file(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SERVER_KEY", "secret-key")
    outputs = [tmp_path / name for name in ("out.json", "out.html", "journal.jsonl")]
    with serving(llama_server(*DRAFTING)) as server:
        done = command(
            "bench",
            *("--server", server.address, "--server-key-env", "SERVER_KEY", "--prompt", "a", "--repeat", 1),
            *("--max-tokens", 3, "--json", outputs[0], "--html", outputs[1], "--journal", outputs[2]),
        )
        keys = {asked.headers.get("authorization") for asked in server.asked}

    assert done.code == 0 and keys == {"Bearer secret-key"}, done.err
    assert not any(b"secret-key" in path.read_bytes() for path in outputs)
    assert "secret-key" not in done.out + done.err


def test_bench_compares_a_server_with_one_of_its_model_without_drafts(command: Command, tmp_path: Path):
    out, page = tmp_path / "out.json", tmp_path / "out.html"
    with serving(llama_server(*DRAFTING)) as drafting, serving(llama_server(*PLAIN, types="none")) as plain:
        done = command(
            "bench",
            *("--server", drafting.address, "--server", plain.address, "--prompt", "a", "--max-tokens", 3),
            *("--repeat", 2, "--json", out, "--html", page, "--csv", tmp_path / "out.csv"),
            *("--markdown", tmp_path / "out.md"),
        )

    assert done.code == 0, done.err
    report = Report.from_json(out.read_bytes())
    assert [lane.name for lane in report.lanes] == ["llama-server: draft-simple", "llama-server: none"]
    assert [lane.baseline for lane in report.lanes] == [1, 1]
    assert report.lanes[0].server.speculation == ("draft-simple",)
    assert [summary.acceptance_rate for summary in report.summary] == [0.5, None]
    assert report.summary[0].speedup is not None and report.summary[0].identical == 2
    assert report.summary[0].target_seconds is report.summary[0].engine_overhead is None
    assert Report.from_json(embedded_json(page.read_text(encoding="utf-8"))) == report
    for text in (
        done.out,
        (tmp_path / "out.md").read_text(encoding="utf-8"),
        page.read_text(encoding="utf-8"),
    ):
        assert "target.gguf, drafts with draft-simple, 2 slots" in text


def test_a_server_that_cannot_leave_drafting_out_has_no_speed_up(command: Command, tmp_path: Path):
    out = tmp_path / "out.json"
    with serving(llama_server(*DRAFTING)) as server:
        done = command(
            "bench",
            "--server",
            server.address,
            "--prompt",
            "a",
            "--max-tokens",
            3,
            "--repeat",
            1,
            "--json",
            out,
        )

    assert done.code == 0 and "has no baseline: the server cannot turn drafting off" in done.out
    (summary,) = Report.from_json(out.read_bytes()).summary
    assert summary.runs == 1 and summary.speedup is None


def test_a_server_stands_beside_our_own_lanes(
    command: Command, tmp_path: Path, pair_files: tuple[Path, Path]
):
    target, draft = pair_files
    out = tmp_path / "out.json"
    with serving(llama_server(*DRAFTING)) as server:
        done = command(
            "bench",
            *(
                "--target",
                target,
                "--draft",
                draft,
                "--strategy",
                "prompt-lookup",
                "--server",
                server.address,
            ),
            *("--prompt", "abcabc", "--max-tokens", 3, "--repeat", 1, "--engine", "thread", "--json", out),
        )

    assert done.code == 0, done.err
    report = Report.from_json(out.read_bytes())
    assert [(lane.strategy, lane.baseline) for lane in report.lanes] == [
        (NONE, 0), ("prompt-lookup", 0), (SERVER, None),
    ]  # fmt: skip
    assert all(summary.runs == 1 for summary in report.summary)


def test_a_strategy_that_remembers_is_said_to_be_warm(command: Command):
    with serving(llama_server(*DRAFTING, types="ngram-mod")) as server:
        done = command("bench", "--server", server.address, "--prompt", "a", "--max-tokens", 3, "--repeat", 1)

    assert "llama-server: ngram-mod is warm: the server also drafts from earlier answers" in done.out


def test_a_server_that_refuses_ends_bench_with_one_line(command: Command):
    with serving({"/props": Answer({"error": {"message": "Invalid API Key"}}, 401)}) as server:
        done = command("bench", "--server", server.address, "--prompt", "a")

    assert done.code == 1 and "wants a key (401)" in done.err and done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--server", "ftp://x"), "is not the address of a server"),
        (("--server", "h:1", "--target", "t.gguf"), "--target cannot be used with --server"),
        (("--server", "h:1", "--strategy", "ngram-mod"), "--strategy ngram-mod cannot be used with --server"),
        (("--server", "h:1", "--ctx-size", "512"), "--ctx-size cannot be used with --server"),
        (("--server-key-env", "KEY"), "--server-key-env needs a server"),
    ],
)
def test_run_refuses_what_a_server_cannot_follow(command: Command, words: tuple[str, ...], said: str):
    done = command("run", "--prompt", "a", *words)

    assert done.code == 2 and said in done.err


def test_the_engineers_page_has_commands_that_run_as_written(command: Command, tmp_path: Path):
    written = (Path(__file__).parents[2] / "docs" / "engineers.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\.venv/bin/draftscope (.+--server .+)$", written, re.MULTILINE)
    with serving(llama_server(*DRAFTING)) as drafting, serving(llama_server(*PLAIN, types="none")) as plain:
        addresses = {"http://127.0.0.1:8080": drafting.address, "http://127.0.0.1:8081": plain.address}
        for line in commands:
            words = [addresses.get(word, word) for word in shlex.split(line)]
            page = tmp_path / "report.html"
            once = ["--repeat", 1] if words[0] == "bench" else []
            done = command(*[page if word == page.name else word for word in words], *once)
            assert done.code == 0, done.err
            assert "One two three" in done.out or "llama-server: draft-simple" in done.out

    assert len(commands) == 3 and page.stat().st_size


def test_an_engine_s_commands_do_not_load_the_http_client():
    rooms = "app.cli.answer.run, app.cli.measure.bench, app.lab.runs.runner"
    script = f"import sys, {rooms}; print('httpx2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
