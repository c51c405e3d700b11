"""Whether an answer is right, and the frozen prompts that are judged (`evaluation.jsonl`).

`python -m judging.judge`, here in the recipe's folder, writes the prompts, once, before any training.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from base.scene import Dice, Expect
from scenes import world

PROMPTS = Path(__file__).parents[1] / "evaluation.jsonl"
SEED = 77
SECONDS = 10
RUN = """
import json, sys
given, code, calls = json.loads(sys.stdin.read())
scope = {}
exec(given, scope)
exec(code, scope)
print("\\n" + json.dumps([repr(eval(call, scope)) for call in calls]))
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One prompt: the chat up to the question, and what its answer must satisfy."""

    kind: str
    messages: tuple[tuple[str, str], ...]
    expect: Expect


def blocks(answer: str) -> list[str]:
    """The fenced blocks of an answer."""
    return re.findall(r"```\w*\n(.*?)\n?```", answer, re.DOTALL)


def run(given: str, code: str, calls: list[str]) -> list[str] | None:
    """`repr` of each call once the code has run in a process of its own; None where it fails."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", RUN],
            input=json.dumps([given, code, calls]),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
    except subprocess.SubprocessError:
        return None
    return list(json.loads(done.stdout.splitlines()[-1]))


def fault(answer: str, expect: Expect) -> str:
    """What is wrong with the answer, in a few words; empty where nothing is."""
    if expect.text and answer.strip() != expect.text:
        return "differs from the text"
    place = 0
    for phrase in expect.phrases:
        place = answer.find(phrase, place)
        if place < 0:
            return f"lacks {phrase!r}"
    if expect.calls:
        calls = [call for call, _ in expect.calls]
        results = run(expect.given, "\n".join(blocks(answer)), calls)
        if results is None:
            return "the code does not run"
        if results != [result for _, result in expect.calls]:
            return f"the code gives {results}"
    if expect.value is not None:
        try:
            if json.loads(blocks(answer)[0]) != expect.value:
                return "other fields"
        except (IndexError, ValueError):
            return "no JSON"
    return ""


def load() -> list[Case]:
    """The frozen prompts."""
    cases = []
    for line in PROMPTS.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        expect = entry["expect"]
        for name in ("phrases", "calls"):
            expect[name] = tuple(
                tuple(value) if isinstance(value, list) else value for value in expect.get(name, ())
            )
        messages = tuple((role, content) for role, content in entry["messages"])
        cases.append(Case(entry["kind"], messages, Expect(**expect)))
    return cases


def main() -> None:
    """Draw the prompts from what training never sees; the last question of a scene is judged."""
    dice = Dice(SEED, held_out=True)
    lines: dict[str, None] = {}
    for name, kind in world.KINDS.items():
        wanted = len(lines) + kind.judged
        while len(lines) < wanted:
            *before, last = kind.make(dice)
            if last.expect == Expect():
                continue
            reason = fault(last.assistant, last.expect)
            if reason:
                raise ValueError(f"the generator's own answer is wrong: {reason}\n{last}")
            messages = [m for turn in before for m in (("user", turn.user), ("assistant", turn.assistant))]
            expect = {key: value for key, value in asdict(last.expect).items() if value}
            entry = {"kind": name, "messages": [*messages, ("user", last.user)], "expect": expect}
            lines[json.dumps(entry, ensure_ascii=False)] = None
    PROMPTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} prompts")


if __name__ == "__main__":
    main()
