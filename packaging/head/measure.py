"""Hold the head against what PyTorch said, let it draft at the held-out prompts, and write the table."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from drafting import HeadContext, Told, write
from target import Target
from words import LAYERS, SYSTEM, held_out
from words import head as opening

LENGTH = 96  # tokens of an answer
ROOM = 768  # tokens of prompt and answer
MOST = 3  # drafts a round
DRAWN = 0.8  # the temperature of drawn answers
NEAR = 0.25  # two logits this near may change places where batches of other sizes are computed
CLOSE = 0.02  # by how much the logits of the unrounded head may differ on average


def check(head: HeadContext, work: Path) -> tuple[float, str]:
    """By how much llama.cpp's logits of the head differ from PyTorch's, on average and in words."""
    known = np.load(work / "reference.npz")
    kept, same, count, gaps, number = known["kept"], 0, 0, [], 0
    while f"ids{number}" in known:
        head.cut(0)
        logits, _ = head.read(known[f"ids{number}"][1:].tolist(), head.fuse(known[f"features{number}"]), 0)
        if np.isfinite(np.delete(logits, kept, 1)).any():
            raise SystemExit("Tokens that are not in d2t have chances.")
        ours, theirs = logits[1:, kept], known[f"logits{number}"][1:]
        same += int((ours.argmax(-1) == theirs.argmax(-1)).sum())
        count += len(ours)
        gaps.append(float(np.abs(ours - theirs).mean()))
        number += 1
    mean = float(np.mean(gaps))
    return (
        mean,
        f"logits differ by {mean:.4f} on average, the most likely token at {count - same} of {count} places",
    )


def equal_texts(ours: Told, plain: Told) -> bool:
    """Whether the texts are equal up to the first place where two logits nearly tied."""
    for a, b, gap in zip(ours.ids, plain.ids, plain.gaps, strict=False):
        if a != b:
            return gap < NEAR
    return True


def step_share(target: Target, head: HeadContext, prompt: list[int]) -> float:
    """A draft step in passes of the target over one token: the median of 40 each, in turns."""
    target.cut(0)
    target.read(prompt, 0)
    fused = head.fuse(target.features(len(prompt)))
    head.cut(0)
    head.read(prompt[1:], fused[:-1], 0)
    taken: list[list[float]] = [[], []]
    for i in range(40):
        start = time.perf_counter()
        target.read(prompt[:1], len(prompt) + i)
        target.logits(1)
        between = time.perf_counter()
        head.read(prompt[:1], fused[-1:], len(prompt) - 1 + i)
        taken[0].append(between - start)
        taken[1].append(time.perf_counter() - between)
    return float(np.median(taken[1]) / np.median(taken[0]))


def rates(answers: list[Told]) -> tuple[float, float, list[float]]:
    """The share of first drafts that passed, tokens a round, and the share that passed by place."""
    tried, passed = (np.sum([getattr(each, name) for each in answers], 0) for name in ("tried", "accepted"))
    by_place = (passed / np.maximum(tried, 1)).tolist()
    return by_place[0], 1 + float(passed.sum() / max(tried[0], 1)), by_place


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--each", type=int, default=20, help="prompts of each kind")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    target = Target(args.target, ROOM, LAYERS, args.threads)
    for name, most in (("head-f32", CLOSE), ("head", np.inf)):
        head = HeadContext(args.work / f"{name}.gguf", target, ROOM)
        differ, words = check(head, args.work)
        print(f"{name}: {words}", flush=True)
        if differ > most:
            raise SystemExit("llama.cpp's graph does not compute what was trained.")
    groups = held_out()
    found: dict[str, dict[str, list[Told]]] = {"greedy": {}, "drawn": {}}
    parted = []
    share = 0.0
    for kind, prompts in groups.items():
        for number, text in enumerate(prompts[: args.each]):
            ids = target.tokenize(f"{opening(SYSTEM)}{text}<|im_end|>\n<|im_start|>assistant\n")
            share = share or step_share(target, head, ids)
            rng = np.random.default_rng(number)
            plain = write(target, None, ids, LENGTH, 0, 0.0, rng)
            greedy = write(target, head, ids, LENGTH, MOST, 0.0, rng)
            drawn = write(target, head, ids, LENGTH, MOST, DRAWN, rng)
            if not equal_texts(greedy, plain):
                parted.append(text)
            found["greedy"].setdefault(kind, []).append(greedy)
            found["drawn"].setdefault(kind, []).append(drawn)
        first, a_round, _ = rates(found["greedy"][kind])
        print(f"{kind}: first drafts {first:.3f}, {a_round:.2f} tokens a round", flush=True)
    lines = ["| | all | " + " | ".join(groups) + " |", "|---|---:" + "|---:" * len(groups) + "|"]
    for way, by_kind in found.items():
        answers = [[each for group in by_kind.values() for each in group], *by_kind.values()]
        told = [rates(each) for each in answers]
        words = "greedy" if way == "greedy" else f"drawn at temperature {DRAWN}"
        lines.append(
            f"| first draft accepted, {words} | " + " | ".join(f"{each[0]:.2f}" for each in told) + " |"
        )
        lines.append(f"| accepted by place, {words} | " + " | ".join(
            " ".join(f"{share:.2f}" for share in each[2]) for each in told) + " |")  # fmt: skip
        lines.append(
            f"| tokens a round of {MOST} drafts, {words} | "
            + " | ".join(f"{each[1]:.2f}" for each in told)
            + " |"
        )
    count = sum(len(each) for each in found["greedy"].values())
    rest = " |" * len(groups)
    lines.append(f"| one draft step in passes of the target, {args.threads} thread(s) | {share:.3f} |{rest}")
    equal = f"{count - len(parted)} of {count}"
    lines.append(f"| greedy texts equal to the target's own, near-ties apart | {equal} |{rest}")
    (args.work / "table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    for text in parted:
        print("parted:", repr(text))


if __name__ == "__main__":
    main()
