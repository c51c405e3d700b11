"""Layers on devices: on two of llama.cpp's own workers, counted by llama.cpp's report."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.engine import Engine, ModelOptions
from app.engine.devices.memory import ALL_LAYERS, CPU, Device, DeviceMemory, ModelMemory
from app.engine.devices.offload import fit_pair, measure, measure_pair
from app.engine.devices.workers import WorkerError
from app.engine.errors import ModelFileError, NoRoomError, SettingError
from app.engine.native.library import captured_report
from app.engine.native.model import tensor_sizes
from app.engine.types import CACHE_TYPES, ModelInfo
from tests.answers import answer, assert_same_answer
from tests.files.tiny import Tiny
from tests.workers import limit_memory, worker

LAYERS = 7  # six blocks and the output layer
KV = 6 * 64 * 2 * 512 * 2  # blocks, width, keys and values, tokens, bytes of f16
TARGET = Tiny(name="six", n_layers=6, n_heads=2, n_ctx=512)
MOE = Tiny(name="experts", n_layers=4, n_ctx=256, experts=4, experts_used=2)


@pytest.fixture(scope="module")
def rpc() -> Iterator[str]:
    with worker() as first, worker() as second:
        yield f"{first.endpoint},{second.endpoint}"


@pytest.fixture
def six(tiny_file: Callable[[Tiny], Path], rpc: str) -> ModelOptions:
    """A model of six blocks, and two workers for them."""
    return ModelOptions(str(tiny_file(TARGET)), ctx_size=512, rpc=rpc)


def loaded(options: ModelOptions) -> ModelInfo:
    with Engine(options) as engine:
        return engine.pair.target


def layers(info: ModelInfo | ModelMemory) -> dict[str, int]:
    return {usage.device: usage.layers for usage in info.memory if usage.layers}


def on(info: ModelInfo | ModelMemory, device: str) -> DeviceMemory:
    return next((usage for usage in info.memory if usage.device == device), DeviceMemory(device))


# ----------------------------------------------------------------------------------- where layers go


@pytest.mark.parametrize("asked", [0, 1, 3, 6, 7, ALL_LAYERS])
def test_as_many_layers_move_as_were_asked_for(six: ModelOptions, asked: int) -> None:
    with captured_report() as lines:
        info = loaded(replace(six, n_gpu_layers=asked))
    moved = LAYERS if asked == ALL_LAYERS else asked
    assert any(f"offloaded {moved}/{LAYERS} layers to GPU" in line for line in lines)
    assert info.n_gpu_layers == moved == sum(n for name, n in layers(info).items() if name != CPU)
    assert layers(info).get(CPU, 0) == LAYERS - moved


@pytest.mark.parametrize(
    ("shares", "seen"),
    [
        ("1,1", {"RPC0": 4, "RPC1": 3}),
        ("2,1", {"RPC0": 5, "RPC1": 2}),
        ("1,6", {"RPC0": 1, "RPC1": 6}),
        ("6,1", {"RPC0": 6, "RPC1": 1}),
        ("0,1", {"RPC1": 7}),
        ("3/4", {"RPC0": 3, "RPC1": 4}),
    ],
)
def test_the_split_asked_for_is_the_split_seen(six: ModelOptions, shares: str, seen: dict[str, int]) -> None:
    options = replace(six, tensor_split=shares)
    assert layers(loaded(options)) == seen
    assert layers(measure(options)) == seen


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ({"device": "RPC1"}, {"RPC1": 7}),
        ({"device": "RPC1,RPC0", "tensor_split": "6,1"}, {"RPC1": 6, "RPC0": 1}),
        ({"device": "none"}, {CPU: 7}),
        ({"split_mode": "none"}, {"RPC0": 7}),
        ({"split_mode": "none", "main_gpu": 1}, {"RPC1": 7}),
        ({"device": "RPC1", "n_gpu_layers": 2}, {CPU: 5, "RPC1": 2}),
    ],
)
def test_devices_and_split_modes(six: ModelOptions, change: dict[str, object], seen: dict[str, int]) -> None:
    assert layers(loaded(replace(six, **change))) == seen  # type: ignore[arg-type]


def test_the_answer_is_that_of_the_cpu(six: ModelOptions) -> None:
    for change in ({"n_gpu_layers": 3}, {"tensor_split": "2,1"}, {"kv_offload": False}):
        with Engine(replace(six, **change)) as far, Engine(replace(six, rpc="")) as near:
            assert_same_answer(answer(far, max_tokens=20), answer(near, max_tokens=20))


def test_target_and_draft_go_where_each_was_sent(
    six: ModelOptions, tiny_file: Callable[[Tiny], Path]
) -> None:
    near = tiny_file(Tiny(name="near", n_ctx=512, noise=0.15, noise_seed=7))
    draft = ModelOptions(str(near), device="RPC1", n_gpu_layers=2)
    with Engine(replace(six, device="RPC0"), draft) as engine:
        assert engine.pair.devices == "RPC0"
        assert layers(engine.pair.target) == {"RPC0": 7}
        assert engine.pair.draft is not None
        assert layers(engine.pair.draft) == {"RPC1": 2, CPU: 1}
        assert len(answer(engine, strategy="draft-simple", max_tokens=12).token_ids) == 12


def test_a_worker_that_was_taken_off_is_not_missed(tiny_file: Callable[[Tiny], Path]) -> None:
    path = str(tiny_file(TARGET))
    with worker() as first:
        assert layers(loaded(ModelOptions(path, rpc=first.endpoint))) == {"RPC0": LAYERS}
    # llama.cpp still knows the worker's device, and would end this process if it used it.
    assert layers(loaded(ModelOptions(path))) == {CPU: LAYERS}
    with worker() as second:
        assert layers(loaded(ModelOptions(path, rpc=second.endpoint, device="RPC0"))) == {"RPC0": LAYERS}
    with pytest.raises(WorkerError, match="There is no worker"):
        measure(ModelOptions(path, rpc=second.endpoint))


# ------------------------------------------------------------------------------- what else is obeyed


def test_the_cache_stays_with_its_layers_or_in_main_memory(six: ModelOptions) -> None:
    half = replace(six, n_gpu_layers=4, device="RPC0")
    with_layers, at_home = loaded(half), loaded(replace(half, kv_offload=False))
    assert on(with_layers, "RPC0").context == pytest.approx(KV * 3 / 6, rel=0.05)  # three blocks, the output
    assert on(with_layers, CPU).context == pytest.approx(KV * 3 / 6, rel=0.05)
    assert on(at_home, "RPC0").context == 0
    assert on(at_home, CPU).context == pytest.approx(KV, rel=0.05)


@pytest.mark.parametrize("kind", CACHE_TYPES)
def test_every_cache_type_is_llama_cpps(six: ModelOptions, kind: str) -> None:
    options = replace(six, rpc="", cache_type_k=kind, flash_attn="on")
    with captured_report() as lines:
        loaded(options)
    said = next(line for line in lines if "llama_kv_cache: size" in line)
    assert f"K ({kind})" in said and "V (f16)" in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"flash_attn": "on"}, r"flash_attn += enabled"),
        ({"flash_attn": "off"}, r"flash_attn += disabled"),
        ({"batch_size": 64}, r"n_batch += 64$"),
        ({"ubatch_size": 32}, r"n_ubatch += 32$"),
        ({"ctx_size": 256}, r"n_ctx += 256$"),
        ({"load_mode": "none"}, r"load_mode = none\)"),
        ({"load_mode": "mmap"}, r"load_mode = mmap\)"),
        ({"load_mode": "mlock"}, r"load_mode = mlock\)"),
        ({"load_mode": "mmap+mlock"}, r"load_mode = mmap\+mlock\)"),
        ({"load_mode": "dio"}, r"load_mode = dio\)"),
        ({"load_mode": "auto"}, r"load_mode = mmap\)"),
    ],
)
def test_llama_cpp_says_what_it_was_told(six: ModelOptions, change: dict[str, object], said: str) -> None:
    with captured_report() as lines:
        loaded(replace(six, rpc="", **change))  # type: ignore[arg-type]
    assert any(re.search(said, line) for line in lines), [line for line in lines if said[:6] in line]


@pytest.mark.parametrize(
    ("change", "blocks"),
    [({"cpu_moe": True}, 4), ({"n_cpu_moe": 1}, 1), ({"n_cpu_moe": 3}, 3), ({"n_cpu_moe": 99}, 4), ({}, 0)],
)
def test_expert_weights_stay_in_main_memory(
    tiny_file: Callable[[Tiny], Path], rpc: str, change: dict[str, object], blocks: int
) -> None:
    path = tiny_file(MOE)
    experts = {name: size for name, size in tensor_sizes(path) if "_exps" in name}
    stay = sum(size for name, size in experts.items() if int(name.split(".")[1]) < blocks)
    assert len(experts) == 3 * 4
    options = ModelOptions(str(path), rpc=rpc, device="RPC0", load_mode="none", **change)  # type: ignore[arg-type]
    embedding = dict(tensor_sizes(path))["token_embd.weight"]
    for info in (loaded(options), measure(options)):
        assert layers(info) == {"RPC0": 5}
        assert on(info, CPU).weights == pytest.approx(embedding + stay, abs=12_000)  # 0.01 MiB, rounded


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"device": "CUDA7"}, SettingError, "There is no device CUDA7"),
        ({"tensor_split": "1,2,3"}, SettingError, "3 shares for 2 devices"),
        ({"tensor_split": "a"}, SettingError, "tensor_split cannot be 'a'"),
        ({"tensor_split": "0,0"}, SettingError, "tensor_split"),
        ({"tensor_split": "nan,1"}, SettingError, "tensor_split"),
        ({"split_mode": "none", "main_gpu": 2}, SettingError, "main_gpu cannot be 2"),
        ({"split_mode": "row"}, ModelFileError, "cannot split rows"),
        ({"rpc": "nowhere"}, WorkerError, "is not the address of a worker"),
    ],
)
def test_what_contradicts_itself_is_refused(
    six: ModelOptions, change: dict[str, object], error: type[Exception], said: str
) -> None:
    options = replace(six, **change)  # type: ignore[arg-type]
    for work in (loaded, measure):
        with pytest.raises(error, match=said):
            work(options)


# ------------------------------------------------------------------------------------ before loading


@pytest.mark.parametrize("architecture", ["llama", "gemma3", "qwen35", "lfm2", "mamba"])
@pytest.mark.parametrize(
    "change", [{"rpc": ""}, {}, {"n_gpu_layers": 2, "tensor_split": "1,1"}, {"swa_full": False}]
)
def test_what_was_expected_is_what_it_takes(
    tiny_file: Callable[[Tiny], Path], rpc: str, architecture: str, change: dict[str, object]
) -> None:
    path = tiny_file(Tiny(name=f"expected-{architecture}", architecture=architecture, n_layers=4, n_ctx=256))
    options = ModelOptions(str(path), rpc=rpc, load_mode="none", repack=False)
    options = replace(options, **change)  # type: ignore[arg-type]
    expected, taken = measure(options), loaded(options)
    assert layers(expected) == layers(taken)
    assert (expected.n_gpu_layers, expected.n_ctx) == (taken.n_gpu_layers, taken.n_ctx)
    assert [usage.device for usage in expected.memory] == [usage.device for usage in taken.memory]
    for usage, real in zip(expected.memory, taken.memory, strict=True):
        # llama.cpp's report is rounded to 0.01 MiB, for every buffer and cache
        assert usage.weights == pytest.approx(real.weights, rel=0.02, abs=12_000)
        assert usage.context == pytest.approx(real.context, rel=0.02, abs=40_000)
        assert usage.compute == pytest.approx(real.compute, rel=0.3, abs=12_000)


@pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux has them")
def test_measuring_loads_nothing(tiny_file: Callable[[Tiny], Path]) -> None:
    """A model too large for a worker can be measured there."""
    heavy = tiny_file(Tiny(name="heavy", n_layers=6, n_embd=512, n_ff=2048, n_ctx=256))
    with worker() as small:
        options = ModelOptions(str(heavy), rpc=small.endpoint)
        limit_memory(small.process.pid, 8 * 2**20)
        assert on(measure(options), "RPC0").total > 64 * 2**20
        with pytest.raises(NoRoomError, match="no room for its weights"):
            loaded(options)


def test_measuring_refuses_what_loading_would(six: ModelOptions, tmp_path: Path) -> None:
    (tmp_path / "empty.gguf").touch()
    for name, said in (("empty.gguf", "is empty"), ("gone.gguf", "does not exist")):
        with pytest.raises(ModelFileError, match=said):
            measure(replace(six, path=str(tmp_path / name)))
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(Path(six.path).read_bytes()[:3000])
    with pytest.raises(ModelFileError):
        measure(replace(six, path=str(cut)))


def test_a_pair_is_measured_together(
    six: ModelOptions, tiny_file: Callable[[Tiny], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = ModelOptions(str(tiny_file(Tiny(name="near", n_ctx=2048))), n_gpu_layers=0)
    memory = measure_pair(six, draft)
    assert memory.draft is not None and memory.draft.n_ctx == memory.target.n_ctx == 512
    assert [device.name for device in memory.devices] == ["RPC0", "RPC1", CPU]
    assert memory.shortages == ()

    full = Device("RPC0", "", "worker", "RPC", 10, 10**12, six.endpoints[0])
    monkeypatch.setattr("app.engine.devices.offload.list_devices", lambda _endpoints: (full,))
    assert measure_pair(six, None).devices[0].free == 10
    held = on(memory.target, "RPC0").total
    assert held > 0
    assert measure_pair(six, None, [memory.target]).devices[0].free == 10 + held


def test_fit_for_me_takes_as_many_layers_as_there_is_room_for(
    six: ModelOptions, tiny_file: Callable[[Tiny], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = replace(six, path=str(tiny_file(Tiny(name="near", n_ctx=512))))
    memory, target, beside = fit_pair(six, draft)
    assert beside is not None
    assert (target.n_gpu_layers, beside.n_gpu_layers) == (ALL_LAYERS, ALL_LAYERS)
    assert memory.target.n_gpu_layers == LAYERS

    whole = measure(replace(six, device="RPC0"))
    room = on(whole, "RPC0").total * 2 // 3

    def small(_endpoints: object = ()) -> tuple[Device, ...]:
        worker_device = Device("RPC0", "", "worker", "RPC", room, room, six.endpoints[0])
        return worker_device, Device(CPU, "", "CPU", "CPU", 10**12, 10**12)

    monkeypatch.setattr("app.engine.devices.offload.list_devices", small)
    on_worker = replace(six, device="RPC0")
    memory, target, beside = fit_pair(on_worker, replace(draft, device="RPC0"), margin=0)
    assert 0 < target.n_gpu_layers < LAYERS
    assert memory.shortages == ()
    more = measure(replace(on_worker, n_gpu_layers=target.n_gpu_layers + 1))
    assert on(more, "RPC0").total > room
    assert layers(loaded(target))["RPC0"] == target.n_gpu_layers
