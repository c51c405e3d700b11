"""What a model file says of itself, as the probe process found it."""

from __future__ import annotations

import msgspec


class Facts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Read from a file's own metadata; numbers that it does not tell are 0, texts empty."""

    architecture: str
    name: str
    parameters: int
    quantisation: str  # such as "Q4_K_M"
    context: int  # tokens it was trained for
    layers: int
    vocabulary_size: int
    vocabulary: str  # a digest: equal for equal vocabularies
    recurrent: bool = False  # its memory cannot be cut in the middle
    chat: bool = False  # it has a chat template
    refusal: str = ""  # why it is no language model that can be loaded, to stand behind "because"


def short_number(count: int) -> str:
    """Parameters as people write them: "1.7B", "135M"; empty for 0."""
    for unit, one in (("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if count >= one * 0.9995:
            value = count / one
            return f"{value:.1f}{unit}".replace(".0", "") if value < 99.95 else f"{value:.0f}{unit}"
    return str(count) if count else ""
