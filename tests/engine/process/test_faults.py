"""Engines that die or run out of memory: the explanation, and that the offered setting works."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.engine.native.model import explain_context, explain_failure
from app.engine.process.host import ProcessHome
from app.engine.process.messages import (
    AnyCommand,
    DevicesListed,
    Event,
    Failed,
    Finished,
    Generate,
    ListDevices,
    Load,
    Loaded,
    LoadProgress,
    LoadStage,
    Measure,
    Measured,
    RoundFinished,
    Stop,
)
from app.engine.process.safer import Death, explain_death
from app.engine.types import FinishReason, GenerationRequest, Message, ModelOptions, Role
from tests.files.tiny import Tiny
from tests.workers import ROOT, Worker, lift_limit, limit_memory, worker

PATIENCE = 60.0
ENDS = (Loaded, Finished, Failed, DevicesListed, Measured)
Kinds = type[Event] | tuple[type[Event], ...]
LONG = GenerationRequest("abcabc", max_tokens=4000, ignore_eos=True)
SHORT = GenerationRequest("abcabc", max_tokens=5, ignore_eos=True)
CHAT = GenerationRequest(messages=(Message("user", "abc"),), max_tokens=5, ignore_eos=True)

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="limits and signals as Linux has them")

FAULT = """
import os, signal
from app.engine.native.context import Context
real = Context.self_test
def faulty(self):
    if self.model._params.value.use_extra_bufts:
        os.kill(os.getpid(), signal.SIGILL)
    real(self)
Context.self_test = faulty
"""


class Talk:
    """A conversation with an engine process."""

    def __init__(self) -> None:
        self.home = ProcessHome()
        self._run = 0

    def ask(
        self, make: Callable[[int], AnyCommand], kind: type[Event] | tuple[type[Event], ...] = ENDS
    ) -> Event:
        """Send a command and wait for an event of that kind."""
        self._run += 1
        self.home.send(make(self._run))
        return self.until(kind)

    def until(self, kind: Kinds = ENDS) -> Event:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            event = self.home.receive(0.05)
            if isinstance(event, kind):
                return event
            assert not isinstance(event, Failed), event
        raise AssertionError(f"no {kind} within {PATIENCE} s")

    def load(self, target: ModelOptions, draft: ModelOptions | None = None) -> Event:
        return self.ask(lambda run: Load(run, target, draft))

    def generate(self, request: GenerationRequest = SHORT) -> Event:
        return self.ask(lambda run: Generate(run, request))


@pytest.fixture
def new_talk() -> Iterator[Callable[[], Talk]]:
    talks: list[Talk] = []

    def make() -> Talk:
        talks.append(Talk())
        return talks[-1]

    yield make
    for talk in talks:
        talk.home.close()


@pytest.fixture
def workers() -> Iterator[tuple[Worker, Worker]]:
    with worker() as first, worker() as second:
        yield first, second


@pytest.fixture
def path(tiny_file: Callable[[Tiny], Path]) -> str:
    return str(tiny_file(Tiny(name="wide", n_layers=6, n_embd=256, n_heads=4, n_ff=1024, n_ctx=4096)))


def answers(talk: Talk) -> bool:
    event = talk.generate()
    return isinstance(event, Finished) and event.totals.finish_reason is FinishReason.LENGTH


# ------------------------------------------------------------------------------------------- workers


@on_linux
def test_a_worker_that_dies_in_mid_answer(
    workers: tuple[Worker, Worker], new_talk: Callable[[], Talk], path: str
) -> None:
    stays, dies = workers
    rpc = f"{dies.endpoint},{stays.endpoint}"
    options = ModelOptions(path, ctx_size=4096, rpc=rpc, tensor_split="1,1")
    talk = new_talk()
    loaded = talk.load(options)
    assert isinstance(loaded, Loaded) and loaded.pair.devices == "RPC0, RPC1"
    rounds = [talk.ask(lambda run: Generate(run, LONG), RoundFinished)]
    dies.process.kill()
    while not isinstance(event := talk.until((RoundFinished, Failed)), Failed):
        rounds.append(event)
    assert event.gone and not event.expected
    assert f"The worker at {dies.endpoint} is gone" in event.message
    assert "kept" in event.hint
    assert event.offer is not None and event.offer.target.rpc == stays.endpoint
    assert "without the worker" in event.offer.words
    # The same pair again, as the window reloads it: refused with the same offer.
    again = new_talk()
    refused = again.load(options)
    assert isinstance(refused, Failed) and refused.expected and not refused.gone
    assert f"There is no worker at {dies.endpoint}" in refused.message
    assert refused.offer == event.offer
    better = again.load(event.offer.target, event.offer.draft)
    assert isinstance(better, Loaded) and better.pair.devices == "RPC0"
    assert answers(again)


@on_linux
def test_a_worker_without_memory(
    workers: tuple[Worker, Worker], new_talk: Callable[[], Talk], path: str, tiny_file: Callable[[Tiny], Path]
) -> None:
    """The weights do not fit in memory; the previous pair still answers."""
    small, large = workers
    heavy = str(tiny_file(Tiny(name="heavy", n_layers=6, n_embd=512, n_ff=2048, n_ctx=256)))  # 101 MB
    talk = new_talk()
    before = ModelOptions(path, ctx_size=256, rpc=large.endpoint)
    assert isinstance(talk.load(before), Loaded)
    limit_memory(small.process.pid, 8 * 2**20)
    failed = talk.load(ModelOptions(heavy, rpc=small.endpoint))
    assert isinstance(failed, Failed) and failed.expected and not failed.gone
    assert f"the worker at {small.endpoint} has no room for its weights" in failed.message
    assert "Lower the layers on devices" in failed.hint
    assert failed.offer is not None and failed.offer.words == "Load with 3 of 7 layers on devices"
    assert failed.offer.target.n_gpu_layers == 3
    assert answers(talk)


@on_linux
def test_a_worker_without_memory_for_the_cache(new_talk: Callable[[], Talk], path: str) -> None:
    with worker() as small:
        limit_memory(small.process.pid, 100 * 2**20)
        options = ModelOptions(path, ctx_size=65536, ubatch_size=16, rpc=small.endpoint)  # 402 MB of cache
        failed = new_talk().load(options)
        assert isinstance(failed, Failed) and failed.expected
        assert f"the worker at {small.endpoint} has no room for a context of 65,536 tokens" in failed.message
        assert "Lower the context size" in failed.hint and "main memory" in failed.hint


def test_devices_and_memory_are_told_over_the_boundary(
    workers: tuple[Worker, Worker], new_talk: Callable[[], Talk], path: str
) -> None:
    rpc = ",".join(worker.endpoint for worker in workers)
    talk = new_talk()
    listed = talk.ask(lambda run: ListDevices(run, rpc))
    assert isinstance(listed, DevicesListed)
    assert [device.name for device in listed.devices] == ["RPC0", "RPC1", "CPU"]
    assert {"RPC", "CPU"} <= set(listed.backends)
    options = ModelOptions(path, ctx_size=256, rpc=rpc, n_gpu_layers=2)
    measured = talk.ask(lambda run: Measure(run, options))
    assert isinstance(measured, Measured) and measured.target == options
    assert measured.memory.target.n_gpu_layers == 2
    fitted = talk.ask(lambda run: Measure(run, options, None, fit=True))
    assert isinstance(fitted, Measured) and fitted.target == replace(options, n_gpu_layers=-1)
    # What is loaded counts as free.
    loaded = talk.load(fitted.target)
    assert isinstance(loaded, Loaded)
    assert {usage.device for usage in loaded.pair.target.memory} == {"RPC0", "RPC1", "CPU"}
    again = talk.ask(lambda run: Measure(run, options, None, fit=True))
    assert isinstance(again, Measured) and again.target == fitted.target
    assert answers(talk)
    refused = talk.ask(lambda run: ListDevices(run, "127.0.0.1:1"))
    assert isinstance(refused, Failed) and refused.expected and refused.offer is None


# -------------------------------------------------------------------------------------------- memory

HUNGRY = """
from dataclasses import dataclass
from app.engine.plugins import Drafter, Proposal, StrategyKind

class Hungry(Drafter):
    def propose(self, context, k):
        bytearray({size})
        return Proposal(ids=[1])

@dataclass(frozen=True)
class Params:
    pass

STRATEGY = StrategyKind("hungry", Params, "Takes all memory.", make=lambda params, resources: Hungry())
"""


def memory_now(name: str) -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


@on_linux
def test_an_engine_gets_no_more_memory_than_is_free(
    new_talk: Callable[[], Talk], path: str, tmp_path: Path
) -> None:
    size = memory_now("MemAvailable") + memory_now("SwapFree")
    drafter = tmp_path / "hungry.py"
    drafter.write_text(HUNGRY.format(size=size))
    talk = new_talk()
    assert isinstance(talk.load(ModelOptions(path)), Loaded)
    request = replace(SHORT, strategy="hungry")
    event = talk.ask(lambda run: Generate(run, request, (str(drafter),)), (RoundFinished, Failed))
    assert isinstance(event, RoundFinished), event
    assert "MemoryError" in event.round.draft_end
    assert answers(talk)


@on_linux
@pytest.mark.parametrize("asked", [SHORT, CHAT], ids=["prompt", "messages"])
def test_memory_too_short_for_a_thread_is_told(
    new_talk: Callable[[], Talk], path: str, asked: GenerationRequest
) -> None:
    """With messages the chat template's thread comes first."""
    talk = new_talk()
    assert isinstance(talk.load(ModelOptions(path)), Loaded)
    pid = talk.home.pid
    assert pid is not None
    limit_memory(pid, 4 * 2**20)  # of the 8 that a stack takes; the pass itself has room
    event = talk.generate(asked)
    lift_limit(pid)
    assert isinstance(event, Failed) and event.expected and not event.gone, event
    assert event.message == "The engine has taken all the memory that was free when its pair was loaded."
    assert answers(talk), "and is ready again"


@pytest.mark.parametrize(
    ("place", "cache", "hint"),
    [
        ("CPU", "kv cache", "Lower the context size, or use a smaller cache type."),
        ("CPU", "", "Lower the micro-batch size (ubatch_size), or lower the context size."),
        ("Vulkan_Host", "", "Lower the micro-batch size (ubatch_size), or lower the context size."),
        (
            "CUDA0",
            "kv cache",
            "Lower the context size, use a smaller cache type, keep the cache in main memory, or lower the "
            "layers on devices.",
        ),
    ],
)
def test_what_helps_depends_on_where_there_is_no_room(place: str, cache: str, hint: str) -> None:
    lines = [f"failed to allocate {place} buffer of size 1", cache]
    told = explain_context("a.gguf", 64, lines)
    assert told.hint == hint
    assert ("main memory has no room" in told.message) == (place != "CUDA0")
    weights = explain_failure("a.gguf", lines).hint
    assert ("layers on devices" in weights) == (place == "CUDA0")


def test_a_vocabulary_that_found_no_memory_is_not_called_damaged() -> None:
    told = explain_failure("a.gguf", ["error loading model vocabulary: std::bad_alloc"])
    assert told.message == "a.gguf does not fit: main memory has no room for its weights."


@pytest.mark.parametrize("file", ["a.gguf", ""], ids=["loading", "answering"])
def test_an_assertion_that_main_memory_fails_is_not_laid_to_the_file(file: str) -> None:
    words = "/src/ggml/src/ggml.c:1644: GGML_ASSERT(ctx->mem_buffer != NULL) failed"
    told = explain_death(
        death(-signal.SIGABRT, ModelOptions("a.gguf"), n_ctx=4096, file=file, last_words=words)
    )
    assert told.message.startswith("Main memory ran out, and the engine stopped (ggml.c:1644: ")
    assert told.offer is not None and told.offer.target.ctx_size == 2048


@on_linux
def test_where_memory_runs_out_the_engine_goes_first(new_talk: Callable[[], Talk], path: str) -> None:
    talk = new_talk()
    assert isinstance(talk.load(ModelOptions(path)), Loaded)
    assert Path(f"/proc/{talk.home.pid}/oom_score_adj").read_text() == "1000\n"


# ------------------------------------------------------------------------------------------- kernels


@on_linux
def test_a_kernel_that_faults(
    new_talk: Callable[[], Talk], path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(FAULT)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.setattr("app.base.processes._FORKS", False)  # only a fresh process reads that file
    failed = new_talk().load(ModelOptions(path))
    assert isinstance(failed, Failed) and failed.gone
    assert "kernels of this build of llama.cpp fault on this machine" in failed.message
    assert failed.offer is not None and failed.offer.words == "Load with safe kernels"
    assert failed.offer.target == ModelOptions(path, repack=False)
    safe = new_talk()
    assert isinstance(safe.load(failed.offer.target), Loaded)
    assert answers(safe)


@on_linux
@pytest.mark.parametrize(
    ("by", "ended", "hint"),
    [
        ("SIGKILL", "was ended", "Another program did that, or the system because memory was short. "),
        ("SIGTERM", "was ended", "Another program did that. "),
        ("SIGSEGV", "stopped", "Try again. If it stops there again, the file may be damaged: "),
    ],
)
def test_one_death_in_the_test_is_not_laid_to_the_file(
    new_talk: Callable[[], Talk],
    path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    by: str,
    ended: str,
    hint: str,
) -> None:
    (tmp_path / "sitecustomize.py").write_text(FAULT.replace("SIGILL", by))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.setattr("app.base.processes._FORKS", False)  # only a fresh process reads that file
    failed = new_talk().load(ModelOptions(path))
    assert isinstance(failed, Failed) and failed.gone
    number = signal.Signals[by].value
    assert failed.message.startswith(f"The engine {ended} while testing {Path(path).name} (signal {number},")
    assert failed.hint.startswith(hint)
    monkeypatch.undo()
    assert isinstance(new_talk().load(ModelOptions(path)), Loaded), "it was not the file"


@on_linux
def test_a_death_while_reading_names_its_signal_and_not_a_fault(
    new_talk: Callable[[], Talk], path: str
) -> None:
    """As where the pair of an engine that died is loaded again, and that engine dies too."""
    talk = new_talk()
    talk.ask(lambda run: Load(run, ModelOptions(path)), LoadProgress)
    os.kill(talk.home.pid or 0, signal.SIGKILL)
    while not isinstance(event := talk.until((LoadProgress, Loaded, Failed)), Failed):
        pass
    assert event.gone and "damaged" not in event.hint
    said = r"The engine was ended( while \w+ [\w-]+\.gguf)? \(signal 9, Killed\)\."
    assert re.fullmatch(said, event.message)


@pytest.mark.parametrize("damage", [{"eps": -1.0}, {"eps": float("nan")}, {"experts": 4}], ids=str)
def test_a_file_whose_values_cannot_be_computed_with_is_blamed(
    new_talk: Callable[[], Talk], tiny_file: Callable[[Tiny], Path], damage: dict[str, float]
) -> None:
    file = tiny_file(Tiny(name="wrong", **damage))  # type: ignore[arg-type]
    failed = new_talk().load(ModelOptions(str(file)))
    assert isinstance(failed, Failed) and failed.gone
    assert failed.message.startswith(f"{file.name} contains values that llama.cpp cannot compute with (")
    assert "GGML_ASSERT" in failed.message and "/" not in failed.message
    assert "Download it again" in failed.hint and failed.offer is None


def test_the_draft_is_blamed_where_it_is_the_draft(
    new_talk: Callable[[], Talk], path: str, tiny_file: Callable[[Tiny], Path]
) -> None:
    file = tiny_file(Tiny(name="wrong", eps=-1.0))
    failed = new_talk().load(ModelOptions(path), ModelOptions(str(file)))
    assert isinstance(failed, Failed) and failed.message.startswith(f"{file.name} contains values")
    assert failed.role is Role.DRAFT


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"code": -signal.SIGILL}, "The kernels of this build of llama.cpp fault on this machine (words)."),
        ({"code": -signal.SIGSEGV}, "The engine stopped while testing a.gguf (words)."),
        ({"code": -signal.SIGFPE}, "a.gguf contains values that llama.cpp cannot compute with (words)."),
        (
            {"code": -signal.SIGABRT, "last_words": "/src/ggml/ggml-cuda.cu:97: CUDA error"},
            "The engine stopped while testing a.gguf (ggml-cuda.cu:97: CUDA error).",
        ),
    ],
)
def test_what_a_failed_test_blames(known: dict[str, Any], said: str) -> None:
    told = explain_death(death(target=ModelOptions("a.gguf"), file="a.gguf", testing=True, **known))
    assert told.message == said
    assert (told.offer is None) == ("contains values" in said)


@pytest.mark.parametrize(("used", "offered"), [(4096, 2048), (2048, 1024), (1024, 512), (900, None)])
def test_a_context_that_is_offered_is_smaller_than_the_one_used(used: int, offered: int | None) -> None:
    offer = explain_death(death(-signal.SIGKILL, ModelOptions("a.gguf"), n_ctx=used)).offer
    assert (offer.target.ctx_size if offer is not None else None) == offered


def test_every_file_is_tested_after_loading(
    new_talk: Callable[[], Talk], path: str, pair_files: tuple[Path, Path]
) -> None:
    talk = new_talk()
    talk.home.send(Load(1, ModelOptions(path), ModelOptions(str(pair_files[1]))))
    stages: list[LoadStage] = []
    while not isinstance(event := talk.until((LoadProgress, Loaded)), Loaded):
        assert isinstance(event, LoadProgress)
        if not stages or stages[-1] is not event.stage:
            stages.append(event.stage)
    assert stages == [LoadStage.READING, LoadStage.TESTING] * 2
    assert event.pair.target.n_ctx == 4096


@on_linux
def test_an_engine_that_is_killed_in_mid_answer(new_talk: Callable[[], Talk], path: str) -> None:
    talk = new_talk()
    assert isinstance(talk.load(ModelOptions(path)), Loaded)
    talk.ask(lambda run: Generate(run, LONG), RoundFinished)
    assert talk.home.pid is not None
    os.kill(talk.home.pid, signal.SIGKILL)
    while not isinstance(event := talk.until((RoundFinished, Failed)), Failed):
        pass
    assert event.gone and "signal 9" in event.message
    assert event.offer is not None and event.offer.target.ctx_size == 2048, "half of what there was"


@on_linux
def test_a_fault_in_mid_answer_with_layers_on_a_device(
    workers: tuple[Worker, Worker], new_talk: Callable[[], Talk], path: str
) -> None:
    talk = new_talk()
    options = ModelOptions(path, rpc=workers[0].endpoint)
    assert isinstance(talk.load(options), Loaded)
    talk.ask(lambda run: Generate(run, LONG), RoundFinished)
    assert talk.home.pid is not None
    os.kill(talk.home.pid, signal.SIGSEGV)
    while not isinstance(event := talk.until((RoundFinished, Failed)), Failed):
        pass
    assert event.gone and "signal 11" in event.message and "driver" in event.hint
    assert event.offer is not None and event.offer.target == replace(options, flash_attn="off")
    again = new_talk()
    assert isinstance(again.load(event.offer.target), Loaded)
    assert answers(again)


@on_linux
@pytest.mark.parametrize("layers", [0, 7])
def test_a_test_says_whether_layers_are_on_devices(
    workers: tuple[Worker, Worker], new_talk: Callable[[], Talk], path: str, layers: int
) -> None:
    talk = new_talk()
    talk.home.send(Load(1, ModelOptions(path, rpc=workers[0].endpoint, n_gpu_layers=layers)))
    while not isinstance(event := talk.until((LoadProgress, Loaded)), Loaded):
        assert isinstance(event, LoadProgress)
        assert event.on_devices == (event.stage is LoadStage.TESTING and layers > 0)
    assert event.pair.on_devices == (layers > 0)


def test_a_stop_of_long_ago_does_not_end_a_load(new_talk: Callable[[], Talk], path: str) -> None:
    talk = new_talk()
    assert isinstance(talk.load(ModelOptions(path)), Loaded)
    talk.ask(lambda run: Generate(run, LONG), RoundFinished)
    talk.home.send(Stop(2))
    ended = talk.until(Finished)
    assert isinstance(ended, Finished) and ended.totals.finish_reason is FinishReason.CANCELLED
    assert isinstance(talk.load(ModelOptions(path, ctx_size=512)), Loaded)


# ---------------------------------------------------------------------------------- what is offered


def death(
    code: int | None, target: ModelOptions, draft: ModelOptions | None = None, **known: object
) -> Death:
    return Death(code, "words", Load(1, target, draft), **known)  # type: ignore[arg-type]


def test_the_offers_end() -> None:
    """Each offer, if it fails in the same way, leads to the next until there is none."""
    for code in (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGKILL, 1):
        target, draft = ModelOptions("a.gguf"), ModelOptions("b.gguf", ctx_size=4096)
        words = []
        while (offer := explain_death(death(code, target, draft)).offer) is not None:
            words.append(offer.words)
            assert (offer.target, offer.draft) != (target, draft) and offer.draft is not None
            target, draft = offer.target, offer.draft
        expected = {
            -signal.SIGSEGV: ["Load with safe kernels", "Load on the CPU only"],
            -signal.SIGKILL: [f"Load with a context of {n:,} tokens" for n in (1024, 512)],
        }
        assert words == expected.get(code, ["Load on the CPU only", "Load with safe kernels"])


@pytest.mark.parametrize("code", [-signal.SIGSEGV, -signal.SIGABRT, 1])
def test_nothing_is_offered_that_the_pair_has_already(code: int) -> None:
    """All layers were wanted on devices, and none is there: the pair is on the CPU alone."""
    safe = ModelOptions("a.gguf", repack=False)
    assert explain_death(death(code, safe, on_devices=False)).offer is None
    assert explain_death(death(code, safe)).offer is not None, "it is not known yet"
    kept_off = explain_death(death(code, replace(safe, n_gpu_layers=0), on_devices=False)).offer
    assert kept_off is not None and kept_off.target.device == "none", "llama.cpp may know a device"


THROWS = """
import ctypes, sys
from app.engine.native import library, on_abort
on_abort(lambda words: print(words, flush=True))
new = library.raw_call("_Znwm", ctypes.c_void_p, ctypes.c_size_t)  # operator new
new(2**62)
"""


@on_linux
def test_memory_that_cxx_does_not_get_is_told_before_the_end() -> None:
    code = [sys.executable, "-c", THROWS]
    ended = subprocess.run(code, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGABRT, "std::bad_alloc\n", "")
    told = explain_death(
        death(-signal.SIGABRT, ModelOptions("a.gguf"), n_ctx=4096, last_words="std::bad_alloc")
    )
    assert told.message == "Main memory ran out, and the engine stopped (std::bad_alloc)."
    assert told.offer is not None and told.offer.words == "Load with a context of 2,048 tokens"


def test_a_fault_with_layers_on_devices_is_the_drivers_first() -> None:
    """The CPU's kernels are tried last, because they do not cause faults of other devices."""
    target, draft = ModelOptions("a.gguf"), ModelOptions("b.gguf", n_gpu_layers=0)
    told = explain_death(death(-signal.SIGSEGV, target, draft, on_devices=True))
    assert "driver" in told.hint and told.offer is not None
    assert (told.offer.words, told.offer.target.flash_attn) == ("Load without flash attention", "off")
    assert told.offer.draft == draft, "none of its layers is on a device"
    tested = death(-signal.SIGSEGV, target, draft, on_devices=True, testing=True, file="a.gguf")
    assert explain_death(tested).offer == told.offer and "driver" in explain_death(tested).hint
    behind = explain_death(death(-signal.SIGSEGV, told.offer.target, draft, on_devices=True)).offer
    assert behind is not None and behind.words == "Load on the CPU only"
    assert [(model.n_gpu_layers, model.device) for model in (behind.target, behind.draft) if model] == [
        (0, "none")
    ] * 2


def test_a_cache_that_needs_flash_attention_keeps_it() -> None:
    target = ModelOptions("a.gguf", cache_type_v="q8_0", cache_type_k="q8_0")
    offer = explain_death(death(-signal.SIGSEGV, target, on_devices=True)).offer
    assert offer is not None and offer.words == "Load on the CPU only"


def test_an_illegal_instruction_is_the_cpus_kernels_fault() -> None:
    told = explain_death(death(-signal.SIGILL, ModelOptions("a.gguf"), on_devices=True))
    assert told.offer is not None and told.offer.words == "Load with safe kernels"
    assert "driver" not in told.hint


def test_a_lost_worker_takes_its_devices_names_along() -> None:
    target = ModelOptions("a", rpc="x:1,y:2", device="CUDA0,RPC1", tensor_split="1,2", main_gpu=1)
    told = explain_death(death(-6, target, ModelOptions("b"), lost=("x:1",)))
    assert "The worker at x:1 is gone" in told.message
    assert told.offer is not None
    assert told.offer.target == ModelOptions("a", rpc="y:2", device="CUDA0")
    assert told.offer.draft == ModelOptions("b")


def test_without_a_pair_there_is_nothing_to_offer() -> None:
    for known in ({}, {"testing": True}, {"lost": ("x:1",)}):
        told = explain_death(Death(-11, "signal 11", None, **known))
        assert told.offer is None and told.message and told.hint
