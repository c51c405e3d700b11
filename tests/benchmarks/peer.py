"""Tokens/s against llama.cpp's own speculative loop: the same files, prompts, libraries and length, greedy.

    make bench-peer        (it builds the peer; or DRAFTSCOPE_PEER=.../llama-speculative-simple and this file)

Both draft four tokens a round with one thread, end of generation ignored, and only decoding counts: on our
side from the start of round 0, with everything recorded, on the peer's side its own "decoded" line. The two
take turns on every prompt; a ratio is the speed of our run / that of the peer's next run. The peer finishes
the round in which it reaches the length; its texts are compared as far as ours go.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # for both
PEER = Path(os.environ.get("DRAFTSCOPE_PEER", "llama-speculative-simple"))
if (PEER.parent / "lib").is_dir():
    # The very libraries that the peer is linked with, also where .venv has another build of them.
    os.environ["LLAMA_CPP_LIB_PATH"] = str(PEER.parent / "lib")

from app.engine import Engine, GenerationRequest, Message  # noqa: E402
from app.engine.process.messages import Started  # noqa: E402
from tests.benchmarks.measure import DEMO_PAIR, as_user, demo_prompts, measure, one_thread, spread  # noqa: E402

TARGET, DRAFT = DEMO_PAIR / "target.gguf", DEMO_PAIR / "draft.gguf"
N_MAX = 4


@dataclass(frozen=True, slots=True)
class Run:
    text: str
    tokens_per_second: float
    acceptance: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--prompts", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=256)
    options = parser.parse_args()
    ratios: list[float] = []
    print(f"{'tokens/s':28}{'Draftscope':>20}{'llama.cpp':>20}{'ratio':>20}  acceptance   text")
    with Engine(one_thread(TARGET), one_thread(DRAFT)) as engine:
        for prompt in demo_prompts(options.prompts):
            ours, peers = [], []
            for repeat in range(options.repeats + 1):  # the first is a warm-up
                pair = run_ours(engine, prompt, options.tokens), run_peer(engine, prompt, options.tokens)
                if repeat:
                    ours.append(pair[0])
                    peers.append(pair[1])
            own = [a.tokens_per_second / b.tokens_per_second for a, b in zip(ours, peers, strict=True)]
            ratios += own
            cells = (
                spread([run.tokens_per_second for run in ours], "{:.0f}"),
                spread([run.tokens_per_second for run in peers], "{:.0f}"),
                spread(own, "{:.2f}"),
            )
            shares = f"{ours[0].acceptance:.2f} / {peers[0].acceptance:.2f}"
            name = prompt.splitlines()[0][:26]
            print(f"{name:28}" + "".join(f"{cell:>20}" for cell in cells), f" {shares}  ", end="")
            print(compare(ours[0].text, peers[0].text), flush=True)
    quarters = statistics.quantiles(ratios, n=4)
    print(
        f"{'all, goal 1.1':68}{spread(ratios, '{:.2f}'):>20}  quartiles {quarters[0]:.2f}, {quarters[2]:.2f}"
    )


def run_ours(engine: Engine, prompt: str, tokens: int) -> Run:
    request = GenerationRequest(
        messages=as_user(prompt),
        strategy=f"draft-simple:n_max={N_MAX}",
        max_tokens=tokens,
        ignore_eos=True,
        cold=True,
    )
    answer = measure(engine, request)
    speed = answer.tokens / answer.totals.seconds
    return Run(answer.totals.text, speed, answer.accepted / answer.drafted)


def run_peer(engine: Engine, prompt: str, tokens: int) -> Run:
    text = rendered(engine, prompt)
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(text + "\n")  # the peer takes the last line end away
        file.flush()
        command = [
            str(PEER), "--model", str(TARGET), "--model-draft", str(DRAFT), "--file", file.name,
            "--spec-type", "draft-simple", "--spec-draft-n-max", str(N_MAX), "--ctx-size", "2048",
            "--threads", "1", "--threads-draft", "1", "--n-predict", str(tokens),
            "--temp", "0", "--ignore-eos", "--no-escape",
        ]  # fmt: skip
        for _attempt in range(5):
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            log = done.stderr + done.stdout
            speed = re.search(r"decoded .* speed: +([\d.]+) t/s", log)
            share = re.search(r"accept += +([\d.]+)%", log)
            # Sometimes llama.cpp exits before its log thread has written everything.
            if done.returncode or (speed and share):
                break
    if done.returncode or not speed or not share:
        raise SystemExit(f"{PEER} failed with {done.returncode}:\n{done.stderr[-2000:]}")
    answer = done.stdout.strip("\n").removeprefix(text.strip("\n")).removeprefix("\n")
    return Run(answer, float(speed[1]), float(share[1]) / 100)


def rendered(engine: Engine, prompt: str) -> str:
    """The prompt as the chat template writes it: what the engine itself decodes."""
    started = next(iter(engine.generate(GenerationRequest(messages=(Message("user", prompt),)))))
    assert isinstance(started, Started)
    return started.header.prompt


def compare(ours: str, peers: str) -> str:
    ours = ours.rstrip("\n")
    for at, (mine, theirs) in enumerate(zip(ours, peers, strict=False)):
        if mine != theirs:
            return f"parts after {at} of {len(ours)} characters"
    return "equal" if len(peers) >= len(ours) else "the peer's is shorter"


if __name__ == "__main__":
    main()
