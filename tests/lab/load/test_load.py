"""Servers with several requests at once, measured on scripted servers."""

from __future__ import annotations

import csv
import io
import json
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev
from threading import Barrier, Timer

import msgspec
import pytest

from app.engine.errors import SettingError, UserError
from app.engine.types import Sampling
from app.lab.experiment import Experiment, Job, Lane, Prompt, make_experiment
from app.lab.lanes import server_lanes
from app.lab.load import levels
from app.lab.load.export import (
    LOAD_COLUMNS,
    load_change_between,
    load_csv,
    load_curves,
    load_findings,
    load_html,
    load_markdown,
    load_sentences,
)
from app.lab.load.levels import Limits, LoadPlan, parse_levels, parse_limits, parse_rates, server_lanes_of
from app.lab.load.report import Burst, BurstDone, BurstReport, make_load_report
from app.lab.load.runner import LoadRunner
from app.lab.report.page import embedded_json
from app.lab.runs.events import Begun, Ended
from app.lab.runs.record import Latency, RunRecord, percentiles
from app.servers.client import ServerClient
from tests.commands import Command
from tests.lab.experiments import pair_of
from tests.servers.scripted import (
    DRAFTING,
    PLAIN,
    Answer,
    Asked,
    ScriptedServer,
    event,
    llama_server,
    serving,
)


def experiment_of(*servers: ScriptedServer, repeats: int = 2) -> Experiment:
    lanes = [
        lane
        for server in servers
        for lane in server_lanes(ServerClient(server.address, "", lambda: False).describe())
    ]
    assert lanes[0].pair is not None
    return make_experiment(
        Experiment(
            lanes[0].pair,
            tuple(lanes),
            (Prompt("one"), Prompt("two")),
            Sampling(seed=1),
            max_tokens=3,
            repeats=repeats,
            title="Load",
        )
    )


def measured(*servers: ScriptedServer, levels: tuple[int, ...] = (1, 2)) -> BurstReport:
    runner = LoadRunner(experiment_of(*servers), LoadPlan(levels))
    done = [event.done for event in runner.run() if isinstance(event, BurstDone)]
    assert done == list(range(1, len(servers) * len(levels) * 2 + 1))
    return runner.report()


def test_every_level_has_speeds_acceptance_and_a_gain_over_the_plain_server():
    with serving(llama_server(*DRAFTING)) as drafting, serving(llama_server(*PLAIN, types="none")) as plain:
        report = measured(drafting, plain)

    assert [(row.lane, row.at_once) for row in report.rows] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert [row.acceptance_rate for row in report.rows] == [0.5, 0.5, None, None]
    assert all(row.tokens_per_second and row.first_token_seconds and not row.failed for row in report.rows)
    assert [row.gain is not None for row in report.rows] == [True, True, False, False]
    assert [lane.baseline for lane in report.lanes] == [1, 1] and report.complete
    assert [len(burst.runs) for burst in report.bursts if burst.lane == 0] == [2, 4, 2, 4]


def test_only_the_time_counts_in_which_the_server_has_all_requests():
    with serving(llama_server(*DRAFTING)) as drafting, serving(llama_server(*PLAIN, types="none")) as plain:
        report = measured(drafting, plain)

    for burst in report.bursts:
        assert burst.busy_seconds == sorted(burst.ends)[-burst.at_once] <= burst.seconds
        assert len(burst.loaded) == len(burst.runs) - burst.at_once + 1
        tokens = [sum(run.n_tokens for run in runs) for runs in (burst.loaded, burst.runs)]
        assert tokens[0] <= burst.busy_tokens <= tokens[1]
        assert burst.tokens_per_second == burst.busy_tokens / burst.busy_seconds
        prompts = [run.prompt_index for run in burst.runs]
        assert prompts == [0, 1, 0, 1][: len(prompts)], "every level asks the same prompts"


def test_the_speed_of_one_request_is_that_under_the_whole_load():
    with serving(llama_server(*PLAIN, types="none")) as server:
        runner = LoadRunner(experiment_of(server, repeats=1), LoadPlan((2,)))
        (burst,) = (event.burst for event in runner.run() if isinstance(event, BurstDone))
    speeds = (10.0, 20.0, 30.0, 900.0)
    runs = tuple(
        msgspec.structs.replace(run, tokens_per_second=speed)
        for run, speed in zip(burst.runs, speeds, strict=True)
    )
    timed = msgspec.structs.replace(burst, runs=runs, ends=(1.0, 2.0, 3.0, 4.0), busy_seconds=3.0)
    (row,) = make_load_report(runner.experiment, runner.infos, LoadPlan((2,)), [timed]).rows

    assert row.tokens_per_second_of_one == 20.0


def test_the_requests_of_a_burst_are_at_the_server_at_the_same_time():
    together = Barrier(3)

    def complete(asked: Asked) -> Answer:
        if not asked.body.get("stream"):
            return Answer({"generation_settings": {"speculative.types": "none"}})
        if len(server.bodies("/completion")) > 2:  # after the question what it is, and the warm-up
            together.wait(30)
        return Answer(pieces=map(event, PLAIN))

    with serving(llama_server(types="none") | {"/completion": complete}) as server:
        runner = LoadRunner(experiment_of(server, repeats=1), LoadPlan((3,)))
        server.asked.clear()
        (burst,) = (event.burst for event in runner.run() if isinstance(event, BurstDone))

    assert len(burst.measured) == 6 and not together.broken


def test_turns_of_a_conversation_wait_for_each_other_under_load():
    turns = Prompt("one"), Prompt("two", before=("one",)), Prompt("three")
    with serving(llama_server(*PLAIN, types="none")) as server:
        asked = msgspec.structs.replace(experiment_of(server, repeats=1), prompts=turns)
        runner = LoadRunner(asked, LoadPlan((2,)))
        (burst,) = (event.burst for event in runner.run() if isinstance(event, BurstDone))
        said = [len(body["messages"]) for body in server.bodies("/apply-template")]

    assert [(run.prompt_index, run.turn) for run in burst.runs] == [(0, 1), (1, 2), (2, 1)] * 2
    assert sorted(said) == [1] * 5 + [3] * 2, "with the warm-up"
    ends = dict(zip(((0, 1), (1, 2), (2, 1)), burst.ends[:3], strict=True))
    assert ends[0, 1] < ends[1, 2]
    assert burst.tokens_per_second is not None


def test_a_conversation_ends_with_a_turn_that_fails():
    def complete(asked: Asked) -> Answer:
        if not asked.body.get("stream"):
            return Answer({"generation_settings": {"speculative.types": "none"}})
        late = len(server.bodies("/completion")) > 4
        return Answer({"error": {"message": "slot lost"}}, 500) if late else Answer(pieces=map(event, PLAIN))

    turns = Prompt("one"), Prompt("two", before=("one",)), Prompt("three", before=("one", "two"))
    with serving(llama_server(types="none") | {"/completion": complete}) as server:
        runner = LoadRunner(
            msgspec.structs.replace(experiment_of(server, repeats=1), prompts=turns), LoadPlan((1,))
        )
        (burst,) = (event.burst for event in runner.run() if isinstance(event, BurstDone))

    assert [(run.turn, bool(run.failure)) for run in burst.runs][:2] == [(1, False), (2, True)]
    assert all(run.turn < 3 for run in burst.runs)


def test_a_burst_with_a_failed_request_counts_for_no_rate():
    def complete(asked: Asked) -> Answer:
        if not asked.body.get("stream"):
            return Answer({"generation_settings": {"speculative.types": "none"}})
        full = len(server.bodies("/completion")) > 5
        return Answer({"error": {"message": "slot lost"}}, 500) if full else Answer(pieces=map(event, PLAIN))

    with serving(llama_server(types="none") | {"/completion": complete}) as server:
        runner = LoadRunner(experiment_of(server, repeats=2), LoadPlan((1,)))
        list(runner.run())
        report = runner.report()

    assert [burst.tokens_per_second is not None for burst in report.bursts] == [True, False]
    assert report.rows[0].failed == 2
    assert any("2 requests failed" in said for said in load_sentences(report))
    assert any("slot lost" in said for said in load_sentences(report))


def test_a_cancelled_load_keeps_the_bursts_that_were_done():
    with serving(llama_server(*PLAIN, types="none")) as server:
        runner = LoadRunner(experiment_of(server), LoadPlan((1, 2)))
        for event in runner.run():
            if isinstance(event, BurstDone):
                runner.control.cancel()
        report = runner.report()

    assert len(report.bursts) == 1 and not report.complete


def gains(*values: float) -> BurstReport:
    """A report whose drafting lane has these gains at 1, 2, 4, … requests at once."""
    levels = tuple(2**place for place in range(len(values)))
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serving(llama_server(*DRAFTING))),
            stack.enter_context(serving(llama_server(*PLAIN, types="none"))),
        ]
        runner = LoadRunner(experiment_of(*servers, repeats=1), LoadPlan(levels))
        bursts = [event.burst for event in runner.run() if isinstance(event, BurstDone)]
    timed = [
        msgspec.structs.replace(
            burst,
            busy_tokens=3,
            busy_seconds=3 / (values[levels.index(burst.at_once)] if burst.lane == 0 else 1),
        )
        for burst in bursts
    ]
    return make_load_report(runner.experiment, runner.infos, LoadPlan(levels), timed)


@pytest.mark.parametrize(
    ("values", "crossing", "said"),
    [
        ((2.0, 1.5, 0.5), 2 * 2**0.5, "drafting pays up to about 2.8 requests"),
        ((2.0, 1.5), None, "drafting pays at every measured load, from 1 to 2 at once"),
        ((0.9, 0.8), None, "drafting pays at no measured load, from 1 to 2 at once"),
        ((0.9, 1.2, 0.9), None, "drafting pays at some loads but not at others"),
        ((1.2, 0.9, 1.2), None, "drafting pays at some loads but not at others"),
        ((1.5,), None, "drafting pays with 1 request at once, the only measured load"),
        ((0.5,), None, "drafting does not pay with 1 request at once, the only measured load"),
    ],
)
def test_where_the_gain_crosses_1_is_said(values: tuple[float, ...], crossing: float | None, said: str):
    report = gains(*values)

    assert report.crossings[0] == (None if crossing is None else pytest.approx(crossing, rel=1e-3))
    assert any(said in text for text in load_sentences(report))
    assert [row.gain for row in report.rows if row.lane == 0] == pytest.approx(values)
    gain = load_curves(report).plots[2]
    assert [value for _, value in gain.line(0, len(values))] == pytest.approx(values)
    assert [mark.at for mark in gain.marks] == ([] if crossing is None else [pytest.approx(1.5)])


def test_a_server_with_fewer_slots_than_requests_is_said():
    with serving(llama_server(*PLAIN, types="none")) as server:
        report = measured(server, levels=(1, 4))

    assert any("answers 2 requests at once: the others of 4 wait" in said for said in load_sentences(report))


def test_every_output_holds_the_numbers():
    with serving(llama_server(*DRAFTING)) as drafting, serving(llama_server(*PLAIN, types="none")) as plain:
        report = measured(drafting, plain)

    assert BurstReport.from_json(report.to_json()) == report
    page = load_html(report)
    assert BurstReport.from_json(embedded_json(page)) == report and page.count("<polyline") == 2 + 2 + 1 + 1
    (head, *rows) = csv.reader(io.StringIO(load_csv(report)))
    assert head[:2] == ["name", "at_once"] and len(rows) == len(report.rows)
    assert [float(row[head.index("tokens_per_second")]) for row in rows] == [
        row.tokens_per_second for row in report.rows
    ]
    text = load_markdown(report)
    assert text.count("\n| llama-server: ") == 4 and "50.0 %" in text


@pytest.mark.parametrize("levels", [(), (0,), (1, 1000)])
def test_a_load_that_is_no_number_of_requests_is_refused(levels: tuple[int, ...]):
    with serving(llama_server(*PLAIN, types="none")) as server:
        experiment = experiment_of(server)
    with pytest.raises(SettingError, match="number of requests at once"):
        LoadRunner(experiment, LoadPlan(levels))


def test_levels_are_read_in_increasing_order():
    assert parse_levels(" 8,1, 2,2") == (1, 2, 8)


def test_of_mixed_lanes_those_of_servers_are_measured(pair_files: tuple[Path, Path]):
    with serving(llama_server(*DRAFTING)) as drafting, serving(llama_server(*PLAIN, types="none")) as plain:
        servers = experiment_of(drafting, plain)
    lanes = [
        msgspec.structs.replace(lane, pair=servers.pair_of(index)) for index, lane in enumerate(servers.lanes)
    ]
    mixed = make_experiment(Experiment(pair_of(pair_files), (Lane("suffix"), *lanes), (Prompt("a"),)))
    found = server_lanes_of(mixed)

    assert [found.pair_of(lane) for lane in range(2)] == [lane.pair for lane in mixed.lanes[2:]]
    assert [found.baseline_of(lane) for lane in range(2)] == [1, 1]
    with pytest.raises(SettingError, match="Add a running server"):
        server_lanes_of(mixed.with_lanes(mixed.lanes[:2]))


def test_lanes_that_are_no_servers_are_refused(pair_files: tuple[Path, Path]):
    experiment = make_experiment(Experiment(pair_of(pair_files), (Lane("prompt-lookup"),), (Prompt("a"),)))

    with pytest.raises(SettingError, match="Only servers"):
        LoadRunner(experiment, LoadPlan((1,)))


# ---------------------------------------------------------------------------- a rate, limits, intervals


def test_requests_of_a_rate_are_sent_at_the_times_of_a_seeded_poisson_process():
    load = LoadPlan(rates=(2.0,))
    times = load.arrivals(2.0, 4000, "7 0")
    gaps = [later - earlier for earlier, later in pairwise(times)]
    mean = fmean(gaps)
    assert times[0] == 0.0 and mean == pytest.approx(0.5, rel=0.06)
    assert stdev(gaps) == pytest.approx(mean, rel=0.06), "an exponential's spread is its mean"
    assert load.arrivals(2.0, 4000, "7 0") == times != load.arrivals(2.0, 4000, "8 0")
    assert LoadPlan((2,)).arrivals(2, 10, "7 0") == ()
    assert len(load.burst_of(0.1, [Prompt("a"), Prompt("b")])) == 10
    assert len(load.burst_of(2.0, [Prompt("a"), Prompt("b")])) == 20


def test_a_rate_sends_each_request_when_it_is_due_and_every_lane_alike(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(levels, "_RATE_SECONDS", 0.2)
    with serving(llama_server(*DRAFTING)) as drafting, serving(llama_server(*PLAIN, types="none")) as plain:
        runner = LoadRunner(experiment_of(drafting, plain, repeats=1), LoadPlan(rates=(50.0, 100.0)))
        bursts = [event.burst for event in runner.run() if isinstance(event, BurstDone)]
        report = runner.report()

    assert [(burst.rate, burst.at_once, len(burst.runs)) for burst in bursts][::2] == [
        (50.0, 0, 10), (100.0, 0, 20)
    ]  # fmt: skip
    assert bursts[0].arrivals == bursts[1].arrivals != bursts[2].arrivals
    for burst in bursts:
        assert all(end > due for end, due in zip(burst.ends, burst.arrivals, strict=True))
        assert burst.busy_seconds == max(burst.ends) and len(burst.loaded) == len(burst.runs)
        assert burst.busy_tokens == sum(run.n_tokens for run in burst.runs)
    assert [(row.lane, row.rate, row.at_once) for row in report.rows] == [
        (0, 50.0, 0), (0, 100.0, 0), (1, 50.0, 0), (1, 100.0, 0)
    ]  # fmt: skip
    assert report.complete and report.rows[0].gain is not None
    curves = load_curves(report)
    assert (curves.axis, curves.places) == ("requests a second", (50.0, 100.0))
    assert BurstReport.from_json(report.to_json()) == report
    paying = [msgspec.structs.replace(row, gain=1.5 if row.lane == 0 else None) for row in report.rows]
    (said,) = load_findings(msgspec.structs.replace(report, rows=tuple(paying), crossings=(None, None)))
    assert said.endswith("drafting pays at every measured load, from 50 to 100 a second.")


def test_a_cancelled_rate_does_not_wait_for_requests_that_are_not_due():
    with serving(llama_server(*PLAIN, types="none")) as server:
        runner = LoadRunner(experiment_of(server, repeats=1), LoadPlan(rates=(0.001,)))
        events = runner.run()
        while not isinstance(next(events), Begun):
            pass
        Timer(0.1, runner.control.cancel).start()
        assert list(events) == [Ended(False)], "the second request would be due in a quarter of an hour"


def answered(burst: Burst, first: float, gaps: tuple[float, ...], speed: float = 10.0) -> Burst:
    """The burst as if each request had taken so long."""
    runs = tuple(
        msgspec.structs.replace(
            run,
            first_token_seconds=first,
            n_tokens=len(gaps) + 1,
            arrival_gaps=gaps,
            **percentiles([first], [(len(gaps) + 1, gaps)]),
        )
        for run in burst.runs
    )
    return msgspec.structs.replace(burst, runs=runs, busy_tokens=int(speed), busy_seconds=1.0)


def test_goodput_counts_the_requests_that_keep_every_limit():
    with serving(llama_server(*PLAIN, types="none")) as server:
        runner = LoadRunner(experiment_of(server, repeats=1), LoadPlan((1,)))
        (burst,) = (event.burst for event in runner.run() if isinstance(event, BurstDone))

    def kept(burst: Burst, **limits: float) -> tuple[float | None, float | None]:
        ends = msgspec.structs.replace(burst, ends=(0.5, 1.0))
        load = LoadPlan((1,), limits=Limits(**limits))
        report = make_load_report(runner.experiment, runner.infos, load, [ends])
        assert not limits or any("Goodput counts requests with" in said for said in load_sentences(report))
        return report.rows[0].goodput, report.rows[0].kept_limits

    good, slow = answered(burst, 0.2, (0.1,) * 20), answered(burst, 0.2, (0.1,) * 18 + (5.0,) * 2)
    assert kept(good) == (None, None)
    assert kept(good, first_token=0.2, inter_token=0.1) == (2.0, 1.0)
    assert kept(good, first_token=0.19) == (0.0, 0.0)
    assert kept(slow, inter_token=0.1) == (0.0, 0.0), "more than one of twenty tokens was late"
    assert kept(answered(burst, 0.2, (0.1,) * 40 + (5.0,)), inter_token=0.1) == (2.0, 1.0)
    half = msgspec.structs.replace(good, runs=(good.runs[0], slow.runs[1]))
    assert kept(half, inter_token=0.1) == (1.0, 0.5)
    assert kept(answered(burst, 0.2, ()), inter_token=0.1) == (2.0, 1.0), "one token"
    failed = RunRecord.of_failed(runner.experiment, Job(0, 1, 0), "gone")
    assert kept(msgspec.structs.replace(good, runs=(good.runs[0], failed)), first_token=1) == (1.0, 0.5)


def test_speeds_and_gains_have_intervals_over_repeats():
    with serving(llama_server(*DRAFTING)) as drafting, serving(llama_server(*PLAIN, types="none")) as plain:
        runner = LoadRunner(experiment_of(drafting, plain, repeats=3), LoadPlan((1,)))
        bursts = [event.burst for event in runner.run() if isinstance(event, BurstDone)]

    def report(*speeds: float) -> BurstReport:
        timed = [
            answered(burst, 0.2, (0.1,) * 9, speeds[burst.repeat] if burst.lane == 0 else 100)
            for burst in bursts
        ]
        return make_load_report(runner.experiment, runner.infos, LoadPlan((1,)), timed)

    clear, unclear = report(150, 151, 152), report(60, 120, 240)
    row = clear.rows[0]
    assert row.tokens_per_second == pytest.approx(151, abs=0.1) and row.gain == pytest.approx(1.51, abs=0.001)
    assert row.gain_low and row.gain_high and 1.4 < row.gain_low < 1.51 < row.gain_high < 1.6
    assert row.tokens_per_second_low == pytest.approx(100 * row.gain_low)
    assert row.gain_words == f"1.51× ({row.gain_low:.2f} to {row.gain_high:.2f})"
    assert not any("interval" in said for said in load_findings(clear))
    (said,) = load_findings(unclear)
    assert said.endswith("With 1 request at once the interval includes 1×.")
    assert row.inter_token_p95 == pytest.approx(0.1) and row.first_token_p99 == pytest.approx(0.2)
    for text in (load_html(clear), load_markdown(clear)):
        assert row.gain_words in text and "100 · 100 · 100 ms" in text
    assert "inter_token_p99" in load_csv(clear).splitlines()[0]


def test_loads_measured_before_there_were_rates_open():
    with serving(llama_server(*PLAIN, types="none")) as server:
        report = measured(server)
    old = json.loads(report.to_json())
    old["format"] = "load-1.1"
    del old["rates"], old["limits"]
    new = set(Latency.__struct_fields__) | {"rate", "goodput", "kept_limits", "arrivals", "arrival_gaps"}
    for part in (*old["rows"], *old["bursts"], *(run for burst in old["bursts"] for run in burst["runs"])):
        for name in [name for name in part if name in new or name.endswith(("_low", "_high"))]:
            del part[name]
    early = BurstReport.from_json(json.dumps(old))
    assert early.load == LoadPlan((1, 2)) and [row.level for row in early.rows] == [1, 2]
    assert load_markdown(early).count("| 1 at once |") == 1 and load_curves(early).places == (1, 2)


def test_rates_and_limits_are_read():
    assert parse_rates(" 2, 0.5,2") == (0.5, 2.0)
    assert parse_limits("first_token=0.5, inter_token = 0.05") == Limits(0.5, 0.05)
    assert not Limits() and Limits(0.5)


# ---------------------------------------------------------------------------- on the command line


def test_bench_load_prints_its_table_and_writes_everything(command: Command, tmp_path: Path):
    files = {name: tmp_path / f"out.{name}" for name in ("json", "csv", "html", "markdown")}
    with serving(llama_server(*DRAFTING)) as drafting, serving(llama_server(*PLAIN, types="none")) as plain:
        ended = command(
            "bench",
            *("--server", drafting.address, "--server", plain.address, "--load", "1,2", "--prompt", "Hi"),
            *("--max-tokens", 3, "--repeat", 1, "--limits", "first_token=60"),
            *(word for name, path in files.items() for word in (f"--{name}", path)),
        )

    assert ended.code == 0, ended.err
    rows = ended.out.splitlines()
    assert rows[0].split()[:2] == ["lane", "load"] and len(rows[2 : rows.index("")]) == 4
    assert "4/4  2 at once:" in ended.err
    report = BurstReport.from_json(files["json"].read_bytes())
    assert len(report.bursts) == 4 and report.title == "One prompt"
    markdown = files["markdown"].read_text(encoding="utf-8")
    for column in LOAD_COLUMNS:
        assert f"{column.title}: {column.definition}" in rows
        assert f"- {column.title}: {column.definition}" in markdown
    assert "tokens/s per request" in files["html"].read_text(encoding="utf-8")
    table = list(csv.DictReader(io.StringIO(files["csv"].read_text(encoding="utf-8"))))
    assert [row["at_once"] for row in table] == ["1", "2"] * 2
    assert {float(row["kept_limits"]) for row in table} == {1.0} and report.limits == Limits(60.0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--load", "1,x"), "cannot be '1,x'"),
        (("--load", "0"), "Allowed: 1 to 256"),
        (("--load", "1.5"), "Allowed: whole numbers of 1 or more"),
        (("--load", "1"), "--load needs a server"),
        (("--load", "1", "--server", "h:1", "--strategy", "none"), "--strategy cannot be used with --load"),
        (("--load", "1", "--server", "h:1", "--traces", "t.zip"), "--traces cannot be used with --load"),
        (("--request-rate", "0"), "cannot be '0'. Allowed: numbers above 0"),
        (("--request-rate", "1e9"), "Allowed: above 0, at most 100"),
        (("--request-rate", "1,nan"), "cannot be '1,nan'"),
        (("--request-rate", "1"), "--request-rate needs a server"),
        (("--request-rate", "1", "--load", "1", "--server", "h:1"), "--request-rate cannot be used with"),
        (("--limits", "first_token=1", "--server", "h:1"), "--limits needs --load or --request-rate"),
        (("--limits", "speed=1"), "Allowed: first_token and inter_token with seconds"),
        (("--limits", "inter_token=-1"), "cannot be 'inter_token=-1'"),
    ],
)
def test_what_has_no_meaning_under_load_is_wrong_usage(command: Command, words: tuple[str, ...], said: str):
    ended = command("bench", "--prompt", "Hi", *words)

    assert ended.code == 2 and said in ended.err


def test_two_loads_are_compared_at_each_level(command: Command, tmp_path: Path):
    with serving(llama_server(*PLAIN, types="none")) as server:
        before = measured(server)

    def faster(factors: dict[int, float]) -> BurstReport:
        bursts = [
            msgspec.structs.replace(burst, busy_tokens=round(burst.busy_tokens * factors[burst.at_once]))
            for burst in before.bursts
        ]
        return msgspec.structs.replace(before, bursts=tuple(bursts))

    change = load_change_between(before, faster({1: 2.0, 2: 3.0}))
    assert [lane.speed.factor for lane in change.lanes] == pytest.approx([2, 3])
    assert [lane.name for lane in change.lanes] == [f"{before.lanes[0].name}, {n} at once" for n in (1, 2)]
    files = [tmp_path / "before.json", tmp_path / "after.json"]
    for file, report in zip(files, (before, faster({1: 0.5, 2: 1.0})), strict=True):
        file.write_bytes(report.to_json())
    ended = command("compare", *files)
    assert ended.code == 0 and "0.50×" in ended.out and "Over 2 prompts that both files have." in ended.out
    other = msgspec.structs.replace(before, prompts=before.prompts[:1])
    with pytest.raises(UserError, match="different prompts"):
        load_change_between(before, other)
