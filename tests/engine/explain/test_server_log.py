"""llama-server logs, read: what drafted, how well, and why not."""

from __future__ import annotations

import pytest

from app.engine.explain.server_log import StrategyCounts, read_log

LINES = (
    "0.02.113.410 I spec common_specu: adding speculative implementation 'ngram-mod'",
    "0.02.113.412 I spec common_specu: - n_match=24, n_max=64, n_min=48",
    "0.02.113.415 I spec common_specu: - mod size=4194304 (16.000 MB)",
    "0.02.114.001 I spec common_specu: adding speculative implementation 'draft-simple'",
    "0.02.114.002 I spec common_specu: - n_max=4, n_min=0, p_min=0.000000",
    "0.02.114.003 I spec common_specu: - gpu_layers=-1, cache_k=f16, cache_v=f16, devices=[default]",
    "slot print_timing: id  0 | prompt eval time =      52.12 ms /    18 tokens (    2.90 ms per token)",
    "slot print_timing: id  0 |        eval time =    1000.00 ms /    40 tokens (   25.00 ms per token)",
    "slot print_timing: id  0 | draft acceptance = 0.50000 (   20 accepted /    40 generated)",
    "slot print_timing: id  0 |        eval time =    1000.00 ms /    20 tokens (   50.00 ms per token)",
    "slot print_timing: id  0 | draft acceptance = 0.25000 (    5 accepted /    20 generated)",
    "slot update_slots: id  0 | accepted  1/ 4 draft tokens (restore checkpoint)",
)
TWO_ANSWERS = "\n".join(LINES)


def test_counts_are_pooled_over_the_answers() -> None:
    log = read_log(LINES)
    assert log.strategies == {
        "ngram-mod": "n_match=24, n_max=64, n_min=48",
        "draft-simple": "n_max=4, n_min=0, p_min=0.000000",
    }
    assert (log.requests, log.tokens, log.seconds) == (2, 60, 2.0)
    assert (log.accepted, log.drafted, log.drafting, log.restored) == (25, 60, 2, 1)
    assert log.problems == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            'error while handling argument "--draft-max": the argument has been removed. use '
            "--spec-draft-n-max or --spec-ngram-mod-n-max",
            "--draft-max has been removed; use --spec-draft-n-max or --spec-ngram-mod-n-max",
        ),
        (
            "srv    load_model: failed to initialize speculative decoding context: draft-simple requires a "
            "draft context",
            "It answers without drafting: draft-simple requires a draft context",
        ),
        ("E spec common_specu: the target and draft vocabs are not compatible", "differs from the target's"),
        (
            "D spec common_specu: draft model vocab must closely match target model to use speculation but "
            "target vocab size 151936 does not match draft vocab size 32000 - difference 119936",
            "the target has 151936 tokens, the draft 32000",
        ),
        (
            "srv    load_model: failed to initialize speculative decoding context: draft model vocab type "
            "must match target model to use speculation",
            "It answers without drafting",
        ),
        ("srv    load_model: speculative decoding not supported by this context", "cannot be rewound"),
        ("srv    load_model: failed to load draft model, 'd.gguf'", "d.gguf could not be loaded"),
        (
            "spec common_specu: no implementations specified for speculative decoding",
            "--spec-type is missing",
        ),
        ("spec ngram_mod: ngram_mod n_match=4 is too small - poor quality is possible, see: x", "of 4"),
    ],
)
def test_every_reason_for_not_drafting_is_found(line: str, words: str) -> None:
    log = read_log([line, line])
    assert len(log.problems) == 1
    assert words in log.problems[0]


def test_the_usage_of_a_removed_flag_is_no_second_problem() -> None:
    usage = "--draft, --draft-n, --draft-max N       the argument has been removed. use --spec-draft-n-max or"
    assert not read_log([usage]).problems


GUIDE = (
    "draft acceptance rate = 0.57576 (  171 accepted /   297 generated)",
    "statistics ngram_simple: #calls = 15, #gen drafts = 5, #acc drafts = 5, #gen tokens = 187, "
    "#acc tokens = 73",
    "statistics draft: #calls = 10, #gen drafts = 10, #acc drafts = 10, #gen tokens = 110, #acc tokens = 98",
)


def line(begun: int, calls: int, drafts: int) -> str:
    return (
        f"T spec common_specu: statistics        ngram-mod: #calls(b,g,a) = {begun:4d} {calls:6d} "
        f"{drafts:6d}, #gen drafts = {drafts:6d}, #acc drafts = {drafts:5d}, "
        f"#gen tokens = {10 * drafts:6d}, #acc tokens = {7 * drafts:5d}, #mean acc len = 8.00, "
        "#acc rate/pos = (1.000), dur(b,g,a) = 1.500, 2.000, 0.250 ms"
    )


def test_statistics_of_older_versions_are_read() -> None:
    """As llama.cpp's own guide prints them."""
    log = read_log(GUIDE)
    assert log.known
    assert (log.accepted, log.drafted) == (171, 297)
    assert log.counts["ngram-simple"] == StrategyCounts(None, 15, None, 5, 5, 187, 73, None, None, None)
    assert log.counts["draft-simple"].accepted == 98
    assert log.strategy == "ngram-simple+draft-simple"


def test_lines_that_lost_their_breaks_are_read() -> None:
    """As chats and forms paste them."""
    assert read_log([" ".join((LINES[7], *GUIDE[:2], line(1, 10, 2)))]) == read_log(
        [LINES[7], *GUIDE[:2], line(1, 10, 2)]
    )


def test_statistics_alone_are_a_log() -> None:
    assert read_log(GUIDE[:1]).known
    log = read_log(GUIDE[1:])
    assert (log.accepted, log.drafted) == (171, 297)


def test_a_count_that_goes_on_is_counted_once_and_one_that_starts_anew_is_added() -> None:
    ended = StrategyCounts(2, 30, 5, 5, 5, 50, 35, 1.5, 2.0, 0.25)
    assert read_log([line(1, 10, 2), line(2, 30, 5)]).counts == {"ngram-mod": ended}
    again = read_log([line(1, 10, 2), line(2, 30, 5), line(1, 40, 6), line(1, 50, 7)]).counts["ngram-mod"]
    assert again == StrategyCounts(4, 120, 18, 18, 18, 180, 126, 4.5, 6.0, 0.75)


def test_what_one_of_two_counts_does_not_tell_is_not_told() -> None:
    told = StrategyCounts(1, 2, 3, 4, 5, 6, 7, 1.0, 2.0, 3.0)
    silent = StrategyCounts(None, 2, None, 4, 5, 6, 7, None, None, None)
    both = StrategyCounts(None, 4, None, 8, 10, 12, 14, None, None, None)
    assert told.plus(silent) == silent.plus(told) == both
    assert told.plus(told)[-3:] == (2.0, 4.0, 6.0)


def test_what_other_programs_count_is_read() -> None:
    simple = [
        "decoded   48 tokens in    2.000 seconds",
        "n_drafted = 60",
        "n_accept  = 30",
        "accept    = 50%",
    ]
    vllm = [
        "SpecDecoding metrics: Mean acceptance length: 2.1, Accepted: 20 tokens, Drafted: 40 tokens, Per"
    ] * 2
    log = read_log(simple)
    assert (log.requests, log.tokens, log.seconds, log.accepted, log.drafted) == (1, 48, 2.0, 30, 60)
    assert (read_log(vllm).accepted, read_log(vllm).drafted) == (40, 80)


def test_the_strategy_of_a_log_is_one_of_ours() -> None:
    assert read_log(LINES).strategy == "ngram-mod+draft-simple:n_max=4"
    wrong = [LINES[0], "spec: - n_match=999999999, n_max=3"]
    assert read_log(wrong).strategy == "ngram-mod"


def test_other_texts_hold_nothing() -> None:
    assert not read_log(["# A readme", "prompt eval time of my life"]).known


def test_numbers_that_are_none_are_passed_over() -> None:
    many = "9" * 5000
    assert not read_log(
        [
            "slot print_timing: |  eval time = 1.2.3 ms / 4 tokens",
            "slot print_timing: |  eval time = . ms / 4 tokens",
            f"slot print_timing: |  eval time = 1.0 ms / {many} tokens",
            f"slot print_timing: | draft acceptance = 0.5 ( 1 accepted / {many} generated)",
        ]
    ).known


def test_a_line_that_is_almost_settings_is_read_in_no_time() -> None:
    """Its pairs could be cut in two to the power of 40 ways."""
    line = "I spec common_specu: - a=a" + "a=aa" * 40 + " and more"
    assert read_log([LINES[0], line]).strategies == {"ngram-mod": ""}
