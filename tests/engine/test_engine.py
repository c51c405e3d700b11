"""The engine: what it reuses, how it stops, where it ends, and what it refuses."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from app.engine.drafters.base import DRAFT_ENDED, Drafter, Proposal, RunContext
from app.engine.drafters.draft_simple import DraftSimple
from app.engine.drafters.registry import KINDS
from app.engine.engine import Engine
from app.engine.errors import ModelFileError, PromptError, SettingError, UserError
from app.engine.fates import Origin, Verdict
from app.engine.lengths.base import FixedLength
from app.engine.lengths.ewma import Ewma
from app.engine.native import Context, Model
from app.engine.process.messages import Finished, PromptProgress, RoundFinished, Started, trace_of
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace
from app.engine.types import FinishReason, GenerationRequest, Message, ModelOptions, Role, Sampling
from tests.answers import CLEAR, answer, assert_same_answer, clear_prompt, events_of
from tests.files.tiny import Tiny

LONG = "the quick brown fox jumps over the lazy dog. " * 10
DRAFTS = "draft-simple:n_max=4"


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """The ids that each model decodes, in order, by the model's name."""
    counts: dict[str, list[int]] = {"target": [], "draft": []}

    def count(context: Context, ids: Iterable[int]) -> None:
        counts[context.model.path.name.split("-")[0]].extend(map(int, ids))

    def decode(self: Context, ids: np.ndarray, logits: int = 0) -> Any:
        count(self, ids)
        return real_decode(self, ids, logits)

    def best(self: Context, ids: np.ndarray, *rest: Any) -> Any:
        rows = real_best(self, ids, *rest)
        count(self, ids)
        count(self, (places[0] for places, _ in rows[:-1]))  # each after the one before
        return rows

    real_decode, real_best = Context.decode, Context.best
    monkeypatch.setattr(Context, "decode", decode)
    monkeypatch.setattr(Context, "best", best)
    return counts


def finish_of(engine: Engine, **settings: object) -> FinishReason:
    trace = answer(engine, **settings)  # type: ignore[arg-type]
    assert trace.totals is not None
    return trace.totals.finish_reason


class Diary(Drafter):
    """A drafter that records its calls."""

    def __init__(self) -> None:
        self.told: list[str] = []

    @override
    def begin(self, context: np.ndarray, surroundings: RunContext) -> None:
        self.told.append("begin")

    @override
    def propose(self, context: np.ndarray, k: int) -> Proposal:
        self.told.append("propose")
        return Proposal()

    @override
    def finish(self, context: np.ndarray) -> None:
        self.told.append("finish")


@pytest.fixture
def diary(monkeypatch: pytest.MonkeyPatch) -> Diary:
    """The drafter that ngram-mod is in this test."""
    kept = Diary()
    kind = replace(KINDS["ngram-mod"], make=lambda _params, _resources: kept)
    monkeypatch.setitem(KINDS, "ngram-mod", kind)
    return kept


# ------------------------------------------------------------------------------- events and scripts


def test_five_lines_of_python_run_a_generation(pair_files: tuple[Path, Path]) -> None:
    from app.engine import Engine, GenerationRequest

    text = ""
    with Engine(*pair_files) as engine:
        for event in engine.generate(GenerationRequest(prompt="Hello", strategy="draft-simple")):
            text += getattr(event, "text", "")
    assert text


def test_the_order_of_events(engine: Engine) -> None:
    events = events_of(engine, GenerationRequest(prompt=LONG * 2, max_tokens=5))
    kinds = [type(event) for event in events]
    assert kinds[0] is Started
    assert kinds[-1] is Finished
    assert kinds[1:-1] == sorted(kinds[1:-1], key=[PromptProgress, RoundFinished].index)
    progress = [event for event in events if isinstance(event, PromptProgress)]
    assert [event.done for event in progress] == [0, 512, len(LONG * 2) - 1]


def progress_of(engine: Engine, strategy: str, prompt: str = LONG * 2) -> list[PromptProgress]:
    events = events_of(engine, GenerationRequest(prompt=prompt, max_tokens=1, strategy=strategy))
    return [event for event in events if isinstance(event, PromptProgress)]


@pytest.mark.parametrize(("strategy", "models"), [("none", 1), (DRAFTS, 2)])
def test_every_model_tells_each_part_that_it_reads(
    engine: Engine, strategy: str, models: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.engine.loop.answer_run.cores", lambda: 1)
    n = len(LONG * 2)
    parts = [0, 512, n - 1]
    cold = progress_of(engine, strategy)
    roles = [Role.TARGET, Role.DRAFT][:models]
    assert [(event.role, event.done) for event in cold] == [(role, done) for role in roles for done in parts]
    assert {(event.total, event.cached, event.at_once) for event in cold} == {(n, 0, False)}
    assert all((event.seconds > 0) == (event.done > 0) for event in cold)
    warm = progress_of(engine, strategy)
    assert [(event.role, event.done, event.cached) for event in warm] == [
        (role, n - 1, n - 1) for role in roles
    ]


def test_two_models_with_cores_of_their_own_read_at_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=30)  # broken where one waits for the other's end
    decode = Context.decode

    def meeting(self: Context, ids: np.ndarray, logits: int = 0) -> Any:
        if self.n_cached == 0:
            both.wait()
        return decode(self, ids, logits)

    monkeypatch.setattr("app.engine.loop.answer_run.cores", lambda: 2)
    monkeypatch.setattr(Context, "decode", meeting)
    told = progress_of(engine, DRAFTS)
    assert told[0].at_once
    assert "target and draft at once" in told[0].words
    assert told[-1].at_end
    engine.reset()
    monkeypatch.setattr(Context, "decode", decode)
    text = answer(engine, LONG, strategy=DRAFTS, max_tokens=20)
    engine.reset()
    monkeypatch.setattr("app.engine.loop.answer_run.cores", lambda: 1)
    assert_same_answer(answer(engine, LONG, strategy=DRAFTS, max_tokens=20), text)


def test_an_error_of_the_draft_ends_the_reading_of_both(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: DraftSimple, context: np.ndarray) -> Iterator[tuple[int, int]]:
        raise PromptError("The draft cannot read this.")
        yield 0, 0

    threads = threading.active_count()
    monkeypatch.setattr("app.engine.loop.answer_run.cores", lambda: 2)
    monkeypatch.setattr(DraftSimple, "read", fails)
    with pytest.raises(PromptError, match="cannot read"):
        progress_of(engine, DRAFTS)
    assert threading.active_count() <= threads


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (PromptProgress(1, Role.TARGET, 0, 4243), "Reading the prompt, 0 of 4,243 tokens"),
        (
            PromptProgress(1, Role.DRAFT, 1536, 4243, cached=512, seconds=4.0),
            "Reading the prompt (draft), 1,536 of 4,243 tokens · 256 tokens/s · 11 s left",
        ),
        (
            PromptProgress(1, Role.TARGET, 4242, 4243, seconds=10.0),
            "Reading the prompt, 4,242 of 4,243 tokens · 424 tokens/s",
        ),
    ],
)
def test_progress_says_how_fast_and_how_long(progress: PromptProgress, words: str) -> None:
    assert progress.words == words


def test_every_event_carries_its_run(engine: Engine) -> None:
    assert {event.run for event in engine.generate(GenerationRequest(prompt="x", max_tokens=3), run=42)} == {
        42
    }


def test_the_header_says_what_was_asked(engine: Engine) -> None:
    header = answer(engine, "hello", strategy="draft-simple:n_max=3", max_tokens=3, stop=("zz",)).header
    assert (header.strategy, header.prompt, header.prompt_tokens) == ("draft-simple", "hello", 5)
    assert (header.stop, header.max_tokens, header.cached_tokens) == (("zz",), 3, 0)
    assert header.pair == engine.pair
    assert header.pair.vocabulary == "same vocabulary"


@pytest.mark.same_text
def test_a_seed_is_taken_where_none_is_given_and_repeats_the_answer(engine: Engine) -> None:
    warm = Sampling(temperature=1)
    first, second = (answer(engine, sampling=warm, max_tokens=30) for _ in range(2))
    assert first.header.seed != second.header.seed
    again = answer(engine, sampling=Sampling(temperature=1, seed=first.header.seed), max_tokens=30)
    assert again.token_ids == first.token_ids


# -------------------------------------------------------------------------------- drafts and caches


def test_the_target_itself_as_its_draft_is_always_accepted(pair_files: tuple[Path, Path]) -> None:
    with Engine(pair_files[0], pair_files[0]) as engine:
        for strategy, sampling in [
            (DRAFTS, Sampling()),
            (f"{DRAFTS}:sample=1", Sampling(temperature=1, seed=3)),
        ]:
            trace = answer(engine, strategy=strategy, sampling=sampling, max_tokens=100, ignore_eos=True)
            verdicts = [token.verdict for round in trace.rounds for token in round.drafted]
            refused = sum(verdict is not Verdict.ACCEPTED for verdict in verdicts)
            # Other batch shapes round differently: u·q < p can fail by a hair where q and p are equal.
            assert refused <= (0 if sampling.temperature == 0 else 4)
            assert len(verdicts) >= 75


def test_no_token_is_decoded_twice_by_the_draft(engine: Engine, decoded: dict[str, list[int]]) -> None:
    trace = answer(engine, strategy=DRAFTS, max_tokens=60, ignore_eos=True)
    accepted = [round.accepted for round in trace.rounds]
    assert 0 < sum(accepted) < sum(len(round.drafted) for round in trace.rounds)
    # Each drafted token but the last of a round is decoded to draft the next one. What is decoded
    # besides is the prompt and, a round, what the draft has not seen: the token emitted behind, and the last
    # drafted one where all passed.
    expected = trace.header.prompt_tokens
    for place, round in enumerate(trace.rounds):
        expected += max(0, len(round.drafted) - 1)
        following = trace.rounds[place + 1].drafted if place + 1 < len(trace.rounds) else ()
        all_passed = bool(round.drafted) and round.accepted == len(round.drafted)
        expected += (1 + all_passed) if following else 0
    assert len(decoded["draft"]) == expected


def test_the_target_decodes_every_token_once_and_its_drafts(
    engine: Engine, decoded: dict[str, list[int]]
) -> None:
    trace = answer(engine, strategy=DRAFTS, max_tokens=60, ignore_eos=True)
    drafted = sum(len(round.drafted) for round in trace.rounds)
    assert len(decoded["target"]) == trace.header.prompt_tokens - 1 + len(trace.rounds) + drafted


@pytest.mark.same_text
def test_an_answer_goes_on_without_decoding_again(engine: Engine, decoded: dict[str, list[int]]) -> None:
    first = answer(engine, LONG, strategy=DRAFTS, max_tokens=20, ignore_eos=True)
    for ids in decoded.values():
        ids.clear()
    going_on = answer(engine, LONG, strategy=DRAFTS, max_tokens=1)
    assert going_on.header.cached_tokens == len(LONG) - 1
    assert len(decoded["target"]) == 1, "only the last prompt token"
    assert len(decoded["draft"]) <= 1
    assert_same_answer(going_on, first, tokens=1)


@pytest.mark.same_text
def test_an_edited_prompt_reuses_what_stands_before_the_edit(
    engine: Engine, decoded: dict[str, list[int]]
) -> None:
    answer(engine, LONG + "one", strategy=DRAFTS, max_tokens=20)
    for ids in decoded.values():
        ids.clear()
    edited = answer(engine, LONG + "two", strategy=DRAFTS, max_tokens=1, ignore_eos=True)
    assert edited.header.cached_tokens == len(LONG)
    assert len(decoded["target"]) == len("two")
    assert len(decoded["draft"]) == len("two") - 1
    engine.reset()
    assert_same_answer(edited, answer(engine, LONG + "two", max_tokens=1, ignore_eos=True))


@pytest.mark.same_text
def test_whatever_came_before_an_answer_is_as_from_a_fresh_engine(
    engine: Engine, pair_files: tuple[Path, Path]
) -> None:
    """Regenerate, edit, switch chats, change the strategy: caches never show."""
    prompts = [LONG, LONG[:100], "something else entirely", LONG[:100] + "and more", LONG]
    strategies = ["none", DRAFTS, "prompt-lookup", f"prompt-lookup+{DRAFTS}"]
    expected = {}
    for prompt in set(prompts):
        with Engine(*pair_files) as fresh:
            expected[prompt] = answer(fresh, prompt, max_tokens=24)
    for strategy in strategies:
        for prompt in prompts:
            warm = answer(engine, prompt, strategy=strategy, max_tokens=24)
            assert_same_answer(warm, expected[prompt])
            assert recheck(warm) == []


def test_cold_empties_everything(engine: Engine) -> None:
    answer(engine, LONG, strategy=DRAFTS, max_tokens=10)
    assert answer(engine, LONG, max_tokens=1).header.cached_tokens == len(LONG) - 1
    cold = answer(engine, LONG, max_tokens=1, cold=True)
    assert (cold.header.cached_tokens, cold.header.cold) == (0, True)


def test_drafts_are_never_longer_than_what_is_still_wanted(engine: Engine) -> None:
    trace = answer(engine, strategy="draft-simple:n_max=16", max_tokens=6)
    assert all(round.position + len(round.drafted) < 6 for round in trace.rounds)
    one_token = answer(engine, strategy="draft-simple:n_max=16", max_tokens=1)
    assert [round.drafted for round in one_token.rounds] == [()]
    assert one_token.rounds[0].emitted[0].origin is Origin.PLAIN
    assert one_token.rounds[0].draft_end == "answer at its length limit"


@pytest.mark.parametrize("batch_size", [1, 2, 5])
def test_small_batches_limit_the_draft_and_nothing_else(
    pair_files: tuple[Path, Path], engine: Engine, batch_size: int
) -> None:
    target, draft = (ModelOptions(str(path), batch_size=batch_size) for path in pair_files)
    expected = answer(engine, LONG[:60], max_tokens=30)
    with Engine(target, draft) as small:
        trace = answer(small, LONG[:60], strategy="draft-simple:n_max=8", max_tokens=30)
    assert_same_answer(trace, expected)
    assert max(len(round.drafted) for round in trace.rounds) == batch_size - 1


# ----------------------------------------------------------------------------------------- stopping


def test_stopping_in_the_answer_keeps_what_came(engine: Engine, pair_files: tuple[Path, Path]) -> None:
    events = []
    for event in engine.generate(GenerationRequest(prompt=LONG, strategy=DRAFTS, max_tokens=500)):
        events.append(event)
        if isinstance(event, RoundFinished) and event.round.index == 4:
            engine.stop()
    trace = trace_of(events)
    assert trace.totals is not None and trace.totals.finish_reason is FinishReason.CANCELLED
    assert len(trace.rounds) == 5
    assert recheck(trace) == []
    _as_fresh(engine, pair_files, LONG)


def test_stopping_after_the_last_round_leaves_the_answer_whole(engine: Engine) -> None:
    events, written = [], 0
    for event in engine.generate(GenerationRequest(prompt=LONG, max_tokens=12, ignore_eos=True)):
        events.append(event)
        if isinstance(event, RoundFinished):
            written += len(event.round.emitted)
            if written == 12:
                engine.stop()
    trace = trace_of(events)
    assert trace.totals is not None and trace.totals.finish_reason is FinishReason.LENGTH


def test_stopping_in_the_prompt_gives_an_empty_answer(engine: Engine, pair_files: tuple[Path, Path]) -> None:
    request = GenerationRequest(prompt=LONG * 2, strategy=DRAFTS)
    events = []
    for event in engine.generate(request):
        events.append(event)
        if isinstance(event, PromptProgress):
            engine.stop()
    trace = trace_of(events)
    assert trace.totals is not None
    assert (trace.rounds, trace.text) == ([], "")
    assert trace.totals.finish_reason is FinishReason.CANCELLED
    assert trace.totals.first_token_seconds is None
    assert trace.totals.prompt_seconds > 0
    _as_fresh(engine, pair_files, LONG * 2)


def test_stopping_from_another_thread_at_any_moment(engine: Engine, pair_files: tuple[Path, Path]) -> None:
    for attempt in range(10):
        engine.reset()
        timer = threading.Timer(0.0005 * 1.7**attempt, engine.stop)
        timer.start()
        trace = answer(engine, LONG, strategy=DRAFTS, max_tokens=500, ignore_eos=True)
        timer.join()
        assert trace.totals is not None
        assert trace.totals.finish_reason in (FinishReason.CANCELLED, FinishReason.LENGTH)
        assert recheck(trace) == []
        _as_fresh(engine, pair_files, LONG + str(attempt % 2))


_fresh_answers: dict[str, Trace] = {}


def _as_fresh(engine: Engine, pair_files: tuple[Path, Path], prompt: str) -> None:
    """The next answer, on whatever the caches hold now, is a fresh engine's."""
    if prompt not in _fresh_answers:
        with Engine(*pair_files) as fresh:
            _fresh_answers[prompt] = answer(fresh, prompt, max_tokens=20)
    got = answer(engine, prompt, strategy=DRAFTS, max_tokens=20)
    assert_same_answer(got, _fresh_answers[prompt])


def test_an_answer_that_is_not_read_to_its_end_leaves_the_engine_usable(
    engine: Engine, pair_files: tuple[Path, Path]
) -> None:
    for event in engine.generate(GenerationRequest(prompt=LONG, strategy=DRAFTS)):
        if isinstance(event, RoundFinished):
            break
    _as_fresh(engine, pair_files, LONG)


def test_another_answer_ends_the_one_that_was_left_half_read(
    engine: Engine, pair_files: tuple[Path, Path]
) -> None:
    """Its next pass is already running: two threads would decode on one context."""
    threads = threading.active_count()
    unread = engine.generate(GenerationRequest(prompt=LONG, strategy=DRAFTS, max_tokens=50, ignore_eos=True))
    next(event for event in unread if isinstance(event, RoundFinished))
    _as_fresh(engine, pair_files, LONG)
    assert threading.active_count() <= threads
    last = [*unread][-1]
    assert isinstance(last, Finished)
    assert last.totals.finish_reason == FinishReason.CANCELLED


def test_closing_an_engine_ends_the_answer_that_was_left_half_read(pair_files: tuple[Path, Path]) -> None:
    threads = threading.active_count()
    with Engine(*pair_files) as engine:
        unread = engine.generate(GenerationRequest(prompt=LONG, strategy=DRAFTS, ignore_eos=True))
        next(event for event in unread if isinstance(event, RoundFinished))
    assert threading.active_count() <= threads
    assert isinstance([*unread][-1], Finished)


# --------------------------------------------------------------------------------------- the limits


@pytest.mark.parametrize("strategy", ["none", DRAFTS])
def test_an_answer_left_while_its_prompt_is_read_blocks_nothing(
    pair_files: tuple[Path, Path], strategy: str
) -> None:
    left = []
    with Engine(*pair_files) as engine:
        for _ in range(3):
            left.append(engine.generate(GenerationRequest(LONG * 2, strategy=strategy, cold=True)))
            next(event for event in left[-1] if isinstance(event, PromptProgress))
        engine.force([])
        engine.answer(GenerationRequest(LONG, strategy=strategy, max_tokens=2))
        left.append(engine.generate(GenerationRequest(LONG * 2, strategy=strategy, cold=True)))
        next(event for event in left[-1] if isinstance(event, PromptProgress))
    for events in left:
        last = [*events][-1]
        assert isinstance(last, Finished)
        assert last.totals.finish_reason == FinishReason.CANCELLED


def test_a_previous_engine_can_be_closed_while_the_next_one_answers(pair_files: tuple[Path, Path]) -> None:
    with Engine(*pair_files) as old:
        old.answer(GenerationRequest("abc", max_tokens=2))
        new = Engine(*pair_files, previous=old)
        events = new.generate(GenerationRequest(LONG, max_tokens=4))
        while not isinstance(next(events), RoundFinished):
            pass
    with new:
        assert isinstance([*events][-1], Finished)


def test_what_did_not_begin_is_not_finished(engine: Engine, diary: Diary) -> None:
    events = engine.generate(GenerationRequest(prompt=LONG * 2, strategy="ngram-mod", max_tokens=4))
    while not isinstance(next(events), PromptProgress):
        pass
    engine.stop()
    assert isinstance([*events][-1], Finished)
    assert diary.told == []


@pytest.mark.parametrize("left", ["finished", "stopped", "abandoned", "failed"])
def test_what_began_is_finished_once(
    engine: Engine, diary: Diary, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = engine.generate(GenerationRequest(prompt="abc", strategy="ngram-mod", max_tokens=30))
    while not isinstance(next(events), RoundFinished):
        pass
    if left == "stopped":
        engine.stop()
    if left == "failed":
        monkeypatch.setattr(Context, "decode", lambda *_: 1 / 0)
        with pytest.raises((ZeroDivisionError, TypeError)):
            list(events)
    elif left == "abandoned":
        events.close()  # type: ignore[attr-defined]
    else:
        assert isinstance([*events][-1], Finished)
    assert (diary.told[0], diary.told.count("begin")) == ("begin", 1)
    assert (diary.told[-1], diary.told.count("finish")) == ("finish", 1)


def test_a_prompt_that_the_draft_reads_within_a_round_is_counted(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lazy(FixedLength):
        lazy = True

    monkeypatch.setitem(engine.warm.lengths, Ewma(), Lazy())
    totals = answer(engine, LONG, strategy=f"{DRAFTS}:length=ewma", max_tokens=12).totals
    assert totals is not None
    assert 0 < totals.draft_prompt_in_rounds <= totals.draft_prompt_seconds
    assert totals.draft_prompt_in_rounds < totals.seconds
    assert totals.lead_seconds >= totals.prompt_seconds
    before = answer(engine, LONG, strategy=DRAFTS, max_tokens=12, cold=True).totals
    assert before is not None
    assert before.draft_prompt_in_rounds == 0 < before.draft_prompt_seconds
    assert before.lead_seconds == before.prompt_seconds + before.draft_prompt_seconds


@pytest.fixture
def small(pair_files: tuple[Path, Path]) -> Iterator[Engine]:
    """A context of 256 tokens."""
    with Engine(ModelOptions(str(pair_files[0]), ctx_size=256), pair_files[1]) as engine:
        yield engine


@pytest.mark.parametrize("strategy", ["none", "draft-simple:n_max=16", "prompt-lookup:num_pred_tokens=16"])
def test_a_context_that_fills_ends_the_answer_and_keeps_it(
    small: Engine, engine: Engine, strategy: str
) -> None:
    prompt = LONG[:240]
    expected = answer(engine, prompt, max_tokens=17, ignore_eos=True)
    full = answer(small, prompt, strategy=strategy, max_tokens=500, ignore_eos=True)
    assert full.totals is not None and full.totals.finish_reason is FinishReason.CONTEXT
    # Sixteen fit behind the prompt, and one more comes out of the last pass.
    assert_same_answer(full, expected)
    assert recheck(full) == []
    assert finish_of(small, prompt="short", max_tokens=3, ignore_eos=True) is FinishReason.LENGTH


def test_a_prompt_that_just_fits_gives_one_token(small: Engine) -> None:
    trace = answer(small, LONG[:256], strategy=DRAFTS, max_tokens=9, ignore_eos=True)
    assert trace.totals is not None and trace.totals.finish_reason is FinishReason.CONTEXT
    assert len(trace.token_ids) == 1


def test_a_prompt_longer_than_the_context_is_refused(small: Engine) -> None:
    with pytest.raises(PromptError, match="257 tokens, but the context has room for 256") as refused:
        answer(small, LONG[:257])
    assert refused.value.hint
    assert finish_of(small, max_tokens=3, ignore_eos=True) is FinishReason.LENGTH


def test_a_draft_context_smaller_than_the_targets_only_ends_drafting(
    pair_files: tuple[Path, Path], engine: Engine
) -> None:
    prompt = LONG[:200]
    expected = answer(engine, prompt, max_tokens=120, ignore_eos=True)
    with Engine(pair_files[0], ModelOptions(str(pair_files[1]), ctx_size=256)) as two_sizes:
        trace = answer(two_sizes, prompt, strategy=DRAFTS, max_tokens=120, ignore_eos=True)
        past = answer(two_sizes, LONG, strategy=DRAFTS, max_tokens=10, ignore_eos=True)
    assert_same_answer(trace, expected)
    assert recheck(trace) == []
    drafted_until = max(round.position for round in trace.rounds if round.drafted)
    assert 40 < drafted_until <= 57
    assert trace.rounds[-2].draft_end == "the draft's context is full"
    assert not any(round.drafted for round in past.rounds), (
        "the prompt alone is longer than the draft's context"
    )


def test_answers_end_by_end_token_stop_and_length(engine: Engine) -> None:
    end = answer(engine, sampling=Sampling(temperature=5, seed=1), max_tokens=900)
    assert end.totals is not None and end.totals.finish_reason is FinishReason.END
    last = end.rounds[-1].emitted[-1]
    assert (last.piece, last.label in ("<|end|>", "<|im_end|>")) == (b"", True)
    assert finish_of(engine, max_tokens=7, ignore_eos=True) is FinishReason.LENGTH
    warm = Sampling(temperature=5, seed=1)
    ignored = answer(engine, sampling=warm, max_tokens=400, ignore_eos=True)
    assert not {256, 258} & set(ignored.token_ids)


# ------------------------------------------------------------------------------------- bad requests


@pytest.mark.parametrize(
    ("request_", "error", "named"),
    [
        (GenerationRequest(), PromptError, "no prompt"),
        (GenerationRequest(prompt=""), PromptError, "empty"),
        (GenerationRequest(prompt="x", messages=(Message("user", "x"),)), PromptError, "several prompts"),
        (GenerationRequest(prompt="x", max_tokens=0), SettingError, "max_tokens"),
        (GenerationRequest(prompt="x", strategy="magic"), SettingError, "magic"),
        (
            GenerationRequest(prompt="x", strategy="none:verify=greedy", sampling=Sampling(1.0)),
            SettingError,
            "greedy",
        ),
        (GenerationRequest(prompt="x", sampling=Sampling(temperature=-1)), SettingError, "temperature"),
        (GenerationRequest(prompt="x", sampling=Sampling(temperature=float("nan"))), SettingError, "nan"),
        (GenerationRequest(prompt="x", sampling=Sampling(top_p=1.5)), SettingError, "top_p"),
        (GenerationRequest(prompt="x", sampling=Sampling(repeat_penalty=0)), SettingError, "repeat_penalty"),
        (GenerationRequest(prompt="x", sampling=Sampling(seed=2**63)), SettingError, "seed"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_requests_that_cannot_be_met(
    engine: Engine, request_: GenerationRequest, error: type[UserError], named: str
) -> None:
    with pytest.raises(error) as refused:
        events_of(engine, request_)
    assert named in str(refused.value)
    assert refused.value.message.endswith(".") and refused.value.hint.endswith(".")
    assert finish_of(engine, max_tokens=2, ignore_eos=True) is FinishReason.LENGTH


def test_a_draft_strategy_without_a_draft_is_refused(pair_files: tuple[Path, Path]) -> None:
    with Engine(pair_files[0]) as alone:
        assert (
            finish_of(alone, strategy="prompt-lookup", max_tokens=4, ignore_eos=True) is FinishReason.LENGTH
        )
        with pytest.raises(SettingError, match="needs a draft model, but none is loaded"):
            answer(alone, strategy="draft-simple")


def test_text_that_is_no_unicode_is_no_crash(engine: Engine) -> None:
    """Half of a surrogate pair: clipboards do hold such text."""
    assert answer(engine, "a\ud800b", max_tokens=2, ignore_eos=True).header.prompt_tokens == 3


def test_a_closed_engine_says_so(pair_files: tuple[Path, Path]) -> None:
    engine = Engine(*pair_files)
    engine.close()
    engine.close()
    with pytest.raises(RuntimeError, match="closed"):
        answer(engine)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1, top_k=5)], ids=["greedy", "warm"])
@pytest.mark.parametrize("which", ["target", "draft"])
@pytest.mark.parametrize("fault", [{"broken": True}, {"overflow": True}], ids=["broken", "overflow"])
def test_logits_that_are_no_numbers_are_named(
    tiny_file: Callable[[Tiny], Path],
    pair_files: tuple[Path, Path],
    sampling: Sampling,
    which: str,
    fault: dict[str, Any],
) -> None:
    broken = tiny_file(Tiny(name="broken", n_ctx=1024, **fault))
    files = (broken, pair_files[1]) if which == "target" else (pair_files[0], broken)
    with Engine(*files) as engine:
        for more in ("", ":sample=1", ":verify=match", ":verify=speculative", ":verify=block"):
            strategy = f"{DRAFTS}{more}"
            with pytest.raises(ModelFileError, match=r"broken.* gives NaN"):
                answer(engine, strategy=strategy, sampling=sampling)


# --------------------------------------------------------------------------------- loading again


def test_both_files_are_told_before_either_is_opened(
    pair_files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some files crash the process at once: what was told by then is what the user reads."""
    told: list[tuple[Role, str, float, str]] = []
    opened: list[tuple[str, int]] = []

    class Noted(Model):
        def __init__(self, options: ModelOptions, *more: Any) -> None:
            opened.append((Path(options.path).name, len(told)))
            super().__init__(options, *more)

    def report(*progress: Any) -> bool:
        told.append(progress)
        return True

    monkeypatch.setattr("app.engine.pair.Model", Noted)
    target, draft = pair_files
    with Engine(target, draft, report):
        assert told[0] == (Role.TARGET, target.name, 0.0, draft.name)
        assert sorted(name for name, _ in opened) == sorted([target.name, draft.name])
        assert all(count > 0 for _, count in opened)


def test_the_same_parts_are_not_loaded_again(pair_files: tuple[Path, Path]) -> None:
    target, draft = pair_files
    first = Engine(target, draft)
    kept = first.target
    answer(first, LONG, max_tokens=3)
    second = Engine(target, previous=first)
    assert second.target is kept
    assert second.pair.draft is None
    assert answer(second, LONG, max_tokens=3).header.cached_tokens == len(LONG) - 1
    third = Engine(target, draft, previous=second)
    assert third.target is kept
    assert answer(third, strategy=DRAFTS, max_tokens=9, ignore_eos=True).totals
    fourth = Engine(ModelOptions(str(target), ctx_size=512), draft, previous=third)
    assert fourth.target is not kept
    assert fourth.pair.target.n_ctx == 512
    fourth.close()


def test_a_failed_load_leaves_the_previous_engine_as_it_was(
    pair_files: tuple[Path, Path], tiny_file: Callable[[Tiny], Path], tmp_path: Path
) -> None:
    mute = tiny_file(Tiny(name="mute", vocabulary=False))
    with Engine(*pair_files) as engine:
        expected = answer(engine, LONG, strategy=DRAFTS, max_tokens=20)
        bad: list[tuple[ModelOptions | Path, Path | None]] = [
            (tmp_path / "gone.gguf", pair_files[1]),
            (pair_files[0], tmp_path / "gone.gguf"),
            (pair_files[0], mute),
            (ModelOptions(str(pair_files[0]), ctx_size=-5), None),
        ]
        for files in bad:
            with pytest.raises(UserError):
                Engine(files[0], files[1], previous=engine)
            warm = answer(engine, LONG, strategy=DRAFTS, max_tokens=20)
            assert_same_answer(warm, expected)
            assert warm.header.cached_tokens == len(LONG) - 1


def test_a_drafter_that_proposes_nonsense_changes_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drafts are proposals: the worst ones cost time, never the text."""
    expected = answer(engine, max_tokens=30)
    random = np.random.default_rng(0)

    def propose(self: DraftSimple, context: np.ndarray, k: int) -> Proposal:
        ids = random.integers(0, 259, random.integers(0, min(k, 6) + 1)).tolist()
        return Proposal(ids, end=DRAFT_ENDED)

    monkeypatch.setattr(DraftSimple, "propose", propose)
    trace = answer(engine, strategy="draft-simple:n_max=6", max_tokens=30)
    assert_same_answer(trace, expected)
    assert recheck(trace) == []


@pytest.mark.same_text
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_an_answer_goes_on_as_if_it_had_not_ended(pair_files: tuple[Path, Path], temperature: float) -> None:
    with Engine(str(pair_files[0]), str(pair_files[1])) as engine:
        sampling = Sampling(temperature, seed=5)
        # Many logits move an edge between two tokens, and most of their roundings cancel out.
        least = CLEAR / 10 if temperature else CLEAR
        prompt = clear_prompt(engine, least, sampling=sampling, max_tokens=20)

        def made(**changes: Any) -> Trace:
            request = GenerationRequest(prompt=prompt, sampling=sampling)
            return engine.answer(replace(request, **changes))

        whole, begun = made(max_tokens=20), made(max_tokens=11)
        added = made(max_tokens=20, continues=begun.token_ids)
        assert begun.token_ids + added.token_ids == whole.token_ids
        assert added.rounds[0].position == 11 and added.header.prompt_tokens == whole.header.prompt_tokens
        assert added.totals is not None and added.totals.text == whole.text, "that of both parts"
        with pytest.raises(PromptError, match="the context has room for"):
            made(continues=whole.token_ids * 100)


def test_a_file_that_was_replaced_is_read_again(tiny_file: Callable[[Tiny], Path], tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    shutil.copy(tiny_file(Tiny(name="before", n_layers=2)), path)
    engine = Engine(path)
    assert engine.pair.target.n_layers == 2
    kept = engine.target.model
    with Engine(path, previous=engine) as same:
        assert same.target.model is kept
        path.unlink()
        shutil.copy(tiny_file(Tiny(name="after", n_layers=3)), path)
        with Engine(path, previous=same) as replaced:
            assert replaced.pair.target.n_layers == 3
