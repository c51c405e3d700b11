"""draft-simple: what it proposes, what it records, and how often it decodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.engine.drafters.base import RunContext
from app.engine.drafters.draft_simple import DraftSimple, DraftSimpleParams
from app.engine.errors import SettingError
from app.engine.native import AbortFlag, Context, Model
from app.engine.sampling.draws import Draws, Purpose
from app.engine.sampling.sampler import Sampler
from app.engine.types import ModelOptions, Sampling
from tests.dense import dense
from tests.files.tiny import Tiny
from tests.reference import probabilities, softmax

PROMPT = np.array([7, 1, 2, 3, 1, 2, 4], np.int32)
N_VOCAB = 259


@pytest.fixture(scope="module")
def context(each_way: None, tiny_file: Callable[[Tiny], Path]) -> Iterator[Context]:
    options = ModelOptions(str(tiny_file(Tiny(name="draft"))), ctx_size=256)
    model = Model(options)
    context = Context(model, options, AbortFlag())
    yield context
    context.close()
    model.close()


@pytest.fixture(autouse=True)
def _cold(context: Context) -> None:
    context.clear()


def drafter(
    context: Context,
    sampling: Sampling | None = None,
    end_ids: frozenset[int] = frozenset(),
    n_vocab: int = N_VOCAB,
    prompt: np.ndarray = PROMPT,
    **params: float,
) -> DraftSimple:
    simple = DraftSimple(DraftSimpleParams(**params), context, n_vocab)  # type: ignore[arg-type]
    sampler = Sampler(sampling or Sampling())
    simple.begin(prompt, RunContext(sampler, Draws(5), len(prompt) - 2, end_ids))
    list(simple.read(prompt))
    return simple


def rows_behind(context: Context, ids: Sequence[int], n: int) -> np.ndarray:
    """The model's logits after the last `n` of `ids`, from an empty cache."""
    context.clear()
    rows = context.decode(np.asarray(ids, np.int32), logits=n).copy()
    context.clear()
    return rows


def test_greedy_drafts_follow_the_argmax(context: Context) -> None:
    proposal = drafter(context, n_max=5).propose(PROMPT, 9)
    assert len(proposal.ids) == 5 == len(proposal.thoughts.draft_p) == len(proposal.thoughts.top)
    assert proposal.q == proposal.races == []
    assert proposal.end == "n_max"
    rows = rows_behind(context, [*PROMPT, *proposal.ids[:-1]], 5)
    assert proposal.ids == rows.argmax(axis=1).tolist()
    for row, p, top in zip(rows, proposal.thoughts.draft_p, proposal.thoughts.top, strict=True):
        best = np.sort(row)[::-1][:10]  # llama.cpp's figure: softmax over the ten best
        np.testing.assert_allclose(top.p, softmax(best), rtol=1e-4)
        assert p == top.p[0]


def test_k_and_n_max_both_limit(context: Context) -> None:
    simple = drafter(context, n_max=4)
    assert len(simple.propose(PROMPT, 3).ids) == 3
    assert simple.propose(PROMPT, 3).end == "answer at its length limit"
    assert len(simple.propose(PROMPT, 8).ids) == 4


@pytest.mark.parametrize(
    "sampling", [Sampling(temperature=1), Sampling(temperature=1.5, top_k=9, repeat_penalty=2)]
)
def test_sampled_drafts_are_drawn_from_their_recorded_q(context: Context, sampling: Sampling) -> None:
    proposal = drafter(context, sampling, n_max=4, sample=True).propose(PROMPT, 9)
    rows = rows_behind(context, [*PROMPT, *proposal.ids[:-1]], 4)
    for place, token in enumerate(proposal.ids):
        before = [*PROMPT, *proposal.ids[:place]]
        expected = probabilities(rows[place], sampling, before)
        np.testing.assert_allclose(dense(proposal.q[place], N_VOCAB), expected, atol=5e-5)
        # Position 2 of the answer: two tokens of the context are no longer prompt.
        key = Draws(5).key(2 + place, Purpose.DRAFT, 2)
        assert (token, proposal.races[place]) == proposal.q[place].draw(key)
        assert proposal.thoughts.draft_p[place] == pytest.approx(softmax(rows[place])[token], abs=1e-5)


def test_sampling_at_temperature_0_is_the_argmax(context: Context) -> None:
    plain = drafter(context, n_max=4).propose(PROMPT, 9)
    sampled = drafter(context, n_max=4, sample=True).propose(PROMPT, 9)
    assert (sampled.ids, sampled.q, sampled.races, sampled.end) == (plain.ids, [], [], plain.end)
    assert sampled.thoughts == plain.thoughts


def test_p_min_ends_a_draft_before_its_first_doubtful_token(context: Context) -> None:
    free = drafter(context, n_max=8).propose(PROMPT, 9)
    p_min = sorted(free.thoughts.draft_p)[3]
    cut = drafter(context, n_max=8, p_min=p_min).propose(PROMPT, 9)
    expected = next(i for i, p in enumerate(free.thoughts.draft_p) if p < p_min)
    assert cut.ids == free.ids[:expected]
    assert cut.end == "p_min"


def test_p_min_of_a_sampled_draft_looks_only_before_the_draw(context: Context) -> None:
    warm = Sampling(temperature=1)
    free = drafter(context, warm, n_max=8, sample=True).propose(PROMPT, 9)
    highest = [float(q.p.max()) for q in free.q]
    p_min = sorted(highest)[3]
    cut = drafter(context, warm, n_max=8, sample=True, p_min=p_min).propose(PROMPT, 9)
    assert cut.ids == free.ids[: next(i for i, p in enumerate(highest) if p < p_min)]


def test_n_min_throws_short_drafts_away(context: Context) -> None:
    free = drafter(context, n_max=8).propose(PROMPT, 9)
    p_min = max(free.thoughts.draft_p[1:]) + 1e-6
    short = drafter(context, n_max=8, n_min=8, p_min=min(p_min, 1)).propose(PROMPT, 9)
    assert (short.ids, list(short.thoughts.top), list(short.thoughts.draft_p)) == ([], [], [])
    assert short.end == "shorter than n_min"


def test_n_min_is_refused_where_tokens_are_drawn() -> None:
    with pytest.raises(SettingError, match=r"n_min.*sample=1"):
        DraftSimpleParams(sample=True, n_min=1)


def test_a_draft_ends_behind_its_end_token(context: Context) -> None:
    free = drafter(context, n_max=6).propose(PROMPT, 9)
    end = free.ids[2]
    ended = drafter(context, n_max=6, end_ids=frozenset([end])).propose(PROMPT, 9)
    assert ended.ids == free.ids[: free.ids.index(end) + 1]
    assert ended.end == "the draft ended the answer"


def test_a_full_context_ends_drafting_and_breaks_nothing(context: Context) -> None:
    text = (np.arange(context.n_ctx + 3) % 250).astype(np.int32)
    simple = drafter(context, n_max=6, prompt=text[:250])
    assert len(simple.propose(text[: context.n_ctx - 2], 9).ids) == 3, (
        "room for the last two and one more answer"
    )
    assert len(simple.propose(text[: context.n_ctx], 9).ids) == 1
    assert simple.propose(text[: context.n_ctx - 2], 9).end == "the draft's context is full"
    full = simple.propose(text[: context.n_ctx + 1], 9)
    assert (full.ids, full.end) == ([], "the draft's context is full")
    assert len(simple.propose(text[:100], 9).ids) == 6, "and shorter again"


def test_a_prompt_longer_than_the_drafts_context_is_no_error(context: Context) -> None:
    text = (np.arange(context.n_ctx + 40) % 250).astype(np.int32)
    assert drafter(context, prompt=text).propose(text, 3).ids == []


def test_a_padded_draft_vocabulary_is_cut_to_the_targets(context: Context) -> None:
    """A draft with more tokens than its target proposes only tokens that the target has."""
    free = drafter(context, n_max=6).propose(PROMPT, 9)
    limit = max(free.ids)
    cut = drafter(context, n_max=6, n_vocab=limit).propose(PROMPT, 9)
    assert max(cut.ids) < limit
    warm = drafter(context, Sampling(temperature=2), n_max=6, sample=True, n_vocab=limit).propose(PROMPT, 9)
    for q in warm.q:
        assert len(dense(q, limit)) == limit


def test_a_drafts_vocabulary_may_be_smaller_than_the_targets(context: Context) -> None:
    warm = drafter(context, Sampling(temperature=2), n_max=6, sample=True, n_vocab=300).propose(PROMPT, 9)
    for q in warm.q:
        assert not dense(q, 300)[N_VOCAB:].any()


def test_accepted_tokens_are_never_decoded_again(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []

    def counted(self: Context, ids: np.ndarray, *rest: int, real: Callable[..., Any], **named: int) -> Any:
        decoded.extend(ids.tolist())
        made = real(self, ids, *rest, **named)
        if isinstance(made, list):  # of rows: all but the last one's best were decoded in the same call
            decoded.extend(best for (best, *_), _ in made[:-1])
        return made

    for name in ("decode", "best"):
        monkeypatch.setattr(Context, name, partialmethod(counted, real=getattr(Context, name)))
    simple = drafter(context, n_max=4)
    assert decoded == PROMPT[:-1].tolist()
    decoded.clear()
    first = simple.propose(PROMPT, 9)
    assert decoded == [PROMPT[-1], *first.ids[:3]]
    decoded.clear()
    # Two of the four passed, and another token came: only that one is new to the draft.
    truth = np.array([*PROMPT, *first.ids[:2], 99], np.int32)
    second = simple.propose(truth, 9)
    assert decoded == [99, *second.ids[:3]]
    decoded.clear()
    # All passed and a bonus came: the last drafted token was never decoded, so it is now.
    truth = np.array([*truth, *second.ids, 98], np.int32)
    third = simple.propose(truth, 9)
    assert decoded == [second.ids[3], 98, *third.ids[:3]]


def test_a_prompt_longer_than_the_drafts_context_is_not_read(context: Context) -> None:
    text = (np.arange(context.n_ctx + 40) % 250).astype(np.int32)
    simple = drafter(context, prompt=text)
    assert (context.n_cached, simple.unread(text)) == (0, 0)
    assert simple.unread(text[: context.n_ctx]) == context.n_ctx - 1


def test_tokens_that_the_draft_lacks_are_left_out_of_what_it_reads(context: Context) -> None:
    extra = N_VOCAB + 3
    text = np.array([extra, *PROMPT[:4], extra, *PROMPT[4:]], np.int32)
    simple = drafter(context, n_max=4, n_vocab=300, prompt=text)
    assert simple.unread(text) == 0
    assert simple.propose(text, 9).ids == drafter(context, n_max=4).propose(PROMPT, 9).ids
    behind = simple.propose(np.array([*text, extra], np.int32), 9)
    assert (behind.ids, behind.end) == ([], "the draft does not know the last token")
    nothing = np.array([extra], np.int32)
    list(simple.read(nothing))
    assert (simple.unread(nothing), simple.propose(nothing, 9).ids) == (0, [])
