"""Lanes: their names, their file, and those of a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.engine.errors import SettingError, UserError
from app.engine.process.host import ThreadHome
from app.engine.strategy import NONE, SERVER
from app.engine.types import ModelOptions, Sampling
from app.lab.experiment import Experiment, Lane, Pair, Prompt, make_experiment
from app.lab.lanes import lane_names, read_lanes, server_lanes, with_server
from app.lab.runs.events import Control, LabEvent, PairLoaded, Paused, RunDropped, RunRound
from app.lab.runs.runner import Runner
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

OWN = Pair(ModelOptions("/m/t.gguf"), ModelOptions("/m/d.gguf"))


def names(*lanes: Lane) -> tuple[str, ...]:
    return lane_names(make_experiment(Experiment(OWN, lanes, (Prompt("a"),), Sampling(seed=1))))


def test_a_synthetic_lane_says_so() -> None:
    experiment = make_experiment(
        Experiment(Pair(ModelOptions("t.gguf")), (Lane("oracle:alpha=0.9"),), (Prompt("a"),))
    )
    assert lane_names(experiment) == ("none", "oracle:alpha=0.9 (synthetic)")


def test_one_pair_goes_without_saying() -> None:
    assert names(Lane("draft-simple"), Lane("suffix", "mine")) == ("none", "draft-simple", "mine")


def test_where_there_are_several_targets_each_lane_says_its_own() -> None:
    second = Pair(ModelOptions("/m/u.gguf"))
    assert names(Lane("suffix"), Lane("suffix", "", second), Lane("ngram-mod", "mine", second)) == (
        "none on t.gguf",
        "suffix on t.gguf",
        "none on u.gguf",
        "suffix on u.gguf",
        "mine",
    )


def test_where_there_are_several_drafts_the_lanes_that_use_them_say_so() -> None:
    second = Pair(OWN.target, ModelOptions("/m/e.gguf"))
    assert names(Lane("suffix"), Lane("draft-simple"), Lane("draft-simple", "", second)) == (
        "none",
        "suffix",
        "draft-simple with d.gguf",
        "draft-simple with e.gguf",
    )
    assert names(Lane("suffix"), Lane("draft-simple", "", second)) == ("none", "suffix", "draft-simple")


def test_a_label_that_two_lanes_share_says_it_too() -> None:
    second = Pair(ModelOptions("/m/u.gguf"))
    assert names(Lane("suffix", "fast"), Lane("suffix", "fast", second))[1::2] == (
        "fast on t.gguf",
        "fast on u.gguf",
    )


def test_files_of_one_name_show_their_folders_and_one_file_its_options() -> None:
    elsewhere = Pair(ModelOptions("/n/t.gguf"))
    assert names(Lane("suffix"), Lane("suffix", "", elsewhere))[::2] == (
        "none on m/t.gguf",
        "none on n/t.gguf",
    )
    short = Pair(ModelOptions("/m/t.gguf", ctx_size=512))
    assert names(Lane("suffix"), Lane("suffix", "", short))[::2] == (
        "none on t.gguf ctx_size=0",
        "none on t.gguf ctx_size=512",
    )


KEPT = Pair(ModelOptions("/m/t.gguf", threads=2), ModelOptions("/m/d.gguf", ctx_size=512))


def lanes(tmp_path: Path, *entries: dict[str, Any]) -> tuple[Lane, ...]:
    file = tmp_path / "lanes.json"
    file.write_text(json.dumps(entries))
    return read_lanes(file, KEPT)


def test_pairs_are_completed_from_the_own_one(tmp_path: Path) -> None:
    plain, drafted, alone, whole = lanes(
        tmp_path,
        {"strategy": "suffix"},
        {"strategy": "draft-simple", "label": "e", "draft": "e.gguf"},
        {"strategy": "suffix", "target": "/n/u.gguf"},
        {"strategy": "draft-simple", "target": {"path": "u.gguf", "threads": 5}, "draft": "/n/f.gguf"},
    )
    assert plain == Lane("suffix")
    draft = ModelOptions(str(tmp_path / "e.gguf"), ctx_size=512)
    assert drafted == Lane("draft-simple", "e", Pair(KEPT.target, draft))
    assert alone.pair == Pair(ModelOptions("/n/u.gguf", threads=2))
    assert whole.pair is not None and whole.pair.draft is not None
    assert whole.pair.target == ModelOptions(str(tmp_path / "u.gguf"), threads=5)
    assert whole.pair.draft.path == "/n/f.gguf"


@pytest.mark.parametrize("entry", [{"strategy": "suffix", "drafft": "e"}, {"label": "x"}, {"strategy": 3}])
def test_what_is_no_lane_is_refused(tmp_path: Path, entry: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=r"lanes\.json cannot be read"):
        lanes(tmp_path, entry)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_gpu_layer": 9}, "no option “n_gpu_layer”"),
        ({"n_gpu_layers": "many"}, "cannot be used"),
        ({"ctx_size": -5}, "ctx_size"),
    ],
)
def test_options_of_a_model_are_checked(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        lanes(tmp_path, {"strategy": "suffix", "target": {"path": "t.gguf", **options}})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot be read"):
        read_lanes(tmp_path / "missing.json", KEPT)


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
    assert failures[0] == "" and "stopped in the middle of its answer" in failures[1]
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
