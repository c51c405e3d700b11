"""Devices for layers: this machine's and those of workers; and a worker that serves them."""

from __future__ import annotations

import ctypes
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from app.engine.devices.memory import CPU, SOURCE_FOLDER, Device, build_command, default_threads
from app.engine.devices.placement import NO_DEVICE, chosen_names
from app.engine.devices.workers import Endpoint, WorkerError, check_worker
from app.engine.errors import SettingError, UserError
from app.engine.native import ggml
from app.engine.process.limits import free_memory
from app.engine.types import ModelOptions

_KINDS = {
    ggml.CPU: "CPU",
    ggml.GPU: "GPU",
    ggml.INTEGRATED: "integrated GPU",
    ggml.ACCELERATOR: "accelerator",
}

# Workers whose devices hold layers now. llama.cpp keeps one connection to each for the whole process, and a
# worker answers no greeting while it serves a connection: these workers are not checked again.
_in_use: Counter[str] = Counter()


@dataclass(frozen=True, slots=True)
class OffloadDevice:
    """A device other than the CPU; `handle` is ggml's."""

    handle: int
    name: str  # as in this pair's options: RPC devices are numbered in the order of `rpc`
    endpoint: str = ""  # of the worker it belongs to
    index: int = 0  # among the worker's own

    def has_buffer(self, buffer: str) -> bool:
        """Whether a buffer in llama.cpp's report is in this device's memory."""
        own = f"{ggml.RPC}{self.index}[{self.endpoint}]" if self.endpoint else self.name
        return buffer == own or (buffer.startswith(own) and buffer[len(own)] in "_ ")


def native_devices(endpoints: Sequence[str]) -> list[OffloadDevice]:
    """Workers' devices, then GPUs (integrated ones only if there are no others), in llama.cpp's order.

    Raises WorkerError if a worker cannot be reached.
    """
    found: list[OffloadDevice] = []
    for endpoint in endpoints:
        for index, handle in enumerate(_worker_devices(endpoint)):
            found.append(OffloadDevice(handle, f"{ggml.RPC}{len(found)}", endpoint, index))
    own = [handle for handle in ggml.registered() if ggml.kind(handle) in (ggml.GPU, ggml.INTEGRATED)]
    kind = ggml.GPU if any(ggml.kind(handle) == ggml.GPU for handle in own) else ggml.INTEGRATED
    seen = set()
    for handle in own:
        hardware = ggml.hardware_id(handle) or ggml.name(handle)
        if ggml.kind(handle) == kind and hardware not in seen:  # two backends may see one GPU
            seen.add(hardware)
            found.append(OffloadDevice(handle, ggml.name(handle)))
    return found


def _worker_devices(endpoint: str) -> list[int]:
    if ggml.RPC not in ggml.backends():
        raise WorkerError(
            "This build of llama.cpp cannot use workers.",
            f"Rebuild llama.cpp in {SOURCE_FOLDER}: {build_command('none')}",
            endpoint,
        )
    if not _in_use[endpoint]:
        check_worker(endpoint)
    return ggml.worker_devices(endpoint)


def hold(endpoints: Iterable[str]) -> None:
    """Note that these workers have layers from now on."""
    _in_use.update(endpoints)


def release(endpoints: Iterable[str]) -> None:
    """Undo `hold`."""
    _in_use.subtract(endpoints)


def list_devices(endpoints: Sequence[str] = ()) -> tuple[Device, ...]:
    """All devices with their memory, the CPU last; raises WorkerError."""
    offload = native_devices(endpoints)
    found = [_describe(device.handle, device.name, device.endpoint) for device in offload]
    remaining = [handle for handle in ggml.registered() if ggml.kind(handle) in (ggml.ACCELERATOR, ggml.CPU)]
    found += [
        _describe(handle, ggml.name(handle)) for handle in sorted(remaining, key=ggml.kind, reverse=True)
    ]
    return tuple(found)


def _describe(handle: int, name: str, endpoint: str = "") -> Device:
    free, total = ggml.memory(handle)
    if name == CPU:
        free = _available(free)
    return Device(
        name=name,
        description=" ".join(ggml.description(handle).split()),
        kind="worker" if endpoint else _KINDS[ggml.kind(handle)],
        backend=ggml.backend(handle),
        free=free,
        total=total,
        endpoint=endpoint,
    )


def _available(total: int) -> int:
    """The main memory still available to programs; llama.cpp reports all memory as free on Linux and
    macOS."""
    try:
        return free_memory()[0]
    except OSError:
        return total


def chosen_devices(options: ModelOptions) -> list[OffloadDevice]:
    """The devices that `options` name, in their order; raises SettingError, WorkerError."""
    found = native_devices(options.endpoints)
    by_name = {device.name: device for device in found}
    wanted = chosen_names(options.device, by_name)
    for name in wanted:
        if name not in by_name:
            there = ", ".join(by_name) or "there is none besides the CPU"
            raise SettingError(f"There is no device {name}.", f"Devices: {there}; or {NO_DEVICE}.")
    return [by_name[name] for name in wanted]


_FIRST_LOOK = 0.05  # seconds between two checks that the server listens
_PATIENCE = 10.0


def worker_devices(names: Sequence[str] = ()) -> list[tuple[Device, int]]:
    """The devices to serve, with ggml's handles: those in `names`, else the GPUs, else the CPU.

    Raises SettingError for an unknown name.
    """
    handles = {device.name: device.handle for device in native_devices(())}
    described = {device.name: device for device in list_devices()}
    handles |= {ggml.name(ggml.cpu_device()): ggml.cpu_device()}
    for name in names:
        if name not in handles:
            raise SettingError(f"There is no device {name}.", f"Devices: {', '.join(handles)}.")
    chosen = list(names) or list(handles)[:-1] or list(handles)
    return [(described[name], handles[name]) for name in chosen]


def serve(
    endpoint: Endpoint,
    devices: Sequence[int],
    threads: int,
    is_stopped: Callable[[], bool],
    on_ready: Callable[[], None],
) -> None:
    """Serve one program at a time until `is_stopped`; `on_ready` is called once others can connect.

    Raises UserError if the address cannot be served. The serving thread ends only with the process.
    """
    start = ggml.rpc_call(
        "ggml_backend_rpc_start_server",
        None,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_void_p),
    )
    if start is None:
        raise UserError(
            "This build of llama.cpp cannot serve as a worker.",
            f"Rebuild llama.cpp in {SOURCE_FOLDER}: make run.",
        )
    address = numeric(endpoint)
    _check_free(address)
    handles = (ctypes.c_void_p * len(devices))(*devices)

    def work() -> None:
        start(str(address).encode(), None, threads or default_threads(), len(devices), handles)

    thread = threading.Thread(target=work, name="worker", daemon=True)
    thread.start()
    _wait_until_there(address, thread, is_stopped)
    on_ready()
    while thread.is_alive() and not is_stopped():
        thread.join(_FIRST_LOOK)
    if not is_stopped():
        raise UserError(f"llama.cpp stopped serving {endpoint}.", "Start the worker again.")


def numeric(endpoint: Endpoint) -> Endpoint:
    """The endpoint with an IPv4 address, because llama.cpp resolves no names when it serves. Raises
    WorkerError."""
    try:
        return Endpoint(socket.gethostbyname(endpoint.host), endpoint.port)
    except OSError as error:
        raise WorkerError(
            f"{endpoint.host} is not an address of this machine: {error.strerror or error}.",
            "Give an IPv4 address of this machine; 0.0.0.0 is all of them.",
        ) from None


def _check_free(address: Endpoint) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address.host, address.port))
        except OSError as error:
            raise WorkerError(
                f"{address} cannot be served: {error.strerror or error}.", "Choose a different port or host."
            ) from None


def _wait_until_there(address: Endpoint, thread: threading.Thread, is_stopped: Callable[[], bool]) -> None:
    here = "127.0.0.1" if address.host == "0.0.0.0" else address.host
    rounds = int(_PATIENCE / _FIRST_LOOK)
    for _ in range(rounds):
        if is_stopped():
            return
        try:
            check_worker(f"{here}:{address.port}")
            return
        except WorkerError:
            thread.join(_FIRST_LOOK)
    raise UserError(f"llama.cpp does not serve {address}.", "Choose a different port or host.")
