"""Write the model card, and copy the head to its folder."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from pathlib import Path

import gguf
import numpy as np

from measure import MOST
from words import BATCH, RECIPE

NAME = "SmolLM2-135M-Instruct-eagle3.Q8_0.gguf"
LINES = 12  # of the curve


def curve(work: Path) -> str:
    """A table of the training, a line for every few entries."""
    entries = [json.loads(line) for line in (work / "curve.jsonl").read_text().splitlines()]
    every = max(1, -(-len(entries) // LINES))
    lines = ["| steps | answer tokens seen | most likely token right | accepted |", "|---:|---:|---:|---:|"]
    for each in entries[::-1][::every][::-1]:
        shares = (" ".join(f"{share:.2f}" for share in each[name]) for name in ("found", "accepted"))
        lines.append(f"| {each['step']:,} | {each['seen']:,} | {' | '.join(shares)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    head = args.work / "head.gguf"
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(head).tensors}
    text = np.load(args.work / "text.npz")
    last = json.loads((args.work / "curve.jsonl").read_text().splitlines()[-1])
    card = (RECIPE / "card.md").read_text(encoding="utf-8")
    told = card.format(
        parameters=sum(int(each.n_elements) for name, each in tensors.items() if name != "d2t"),
        tokens=int(text["length"].sum()),
        answers=int(text["answer"].sum()),
        vocab=int(tensors["d2t"].n_elements),
        steps=last["step"],
        batch=BATCH,
        curve=curve(args.work),
        most=MOST,
        table=(args.work / "table.md").read_text(encoding="utf-8").strip(),
        sha256=hashlib.sha256(head.read_bytes()).hexdigest(),
        name=NAME,
    )
    shutil.copyfile(head, args.out / NAME)
    (args.out / "MODEL_CARD.md").write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
