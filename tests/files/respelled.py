"""A real model file with its vocabulary in another order: the same model with other ids."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

_IDS = "_token_id"


def write_respelled(source: Path, path: Path, seed: int) -> Path:
    """Write a shuffled copy of `source`, a file of byte-pair tokens, and return its path."""
    reader = gguf.GGUFReader(source)
    texts = reader.fields["tokenizer.ggml.tokens"].contents()
    order = np.random.default_rng(seed).permutation(len(texts))
    place = np.argsort(order)
    writer = gguf.GGUFWriter(path, reader.fields["general.architecture"].contents())
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        value = field.contents()
        if key in ("tokenizer.ggml.tokens", "tokenizer.ggml.token_type"):
            value = [value[i] for i in order]
        elif key.endswith(_IDS):
            value = int(place[value])
        kind = field.types[0]
        element = field.types[-1] if kind is gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, value, kind, sub_type=element)
    for tensor in reader.tensors:
        of_tokens = tensor.name in ("token_embd.weight", "output.weight")
        data = np.asarray(tensor.data)
        writer.add_tensor(tensor.name, data[order] if of_tokens else data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
