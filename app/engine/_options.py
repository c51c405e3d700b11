"""Requests to an engine: how to load a model, how to draw tokens, what to generate."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from app.engine.params import param
from app.engine.templates.options import TemplateOptions

CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
"""llama.cpp's number formats of a KV cache."""
UNQUANTISED = ("f32", "f16", "bf16")
"""The formats that need no flash attention for the values."""
DEFAULT_CTX = 8192
"""The largest context in tokens that is chosen by default."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn from the target. The order is llama.cpp's: penalties, DRY, top-n-sigma,
    top-k, typical-p, top-p, min-p, XTC, temperature.

    temperature: 0 always takes the most probable token; higher is more varied. Usually 0 to 1: the higher,
        the fewer drafted tokens are accepted.
    top_k: Keep only the K most probable tokens. 0 keeps all. Usually 20 to 100: fewer make odd tokens rarer,
        and answers more alike.
    top_p: Keep the most probable tokens until their probabilities add up to P. 1 keeps all. Usually 0.8 to
        0.95: lower is safer and less varied.
    min_p: Drop tokens less probable than this share of the best one. 0 keeps all. Usually 0.01 to 0.1: higher
        is safer and less varied.
    repeat_penalty: Make recent tokens less likely: their logits are divided by this. 1 is off. Usually 1 to
        1.2: higher also suppresses correct repetitions, as in code.
    repeat_last_n: How many of the latest tokens the penalties count. -1 is the whole context. Usually 64 to
        512: more prevents repetitions further apart.
    frequency_penalty: Lower a recent token's logit by this for every time it was used. 0 is off. Usually 0 to
        0.5: higher keeps words from recurring, even necessary ones.
    presence_penalty: Lower the logit of every recent token by this, however often it was used. 0 is off.
        Usually 0 to 0.5: higher leads to new subjects, but away from the question.
    dry_multiplier: Lower the logit of a token that continues a repetition by this (DRY). 0 is off. Usually
        0.5 to 1: higher ends loops sooner, but breaks quotations.
    dry_base: Multiply the DRY penalty by this for every further token of the repetition. Usually 1.5 to 2:
        higher stops long repetitions sooner.
    dry_allowed_length: Leave repetitions of fewer tokens than this alone. Usually 2 to 4: lower penalises
        common phrases too.
    dry_penalty_last_n: How many of the latest tokens DRY compares. -1 is the whole context. Usually 64 to
        2,048: more finds repetitions further apart.
    dry_sequence_breaker: Texts that end a repetition, separated by spaces: \\n is a line break, \\x20 a
        space.
    top_n_sigma: Keep logits within this many standard deviations of the largest. 0 keeps all. Usually 1 to 2:
        lower is safer and less varied.
    typical_p: Keep the tokens whose surprise is nearest to the mean, until their probabilities add up to P. 1
        keeps all. Usually 0.9 to 1: lower drops very likely tokens and very unlikely ones.
    xtc_probability: How often XTC drops the most probable tokens, so that less usual ones are chosen. Needs a
        temperature. 0 is off. Usually 0.1 to 0.5: higher is more surprising, and fewer drafted tokens are
        accepted.
    xtc_threshold: XTC drops all tokens above this probability except the least probable of them. Usually 0.05
        to 0.2: lower drops more often; above 0.5 none is dropped.
    seed: The same seed repeats the same draws. -1 takes a new one each time.
    """

    temperature: float = param(0.0, low=0, high=10)
    top_k: int = param(0, low=0, high=1_000_000)
    top_p: float = param(1.0, low=0, high=1)
    min_p: float = param(0.0, low=0, high=1)
    repeat_penalty: float = param(1.0, low=0.01, high=10)
    repeat_last_n: int = param(64, low=-1)
    frequency_penalty: float = param(0.0, low=-2, high=2)
    presence_penalty: float = param(0.0, low=-2, high=2)
    dry_multiplier: float = param(0.0, low=0, high=100)
    dry_base: float = param(1.75, low=1, high=100)
    dry_allowed_length: int = param(2, low=0)
    dry_penalty_last_n: int = param(64, low=-1)
    dry_sequence_breaker: str = param(r'\n : " *', words=True)
    top_n_sigma: float = param(0.0, low=0, high=100)
    typical_p: float = param(1.0, low=0, high=1)
    xtc_probability: float = param(0.0, low=0, high=1)
    xtc_threshold: float = param(0.1, low=0, high=1)
    seed: int = param(-1, low=-1, high=2**63 - 1)


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message of a chat; role is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """What to generate. Give `prompt` (raw completion), `messages` (chat template) or `prompt_ids`."""

    prompt: str | None = None
    messages: tuple[Message, ...] = ()
    prompt_ids: tuple[int, ...] = ()
    """A raw prompt in the target's tokens, unchanged: no BOS is put before them."""
    suffix: str | None = None
    """The text after the gap that the answer fills; `prompt` is before it. None if there is no gap."""
    strategy: str = "none"
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    cold: bool = False  # empty both caches and all drafter state first
    filler: str = ""
    """A document that fills the context: its first `depth` tokens come before the question."""
    depth: int = 0
    template_options: TemplateOptions = field(default_factory=dict, hash=False)
    """Options for the chat template. Those that it does not read have no effect."""
    continues: tuple[int, ...] = ()
    """Tokens that the answer already has and is continued from. `max_tokens` counts them; rounds are
    numbered from 0 again, positions and the text continue."""
    repeat: int = 0
    """The repeat of a measurement: a synthetic strategy plants different errors in each."""


def split_list(text: str) -> tuple[str, ...]:
    """The words of a comma-separated list, each once."""
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a model file is loaded. Names are llama.cpp's.

    ctx_size: Context size in tokens. 0 is the model's own, at most 8,192.
    threads: Threads for single-token passes. 0 is one fewer than the cores, and fewer for a small file.
    n_gpu_layers: Layers kept on the GPU, if there is one. -1 is all, 0 is none.
    repack: Rearrange weights for the CPU's fastest kernels. Off is slower, but safe if those kernels crash.
    swa_full: Keep the whole KV cache of sliding-window layers. Off takes less memory, but edited chats are
        read again.
    rpc: Other machines that compute layers, as HOST:PORT, separated by commas. Each runs draftscope worker.
    device: Devices that the layers run on, separated by commas, such as CUDA0,RPC0. Empty is all of them.
    split_mode: With several devices: none uses one, layer gives each whole layers, row a part of every layer.
    tensor_split: Shares of the devices in their order, such as 3,1. Empty divides in proportion to their free
        memory.
    n_cpu_moe: Keep the expert weights of the first N layers in main memory.
    load_mode: How the file is read: mmap maps it, mlock keeps it in memory, dio bypasses the system's cache.
    """

    path: str
    ctx_size: int = param(0, low=0, high=16_777_216)
    threads: int = param(0, low=0, high=1024)
    threads_batch: int = param(0, "Threads for prompt passes. 0 is the same number.", low=0, high=1024)
    batch_size: int = param(2048, "Most tokens per call to llama.cpp.", low=1, high=1_048_576)
    ubatch_size: int = param(512, "Most tokens per pass.", low=1, high=1_048_576)
    n_gpu_layers: int = param(-1, low=-1, high=100_000)
    cache_type_k: str = param("f16", "Number format of the cached keys.", choices=CACHE_TYPES)
    cache_type_v: str = param("f16", "Number format of the cached values.", choices=CACHE_TYPES)
    flash_attn: str = param("auto", "Flash attention.", choices=("auto", "on", "off"))
    repack: bool = param(True)
    swa_full: bool = param(True)
    rpc: str = param("")
    device: str = param("")
    split_mode: str = param("layer", choices=("none", "layer", "row"))
    tensor_split: str = param("")
    main_gpu: int = param(0, "The device in use with split mode none, counted from 0.", low=0, high=1024)
    kv_offload: bool = param(True, "Keep the KV cache on the devices of its layers. Main memory is slower.")
    cpu_moe: bool = param(False, "Keep the expert weights of all layers in main memory.")
    n_cpu_moe: int = param(0, low=0, high=1024)
    load_mode: str = param("auto", choices=("auto", "none", "mmap", "mlock", "mmap+mlock", "dio"))
    mtp: bool = param(True, "Load the file's MTP head, if it has one, for draft-mtp.")

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The addresses in `rpc`, each once."""
        return split_list(self.rpc)


LIKE_TARGET = (
    "ctx_size", "threads", "threads_batch", "batch_size", "ubatch_size", "flash_attn", "repack",
    "rpc", "split_mode", "tensor_split", "main_gpu", "kv_offload", "load_mode", "mtp",
)  # fmt: skip
"""A draft's options that default to the target's, as in llama.cpp, which has no draft option for most of
them. They include the context size: the draft reads the same text."""
