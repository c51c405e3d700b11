"""Runs the campaign and prints its table: `python -m tests.faults [N] [--only KIND ...] [--first SEED]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import psutil

from tests.faults.campaign import UnableError, head, row, run, skipped
from tests.faults.kinds import KINDS

FAILURES = Path("build") / "faults"
SHARES = {
    "templates": 0.2,
    "deaths": 0.1,
    "models in the window": 0.1,
    "deaths in the window": 0.05,
    "downloads": 0.2,
    "lying servers": 0.2,
    "lying hubs": 0.2,
    "disks": 0.04,
    "memory": 0.1,  # 2,000 rounds each
    "two windows": 0.05,
    "logouts": 0.05,
    "clocks": 0.05,
}
"""Of N files, for kinds that take longer."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=1000, help="files of a kind (default 1000)")
    parser.add_argument(
        "--only", nargs="+", choices=KINDS, default=[], metavar="KIND", help="these kinds alone"
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    asked = parser.parse_args()
    failed = False
    print(*head(), sep="\n", flush=True)
    for name, make in KINDS.items():
        if asked.only and name not in asked.only:
            continue
        count = max(1, round(asked.count * SHARES.get(name, 1)))
        print(f"{name}: {count} files", file=sys.stderr, flush=True)
        try:
            kind = make()
        except UnableError as why:
            print(skipped(name, why), flush=True)
            continue
        result = run(kind, range(asked.first, asked.first + count), FAILURES)
        print(row(result), flush=True)
        failed = failed or bool(result.failed)
        for file in result.failed[:20]:
            print(f"  failed: {FAILURES / name / file}", file=sys.stderr, flush=True)
    left = [child for child in psutil.Process().children(recursive=True) if not _is_pythons_own(child)]
    if left:
        print(f"left behind: {left}", file=sys.stderr)
    return 1 if left or failed else 0


def _is_pythons_own(process: psutil.Process) -> bool:
    """multiprocessing's process that cleans up after this one."""
    return "resource_tracker" in " ".join(process.cmdline())


if __name__ == "__main__":
    sys.exit(main())
