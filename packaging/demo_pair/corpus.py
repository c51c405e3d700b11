"""Training text as token ids with a weight for every token.

Two sources: the standard library of the running Python, without its tests, and the generated
dialogues. Written once to `<work>/corpus.npz` and `<work>/tokenizer.json`.
"""

from __future__ import annotations

import argparse
import shutil
import sysconfig
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
from tokenizers import Tokenizer

import dialogues
import tokenizer as bpe

SKIPPED = {"test", "tests", "idle_test", "site-packages", "lib2to3", "pydoc_data", "idlelib"}
SKIPPED_STEMS = {"__phello__", "_sysconfigdata"}
SOURCE_BYTES = 6_000_000
DIALOGUES = 24_000
# What people ask is worth a little learning; what the model answers is the point.
USER_WEIGHT = 26
FULL_WEIGHT = 255


def sources() -> Iterator[str]:
    """Texts of the standard library, in a fixed shuffled order, about `SOURCE_BYTES` in all."""
    root = Path(sysconfig.get_path("stdlib"))
    paths = sorted(
        path
        for path in root.rglob("*.py")
        if not SKIPPED & set(path.relative_to(root).parts)
        and not any(path.stem.startswith(stem) for stem in SKIPPED_STEMS)
        and "encodings" not in path.parts
    )
    Random(1).shuffle(paths)
    size = 0
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace").strip()
        if 200 < len(text) < 80_000:
            size += len(text)
            yield text
        if size > SOURCE_BYTES:
            return


def render(tokenizer: Tokenizer, messages: list[dialogues.Message]) -> tuple[list[int], list[int]]:
    """Ids and weights of one conversation, in the form of the chat template."""
    start, end = (bpe.control_id(tokenizer, word) for word in (bpe.IM_START, bpe.IM_END))
    newline = bpe.encode_plain(tokenizer, "\n")
    ids: list[int] = []
    weights: list[int] = []
    for role, content in messages:
        head = [start, *bpe.encode_plain(tokenizer, f"{role}\n")]
        body = [*bpe.encode_plain(tokenizer, content), end]
        ids += head + body + newline
        weight = FULL_WEIGHT if role == "assistant" else USER_WEIGHT
        weights += [0] * len(head) + [weight] * len(body) + [0] * len(newline)
    return ids, weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--dialogues", type=int, default=DIALOGUES)
    parser.add_argument("--mix", choices=list(dialogues.MIXES), default="first")
    parser.add_argument("--tokenizer", type=Path, help="use this tokenizer, train none")
    args = parser.parse_args()
    files = list(sources())
    # Other seeds for another mix: a model that goes on to it sees dialogues it has not seen.
    seed = 2 + 10 * list(dialogues.MIXES).index(args.mix)
    talks = list(islice(dialogues.conversations(seed, args.mix), args.dialogues))
    held_out = list(islice(dialogues.conversations(seed + 1, args.mix), 200))
    args.work.mkdir(parents=True, exist_ok=True)
    path = args.work / "tokenizer.json"
    if args.tokenizer:
        shutil.copyfile(args.tokenizer, path)
        trained = bpe.load(path)
    else:
        samples = [content for messages in talks[::4] for _, content in messages]
        trained = bpe.train([*files[::3], *samples], path)
    end_of_text = bpe.control_id(trained, bpe.ENDOFTEXT)

    arrays: dict[str, np.ndarray] = {}

    def store(name: str, documents: list[tuple[list[int], list[int]]]) -> None:
        arrays[f"{name}_ids"] = np.array([i for ids, _ in documents for i in ids], np.uint16)
        arrays[f"{name}_weights"] = np.array([w for _, ws in documents for w in ws], np.uint8)
        arrays[f"{name}_ends"] = np.cumsum([len(ids) for ids, _ in documents])
        print(name, len(documents), "documents", len(arrays[f"{name}_ids"]), "tokens", flush=True)

    source_ids = [[*bpe.encode_plain(trained, text), end_of_text] for text in files]
    store("source", [(ids, [FULL_WEIGHT] * len(ids)) for ids in source_ids[8:]])
    store("source_test", [(ids, [FULL_WEIGHT] * len(ids)) for ids in source_ids[:8]])
    store("talk", [render(trained, messages) for messages in talks])
    store("talk_test", [render(trained, messages) for messages in held_out])
    np.savez(args.work / "corpus.npz", **arrays)


if __name__ == "__main__":
    main()
