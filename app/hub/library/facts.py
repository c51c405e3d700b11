"""The metadata of a model file, as the probe process read it."""

from __future__ import annotations

import msgspec

from app.engine.compat import HEAD_STRATEGIES


class Facts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Metadata of a file; missing numbers are 0, missing texts empty."""

    architecture: str
    name: str
    parameters: int
    quantisation: str  # such as "Q4_K_M"
    context: int  # tokens it was trained for
    layers: int
    vocabulary_size: int
    vocabulary: str  # a digest: equal for equal vocabularies
    recurrent: bool = False  # its state cannot be rolled back
    chat: bool = False  # it has a chat template
    refusal: str = ""  # why it cannot be loaded as a language model, as a clause after "because"
    licence: str = ""  # as the file names it, such as "apache-2.0"
    width: int = 0  # numbers in a row between two layers: of a head, those of the target that it reads

    @property
    def strategy(self) -> str:
        """The strategy that drafts with it, where it only drafts for one target; empty for a model."""
        return HEAD_STRATEGIES.get(self.architecture, "")


def short_number(count: int) -> str:
    """Parameters as people write them: "1.7B", "135M"; empty for 0."""
    for unit, scale in (("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if count >= scale * 0.9995:
            value = count / scale
            return f"{value:.1f}{unit}".replace(".0", "") if value < 99.95 else f"{value:.0f}{unit}"
    return str(count) if count else ""
