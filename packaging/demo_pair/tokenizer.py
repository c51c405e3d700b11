"""The byte-level BPE that both models share.

The split rule is the one llama.cpp runs for `tokenizer.ggml.pre = qwen2`: one token per digit, so
that sums can be learnt, and line ends glued to punctuation, so that code is short.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

VOCAB_SIZE = 4096
PRE = "qwen2"
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
ENDOFTEXT = "<|endoftext|>"
IM_START = "<|im_start|>"
IM_END = "<|im_end|>"
CONTROL = (ENDOFTEXT, IM_START, IM_END)

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] | trim + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def train(texts: Iterable[str], path: Path) -> Tokenizer:
    """Learn the merges from `texts`, write the tokenizer to `path` and return it.

    Ids 0 to 2 are the control tokens, then all 256 bytes, then the merges: any UTF-8 text
    round-trips.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=list(CONTROL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=24,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(path))
    return tokenizer


def load(path: Path) -> Tokenizer:
    """Read a tokenizer that `train` wrote."""
    return Tokenizer.from_file(str(path))


def control_id(tokenizer: Tokenizer, word: str) -> int:
    """The id of a control token."""
    found = tokenizer.token_to_id(word)
    if found is None:
        raise ValueError(f"the tokenizer has no {word}")
    return found


def encode_plain(tokenizer: Tokenizer, text: str) -> list[int]:
    """Ids of `text` with control markers in it read as ordinary text."""
    tokenizer.encode_special_tokens = True
    return list(tokenizer.encode(text, add_special_tokens=False).ids)


def merges(tokenizer: Tokenizer) -> list[str]:
    """The merges in order, each as `left right`."""
    pairs = json.loads(tokenizer.to_str())["model"]["merges"]
    return [pair if isinstance(pair, str) else " ".join(pair) for pair in pairs]
