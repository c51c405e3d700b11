"""The byte-level BPE that both models share.

The split rule is the one llama.cpp runs for `tokenizer.ggml.pre = qwen2`: one token per digit, so
that sums can be learnt, and line ends glued to punctuation, so that code is short.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Container, Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

VOCAB_SIZE = 4096
SPACED = 400
"""Words that have a token with the space before them."""
SPACE = "Ġ"  # as byte-level BPE writes it
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


def untrained() -> Tokenizer:
    """Without merges; letters are cut from all else, which is only wanted while merges are learnt."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.Split(Regex(r"\p{L}+"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def train(texts: Sequence[str], copied: Container[str], path: Path) -> Tokenizer:
    """Learn the merges from `texts`, write the tokenizer to `path` and return it.

    Ids 0 to 2 are the control tokens, then all 256 bytes, then the merges: any UTF-8 text round-trips.
    A word is cut into the same tokens behind a space, a double quote, a bracket or an underscore, or it could
    not be copied from one place to another: no merge joins letters with anything else. The most frequent
    words that are not among those that are `copied` have a token with their space all the same.
    """
    tokenizer = untrained()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE - SPACED,
        special_tokens=list(CONTROL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=24,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    found = json.loads(tokenizer.to_str())
    model = found["model"]
    counts = Counter(word for text in texts for word in re.findall(" ([a-z]+)", text))
    whole = [word for word, _ in counts.most_common() if word in model["vocab"] and word not in copied]
    for word in whole[:SPACED]:
        model["vocab"][f"{SPACE}{word}"] = len(model["vocab"])
        model["merges"].append([SPACE, word])
    found["pre_tokenizer"]["pretokenizers"].pop(1)
    path.write_text(json.dumps(found))
    return load(path)


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
