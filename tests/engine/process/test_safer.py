"""The offers for a pair that does not fit in memory, from numbers alone; no model is loaded."""

from __future__ import annotations

import pytest

from app.engine.devices.memory import ALL_LAYERS, CPU, MARGIN, Device, DeviceMemory, ModelMemory
from app.engine.process.messages import Load, Offer
from app.engine.process.safer import less_memory, without_workers
from app.engine.process.server import fitting
from app.engine.types import ModelOptions

MOST = {"target": 8, "draft": 4}
EACH = 2**30  # bytes of a layer
TARGET, DRAFT = ModelOptions("target"), ModelOptions("draft")


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The GPU's free memory beyond the margin; a target has eight layers, a draft four."""
    free = {"GPU": 0}

    def measure(
        options: ModelOptions, _snapshots: int = 0, _target: ModelOptions | None = None
    ) -> ModelMemory:
        most = MOST[options.path]
        layers = most if options.n_gpu_layers < 0 else min(options.n_gpu_layers, most)
        n_ctx = options.ctx_size or 8192
        return ModelMemory((DeviceMemory("GPU", layers * EACH, layers=layers),), layers, most, n_ctx)

    def list_devices(_endpoints: object) -> tuple[Device, ...]:
        gpu = Device("GPU", "", "GPU", "CUDA", free["GPU"] + MARGIN, 10**12)
        return gpu, Device(CPU, "", "CPU", "CPU", 10**12, 10**12)

    monkeypatch.setattr("app.engine.devices.offload.measure", measure)
    monkeypatch.setattr("app.engine.devices.offload.list_devices", list_devices)
    return free


def offered(target: ModelOptions, draft: ModelOptions | None, loaded: tuple[ModelMemory, ...] = ()) -> Offer:
    command = Load(1, target, draft)
    offer = less_memory(command, fitting(command, loaded))
    assert offer is not None
    return offer


def test_a_helper_of_the_cpu_is_no_device_for_layers(
    room: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = Device("BLAS", "", "accelerator", "BLAS", 0, 0)
    here = Device(CPU, "", "CPU", "CPU", 10**12, 10**12)
    monkeypatch.setattr("app.engine.devices.offload.list_devices", lambda _endpoints: (helper, here))
    assert offered(TARGET, None).words == "Load with a context of 4,096 tokens"


def test_without_the_chosen_worker_its_layers_go_to_no_other_device() -> None:
    target = ModelOptions("a", rpc="x:1,y:2", device="RPC1")
    offer = without_workers(Load(1, target, ModelOptions("b")), ("y:2",))
    assert offer is not None
    assert (offer.target, offer.draft) == (ModelOptions("a", rpc="x:1", device="none"), ModelOptions("b"))


def layers(offer: Offer) -> tuple[int, int | None]:
    return offer.target.n_gpu_layers, offer.draft.n_gpu_layers if offer.draft else None


def test_what_the_pair_from_before_holds_is_free_for_the_next(room: dict[str, int]) -> None:
    room["GPU"] = EACH
    held = ModelMemory((DeviceMemory("GPU", 5 * EACH),), 5, 8)
    offer = offered(TARGET, None, (held,))
    assert layers(offer) == (6, None)
    assert offer.words == "Load with 6 of 8 layers on devices"


@pytest.mark.parametrize("asked", [ALL_LAYERS, 8, 5, 0])
def test_where_the_draft_alone_finds_no_room_the_target_stays_as_it_was(
    room: dict[str, int], asked: int
) -> None:
    target = ModelOptions("target", ctx_size=4096, n_gpu_layers=asked)
    room["GPU"] = EACH * (asked if asked >= 0 else 8) + EACH
    offer = offered(target, DRAFT)
    assert layers(offer)[1] == 1
    assert offer.target.n_gpu_layers % 9 == asked % 9  # -1 is all eight
    assert offer.target.ctx_size == 4096
    assert offer.words == "Load with 1 of the draft's 4 layers on devices"


def test_both_get_what_fits(room: dict[str, int]) -> None:
    room["GPU"] = 3 * EACH
    offer = offered(TARGET, DRAFT)
    assert layers(offer) == (3, 0)
    assert offer.words == "Load with 3 of 8 layers on devices"


def test_where_all_should_have_fitted_half_the_targets_layers_are_offered(room: dict[str, int]) -> None:
    room["GPU"] = 100 * EACH
    near = ModelOptions("draft", n_gpu_layers=0)
    offer = offered(TARGET, near)
    assert layers(offer) == (4, 0)  # no layers go to devices that had none before


def test_where_the_drafts_context_found_no_room_it_becomes_smaller(
    room: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Device(CPU, "", "CPU", "CPU", 10**12, 10**12)
    monkeypatch.setattr("app.engine.devices.offload.list_devices", lambda _endpoints: (here,))
    command = Load(1, TARGET, ModelOptions("draft", ctx_size=2048))
    offer = less_memory(command, fitting(command), of_draft=True)
    assert offer is not None and offer.words == "Load with a context of 1,024 tokens for the draft"
    assert (offer.target, offer.draft) == (TARGET, ModelOptions("draft", ctx_size=1024))
    least = Load(1, TARGET, ModelOptions("draft", ctx_size=512))
    offer = less_memory(least, fitting(least), of_draft=True)
    assert offer is not None and offer.words == "Load with a context of 4,096 tokens"


def test_the_offers_end(room: dict[str, int]) -> None:
    room["GPU"] = 9 * EACH
    command: Load | None = Load(1, TARGET, DRAFT)
    words: list[str] = []
    while command is not None and len(words) < 20:
        offer = less_memory(command, fitting(command))
        words.append(offer.words if offer else "")
        command = Load(1, offer.target, offer.draft) if offer else None
    assert words[:3] == [
        "Load with 1 of the draft's 4 layers on devices",
        "Load with 4 of 8 layers on devices",
        "Load with 2 of 8 layers on devices",
    ]
    assert words[-2:] == ["Load with a context of 512 tokens", ""]
