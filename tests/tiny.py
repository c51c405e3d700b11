"""Tiny real GGUF files with random weights, made in milliseconds, loaded by the real llama.cpp."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONTROL = ["<|end|>", "<|im_start|>", "<|im_end|>"]


@dataclass(frozen=True)
class Tiny:
    """What to make. Weights depend on the seed; `scale` sharpens the distributions."""

    seed: int = 0
    n_layers: int = 2
    n_embd: int = 64
    n_heads: int = 4
    n_ff: int = 96
    n_ctx: int = 512
    scale: float = 1.0
    noise_seed: int = 0  # with `noise`: a model near the one of `seed`, as a draft is
    noise: float = 0.0
    letters: str = ""  # only these characters instead of all 256 bytes
    padding: int = 0  # unused tokens at the end of the vocabulary
    name: str = "tiny"
    architecture: str = "llama"
    template: str = CHAT_TEMPLATE
    vocabulary: bool = True


def byte_alphabet() -> list[str]:
    """GPT-2's printable spelling of the 256 bytes, by byte value."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelled = {}
    extra = 0
    for byte in range(256):
        if byte in printable:
            spelled[byte] = chr(byte)
        else:
            spelled[byte] = chr(256 + extra)
            extra += 1
    return [spelled[byte] for byte in range(256)]


def tokens_of(tiny: Tiny) -> tuple[list[str], list[int]]:
    """Token texts and their GGUF types."""
    texts = list(tiny.letters) if tiny.letters else byte_alphabet()
    kinds = [gguf.TokenType.NORMAL] * len(texts)
    texts += CONTROL
    kinds += [gguf.TokenType.CONTROL] * len(CONTROL)
    texts += [f"<pad{i}>" for i in range(tiny.padding)]
    kinds += [gguf.TokenType.UNUSED] * tiny.padding
    return texts, [int(kind) for kind in kinds]


def write_tiny(path: Path, tiny: Tiny) -> Path:
    """Write the file and return its path."""
    writer = gguf.GGUFWriter(path, tiny.architecture)
    writer.add_name(tiny.name)
    writer.add_context_length(tiny.n_ctx)
    writer.add_embedding_length(tiny.n_embd)
    writer.add_block_count(tiny.n_layers)
    writer.add_feed_forward_length(tiny.n_ff)
    writer.add_head_count(tiny.n_heads)
    writer.add_head_count_kv(tiny.n_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(tiny.n_embd // tiny.n_heads)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    texts, kinds = tokens_of(tiny)
    if tiny.vocabulary:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(texts)
        writer.add_token_types(kinds)
        writer.add_token_merges([f"{texts[0]} {texts[1]}"] if tiny.letters else ["t h"])
        writer.add_eos_token_id(texts.index("<|end|>"))
        writer.add_eot_token_id(texts.index("<|im_end|>"))
        writer.add_bos_token_id(texts.index("<|im_start|>"))
        writer.add_add_bos_token(False)
        if tiny.template:
            writer.add_chat_template(tiny.template)
    else:
        writer.add_tokenizer_model("none")
        writer.add_vocab_size(len(texts))
    for name, weight in _weights(tiny, len(texts)).items():
        writer.add_tensor(name, weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _weights(tiny: Tiny, n_vocab: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(tiny.seed)
    nearby = np.random.default_rng(tiny.noise_seed)

    def normal(*shape: int) -> np.ndarray:
        exact = random.standard_normal(shape)
        if tiny.noise:
            exact = exact + tiny.noise * nearby.standard_normal(shape)
        return (exact / np.sqrt(shape[-1])).astype(np.float32)

    d, ff = tiny.n_embd, tiny.n_ff
    weights = {"token_embd.weight": normal(n_vocab, d) * np.float32(np.sqrt(d))}
    for layer in range(tiny.n_layers):
        block = f"blk.{layer}."
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weights[f"{block}{name}.weight"] = normal(d, d)
        weights[f"{block}ffn_gate.weight"] = normal(ff, d)
        weights[f"{block}ffn_up.weight"] = normal(ff, d)
        weights[f"{block}ffn_down.weight"] = normal(d, ff)
        weights[f"{block}attn_norm.weight"] = np.ones(d, np.float32)
        weights[f"{block}ffn_norm.weight"] = np.ones(d, np.float32)
    weights["output_norm.weight"] = np.ones(d, np.float32)
    weights["output.weight"] = normal(n_vocab, d) * np.float32(3 * tiny.scale)
    return weights
