"""The head: one decoder block that reads a token's embedding and what the target computed before it.

At place P it gets token P+1 and the fused layer inputs of place P, and predicts token P+2. Its own output
replaces the next place's features, so it can be chained. Shapes and order are llama.cpp's (`eagle3`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import gguf
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

SHARPNESS = 1.1  # of the heads that look at the token itself: how much its own key stands out


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the head; the target's, but for the count of keys."""

    width: int
    heads: int
    keys: int
    head_width: int
    hidden: int
    vocab: int
    rope_base: float
    eps: float


def read_weights(path: Path, names: tuple[str, ...]) -> dict[str, Tensor]:
    """Tensors of a GGUF file whose names begin with one of `names`, as 32-bit."""
    found = {}
    for tensor in gguf.GGUFReader(path).tensors:
        if tensor.name.startswith(names):
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
            found[tensor.name] = torch.from_numpy(values.copy())
    return found


def read_shape(path: Path, vocab: int) -> Shape:
    """The head's shape for the target at `path`. Every attention head has its own keys."""
    fields = gguf.GGUFReader(path).fields

    def value(key: str) -> float:
        return fields[f"llama.{key}"].contents()

    width, heads = int(value("embedding_length")), int(value("attention.head_count"))
    return Shape(
        width,
        heads,
        heads,
        width // heads,
        int(value("feed_forward_length")),
        vocab,
        value("rope.freq_base"),
        value("attention.layer_norm_rms_epsilon"),
    )


def turned(x: Tensor, places: Tensor, base: float) -> Tensor:
    """Apply rotary embeddings for `places` (batch, rows) to `x` (batch, rows, heads, head width)."""
    half = x.shape[-1] // 2
    speeds = base ** -(torch.arange(half, device=x.device) / half)
    angle = (places[..., None].float() * speeds)[:, :, None]
    cos, sin = angle.cos(), angle.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class Head(nn.Module):
    """Its parameters have the names of the GGUF file's tensors, with dots as underscores."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        width, inner, keys = shape.width, shape.heads * shape.head_width, shape.keys * shape.head_width
        sizes = {
            "fc": (width, 3 * width),
            "attn_norm": (width,),
            "attn_norm_2": (width,),
            "attn_q": (inner, 2 * width),
            "attn_k": (keys, 2 * width),
            "attn_v": (keys, 2 * width),
            "attn_output": (width, inner),
            "ffn_norm": (width,),
            "ffn_gate": (shape.hidden, width),
            "ffn_up": (shape.hidden, width),
            "ffn_down": (width, shape.hidden),
            "output_norm": (width,),
            "output": (shape.vocab, width),
        }
        for name, size in sizes.items():
            self.register_parameter(name, nn.Parameter(torch.empty(size)))

    @torch.no_grad()
    def begin(self, target: Path, kept: Tensor) -> None:
        """Copy the target's last block and the embedding rows of the kept tokens.

        The third layer input is used unchanged. The last head of each group that shared its keys looks at the
        given token, which the last block never saw. It adds nothing until it has learnt something.
        """
        blocks = gguf.GGUFReader(target).fields["llama.block_count"].contents()
        last = f"blk.{blocks - 1}."
        weights = read_weights(target, (last, "blk.0.attn_norm.", "output_norm.", "token_embd."))
        s, width = self.shape, self.shape.width
        self.fc.zero_()[:, 2 * width :] = torch.eye(width)
        self.attn_norm.copy_(weights["blk.0.attn_norm.weight"])
        self.attn_norm_2.copy_(weights[last + "attn_norm.weight"])
        for name in ("attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"):
            getattr(self, name).copy_(weights[f"{last}{name}.weight"])
        shared = weights[last + "attn_k.weight"].shape[0] // s.head_width
        group = s.heads // shared
        for name in ("attn_q", "attn_k", "attn_v"):
            rows = weights[f"{last}{name}.weight"].view(-1, s.head_width, width)
            rows = rows if name == "attn_q" else rows.repeat_interleave(s.keys // shared, 0)
            getattr(self, name).zero_()[:, width:] = rows.reshape(-1, width)
        generator = torch.Generator().manual_seed(0)
        # Rows of unit length after the norm's weights: a token's own key stands out from all others.
        scale = self.attn_norm.square().mean().rsqrt()
        for head in range(group - 1, s.heads, group):
            rows = slice(head * s.head_width, (head + 1) * s.head_width)
            look = torch.linalg.qr(torch.randn(width, s.head_width, generator=generator)).Q.T * scale
            for name, factor in (("attn_q", SHARPNESS), ("attn_k", SHARPNESS), ("attn_v", 1.0)):
                getattr(self, name)[rows] = 0.0
                getattr(self, name)[rows, :width] = factor * look
            self.attn_output[:, rows] = 0.0
        self.output_norm.copy_(weights["output_norm.weight"])
        self.output.copy_(weights["token_embd.weight"][kept])

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(x.float(), (x.shape[-1],), weight, self.shape.eps)

    def fuse(self, features: Tensor) -> Tensor:
        return features @ self.fc.T

    def split(self, x: Tensor, matrix: Tensor, places: Tensor | None) -> Tensor:
        """Project x into heads (batch, heads, rows, head width), with rotary embeddings for `places`."""
        made = (x @ matrix.T).unflatten(-1, (-1, self.shape.head_width))
        if places is not None:
            made = turned(made, places, self.shape.rope_base)
        if made.shape[2] < self.shape.heads:
            made = made.repeat_interleave(self.shape.heads // made.shape[2], 2)
        return made.transpose(1, 2)

    def chain(self, given: Tensor, fused: Tensor, rows: Tensor, steps: int) -> list[Tensor]:
        """Normalised output rows (batch, chosen, width) of each chained step from the chosen places on.

        `given` (batch, places + steps, width): at P the embedding of the token that place P gets; step s gets
        the one at P+s. `fused` (batch, places, width). `rows` (batch, chosen): places.
        """
        places = fused.shape[1]
        spot = torch.arange(places, device=fused.device)[None]
        pair = torch.cat(
            (self.norm(given[:, :places], self.attn_norm), self.norm(fused, self.attn_norm_2)), -1
        )
        keys, values = self.split(pair, self.attn_k, spot), self.split(pair, self.attn_v, None)
        mask = torch.where(spot[:, None] <= rows[:, :, None], 0.0, -torch.inf)[:, None]
        pick = rows[..., None].expand(-1, -1, self.shape.width)
        x = fused.gather(1, pick)
        scale = self.shape.head_width**-0.5
        found, own = [], []
        for step in range(steps):
            pair = torch.cat(
                (
                    self.norm(given.gather(1, pick + step), self.attn_norm),
                    self.norm(x, self.attn_norm_2),
                ),
                -1,
            )
            query = self.split(pair, self.attn_q, rows + step)
            scores = query @ keys.transpose(-1, -2) * scale + mask
            if step:
                own.append((self.split(pair, self.attn_k, rows + step), self.split(pair, self.attn_v, None)))
                more = [(query * key).sum(-1, keepdim=True) * scale for key, _ in own]
                scores = torch.cat((scores, *more), -1)
            shares = scores.softmax(-1)
            mixed = shares[..., :places] @ values
            for i, (_, value) in enumerate(own):
                mixed = mixed + shares[..., places + i : places + i + 1] * value
            x = x + mixed.transpose(1, 2).flatten(-2) @ self.attn_output.T
            inner = self.norm(x, self.ffn_norm)
            gated = functional.silu(inner @ self.ffn_gate.T) * (inner @ self.ffn_up.T)
            x = x + gated @ self.ffn_down.T
            found.append(self.norm(x, self.output_norm))
        return found


def save(path: Path, head: dict[str, Tensor], shape: Shape, kept: Tensor, **more: object) -> None:
    fresh = path.with_suffix(".new")
    torch.save({"head": head, "shape": asdict(shape), "kept": kept, **more}, fresh)
    fresh.replace(path)
