"""Devices and workers as options name them."""

from __future__ import annotations

import pytest

from app.engine.devices.memory import Device, offload_devices
from app.engine.devices.placement import NO_DEVICE, chosen_names, share_workers, without_worker_devices
from app.engine.types import ModelOptions


def test_the_cpu_and_its_helpers_hold_no_layers_of_their_own() -> None:
    kinds = {"CUDA0": "GPU", "RPC0": "worker", "BLAS": "accelerator", "CPU": "CPU"}
    listed = [Device(name, name, kind, "X", 1, 2) for name, kind in kinds.items()]
    assert [device.name for device in offload_devices(listed)] == ["CUDA0", "RPC0"]


@pytest.mark.parametrize(
    ("option", "meant"),
    [("", ("A", "B")), (NO_DEVICE, ()), ("B", ("B",)), ("B, A,B", ("B", "A")), ("X", ("X",))],
)
def test_the_names_that_an_option_means(option: str, meant: tuple[str, ...]) -> None:
    assert chosen_names(option, ("A", "B")) == meant


@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), ("CUDA0,RPC1", "CUDA0"), ("RPC0", NO_DEVICE), (NO_DEVICE, NO_DEVICE)],
)
def test_names_of_workers_devices_do_not_outlive_the_workers(before: str, after: str) -> None:
    assert without_worker_devices(before) == after


def test_workers_of_either_are_there_for_both() -> None:
    first, second = share_workers(ModelOptions("a", rpc="x:1, y:2"), ModelOptions("b", rpc="y:2,z:3"))
    assert second is not None
    assert first.rpc == second.rpc == "x:1,y:2,z:3"
    assert share_workers(ModelOptions("a", rpc="x:1"), None) == (ModelOptions("a", rpc="x:1"), None)
