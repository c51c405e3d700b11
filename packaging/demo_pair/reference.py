"""What PyTorch and the training tokenizer say, for `check.py` to hold llama.cpp against."""

from __future__ import annotations

import argparse
import json
from itertools import islice
from pathlib import Path

import numpy as np
import torch

import dialogues
import tokenizer as bpe
from corpus import sources
from train import load_model
from windows import Corpus

PROMPTS = 100
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
    texts = list(HARD_TEXTS)
    texts += [text[:6000] for text in islice(sources(), 60)]
    for messages in islice(dialogues.conversations(seed=21), 400):
        texts += [content for _, content in messages]
    ids = [bpe.encode_plain(tokenizer, text) for text in texts]
    for text, encoded in zip(texts, ids, strict=True):
        assert tokenizer.decode(encoded, skip_special_tokens=False) == text, text
    (args.work / "texts.json").write_text(json.dumps({"texts": texts, "ids": ids}))

    # First questions of chats that no training seed gives, with the answer the generator wrote.
    asked: list[dict[str, str]] = []
    for messages in islice(dialogues.conversations(seed=31), PROMPTS):
        turns = [content for role, content in messages if role != "system"]
        asked.append({"category": "any", "prompt": turns[0], "answer": turns[1]})
    (args.work / "prompts.json").write_text(json.dumps({"prompts": asked}))

    corpus = Corpus(args.work / "corpus.npz")
    window = corpus.batch((13,), ["talk_test"], 2048)
    arrays = {
        "inputs": window.inputs[0].numpy(),
        "labels": window.labels[0].numpy(),
        "weights": window.weights[0].numpy(),
    }
    for role in ("target", "draft"):
        path = args.work / f"{role}.pt"
        if path.exists():
            with torch.no_grad():
                arrays[role] = load_model(path)(window.inputs)[0].float().numpy()
    np.savez(args.work / "reference.npz", **arrays)
    print(f"{len(texts)} texts, {sum(map(len, ids))} tokens, {window.inputs.shape[1]} positions")


if __name__ == "__main__":
    main()
