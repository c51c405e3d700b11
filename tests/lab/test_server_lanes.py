"""Servers as lanes of an experiment: their baselines, their order, their journals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.engine.errors import UserError
from app.engine.process.host import ThreadHome
from app.engine.strategy import NONE, SERVER
from app.engine.types import ModelOptions, Sampling
from app.lab.experiment import Experiment, Lane, Pair, Prompt, make_experiment
from app.lab.lane_names import lane_names
from app.lab.runs.control import Control
from app.lab.runs.events import LabEvent, PairLoaded, Paused, RunDropped, RunRound
from app.lab.runs.runner import Runner
from app.lab.server_lanes import server_lanes, with_server
from app.servers.client import ServerClient
from tests.servers.scripted import (
    DRAFTING,
    PLAIN,
    Answer,
    ScriptedServer,
    counted,
    ended,
    llama_server,
    serving,
)


def lanes_of(*servers: ScriptedServer) -> tuple[Lane, ...]:
    clients = [ServerClient(server.address, "", lambda: False) for server in servers]
    return tuple(lane for client in clients for lane in server_lanes(client.describe()))


def experiment_of(*lanes: Lane, **settings: Any) -> Experiment:
    assert lanes[0].pair is not None
    prompts = (Prompt("one"), Prompt("two"))
    return make_experiment(
        Experiment(lanes[0].pair, lanes, prompts, Sampling(seed=1), max_tokens=3, repeats=1, **settings)
    )


def finished(experiment: Experiment, journal: Path | None = None) -> tuple[Runner, list[LabEvent]]:
    runner = Runner(experiment, ThreadHome, journal=journal)
    return runner, list(runner.run())


def test_a_server_of_the_same_model_without_drafts_is_the_baseline():
    with serving(llama_server(*DRAFTING)) as drafting, serving(llama_server(*PLAIN, types="none")) as plain:
        experiment = experiment_of(*lanes_of(drafting, plain))

    assert [lane.strategy for lane in experiment.lanes] == [SERVER, NONE]
    assert [experiment.baseline_of(lane) for lane in range(2)] == [1, 1]
    assert [experiment.lanes[job.lane].strategy for job in experiment.jobs()][:2] != [SERVER, SERVER]


def test_a_server_of_another_model_is_no_baseline():
    other = {"data": [{"meta": {"n_params": 99}}]}
    with (
        serving(llama_server(*DRAFTING)) as drafting,
        serving(llama_server(*PLAIN, types="none") | {"/v1/models": Answer(other)}) as plain,
    ):
        experiment = experiment_of(*lanes_of(drafting, plain))

    assert [experiment.baseline_of(lane) for lane in range(2)] == [None, 1]


def test_a_server_that_can_leave_drafting_out_is_its_own_baseline():
    settings = {"generation_settings": {"speculative.types": "draft-simple", "speculative.n_max": 0}}
    with serving(llama_server() | {"/completion": Answer(settings)}) as server:
        experiment = experiment_of(*lanes_of(server))

    assert [lane.strategy for lane in experiment.lanes] == [NONE, SERVER]
    assert experiment.baseline_of(1) == 0


def test_lanes_of_equal_servers_are_named_with_their_addresses():
    with serving(llama_server(*DRAFTING)) as first, serving(llama_server(*DRAFTING)) as second:
        names = lane_names(experiment_of(*lanes_of(first, second)))

    hosts = [server.address.removeprefix("http://") for server in (first, second)]
    assert names == tuple(f"llama-server: draft-simple on {host}" for host in hosts)


def test_runs_of_servers_are_compared_and_blame_no_other_program():
    with serving(llama_server(*DRAFTING)) as drafting, serving(llama_server(*PLAIN, types="none")) as plain:
        runner, _events = finished(experiment_of(*lanes_of(drafting, plain)))

    records = list(runner.records.values())
    assert all(record.identical_to_baseline and record.speedup for record in records)
    assert all(record.other_load is None for record in records)
    runner.close()


def test_every_server_is_asked_what_it_is_and_warmed_up_once():
    with serving(llama_server(*DRAFTING)) as drafting, serving(llama_server(*PLAIN, types="none")) as plain:
        experiment = experiment_of(*lanes_of(drafting, plain))
        for server in (drafting, plain):
            server.asked.clear()
        runner, events = finished(experiment)
        asked = [len(server.bodies("/completion")) for server in (drafting, plain)]

    assert asked == [1 + 1 + 2] * 2  # what it is, the warm-up, two prompts
    assert [type(event) for event in events].count(PairLoaded) == 2
    runner.close()


def test_a_server_without_a_baseline_goes_on_from_its_own_answers():
    with serving(llama_server(*DRAFTING)) as server:
        (lane,) = lanes_of(server)
        turns = Prompt("one"), Prompt("two", before=("one",))
        experiment = msgspec.structs.replace(experiment_of(lane), prompts=turns)
        runner, _events = finished(experiment)
        asked = [body["messages"] for body in server.bodies("/apply-template")]

    assert asked[-1] == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "abc"},
        {"role": "user", "content": "two"},
    ]
    assert [record.turn for record in runner.records.values()] == [1, 2]
    runner.close()


def test_texts_are_compared_where_tokens_are_not_told():
    def untold(text: str) -> list[dict[str, Any]]:
        hidden = {**counted(0, text, 2), "tokens": []}
        return [counted(1, "a", 1), hidden, ended(2)]

    with (
        serving(llama_server(*untold("x"))) as drafting,
        serving(llama_server(*untold("y"), types="none")) as plain,
    ):
        runner, _events = finished(experiment_of(*lanes_of(drafting, plain)))

    (first, *_) = [record for record in runner.records.values() if record.lane == 0]
    assert first.identical_to_baseline is False and first.first_divergence is None
    runner.close()


def test_a_server_that_fails_fails_its_runs_only(pair_files: tuple[Path, Path]):
    target, draft = (ModelOptions(str(path), threads=1) for path in pair_files)
    with serving(llama_server(*DRAFTING[:2])) as server:
        experiment = make_experiment(
            Experiment(
                Pair(target, draft),
                (Lane(NONE), *lanes_of(server)),
                (Prompt("abc"),),
                Sampling(seed=1),
                max_tokens=3,
                repeats=1,
                chat=False,
            )
        )
        runner, _events = finished(experiment)

    failures = {record.lane: record.failure for record in runner.records.values()}
    assert failures[0] == "" and "ended its answer in the middle" in failures[1]
    runner.close()


def test_a_pause_in_an_answer_of_a_server_repeats_the_run():
    with serving(llama_server(*DRAFTING)) as server:
        control = Control()
        runner = Runner(experiment_of(*lanes_of(server)), ThreadHome, control=control)
        heard: list[LabEvent] = []
        for event in runner.run():
            if isinstance(event, RunRound) and not any(isinstance(seen, RunRound) for seen in heard):
                control.pause()
            elif isinstance(event, Paused):
                control.resume()
            heard.append(event)

    assert [type(event) for event in heard].count(RunDropped) == 1
    assert len(runner.records) == 2 and not any(record.failure for record in runner.records.values())
    runner.close()


def test_a_journal_of_a_server_with_other_settings_is_not_resumed(tmp_path: Path):
    journal = tmp_path / "journal.jsonl"
    script = llama_server(*DRAFTING)
    with serving(script) as server:
        experiment = experiment_of(*lanes_of(server))
        runner = Runner(experiment, ThreadHome, journal=journal)
        for _event in runner.run():
            if runner.records:  # one of two is done
                break
        runner.close()
        server.script = llama_server(*DRAFTING, types="none,ngram-mod")
        with pytest.raises(UserError, match="speculation is ngram-mod instead of draft-simple"):
            finished(experiment, journal)


def test_a_server_that_is_asked_again_has_new_lanes_in_its_old_place():
    mine = Lane("prompt-lookup")
    with serving(llama_server(*DRAFTING)) as server:
        (drafting,) = lanes_of(server)
        named = msgspec.structs.replace(drafting, label="our cluster")
        client = ServerClient(server.address, "", lambda: False)
        before = client.describe()
        server.script = llama_server(types="none")
        after = ServerClient(server.address, "", lambda: False).describe()

    assert with_server((mine,), before) == (mine, drafting)
    assert with_server((named, mine), before) == (named, mine), "a given label stays"
    (plain, last) = with_server((drafting, mine), after)
    assert (plain.strategy, plain.label, plain.pair, last) == (
        NONE, "llama-server: none", drafting.pair, mine,
    )  # fmt: skip
