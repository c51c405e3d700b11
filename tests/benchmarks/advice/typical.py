"""Makes resources/typical.json, which answers “What are you doing?”, from the saved tables.

python tests/benchmarks/advice/typical.py
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import msgspec

from app.base.paths import find_paths
from app.demo import FOLDER
from app.engine.explain.purposes import FILE, Typical, TypicalPrompt, TypicalRounds
from app.engine.forcing import WIDTHS
from app.engine.strategy import StrategySpec
from tests.benchmarks.advice.table import CASES, TABLES, Row, read, replay

COPYING = (
    "prompt-lookup", "prompt-lookup:max_ngram_size=2:num_pred_tokens=4", "ngram-simple:size_n=4:size_m=8",
    "ngram-map-k:size_n=8:size_m=16", "ngram-map-k4v:size_n=4:size_m=8",
    "ngram-map-k4v:size_n=8:size_m=16:min_hits=2", "ngram-mod:n_match=8:n_min=2:n_max=16", "ngram-mod",
    "ngram-cache:n_draft=4", "suffix:n_max=4", "suffix:n_max=16",
)  # fmt: skip
DRAFTING = (
    "draft-simple:n_max=2", "draft-simple:n_max=4:p_min=0.5", "draft-simple:n_max=8:p_min=0.5",
    "draft-simple:n_max=16:p_min=0.75", "ngram-map-k:size_n=8:size_m=16+draft-simple:n_max=8:p_min=0.5",
    "ngram-mod:n_match=16:n_min=4:n_max=32+draft-simple:n_max=8:p_min=0.5",
    "ngram-cache:n_draft=4+draft-simple:n_max=4:p_min=0.5", "suffix:n_max=16+draft-simple:n_max=8:p_min=0.5",
)  # fmt: skip
"""Those that were best somewhere on the first table, and one of each strategy."""


def prompts(rows: list[Row]) -> Iterator[TypicalPrompt]:
    cases = {case.name: case for case in CASES}
    for row in rows:
        case = cases[row.case]
        if case.threads == 1:
            passes = {size: ms / 1e3 for size, (ms, _) in row.passes.items() if size in WIDTHS}
            settings = (*COPYING, *(DRAFTING if row.drafts else ()))
            yield TypicalPrompt(
                file_name(case.target), file_name(case.draft), row.prompt, len(row.answer_ids), passes,
                row.drafts.get(1, 0.0) / 1e3, {spec: rounds(row, spec) for spec in settings},
            )  # fmt: skip


def file_name(model: str) -> str:
    """The name of the file that `CASES` means."""
    if model.startswith("bundled:") or not model:
        return model.replace("bundled:", f"{FOLDER}/")
    return "gemma-3-270m-Q4_K_M.gguf" if model == "gemma" else f"SmolLM2-135M-Instruct.{model}.gguf"


def rounds(row: Row, spec: str) -> TypicalRounds:
    """The rounds of a setting: copied drafts are replayed exactly."""
    done, parts = replay(row, spec), StrategySpec.parse(spec).parts
    counts = Counter(drafted for drafted, _ in done.rounds)
    steps, copying = 0, 0.0
    for (drafted, _), name, (ms, _) in zip(done.rounds, done.strategies, done.times, strict=True):
        if parts[-1].name != "draft-simple":
            copying += ms / 1e3
        elif name in ("draft-simple", ""):
            # The token that p_min kept out was computed too.
            steps += drafted + (drafted < parts[-1].longest)
    found = row.settings.get(row.same.get(spec, spec))
    if found is not None and copying:
        copying = found.draft_ms / 1e3
    return TypicalRounds(dict(counts), steps, round(copying, 5))


def main() -> None:
    found: dict[tuple[str, str, str], TypicalPrompt] = {}
    named = []
    for path in TABLES:
        head, rows = read(path)
        named.append(f"{head.machine}, {head.date}")
        found |= {(each.target, each.draft, each.prompt): each for each in prompts(rows)}
    (find_paths().resources / FILE).write_bytes(
        msgspec.json.encode(Typical(named, list(found.values()))) + b"\n"
    )


if __name__ == "__main__":
    main()
