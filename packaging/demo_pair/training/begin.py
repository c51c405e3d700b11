"""What a GGUF file of this recipe holds: a model to go on from, and its tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import torch

from training import tokenizer as bpe
from training.model import ADDING, BRANCH, Llama, Shape


def model_of(path: Path) -> Llama:
    """The model of a file that export.py wrote."""
    reader = gguf.GGUFReader(path)

    def number(key: str) -> int:
        return int(reader.fields[f"llama.{key}"].contents())

    model = Llama(
        Shape(
            number("vocab_size"),
            number("embedding_length"),
            number("block_count"),
            number("attention.head_count"),
            number("feed_forward_length"),
        )
    )
    state = {}
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if tensor.name.endswith(ADDING):
            values /= BRANCH
        state[tensor.name] = torch.from_numpy(values).view(*map(int, reversed(tensor.shape)))
    model.load_state_dict(state)
    return model


def keep_tokenizer(path: Path, out: Path) -> None:
    """Write the tokenizer of a file to `out`, as `tokenizer.train` would."""
    fields = gguf.GGUFReader(path).fields
    words = fields["tokenizer.ggml.tokens"].contents()
    merges = [merge.split(" ") for merge in fields["tokenizer.ggml.merges"].contents()]
    found = json.loads(bpe.untrained().to_str())
    found["model"]["vocab"] = {word: number for number, word in enumerate(words)}
    found["model"]["merges"] = merges
    found["added_tokens"] = [
        {
            "id": words.index(word),
            "content": word,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for word in bpe.CONTROL
    ]
    found["pre_tokenizer"]["pretokenizers"].pop(1)  # as in `tokenizer.train`
    out.write_text(json.dumps(found))
