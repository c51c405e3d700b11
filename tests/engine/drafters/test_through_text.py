"""draft-simple through text: a draft with another vocabulary is accepted often, and answers stay equal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from app.engine.drafters.through_text import ThroughText
from app.engine.engine import Engine
from app.engine.errors import SettingError
from app.engine.native import Context
from app.engine.record.trace import Trace
from app.engine.strategy import StrategySpec
from app.engine.types import FinishReason, GenerationRequest, Message, ModelOptions, Sampling
from tests.answers import answer, assert_same_answer, events_of
from tests.equality import RULES, Baselines
from tests.files.respelled import write_respelled
from tests.files.tiny import Tiny, spelled
from tests.law import PROMPT

Make = Callable[[Tiny], Path]


def chain(
    name: str, *tokens: str, words: tuple[str, ...] = (), control: tuple[str, ...] = (), **more
) -> Tiny:
    """A model that writes the same text for ever, in the tokens given."""
    known = Tiny().control
    return Tiny(
        name=name,
        n_embd=320,
        chain=tuple(token if token in (*known, *control) else spelled(token) for token in tokens)
        or more.pop("raw"),
        words=words,
        control=control or known,
        **more,
    )


CODE = "def f:\n    return x\n"
CODE_IN_WORDS = chain(
    "words",
    "def", " f", ":", "\n   ", " return", " x", "\n",
    words=("def", " f", "\n   ", " return", " x"),
)  # fmt: skip
CODE_IN_PIECES = chain(
    "pieces",
    "de", "f", " f", ":", "\n  ", " ", " ret", "urn", " x", "\n",
    words=("de", " f", "\n  ", " ret", "urn", " x"), order=4,
)  # fmt: skip
CODE_IN_SENTENCEPIECE = chain(
    "sentencepiece",
    raw=("def", "▁f", ":\n", "▁▁▁", "▁return", "▁x", "<0x0A>"),
    words=("def", " def", " f", ":\n", "   ", " return", " x"), sentencepiece=True,
)  # fmt: skip
SIGNS = "aé🙂b c東\n"
SIGNS_IN_BYTES = chain("bytes", raw=tuple(spelled(SIGNS)))
SIGNS_IN_SIGNS = chain("signs", *SIGNS[:-4], " c", *SIGNS[-2:], words=("é", "🙂", " c", "東"))
WORD = "The\tquick\n"
WORD_IN_WORDS = chain("word", "The", "\t", "quick", "\n", words=("The", "quick"))
WORD_IN_BYTES = chain("letters", *WORD)


SAME_TEXT = [
    (CODE_IN_WORDS, CODE_IN_PIECES, CODE),
    (CODE_IN_WORDS, CODE_IN_SENTENCEPIECE, CODE),
    (CODE_IN_SENTENCEPIECE, CODE_IN_WORDS, CODE),
    (SIGNS_IN_SIGNS, SIGNS_IN_BYTES, SIGNS),
    (SIGNS_IN_BYTES, SIGNS_IN_SIGNS, SIGNS),
    (WORD_IN_WORDS, WORD_IN_BYTES, WORD),
]


def name(value: object) -> str:
    return value.name if isinstance(value, Tiny) else ""


def totals(trace: Trace) -> tuple[int, int]:
    return sum(len(round.drafted) for round in trace.rounds), sum(round.accepted for round in trace.rounds)


@pytest.mark.same_text
@pytest.mark.parametrize("k", [1, 2, 3, 7])
@pytest.mark.parametrize(("target", "draft", "text"), SAME_TEXT, ids=name)
def test_a_draft_that_writes_the_same_text_is_accepted(
    tiny_file: Make, target: Tiny, draft: Tiny, text: str, k: int
) -> None:
    with Engine(tiny_file(target), tiny_file(draft)) as engine:
        assert engine.pair.vocabulary.startswith("different: through text (")
        settings: dict[str, Any] = {"prompt": text * 2, "max_tokens": 60, "ignore_eos": True}
        plain = answer(engine, **settings)
        assert (text * 9).startswith(plain.text[:20])
        trace = answer(engine, strategy=f"draft-simple:n_max={k}", **settings)
        assert_same_answer(trace, plain)
        drafted, accepted = totals(trace)
        assert max(len(round.drafted) for round in trace.rounds) == k
        assert accepted > 0.6 * drafted, "but for a last token that could yet have become a longer one"
        assert accepted > 0.6 * (60 - len(trace.rounds))


@pytest.mark.same_text
def test_a_draft_with_longer_tokens_than_the_target(tiny_file: Make) -> None:
    """The draft cannot continue inside its own words, so every second round may fail; the rest passes."""
    with Engine(tiny_file(CODE_IN_PIECES), tiny_file(CODE_IN_WORDS)) as engine:
        settings: dict[str, Any] = {"prompt": CODE * 2, "max_tokens": 60, "ignore_eos": True}
        trace = answer(engine, strategy="draft-simple:n_max=4", **settings)
        assert_same_answer(trace, answer(engine, **settings))
        assert totals(trace)[1] > 25


def test_no_word_is_proposed_before_the_draft_has_written_it_out(tiny_file: Make) -> None:
    with Engine(tiny_file(WORD_IN_WORDS), tiny_file(WORD_IN_BYTES)) as engine:
        trace = answer(engine, prompt=WORD, strategy="draft-simple:n_max=2", max_tokens=12, ignore_eos=True)
        assert [token.piece for token in trace.rounds[0].drafted] == [b"The", b"\t"]
        assert {round.draft_end for round in trace.rounds[:-1]} == {"n_max"}


def test_the_drafts_thoughts_are_not_told_as_the_targets(tiny_file: Make) -> None:
    with Engine(tiny_file(WORD_IN_WORDS), tiny_file(WORD_IN_BYTES)) as engine:
        trace = answer(engine, prompt=WORD, strategy="draft-simple", max_tokens=12)
    drafted = [token for round in trace.rounds for token in round.drafted]
    assert drafted
    assert all(token.draft_p is None and token.q == 1 and token.draft_draw is None for token in drafted)
    assert not any(round.draft_top for round in trace.rounds)


# The bundled pair, and its draft with the vocabulary in another order


@pytest.fixture(scope="module")
def respelled_engine(
    demo_pair: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    target, draft = demo_pair
    respelled = write_respelled(draft, tmp_path_factory.mktemp("respelled") / "draft.gguf", seed=3)
    with Engine(target, respelled) as engine:
        yield engine


def test_a_respelled_draft_drafts_a_chat_like_the_direct_draft(
    respelled_engine: Engine, demo_engine: Engine, demo_prompts: list[str], baselines: Baselines
) -> None:
    """The same model with other ids: nothing is lost in the conversion, including the template's control
    tokens."""
    through = direct = 0
    for prompt in demo_prompts[:3]:
        request = GenerationRequest(messages=(Message("user", prompt),), max_tokens=64, cold=True)
        strategy = "draft-simple:n_max=4"
        trace = baselines.check(respelled_engine, request, strategy)
        through += totals(trace)[1]
        direct += totals(baselines.check(demo_engine, request, strategy))[1]
    assert through > 0.95 * direct > 60


@pytest.fixture(
    scope="module",
    params=[
        Tiny(name="bytes", n_ctx=1024),
        Tiny(name="words", words=(" the", "é", "    ", "ing"), order=2, n_ctx=1024),
        Tiny(name="few letters", letters="abcdefgh", n_ctx=1024),
        Tiny(name="sentencepiece", words=(" the", " a"), sentencepiece=True, adds_bos=True, n_ctx=1024),
    ],
    ids=name,
)
def strange_engine(
    demo_pair: tuple[Path, Path], tiny_file: Make, request: pytest.FixtureRequest
) -> Iterator[Engine]:
    """The bundled target with a draft that does not know its texts."""
    with Engine(demo_pair[0], tiny_file(request.param)) as engine:
        yield engine


@pytest.mark.parametrize("rule", RULES)
def test_greedy_is_the_baseline_whatever_the_draft_writes(
    strange_engine: Engine, baselines: Baselines, rule: str
) -> None:
    prompt = "Repeat: naïve 🙂 東京\n    if x:\n\t\treturn 1"
    request = GenerationRequest(messages=(Message("user", prompt),), max_tokens=40, ignore_eos=True)
    trace = baselines.check(strange_engine, request, f"draft-simple:n_max=3{rule}")
    assert any(round.drafted for round in trace.rounds)


@pytest.mark.parametrize("seed", range(2))
def test_match_at_a_temperature_is_plain_sampling(
    respelled_engine: Engine, demo_prompts: list[str], baselines: Baselines, seed: int
) -> None:
    sampling = Sampling(temperature=0.8, top_k=50, seed=seed)
    request = GenerationRequest(
        messages=(Message("user", demo_prompts[seed]),), max_tokens=60, sampling=sampling
    )
    trace = baselines.check(respelled_engine, request, "draft-simple:n_max=4:verify=match")
    assert totals(trace)[1] > 5


def test_the_engine_of_the_law_tests_drafts_through_text(law_engine_through_text: Engine) -> None:
    assert law_engine_through_text.pair.vocabulary.startswith("different")
    settings: dict[str, Any] = {
        "strategy": "draft-simple:n_max=3",
        "sampling": Sampling(temperature=1, seed=7),
    }
    trace = answer(law_engine_through_text, prompt=PROMPT, max_tokens=90, ignore_eos=True, **settings)
    drafted, accepted = totals(trace)
    assert 3 < accepted < drafted


def test_the_next_answer_of_a_chat_reads_only_what_is_new(
    respelled_engine: Engine, demo_prompts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = respelled_engine
    first = Message("user", demo_prompts[0])
    request = GenerationRequest(messages=(first,), strategy="draft-simple", max_tokens=30, cold=True)
    said = Message("assistant", engine.answer(request).text)
    decoded: list[int] = []
    real = Context.decode

    def counted(self: Context, ids: np.ndarray, logits: int = 0) -> np.ndarray:
        if self is engine.draft and not logits:
            decoded.append(len(ids))
        return real(self, ids, logits)

    monkeypatch.setattr(Context, "decode", counted)
    events_of(engine, replace(request, messages=(first, said, Message("user", "And why?")), cold=False))
    assert 0 < sum(decoded) < 30
    decoded.clear()
    events_of(engine, replace(request, cold=False))
    assert sum(decoded) < 10, "the first chat again: its beginning is still there"


# Settings and ends


def test_a_drafts_distribution_is_refused(respelled_engine: Engine) -> None:
    with pytest.raises(SettingError, match="sample=1 needs a draft with the target's vocabulary"):
        answer(respelled_engine, strategy="draft-simple:sample=1", sampling=Sampling(temperature=1))


def test_p_min_and_n_min(respelled_engine: Engine) -> None:
    sure = answer(respelled_engine, "The draft is", strategy="draft-simple:n_max=8:p_min=0.9", max_tokens=40)
    assert any(round.draft_end == "p_min" for round in sure.rounds)
    short = answer(
        respelled_engine, "The draft is", strategy="draft-simple:n_max=8:n_min=8:p_min=0.9", max_tokens=40
    )
    assert all(len(round.drafted) in (0, 8) for round in short.rounds)
    assert any(round.draft_end == "shorter than n_min" for round in short.rounds)


def test_a_full_draft_context_ends_drafting_only(
    demo_pair: tuple[Path, Path], tiny_file: Make, baselines: Baselines
) -> None:
    """A text may have more tokens in the draft's vocabulary than in the target's."""
    draft = ModelOptions(str(tiny_file(Tiny(name="short"))), ctx_size=256)
    with Engine(ModelOptions(str(demo_pair[0]), ctx_size=512), draft) as engine:
        request = GenerationRequest(prompt="The draft is small. " * 8, max_tokens=120, ignore_eos=True)
        trace = baselines.check(engine, request, "draft-simple")
        assert trace.rounds[0].drafted
        assert trace.rounds[-3].draft_end == "the draft's context is full"
        longer = answer(engine, "The draft is small. " * 40, strategy="draft-simple", max_tokens=120)
        assert totals(longer) == (0, 0)


def test_the_targets_context_is_the_limit_where_it_is_the_shorter_one(tiny_file: Make) -> None:
    with Engine(
        ModelOptions(str(tiny_file(WORD_IN_WORDS)), ctx_size=256), tiny_file(WORD_IN_BYTES)
    ) as engine:
        trace = answer(engine, prompt=WORD * 2, strategy="draft-simple", max_tokens=400, ignore_eos=True)
        assert trace.totals is not None
        assert trace.totals.finish_reason is FinishReason.CONTEXT


# Control tokens and replacements

OTHER_MARKS = ("<eos>", "<turn>", "</turn>")


def marked(name: str, text: str, control: tuple[str, ...], end: str, order: int = 0) -> Tiny:
    return chain(name, *text, end, control=control, order=order)


@pytest.mark.parametrize(
    ("marks", "replaced", "proposed"),
    [
        (("<|end|>", "<|im_start|>", "<|im_end|>"), None, True),
        (OTHER_MARKS, None, False),
        (OTHER_MARKS, [["<|im_end|>", "</turn>"]], True),
    ],
)
def test_the_draft_ends_the_answer_by_the_targets_own_token(
    tiny_file: Make, marks: tuple[str, ...], replaced: object, proposed: bool
) -> None:
    target = marked("ends", "abcdefg", Tiny().control, "<|im_end|>")
    draft = marked("other ends", "abcdefg", marks, marks[2], order=6)
    with Engine(tiny_file(target), tiny_file(draft)) as engine:
        strategy = "draft-simple:n_max=8"
        if replaced:
            strategy += f":replace={quote(json.dumps(replaced))}"
        trace = answer(engine, prompt="abc", strategy=strategy, max_tokens=20)
        assert trace.totals is not None
        assert trace.totals.finish_reason is FinishReason.END
        assert trace.text == "defg"
        assert trace.rounds[0].draft_end == "the draft ended the answer"
        labels = [token.label for token in trace.rounds[0].drafted]
        assert labels == ["", "", "", "", *(["<|im_end|>"] if proposed else [])]
        assert trace.rounds[0].rejected == 0


@pytest.mark.same_text
def test_replacements_hold_both_ways(tiny_file: Make) -> None:
    """The target says "<think>" where the draft has learned "[T]"."""
    target = chain("thinks", "a", "<think>", "b", "\n", words=("<think>",))
    # GPT-2's split makes three tokens of "<think>", which the target's file has.
    target = chain("thinks", "a", "<", "think", ">", "b", "\n", words=("think",))
    draft = chain("t", *"a[T]b\n", order=9)
    pairs = quote(json.dumps([["<think>", "[T]"]]))
    text = "a<think>b\n"
    with Engine(tiny_file(target), tiny_file(draft)) as engine:
        settings: dict[str, Any] = {"prompt": text * 3, "max_tokens": 48, "ignore_eos": True}
        plain, swapped = (
            answer(engine, strategy=f"draft-simple:n_max=5{more}", **settings)
            for more in ("", f":replace={pairs}")
        )
        for drafted in (plain, swapped):
            assert_same_answer(drafted, answer(engine, **settings))
        assert plain.text.startswith(text)
        assert totals(swapped)[1] == totals(swapped)[0] > 2 * totals(plain)[1]


def test_pairs_are_written_in_the_grammar() -> None:
    pairs = '[["<a>:", "b+%"]]'
    spec = StrategySpec.parse(f"draft-simple:replace={quote(pairs)}")
    assert spec.parts[0].params.replace == pairs
    assert StrategySpec.parse(str(spec)) == spec
    with pytest.raises(SettingError, match="replace cannot be"):
        StrategySpec.parse("draft-simple:replace=[1]")


def test_a_draft_of_the_same_vocabulary_does_not_go_through_text(engine: Engine) -> None:
    answer(engine, strategy="draft-simple:n_max=2", max_tokens=4)
    ((_name, drafter),) = engine.warm.of(StrategySpec.parse("draft-simple"))
    assert not isinstance(drafter, ThroughText)


def test_a_prompt_longer_than_the_drafts_context_is_not_read(
    demo_pair: tuple[Path, Path], tiny_file: Make
) -> None:
    draft = ModelOptions(str(tiny_file(Tiny(name="short"))), ctx_size=256)
    with Engine(ModelOptions(str(demo_pair[0]), ctx_size=512), draft) as engine:
        answer(engine, "The draft is small. " * 40, strategy="draft-simple", max_tokens=4)
        assert engine.draft is not None
        assert engine.draft.n_cached == 0


def test_a_target_may_have_more_tokens_than_its_draft(tiny_file: Make) -> None:
    """Control tokens added by a fine-tune, in the prompt and in mid-answer."""
    more = (*Tiny().control, "<|think|>")
    template = "{% for message in messages %}<|think|>{{ message.content }}{% endfor %}"
    target = chain("more", "a", "b", "c", "d", "<|think|>", "e", control=more, template=template)
    draft = chain("fewer", "a", "b", "c", "d", "e", template=template)
    with Engine(tiny_file(target), tiny_file(draft)) as engine:
        assert engine.pair.vocabulary.startswith("same but padded")
        request = GenerationRequest(
            messages=(Message("user", "ab"),), strategy="draft-simple:n_max=2", max_tokens=20
        )
        trace = engine.answer(request)
    assert trace.text == "cdeabcdeabcdeabcd"  # and three tokens without text
    ends = {round.draft_end for round in trace.rounds}
    assert "the draft does not know the last token" in ends
    assert totals(trace)[1] > 5, "it drafts on behind them"
