"""Exports of a measurement, and what exporting must not do."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.lab.facts import Digest
from app.lab.report.report import Report
from app.ui.compare.exports import save_report
from tests.lab.report.reports import made_report


@pytest.mark.parametrize("measuring", [True, False])
def test_whole_models_are_not_read_while_something_is_measured(tmp_path: Path, measuring: bool) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(b"weights")
    found: list[str | None] = []

    def report(digest: Digest) -> Report:
        found.append(digest(str(model)))
        return made_report()

    out = tmp_path / "out.json"
    saving = save_report(report, Report.to_json, out, lambda: measuring)
    saving.run()
    assert [content is None for content in found] == [measuring]
    assert Report.from_json(out.read_bytes()).runs
