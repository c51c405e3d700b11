"""Training text as token ids, and which of them are learnt: `tokenizer.json` and `corpus.npz` in `--work`.

Five kinds of text: scenes, which have one right answer; open dialogues; dialogues around passages of the
library; and its code and prose as they are. Beside them `prompts.jsonl`, the held-out prompts of
evaluate.py.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
from tokenizers import Tokenizer

from base import library, words
from base.scene import Dice
from judging import judge
from scenes import world
from texts import grammar, passages
from training import begin
from training import tokenizer as bpe

DIALOGUES = {"scenes": 70_000, "open": 40_000, "passages": 40_000}
TEXTS = ("code", "prose")
HELD_OUT = 400
"""Dialogues of each kind."""
FOR_TOKENIZER = 6
"""One text of so many goes into the tokenizer."""
PROMPTS = 30
"""Of each of dialogues, prose and code."""
PROMPT_LINES = 14
PROMPT_WORDS = 45
Dialogue = list[world.Message]


def render(tokenizer: Tokenizer, messages: Dialogue) -> tuple[list[int], list[int]]:
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


def conversations(dice: Dice, documents: Sequence[library.Document]) -> dict[str, Iterator[Dialogue]]:
    """Endless dialogues of each kind, from the side of the dice."""
    shelf = passages.shelf(documents, dice.held_out)

    def endless(make: Callable[[], Dialogue]) -> Iterator[Dialogue]:
        while True:
            yield make()

    return {
        "scenes": world.conversations(dice),
        "open": endless(lambda: grammar.conversation(dice)),
        "passages": endless(lambda: passages.conversation(dice, shelf)),
    }


def dialogues(
    dice: Dice, documents: Sequence[library.Document], counts: dict[str, int]
) -> dict[str, list[Dialogue]]:
    made = conversations(dice, documents)
    return {kind: list(islice(made[kind], count)) for kind, count in counts.items()}


def texts(documents: Sequence[library.Document], kind: str, held_out: bool) -> list[str]:
    """In an order by chance that is always the same, so that a window meets different sources."""
    found = [
        document.text for document in documents if (document.kind, document.held_out) == (kind, held_out)
    ]
    Random(6).shuffle(found)
    return found


def prompts(
    documents: Sequence[library.Document], held_out: dict[str, list[Dialogue]]
) -> Iterator[dict[str, object]]:
    """What the pair goes on with when it is measured, a third dialogues, a third prose, a third code."""
    each = PROMPTS // 3
    cases = judge.load()
    asked = [list(case.messages) for case in cases[:: len(cases) // each][:each]]
    asked += [talk[:1] for kind in ("open", "passages") for talk in held_out[kind][:each]]
    for messages in asked:
        yield {"kind": "dialogue", "messages": messages}
    long = [text.split(" ") for text in texts(documents, "prose", held_out=True)]
    for said in [said for said in long if len(said) > 2 * PROMPT_WORDS][:PROMPTS]:
        yield {"kind": "prose", "text": " ".join(said[:PROMPT_WORDS]).rstrip()}
    dice = Random(8)
    for text in [text for text in texts(documents, "code", held_out=True) if text.count("\n") > 100][
        :PROMPTS
    ]:
        lines = text.splitlines()
        starts = [
            place
            for place, line in enumerate(lines[: -2 * PROMPT_LINES])
            if line.startswith(("def ", "class "))
        ]
        first = dice.choice(starts or [0])
        yield {"kind": "code", "text": "\n".join(lines[first : first + PROMPT_LINES]) + "\n"}


def arrays_of(tokenizer: Tokenizer, part: str, talks: list[Dialogue]) -> dict[str, np.ndarray]:
    rendered = [render(tokenizer, messages) for messages in talks]
    return {
        f"{part}_ids": np.array([i for ids, _ in rendered for i in ids], np.uint16),
        f"{part}_learnt": np.array([is_learnt for _, learnt in rendered for is_learnt in learnt], np.bool_),
        f"{part}_ends": np.cumsum([len(ids) for ids, _ in rendered]),
    }


def stream(tokenizer: Tokenizer, found: list[str]) -> np.ndarray:
    """All texts end to end, each with its end."""
    end = bpe.control_id(tokenizer, bpe.ENDOFTEXT)
    return np.concatenate([np.array([*bpe.encode_plain(tokenizer, text), end], np.uint16) for text in found])


def learnt_tokenizer(
    path: Path, documents: Sequence[library.Document], talks: list[list[Dialogue]]
) -> Tokenizer:
    """A tokenizer whose merges come from one text of so many; written to `path`."""
    samples = [content for made in talks for messages in made[::FOR_TOKENIZER] for _, content in messages]
    samples += [text for kind in TEXTS for text in texts(documents, kind, held_out=False)[::FOR_TOKENIZER]]
    copied = {word + end for word in (*words.NOUNS, *words.VERBS) for end in ("", "s")}
    return bpe.train([*words.examples(), *samples], copied, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--begin", type=Path, help="folder of a pair whose tokenizer is kept")
    args = parser.parse_args()
    documents = library.load(args.work)
    talks = {
        "train": dialogues(Dice(2), documents, DIALOGUES),
        "held_out": dialogues(Dice(4, held_out=True), documents, dict.fromkeys(DIALOGUES, HELD_OUT)),
    }
    (args.work / "prompts.jsonl").write_text(
        "".join(
            json.dumps(prompt, ensure_ascii=False) + "\n" for prompt in prompts(documents, talks["held_out"])
        ),
        encoding="utf-8",
        errors="replace",
    )
    path = args.work / "tokenizer.json"
    if args.begin:
        begin.keep_tokenizer(args.begin / "target.gguf", path)
        trained = bpe.load(path)
    else:
        trained = learnt_tokenizer(path, documents, list(talks["train"].values()))
    arrays: dict[str, np.ndarray] = {}
    for part, made in talks.items():
        for kind, own in made.items():
            arrays |= arrays_of(trained, f"{part}_{kind}", own)
        for kind in TEXTS:
            arrays[f"{part}_{kind}_ids"] = stream(trained, texts(documents, kind, part == "held_out"))
    for name, ids in arrays.items():
        if name.endswith("_ids"):
            share = arrays.get(name.replace("_ids", "_learnt"), np.ones(1)).mean()
            print(f"{name.removesuffix('_ids')}: {len(ids):,} tokens, {share:.0%} of them learnt", flush=True)
    unfinished = args.work / "corpus.new.npz"  # what is cut off while it is written is made again
    np.savez_compressed(unfinished, **arrays)
    unfinished.replace(args.work / "corpus.npz")


if __name__ == "__main__":
    main()
