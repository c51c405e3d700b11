"""`draftscope devices` and `draftscope worker`: devices that can hold layers, here and elsewhere."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from app.base.numbers import file_size
from app.cli.answer.options import DRAFT, TARGET, add_pair_names, chosen_pair, local_pair
from app.cli.terminal.arguments import Parser, UsageError, add_options
from app.cli.terminal.console import drop, hand_over, put, say, table
from app.cli.terminal.interrupt import INTERRUPTED, Interrupt, run_interruptible
from app.engine.devices.memory import SOURCE_FOLDER, ModelMemory, PairMemory, gpu_backends, other_builds
from app.engine.devices.workers import DEFAULT_PORT, Endpoint, WorkerError
from app.engine.errors import UserError
from app.engine.process import messages
from app.engine.process.host import ProcessHome
from app.engine.types import ModelOptions, split_list

E = TypeVar("E", bound=messages.Event)

PROG = "draftscope devices"
_MEMORY = ("FREE", "TOTAL")
_WAIT = 0.1  # seconds between two checks for Ctrl+C
_DESCRIPTION = """\
List the devices that can run layers, with their memory; with --rpc, include those of workers. With --target,
show how much memory a pair would take on each, without loading it; with --fit, how many layers fit."""
_OPTIONS = """
--fit  Find how many layers fit on devices, the target's first, and print the options for it
--json  Print JSON instead of tables
"""


def devices(argv: list[str]) -> int:
    """List and print; returns the exit code. Raises UserError."""
    arguments = _parser().parse_args(argv)
    pair = None
    if arguments.target is not None:
        pair = chosen_pair(arguments)
    elif arguments.draft is not None or arguments.fit:
        raise UsageError("--draft and --fit need a target.", "Give one with --target.")
    rpc = TARGET.given(arguments).get("rpc", "")
    return run_interruptible(lambda interrupt: _print(rpc, pair, arguments, interrupt))


def _parser() -> Parser:
    parser = Parser(PROG, _DESCRIPTION, f"{PROG} [--target MODEL [--draft MODEL] [--fit]] [options]")
    add_pair_names(
        parser,
        "The model whose memory is shown: a file, or a name on the Hub (owner/name[:QUANTISATION] or "
        "owner/name/file.gguf), downloaded if needed",
        "The draft model for it, named in the same way",
    )
    add_options(parser, _OPTIONS)
    TARGET.add_to(parser.add_argument_group("loading the target"))
    DRAFT.add_to(parser.add_argument_group("loading the draft"))
    return parser


def _print(
    rpc: str,
    pair: tuple[ModelOptions, ModelOptions | None] | None,
    arguments: argparse.Namespace,
    interrupt: Interrupt,
) -> int:
    if pair is not None:
        pair = local_pair(*pair, interrupt)
    # In a separate process: a file, a driver or a worker that crashes it ends this command with one line.
    home = ProcessHome()
    try:
        listed = _ask(home, messages.ListDevices(0, rpc), messages.DevicesListed, interrupt)
        measured = None
        if pair is not None and listed is not None:
            measured = _ask(home, messages.Measure(1, *pair, arguments.fit), messages.Measured, interrupt)
    finally:
        home.close()
    if listed is None or (pair is not None and measured is None):
        return INTERRUPTED
    if arguments.json:
        hand_over(_json(listed, measured))
    else:
        put(_lines(listed, measured, arguments.fit))
    if arguments.fit and measured is not None and measured.memory.shortages:
        raise UserError(
            "No number of layers fits.", "Choose a smaller context (--ctx-size), cache type or model."
        )
    return 0


def _ask(home: ProcessHome, command: messages.AnyCommand, kind: type[E], interrupt: Interrupt) -> E | None:
    """The answer to a command; None if Ctrl+C came first. Raises UserError."""
    home.send(command)
    while not interrupt.pressed:
        event = home.receive(_WAIT)
        if isinstance(event, messages.Failed):
            raise UserError(event.message, event.hint)
        if isinstance(event, kind):
            return event
    return None


def _lines(listed: messages.DevicesListed, measured: messages.Measured | None, fit: bool) -> Iterable[str]:
    rows = []
    for device in listed.devices:
        memory = (file_size(device.free), file_size(device.total)) if device.total else ("?", "?")
        rows.append((device.name, device.kind, device.backend, *memory, device.description))
    yield from table(("DEVICE", "KIND", "BACKEND", *_MEMORY, "DESCRIPTION"), rows, right=_MEMORY)
    yield ""
    gpus = ", ".join(gpu_backends(listed.backends))
    yield f"This build has the GPU backend {gpus}." if gpus else "This build computes on the CPU only."
    if others := other_builds(listed.backends):
        yield f"To build another, in {SOURCE_FOLDER}: {', '.join(others.values())}."
    if measured is None:
        return
    yield ""
    yield from _memory_lines(measured.memory)
    if fit and not measured.memory.shortages:
        options = f"--n-gpu-layers {measured.target.n_gpu_layers}"
        if measured.draft is not None:
            options += f" --n-gpu-layers-draft {measured.draft.n_gpu_layers}"
        yield f"Fits: {options}"


def _memory_lines(memory: PairMemory) -> Iterable[str]:
    rows = []
    models: list[tuple[str, ModelMemory | None]] = [("target", memory.target), ("draft", memory.draft)]
    for role, model in models:
        for device in model.memory if model is not None else ():
            sizes = (device.weights, device.context, device.compute, device.total)
            rows.append((role, device.device, str(device.layers), *map(file_size, sizes)))
    numbers = ("LAYERS", "WEIGHTS", "CONTEXT", "COMPUTE", "TOTAL")
    yield from table(("MODEL", "DEVICE", *numbers), rows, right=numbers)
    for role, model in models:
        if model is not None:
            yield (
                f"The {role} has {model.n_gpu_layers} of {model.most_layers} layers on devices besides the "
                f"CPU; its context is {model.n_ctx:,} tokens."
            )
    yield from (f"Does not fit: {shortage}." for shortage in memory.shortages)


def _json(listed: messages.DevicesListed, measured: messages.Measured | None) -> str:
    found: dict[str, Any] = {"devices": listed.devices, "backends": listed.backends}
    if measured is not None:
        found["target"], found["draft"] = measured.memory.target, measured.memory.draft
        found["shortages"] = measured.memory.shortages
        found["options"] = {"target": measured.target, "draft": measured.draft}
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()


WORKER = "draftscope worker"
_LOOPBACK = "127.0.0.1"
_OF_WORKER = """\
Lend this machine's devices to another machine, which puts layers on them with --rpc HOST:PORT. Serves one
program at a time, until Ctrl+C.

The protocol has neither encryption nor a password. Anyone who reaches the port can use this machine's memory,
and may be able to run code on it. Without --host the worker can be reached from this machine only. Give
--host only in a network where you trust everyone, or use a tunnel (ssh -L)."""
_LENT = f"""
--host H  Address to listen on (default {_LOOPBACK})
--port P  Port to listen on (default {DEFAULT_PORT})
--device D  Devices to serve (default: the GPUs, else the CPU)
--threads N  CPU threads. 0 is one fewer than the cores (default 0)
"""


def worker(argv: list[str]) -> int:
    """Serve until Ctrl+C; returns the exit code. Raises UserError."""
    parser = Parser(WORKER, _OF_WORKER, f"{WORKER} [--host H] [--port P] [--device D[,...]] [--threads N]")
    port = None, str(DEFAULT_PORT)
    add_options(parser, _LENT, host=(None, _LOOPBACK), port=port, device=(None, ""), threads=(int, 0))
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
    from app.engine.native.devices import serve, worker_devices

    chosen = worker_devices(names)
    if not endpoint.is_loopback:
        say(
            f"{WORKER}: WARNING: {endpoint} can be reached from other machines, and the protocol has no "
            "protection of its own: neither encryption nor a password. Do this only where you trust everyone "
            "in the network, or use a tunnel."
        )

    drop(sys.stdout)  # llama.cpp's server reports every connection there

    def ready() -> None:
        for device, _handle in chosen:
            free = f"{file_size(device.free)} of {file_size(device.total)} free"
            say(f"{WORKER}: {device.name} ({device.description}, {free}) at {endpoint}")

    serve(endpoint, [handle for _device, handle in chosen], threads, lambda: interrupt.pressed, ready)
    return INTERRUPTED
