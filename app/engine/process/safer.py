"""Explanations for an engine that died or ran out of memory, and the next safer way to load its pair."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace

from app.engine.devices.memory import ModelMemory, offload_devices
from app.engine.devices.placement import NO_DEVICE, without_worker_devices
from app.engine.process.messages import Failed, Load, Measured, Offer
from app.engine.types import UNQUANTISED, ModelOptions

_FAULTS = {getattr(signal, name, None) for name in ("SIGSEGV", "SIGILL", "SIGBUS", "SIGFPE")} - {None}
_ILLEGAL = getattr(signal, "SIGILL", None)
_DIVISION = getattr(signal, "SIGFPE", None)
_NO_ROOM = re.compile(r"mem_buffer|insufficient memory|bad_alloc|out of memory")  # llama.cpp got none
_DRIVER_OF = re.compile(r"CUDA|ROCm|HIP|Vulkan|vk::|Metal|SYCL|RPC", re.IGNORECASE)
_DEVICE = re.compile(rf"{_DRIVER_OF.pattern}|device|memory|alloc", re.IGNORECASE)
_KILLED = getattr(signal, "SIGKILL", None)
_SENT = {getattr(signal, name, None) for name in ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT")} - {
    None
}
_LEAST_CTX, _SMALL_CTX = 512, 2048
_KEPT = "Everything so far is kept, and the engine starts again by itself."
_DRIVER = "Layers are on devices: if it stops again, their driver is the likely cause."


@dataclass(frozen=True, slots=True)
class Death:
    """The known facts about an engine process that ended."""

    code: int | None  # as multiprocessing gives it: the negative number of a signal
    words: str  # the code in words
    load: Load | None = None  # the pair that was loaded or being loaded
    n_ctx: int = 0  # tokens of the target's context; 0 if not known
    file: str = ""  # the name of the file that was being loaded
    testing: bool = False  # in the self-test after loading it
    on_devices: bool | None = None  # whether layers are on devices besides the CPU; None: not known yet
    last_words: str = ""  # llama.cpp's, if one of its checks failed
    lost: tuple[str, ...] = ()  # workers that no longer answer

    @property
    def is_fault(self) -> bool:
        return self.code is not None and -self.code in _FAULTS

    @property
    def is_sent(self) -> bool:
        """Whether only other processes or the system send this signal."""
        return self.code is not None and -self.code in _SENT

    @property
    def is_device_fault(self) -> bool:
        """Whether a device's driver is the likely cause: the device computes most of a pass. (Illegal
        instructions come from CPU kernels.)"""
        return self.is_fault and bool(self.on_devices) and not self.is_illegal

    @property
    def is_illegal(self) -> bool:
        return self.code is not None and -self.code == _ILLEGAL

    @property
    def ran_out(self) -> bool:
        """Whether llama.cpp ran out of main memory, which some places check by an assertion."""
        return bool(_NO_ROOM.search(self.last_words)) and not _DRIVER_OF.search(self.last_words)

    @property
    def is_refusal(self) -> bool:
        """Whether the numbers in a file are to blame, not the machine: a check of llama.cpp refused them, or
        a divisor is zero."""
        if self.last_words:
            return not _DEVICE.search(self.last_words)
        return self.code is not None and -self.code == _DIVISION

    @property
    def reason(self) -> str:
        """The reason in words: llama.cpp's message (without its build folder), or how the process ended."""
        return re.sub(r"^\S*[/\\]", "", self.last_words) or self.words


def explain_death(death: Death) -> Failed:
    """Explain why the engine ended, as far as known, and what may help."""
    load = death.load
    if death.lost:
        gone = " and ".join(death.lost)
        return _gone(
            f"The worker at {gone} is gone, and the engine stopped with it ({death.words}).",
            "Everything so far is kept. Start the worker again, or load without it.",
            without_workers(load, death.lost) if load else None,
        )
    if death.ran_out:
        return _gone(
            f"Main memory ran out, and the engine stopped ({death.reason}).",
            f"{_KEPT} Close other programs, or use a smaller context or file.",
            smaller_context(load, death.n_ctx) if load else None,
        )
    if death.file and death.is_refusal:
        return _gone(
            f"{death.file} contains values that llama.cpp cannot compute with ({death.reason}).",
            "The file is damaged or was converted wrongly. Download it again, or choose a different model.",
        )
    if death.is_sent:
        during = f" while {'testing' if death.testing else 'reading'} {death.file}" if death.file else ""
        short = ", or the system because memory was short" if -(death.code or 0) == _KILLED else ""
        ended = f"The engine was ended{during} ({death.reason})."
        return _gone(ended, f"Another program did that{short}. {_KEPT}", _next(death))
    if death.testing:
        return _faulty_test(death)
    message = f"The engine stopped unexpectedly ({death.reason})."
    hint = f"{_KEPT} {_DRIVER}" if death.is_device_fault else _KEPT
    return _gone(message, hint, _next(death))


def _gone(message: str, hint: str, offer: Offer | None = None) -> Failed:
    return Failed(-1, message, hint, expected=False, gone=True, offer=offer)


def _faulty_test(death: Death) -> Failed:
    """Explain a process that ended in its first passes without a message from llama.cpp."""
    offer = _after_fault(death)
    way_out = f"{offer.words}, or build llama.cpp again." if offer else "Build llama.cpp again."
    if death.is_illegal:
        return _gone(
            f"The kernels of this build of llama.cpp fault on this machine ({death.reason}).",
            f"A test after loading found it; nothing is lost. {way_out}",
            offer,
        )
    at_fault = (
        "a device's driver or this build's kernels" if death.is_device_fault else "this build's kernels"
    )
    return _gone(
        f"The engine stopped while testing {death.file} ({death.reason}).",
        "Try again. If it stops there again, the file may be damaged: try a different one. If no file works, "
        f"the likely cause is {at_fault}: {way_out}",
        offer,
    )


def _next(death: Death) -> Offer | None:
    if death.load is None:
        return None
    if death.is_sent:  # by the system, when main memory ran out
        return smaller_context(death.load, death.n_ctx) if -(death.code or 0) == _KILLED else None
    if death.is_fault:
        return _after_fault(death)
    return on_the_cpu(death.load, death.on_devices) or safe_kernels(death.load)


def _after_fault(death: Death) -> Offer | None:
    load = death.load
    if load is None:
        return None
    if death.is_device_fault:
        return without_flash_attention(load) or on_the_cpu(load) or safe_kernels(load)
    return safe_kernels(load) or on_the_cpu(load, death.on_devices)


def without_workers(load: Load, lost: tuple[str, ...]) -> Offer | None:
    """The pair without the workers in `lost`. Names and shares of workers' devices are dropped too, because
    their numbers change."""

    def change(options: ModelOptions) -> ModelOptions:
        rest = [endpoint for endpoint in options.endpoints if endpoint not in lost]
        device = without_worker_devices(options.device)
        return replace(options, rpc=",".join(rest), device=device, tensor_split="", main_gpu=0)

    return _offer(load, f"Load without the worker at {' and '.join(lost)}", change)


def safe_kernels(load: Load) -> Offer | None:
    return _offer(load, "Load with safe kernels", lambda options: replace(options, repack=False))


def without_flash_attention(load: Load) -> Offer | None:
    """The pair without flash attention, for models that may be on devices and do not need it. (A quantised V
    cache needs it.)"""

    def change(options: ModelOptions) -> ModelOptions:
        needed = options.n_gpu_layers == 0 or options.cache_type_v not in UNQUANTISED
        return options if needed else replace(options, flash_attn="off")

    return _offer(load, "Load without flash attention", change)


def on_the_cpu(load: Load, on_devices: bool | None = None) -> Offer | None:
    """The pair without any device. Removing only the layers is not enough: llama.cpp sends long batches of
    the CPU's layers to known devices. None if the pair is already on the CPU alone, because there is no
    device."""
    wanted = any(options.n_gpu_layers for options in (load.target, load.draft) if options is not None)
    if wanted and on_devices is False:
        return None
    return _offer(
        load, "Load on the CPU only", lambda options: replace(options, n_gpu_layers=0, device=NO_DEVICE)
    )


def smaller_context(load: Load, n_ctx: int = 0) -> Offer | None:
    """The pair with half the context, but at least 512 tokens. `n_ctx` is the present context. If it is
    unknown (0) and no size was asked for, it is the file's, hardly ever below 2,048."""
    half = (n_ctx or load.target.ctx_size or _SMALL_CTX) // 2
    if half < _LEAST_CTX:
        return None
    draft = load.draft
    if draft is not None and draft.ctx_size:
        draft = replace(draft, ctx_size=min(draft.ctx_size, half))
    return Offer(f"Load with a context of {half:,} tokens", replace(load.target, ctx_size=half), draft)


def _smaller_draft_context(load: Load, n_ctx: int) -> Offer | None:
    """The pair with half the draft's context of `n_ctx` tokens, but at least 512."""
    half = n_ctx // 2
    if load.draft is None or half < _LEAST_CTX:
        return None
    words = f"Load with a context of {half:,} tokens for the draft"
    return Offer(words, load.target, replace(load.draft, ctx_size=half))


def less_memory(load: Load, fitting: Measured | None, of_draft: bool = False) -> Offer | None:
    """The pair with less memory: the layers that should fit. If all should have fitted: half of the target's.
    If no layers are on devices: half the context, or the draft's if only that found no room (`of_draft`)."""
    if fitting is None:
        return on_the_cpu(load) or smaller_context(load)
    target, draft = fitting.memory.target, fitting.memory.draft
    n_ctx = target.n_ctx
    smaller = _smaller_draft_context(load, draft.n_ctx) if of_draft and draft is not None else None
    if not offload_devices(fitting.memory.devices):
        return smaller or smaller_context(load, n_ctx)
    asked = _layers(load.target, target)
    if target.n_gpu_layers < asked:
        words = f"Load with {target.n_gpu_layers} of {target.most_layers} layers on devices"
        return Offer(words, fitting.target, fitting.draft)
    if load.draft is not None and draft is not None and draft.n_gpu_layers < _layers(load.draft, draft):
        words = f"Load with {draft.n_gpu_layers} of the draft's {draft.most_layers} layers on devices"
        return Offer(words, load.target, fitting.draft)
    if asked == 0:
        return smaller or smaller_context(load, n_ctx)
    words = f"Load with {asked // 2} of {target.most_layers} layers on devices"
    return Offer(words, replace(load.target, n_gpu_layers=asked // 2), load.draft)


def _layers(options: ModelOptions, model: ModelMemory) -> int:
    """The number of layers that the options ask for on devices."""
    return min(options.n_gpu_layers, model.most_layers) if options.n_gpu_layers >= 0 else model.most_layers


def _offer(load: Load, words: str, change: Callable[[ModelOptions], ModelOptions]) -> Offer | None:
    """The offer of a changed pair; None if nothing changes."""
    target, draft = change(load.target), load.draft and change(load.draft)
    return Offer(words, target, draft) if (target, draft) != (load.target, load.draft) else None
