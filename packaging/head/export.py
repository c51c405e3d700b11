"""Write a checkpoint as the GGUF file with which llama.cpp drafts, and PyTorch's results for dialogues."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from words import LAYERS

ARCHITECTURE = "eagle3"
CHECKED = 4  # dialogues
Q8 = gguf.GGMLQuantizationType.Q8_0


def copy_tokenizer(reader: gguf.GGUFReader, writer: gguf.GGUFWriter) -> None:
    for key, entry in reader.fields.items():
        if key.startswith("tokenizer."):
            if entry.types[0] == gguf.GGUFValueType.ARRAY:
                writer.add_array(key, entry.contents())
            else:
                writer.add_key_value(key, entry.contents(), entry.types[0])


def export(
    weights: dict[str, np.ndarray],
    shape: dict[str, Any],
    kept: np.ndarray,
    target: Path,
    path: Path,
    kind: gguf.GGMLQuantizationType = Q8,
) -> None:
    """Write the head to `path`: matrices as `kind`, the tokenizer of the file `target`, no embeddings."""
    reader = gguf.GGUFReader(target)
    fresh = path.with_suffix(".new")
    writer = gguf.GGUFWriter(fresh, ARCHITECTURE)
    name = reader.fields[gguf.Keys.General.NAME].contents()
    writer.add_name(f"{name} EAGLE-3")
    writer.add_description(
        "An EAGLE-3 head: it drafts for the model that it is named after, and for no other."
    )
    writer.add_license("apache-2.0")
    writer.add_block_count(1)
    writer.add_context_length(reader.fields["llama.context_length"].contents())
    writer.add_embedding_length(shape["width"])
    writer.add_feed_forward_length(shape["hidden"])
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["keys"])
    writer.add_key_length(shape["head_width"])
    writer.add_value_length(shape["head_width"])
    writer.add_rope_dimension_count(shape["head_width"])
    writer.add_rope_freq_base(shape["rope_base"])
    writer.add_layer_norm_rms_eps(shape["eps"])
    writer.add_vocab_size(len(reader.fields[gguf.Keys.Tokenizer.LIST].data))
    writer.add_array(f"{ARCHITECTURE}.target_layers", list(LAYERS))
    writer.add_uint32(f"{ARCHITECTURE}.target_hidden_size", shape["width"])
    copy_tokenizer(reader, writer)
    for key, values in weights.items():
        place = f"blk.0.{key}.weight" if key.startswith(("attn", "ffn")) else f"{key}.weight"
        if values.ndim == 2:
            writer.add_tensor(place, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(place, values)
    writer.add_tensor("d2t", kept.astype(np.int64))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    fresh.replace(path)


def main() -> None:
    import torch

    from model import Head, Shape
    from teacher import Teacher

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    args = parser.parse_args()
    known = torch.load(args.work / "head.pt", map_location="cpu", weights_only=True)
    weights = {name: value.numpy() for name, value in known["head"].items()}
    path = args.work / "head.gguf"
    kept = known["kept"].numpy()
    export(weights, known["shape"], kept, args.target, path)
    # Without rounding, so that a fault of the graph shows.
    f32 = gguf.GGMLQuantizationType.F32
    export(weights, known["shape"], kept, args.target, args.work / "head-f32.gguf", f32)
    print(
        f"{path}: {sum(each.size for each in weights.values()):,} parameters, {path.stat().st_size:,} bytes"
    )
    head = Head(Shape(**known["shape"]))
    head.load_state_dict(known["head"])
    teacher, text = Teacher(args.target, "cpu"), np.load(args.work / "text.npz")
    told = {}
    for number, row in enumerate(np.flatnonzero(text["held_out"])[:CHECKED]):
        ids = torch.from_numpy(text["ids"][row, : text["length"][row]].astype(np.int64))[None]
        features = teacher.read(ids[:, :-1])[0].float()
        rows = torch.arange(features.shape[1])[None]
        with torch.no_grad():
            (normed,) = head.chain(teacher.embeddings[ids[:, 1:]], head.fuse(features), rows, 1)
            logits = normed[0] @ head.output.T
        for name, values in (("ids", ids), ("features", features), ("logits", logits[None])):
            told[f"{name}{number}"] = values[0].numpy()
    np.savez(args.work / "reference.npz", kept=kept, **told)


if __name__ == "__main__":
    main()
