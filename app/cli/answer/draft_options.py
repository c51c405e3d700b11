"""llama.cpp's options on drafting: --draft with a number, --draft-max and so on, and --parallel."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from app.base.numbers import listed
from app.cli.terminal.arguments import UsageError
from app.engine.drafters.registry import KINDS
from app.engine.explain.llama_flags import DRAFT_KEYS, other_names
from app.engine.params import params_of

_DRAFT = "draft-simple"


class DraftOption(argparse.Action):
    """--draft: a model, or a number, which an older llama.cpp took for the most tokens of a draft."""

    @override
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        drafts = hasattr(namespace, "n_max_of_draft")  # devices has no strategy
        number = drafts and option_string == "--draft" and values.isdecimal() and not os.path.exists(values)
        setattr(namespace, "n_max_of_draft" if number else self.dest, values)


def add_draft_options(group: argparse._ArgumentGroup) -> None:
    """Add the settings of a draft as options of their own; `asked_strategies` reads them."""
    for flag, key in DRAFT_KEYS.items():
        group.add_argument(
            flag,
            *other_names(flag),
            metavar="P" if key == "p_min" else "N",
            dest=f"{key}_of_draft",
            help=f"The draft's {key}, as {_DRAFT}:{key}=… in --strategy (without --strategy: {_DRAFT})",
        )


def add_parallel_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--parallel",
        *other_names("--parallel"),
        metavar="N",
        type=_one,
        help="Always 1: the machine writes one answer at a time. bench --load asks servers many at once",
    )


def draft_flags(arguments: argparse.Namespace) -> list[str]:
    """The draft's settings among the options that were given."""
    return [flag for flag, key in DRAFT_KEYS.items() if getattr(arguments, f"{key}_of_draft") is not None]


def asked_strategies(arguments: argparse.Namespace, strategies: Sequence[str]) -> list[str]:
    """The strategies with the draft's settings among the options; draft-simple with these where there are
    settings and no strategy. Raises UsageError if no strategy has such settings."""
    flags = draft_flags(arguments)
    if not flags:
        return list(strategies)
    given = {DRAFT_KEYS[flag]: getattr(arguments, f"{DRAFT_KEYS[flag]}_of_draft") for flag in flags}
    told = [_with_settings(spec, given) for spec in strategies or [_DRAFT]]
    if told == list(strategies):
        raise UsageError(
            f"{flags[0]} sets {DRAFT_KEYS[flags[0]]}, and {listed(strategies)} has none.",
            f"Add +{_DRAFT}, or leave it out.",
        )
    return told


def _with_settings(spec: str, given: dict[str, str]) -> str:
    """A written strategy with settings for its draft model, else for its only part that has all of them; a
    setting that is already there with another value is refused where the strategy is parsed."""
    parts = spec.split("+")
    names = [part.split(":")[0].strip() for part in parts]
    able = [
        name
        for name in names
        if name in KINDS and given.keys() <= {param.name for param in params_of(KINDS[name].params)}
    ]
    owner = _DRAFT if _DRAFT in names else able[0] if len(able) == 1 else None
    if owner is None:
        return spec
    parts[names.index(owner)] += "".join(f":{key}={value}" for key, value in given.items())
    return "+".join(parts)


def _one(text: str) -> int:
    if text != "1":
        raise argparse.ArgumentTypeError(
            f"cannot be {text!r}. llama-server would answer this many requests at once; Draftscope writes "
            "one answer at a time. To measure a server under load: bench --server URL --load 1,4."
        )
    return 1
