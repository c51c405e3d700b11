"""Hold the GGUF files against the reference, then let them answer the demo prompts.

Runs in the app's environment: it needs llama-cpp-python, not PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path

# Read by the OpenMP runtime when the library is loaded, so it has to stand before the import.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import numpy as np
from llama_cpp import Llama

CONTEXT = 2048
DRAFT_LENGTH = 4
MOST_TOKENS = 400


@dataclass(frozen=True, slots=True)
class Agreement:
    """Greedy speculation replayed from where the draft's argmax equals the target's token."""

    positions: int
    equal: int
    drafted: int
    accepted: int
    rounds: int


def load(path: Path) -> Llama:
    return Llama(str(path), n_ctx=CONTEXT, n_batch=512, n_threads=1, logits_all=True, verbose=False)


def logits_of(model: Llama, ids: list[int]) -> np.ndarray:
    """Logits (len(ids), vocab) of a fresh pass."""
    model.reset()
    model.eval(ids)
    return model.scores[: len(ids)].copy()


def prompt_ids(model: Llama, messages: list[tuple[str, str]]) -> list[int]:
    """Ids of a chat up to where the assistant begins; contents cannot become control tokens."""
    ids: list[int] = []
    for role, content in messages:
        ids += model.tokenize(f"<|im_start|>{role}\n".encode(), add_bos=False, special=True)
        ids += model.tokenize(content.encode(), add_bos=False, special=False)
        ids += model.tokenize(b"<|im_end|>\n", add_bos=False, special=True)
    return ids + model.tokenize(b"<|im_start|>assistant\n", add_bos=False, special=True)


def greedy(model: Llama, ids: list[int]) -> list[int]:
    """The greedy answer, its end token included if it came."""
    model.reset()
    model.eval(ids)
    answer: list[int] = []
    while len(answer) < MOST_TOKENS:
        answer.append(int(model.scores[model.n_tokens - 1].argmax()))
        if answer[-1] == model.token_eos():
            break
        model.eval(answer[-1:])
    return answer


def agreement(draft: Llama, ids: list[int], answer: list[int]) -> Agreement:
    """Accepted prefixes equal the answer, so one pass over it tells every round."""
    proposals = logits_of(draft, ids + answer[:-1])[len(ids) - 1 :].argmax(-1)
    equal = proposals == np.array(answer)
    drafted = accepted = rounds = place = 0
    while place < len(answer):
        length = min(DRAFT_LENGTH, len(answer) - place - 1)
        kept = 0
        while kept < length and equal[place + kept]:
            kept += 1
        drafted, accepted, rounds = drafted + length, accepted + kept, rounds + 1
        place += kept + 1
    return Agreement(len(answer), int(equal.sum()), drafted, accepted, rounds)


def check_tokens(model: Llama, work: Path) -> None:
    known = json.loads((work / "texts.json").read_text())
    wrong = 0
    for text, ids in zip(known["texts"], known["ids"], strict=True):
        found = model.tokenize(text.encode(), add_bos=False, special=False)
        if found != ids or model.detokenize(found).decode() != text:
            wrong += 1
            print("differs:", repr(text[:80]), ids[:20], found[:20])
    print(f"tokenizer: {len(known['texts']) - wrong} of {len(known['texts'])} texts equal")


def check_logits(model: Llama, role: str, work: Path, label: str) -> None:
    reference = np.load(work / "reference.npz")
    if role not in reference:
        return
    ids = reference["inputs"].tolist()
    found, wanted = logits_of(model, ids), reference[role]
    gap = np.abs(found - wanted)
    same = (found.argmax(-1) == wanted.argmax(-1)).mean()
    print(f"{role} {label}: logits differ by {gap.mean():.4f} on average, {gap.max():.4f} at most;")
    print(f"  argmax equal at {100 * same:.2f} % of {len(ids)} positions")
    shifted = found - found.max(-1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(-1))
    loss = log_sum - shifted[np.arange(len(ids)), reference["labels"]]
    answers = reference["weights"] == 1
    for start in range(0, len(ids), 512):
        part = slice(start, start + 512)
        mean = loss[part][answers[part]].mean()
        print(f"  loss at positions {start} to {start + 511}: {mean:.3f}")


def show_prompts(target: Llama, draft: Llama, prompts: list[dict[str, str]]) -> None:
    parts: list[Agreement] = []
    expected: list[bool] = []
    for prompt in prompts:
        ids = prompt_ids(target, [("user", prompt["prompt"])])
        answer = greedy(target, ids)
        text = target.detokenize(answer).decode(errors="replace")
        ended = answer[-1] == target.token_eos()
        part = agreement(draft, ids, answer)
        parts.append(part)
        print(f"\n=== {prompt['category']}: {prompt['prompt']}")
        print(text)
        if "answer" in prompt:
            expected.append(text == prompt["answer"])
            if not expected[-1]:
                print(f"--- the generator wrote: {prompt['answer']}")
        print(
            f"--- {len(answer)} tokens, {'ended' if ended else 'CUT'}; greedy agreement "
            f"{part.equal / part.positions:.0%}; k={DRAFT_LENGTH}: accepted {part.accepted} of "
            f"{part.drafted} ({part.accepted / max(1, part.drafted):.0%}), "
            f"{part.positions / part.rounds:.2f} tokens per pass"
        )
    if expected:
        print(f"\n{sum(expected)} of {len(expected)} answers are the generator's to the letter")
    positions, equal, drafted, accepted, rounds = (
        sum(getattr(part, field) for part in parts) for field in Agreement.__slots__
    )
    print(
        f"\nall prompts: greedy agreement {equal / positions:.1%}, accepted {accepted} of "
        f"{drafted} ({accepted / drafted:.1%}), {positions / rounds:.2f} tokens per pass"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pair", type=Path, required=True)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--f32", type=Path, help="folder with F32 exports to compare tightly")
    parser.add_argument("--prompts", type=Path, help="JSON with other prompts than the pair's")
    args = parser.parse_args()
    target, draft = load(args.pair / "target.gguf"), load(args.pair / "draft.gguf")
    if args.work:
        check_tokens(target, args.work)
        for role, model in (("target", target), ("draft", draft)):
            check_logits(model, role, args.work, "Q8_0")
            if args.f32:
                check_logits(load(args.f32 / f"{role}.gguf"), role, args.work, "F32")
    pair = json.loads((args.prompts or args.pair / "pair.json").read_text(encoding="utf-8"))
    show_prompts(target, draft, pair["prompts"])


if __name__ == "__main__":
    main()
