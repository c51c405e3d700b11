"""A worker: serves this machine's devices to another program, in llama.cpp's RPC protocol."""

from __future__ import annotations

import ctypes
import socket
import threading
from collections.abc import Callable, Sequence

from app.engine.devices.builds import SOURCE_FOLDER
from app.engine.devices.cores import default_threads
from app.engine.devices.memory import Device
from app.engine.devices.workers import Endpoint, WorkerError, check_worker
from app.engine.errors import SettingError, UserError
from app.engine.native.devices import ggml
from app.engine.native.devices.offload_devices import list_devices, native_devices

_FIRST_LOOK = 0.05  # seconds between two checks that the server listens
_PATIENCE = 10.0


def worker_devices(names: Sequence[str] = ()) -> list[tuple[Device, int]]:
    """The devices to serve with ggml's handles: those in `names`, else the GPUs, else the CPU.

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
            f"Build one that can, in {SOURCE_FOLDER}: make run.",
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
    """The endpoint with an IPv4 address: llama.cpp resolves no names when it serves. Raises WorkerError."""
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
                f"{address} cannot be served: {error.strerror or error}.", "Choose another port, or host."
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
    raise UserError(f"llama.cpp does not serve {address}.", "Choose another port, or host.")
