"""Reading the prompts to try, and what those of SmolLM2 claim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.base.paths import REAL_DRAFT, find_paths
from app.demo import FIRST_PROMPT, REAL_PAIR, DemoPrompt, read_demo, read_prompts, read_real
from app.engine import Engine, GenerationRequest, Message
from app.engine.errors import UserError
from app.engine.fates import Verdict
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.types import FinishReason, ModelOptions, Sampling

PROMPT = {
    "category": "count",
    "title": "Counting",
    "prompt": "Count from 1 to 9.",
    "look": "Digits.",
    "strategy": "draft-simple:n_max=4",
}


@pytest.fixture
def resources(tmp_path: Path) -> Path:
    (tmp_path / "demo_pair").mkdir()
    return tmp_path


def write(resources: Path, **changes: Any) -> None:
    files = {"target": {"file": "target.gguf", "bytes": 1}, "draft": {"file": "draft.gguf"}}
    files["small-draft"] = {"file": "small.gguf"}
    again = PROMPT | {"title": "Counting again"}
    card = {"name": "A pair", "files": files, "prompts": [PROMPT | changes, again]}
    (resources / "demo_pair" / "pair.json").write_text(json.dumps(card), encoding="utf-8")


def test_what_is_not_said_is_greedy_with_the_first_draft(resources: Path) -> None:
    write(resources)
    demo, _ = read_demo(resources)
    assert (demo.temperature, demo.draft_path) == (0.0, "bundled:demo_pair/draft.gguf")
    assert (demo.mode, demo.sampling(Sampling(top_k=5, seed=3))) == ("chat", Sampling(seed=3))
    assert demo.spec.needs_draft
    write(resources, temperature=1, draft="small.gguf", strategy="prompt-lookup", seed=7)
    demo, _ = read_demo(resources)
    assert demo.sampling(Sampling(top_k=5, seed=3)) == Sampling(temperature=1.0, seed=7)
    assert (demo.temperature, demo.draft_path) == (1.0, "bundled:demo_pair/small.gguf")
    assert not demo.spec.needs_draft


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"strategy": "magic"}, "magic"),
        ({"strategy": "draft-simple:n_max=0"}, "n_max"),
        ({"strategy": "draft-simple:verify=greedy", "temperature": 0.5}, "greedy"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": 1}, "has no seed"),
        ({"temperature": "warm"}, "temperature"),
        ({"seed": -2}, "seed"),
        ({"mode": "song"}, "song"),
        ({"title": "Counting again"}, "same title"),
        ({"draft": "big.gguf"}, "no file big.gguf"),
        ({"strategie": "none"}, "strategie"),
        ({"look": None}, "look"),
    ],
)
def test_a_prompt_that_cannot_be_asked_is_named(resources: Path, changes: dict[str, Any], said: str) -> None:
    write(resources, **changes)
    with pytest.raises(UserError) as caught:
        read_demo(resources)
    assert said in str(caught.value) and "pair.json is damaged" in str(caught.value)


def test_a_card_that_is_not_there_or_no_json(resources: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_demo(resources)
    (resources / "demo_pair" / "pair.json").write_text("{")
    with pytest.raises(UserError, match="is damaged"):
        read_demo(resources)


SPELT = (
    "Yesterday my friend and I went to the library. We found an old book about the stars. It was so "
    "interesting that we read it until the evening."
)
MONTHS = (
    "The months of the year are: January, February, March, April, May, June, July, August, September, "
    "October, November, December."
)
TEXTS = {
    "Three wrong words": SPELT,
    "A text, word for word": "The lighthouse on the northern cliff was built in 1871. Its lamp was lit every "
    "evening by the keeper, and its light could be seen from the harbour, from the fishing boats and from "
    "the village behind the hill.",
    "Two sentences into one": "The old bridge was closed on Monday because of the flood, and the town will "
    "repair it in the spring.",
    "A person as JSON": '{\n  "name": "Maria Lopez",\n  "age": 34,\n  "city": "Lisbon"\n}',
    "A short function": "```python\ndef largest(values):\n    return max(values)\n```\n\nThis function uses "
    "Python's built-in `max` function to find the largest value.",
    "Three cities": "1. Rome, Italy\n2. Florence, Italy\n3. Venice, Italy",
    "Five colors": "1. Red\n2. Blue\n3. Green\n4. Yellow\n5. White",
    "The same text without drafts": SPELT,
    "Where copying does not pay": MONTHS,
    "Copying only where it pays": MONTHS,
}
REFUSED = {  # title -> (drafted, what SmolLM2 put there)
    "Three wrong words": ((" fre", " friend"), (" lib", " library"), (" int", " interesting")),
    "Two sentences into one": ((".", ","),),
    "A person as JSON": (("job", "name"), ("job", "city")),
    "Three cities": ((" Rome", " Florence"), (" Florence", " Venice")),
    "Five colors": ((" Anna", " Blue"), (" Anna", " Green")),
    "Where copying does not pay": ((" March", " April"), (" November", " December")),
}
NEAR = 0.03  # smaller than the lead of any of their tokens here, larger than what kernels differ by


def test_the_prompts_of_smollm2_are_those_of_its_file() -> None:
    prompts = read_real(find_paths().resources)
    assert len(prompts) == 12 and len({demo.look for demo in prompts}) == 12
    titles = {demo.title for demo in (*prompts, *read_demo(find_paths().resources))}
    assert len(titles) == 28, "the panel knows them by their titles"
    assert read_prompts(find_paths()) == read_demo(find_paths().resources), "without its file"


@pytest.mark.real
def test_the_head_is_tried_in_a_first_answer(real_file: Path) -> None:
    """Before passes are timed. length=auto decides by times: a busy machine's answer may pass without it."""
    head, prompt = find_paths().model(REAL_DRAFT), (Message("user", FIRST_PROMPT),)
    request = GenerationRequest(messages=prompt, strategy=REAL_PAIR.strategy, max_tokens=256)
    with Engine(ModelOptions(str(real_file)), ModelOptions(head)) as engine:
        for _ in range(8):
            engine.reset()
            asked = {name for round in engine.answer(request).rounds for name in round.asked or ()}
            if "draft-eagle3" in asked:
                return
    pytest.fail("none of eight first answers tried the head")


@pytest.mark.real
def test_what_waits_at_the_first_start_has_every_fate_on_every_processor(real_engine: Engine) -> None:
    # Without the head, which is not loaded here, and length=auto, which may find that drafts do not pay.
    fixed = REAL_PAIR.strategy.partition("+draft-eagle3")[0]
    trace = asked(real_engine, DemoPrompt("", "", FIRST_PROMPT, "", fixed))
    assert trace.text.startswith("Maria lives in a small house by the sea. Every morning, she walks")
    assert trace.totals.finish_reason is FinishReason.END
    tops = [top for round in trace.rounds for top in round.target_top[: len(round.emitted)]]
    assert all(top.p[0] > 1.5 * top.p[1] for top in tops), "far from a tie"
    fates = {token.verdict.value for round in trace.rounds for token in round.drafted}
    assert fates | {token.origin.value for round in trace.rounds for token in round.emitted} >= {
        "accepted", "rejected", "resampled", "bonus", "plain"
    }  # fmt: skip


@pytest.mark.verify
@pytest.mark.real
@pytest.mark.same_text
def test_what_the_prompts_of_smollm2_claim_is_true(real_engine: Engine) -> None:
    traces = {demo.title: asked(real_engine, demo) for demo in read_real(find_paths().resources)}
    stats = {title: Statistics.of(trace.rounds) for title, trace in traces.items()}
    parted = {title for title, text in TEXTS.items() if not is_text(traces[title], text)}
    for title in REFUSED.keys() - parted:
        for drafted, own in REFUSED[title]:
            assert (drafted, own) in refused(traces[title]), title
    for title in {"Three wrong words", "A text, word for word"} - parted:
        assert stats[title].emitted > 3 * stats[title].rounds, title
    longest = [len(round.drafted) for round in traces["A text, word for word"].rounds]
    assert max(longest) > 15 > longest[1] or "A text, word for word" in parted
    code = traces["A short function"].text.partition("```\n\n")[0]
    assert "def largest(values):" in code
    pays, limits = stats["Copying only where it pays"], stats["Where copying does not pay"]
    assert limits.accepted < limits.drafted / 5 and pays.drafted < limits.drafted
    assert stats["The same text without drafts"].drafted == 0
    stories = [traces[title] for title in ("A story, retold", "The same story, a different seed")]
    for story in stories:
        judged = [token for round in story.rounds for token in round.drafted if token.u is not None]
        assert len(judged) > 10 and {token.q for token in judged} == {1.0}
        assert all((token.u < token.p) == (token.verdict is Verdict.ACCEPTED) for token in judged)
    assert stories[0].text != stories[1].text


def asked(engine: Engine, demo: DemoPrompt) -> Trace:
    request = GenerationRequest(
        messages=(Message("user", demo.prompt),),
        strategy=demo.strategy,
        sampling=demo.sampling(Sampling()),
        max_tokens=128,
        cold=True,
    )
    return engine.answer(request)


def is_text(trace: Trace, text: str) -> bool:
    """Whether it says so; where it does not, the two best tokens must have been near a tie."""
    if trace.text == text:
        return True
    leads = [top.p[0] - top.p[1] for round in trace.rounds for top in round.target_top if len(top.p) > 1]
    assert min(leads) < NEAR, trace.text
    return False


def refused(trace: Trace) -> set[tuple[str, str]]:
    """(the rejected token, the target's own) of every round with a rejection."""
    return {
        (token.piece.decode(errors="replace"), round.emitted[-1].piece.decode(errors="replace"))
        for round in trace.rounds
        for token in round.drafted
        if token.verdict is Verdict.REJECTED
    }
