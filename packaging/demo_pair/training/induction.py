"""Heads that a model is born with, so that it copies before it has learned anything.

An answer in this small world is often made of the question: a name, a number, a passage. Two layers can
copy by place: heads of the first write the one or two tokens before each position next to it, and
*induction heads* of the second look for the position that follows what stands at the end of the text, and
say what is there (Olsson et al. 2022, "In-context Learning and Induction Heads"). Gradients need far more
text than this recipe has to find that circuit, and little to keep and refine it; so it is written down here
and everything else is left to learn.
"""

from __future__ import annotations

import torch
from torch import Tensor

from training.model import BRANCH, Block, Llama, rope_angles

CONSTANT = 0.2
"""First element of every embedding, ten times the others' spread: what a query for a place is made of."""
FAST_PAIRS = 8
"""Rotary pairs that tell neighbouring positions apart, from the first."""
SLOW = slice(44, 64)
"""Elements of a query or key, of a head of 64, that hardly turn within 256 positions: they compare what
stands there, not where."""
PLACE_GAIN = 5.4
"""Of queries and keys that look back: 96 % of the attention is on the wanted position."""
MATCH_GAIN = 2.5
"""Of queries and keys that compare tokens: three quarters and more are on the right one of a hundred."""
NOTE = 0.04 / BRANCH
"""Of what is written beside a position: twice as strong as the embeddings' own spread."""
COPY = 0.1 / BRANCH
"""Of what an induction head found, where the next token is said."""
INDUCTION_HEADS = 4


@torch.no_grad()
def teach_copying(model: Llama) -> None:
    """Set the first heads of the first two blocks; all other heads and the feed-forwards begin silent."""
    for block in model.blk:
        block.silence()
    embeddings = model.token_embd.weight
    embeddings[:, 0] = CONSTANT
    place_gain = PLACE_GAIN / (CONSTANT / float(embeddings.square().mean().sqrt()))
    shape = model.shape
    rank = min(shape.head_width, shape.width // 4)
    # Where a state shows its own token, the one before it, and the one before that.
    places = directions(shape.width)[: 3 * rank].split(rank)
    said = directions(shape.width)
    distances = range(1, min(2, shape.heads) + 1)
    for distance in distances:
        query, key = looking_back(shape.head_width, shape.width, distance)
        read, write = torch.zeros(2, shape.head_width, shape.width)
        read[:rank], write[:rank] = places[0], NOTE * places[distance]
        set_head(model.blk[0], distance - 1, query * place_gain, key * place_gain, read, write)
    for head in range(min(INDUCTION_HEADS, shape.heads)):
        # Every other head compares the last two tokens, the others the last one, in directions of their own
        # as far as there are any.
        compared = 1 + head % len(distances)
        each = (SLOW.stop - SLOW.start) // compared
        chosen = (torch.arange(each) + head * each) % rank
        query, key = torch.zeros(2, shape.head_width, shape.width)
        query[SLOW] = torch.cat([place[chosen] for place in places[:compared]])
        key[SLOW] = torch.cat([place[chosen] for place in places[1 : compared + 1]])
        read = said[head * shape.head_width : (head + 1) * shape.head_width]
        set_head(model.blk[1], head, query * MATCH_GAIN, key * MATCH_GAIN, read, COPY * read)


def directions(width: int) -> Tensor:
    """Random rows (width, width), orthonormal but for the constant element, which they leave out."""
    rows = torch.linalg.qr(torch.randn(width, width))[0].T.contiguous()
    rows[:, 0] = 0
    return rows


def looking_back(size: int, width: int, distance: int) -> tuple[Tensor, Tensor]:
    """Query and key matrices (size, width) whose scores are highest `distance` positions back."""
    query, key = torch.zeros(2, size, width)
    turned = rope_angles(size)[:FAST_PAIRS] * distance
    fast = slice(0, 2 * FAST_PAIRS, 2)
    key[fast, 0] = 1
    query[fast, 0] = turned.cos()
    query[1 : 2 * FAST_PAIRS : 2, 0] = -turned.sin()
    return query, key


def set_head(block: Block, head: int, query: Tensor, key: Tensor, read: Tensor, write: Tensor) -> None:
    """Give one head its four matrices, each (head width, width)."""
    rows = slice(head * len(query), (head + 1) * len(query))
    block.attn_q.weight[rows] = query
    block.attn_k.weight[rows] = key
    block.attn_v.weight[rows] = read
    block.attn_output.weight[:, rows] = write.T
