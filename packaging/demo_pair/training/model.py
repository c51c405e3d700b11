"""A llama-architecture transformer in plain PyTorch.

The rotary embedding turns neighbouring pairs (0, 1), (2, 3), ..., which is what llama.cpp does for
`general.architecture = llama`; query and key weights are therefore exported without permutation.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

ROPE_BASE = 10_000.0
NORM_EPS = 1e-5
BRANCH = 1 / 16
"""What a block adds to the residual stream is scaled by this in training, and in the weights of the file.
At the rates of train.py a block's output grows to several hundred times the embeddings within a few dozen
steps, and later blocks would no longer see which token stands where."""
ADDING = ("attn_output.weight", "ffn_down.weight")
"""The matrices that do so."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of one model; the embedding is shared between input and output."""

    vocab: int
    width: int
    layers: int
    heads: int
    hidden: int

    @property
    def head_width(self) -> int:
        return self.width // self.heads


# A head width of 64 has fast attention kernels on every llama.cpp backend. Few wide layers train faster than
# many narrow ones and leave less to wait for between threads.
SHAPES = {
    "target": Shape(vocab=4096, width=768, layers=5, heads=12, hidden=1312),
    "draft": Shape(vocab=4096, width=128, layers=3, heads=2, hidden=384),
    "small-draft": Shape(vocab=4096, width=64, layers=2, heads=1, hidden=192),
}


def rope_angles(head_width: int) -> Tensor:
    """By how much each rotary pair turns from one position to the next (head_width / 2,)."""
    return ROPE_BASE ** (-torch.arange(0, head_width, 2).float() / head_width)


def rope_table(positions: int, head_width: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines, each (positions, head_width / 2)."""
    angles = torch.outer(torch.arange(positions).float(), rope_angles(head_width))
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the neighbouring pairs of `x` (batch, heads, positions, head_width)."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


def rounded(weight: Tensor) -> Tensor:
    """The weight as GGUF's Q4_0 keeps it: sixteen steps in every block of 32. Gradients pass unchanged."""
    blocks = weight.detach().view(-1, 32)
    furthest = blocks.gather(-1, blocks.abs().argmax(-1, keepdim=True))
    scale = furthest / -8
    inverse = torch.where(scale == 0, 0.0, 1 / scale)
    steps = (blocks * inverse + 8.5).floor().clamp(0, 15) - 8
    return weight + (steps * scale.half().float()).view_as(weight) - weight.detach()


class Norm(nn.Module):
    """Root-mean-square norm over the last axis."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, self.weight.shape, self.weight, NORM_EPS)


class Block(nn.Module):
    """Attention and gated feed-forward, each behind a norm and a residual.

    `rounding` runs the feed-forward half with its weights as they are stored.
    """

    rounding = False

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.attn_norm = Norm(shape.width)
        self.attn_q = nn.Linear(shape.width, shape.width, bias=False)
        self.attn_k = nn.Linear(shape.width, shape.width, bias=False)
        self.attn_v = nn.Linear(shape.width, shape.width, bias=False)
        self.attn_output = nn.Linear(shape.width, shape.width, bias=False)
        self.ffn_norm = Norm(shape.width)
        self.ffn_gate = nn.Linear(shape.width, shape.hidden, bias=False)
        self.ffn_up = nn.Linear(shape.width, shape.hidden, bias=False)
        self.ffn_down = nn.Linear(shape.hidden, shape.width, bias=False)

    @torch.no_grad()
    def silence(self) -> None:
        """Add nothing, until something is learned."""
        self.attn_output.weight.zero_()
        self.ffn_down.weight.zero_()

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """`x` and the result are (batch, positions, width)."""
        batch, positions, width = x.shape

        def split(y: Tensor) -> Tensor:
            return y.view(batch, positions, self.heads, -1).transpose(1, 2)

        normed = self.attn_norm(x)
        q = rotate(split(self.attn_q(normed)), cos, sin)
        k = rotate(split(self.attn_k(normed)), cos, sin)
        v = split(self.attn_v(normed))
        mixed = functional.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v, is_causal=True)
        x = x + BRANCH * self.attn_output(mixed.transpose(1, 2).reshape(batch, positions, width))
        normed = self.ffn_norm(x)
        gate, up, down = (
            rounded(layer.weight) if self.rounding else layer.weight
            for layer in (self.ffn_gate, self.ffn_up, self.ffn_down)
        )
        inner = functional.silu(functional.linear(normed, gate)) * functional.linear(normed, up)
        return x + BRANCH * functional.linear(inner, down)


class Llama(nn.Module):
    """Token ids in, logits out. Parameter names follow the tensor names of GGUF."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(shape.vocab, shape.width)
        self.blk = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.output_norm = Norm(shape.width)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def states(self, ids: Tensor) -> Tensor:
        """Normed last states (batch, positions, width) for `ids` (batch, positions)."""
        cos, sin = rope_table(ids.shape[1], self.shape.head_width)
        cos, sin = cos.to(ids.device), sin.to(ids.device)
        x = self.token_embd(ids)
        for block in self.blk:
            x = block(x, cos, sin)
        return self.output_norm(x)

    def logits(self, states: Tensor) -> Tensor:
        """Logits (..., vocab) for `states` (..., width)."""
        return functional.linear(states, self.token_embd.weight)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (batch, positions, vocab) for `ids` (batch, positions)."""
        return self.logits(self.states(ids))

    @property
    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())
