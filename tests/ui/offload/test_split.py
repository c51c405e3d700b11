"""Devices and shares, read from options and written back."""

from __future__ import annotations

import pytest

from app.engine.memory import Device
from app.engine.types import ModelOptions
from app.ui.offload.split import (
    chosen_devices,
    device_option,
    offload_devices,
    read_shares,
    shares_option,
    with_workers,
)

THERE = ("RPC0", "CUDA0")


def device(name: str, kind: str = "GPU") -> Device:
    return Device(name, name, kind, "X", 1, 2)


def test_the_cpu_and_its_helpers_hold_no_layers_of_their_own() -> None:
    listed = (device("CUDA0"), device("BLAS", "accelerator"), device("CPU", "CPU"))
    assert [one.name for one in offload_devices(listed)] == ["CUDA0"]


@pytest.mark.parametrize(
    ("option", "chosen"),
    [("", THERE), ("none", ()), ("CUDA0", ("CUDA0",)), ("CUDA0, RPC0", ("CUDA0", "RPC0")), ("X9", ("X9",))],
)
def test_the_devices_that_an_option_means(option: str, chosen: tuple[str, ...]) -> None:
    assert chosen_devices(option, THERE) == chosen
    assert chosen_devices(device_option(chosen, THERE), THERE) == chosen


def test_shares_go_by_name() -> None:
    assert read_shares("3,1", THERE) == {"RPC0": 3.0, "CUDA0": 1.0}
    assert read_shares("3/1", THERE) == {"RPC0": 3.0, "CUDA0": 1.0}
    assert read_shares("3", THERE) == {"RPC0": 3.0, "CUDA0": 0.0}, "as llama.cpp reads it"
    assert read_shares("", THERE) is None
    assert read_shares("a,b", THERE) is None
    assert read_shares("3,1", ()) is None, "devices that are not known yet"
    assert shares_option({"CUDA0": 2.5, "RPC0": 1.0}, THERE) == "1,2.5"
    assert shares_option({"RPC0": 3.0}, THERE) == "3,1", "one that comes anew"
    assert shares_option({"RPC0": 3.0}, ("RPC0",)) == "", "nothing to share"
    assert shares_option(None, THERE) == ""


def test_a_worker_that_comes_last_renames_nothing() -> None:
    options = ModelOptions("m", rpc="a:1", device="RPC0,CUDA0", tensor_split="2,1", main_gpu=1)
    assert with_workers(options, "a:1,b:2") == ModelOptions(
        "m", rpc="a:1,b:2", device="RPC0,CUDA0", tensor_split="2,1", main_gpu=1
    )


def test_a_worker_that_goes_takes_names_and_shares_along() -> None:
    options = ModelOptions("m", rpc="a:1,b:2", device="RPC1,CUDA0", tensor_split="2,1", main_gpu=1)
    assert with_workers(options, "b:2") == ModelOptions("m", rpc="b:2", device="CUDA0")


def test_shares_of_all_devices_do_not_outlive_a_new_one() -> None:
    options = ModelOptions("m", rpc="a:1", tensor_split="2,1", main_gpu=1)
    assert with_workers(options, "a:1,b:2") == ModelOptions("m", rpc="a:1,b:2")
    assert with_workers(options, "a:1") == options
