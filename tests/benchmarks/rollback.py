"""The cost of rollback on memories that cannot be cut: tokens/s of the target alone.

    python tests/benchmarks/rollback.py [--context 2000] [--rounds 20] [--repeats 3] [--drafted 4]

Random models of about 45M parameters read a context, then verify drafts of which 0, 2, 4, 1, 3 ... tokens are
accepted. "plain" is the same text without drafts; "anew" uses neither checkpoints nor snapshots: the whole
context is decoded again after every rejection. One thread; seconds are processor time, so that other work on
the machine counts little. Medians; the variants take turns within every repeat.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from app.engine.native import AbortFlag, Context, Model
from app.engine.types import ModelOptions
from tests.files.tiny import Tiny, write_tiny

ARCHITECTURES = ("llama", "qwen35", "lfm2", "mamba")
WAYS = ("plain", "anew", "checkpoints", "snapshots")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--context", type=int, default=2000, help="tokens that are there before")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--drafted", type=int, default=4, help="tokens a draft")
    asked = parser.parse_args()
    print(f"{'tokens/s':12}" + "".join(f"{way:>14}" for way in WAYS))
    with tempfile.TemporaryDirectory() as folder:
        for architecture in ARCHITECTURES:
            size = Tiny(architecture=architecture, n_layers=8, n_embd=640, n_heads=5, n_ff=1920, n_ctx=4096)
            path = write_tiny(Path(folder) / f"{architecture}.gguf", size)
            speeds = defaultdict(list)
            options = ModelOptions(str(path), threads=1)
            model = Model(options)
            for _ in range(asked.repeats):
                for way in WAYS:
                    kept = asked.drafted if way == "snapshots" else 0
                    context = Context(model, options, AbortFlag(), snapshots=kept)
                    speeds[way].append(speed(context, way, asked.context, asked.rounds, asked.drafted))
                    context.close()
            model.close()
            print(f"{architecture:12}" + "".join(f"{median(speeds[way]):14.1f}" for way in WAYS), flush=True)


def speed(context: Context, way: str, before: int, rounds: int, drafted: int) -> float:
    """Emitted tokens a second."""
    text = np.random.default_rng(1).integers(0, 250, before + rounds * (drafted + 1)).astype(np.int32)
    context.decode(text[: before - 1])
    length = before
    rounds = rounds if way != "anew" else 3
    started = time.process_time()
    for round in range(rounds):
        if way == "plain":
            context.decode(text[length - 1 : length], logits=1)
            length += 1
            continue
        if way == "anew" and context.n_cached > length - 1:
            context.clear()
        kept = context.sync(text[: length - 1])
        accepted = 2 * round % (drafted + 1)
        draft = np.concatenate([text[length : length + accepted], np.full(drafted - accepted, 255, np.int32)])
        context.decode(np.concatenate([text[kept:length], draft]), logits=drafted + 1)
        length += accepted + 1
    return (length - before) / (time.process_time() - started)


if __name__ == "__main__":
    main()
