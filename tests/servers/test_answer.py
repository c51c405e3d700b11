"""Rounds from tokens and counters, as a llama-server sends them."""

from __future__ import annotations

import pytest

from app.engine.fates import Origin, Verdict
from app.engine.record.stats import Statistics
from app.engine.rules.base import Rule
from app.engine.rules.registry import GREEDY, MATCH
from app.engine.types import UNTOLD, Round
from app.servers.answer import RoundFold, Told
from app.servers.http import ServerError

YES, NO, UNJUDGED = Verdict.ACCEPTED, Verdict.REJECTED, Verdict.IGNORED


def folded(*told: tuple[int, int, int], rule: Rule = GREEDY, ends: bool = True) -> list[Round]:
    """The rounds of tokens with their counters: (id, drafted, accepted); one a second."""
    fold = RoundFold(rule)
    rounds = []
    for at, (token, drafted, accepted) in enumerate(told):
        rounds += fold.add([Told(token, str(token))], drafted, accepted, float(at))
    return [*rounds, *fold.finish(float(len(told)))] if ends else rounds


def verdicts(round: Round) -> list[Verdict]:
    return [token.verdict for token in round.drafted]


def origins(round: Round) -> list[Origin]:
    return [token.origin for token in round.emitted]


def test_tokens_with_equal_counters_are_one_round():
    rounds = folded((1, 0, 0), (2, 4, 0), (3, 8, 3), (4, 8, 3), (5, 8, 3), (6, 8, 3), (7, 12, 7))

    assert [len(round.emitted) for round in rounds] == [1, 1, 4, 1]
    assert [verdicts(round) for round in rounds] == [
        [],
        [NO, *[UNJUDGED] * 3],
        [*[YES] * 3, NO],
        [YES, *[UNJUDGED] * 3],
    ]
    assert [origins(round)[-1] for round in rounds] == [
        Origin.PLAIN, Origin.RESAMPLED, Origin.RESAMPLED, Origin.ACCEPTED,
    ]  # fmt: skip
    assert [round.position for round in rounds] == [0, 1, 2, 6]


def test_a_round_has_a_number_and_no_part_of_its_time_is_made_up():
    rounds = folded((1, 0, 0), (2, 4, 0), (3, 8, 3), (4, 8, 3))

    assert [round.index for round in rounds] == [0, 1, 2]
    for round in rounds:
        parts = (round.draft_seconds, round.verify_seconds, round.sample_seconds, round.native_seconds)
        assert parts == (0, 0, 0, 0), "a server tells none"


def test_a_round_is_complete_with_its_own_token_at_once():
    assert len(folded((1, 0, 0), (2, 2, 2), (3, 2, 2), (4, 2, 2), ends=False)) == 2


def test_a_fully_accepted_draft_ends_with_a_bonus_token():
    (_, round) = folded((1, 0, 0), (2, 2, 2), (3, 2, 2), (4, 2, 2))

    assert origins(round) == [Origin.ACCEPTED, Origin.ACCEPTED, Origin.BONUS]


def test_more_tokens_under_equal_counters_are_rounds_without_a_draft():
    rounds = folded((1, 0, 0), (2, 3, 1), (3, 3, 1), (4, 3, 1), (5, 3, 1))

    assert [origins(round) for round in rounds[1:]] == [
        [Origin.ACCEPTED, Origin.RESAMPLED], [Origin.PLAIN], [Origin.PLAIN],
    ]  # fmt: skip


def test_an_answer_that_ends_inside_a_draft_ignores_the_rest_of_it():
    (_, cut) = folded((1, 0, 0), (2, 4, 4), (3, 4, 4))

    assert verdicts(cut) == [YES, YES, UNJUDGED, UNJUDGED]
    assert origins(cut) == [Origin.ACCEPTED, Origin.ACCEPTED]


def test_what_a_server_does_not_tell_is_absent():
    (_, round) = folded((1, 0, 0), (2, 2, 1), (3, 2, 1), rule=MATCH)

    assert [token.p for token in round.emitted] == [None, None]
    assert [(token.q, token.p, token.draft_p) for token in round.drafted] == [(None, None, None)] * 2
    assert [token.id for token in round.drafted] == [2, UNTOLD]
    assert all(token.target_id is None for token in round.drafted)


def test_greedy_resamples_in_place_of_the_rejected_token():
    (_, round) = folded((1, 0, 0), (2, 2, 1), (3, 2, 1))

    assert [token.target_id for token in round.drafted] == [2, 3]
    assert round.fate_word(round.emitted[-1]) == "resampled"


def test_times_follow_the_arrival_of_tokens():
    rounds = folded((1, 0, 0), (2, 1, 1), (3, 1, 1), (4, 1, 1))

    assert [(round.offset, round.seconds) for round in rounds] == [(0, 0), (0, 2), (2, 1)]
    assert Statistics.of(rounds).seconds == 3


def test_tokens_that_complete_no_character_fill_the_round_before():
    fold = RoundFold(GREEDY)
    rounds = [*fold.add([Told(1, "a")], 0, 0, 0.0), *fold.add([Told(2, "b")], 2, 2, 1.0)]
    rounds += fold.add([Told(), Told(), Told(9, "é")], 2, 2, 2.0)

    assert [[token.id for token in round.emitted] for round in rounds] == [[1], [2, UNTOLD, UNTOLD], [9]]


@pytest.mark.parametrize(
    "told",
    [
        [(1, 4, 2), (2, 4, 2), (3, 4, 2), (4, 3, 2)],  # drafted goes back
        [(1, 4, 2), (2, 4, 2), (3, 4, 2), (4, 5, 1)],  # accepted goes back
        [(1, 0, 0), (2, 1, 3)],  # more accepted than drafted
    ],
)
def test_counters_that_contradict_each_other_are_refused(told: list[tuple[int, int, int]]):
    with pytest.raises(ServerError, match="contradict"):
        folded(*told)


def test_counters_that_move_before_the_round_s_tokens_came_are_refused():
    with pytest.raises(ServerError, match="counts 3 accepted tokens in a round and sent 2"):
        folded((1, 0, 0), (2, 4, 3), (3, 8, 3))
