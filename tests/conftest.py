"""Fixtures that several rooms use: tiny model files, and an engine over a pair of them."""

from __future__ import annotations

import gc
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from app.base import processes
from app.engine.devices.memory import cores

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

    from app.engine.engine import Engine
    from tests.commands import Command
    from tests.equality import Baselines, Parting
    from tests.files.tiny import Tiny

# A busy machine makes every example slow.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", _PATIENT, derandomize=True)
settings.register_profile("chance", _PATIENT, print_blob=True)  # `make verify` asks for it
settings.load_profile("same")

# No test cuts the power, and a window writes thousands of times in all tests: waiting for the disk each time
# takes half a minute. Tests of what is synced replace this themselves, and child processes really wait.
os.fsync = lambda fd: None

processes.PRELOADED = "tests.preloaded"

DEMO_PAIR = Path(__file__).parent.parent / "resources" / "demo_pair"


@pytest.fixture(autouse=True)
def _own_home(_homes: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has folders of its own: it neither reads nor changes what this machine's user keeps."""
    monkeypatch.setenv("DRAFTSCOPE_HOME", str(_homes / f"home-{hash(request.node.nodeid):x}"))


@pytest.fixture(autouse=True)
def _collected_here(request: pytest.FixtureRequest) -> Iterator[None]:
    """Garbage is collected on this thread alone: a server's thread in one test would destroy Qt objects that
    another test left."""
    gc.disable()
    yield
    if "collector" not in request.fixturenames:  # of the window's tests
        due = [
            generation
            for generation in range(3)
            if gc.get_count()[generation] > gc.get_threshold()[generation]
        ]
        if due:
            gc.collect(due[-1])


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def _without_set_ups_model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """SmolLM2 is here or not, as set-up could fetch it: only tests marked `real` see it."""
    if request.node.get_closest_marker("real") is None:
        from app.base.paths import Paths

        missing = property(lambda paths: paths.resources / "real" / "missing.gguf")
        monkeypatch.setattr(Paths, "real_target", missing)


@pytest.fixture(scope="session")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Tiny], Path]:
    """Makes tiny GGUF files, each only once per session."""
    from tests.files.tiny import write_tiny

    folder = tmp_path_factory.mktemp("tiny")
    made: dict[Tiny, Path] = {}

    def make(tiny: Tiny) -> Path:
        if tiny not in made:
            made[tiny] = write_tiny(folder / f"{tiny.name}-{len(made)}.gguf", tiny)
        return made[tiny]

    return make


@pytest.fixture(scope="session")
def pair_files(tiny_file: Callable[[Tiny], Path]) -> tuple[Path, Path]:
    """A target and a draft near it: about two of three drafted tokens are accepted."""
    from tests.files.tiny import Tiny

    target = Tiny(name="target", n_ctx=1024)
    return tiny_file(target), tiny_file(Tiny(name="draft", n_ctx=1024, noise=0.15, noise_seed=7))


@pytest.fixture(scope="session")
def shared_engine(pair_files: tuple[Path, Path]) -> Iterator[Engine]:
    from app.engine import Engine

    with Engine(*pair_files) as engine:
        yield engine


@pytest.fixture
def engine(shared_engine: Engine) -> Engine:
    """An engine over `pair_files`, cold."""
    shared_engine.reset()
    return shared_engine


@pytest.fixture
def engines_here(kept_templates: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines run on threads of this process, whatever is asked for: a process of its own takes three times
    as long, and has tests of its own."""
    from app.engine.process import host

    monkeypatch.setattr(host, "ProcessHome", host.ThreadHome)


@pytest.fixture
def command(engines_here: None, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command in this process, with its engine."""
    from app.cli import main
    from tests.commands import Ended

    def run(*arguments: object) -> Ended:
        code = main([str(argument) for argument in arguments])
        return Ended(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def _make_template_process() -> Iterator[Callable[[], object]]:
    from typing_extensions import override

    from app.engine.templates import process

    spare: list[Kept] = []

    class Kept(process.TemplateProcess):
        idle = True

        @override
        def ask(self, *question: Any) -> Any:
            self.idle = False
            said = super().ask(*question)
            self.idle = True
            return said

        @override
        def close(self) -> None:
            if self.idle and self.is_alive:
                spare.append(self)
            else:
                super().close()

    def make() -> Kept:
        return spare.pop() if spare else starter.submit(Kept).result()

    # The system ends the process with the thread that started it.
    with ThreadPoolExecutor(1) as starter:
        starter.submit(int).result()  # its thread begins here: some tests count what began in them
        yield make
        for kept in spare:
            process.TemplateProcess.close(kept)


@pytest.fixture
def kept_templates(_make_template_process: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """A process for chat templates serves one engine of this process after another: to start one takes as
    long as half a window."""
    monkeypatch.setattr("app.engine.templates.process.TemplateProcess", _make_template_process)


@pytest.fixture
def known_strategies(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For tests that add plug-in drafters: restores the registered strategies. On a busy machine no draft is
    late."""
    from app.engine.drafters import guarded
    from app.engine.drafters.registry import KINDS

    monkeypatch.setattr(guarded, "SLOW_SECONDS", 60.0)
    monkeypatch.setattr(guarded, "SLOW_BEGIN_SECONDS", 60.0)
    before = dict(KINDS)
    yield
    KINDS.clear()
    KINDS.update(before)


@pytest.fixture(scope="session")
def demo_pair() -> tuple[Path, Path]:
    """The pair that comes with the app."""
    target, draft = DEMO_PAIR / "target.gguf", DEMO_PAIR / "draft.gguf"
    if not (target.exists() and draft.exists()):
        pytest.skip(f"the bundled pair is not in {DEMO_PAIR}")
    return target, draft


@pytest.fixture(scope="session")
def demo_engine(demo_pair: tuple[Path, Path]) -> Iterator[Engine]:
    from app.engine import Engine

    with Engine(*demo_pair) as engine:
        yield engine


@pytest.fixture(scope="session")
def demo_prompts(demo_pair: tuple[Path, Path]) -> list[str]:
    """The example prompts of the bundled pair."""
    return [prompt["prompt"] for prompt in json.loads((DEMO_PAIR / "pair.json").read_text())["prompts"]]


@pytest.fixture(scope="session")
def real_file() -> Path:
    """SmolLM2-135M, for tests marked `real`."""
    from app.base.paths import find_paths

    path = find_paths().real_target
    if not path.is_file():
        pytest.skip("SmolLM2 is not here: set-up could not fetch it, and tries again a day later")
    return path


@pytest.fixture(scope="session")
def real_engine(real_file: Path, demo_pair: tuple[Path, Path]) -> Iterator[Engine]:
    """SmolLM2 with a short context, and the bundled pair's draft, which has another vocabulary."""
    from app.engine import Engine
    from app.engine.types import ModelOptions

    with Engine(ModelOptions(str(real_file), ctx_size=256), demo_pair[1]) as engine:
        yield engine


@pytest.fixture(scope="session")
def law_engine(tiny_file: Callable[[Tiny], Path]) -> Iterator[Engine]:
    """An engine over the pair whose sampling law is measured."""
    from tests.law import OWN, TARGET, open_engine

    with open_engine(tiny_file(TARGET), tiny_file(OWN)) as engine:
        yield engine


@pytest.fixture(scope="session")
def law_engine_through_text(tiny_file: Callable[[Tiny], Path]) -> Iterator[Engine]:
    """The same target, with a draft of another vocabulary."""
    from tests.law import OTHER, TARGET, open_engine

    with open_engine(tiny_file(TARGET), tiny_file(OTHER)) as engine:
        yield engine


@pytest.fixture(scope="session")
def clear(shared_engine: Engine) -> str:
    """A prompt whose answers on `pair_files`, of up to 40 tokens, have no near-tie on any processor."""
    from tests.answers import clear_prompt

    return clear_prompt(shared_engine, max_tokens=40, ignore_eos=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--other-kernels",
        action="store_true",
        help="load every model for other kernels of llama.cpp, wherever a test does not choose them itself",
    )


def pytest_configure(config: pytest.Config) -> None:
    # Here, since huggingface_hub reads it once, while it is imported.
    folder = tempfile.TemporaryDirectory(prefix="draftscope-hub-")
    config.add_cleanup(folder.cleanup)
    os.environ["HF_HOME"] = folder.name
    os.environ.pop("HF_HUB_CACHE", None)
    if config.getoption("--other-kernels"):
        _load_for_other_kernels()


def _load_for_other_kernels() -> None:
    """Change the defaults of ModelOptions, which engine processes get from here too."""
    from app.engine.types import ModelOptions

    other = {"repack": False, "flash_attn": "off", "threads": 2}  # small files have 1 thread
    with_default = [field for field in fields(ModelOptions) if field.default is not MISSING]
    for field in with_default:
        field.default = other.get(field.name, field.default)
    ModelOptions.__init__.__defaults__ = tuple(field.default for field in with_default)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # modules and the list of tests stay; looking for garbage there takes an eighth of the time


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test of the second run: importing them all takes longer than it does."""
    named = any("::" in word for word in config.args)
    if not config.getoption("--other-kernels") or named or not collection_path.name.startswith("test_"):
        return None
    return True if "mark.same_text" not in collection_path.read_text(encoding="utf-8") else None


_PARTINGS = pytest.StashKey[list["Parting"]]()
_TOLD = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def partings(request: pytest.FixtureRequest) -> list[Parting]:
    """Answers that parted from their baseline's, listed at the end of the run."""
    return request.config.stash.setdefault(_PARTINGS, [])


@pytest.fixture(scope="session")
def baselines(partings: list[Parting]) -> Baselines:
    """Compares answers with their baselines."""
    from tests.equality import Baselines

    return Baselines(partings)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return cores() + 1  # tests wait for processes, pipes and servers


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:  # a worker of pytest-xdist
        output["partings"] = [str(parting) for parting in session.config.stash.get(_PARTINGS, [])]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    # A crashed worker has no output.
    told = getattr(node, "workeroutput", {}).get("partings", [])
    node.config.stash.setdefault(_TOLD, []).extend(told)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    own = [str(parting) for parting in config.stash.get(_PARTINGS, [])]
    found = own + config.stash.get(_TOLD, [])
    if found:
        terminalreporter.section(f"answers that left the baseline's: {len(found)}")
        for parting in found:
            terminalreporter.line(parting)
