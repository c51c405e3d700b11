"""The prompts to try, of SmolLM2 and of the bundled pair: what to ask, with which settings, and what to look
for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from app.base.files import DamagedError, decode, read_file, reason
from app.base.paths import BUNDLED, BUNDLED_DRAFT, BUNDLED_TARGET, REAL_DRAFT, REAL_TARGET, Paths
from app.engine.errors import SettingError, UserError
from app.engine.params import check_params
from app.engine.strategy import StrategySpec
from app.engine.types import ModelOptions, Sampling

FOLDER = "demo_pair"  # in the resources
REAL_PROMPTS = "smollm2.json"  # in the resources
TARGETS = {
    REAL_TARGET: "SmolLM2",
    BUNDLED_TARGET: "small pair",
}  # by path, with the name of the prompts' model


@dataclass(frozen=True, slots=True)
class OwnPair:
    """A pair that comes with Draftscope, and the strategy that suits it."""

    name: str
    words: str  # what it is for
    target: ModelOptions
    draft: ModelOptions | None
    strategy: str


# Copies three tokens at most, and only after five that agree: in a simulation of 43 answers, where checking
# three costs 1.6 passes more, the worst keeps 0.98 of the baseline's speed. The head drafts where it is sure:
# of tokens to which it gives 0.4 or more, 0.76 are accepted (docs/measuring.md).
REAL_PAIR = OwnPair(
    "SmolLM2 135M",
    "a real model: gains where an answer repeats the text",
    ModelOptions(REAL_TARGET),
    ModelOptions(REAL_DRAFT),
    "ngram-map-k:size_n=5:size_m=3+draft-eagle3:p_min=0.4:length=auto",
)
SMALL_PAIR = OwnPair(
    "Small pair",
    "made to be fast: shows gains on two cores",
    ModelOptions(BUNDLED_TARGET),
    ModelOptions(BUNDLED_DRAFT),
    "draft-simple:n_max=4",
)
FIRST_PROMPT = """Repeat this text, but write Maria instead of Anna:

Anna lives in a small house by the sea. Every morning Anna walks along the beach and collects shells. In the \
evening Anna sits by the window and writes letters to her brother. He lives in the city, and he answers \
every letter."""
"""The text in the prompt box at the first start with SmolLM2. Most of the answer repeats the question. No
token is near a tie, which other processors could decide differently."""


class DemoPrompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A demo prompt, with settings that show what `look` describes."""

    category: str
    title: str
    prompt: str
    look: str
    """One or two sentences to show beside the answer."""
    strategy: str
    temperature: float = 0.0
    min_p: float = 0.0
    draft: str = "draft.gguf"
    """A file of the pair; unused if the strategy needs no draft."""
    mode: Literal["chat", "completion"] = "chat"
    seed: int | None = None
    """The seed to answer with; None, only at temperature 0, keeps the one in use."""
    target: str = BUNDLED_TARGET
    """The path of the target that it was written for, as the settings write it."""

    @property
    def spec(self) -> StrategySpec:
        return StrategySpec.parse(self.strategy)

    @property
    def draft_path(self) -> str:
        """The draft's path as the settings write it."""
        return f"{BUNDLED}{FOLDER}/{self.draft}"

    def sampling(self, now: Sampling) -> Sampling:
        """The sampling of this prompt. Other settings in use would change its answer."""
        seed = now.seed if self.seed is None else self.seed
        return Sampling(temperature=self.temperature, min_p=self.min_p, seed=seed)

    def check(self, files: Collection[str]) -> None:
        """Raise SettingError if the prompt cannot be asked with the pair's files."""
        self.spec.verification_at(self.temperature)
        check_params(self.sampling(Sampling()))
        if self.temperature and (self.seed is None or self.seed < 0):
            raise SettingError(f"“{self.title}” is sampled and has no seed.")
        if self.draft not in files:
            raise SettingError(f"The pair has no file {self.draft}.", f"It has {', '.join(sorted(files))}.")


class _PairFile(msgspec.Struct, frozen=True):
    file: str


class _DemoCard(msgspec.Struct, frozen=True):
    prompts: tuple[DemoPrompt, ...]
    files: dict[str, _PairFile] = {}


_card = msgspec.json.Decoder(_DemoCard)


def read_prompts(paths: Paths) -> tuple[DemoPrompt, ...]:
    """The prompts of the models that are here, SmolLM2's last. Raises UserError."""
    real = read_real(paths.resources) if paths.real_target.is_file() else ()
    return (*read_demo(paths.resources), *real)


def read_demo(resources: Path) -> tuple[DemoPrompt, ...]:
    """The prompts that the bundled pair answers well, the best first. Raises UserError."""
    return _read(resources / FOLDER / "pair.json")


def read_real(resources: Path) -> tuple[DemoPrompt, ...]:
    """The prompts that SmolLM2 answers well, the best first. Raises UserError."""
    found = _read(resources / REAL_PROMPTS)
    return tuple(msgspec.structs.replace(prompt, target=REAL_TARGET) for prompt in found)


def _read(path: Path) -> tuple[DemoPrompt, ...]:
    try:
        card = decode(_card, read_file(path))
        files = frozenset(entry.file for entry in card.files.values())
        for prompt in card.prompts:
            prompt.check(files or {prompt.draft})
        if len({prompt.title for prompt in card.prompts}) < len(card.prompts):
            raise SettingError("Two prompts have the same title.")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {reason(error)}.", "Install Draftscope again.") from error
    except (DamagedError, SettingError) as error:
        raise UserError(f"{path} is damaged: {error}", "Install Draftscope again.") from error
    return card.prompts
