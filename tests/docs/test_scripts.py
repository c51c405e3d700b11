"""The scripts of README and docs run as they stand there, and the trace in ARCHITECTURE is one of today's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.engine.record.recheck import recheck
from app.engine.record.trace import FORMAT, read_trace
from tests.docs.pages import PAGES, ROOT

ARCHITECTURE = ROOT / "ARCHITECTURE.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_a_script_of_the_docs_prints_the_answer_behind_it(demo_pair: tuple[Path, Path]) -> None:
    written = "\n".join(page.text for page in PAGES)
    blocks = BLOCK.findall(written)
    assert len(blocks) == written.count("```python") > 0
    for block, answer in blocks:
        # A process of its own, from the folder that the pages name their files from.
        done = subprocess.run(
            [sys.executable, "-c", block],
            cwd=ROOT,
            env=os.environ | {"PYTHONUTF8": "1"},
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        # Known by heart: each token has 8 nats more than the next, so rounding decides nothing.
        assert done.stdout.rstrip("\n") == answer.rstrip("\n")


@pytest.mark.skipif(not ARCHITECTURE.exists(), reason="there is no ARCHITECTURE.md")
def test_the_trace_in_the_architecture_is_of_this_format_and_this_pair(
    demo_pair: tuple[Path, Path], tmp_path: Path
) -> None:
    (lines,) = re.findall(r"^```json\n(.*?)^```", ARCHITECTURE.read_text(encoding="utf-8"), re.DOTALL | re.M)
    file = tmp_path / "shown.jsonl"
    file.write_text(lines, encoding="utf-8")
    trace = read_trace(file)
    assert trace.header.format == FORMAT
    pair = trace.header.pair
    assert pair.draft is not None
    assert (pair.target.size, pair.draft.size) == tuple(path.stat().st_size for path in demo_pair)
    assert [token.verdict for token in trace.rounds[0].drafted] == ["rejected", "ignored"]
    cut = re.compile(
        r"Round 1: the (target|draft)'s alternatives at place \d (are only 2|sum to|do not give).*"
    )
    faults = [fault for fault in recheck(trace) if fault.startswith("Round 1")]
    assert [fault for fault in faults if not cut.fullmatch(fault)] == []
