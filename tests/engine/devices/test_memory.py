"""Memory by device: sums, shortages, and the layers that fit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.engine.devices.memory import (
    ALL_LAYERS,
    CPU,
    Device,
    DeviceMemory,
    ModelMemory,
    PairMemory,
    build_command,
    fit_layers,
    freed,
    gpu_backends,
    most_that_fits,
    other_builds,
    shortages,
    total_by_device,
)


def device(name: str, free: int, total: int = 1000) -> Device:
    return Device(name, "", "CPU" if name == CPU else "GPU", name, free, total)


def model(layers: int, most: int, each: int, base: int = 0) -> ModelMemory:
    """Memory with `each` bytes per layer on the GPU, and `base` besides if it has any layer."""
    layers = most if layers == ALL_LAYERS else layers
    gpu = DeviceMemory("GPU", layers * each, compute=base if layers else 0, layers=layers)
    return ModelMemory((gpu, DeviceMemory(CPU, (most - layers) * each)), layers, most)


def test_sums_and_shortages() -> None:
    usage = DeviceMemory("GPU", weights=100, context=20, compute=3, mapped=50)
    assert usage.total == 123
    pair = PairMemory(
        ModelMemory((usage, DeviceMemory(CPU, 10)), 2, 5, 512),
        ModelMemory((DeviceMemory("GPU", 7),), 3, 3, 512),
        (device("GPU", 129), device(CPU, 1000)),
    )
    assert total_by_device(pair.models) == {"GPU": 130, CPU: 10}
    (short,) = pair.shortages
    assert (short.device, short.needed, short.free) == ("GPU", 130, 129)
    assert shortages([device("GPU", 130)], pair.models) == ()
    assert len(shortages([device("GPU", 130)], pair.models, margin=1)) == 1
    assert shortages([device("GPU", 0, total=0)], pair.models) == ()  # the device reports no memory
    assert (pair.target.layers_option, pair.models[1].layers_option) == (2, ALL_LAYERS)


def test_what_is_loaded_makes_room() -> None:
    held = ModelMemory((DeviceMemory("GPU", 100, 20, 3), DeviceMemory(CPU, 60, 5, mapped=60)), 1, 2)
    gpu, cpu = freed([device("GPU", 10), device(CPU, 998)], [held])
    assert (gpu.free, cpu.free) == (133, 1000)  # mapped pages were free already, and at most the total


@given(st.integers(0, 200), st.integers(0, 200))
def test_the_most_that_fits_is_found_in_few_steps(most: int, limit: int) -> None:
    asked = []

    def fits(n: int) -> bool:
        asked.append(n)
        return n <= limit

    assert most_that_fits(fits, most) == min(most, limit)
    assert len(asked) <= most.bit_length() + 1


def test_where_nothing_fits_nothing_is_chosen() -> None:
    assert most_that_fits(lambda _n: False, 8) == 0


@given(st.integers(0, 3000), st.integers(1, 60), st.integers(1, 50), st.integers(1, 40), st.integers(0, 300))
def test_what_was_fitted_fits_and_one_layer_more_would_not(
    free: int, most: int, each: int, draft_most: int, base: int
) -> None:
    there = [device("GPU", free, 3000), device(CPU, 10**9, 10**9)]
    target, draft = fit_layers(
        lambda n: model(n, most, each, base), lambda n: model(n, draft_most, 2), there, margin=100
    )
    assert draft is not None
    assert shortages(there[:1], (target, draft), 100) == ()
    if target.n_gpu_layers < most:
        assert shortages(there[:1], (model(target.n_gpu_layers + 1, most, each, base),), 100)
    if draft.n_gpu_layers < draft_most:
        assert shortages(there[:1], (target, model(draft.n_gpu_layers + 1, draft_most, 2)), 100)


def test_without_devices_no_layer_moves() -> None:
    target, draft = fit_layers(lambda n: model(n, 9, 1), None, [device(CPU, 1000)])
    assert (target.n_gpu_layers, draft) == (0, None)


def test_the_builds() -> None:
    assert gpu_backends(("RPC", "CPU")) == ()
    assert gpu_backends(("CUDA", "RPC", "CPU")) == ("CUDA",)
    assert gpu_backends(("MTL", "BLAS", "CPU")) == ("Metal",)
    assert other_builds(("CUDA", "CPU"))["Vulkan"] == build_command("vulkan") == "make run GPU=vulkan"
    assert "CUDA" not in other_builds(("CUDA", "CPU"))
