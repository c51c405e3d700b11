"""The two homes of an engine behave alike, and the process home survives every end of its engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
import psutil
import pytest

from app.engine.process.host import EngineHome, ProcessHome, ThreadHome, make_home
from app.engine.process.messages import (
    AnyCommand,
    Event,
    Failed,
    Finished,
    Force,
    Forced,
    ForcedText,
    ForceProgress,
    Generate,
    ListDevices,
    Load,
    Loaded,
    LoadProgress,
    LoadStage,
    PromptProgress,
    RoundFinished,
    Shutdown,
    Started,
    Stop,
    trace_of,
)
from app.engine.record.recheck import recheck
from app.engine.types import FinishReason, GenerationRequest, ModelOptions, Role, Sampling
from tests.answers import answer, assert_same_answer
from tests.files.tiny import Tiny
from tests.processes import started
from tests.stopping import ATTEMPTS, stop_limit

KINDS = ["thread", "process"]
PATIENCE = 30.0  # seconds; the machine may be busy
LONG = "the quick brown fox jumps over the lazy dog. " * 170
DRAFTS = "draft-simple:n_max=4"

on_posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")


class Talk:
    """A conversation with a home: commands with run ids, and the events until one ends the run."""

    def __init__(self, home: EngineHome) -> None:
        self.home = home
        self.run = 0

    def send(self, make: Callable[[int], AnyCommand]) -> int:
        self.run += 1
        self.home.send(make(self.run))
        return self.run

    def load(self, target: Path | ModelOptions, draft: Path | None = None) -> list[Event]:
        options = target if isinstance(target, ModelOptions) else ModelOptions(str(target))
        second = ModelOptions(str(draft)) if draft else None
        return self.until_over(self.send(lambda run: Load(run, options, second)))

    def ask(self, **settings: object) -> int:
        request = GenerationRequest(**{"prompt": "abcabcabd abc", "max_tokens": 20} | settings)  # type: ignore[arg-type]
        return self.send(lambda run: Generate(run, request))

    def generate(self, **settings: object) -> list[Event]:
        return self.until_over(self.ask(**settings))

    def until(self, run: int, kind: type[Event]) -> list[Event]:
        """The events of the run up to the first one of that kind."""
        events: list[Event] = []
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            event = self.home.receive(0.05)
            if event is None:
                continue
            assert event.run == run, f"an event of another run: {event}"
            events.append(event)
            if isinstance(event, kind):
                return events
        raise AssertionError(f"no {kind} within {PATIENCE} s; last: {events[-1:]}")

    def until_over(self, run: int) -> list[Event]:
        return self.until(run, (Loaded, Finished, Failed))  # type: ignore[arg-type]

    def is_silent(self) -> bool:
        return self.home.receive(0.05) is None


@pytest.fixture(scope="module", params=KINDS)
def shared(request: pytest.FixtureRequest) -> Iterator[Talk]:
    talk = Talk(make_home(request.param))
    yield talk
    talk.home.close()


@pytest.fixture
def talk(shared: Talk, pair_files: tuple[Path, Path]) -> Talk:
    """A home with the tiny pair loaded."""
    assert isinstance(shared.load(*pair_files)[-1], Loaded)
    return shared


@pytest.fixture
def new_home() -> Iterator[Callable[[str], Talk]]:
    homes: list[EngineHome] = []

    def make(kind: str) -> Talk:
        homes.append(make_home(kind))
        return Talk(homes[-1])

    yield make
    for home in homes:
        home.close()


@pytest.fixture(scope="session")
def slow_file(tiny_file: Callable[[Tiny], Path]) -> Path:
    """A model that reads LONG in seconds and writes its whole context in seconds."""
    return tiny_file(Tiny(name="slow", n_layers=6, n_embd=128, n_ff=512, n_ctx=8192))


def totals_of(events: list[Event]) -> tuple[FinishReason, int]:
    last = events[-1]
    assert isinstance(last, Finished), last
    return last.totals.finish_reason, sum(isinstance(event, RoundFinished) for event in events)


# --------------------------------------------------------------------------------- both homes alike


def test_the_kinds() -> None:
    for kind, type_ in (("thread", ThreadHome), ("process", ProcessHome)):
        home = make_home(kind)
        assert type(home) is type_
        home.close()


def test_loading_tells_its_progress(new_home: Callable[[str], Talk], pair_files: tuple[Path, Path]) -> None:
    seen = {}
    for kind in KINDS:
        events = new_home(kind).load(*pair_files)
        progress = [event for event in events if isinstance(event, LoadProgress)]
        assert [event.fraction for event in progress if event.role is Role.DRAFT][-1] == 1
        assert isinstance(events[-1], Loaded) and events[-1].seconds > 0
        assert events[:-1] == progress
        seen[kind] = events[-1].pair
    assert seen["thread"] == seen["process"]


@pytest.mark.parametrize("kind", KINDS)
def test_two_files_of_one_name_are_told_apart(
    new_home: Callable[[str], Talk], pair_files: tuple[Path, Path], tmp_path: Path, kind: str
) -> None:
    draft = tmp_path / pair_files[0].name
    talk = new_home(kind)
    assert isinstance(talk.load(pair_files[0])[-1], Loaded)
    draft.write_bytes(pair_files[1].read_bytes()[:-200])
    failed = talk.load(pair_files[0], draft)[-1]
    assert isinstance(failed, Failed) and failed.role is Role.DRAFT
    draft.write_bytes(pair_files[1].read_bytes())
    target, small = (ModelOptions(str(path), ctx_size=256) for path in (pair_files[0], draft))
    events = talk.until_over(talk.send(lambda run: Load(run, target, small)))
    told = [(event.role, event.file, event.stage) for event in events if isinstance(event, LoadProgress)]
    assert list(dict.fromkeys(told)) == [
        (role, draft.name, stage) for role in Role for stage in (LoadStage.READING, LoadStage.TESTING)
    ]


@pytest.mark.same_text
@pytest.mark.parametrize("strategy", ["none", DRAFTS, "prompt-lookup:verify=match"])
def test_generating_is_as_in_this_process(talk: Talk, engine: object, strategy: str) -> None:
    sampling = Sampling(temperature=0.9, seed=7)
    events = talk.generate(strategy=strategy, sampling=sampling, cold=True)
    assert isinstance(events[0], Started)
    trace = trace_of(events)
    expected = answer(engine, strategy=strategy, sampling=sampling, max_tokens=20, cold=True)  # type: ignore[arg-type]
    assert trace.token_ids == expected.token_ids
    assert trace.text == expected.text
    assert recheck(trace) == []
    for here, there in zip(trace.rounds, expected.rounds, strict=True):
        assert (here.drafted, here.emitted, here.target_top) == (
            there.drafted,
            there.emitted,
            there.target_top,
        )


def test_generating_before_loading_is_refused(new_home: Callable[[str], Talk]) -> None:
    for kind in KINDS:
        failed = new_home(kind).generate()[-1]
        assert isinstance(failed, Failed)
        assert (failed.message, failed.expected, failed.gone) == ("No model is loaded.", True, False)


def test_a_bad_request_is_told_and_the_next_one_works(talk: Talk) -> None:
    failed = talk.generate(strategy="magic")[-1]
    assert isinstance(failed, Failed)
    assert failed.expected and "magic" in failed.message and "draft-simple" in failed.hint
    assert totals_of(talk.generate(ignore_eos=True))[0] is FinishReason.LENGTH


@pytest.mark.same_text
def test_a_failed_load_keeps_the_pair(talk: Talk, pair_files: tuple[Path, Path], tmp_path: Path) -> None:
    before = trace_of(talk.generate(strategy=DRAFTS))
    (tmp_path / "empty.gguf").touch()
    for target, draft in [(tmp_path / "empty.gguf", None), (pair_files[0], tmp_path / "gone.gguf")]:
        failed = talk.load(target, draft)[-1]
        assert isinstance(failed, Failed) and failed.expected and not failed.gone
        assert failed.role is (Role.DRAFT if draft else Role.TARGET)
        after = trace_of(talk.generate(strategy=DRAFTS))
        assert after.token_ids == before.token_ids
        assert after.header.cached_tokens == after.header.prompt_tokens - 1


def test_an_unforeseen_error_is_told_with_its_details(
    new_home: Callable[[str], Talk], pair_files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = new_home("thread")
    talk.load(*pair_files)
    with monkeypatch.context() as patch:
        patch.setattr("app.engine.loop.answer_run.rounds", lambda answer: 1 / 0)
        failed = talk.generate()[-1]
    assert isinstance(failed, Failed)
    assert (failed.expected, failed.gone) == (False, False)
    assert "division by zero" in failed.message and failed.hint.endswith(".")
    assert "ZeroDivisionError" in failed.details and "engine.py" in failed.details
    assert totals_of(talk.generate(ignore_eos=True))[0] is FinishReason.LENGTH


def test_a_command_that_cannot_be_read_is_no_silence(new_home: Callable[[str], Talk]) -> None:
    failed = new_home("process").generate(sampling=Sampling(seed="seven"))[-1]  # type: ignore[arg-type]
    assert isinstance(failed, Failed)
    assert failed.gone


def test_a_run_is_stopped_before_it_begins(talk: Talk) -> None:
    run = talk.run + 1
    talk.home.send(Stop(run))
    events = talk.generate(max_tokens=1000)
    reason, rounds = totals_of(events)
    assert (reason, rounds) == (FinishReason.CANCELLED, 0)
    assert totals_of(talk.generate(ignore_eos=True))[0] is FinishReason.LENGTH


def test_a_comparison_is_stopped_before_it_begins(talk: Talk) -> None:
    texts = (ForcedText(GenerationRequest(prompt="abc"), (97, 98, 99)),) * 3
    talk.home.send(Stop(talk.run + 1))
    events = talk.until(talk.send(lambda run: Force(run, texts)), (Forced, Failed))  # type: ignore[arg-type]
    *before, failed = events
    assert isinstance(failed, Failed) and failed.message == "The comparison was stopped."
    assert [event.done for event in before if isinstance(event, ForceProgress)] == [0]
    events = talk.until(talk.send(lambda run: Force(run, texts)), Forced)
    assert [event.done for event in events if isinstance(event, ForceProgress)] == [0, 1, 2, 3]


def test_a_waiting_run_is_stopped_and_the_running_one_is_not(talk: Talk) -> None:
    first = talk.ask(max_tokens=300, ignore_eos=True)
    second = talk.ask(max_tokens=300, ignore_eos=True)
    talk.home.send(Stop(second))
    assert totals_of(talk.until_over(first)) == (FinishReason.LENGTH, 300)
    assert totals_of(talk.until_over(second)) == (FinishReason.CANCELLED, 0)


def test_a_stale_stop_is_ignored(talk: Talk) -> None:
    done = talk.ask(max_tokens=3)
    talk.until_over(done)
    talk.home.send(Stop(done))
    run = talk.ask(max_tokens=50, ignore_eos=True)
    talk.home.send(Stop(done))
    talk.home.send(Stop(-1))
    assert totals_of(talk.until_over(run)) == (FinishReason.LENGTH, 50)


def test_stopping_in_the_answer(talk: Talk, slow_file: Path) -> None:
    talk.load(slow_file)

    def attempt() -> float:
        run = talk.ask(prompt="abc", max_tokens=100_000, ignore_eos=True)
        talk.until(run, RoundFinished)
        return _stopped_in(talk, run)

    _stops_in_time(attempt)


def test_stopping_in_the_prompt(talk: Talk, slow_file: Path) -> None:
    talk.load(slow_file)

    def attempt() -> float:
        run = talk.ask(prompt=LONG, cold=True)
        talk.until(run, PromptProgress)
        seconds = _stopped_in(talk, run)
        return seconds

    _stops_in_time(attempt)
    whole = trace_of(talk.generate(prompt=LONG[:3000], max_tokens=12))
    cold = trace_of(talk.generate(prompt=LONG[:3000], max_tokens=12, cold=True))
    assert_same_answer(whole, cold)  # what a stopped prompt left in the cache is right


def _stopped_in(talk: Talk, run: int) -> float:
    """Stop the run; seconds until its Finished came."""
    started = time.perf_counter()
    talk.home.send(Stop(run))
    events = talk.until_over(run)
    seconds = time.perf_counter() - started
    assert totals_of(events)[0] is FinishReason.CANCELLED
    return seconds


def _stops_in_time(attempt: Callable[[], float]) -> None:
    """At least one of several attempts is within the limit: one success shows that nothing is waited for."""
    seconds = []
    for _ in range(ATTEMPTS):
        seconds.append(attempt())
        if seconds[-1] < stop_limit():
            return
    raise AssertionError(f"stopping took {seconds} s")


def test_loading_is_stopped_and_keeps_the_pair(talk: Talk, slow_file: Path) -> None:
    talk.home.send(Stop(talk.run + 1))
    failed = talk.load(slow_file)[-1]
    assert isinstance(failed, Failed)
    assert (failed.message, failed.expected) == ("Loading was stopped.", True)
    assert failed.hint == "The previous pair is still loaded."
    assert trace_of(talk.generate(strategy=DRAFTS)).header.pair.target.name == "target"


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_loading_is_stopped(new_home: Callable[[str], Talk], slow_file: Path, kind: str) -> None:
    talk = new_home(kind)
    talk.home.send(Stop(1))
    failed = talk.load(slow_file)[-1]
    assert isinstance(failed, Failed)
    assert (failed.message, failed.hint) == ("Loading was stopped.", "No model is loaded.")
    assert isinstance(talk.load(slow_file)[-1], Loaded)


@pytest.mark.parametrize("kind", KINDS)
def test_closing_ends_whatever_runs(new_home: Callable[[str], Talk], slow_file: Path, kind: str) -> None:
    before = set(threading.enumerate())
    talk = new_home(kind)
    talk.load(slow_file)
    talk.until(talk.ask(prompt=LONG, max_tokens=100_000, ignore_eos=True), PromptProgress)
    talk.ask(prompt=LONG)  # one more waits
    started = time.perf_counter()
    talk.home.close()
    assert time.perf_counter() - started < 10, "the answer would take minutes"
    assert "engine" not in {thread.name for thread in threading.enumerate() if thread not in before}


@pytest.mark.parametrize("kind", KINDS)
def test_closing_twice_and_closing_an_idle_home(new_home: Callable[[str], Talk], kind: str) -> None:
    talk = new_home(kind)
    talk.home.close()
    talk.home.close()
    talk.home.send(Shutdown(0))
    talk.home.send(Stop(3))
    assert talk.home.receive(0.1) is None


def test_closing_leaves_no_thread_and_no_process() -> None:
    threads, children = threading.active_count(), started()
    for kind in KINDS:
        make_home(kind).close()
    assert threading.active_count() <= threads
    assert started() <= children


# ----------------------------------------------------------------------------------- the process dies


@on_posix
@pytest.mark.parametrize("by", ["SIGKILL", "SIGSEGV", "SIGABRT", "SIGTERM"])
def test_a_death_in_the_answer_is_told_and_a_new_home_works(
    new_home: Callable[[str], Talk], pair_files: tuple[Path, Path], slow_file: Path, by: str
) -> None:
    talk = new_home("process")
    assert isinstance(talk.home, ProcessHome)
    talk.load(slow_file)
    run = talk.ask(prompt="abc", max_tokens=100_000, ignore_eos=True)
    kept = talk.until(run, RoundFinished)
    os.kill(talk.home.pid or 0, signal.Signals[by])
    rest = talk.until(run, Failed)
    failed = rest[-1]
    assert isinstance(failed, Failed)
    assert (failed.gone, failed.expected, failed.run) == (True, False, run)
    assert f"signal {signal.Signals[by].value}," in failed.message
    assert failed.message.endswith(".") and failed.hint.endswith(".")
    # The rounds that came make a valid trace.
    trace = trace_of([event for event in kept + rest if not isinstance(event, Failed)])
    assert trace.rounds and trace.totals is None
    assert recheck(trace) == []
    assert talk.is_silent(), "nothing comes behind"
    talk.home.send(Generate(run + 1, GenerationRequest(prompt="x")))
    talk.home.close()

    again = new_home("process")
    assert isinstance(again.load(*pair_files)[-1], Loaded)
    assert totals_of(again.generate(strategy=DRAFTS, ignore_eos=True))[0] is FinishReason.LENGTH


@on_posix
def test_a_death_while_nothing_runs_is_told_too(new_home: Callable[[str], Talk]) -> None:
    talk = new_home("process")
    talk.generate()  # it is up
    os.kill(talk.home.pid or 0, signal.SIGKILL)  # type: ignore[attr-defined]
    failed = talk.until(talk.run, Failed)[-1]
    assert isinstance(failed, Failed) and failed.gone


def rubbish(connection: Connection, _faults: Connection) -> None:
    connection.send_bytes(b"\xff rubbish")
    time.sleep(100)


def no_text(connection: Connection, _faults: Connection) -> None:
    """A message with text that is not UTF-8."""
    whole = msgspec.msgpack.encode(LoadProgress(1, Role.TARGET, "abc", 0.5))
    connection.send_bytes(whole.replace(b"abc", b"a\xffc"))
    time.sleep(100)


@pytest.mark.parametrize("damaged", [rubbish, no_text])
def test_a_damaged_message_ends_the_engine_and_not_its_reader(
    new_home: Callable[[str], Talk], monkeypatch: pytest.MonkeyPatch, damaged: Callable[[Connection], None]
) -> None:
    monkeypatch.setattr("app.engine.process.host._serve", damaged)
    home = new_home("process").home
    failed = home.receive(PATIENCE)
    assert isinstance(failed, Failed) and failed.gone
    assert failed.message == "The engine sent a message that cannot be read, and was ended."


def test_an_engine_that_cannot_be_heard_is_ended(
    new_home: Callable[[str], Talk], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = new_home("process").home
    assert isinstance(home, ProcessHome)
    monkeypatch.setattr("app.engine.process.host._decode_event", lambda _data: bytearray(2**62))
    home.send(ListDevices(1))
    failed = home.receive(PATIENCE)
    assert isinstance(failed, Failed) and failed.gone and "MemoryError" in failed.details
    assert failed.message == "The engine sent a message that cannot be read, and was ended."
    assert home.pid is None


def test_a_bug_in_the_words_of_an_end_is_no_silence(
    new_home: Callable[[str], Talk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.engine.process.host._serve", crash)
    monkeypatch.setattr("app.engine.process.host.explain_death", lambda _death: 1 / 0)
    home = new_home("process").home
    home.send(Stop(1))
    failed = home.receive(PATIENCE)
    assert isinstance(failed, Failed) and failed.gone and "ZeroDivisionError" in failed.details


def crash(connection: Connection, _faults: Connection) -> None:
    """Crash at the first command."""
    connection.recv_bytes()
    os.abort()


@on_posix
def test_a_crash_right_before_the_engine_is_ended_is_called_a_crash(
    new_home: Callable[[str], Talk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.engine.process.host._serve", crash)
    home = new_home("process").home
    # It crashes before the signal arrives.
    monkeypatch.setattr("app.base.processes.Child.kill", lambda _child: home.send(Stop(1)))
    home.end()
    failed = home.receive(PATIENCE)
    assert isinstance(failed, Failed) and failed.gone and not failed.expected
    assert failed.message.startswith("The engine stopped unexpectedly (signal 6, ")


def test_nothing_comes_from_a_thread_that_was_abandoned() -> None:
    told: list[Event] = []

    class Loop:
        def __init__(self, emit: Callable[[Event], None]) -> None:
            self.emit, self.over = emit, threading.Event()

        def submit(self, command: AnyCommand) -> None:
            self.over.set()

        def run(self) -> None:
            self.over.wait()

    loops: list[Loop] = []

    def make(emit: Callable[[Event], None]) -> Loop:
        loops.append(Loop(emit))
        return loops[-1]

    home = ThreadHome(told.append, make)
    loops[0].emit(ForceProgress(1, 0, 1))
    home.end()
    loops[0].emit(ForceProgress(1, 1, 1))
    home.close()
    assert [type(event) for event in told] == [ForceProgress, Failed]


def test_a_process_that_cannot_be_started_is_told(
    new_home: Callable[[str], Talk], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr("app.engine.process.host.Child", refuse)
    failed = new_home("process").home.receive(PATIENCE)
    assert isinstance(failed, Failed) and failed.gone
    assert failed.message == "The engine could not be started."


def test_a_file_that_crashes_llama_cpp_takes_only_the_engine_along(
    new_home: Callable[[str], Talk], tiny_file: Callable[[Tiny], Path], pair_files: tuple[Path, Path]
) -> None:
    """A real one: this metadata ends in an assertion of llama.cpp, which aborts the process."""
    hostile = tiny_file(Tiny(name="hostile", experts=4))
    talk = new_home("process")
    talk.load(*pair_files)
    failed = talk.load(hostile)[-1]
    assert isinstance(failed, Failed)
    assert failed.gone and not failed.expected
    assert failed.role is Role.TARGET
    # Read beside the target: either may be to blame.
    failed = new_home("process").load(pair_files[0], hostile)[-1]
    assert isinstance(failed, Failed) and failed.gone
    assert failed.message.startswith(f"{pair_files[0].name} or {hostile.name} contains values")
    assert failed.role is None
    talk = new_home("process")
    talk.load(pair_files[0])
    failed = talk.load(pair_files[0], hostile)[-1]  # the target is there already
    assert isinstance(failed, Failed) and failed.gone
    assert failed.message.startswith(f"{hostile.name} contains values") and failed.role is Role.DRAFT
    again = new_home("process")
    assert isinstance(again.load(*pair_files)[-1], Loaded)


@on_posix
def test_ctrl_c_does_not_reach_the_engine(talk: Talk) -> None:
    if isinstance(talk.home, ProcessHome):
        os.kill(talk.home.pid or 0, signal.SIGINT)
    assert totals_of(talk.generate(ignore_eos=True))[0] is FinishReason.LENGTH


PARENT = """
import sys, time
from app.engine.process.host import ProcessHome
from app.engine.process.messages import Generate, Load
from app.engine.types import GenerationRequest, ModelOptions
home = ProcessHome()
home.send(Load(1, ModelOptions(sys.argv[1])))
home.send(Generate(2, GenerationRequest(prompt="abc", max_tokens=10**6, ignore_eos=True)))
while type(home.receive(1)).__name__ != "RoundFinished":
    pass
print(home.pid, flush=True)
time.sleep(100)
"""


@on_posix
def test_the_engine_does_not_outlive_its_window(slow_file: Path) -> None:
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(slow_file)], cwd=root, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        engine = psutil.Process(int(parent.stdout.readline()))
        assert engine.is_running()
        parent.kill()
        parent.wait()
    _gone, alive = psutil.wait_procs([engine], timeout=PATIENCE)
    assert not alive


def test_what_cannot_be_sent_is_refused_and_the_engine_goes_on(
    new_home: Callable[[str], Talk], pair_files: tuple[Path, Path]
) -> None:
    talk = new_home("process")
    assert isinstance(talk.load(*pair_files)[-1], Loaded)
    for events in (talk.load(Path("/models/\udcff.gguf")), talk.generate(prompt="half a pair: \ud800")):
        (failed,) = events
        assert isinstance(failed, Failed) and failed.expected and not failed.gone
        assert "not valid Unicode" in failed.message
    assert isinstance(talk.generate(max_tokens=3)[-1], Finished)
