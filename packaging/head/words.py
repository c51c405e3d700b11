"""The inputs of a run: the words that begin a dialogue, in the model's tokens, and the paths of files."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

LAYERS = (2, 15, 29)  # whose inputs the head reads; the last block reads the third
BATCH = 48  # dialogues of a training step
RECIPE = Path(__file__).resolve().parent
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"  # the chat template adds it


def head(system: str) -> str:
    return f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n"


def held_out() -> dict[str, list[str]]:
    """The prompts with which the head is measured, by their kind. No dialogue may contain one of them."""
    found: dict[str, list[str]] = json.loads((RECIPE / "held_out.json").read_text(encoding="utf-8"))
    return found


def main() -> None:
    from target import Target

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    args = parser.parse_args()
    openings = json.loads((RECIPE / "openings.json").read_text(encoding="utf-8"))
    ids = Target(args.target, 512, ()).tokenize
    told = {
        "systems": [ids(head(each)) for each in (SYSTEM, *openings["systems"])],
        "trained": [[ids(each) for each in group] for group in openings["trained"].values()],
        "held out": [ids(each) for each in openings["held out"]],
        "answer": ids("<|im_end|>\n<|im_start|>assistant\n"),
        "again": ids("<|im_end|>\n<|im_start|>user\n"),
        "question": ids("<|im_start|>user\n"),
        "begin": ids("<|im_start|>")[0],
        "end": ids("<|im_end|>")[0],
        "forbidden": [ids(each) for group in held_out().values() for each in group],
    }
    (args.work / "words.json").write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main()
