"""The target in PyTorch, for many dialogues at once: 16-bit weights from its own file, a 32-bit residual
stream."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import torch
from torch import Tensor
from torch.nn import functional

from model import read_weights, turned
from words import LAYERS

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]


class Teacher:
    """A model of llama's architecture. Its features differ from llama.cpp's by about 1 %."""

    def __init__(self, path: Path, device: str) -> None:
        fields = gguf.GGUFReader(path).fields

        def value(key: str) -> Any:
            return fields[f"llama.{key}"].contents()

        self.heads, self.keys = int(value("attention.head_count")), int(value("attention.head_count_kv"))
        self.eps, self.base = value("attention.layer_norm_rms_epsilon"), value("rope.freq_base")
        weights = {name: each.to(device) for name, each in read_weights(path, ("",)).items()}

        def across(block: int, *names: str) -> Tensor:
            """Matrices concatenated for `row @ matrix`."""
            return (
                torch.cat([weights[f"blk.{block}.{name}.weight"] for name in names]).T.bfloat16().contiguous()
            )

        self.blocks = [
            {
                "attn_norm": weights[f"blk.{i}.attn_norm.weight"],
                "attn": across(i, "attn_q", "attn_k", "attn_v"),
                "attn_output": across(i, "attn_output"),
                "ffn_norm": weights[f"blk.{i}.ffn_norm.weight"],
                "ffn": across(i, "ffn_gate", "ffn_up"),
                "ffn_down": across(i, "ffn_down"),
            }
            for i in range(int(value("block_count")))
        ]
        self.output_norm = weights["output_norm.weight"]
        self.embeddings = weights["token_embd.weight"]
        self.output = self.embeddings.bfloat16()
        self.width = self.embeddings.shape[1]
        self.head_width = self.width // self.heads

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(x, (self.width,), weight, self.eps).bfloat16()

    def run(self, ids: Tensor, places: Tensor, attend: Attend) -> tuple[Tensor, Tensor]:
        """Concatenated layer inputs and normed last rows of `ids` (batch, rows), both bfloat16.

        `attend(block, query, key, value)` mixes the values: (batch, rows, heads or keys, head width).
        """
        x = self.embeddings[ids]
        found = []
        for i, block in enumerate(self.blocks):
            if i in LAYERS:
                found.append(x.bfloat16())
            made = (self._norm(x, block["attn_norm"]) @ block["attn"]).unflatten(-1, (-1, self.head_width))
            turn, value = made.split((self.heads + self.keys, self.keys), 2)
            query, key = turned(turn, places, self.base).bfloat16().split((self.heads, self.keys), 2)
            mixed = attend(i, query, key, value)
            x = x + mixed.reshape(*ids.shape, self.width) @ block["attn_output"]
            gate, up = (self._norm(x, block["ffn_norm"]) @ block["ffn"]).chunk(2, -1)
            x = x + (functional.silu(gate) * up) @ block["ffn_down"]
        return torch.cat(found, -1), self._norm(x, self.output_norm)

    @torch.no_grad()
    def read(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """`run` over whole dialogues (batch, places)."""

        def attend(_: int, *parts: Tensor) -> Tensor:
            query, key, value = (part.transpose(1, 2) for part in parts)
            mixed = functional.scaled_dot_product_attention(
                query, key, value, is_causal=True, enable_gqa=True
            )
            return mixed.transpose(1, 2)

        return self.run(ids, torch.arange(ids.shape[1], device=ids.device)[None], attend)
