"""The few calls of ggml's own library: devices, backends, buffer types."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

from app.engine.native.library import raw_call as _call  # the log, and the environment, before everything

_Handle = ctypes.c_void_p

CPU, GPU, INTEGRATED, ACCELERATOR = range(4)  # ggml_backend_dev_type


class _Props(ctypes.Structure):
    """ggml_backend_dev_props"""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("description", ctypes.c_char_p),
        ("memory_free", ctypes.c_size_t),
        ("memory_total", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("device_id", ctypes.c_char_p),
        ("caps", ctypes.c_bool * 8),  # five in this version
    )


_dev_count = _call("ggml_backend_dev_count", ctypes.c_size_t)
_dev_get = _call("ggml_backend_dev_get", _Handle, ctypes.c_size_t)
_dev_name = _call("ggml_backend_dev_name", ctypes.c_char_p, _Handle)
_dev_description = _call("ggml_backend_dev_description", ctypes.c_char_p, _Handle)
_dev_type = _call("ggml_backend_dev_type", ctypes.c_int, _Handle)
_dev_props = _call("ggml_backend_dev_get_props", None, _Handle, ctypes.POINTER(_Props))
_dev_memory = _call("ggml_backend_dev_memory", None, _Handle, *[ctypes.POINTER(ctypes.c_size_t)] * 2)
_dev_reg = _call("ggml_backend_dev_backend_reg", _Handle, _Handle)
_dev_by_type = _call("ggml_backend_dev_by_type", _Handle, ctypes.c_int)
_reg_count = _call("ggml_backend_reg_count", ctypes.c_size_t)
_reg_get = _call("ggml_backend_reg_get", _Handle, ctypes.c_size_t)
_reg_name = _call("ggml_backend_reg_name", ctypes.c_char_p, _Handle)
_reg_by_name = _call("ggml_backend_reg_by_name", _Handle, ctypes.c_char_p)
_reg_proc = _call("ggml_backend_reg_get_proc_address", _Handle, _Handle, ctypes.c_char_p)
_reg_dev_count = _call("ggml_backend_reg_dev_count", ctypes.c_size_t, _Handle)
_reg_dev_get = _call("ggml_backend_reg_dev_get", _Handle, _Handle, ctypes.c_size_t)
_cpu_buffer = _call("ggml_backend_cpu_buffer_type", _Handle)

RPC = "RPC"


def registered() -> Iterator[int]:
    """Yield the handles of this build's devices, without those of workers."""
    return (_dev_get(index) for index in range(_dev_count()))


def name(device: int) -> str:
    return str(_dev_name(device).decode())


def description(device: int) -> str:
    return str(_dev_description(device).decode())


def kind(device: int) -> int:
    return int(_dev_type(device))


def backend(device: int) -> str:
    return str(_reg_name(_dev_reg(device)).decode())


def memory(device: int) -> tuple[int, int]:
    """Free and total bytes, as the backend reports them."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    _dev_memory(device, free, total)
    return free.value, total.value


def hardware_id(device: int) -> str:
    """An id such as a PCI address, the same in every backend that sees the device; empty if not known."""
    props = _Props()
    _dev_props(device, props)
    return props.device_id.decode() if props.device_id else ""


def backends() -> tuple[str, ...]:
    """Names of the backends in this build, such as "CUDA", "RPC", "CPU"."""
    return tuple(_reg_name(_reg_get(index)).decode() for index in range(_reg_count()))


def cpu_device() -> int:
    return int(_dev_by_type(CPU))


def cpu_buffer_type() -> int:
    return int(_cpu_buffer())


def rpc_call(function: str, result: Any, *arguments: Any) -> Any:
    """A function of the RPC backend, ready to call; None if this build has none."""
    reg = _reg_by_name(RPC.encode())
    address = _reg_proc(reg, function.encode()) if reg else None
    return ctypes.CFUNCTYPE(result, *arguments)(address) if address else None


def worker_devices(endpoint: str) -> list[int]:
    """Handles of the devices of a reachable worker; empty if this build has no RPC.

    The process ends if the worker does not answer (app/engine/devices/workers.py checks first).
    """
    add = rpc_call("ggml_backend_rpc_add_server", _Handle, ctypes.c_char_p)
    reg = add(endpoint.encode()) if add else None
    return [_reg_dev_get(reg, index) for index in range(_reg_dev_count(reg))] if reg else []
