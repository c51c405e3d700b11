"""llama-server logs, read: what drafted, how well, and why not."""

from __future__ import annotations

import pytest

from app.engine.explain.server_log import read_log

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
        ("E spec common_specu: the target and draft vocabs are not compatible", "not the target's"),
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
        ("srv    load_model: speculative decoding not supported by this context", "cannot go back"),
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
