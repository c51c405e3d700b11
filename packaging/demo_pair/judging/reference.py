"""What PyTorch and the training tokenizer say, for `check.py` to hold llama.cpp against."""

from __future__ import annotations

import argparse
import json
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from base import library, words
from base.scene import Dice
from scenes import world
from training import tokenizer as bpe
from training.train import RUNS, load_model
from training.windows import Corpus

LENGTH = 2048
HARD_TEXTS = (
    "",
    " ",
    "\n\n  \n\t x\n",
    "don't I'LL we've O'Neill's",
    "1234567890 3.14159 1e-9 0x7F",
    "naïve café Ångström ß ſ İ",
    "日本語のテキスト 中文 한국어",
    "Привет, мир. Γειά σου. שלום عليكم",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 \u200b\u00a0\u3000x",
    "a\r\nb\r\n\r\nc\rd",
    "x\u0000y\u0007z",
    "<|im_start|> as text <|im_end|> <|endoftext|>",
    "    def f(self, *args, **kwargs) -> None:\n        return {**a, 'b': [1]}  # done\n\n\n",
    "٣٤٥ ½ ² Ⅷ",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    args = parser.parse_args()
    tokenizer = bpe.load(args.work / "tokenizer.json")
    texts = [*HARD_TEXTS, *words.examples()[::20]]
    for messages in islice(world.conversations(Dice(21, held_out=True)), 400):
        texts += [content for _, content in messages]
    texts += [document.text for document in library.load(args.work) if document.held_out][::8]
    ids = [bpe.encode_plain(tokenizer, text) for text in texts]
    for text, encoded in zip(texts, ids, strict=True):
        assert tokenizer.decode(encoded, skip_special_tokens=False) == text, text
    (args.work / "texts.json").write_text(json.dumps({"texts": texts, "ids": ids}))

    window = Corpus(args.work / "corpus.npz").batch("held_out", (13,), 1, LENGTH, shares={"scenes": 1.0})
    arrays = {
        "inputs": window.inputs[0].numpy(),
        "labels": window.labels[0].numpy(),
        "learnt": window.learnt[0].numpy(),
    }
    for run, roles in RUNS.items():
        path = args.work / f"{run}.pt"
        for role in roles if path.exists() else ():
            with torch.no_grad():
                arrays[role] = load_model(path, role)(window.inputs)[0].float().numpy()
    np.savez(args.work / "reference.npz", **arrays)
    print(f"{len(texts)} texts, {sum(map(len, ids))} tokens, {window.inputs.shape[1]} positions")


if __name__ == "__main__":
    main()
