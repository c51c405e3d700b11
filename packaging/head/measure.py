"""Compare the head with PyTorch's results, let it draft at the held-out prompts, and write the table."""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

import numpy as np
from app.engine import Engine, ModelOptions

from drafting import HeadContext, Told, write
from pays import ask
from pays import held_out as in_turns
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
    """Return how much llama.cpp's logits of the head differ from PyTorch's: the mean, and a sentence."""
    known = np.load(work / "reference.npz")
    kept, same, count, gaps, number = known["kept"], 0, 0, [], 0
    while f"ids{number}" in known:
        head.cut(0)
        logits, _ = head.read(known[f"ids{number}"][1:].tolist(), head.fuse(known[f"features{number}"]), 0)
        if np.isfinite(np.delete(logits, kept, 1)).any():
            raise SystemExit("Tokens outside d2t have probabilities above 0.")
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
    """Whether the texts are equal up to the first rounding tie."""
    for a, b, gap in zip(ours.ids, plain.ids, plain.gaps, strict=False):
        if a != b:
            return gap < NEAR
    return True


def step_share(target: Path, head: Path, threads: int) -> float:
    """The cost of one more drafted token, in passes of the target over one token. It comes from median rounds
    of answers to twelve prompts, without drafts and with drafts of one and of three tokens."""
    medians: list[dict[int, float]] = []
    files = (ModelOptions(str(file), ctx_size=1024, threads=threads) for file in (target, head))
    with Engine(*files) as engine:
        for prompt in ["Say hello.", *in_turns()[:12]]:  # the first is a warm-up
            found = {}
            for most in (0, 1, MOST):
                trace = ask(engine, prompt, f"draft-eagle3:n_max={most}" if most else "none")
                whole = [each for each in trace.rounds[1:] if len(each.drafted) == most]
                found[most] = median(each.draft_seconds if most else each.verify_seconds for each in whole)
            medians.append(found)
    return median((found[MOST] - found[1]) / (MOST - 1) / found[0] for found in medians[1:])


def rates(answers: list[Told]) -> tuple[float, float, list[float]]:
    """The accepted share of first drafts, tokens a round, and the accepted share by place."""
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
    for kind, prompts in groups.items():
        for number, text in enumerate(prompts[: args.each]):
            ids = target.tokenize(f"{opening(SYSTEM)}{text}<|im_end|>\n<|im_start|>assistant\n")
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
    share, rest = step_share(args.target, args.work / "head.gguf", args.threads), " |" * len(groups)
    lines.append(
        f"| one more draft token in passes of the target, {args.threads} thread(s) | {share:.3f} |{rest}"
    )
    equal = f"{count - len(parted)} of {count}"
    lines.append(f"| greedy texts equal to the target's own, rounding ties aside | {equal} |{rest}")
    (args.work / "table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    for text in parted:
        print("parted:", repr(text))


if __name__ == "__main__":
    main()
