"""`draftscope worker`: lends this machine's devices to another machine."""

from __future__ import annotations

import sys

from app.base.numbers import file_size
from app.cli.terminal.arguments import Parser, UsageError
from app.cli.terminal.console import drop, say
from app.cli.terminal.interrupt import INTERRUPTED, Interrupt, run_interruptible
from app.engine.devices.workers import DEFAULT_PORT, Endpoint, WorkerError
from app.engine.explain.llama_flags import other_names
from app.engine.types import split_list

PROG = "draftscope worker"
_LOOPBACK = "127.0.0.1"
_DESCRIPTION = """\
Lend this machine's devices to another machine, which puts layers on them with --rpc HOST:PORT. Serves one
program at a time, until Ctrl+C.

The protocol has no protection of its own, neither encryption nor a password: anyone who reaches the port can
use this machine's memory and may be able to run code on it. Without --host the worker can be reached from
this machine only. Give --host only in a network where you trust everyone, or use a tunnel (ssh -L)."""


def worker(argv: list[str]) -> int:
    """Serve until Ctrl+C; returns the exit code. Raises UserError."""
    parser = Parser(PROG, _DESCRIPTION, f"{PROG} [--host H] [--port P] [--device D[,...]] [--threads N]")
    parser.add_argument(
        "--host", metavar="H", default=_LOOPBACK, help=f"Address to listen on (default {_LOOPBACK})"
    )
    parser.add_argument(
        "--port", metavar="P", default=str(DEFAULT_PORT), help=f"Port to listen on (default {DEFAULT_PORT})"
    )
    parser.add_argument(
        "--device",
        *other_names("--device"),
        metavar="D",
        default="",
        help="Devices to serve (default: the GPUs, else the CPU)",
    )
    parser.add_argument(
        "--threads",
        *other_names("--threads"),
        metavar="N",
        type=int,
        default=0,
        help="CPU threads. 0 is one fewer than the cores (default 0)",
    )
    arguments = parser.parse_args(argv)
    if not 0 <= arguments.threads <= 1024:
        parser.error(
            f"argument --threads: cannot be {arguments.threads}. Allowed: a whole number from 0 to 1,024."
        )
    try:
        endpoint = Endpoint.parse(f"{arguments.host}:{arguments.port}")
    except WorkerError as error:
        raise UsageError(error.message, error.hint) from None
    names = split_list(arguments.device)
    return run_interruptible(lambda interrupt: _serve(endpoint, names, arguments.threads, interrupt))


def _serve(endpoint: Endpoint, names: tuple[str, ...], threads: int, interrupt: Interrupt) -> int:
    from app.engine.native.devices.worker import serve, worker_devices

    chosen = worker_devices(names)
    if not endpoint.is_loopback:
        say(
            f"{PROG}: WARNING: {endpoint} can be reached from other machines, and the protocol has no "
            "protection of its own: neither encryption nor a password. Do this only where you trust everyone "
            "in the network, or use a tunnel."
        )

    drop(sys.stdout)  # llama.cpp's server reports every connection there

    def ready() -> None:
        for device, _handle in chosen:
            free = f"{file_size(device.free)} of {file_size(device.total)} free"
            say(f"{PROG}: {device.name} ({device.description}, {free}) at {endpoint}")

    serve(endpoint, [handle for _device, handle in chosen], threads, lambda: interrupt.pressed, ready)
    return INTERRUPTED
