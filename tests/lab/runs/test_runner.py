"""The runner: order, comparisons, pauses, crashes, journals; over real tiny models."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from app.engine.engine import Engine
from app.engine.errors import UserError
from app.engine.process.host import ProcessHome, ThreadHome
from app.engine.process.messages import AnyCommand, Event, Failed, Force, Generate, Load
from app.engine.types import FinishReason, GenerationRequest, ModelOptions, Sampling
from app.lab.experiment import Experiment, Job, Lane, Pair, Prompt
from app.lab.runs.events import (
    Begun,
    Control,
    Ended,
    EngineReplaced,
    LabEvent,
    PairLoaded,
    Paused,
    Resumed,
    RunDone,
    RunDropped,
    RunRound,
    RunStarted,
    TimeLeft,
    WarmingUp,
)
from app.lab.runs.journal import Journal, changes, is_free, made_with
from app.lab.runs.lab_engine import LabEngine
from app.lab.runs.runner import Runner
from tests.files.tiny import Tiny
from tests.lab.experiments import DRAFT, LOOKUP, finished, pair_of, small

Files = tuple[Path, Path]


@pytest.mark.same_text
def test_every_run_is_done_cold_and_compared(pair_files: Files, clear: str) -> None:
    experiment = small(pair_files, DRAFT, LOOKUP, repeats=2, prompts=(Prompt(clear),))
    runner, events = finished(experiment)
    records = runner.records
    assert list(records) == list(experiment.jobs())
    assert isinstance(events[0], Begun) and events[-1] == Ended(complete=True)
    assert all(record.cold and record.n_tokens == 12 for record in records.values())
    for job, record in records.items():
        base = records[experiment.baseline_job(job)]
        assert record.tokens_per_second and base.tokens_per_second
        assert record.speedup == record.tokens_per_second / base.tokens_per_second
        assert record.identical_to_baseline and record.first_divergence is None
        assert record.token_ids == base.token_ids
        assert record.baseline_lane == 0
    assert sum(record.drafted for record in records.values()) > 0
    runner.close()


@pytest.mark.same_text
def test_the_tokens_are_those_of_the_engine_itself(pair_files: Files, engine: Engine) -> None:
    """Bench and window agree on the same seeds: both send the same engine the same request."""
    experiment = small(pair_files, f"{DRAFT}:verify=speculative", sampling=Sampling(temperature=0.9, seed=11))
    runner, _ = finished(experiment)
    for job, record in runner.records.items():
        request = experiment.request(0, experiment.lanes[job.lane].strategy)
        assert isinstance(request, GenerationRequest)
        assert record.token_ids == engine.answer(request).token_ids


def talk(files: Files, **settings: Any) -> Experiment:
    """A conversation of three turns, and a prompt behind it."""
    before = ("abc", "abd", "abe")
    turns = [Prompt(text, before=before[:at]) for at, text in enumerate(before)]
    return small(files, DRAFT, LOOKUP, prompts=(*turns, Prompt("xyz")), **settings)


def test_every_turn_of_a_conversation_is_a_run_behind_the_answers_before_it(pair_files: Files) -> None:
    experiment = talk(pair_files, chat=True, repeats=2)
    runner, events = finished(experiment)
    done = [event for event in events if isinstance(event, RunDone)]
    assert len(done) == len(experiment.jobs()) == 2 * 3 * 4
    assert not any(event.record.failure for event in done)
    for event in done:
        job, record = event.job, event.record
        assert record.turn == experiment.prompts[job.prompt].turn == [1, 2, 3, 1][job.prompt]
        texts = [runner.records[Job(job.repeat, turn, 0)].text for turn in range(record.turn - 1)]
        asked = [text for pair in zip(("abc", "abd"), texts, strict=False) for text in pair]
        assert event.trace is not None
        said = [message.content for message in event.trace.header.messages]
        assert said == [*asked, experiment.prompts[job.prompt].prompt]
    runner.close()


def test_all_lanes_read_the_conversation_of_the_baseline(pair_files: Files) -> None:
    """Texts drawn under `speculative` differ from the baseline's, and then the prompts would."""
    drawn = Sampling(temperature=1.0, seed=3)
    runner, events = finished(talk(pair_files, sampling=drawn))
    texts = {(record.prompt_index, record.text) for record in runner.records.values()}
    assert len(texts) > len(runner.experiment.prompts), "some answers differ"
    prompts = {(event.job.prompt, event.header.prompt) for event in events if isinstance(event, RunStarted)}
    assert len(prompts) == len(runner.experiment.prompts)
    runner.close()


def test_behind_a_turn_without_an_answer_the_later_ones_fail(pair_files: Files) -> None:
    prompts = Prompt("a" * 3000), Prompt("abd", before=("a" * 3000,)), Prompt("xyz")
    runner, _ = finished(small(pair_files, prompts=prompts))
    failures = {job.prompt: record.failure for job, record in runner.records.items() if job.lane == 1}
    assert "context has room for" in failures[0] and not failures[2]
    assert failures[1] == "The turn before this one was not answered."
    runner.close()


@pytest.mark.same_text
def test_a_journal_is_resumed_inside_a_conversation(pair_files: Files, tmp_path: Path) -> None:
    experiment, journal = talk(pair_files, chat=True), tmp_path / "journal.jsonl"
    runner = Runner(experiment, ThreadHome, journal=journal)
    for _event in runner.run():
        if len(runner.records) == 5:  # in the second turn
            break
    runner.close()
    resumed, events = finished(experiment, journal=journal)
    whole, _ = finished(experiment)
    assert isinstance(events[0], Begun) and events[0].done == 5
    ids = [{job: record.token_ids for job, record in run.records.items()} for run in (resumed, whole)]
    assert ids[0] == ids[1] and not any(record.failure for record in resumed.records.values())
    resumed.close()
    whole.close()


def test_all_lanes_are_warmed_up_before_the_first_run(pair_files: Files) -> None:
    _, events = finished(small(pair_files, DRAFT, LOOKUP))
    kinds = [type(event) for event in events]
    first = kinds.index(RunStarted)
    assert kinds[:first].count(WarmingUp) == 3
    assert WarmingUp not in kinds[first:]


class Overheard(ThreadHome):
    """Keeps the commands to an engine."""

    def __init__(self, heard: list[AnyCommand]) -> None:
        super().__init__()
        self.heard = heard

    @override
    def send(self, command: AnyCommand) -> None:
        self.heard.append(command)
        super().send(command)


@pytest.mark.parametrize("rule", ["auto", "ewma"])
def test_a_length_by_the_clock_is_told_what_passes_take(pair_files: Files, rule: str) -> None:
    heard: list[AnyCommand] = []
    lanes = DRAFT, f"{DRAFT}:length={rule}"
    runner, _ = finished(small(pair_files, *lanes, repeats=2), lambda: Overheard(heard))
    runner.close()
    timed = [command for command in heard if isinstance(command, Force)]
    answers = [command for command in heard if isinstance(command, Generate)][-6:]  # after the warm-up
    assert len(timed) == (rule == "auto"), "once, however many runs there are"
    for asked in answers:
        known = asked.passes
        assert (known is not None and {1, 2, 17} <= {*known.target}) == (rule == "auto")


def test_passes_that_cannot_be_timed_end_no_measurement(
    pair_files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_engine: LabEngine) -> None:
        raise UserError("The passes were not timed.")

    monkeypatch.setattr(LabEngine, "time_passes", refuse)
    runner, _ = finished(small(pair_files, f"{DRAFT}:length=auto"))
    runner.close()
    assert len(runner.records) == 2 and not any(record.failure for record in runner.records.values())


def test_a_pause_in_the_warm_up_leaves_no_lane_cold(pair_files: Files) -> None:
    control = Control()
    runner = Runner(small(pair_files, DRAFT, LOOKUP), ThreadHome, control=control)
    events = []
    for event in runner.run():
        events.append(event)
        if isinstance(event, WarmingUp) and WarmingUp not in map(type, events[:-1]):
            control.pause()
        if isinstance(event, Paused):
            control.resume()
    first = next(at for at, event in enumerate(events) if isinstance(event, RunStarted))
    assert any(isinstance(event, Paused) for event in events[:first])
    assert {event.lane for event in events[:first] if isinstance(event, WarmingUp)} == {0, 1, 2}
    assert sum(isinstance(event, PairLoaded) for event in events) == 1
    runner.close()


def test_events_carry_the_rounds_of_the_trace(pair_files: Files) -> None:
    runner, events = finished(small(pair_files))
    for done in (event for event in events if isinstance(event, RunDone)):
        rounds = [event.round for event in events if isinstance(event, RunRound) and event.job == done.job]
        assert done.trace is not None and done.trace.rounds == rounds
        kept = runner.traces.get(done.job)
        assert kept is not None and kept.rounds == rounds and kept.totals == done.trace.totals
    runner.close()


def test_time_left_is_told_and_ends_at_nothing(pair_files: Files) -> None:
    _, events = finished(small(pair_files, repeats=2))
    left = [event.seconds_left for event in events if isinstance(event, RunDone)]
    assert left[0] is not None and left[0] > 0
    assert left[-1] == 0


def test_the_time_left_is_that_of_the_most_similar_runs_so_far() -> None:
    left = TimeLeft()
    assert left.seconds({(0, 0): 1}) is None
    for prompt, lane, seconds in ((0, 0, 10.0), (0, 0, 20.0), (0, 1, 6.0), (1, 1, 2.0)):
        left.add(Job(0, prompt, lane), seconds)
    similar = {(0, 0): 15.0, (1, 0): 2.0, (0, 2): 12.0, (2, 0): 15.0, (2, 1): 4.0, (2, 2): 9.5}
    for where, seconds in similar.items():
        assert left.seconds({where: 1}) == seconds, where
    assert left.seconds({(0, 0): 2, (2, 2): 1}) == 2 * 15 + 9.5
    assert left.seconds({}) == 0


def test_a_run_that_waited_for_its_baseline_is_compared_with_it(pair_files: Files) -> None:
    experiment = small(pair_files, repeats=2)  # in the second repeat the draft's lane begins
    _, events = finished(experiment)
    done = [event for event in events if isinstance(event, RunDone)]
    assert [event.job.lane for event in done] == [0, 1, 1, 0]
    assert done[2].record.speedup is None
    assert [record.lane for record in done[3].others] == [1]
    assert done[3].others[0].speedup is not None


def test_a_pause_drops_the_run_at_hand_and_does_it_again(pair_files: Files) -> None:
    experiment = small(pair_files, max_tokens=300)
    control = Control()
    runner = Runner(experiment, ThreadHome, control=control)
    kinds = []
    paused_in = None
    for event in runner.run():
        kinds.append(type(event))
        if isinstance(event, RunRound) and paused_in is None:
            paused_in = event.job
            control.pause()
        if isinstance(event, Paused):
            control.resume()
    assert kinds.index(RunDropped) < kinds.index(Paused) < kinds.index(Resumed)
    assert paused_in is not None
    assert len(runner.records) == 2
    assert all(record.n_tokens == 300 for record in runner.records.values())
    runner.close()


def test_cancel_keeps_what_came(pair_files: Files) -> None:
    control = Control()
    runner = Runner(small(pair_files, repeats=3), ThreadHome, control=control)
    events = []
    for event in runner.run():
        events.append(event)
        if isinstance(event, RunDone) and event.done == 2:
            control.cancel()
    assert events[-1] == Ended(complete=False)
    assert len(runner.records) == 2
    runner.close()


def test_a_cancel_just_after_a_run_was_kept_still_tells_of_it(pair_files: Files) -> None:
    control = Control()

    class Late(Runner):
        @override
        def _keep(self, *kept: Any) -> None:
            super()._keep(*kept)
            control.cancel()

    runner = Late(small(pair_files), ThreadHome, control=control)
    events = list(runner.run())
    told = [event.job for event in events if isinstance(event, RunDone)]
    assert told == list(runner.records) and len(told) == 1
    assert events[-1] == Ended(complete=False)
    runner.close()


def test_cancel_while_paused_ends(pair_files: Files) -> None:
    control = Control()
    control.pause()
    runner = Runner(small(pair_files), ThreadHome, control=control)
    events = []
    for event in runner.run():
        events.append(event)
        if isinstance(event, Paused):
            control.cancel()
    assert events[-1] == Ended(complete=False)


class Dying:
    """Makes homes in processes that are killed in the given runs, counted from the first command."""

    def __init__(self, *at: int) -> None:
        self.at = set(at)
        self.made = 0
        self.count = 0

    def __call__(self) -> Any:
        outer = self
        self.made += 1

        class Home(ProcessHome):
            @override
            def send(self, command: AnyCommand) -> None:
                super().send(command)
                if isinstance(command, Generate):
                    outer.count += 1
                    if outer.count in outer.at:
                        assert self.pid is not None
                        os.kill(self.pid, signal.SIGKILL)

        return Home()


@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
def test_a_killed_engine_is_replaced_and_the_suite_runs_to_its_end(pair_files: Files) -> None:
    homes = Dying(4, 9)
    prompts = tuple(Prompt(f"abcabc {n}") for n in range(3))
    experiment = small(pair_files, DRAFT, prompts=prompts, repeats=2)
    runner, events = finished(experiment, homes)
    assert homes.made == 3
    assert sum(isinstance(event, EngineReplaced) for event in events) == 2
    assert events[-1] == Ended(complete=True)
    assert len(runner.records) == 12
    assert all(record.finish_reason is FinishReason.LENGTH for record in runner.records.values())
    runner.close()


class AlwaysGone:
    """A home whose engine dies at every answer of one strategy."""

    def __init__(self, strategy: str) -> None:
        self.inner = ThreadHome()
        self.strategy = strategy
        self.gone: Event | None = None

    def send(self, command: AnyCommand) -> None:
        if isinstance(command, Generate) and command.request.strategy == self.strategy:
            self.gone = Failed(command.run, "The engine stopped unexpectedly.", expected=False, gone=True)
        else:
            self.inner.send(command)

    def receive(self, timeout: float) -> Event | None:
        gone, self.gone = self.gone, None
        return gone or self.inner.receive(timeout)

    def close(self) -> None:
        self.inner.close()


def test_a_lane_that_always_kills_the_engine_fails_and_the_others_go_on(pair_files: Files) -> None:
    runner, events = finished(small(pair_files, DRAFT, LOOKUP), lambda: AlwaysGone(DRAFT))
    assert events[-1] == Ended(complete=True)
    by_lane = [runner.records[job] for job in sorted(runner.records, key=lambda job: job.lane)]
    assert [record.finish_reason for record in by_lane] == ["length", "failed", "length"]
    assert "stopped unexpectedly" in by_lane[1].error
    assert by_lane[1].speedup is None
    runner.close()


def test_a_lane_alone_that_kills_the_engine_ends(pair_files: Files) -> None:
    """The run ends, also where its warm-up was the only one left."""
    homes = 0

    def make() -> AlwaysGone:
        nonlocal homes
        homes += 1
        return AlwaysGone("none")

    runner, events = finished(small(pair_files, DRAFT), make)
    assert events[-1] == Ended(complete=True)
    ends = {job.lane: record.finish_reason for job, record in runner.records.items()}
    assert ends == {0: "failed", 1: "length"}
    assert homes <= 5
    runner.close()


class LoadGone(AlwaysGone):
    """A home whose engine dies while it loads one target."""

    @override
    def send(self, command: AnyCommand) -> None:
        if isinstance(command, Load) and command.target.path == self.strategy:
            self.gone = Failed(command.run, "The engine stopped unexpectedly.", expected=False, gone=True)
        else:
            super().send(command)


def test_a_pair_that_ends_the_engine_is_loaded_three_times_and_no_more(pair_files: Files) -> None:
    made: list[LoadGone] = []

    def make(path: str) -> LoadGone:
        made.append(LoadGone(path))
        return made[-1]

    target = str(pair_files[0])
    prompts = (Prompt("abc"), Prompt("abcabc"))
    with pytest.raises(UserError, match="ended the engine 3 times"):
        finished(small(pair_files, DRAFT, prompts=prompts), lambda: make(target))
    assert len(made) == 3
    # Another lane's pair costs that lane alone.
    made.clear()
    draft_path = str(pair_files[1])
    lanes = (Lane("none"), Lane(LOOKUP, pair=Pair(ModelOptions(draft_path))))
    runner, events = finished(small(pair_files, lanes=lanes, prompts=prompts), lambda: make(draft_path))
    assert events[-1] == Ended(complete=True)
    assert {record.finish_reason for job, record in runner.records.items() if not job.lane} == {"length"}
    assert {record.finish_reason for job, record in runner.records.items() if job.lane} == {"failed"}
    assert len(made) <= 8
    runner.close()


class DiesAt(AlwaysGone):
    """A home whose engine dies at its load or answer number `left`, counted together."""

    def __init__(self, left: int) -> None:
        super().__init__(DRAFT)
        self.left = left

    @override
    def send(self, command: AnyCommand) -> None:
        self.left -= isinstance(command, Load | Generate)
        if not self.left:
            self.gone = Failed(command.run, "The engine stopped unexpectedly.", expected=False, gone=True)
        else:
            self.inner.send(command)


def test_a_pair_that_was_loaded_in_the_end_has_all_its_tries_again(pair_files: Files) -> None:
    # The third engine is loaded, warms two lanes up, does the first run, and dies in the second.
    deaths = iter([1, 1, 5, 1])
    runner, events = finished(small(pair_files, DRAFT), lambda: DiesAt(next(deaths, 0)))
    assert events[-1] == Ended(complete=True) and next(deaths, None) is None
    assert {record.finish_reason for record in runner.records.values()} == {"length"}
    runner.close()


def test_a_journal_of_a_name_that_is_no_text_leaves_no_file(pair_files: Files, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"mod\xe8le.gguf")
    odd.write_bytes(pair_files[0].read_bytes())
    journal = tmp_path / "j.jsonl"
    with pytest.raises(UserError, match="not valid text"):
        finished(small((odd, pair_files[1])), journal=journal)
    assert not journal.exists()


def test_a_request_that_cannot_be_met_is_a_failed_run(pair_files: Files) -> None:
    prompts = (Prompt("abc"), Prompt("a" * 3000))
    runner, _ = finished(small(pair_files, prompts=prompts))
    failed = [record for record in runner.records.values() if record.finish_reason is FinishReason.FAILED]
    assert {record.prompt_index for record in failed} == {1}
    assert "context has room for" in failed[0].error
    assert sum(record.speedup is not None for record in runner.records.values()) == 2
    runner.close()


def test_a_target_that_is_not_there_is_told(pair_files: Files, tmp_path: Path) -> None:
    missing = tmp_path / "missing.gguf"
    runner = Runner(small((missing, pair_files[1])), ThreadHome)
    with pytest.raises(UserError, match=r"missing\.gguf"):
        list(runner.run())
    runner.close()


def test_gaps_that_a_target_cannot_fill_are_refused_once(pair_files: Files) -> None:
    gaps = tuple(Prompt(text, suffix="b") for text in ("a", "c"))
    runner = Runner(small(pair_files, DRAFT, LOOKUP, prompts=gaps), ThreadHome)
    with pytest.raises(UserError, match="no fill-in-the-middle tokens, and every prompt needs them"):
        list(runner.run())
    assert not runner.records
    runner.close()


@pytest.mark.same_text
def test_lanes_with_other_pairs(pair_files: Files, tiny_file: Callable[[Tiny], Path]) -> None:
    own = pair_of(pair_files)
    near = tiny_file(Tiny(name="nearer", n_ctx=1024, noise=0.05, noise_seed=3))
    second_target = tiny_file(Tiny(name="other", n_ctx=1024, seed=5))
    lanes = (
        Lane(DRAFT),
        Lane(DRAFT, "nearer", Pair(own.target, ModelOptions(str(near), threads=1))),
        Lane(LOOKUP, "other", Pair(ModelOptions(str(second_target), threads=1))),
    )
    runner, events = finished(small(pair_files, lanes=lanes))
    records = {job.lane: record for job, record in runner.records.items()}
    assert [lane.name for lane in runner.experiment.lanes] == ["none", DRAFT, "nearer", "none", "other"]
    assert records[2].acceptance_rate > records[1].acceptance_rate
    for lane in (1, 2, 4):
        parting = records[lane].first_divergence
        assert parting is None or parting.near_tie
    assert records[3].token_ids != records[0].token_ids
    assert [records[lane].baseline_lane for lane in range(5)] == [0, 0, 0, 3, 3]
    assert runner.pairs[2].draft is not None and runner.pairs[2].draft.name == "nearer"
    assert sum(isinstance(event, PairLoaded) for event in events) == 3
    runner.close()


def test_another_pair_that_is_missing_costs_its_own_lanes(pair_files: Files, tmp_path: Path) -> None:
    missing = Pair(ModelOptions(str(tmp_path / "missing.gguf")))
    runner, _ = finished(small(pair_files, lanes=(Lane(DRAFT), Lane(LOOKUP, "other", missing))))
    ends = {job.lane: record.finish_reason for job, record in runner.records.items()}
    assert ends == {0: "length", 1: "length", 2: "failed", 3: "failed"}
    runner.close()


def test_another_draft_that_is_missing_costs_its_own_lane(pair_files: Files, tmp_path: Path) -> None:
    own = pair_of(pair_files)
    missing = Pair(own.target, ModelOptions(str(tmp_path / "missing.gguf")))
    runner, _ = finished(small(pair_files, lanes=(Lane(DRAFT), Lane(DRAFT, "other", missing))))
    ends = {job.lane: record.finish_reason for job, record in runner.records.items()}
    assert ends == {0: "length", 1: "length", 2: "failed"}
    runner.close()


# -------------------------------------------------------------------------------------- journal


def begun(events: list[LabEvent]) -> tuple[int, int]:
    """The runs that were done before, of how many."""
    assert isinstance(events[0], Begun) and len(events[0].records) >= events[0].done
    return events[0].done, events[0].total


@pytest.mark.same_text
def test_a_journal_is_gone_on_with(pair_files: Files, tmp_path: Path) -> None:
    file = tmp_path / "suite.jsonl"
    experiment = small(pair_files, repeats=2)
    control = Control()
    first = Runner(experiment, ThreadHome, journal=file, control=control)
    for event in first.run():
        if isinstance(event, RunDone) and event.done == 3:
            control.cancel()
    # As after a crash: an incomplete last line.
    with file.open("ab") as out:
        out.write(b'{"type":"run","job":{"rep')

    second, events = finished(experiment, journal=file)
    assert begun(events) == (3, 4)
    assert sum(isinstance(event, RunDone) for event in events) == 1
    assert set(second.records) == set(experiment.jobs())
    kept = list(first.records)
    assert [second.records[job].seconds for job in kept] == [first.records[job].seconds for job in kept]
    assert all(record.speedup is not None for record in second.records.values())
    assert all(second.traces.get(job) is not None for job in second.records)
    assert second.pairs.keys() == {0, 1}

    third, events = finished(experiment, journal=file)  # all is there: nothing is loaded
    assert begun(events) == (4, 4) and events[1:] == [Ended(complete=True)]
    assert third.records == second.records
    assert third.pairs == second.pairs


def test_a_last_line_that_lacks_its_end_is_broken_off(pair_files: Files, tmp_path: Path) -> None:
    """Otherwise the next line would be appended to it, and the journal would be lost."""
    file = tmp_path / "suite.jsonl"
    experiment = small(pair_files)
    finished(experiment, journal=file)
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    _, events = finished(experiment, journal=file)
    assert begun(events) == (1, 2)
    assert file.read_bytes().count(b"\n") == whole.count(b"\n")
    _, events = finished(experiment, journal=file)
    assert begun(events) == (2, 2)


def test_a_damaged_line_is_broken_off_at_the_end_and_refused_before_it(
    pair_files: Files, tmp_path: Path
) -> None:
    file = tmp_path / "suite.jsonl"
    experiment = small(pair_files)
    finished(experiment, journal=file)
    lines = file.read_bytes().splitlines(keepends=True)
    damaged = b"\0" * (len(lines[-1]) - 1) + b"\n"  # as after a loss of power
    file.write_bytes(b"".join([*lines[:-1], damaged]))
    _, events = finished(experiment, journal=file)
    assert begun(events) == (1, 2)
    assert file.read_bytes().count(b"\n") == len(lines) and b"\0" not in file.read_bytes()
    file.write_bytes(b"".join([*lines[:-1], damaged, lines[-1]]))
    with pytest.raises(UserError, match=f"line {len(lines)}, is damaged"):
        finished(experiment, journal=file)


def test_a_journal_of_another_measurement_is_refused(pair_files: Files, tmp_path: Path) -> None:
    file = tmp_path / "suite.jsonl"
    finished(small(pair_files), journal=file)
    with pytest.raises(UserError, match="a different measurement"):
        Runner(small(pair_files, LOOKUP), ThreadHome, journal=file)


def broken_off(experiment: Experiment, file: Path) -> None:
    """A journal that ends after its first run."""
    finished(experiment, journal=file)[0].close()
    lines = file.read_bytes().splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if b'"type":"run"' in line)
    file.write_bytes(b"".join(lines[: first + 1]))


def copied(pair_files: Files, folder: Path) -> Files:
    """The pair in a folder where it can be changed."""
    copies = folder / "target.gguf", folder / "draft.gguf"
    for source, copy in zip(pair_files, copies, strict=True):
        shutil.copyfile(source, copy)
    return copies


def test_a_journal_whose_model_is_another_file_now_is_refused(
    pair_files: Files, tiny_file: Callable[[Tiny], Path], tmp_path: Path
) -> None:
    target, draft = copied(pair_files, tmp_path)
    file = tmp_path / "suite.jsonl"
    experiment = small((target, draft))
    broken_off(experiment, file)
    os.utime(draft, (1, 1))  # a copy counts as the same file
    Runner(experiment, ThreadHome, journal=file).close()
    # The same size, other weights.
    shutil.copyfile(tiny_file(Tiny(name="draft", n_ctx=1024, noise=0.3, noise_seed=8)), draft)
    assert draft.stat().st_size == pair_files[1].stat().st_size
    before = file.read_bytes()
    with pytest.raises(UserError, match=r"measured under different conditions: draft\.gguf has changed"):
        Runner(experiment, ThreadHome, journal=file)
    assert file.read_bytes() == before


def test_a_journal_is_of_the_files_that_its_strategies_read(pair_files: Files, tmp_path: Path) -> None:
    cache = tmp_path / "static.bin"
    cache.write_bytes(b"one")
    path = str(cache).replace("%", "%25")
    experiment = small(pair_files, f"ngram-cache:lookup_cache_static={path}")
    then = made_with(experiment)
    assert list(changes(then, made_with(experiment))) == []
    cache.write_bytes(b"two")
    assert list(changes(then, made_with(experiment))) == ["static.bin has changed"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"llama_cpp": "0.0.1"}, r"llama-cpp-python is .* instead of 0\.0\.1"),
        ({"cpu": "Z80"}, "the processor is .* instead of Z80"),
    ],
)
def test_a_journal_of_another_version_or_machine_is_refused(
    pair_files: Files, tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    file = tmp_path / "suite.jsonl"
    experiment = small(pair_files)
    broken_off(experiment, file)
    head, *lines = file.read_bytes().splitlines(keepends=True)
    data = json.loads(head)
    data["made_with"] |= changed
    file.write_bytes(b"".join([json.dumps(data).encode() + b"\n", *lines]))
    with pytest.raises(UserError, match=said):
        Runner(experiment, ThreadHome, journal=file)


def test_runs_of_a_pair_that_is_loaded_otherwise_are_not_pooled(pair_files: Files, tmp_path: Path) -> None:
    """The number of threads can be left open, and the number of cores can have changed."""
    file = tmp_path / "suite.jsonl"
    experiment = small(pair_files)
    broken_off(experiment, file)
    file.write_bytes(file.read_bytes().replace(b'"threads":1,"has', b'"threads":64,"has'))
    runner = Runner(experiment, ThreadHome, journal=file)
    with pytest.raises(UserError, match="different number of threads: 1 instead of 64"):
        list(runner.run())
    runner.close()


def test_a_complete_journal_needs_its_models_no_more(pair_files: Files, tmp_path: Path) -> None:
    target, draft = copied(pair_files, tmp_path)
    file = tmp_path / "suite.jsonl"
    experiment = small((target, draft))
    finished(experiment, journal=file)
    target.write_bytes(b"something else")
    runner, events = finished(experiment, journal=file)
    assert begun(events) == (2, 2) and events[1:] == [Ended(complete=True)]
    runner.close()


def test_runs_that_failed_are_tried_again(pair_files: Files, tmp_path: Path) -> None:
    """Here another pair's file was missing; the other runs are kept."""
    late = tmp_path / "late.gguf"
    experiment = small(pair_files, lanes=(Lane(DRAFT), Lane(LOOKUP, "late", Pair(ModelOptions(str(late))))))
    file = tmp_path / "suite.jsonl"
    first, _ = finished(experiment, journal=file)
    ends = {job.lane: record.finish_reason for job, record in first.records.items()}
    assert ends == {0: "length", 1: "length", 2: "failed", 3: "failed"}
    shutil.copyfile(pair_files[0], late)
    again, events = finished(experiment, journal=file)
    assert begun(events) == (2, 4)
    assert {event.job.lane for event in events if isinstance(event, RunDone)} == {2, 3}
    assert all(record.finish_reason == "length" for record in again.records.values())
    kept = Journal.read(file).records
    assert {job: record.finish_reason for job, record in kept.items()} == dict.fromkeys(kept, "length")
    _, events = finished(experiment, journal=file)
    assert begun(events) == (4, 4) and events[1:] == [Ended(complete=True)]


def test_a_new_journal_has_no_traces_of_an_earlier_one(pair_files: Files, tmp_path: Path) -> None:
    file = tmp_path / "suite.jsonl"
    finished(small(pair_files, repeats=3), journal=file)
    folder = tmp_path / "suite-traces"
    (folder / "notes.txt").write_text("mine")
    assert len(list(folder.glob("*.jsonl.gz"))) == 6
    file.unlink()
    finished(small(pair_files), journal=file)
    assert len(list(folder.glob("*.jsonl.gz"))) == 2
    assert (folder / "notes.txt").read_text() == "mine"


def test_two_do_not_write_one_journal(pair_files: Files, tmp_path: Path) -> None:
    file = tmp_path / "suite.jsonl"
    experiment = small(pair_files)
    first = Runner(experiment, ThreadHome, journal=file)
    assert not is_free(file)
    with pytest.raises(UserError, match="Another window or command is measuring into suite"):
        Runner(experiment, ThreadHome, journal=file)
    list(first.run())
    assert is_free(file)
    second = Runner(experiment, ThreadHome, journal=file)
    second.close()
    assert is_free(file)
    with pytest.raises(UserError, match="a different measurement"):
        Runner(small(pair_files, LOOKUP), ThreadHome, journal=file)
    assert is_free(file)


def test_looking_at_a_journal_does_not_cut_what_is_just_being_written(
    pair_files: Files, tmp_path: Path
) -> None:
    file = tmp_path / "suite.jsonl"
    finished(small(pair_files), journal=file)
    half = file.read_bytes()[:-20]
    file.write_bytes(half)
    assert len(Journal.read(file).records) == 1
    assert file.read_bytes() == half


def test_a_journal_in_a_folder_that_is_not_there_makes_none(pair_files: Files, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        Runner(small(pair_files), ThreadHome, journal=tmp_path / "no" / "suite.jsonl")
    assert not (tmp_path / "no").exists()


def test_what_is_no_journal_is_refused_and_left_alone(pair_files: Files, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("my notes\n")
    with pytest.raises(UserError, match="not a journal"):
        Runner(small(pair_files), ThreadHome, journal=file)
    assert file.read_text() == "my notes\n"


def test_a_lent_engine_stays_open(pair_files: Files) -> None:
    control = Control()
    engine = LabEngine(ThreadHome, control)
    for strategy in (DRAFT, LOOKUP):
        runner = Runner(small(pair_files, strategy), ThreadHome, control=control, engine=engine)
        list(runner.run())
        runner.close()
    assert engine.info is not None
    engine.close()
