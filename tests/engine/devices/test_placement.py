"""Devices and workers as options name them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.engine.devices import offload
from app.engine.devices.memory import CPU, Device, DeviceMemory, ModelMemory, offload_devices
from app.engine.devices.offload import lighten_pair, measure_pair
from app.engine.devices.placement import (
    NO_DEVICE,
    LighterPair,
    chosen_names,
    lighter_pairs,
    share_workers,
    without_worker_devices,
)
from app.engine.errors import SettingError, UserError
from app.engine.types import ModelOptions
from tests.files.tiny import Tiny


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
    ("before", "after"), [("", ""), ("CUDA0,RPC1", "CUDA0"), ("RPC0", NO_DEVICE), (NO_DEVICE, NO_DEVICE)]
)
def test_names_of_workers_devices_do_not_outlive_the_workers(before: str, after: str) -> None:
    assert without_worker_devices(before) == after


def test_workers_of_either_are_there_for_both() -> None:
    first, second = share_workers(ModelOptions("a", rpc="x:1, y:2"), ModelOptions("b", rpc="y:2,z:3"))
    assert second is not None
    assert first.rpc == second.rpc == "x:1,y:2,z:3"
    assert share_workers(ModelOptions("a", rpc="x:1"), None) == (ModelOptions("a", rpc="x:1"), None)


TARGET = ModelOptions("target", ctx_size=8192)
DRAFT = ModelOptions("draft")
PER_TOKEN = {"target": 10, "draft": 4}
WEIGHTS = {"target": 100_000, "draft": 20_000}


def need(options: ModelOptions, n_ctx: int) -> ModelMemory:
    """Weights, and a cache that q8_0 halves; all of it on the GPU unless no layers are to go there."""
    cache = PER_TOKEN[options.path] * n_ctx // (2 if options.cache_type_k == "q8_0" else 1)
    device = CPU if options.n_gpu_layers == 0 else "GPU"
    return ModelMemory((DeviceMemory(device, WEIGHTS[options.path], cache),), 0, 0, n_ctx)


def needs(target: ModelOptions, draft: ModelOptions | None) -> tuple[ModelMemory, ...]:
    first = need(target, target.ctx_size)
    return (first,) if draft is None else (first, need(draft, draft.ctx_size or target.ctx_size))


def devices(gpu: int, memory: int = 10_000_000) -> tuple[Device, ...]:
    return tuple(
        Device(name, name, kind, "X", free, 10_000_000)
        for name, kind, free in (("GPU", "GPU", gpu), (CPU, "CPU", memory))
    )


ALL = 100_000 + 81_920 + 20_000 + 32_768


def found(gpu: int, draft: ModelOptions | None = DRAFT, memory: int = 10_000_000) -> dict[str, LighterPair]:
    return {pair.words: pair for pair in lighter_pairs(TARGET, draft, needs, devices(gpu, memory))}


def test_each_change_that_makes_it_fit_is_named_with_its_saving() -> None:
    pairs = found(ALL - 1_000)
    assert {words: pair.saves for words, pair in pairs.items()} == {
        "no draft": 52_768,
        "the draft on the CPU": 52_768,
        "the draft's KV cache as q8_0": 16_384,
        "a context of 4,096 tokens for the draft": 16_384,
        "a context of 4,096 tokens": 57_344,
    }
    assert pairs["the draft on the CPU"].draft == replace(DRAFT, n_gpu_layers=0, device="none")
    assert pairs["the draft's KV cache as q8_0"].draft == replace(
        DRAFT, cache_type_k="q8_0", cache_type_v="q8_0"
    )
    assert pairs["a context of 4,096 tokens for the draft"].draft == replace(DRAFT, ctx_size=4096)
    assert pairs["a context of 4,096 tokens"].target == replace(TARGET, ctx_size=4096)


def test_a_change_that_is_not_enough_is_not_named() -> None:
    assert list(found(ALL - 8_000)) == [
        "no draft",
        "the draft on the CPU",
        "a context of 2,048 tokens for the draft",
        "a context of 4,096 tokens",
    ]


def test_a_change_leaves_some_memory_free() -> None:
    exactly = ALL - 16_384  # with a cache of q8_0
    assert "the draft's KV cache as q8_0" not in found(exactly)
    assert "the draft's KV cache as q8_0" in found(exactly * 16 // 15 + 1)


def test_the_draft_goes_to_the_cpu_only_where_there_is_room() -> None:
    assert "the draft on the CPU" not in found(ALL - 1_000, memory=1_000)


def test_without_a_draft_only_the_context_can_shrink() -> None:
    assert list(found(160_000, draft=None)) == ["a context of 4,096 tokens"]


def test_two_changes_are_named_where_none_alone_is_enough() -> None:
    assert list(found(120_000)) == ["no draft and a context of 1,024 tokens"]


def test_nothing_is_named_where_nothing_helps() -> None:
    assert not found(90_000)


def test_a_pair_that_should_have_fitted_gets_every_change_that_saves() -> None:
    assert list(found(ALL)) == [
        "no draft",
        "the draft on the CPU",
        "the draft's KV cache as q8_0",
        "a context of 4,096 tokens for the draft",
        "a context of 4,096 tokens",
    ]


def test_a_change_that_llama_cpp_cannot_use_is_left_out() -> None:
    def strict(target: ModelOptions, draft: ModelOptions | None) -> tuple[ModelMemory, ...]:
        if draft is not None and draft.cache_type_v == "q8_0":
            raise SettingError("V cache quantization requires flash_attn.")
        return needs(target, draft)

    words = [pair.words for pair in lighter_pairs(TARGET, DRAFT, strict, devices(ALL - 1_000))]
    assert "the draft's KV cache as q8_0" not in words and "no draft" in words


def test_a_smaller_draft_is_named_where_it_makes_the_pair_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PER_TOKEN, "/m/small.gguf", 2)
    monkeypatch.setitem(PER_TOKEN, "/m/other.gguf", 4)
    monkeypatch.setitem(WEIGHTS, "/m/small.gguf", 10_000)
    monkeypatch.setitem(WEIGHTS, "/m/other.gguf", 19_900)
    others = [replace(DRAFT, path=f"/m/{name}.gguf") for name in ("other", "small")]
    pairs = {pair.words: pair for pair in lighter_pairs(TARGET, DRAFT, needs, devices(ALL - 9_000), others)}
    assert pairs["small.gguf as the draft"].draft == others[1]
    assert pairs["small.gguf as the draft"].saves == 10_000 + 2 * 8192
    assert "other.gguf as the draft" not in pairs, "it saves too little"


def test_real_models_are_measured_with_each_change(
    tiny_file: Callable[[Tiny], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = ModelOptions(str(tiny_file(Tiny(n_ctx=4096, n_heads=2))), ctx_size=4096, ubatch_size=32)
    draft = ModelOptions(str(tiny_file(Tiny(n_ctx=4096, n_heads=2, seed=1, n_layers=8))), ubatch_size=32)
    needed = measure_pair(target, draft)
    whole = sum(usage.total for model in needed.models for usage in model.memory)
    room = (Device(CPU, CPU, "CPU", CPU, whole - 1000, 10 * whole),)
    monkeypatch.setattr(offload, "list_devices", lambda endpoints: room)
    pairs = {pair.words: pair for pair in lighten_pair(target, draft)}
    assert {"no draft", "the draft's KV cache as q8_0", "a context of 2,048 tokens"} <= set(pairs)
    for pair in pairs.values():
        again = measure_pair(pair.target, pair.draft)
        assert pair.saves == whole - sum(usage.total for model in again.models for usage in model.memory)
        assert not again.shortages


def test_a_stop_ends_the_search(tiny_file: Callable[[Tiny], Path]) -> None:
    def stop() -> None:
        raise UserError("Stopped.")

    with pytest.raises(UserError, match="Stopped"):
        lighten_pair(ModelOptions(str(tiny_file(Tiny()))), None, (), stop)
