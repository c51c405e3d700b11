"""An experiment: lanes over prompts and repeats, and the order in which they run."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec

from app.engine.errors import SettingError
from app.engine.params import check_params
from app.engine.strategy import NONE, StrategySpec
from app.engine.templates.options import TemplateOptions, check_options
from app.engine.types import GenerationRequest, Message, ModelOptions, Sampling
from app.servers.address import is_address

T = TypeVar("T")

MOST_LANES = 8
"""More lanes could not be distinguished side by side. Sweeps have more: a lane for each cell."""


class Pair(msgspec.Struct, frozen=True):
    """A target and its draft, with load options. If the target's path is an address, it is a server's
    model."""

    target: ModelOptions
    draft: ModelOptions | None = None

    @property
    def is_server(self) -> bool:
        return is_address(self.target.path)


class Lane(msgspec.Struct, frozen=True):
    """One way to answer: a strategy, with the experiment's pair and sampling or its own."""

    strategy: str  # of a server: SERVER for its own, NONE where it does not draft
    label: str = ""  # its name for people; by default the strategy
    pair: Pair | None = None
    sampling: Sampling | None = None
    model: str = ""  # of a server: what tells its model from others, the same for every server of that model

    @property
    def name(self) -> str:
        return self.label or self.strategy


class Prompt(msgspec.Struct, frozen=True):
    """One prompt of a suite, or one turn of its conversation."""

    prompt: str
    category: str | None = None
    suffix: str | None = None  # the text after the answer, which fills the middle; without a chat template
    depth: int | None = None  # tokens of the experiment's documents that stand before it
    before: tuple[str, ...] = ()
    """The user's earlier turns of the same conversation. They are the prompts right before this one."""

    @property
    def turn(self) -> int:
        """The number of the turn in its conversation, from 1 on."""
        return len(self.before) + 1

    @property
    def shown(self) -> str:
        """The text, with marks for a gap to fill, a document before it, or earlier turns of its
        conversation."""
        before = f"[{self.depth:,} tokens of a document] " if self.depth else ""
        before += f"[turn {self.turn}] " if self.before else ""
        return before + (self.prompt if self.suffix is None else f"{self.prompt}[…]{self.suffix}")

    def follows(self, prompt: Prompt) -> bool:
        """Whether this is the turn right after `prompt` in the same conversation."""
        return (prompt.depth, (*prompt.before, prompt.prompt)) == (self.depth, self.before)


class Job(msgspec.Struct, frozen=True, order=True):
    """One run of an experiment, by the indices of its repeat, prompt and lane."""

    repeat: int
    prompt: int
    lane: int


class Experiment(msgspec.Struct, frozen=True):
    """Every lane answers every prompt in every repeat, cold, with the same seed and sampling."""

    pair: Pair
    lanes: tuple[Lane, ...]
    prompts: tuple[Prompt, ...]
    sampling: Sampling = msgspec.field(default_factory=Sampling)
    max_tokens: int = 256
    repeats: int = 3
    chat: bool = True  # wrap each prompt as one user message with the target's template
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    drafters: tuple[str, ...] = ()  # files of the plug-ins in use
    title: str = ""
    template_options: TemplateOptions = {}  # for the chat template
    documents: str = ""  # fill the context before prompts with a depth
    loads_once: bool = False
    """Whether all runs of a pair follow each other, with a baseline for each pair: so pairs with different
    load options are loaded once. Otherwise each target has a baseline, and targets take turns."""

    def with_lanes(self, lanes: Sequence[Lane]) -> Experiment:
        return msgspec.structs.replace(self, lanes=tuple(lanes))

    def pair_of(self, lane: int) -> Pair:
        return self.lanes[lane].pair or self.pair

    def sampling_of(self, lane: int) -> Sampling:
        return self.lanes[lane].sampling or self.sampling

    def baseline_of(self, lane: int) -> int | None:
        """The lane that `lane` is compared with: strategy none on the same target, with the same sampling.
        For a server that always drafts, it is a different server of the same model, or None."""
        sampling, model = self.sampling_of(lane), self.lanes[lane].model
        plain = [
            index
            for index, candidate in enumerate(self.lanes)
            if candidate.strategy == NONE and self.sampling_of(index) == sampling
        ]
        same = [index for index in plain if self._loaded(index) == self._loaded(lane)]
        alike = [index for index in plain if model and self.lanes[index].model == model]
        return next(iter(same + alike), None)

    def baseline_job(self, job: Job) -> Job | None:
        """The run that `job` is compared with, if any."""
        lane = self.baseline_of(job.lane)
        return None if lane is None else msgspec.structs.replace(job, lane=lane)

    def jobs(self) -> tuple[Job, ...]:
        """All runs in order. For each prompt the lanes of a target follow each other, so compared runs are
        measured side by side. Their order differs by prompt and repeat (TurnOrder); that of conversations
        differs by repeat (`mixed`)."""
        places = iter(range(len(self.prompts)))
        asked = [[next(places) for _turn in turns] for turns in conversations(self.prompts)]
        groups = [TurnOrder(group, self.sampling.seed) for group in self._groups()]
        rounds = [(repeat, group) for repeat in range(self.repeats) for group in _rotated(groups, repeat)]
        if self.loads_once:
            rounds = [(repeat, group) for group in groups for repeat in range(self.repeats)]
        return tuple(
            Job(repeat, prompt, lane)
            for repeat, group in rounds
            for conversation in mixed(len(asked), repeat, self.sampling.seed)
            for prompt in asked[conversation]
            for lane in group.turns(repeat, prompt)
        )

    def _loaded(self, lane: int) -> Pair | ModelOptions:
        """What lanes must share to be compared."""
        pair = self.pair_of(lane)
        return pair if self.loads_once else pair.target

    def _groups(self) -> list[list[int]]:
        """The lanes that are measured side by side."""
        groups: dict[Pair | ModelOptions | str, list[int]] = {}
        for index, lane in enumerate(self.lanes):
            groups.setdefault(lane.model or self._loaded(index), []).append(index)
        return list(groups.values())

    def request(
        self, prompt: int, strategy: str, sampling: Sampling | None = None, said: Sequence[str] = ()
    ) -> GenerationRequest:
        """The engine's request for a prompt and a strategy, by default with the experiment's sampling. `said`
        are the answers to the turns before it; without a chat template all texts are joined."""
        asked = self.prompts[prompt]
        chat = self.chat and asked.suffix is None
        pairs = zip(asked.before, said, strict=True)
        texts = [*(text for pair in pairs for text in pair), asked.prompt]
        roles = ("user", "assistant")
        return GenerationRequest(
            prompt=None if chat else "\n\n".join(texts),
            messages=tuple(Message(roles[at % 2], text) for at, text in enumerate(texts)) if chat else (),
            suffix=asked.suffix,
            strategy=strategy,
            sampling=sampling or self.sampling,
            max_tokens=self.max_tokens,
            stop=self.stop,
            ignore_eos=self.ignore_eos,
            cold=True,
            filler=self.documents if asked.depth else "",
            depth=asked.depth or 0,
            template_options=self.template_options if chat else {},
        )


def conversations(prompts: Sequence[Prompt]) -> list[tuple[Prompt, ...]]:
    """The prompts by conversation: each first turn with the turns right after it."""
    found: list[tuple[Prompt, ...]] = []
    for prompt in prompts:
        if found and prompt.follows(found[-1][-1]):
            found[-1] = (*found[-1], prompt)
        else:
            found.append((prompt,))
    return found


def with_baselines(experiment: Experiment) -> Experiment:
    """The experiment with distinct, uniformly written lanes, and strategy none before the first lane of every
    setting. A server's lanes stay unchanged: not every server can answer without drafting.

    The same strategy (or none) under a different label is a different lane: two equal lanes show the effect
    of chance. Raises SettingError for an invalid strategy.
    """
    known: list[Lane] = []
    bases: dict[tuple[Pair | ModelOptions, Sampling], int] = {}
    for lane in experiment.lanes:
        pair = None if lane.pair == experiment.pair else lane.pair
        sampling = None if lane.sampling == experiment.sampling else lane.sampling
        loaded = pair or experiment.pair
        if loaded.is_server:
            known += [] if lane in known else [lane]
            continue
        setting = (loaded if experiment.loads_once else loaded.target, sampling or experiment.sampling)
        if setting not in bases:
            bases[setting] = len(known)
            known.append(Lane(NONE, "", pair, sampling))
        spec = StrategySpec.parse(lane.strategy)
        spelled = msgspec.structs.replace(lane, strategy=str(spec), pair=pair, sampling=sampling)
        if not spec.parts:
            # Without drafts, neither the verification rule nor the draft model matters.
            base = known[bases[setting]]
            spelled = msgspec.structs.replace(base, label=lane.label or base.label)
            if not base.label:
                known[bases[setting]] = spelled  # the baseline's own name
        if spelled not in known:
            known.append(spelled)
    return experiment.with_lanes(known)


def make_experiment(experiment: Experiment, most_lanes: int = MOST_LANES) -> Experiment:
    """The experiment with its baselines and a seed, checked; raises SettingError."""
    if not experiment.lanes:
        raise SettingError("There is nothing to compare with strategy none.", "Give at least one strategy.")
    first = [] if experiment.pair.is_server else [Lane(NONE)]
    experiment = with_baselines(_seeded(experiment.with_lanes([*first, *experiment.lanes])))
    lanes = experiment.lanes
    if len(lanes) > most_lanes:
        raise SettingError(
            f"{len(lanes)} lanes are too many.", f"Allowed: {most_lanes}, including each target's baseline."
        )
    if not experiment.prompts:
        raise SettingError("There is no prompt.", "Give at least one.")
    if any(prompt.depth and prompt.suffix is not None for prompt in experiment.prompts):
        raise SettingError(
            "A fill-in-the-middle prompt cannot follow a document.", "Choose other prompts for the depth."
        )
    if any(asked[0].before for asked in conversations(experiment.prompts)):
        raise SettingError(
            "A turn of a conversation is missing the turns before it.",
            "Put the turns of a conversation in order.",
        )
    for name in ("repeats", "max_tokens"):
        if getattr(experiment, name) < 1:
            raise SettingError(f"{name} cannot be below 1.", "Ask for at least one.")
    check_options(experiment.template_options)
    for index, lane in enumerate(lanes):
        sampling = experiment.sampling_of(index)
        check_params(sampling)
        if experiment.pair_of(index).is_server:
            continue
        spec = StrategySpec.parse(lane.strategy)
        spec.verification_at(sampling.temperature)
        spec.check_lengths()
        if spec.needs_draft and experiment.pair_of(index).draft is None:
            raise SettingError(f"{lane.name} needs a draft model.", "Choose a draft for its lane.")
    return experiment


def _seeded(experiment: Experiment) -> Experiment:
    """The experiment with one seed for all runs, drawn if it has none: 31 bits, as llama.cpp allows."""
    seed = experiment.sampling.seed
    seed = secrets.randbits(31) if seed < 0 else seed
    lanes = [
        msgspec.structs.replace(lane, sampling=lane.sampling and replace(lane.sampling, seed=seed))
        for lane in experiment.lanes
    ]
    sampling = replace(experiment.sampling, seed=seed)
    return msgspec.structs.replace(experiment, lanes=tuple(lanes), sampling=sampling)


def _rotated(items: Sequence[T], by: int) -> list[T]:
    by %= len(items)
    return [*items[by:], *items[:by]]


class TurnOrder:
    """An order of the lanes for every (repeat, prompt).

    Machines warm up, slow down and are disturbed. A lane that runs first, last, or always after the same
    heavy lane has an error that repeats do not average out. So orders are random, but balanced: with few
    repeats, chance would favour some lane. The cells of n repeats by n prompts share a Latin square. Each of
    n lanes has every place once over a prompt's repeats, and once over a repeat's prompts. It is a Williams
    square (Williams 1949): every lane also follows every other lane equally often (for odd n, half of them
    twice). The seed assigns lanes and rows in every square, so the same experiment runs in the same order.
    """

    def __init__(self, lanes: Sequence[int], seed: int) -> None:
        self._lanes = tuple(lanes)
        self._seed = seed
        self._squares: dict[tuple[int, int], list[tuple[int, ...]]] = {}

    def turns(self, repeat: int, prompt: int) -> tuple[int, ...]:
        """The lanes in the order in which they answer this prompt in this repeat."""
        count = len(self._lanes)
        square = self._square(repeat // count, prompt // count)
        return square[(repeat + prompt) % count]

    def _square(self, down: int, across: int) -> list[tuple[int, ...]]:
        known = self._squares.get((down, across))
        if known is None:
            drawn = random.Random(f"{self._seed} {down} {across}")
            lanes = drawn.sample(self._lanes, len(self._lanes))
            rows = (_row(len(lanes), shift) for shift in range(len(lanes)))
            known = [tuple(lanes[place] for place in row) for row in rows]
            drawn.shuffle(known)
            self._squares[down, across] = known
        return known


def mixed(count: int, repeat: int, seed: int) -> tuple[int, ...]:
    """The order of prompts 0 to `count` - 1 in a repeat: a row of such a square. Each has every place once in
    `count` repeats. So a machine that becomes slower affects all kinds of prompts."""
    if not count:
        return ()
    drawn = random.Random(f"{seed} prompts {repeat // count}")
    names, shifts = (drawn.sample(range(count), count) for _ in range(2))
    return tuple(names[place] for place in _row(count, shifts[repeat % count]))


def _row(n: int, shift: int) -> list[int]:
    """A row of a square of 0 to n - 1. Over all shifts, each number is once in every column; for an even n it
    follows every other number once, for an odd n half of them twice."""
    return [((n - at // 2 if at % 2 == 0 else at // 2 + 1) + shift) % n for at in range(n)]
