"""A running vLLM as lanes of the Compare place: what it tells, and what stands as unknown."""

from __future__ import annotations

from app.base import numbers
from app.engine.strategy import NONE, SERVER
from app.lab.report.columns import COLUMNS
from tests.servers.recorded_vllm import CHUNKS, DETAILED, SUMMARY, vllm
from tests.servers.scripted import serving
from tests.ui.compare.measuring import measured
from tests.ui.compare.test_server_lanes import card_of, only_servers
from tests.ui.named import words_in
from tests.ui.windows import Windows


def test_a_vllm_that_tells_every_step_has_exact_fates(windows: Windows) -> None:
    desk = windows.open()
    with serving(vllm(*CHUNKS, told=DETAILED)) as server:
        place = only_servers(desk, server, tokens=5)
        told = words_in(place.head.lanes_panel.server)
        report = measured(desk, place)
    assert "vLLM 0.32.0" in told and "drafts with an unknown method" in told and "p and q are unknown" in told
    assert (report.lanes[2].strategy, report.lanes[2].name) == (SERVER, "vLLM: an unknown method")
    card = card_of(place, "vLLM")
    assert card.answer is not None and card.told.text() == "model · an unknown method · context 4,096"
    fates = [[token.verdict.value for token in round.drafted] for round in card.answer.rounds]
    assert fates == [[], ["accepted", "accepted", "rejected"], ["rejected", "ignored", "ignored"]]
    assert report.summary[2].acceptance_rate == 2 / 6
    assert "whole server" not in words_in(place.strip)


def test_a_vllm_that_counts_for_all_users_names_that_as_the_whole_servers(windows: Windows) -> None:
    desk = windows.open()
    with serving(vllm(*CHUNKS, told=SUMMARY, counted=True)) as server:
        place = only_servers(desk, server, tokens=5)
        told = words_in(place.head.lanes_panel.server)
        report = measured(desk, place)
    assert "It does not report what was accepted" in told
    said = words_in(place.strip)
    assert "Acceptance of the whole server, including all its users" in said and "of 6 drafted tokens" in said
    lane = report.lanes[2]
    shown = {column.key: column.text((report.summary[2], lane)) for column in COLUMNS}
    for unknown in ("acceptance_rate", "alpha", "tau", "draft_share", "draft_seconds", "target_seconds"):
        assert shown[unknown] == numbers.NONE, unknown
    assert shown["tokens_per_second"] != numbers.NONE
    card = card_of(place, "vLLM")
    assert card.answer is not None and card.badge.text() == "no baseline"
    assert all(round.untold for round in card.answer.rounds)


def test_a_second_vllm_without_drafts_is_the_baseline(windows: Windows) -> None:
    desk = windows.open()
    with serving(vllm(*CHUNKS, told=DETAILED)) as drafting, serving(vllm(*CHUNKS, told=None)) as plain:
        place = only_servers(desk, drafting, plain, tokens=5)
        report = measured(desk, place)
    assert [lane.strategy for lane in report.lanes] == [NONE, "prompt-lookup", SERVER, NONE]
    assert [lane.baseline for lane in report.lanes] == [0, 0, 3, 3]
    card = card_of(place, "vLLM: an unknown method")
    assert card.factor.text().endswith("×") and card.badge.text().endswith(" · identical")
