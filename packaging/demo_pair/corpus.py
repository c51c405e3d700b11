"""Training text as token ids, and which of them are learnt: `tokenizer.json` and `corpus.npz` in `--work`."""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

import tokenizer as bpe
import words
import world
from scene import Dice

DIALOGUES = 70_000
HELD_OUT = 400


def render(tokenizer: Tokenizer, messages: list[world.Message]) -> tuple[list[int], list[int]]:
    """Ids of one conversation in the form of the chat template, and 1 where a token is to be learnt.

    That is what the assistant says, its end included; what people ask is only read.
    """
    start, end = (bpe.control_id(tokenizer, word) for word in (bpe.IM_START, bpe.IM_END))
    newline = bpe.encode_plain(tokenizer, "\n")
    ids: list[int] = []
    learnt: list[int] = []
    for role, content in messages:
        head = [start, *bpe.encode_plain(tokenizer, f"{role}\n")]
        body = [*bpe.encode_plain(tokenizer, content), end]
        ids += head + body + newline
        learnt += [0] * len(head) + [int(role == "assistant")] * len(body) + [0] * len(newline)
    return ids, learnt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    args = parser.parse_args()
    parts = {
        "train": list(islice(world.conversations(Dice(2)), DIALOGUES)),
        "same": list(islice(world.conversations(Dice(3)), HELD_OUT)),
        "held_out": list(islice(world.conversations(Dice(4, held_out=True)), HELD_OUT)),
    }
    args.work.mkdir(parents=True, exist_ok=True)
    samples = [content for messages in parts["train"][::8] for _, content in messages]
    copied = {word + end for word in (*words.NOUNS, *words.VERBS) for end in ("", "s")}
    trained = bpe.train([*words.examples(), *samples], copied, args.work / "tokenizer.json")
    arrays: dict[str, np.ndarray] = {}
    for name, talks in parts.items():
        rendered = [render(trained, messages) for messages in talks]
        arrays[f"{name}_ids"] = np.array([i for ids, _ in rendered for i in ids], np.uint16)
        arrays[f"{name}_learnt"] = np.array([flag for _, learnt in rendered for flag in learnt], np.bool_)
        arrays[f"{name}_ends"] = np.cumsum([len(ids) for ids, _ in rendered])
        print(name, len(talks), "dialogues", len(arrays[f"{name}_ids"]), "tokens", flush=True)
    unfinished = args.work / "corpus.new.npz"  # what is cut off while it is written is made again
    np.savez(unfinished, **arrays)
    unfinished.replace(args.work / "corpus.npz")


if __name__ == "__main__":
    main()
