"""Join the scenarios of the three builds of ngram_mod_cache.cpp: `pack_ngram_cache.py FOLDER`.

FOLDER holds ascending.jsonl, plain.jsonl and descending.jsonl. A draft event becomes
["draft", new tokens, k, ascending, plain, descending]; the last two are null where they are the first again.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path


def main() -> None:
    folder = Path(sys.argv[1])
    orders = [(folder / f"{order}.jsonl").open() for order in ("ascending", "plain", "descending")]
    lines = []
    for joined, *others in (map(json.loads, line) for line in zip(*orders, strict=True)):
        events = zip(joined["events"], *(scenario["events"] for scenario in others), strict=True)
        for event, *others_events in events:
            assert all(other[:3] == event[:3] for other in others_events)
            if event[0] == "draft":
                event += [other[3] if other[3] != event[3] else None for other in others_events]
        lines.append(json.dumps(joined, separators=(",", ":")))
    packed = gzip.compress("\n".join(lines).encode(), mtime=0)
    (Path(__file__).parent / "ngram_cache.jsonl.gz").write_bytes(packed)


if __name__ == "__main__":
    main()
