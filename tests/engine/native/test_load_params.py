"""llama.cpp's report of a load, read: lines as its backends write them."""

from __future__ import annotations

from app.engine.devices.memory import DeviceMemory
from app.engine.native.devices import OffloadDevice
from app.engine.native.load_params import LoadReport

MIB = 2**20
GPUS = [OffloadDevice(0, "CUDA0"), OffloadDevice(0, "CUDA1"), OffloadDevice(0, "CUDA10")]


def read(*lines: str) -> LoadReport:
    report = LoadReport([], GPUS)
    report.layers = {0: "CPU", 1: "CUDA0", 2: "CUDA0", 3: "CUDA1"}
    for line in lines:
        report.add(line)
    return report


def test_each_buffer_belongs_to_its_device() -> None:
    memory = read(
        "load_tensors:   CPU_Mapped model buffer size =    10.00 MiB",
        "load_tensors:        CUDA0 model buffer size =    20.00 MiB",
        "load_tensors:        CUDA1 model buffer size =     5.50 MiB",
        "llama_context:  CUDA_Host  output buffer size =     1.00 MiB",
        "llama_kv_cache:      CUDA0 KV buffer size =     8.00 MiB",
        "llama_memory_recurrent:      CUDA1 RS buffer size =     2.00 MiB",
        "sched_reserve:      CUDA0 compute buffer size =     3.00 MiB",
        "sched_reserve:  CUDA_Host compute buffer size =     4.00 MiB",
        "llama_context: n_ctx                 = 4096",
        "llama_context: n_ctx_seq             = 512",
    ).memory()
    assert memory.memory == (
        DeviceMemory("CUDA0", 20 * MIB, 8 * MIB, 3 * MIB, layers=2),
        DeviceMemory("CUDA1", 11 * MIB // 2, 2 * MIB, 0, layers=1),
        DeviceMemory("CPU", 10 * MIB, 1 * MIB, 4 * MIB, mapped=10 * MIB, layers=1),
    )
    assert (memory.n_gpu_layers, memory.most_layers, memory.n_ctx) == (3, 4, 4096)


def test_copies_in_another_order_are_told_from_the_mapped_file() -> None:
    usage = (
        read(
            "load_tensors:   CPU_Mapped model buffer size =    36.50 MiB",
            "load_tensors:   CPU_REPACK model buffer size =     8.00 MiB",
        )
        .memory()
        .memory[-1]
    )
    assert (usage.weights, usage.mapped, usage.repacked) == (89 * MIB // 2, 73 * MIB // 2, 8 * MIB)


def test_split_rows_lie_on_all_devices_with_layers() -> None:
    memory = read("load_tensors:   CUDA_Split model buffer size =     9.00 MiB").memory()
    assert {usage.device: usage.weights for usage in memory.memory} == {
        "CUDA0": 6 * MIB,
        "CUDA1": 3 * MIB,
        "CPU": 0,
    }


def test_names_that_begin_alike_are_kept_apart() -> None:
    device = OffloadDevice(0, "CUDA1")
    assert [device.has_buffer(name) for name in ("CUDA1", "CUDA1_Mapped", "CUDA10", "CUDA0")] == [
        True,
        True,
        False,
        False,
    ]
    far = OffloadDevice(0, "RPC3", "10.0.0.2:50052", 1)
    assert far.has_buffer("RPC1[10.0.0.2:50052]")
    assert not far.has_buffer("RPC3[10.0.0.2:50052]") and not far.has_buffer("RPC1[10.0.0.3:50052]")
