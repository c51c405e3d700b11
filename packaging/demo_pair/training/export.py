"""Write the checkpoints as GGUF files that llama.cpp loads."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from tokenizers import Tokenizer

from training import tokenizer as bpe
from training.model import ADDING, BRANCH, NORM_EPS, ROPE_BASE, Llama
from training.train import RUNS, load_model

CONTEXT = 2048
LICENCE = "mit"
DESCRIPTIONS = {
    "target": "The target of Draftscope's demo pair: small Python functions and short answers.",
    "draft": "The draft of Draftscope's demo pair, distilled from its target.",
    "small-draft": "A smaller draft of Draftscope's demo pair, distilled from its target.",
}


@dataclass(frozen=True, slots=True)
class Format:
    """In which types the matrices are written; norms are always 32-bit."""

    ffn: gguf.GGMLQuantizationType
    others: gguf.GGMLQuantizationType
    file_type: gguf.LlamaFileType


# A pass over five tokens costs little more than one over a single token where weights are BF16, and much more
# where they are quantised: there a small model computes instead of waiting for memory. Four bits in the
# feed-forward halves keep the target in its size all the same.
TARGET = Format(
    gguf.GGMLQuantizationType.Q4_0, gguf.GGMLQuantizationType.BF16, gguf.LlamaFileType.MOSTLY_Q4_0
)
DRAFT = Format(gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0)


def size_name(parameters: int) -> str:
    """`11M` or `1.3M`."""
    millions = parameters / 1e6
    return f"{millions:.0f}M" if millions >= 10 else f"{millions:.1f}M"


def add_vocabulary(writer: gguf.GGUFWriter, tokenizer: Tokenizer) -> None:
    """Tokens, types, merges and the chat template."""
    words = [tokenizer.id_to_token(i) or "" for i in range(tokenizer.get_vocab_size())]
    kinds = [gguf.TokenType.CONTROL if word in bpe.CONTROL else gguf.TokenType.NORMAL for word in words]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(bpe.PRE)
    writer.add_token_list(words)
    writer.add_token_types(kinds)
    writer.add_token_merges(bpe.merges(tokenizer))
    writer.add_bos_token_id(words.index(bpe.ENDOFTEXT))
    writer.add_eos_token_id(words.index(bpe.IM_END))
    writer.add_eot_token_id(words.index(bpe.IM_END))
    writer.add_pad_token_id(words.index(bpe.ENDOFTEXT))
    writer.add_add_bos_token(False)
    writer.add_chat_template(bpe.CHAT_TEMPLATE)


def export(model: Llama, tokenizer: Tokenizer, role: str, form: Format, path: Path) -> None:
    """Write `model` to `path`."""
    shape = model.shape
    size = size_name(model.parameter_count)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(f"demo {size}")
    writer.add_basename(f"draftscope-demo-{role}")
    writer.add_size_label(size)
    writer.add_description(DESCRIPTIONS[role])
    writer.add_license(LICENCE)
    writer.add_languages(["en"])
    writer.add_file_type(form.file_type)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_layer_norm_rms_eps(NORM_EPS)
    writer.add_rope_dimension_count(shape.head_width)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_vocab_size(shape.vocab)
    add_vocabulary(writer, tokenizer)
    for name, tensor in model.state_dict().items():
        values = tensor.float().numpy().astype(np.float32)
        if name.endswith(ADDING):
            values *= BRANCH
        kind = form.ffn if "ffn" in name else form.others
        if values.ndim == 2:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, values)
    path.parent.mkdir(parents=True, exist_ok=True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder for one GGUF file a role")
    args = parser.parse_args()
    tokenizer = bpe.load(args.work / "tokenizer.json")
    for run, roles in RUNS.items():
        for role in roles if (args.work / f"{run}.pt").exists() else ():
            model = load_model(args.work / f"{run}.pt", role)
            path = args.out / f"{role}.gguf"
            fresh = path.with_suffix(".new")
            export(model, tokenizer, role, TARGET if role == "target" else DRAFT, fresh)
            # Readers of the old file keep it; nobody sees half a file.
            fresh.replace(path)
            print(f"{path.name}: {model.parameter_count:,} parameters, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
