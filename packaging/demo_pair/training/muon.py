"""Muon for a CPU without fast bfloat16, where torch.optim.Muon takes longer than the passes of a step."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

# As in torch.optim.Muon.
QUINTIC = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
SMALL = 1e-7


def orthogonal(matrix: Tensor) -> Tensor:
    """About the nearest matrix with orthogonal rows or columns: a Newton-Schulz iteration in the matrix's own
    precision, which torch.optim.Muon runs in bfloat16."""
    a, b, c = QUINTIC
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / x.norm().clamp(min=SMALL)
    for _ in range(ITERATIONS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    """The same steps as torch.optim.Muon's with its defaults, and with the same state."""

    def __init__(self, matrices: Iterable[Tensor], lr: float, momentum: float, weight_decay: float) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            rate, momentum = group["lr"], group["momentum"]
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state = self.state[matrix]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(matrix)
                mean = state["momentum_buffer"].lerp_(matrix.grad, 1 - momentum)
                update = orthogonal(matrix.grad.lerp(mean, momentum))
                matrix.mul_(1 - rate * group["weight_decay"])
                matrix.add_(update, alpha=-rate * math.sqrt(max(1, matrix.shape[0] / matrix.shape[1])))
