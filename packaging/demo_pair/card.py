"""Put the finished pair where the app finds it: files, checksums, prompts and the model card."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import torch

from training.train import RUNS
from training.windows import SHARES

HERE = Path(__file__).parent
WIDTH, HEIGHT, MARGIN = 640, 240, 36
COLOURS = {"target": "#3b6ea5", "draft": "#c2703d", "small-draft": "#5f8a3b"}
Point = tuple[float, float]


def curve(losses: list[tuple[int, str, str, float]], name: str) -> list[Point]:
    """(step, nats per token) of one model, in the mixture of kinds that it learns from."""
    means: dict[int, float] = {}
    for step, learner, kind, loss in losses:
        if learner == name:
            means[step] = means.get(step, 0.0) + SHARES[kind] * loss
    return list(means.items())


def drawing(curves: dict[str, list[Point]]) -> str:
    """The curves as an SVG of logarithmic losses over steps."""
    points = np.array([point for curve in curves.values() for point in curve])
    most = float(points[:, 0].max())
    low, high = np.log10(points[:, 1].min()), np.log10(points[:, 1].max())

    def place(step: float, loss: float) -> str:
        across = MARGIN + (WIDTH - 2 * MARGIN) * step / most
        down = MARGIN + (HEIGHT - 2 * MARGIN) * (high - np.log10(loss)) / (high - low)
        return f"{across:.1f},{down:.1f}"

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="11" fill="none">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="20" fill="#333333">nats per token ({10**low:.2f} to {10**high:.1f}, '
        f"logarithmic) over steps (to {most:.0f})</text>",
    ]
    for row, (name, curve) in enumerate(curves.items()):
        path = " ".join(place(*point) for point in curve)
        lines.append(f'<polyline points="{path}" stroke="{COLOURS[name]}" stroke-width="1.5"/>')
        lines.append(
            f'<text x="{WIDTH - MARGIN}" y="{MARGIN + 14 * row}" fill="{COLOURS[name]}" '
            f'text-anchor="end">{name}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    curves: dict[str, list[Point]] = {}
    told = [
        f"| | parameters | steps | hours | held-out loss: {' | '.join(SHARES)} |",
        f"|---|---:|---:|{'---:|' * (1 + len(SHARES))}",
    ]
    files = {}
    args.out.mkdir(parents=True, exist_ok=True)
    for run, names in RUNS.items():
        saved = torch.load(args.work / f"{run}.pt", weights_only=True)
        progress = saved["progress"]
        for name in names:
            curves[name] = curve(progress["held_out"], name)
            last = progress["held_out"][-1][0]
            final = {
                kind: loss for step, who, kind, loss in progress["held_out"] if (step, who) == (last, name)
            }
            losses = " | ".join(f"{final[kind]:.3f}" for kind in SHARES)
            count = sum(tensor.numel() for tensor in saved["learners"][name]["model"].values())
            told.append(
                f"| {name} | {count:,} | {progress['step']:,} | {progress['seconds'] / 3600:.1f} | {losses} |"
            )
            made = args.work / "pair" / f"{name}.gguf"
            fresh = args.out / f"{name}.new"
            shutil.copyfile(made, fresh)
            fresh.replace(args.out / made.name)
            digest = hashlib.sha256(made.read_bytes()).hexdigest()
            files[name] = {
                "file": made.name,
                "parameters": count,
                "bytes": made.stat().st_size,
                "sha256": digest,
            }
    prompts = json.loads((HERE / "prompts.json").read_text(encoding="utf-8"))
    pair = {"name": "Demo pair", "licence": "MIT", "files": files, "prompts": prompts}
    (args.out / "pair.json").write_text(json.dumps(pair, indent=2) + "\n", encoding="utf-8")
    (args.out / "losses.svg").write_text(drawing(curves), encoding="utf-8")
    begun = args.work / "begun.txt"  # where another pair was gone on from
    began = "This pair began with nothing."
    if begun.exists():
        digest = begun.read_text(encoding="utf-8").strip()
        began = f"This pair went on from an earlier one, whose target has the SHA-256 `{digest}`."
    card = (HERE / "card.md").read_text(encoding="utf-8")
    for gap, text in {
        "{began}": began,
        "{training}": "\n".join(told),
        "{table}": (args.work / "table.md").read_text(encoding="utf-8").strip(),
        "{sources}": (args.work / "library.md").read_text(encoding="utf-8").strip(),
        "{check}": (args.work / "check.txt").read_text(encoding="utf-8").strip(),
        "{checksums}": "\n".join(f"{file['sha256']}  {file['file']}" for file in files.values()),
    }.items():
        card = card.replace(gap, text)
    (args.out / "MODEL_CARD.md").write_text(card, encoding="utf-8")


if __name__ == "__main__":
    main()
