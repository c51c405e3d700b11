"""A light for a file, and the numbers behind it."""

from __future__ import annotations

import pytest

from app.hub.fits import Fit, Light, Room, fit_in


def test_the_light_and_its_numbers() -> None:
    room = Room(memory=8_000_000_000, device=4_000_000_000)
    assert fit_in(3_000_000_000, room).light is Light.GPU
    assert fit_in(3_600_000_000, room).light is Light.MEMORY  # with its context it does not fit any more
    assert fit_in(7_500_000_000, Room(8_000_000_000)).light is Light.NOT
    assert fit_in(3_000_000_000, Room(8_000_000_000)).light is Light.MEMORY
    fit = fit_in(3_000_000_000, room)
    assert fit == Fit(Light.GPU, 3_000_000_000, 300_000_000, room)
    assert str(fit) == (
        "fits on the GPU: needs about 3.30 GB (3.00 GB weights, 300 MB context); "
        "free: 4.00 GB on the GPU and 8.00 GB of memory"
    )
    assert fit_in(1000, room).context == 200_000_000


def test_layers_can_lie_on_both() -> None:
    room = Room(memory=8_000_000_000, device=4_000_000_000)
    assert fit_in(6_900_000_000, room).light is Light.MEMORY
    assert fit_in(7_500_000_000, room).light is Light.BOTH
    assert fit_in(10_300_000_000, room).light is Light.BOTH  # with its context 11.3 of 11.4 GB
    assert fit_in(10_400_000_000, room).light is Light.NOT
    assert fit_in(7_500_000_000, room).light == "fits on GPU and memory together"
    same = Room(8_000_000_000, 4_000_000_000, shared=True)
    assert fit_in(7_500_000_000, same).light is Light.NOT
    assert fit_in(3_000_000_000, same).light is Light.GPU


@pytest.mark.parametrize(
    ("kind", "backend", "shared"),
    [("GPU", "CUDA", False), ("integrated GPU", "Vulkan", True), ("GPU", "MTL", True)],
)
def test_memory_that_a_gpu_shares_is_not_counted_twice(kind: str, backend: str, shared: bool) -> None:
    from app.engine.devices.memory import Device

    devices = (Device("X0", "", kind, backend, 4, 4), Device("CPU", "", "CPU", "CPU", 8, 8))
    assert Room.of(devices) == Room(8, 4, shared)


def test_room_is_what_the_devices_have() -> None:
    from app.engine.devices.memory import Device

    def device(name: str, kind: str, free: int) -> Device:
        return Device(name, "", kind, "", free, free)

    cpu = device("CPU", "CPU", 10)
    assert Room.of([cpu]) == Room(10)
    assert Room.of([device("CUDA0", "GPU", 3), device("CUDA1", "GPU", 4), cpu]) == Room(10, 7)
    assert Room.of([device("BLAS", "accelerator", 5), cpu]) == Room(10)
