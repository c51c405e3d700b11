"""Devices and shares, read from options and written back."""

from __future__ import annotations

import pytest

from app.engine.devices.placement import chosen_names
from app.engine.types import ModelOptions
from app.ui.pair.placement import device_option, read_shares, shares_option, with_workers

THERE = ("RPC0", "CUDA0")


@pytest.mark.parametrize(
    ("option", "chosen"),
    [("", THERE), ("none", ()), ("CUDA0", ("CUDA0",)), ("CUDA0, RPC0", ("CUDA0", "RPC0")), ("X9", ("X9",))],
)
def test_the_devices_that_an_option_means(option: str, chosen: tuple[str, ...]) -> None:
    assert chosen_names(option, THERE) == chosen
    assert chosen_names(device_option(chosen, THERE), THERE) == chosen


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


def test_where_all_named_devices_go_no_other_takes_their_place() -> None:
    options = ModelOptions("m", rpc="a:1", device="RPC0")
    assert with_workers(options, "") == ModelOptions("m", device="none")
    assert with_workers(ModelOptions("m", rpc="a:1"), "") == ModelOptions("m")


def test_shares_of_all_devices_do_not_outlive_a_new_one() -> None:
    options = ModelOptions("m", rpc="a:1", tensor_split="2,1", main_gpu=1)
    assert with_workers(options, "a:1,b:2") == ModelOptions("m", rpc="a:1,b:2")
    assert with_workers(options, "a:1") == options
