"""Hold the GGUF files against what PyTorch says. Ends with 1 where the tokenizers differ.

Runs in the app's environment: it needs llama-cpp-python, not PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

# Read by the OpenMP runtime when the library is loaded, so it has to stand before the import.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import numpy as np
from llama_cpp import Llama

CONTEXT = 2048


def load(path: Path) -> Llama:
    return Llama(str(path), n_ctx=CONTEXT, n_batch=512, n_threads=1, logits_all=True, verbose=False)


def logits_of(model: Llama, ids: list[int]) -> np.ndarray:
    """Logits (len(ids), vocab) of a fresh pass."""
    model.reset()
    model.eval(ids)
    return model.scores[: len(ids)].copy()


def check_tokens(model: Llama, work: Path) -> bool:
    """Whether all texts have the tokens that they had in training."""
    known = json.loads((work / "texts.json").read_text())
    wrong = 0
    for text, ids in zip(known["texts"], known["ids"], strict=True):
        found = model.tokenize(text.encode(), add_bos=False, special=False)
        if found != ids or model.detokenize(found).decode() != text:
            wrong += 1
            print("differs:", repr(text[:80]), ids[:20], found[:20])
    print(f"tokenizer: {len(known['texts']) - wrong} of {len(known['texts'])} texts equal")
    return not wrong


def check_logits(model: Llama, role: str, work: Path) -> None:
    reference = np.load(work / "reference.npz")
    if role not in reference:
        return
    ids = reference["inputs"].tolist()
    found, wanted = logits_of(model, ids), reference[role]
    gap = np.abs(found - wanted)
    same = (found.argmax(-1) == wanted.argmax(-1)).mean()
    print(f"{role}: logits differ by {gap.mean():.4f} on average, {gap.max():.4f} at most;")
    print(f"  argmax equal at {100 * same:.2f} % of {len(ids)} positions")
    shifted = found - found.max(-1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(-1))
    loss = log_sum - shifted[np.arange(len(ids)), reference["labels"]]
    answers = reference["learnt"]
    for start in range(0, len(ids), 512):
        part = slice(start, start + 512)
        mean = loss[part][answers[part]].mean()
        print(f"  loss at positions {start} to {start + 511}: {mean:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--pair", type=Path, required=True, help="folder of GGUF files")
    args = parser.parse_args()
    same = check_tokens(load(args.pair / "target.gguf"), args.work)
    for path in sorted(args.pair.glob("*.gguf")):
        check_logits(load(path), path.stem, args.work)
    raise SystemExit(0 if same else 1)


if __name__ == "__main__":
    main()
