"""Models in a few words: as chips, panels and the status bar say them."""

from __future__ import annotations

import re

from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET, OWN, REAL_TARGET
from app.demo import REAL_PAIR, SMALL_PAIR
from app.engine.compat import FitKind
from app.engine.types import ModelInfo, PairInfo, Role
from app.ui.widgets.words.numbers import file_size


def file_name(path: str) -> str:
    """The last part of a path of any system."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def unread_name(path: str) -> str:
    """The name of a model whose file has not been read, from its path as the settings have it."""
    if path == REAL_TARGET:
        return REAL_PAIR.name
    bundled = path in (BUNDLED_TARGET, BUNDLED_DRAFT)
    return SMALL_PAIR.name if bundled else file_name(path).removesuffix(".gguf")


def own_words(path: str) -> str:
    """What a model of our own is for, by its path as the settings have it; "" for others."""
    pair = REAL_PAIR if path == REAL_TARGET else SMALL_PAIR
    return f"{pair.name}: {pair.words}" if path.startswith(OWN) else ""


def parameters(count: int) -> str:
    """A number of parameters as model names have it: 1.4M, 32M, 7.2B."""
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if count >= size:
            value = count / size
            return f"{value:.0f}{letter}" if value >= 9.95 else f"{value:.1f}{letter}"
    return str(count)


def describe_model(info: ModelInfo) -> str:
    """What the file holds."""
    parts = [
        f"{info.architecture}",
        f"{parameters(info.n_params)} parameters",
        info.quantisation,
        file_size(info.size),
    ]
    return " · ".join(part for part in parts if part)


def describe_load(info: ModelInfo) -> str:
    """How it is loaded."""
    threads = "1 thread" if info.threads == 1 else f"{info.threads:,} threads"
    return f"context {info.n_ctx:,} tokens, trained on {info.n_ctx_train:,} · {threads}"


def where_words(pair: PairInfo) -> tuple[str, str]:
    """What computes the answers: threads and devices, or a server, of which neither is known."""
    if pair.server is not None:
        return pair.server.kind, pair.server.address.partition("://")[2]
    threads = pair.target.threads
    return f"{threads} thread{'s' * (threads != 1)}", pair.devices


def load_warning(info: ModelInfo, role: Role) -> str:
    """What is wrong with the way it is loaded; "" for nothing."""
    if info.n_ctx <= info.n_ctx_train:
        return ""
    return (
        f"The context is longer than the {info.n_ctx_train:,} tokens that the model was trained on: "
        f"{'expect nonsense' if role is Role.TARGET else 'few of its tokens will pass'} beyond those."
    )


def origin(path: str) -> str:
    """Where a file comes from: the repository, or the folder."""
    parts = path.replace("\\", "/").split("/")
    for part in parts:
        if part.startswith("models--"):
            return part.removeprefix("models--").replace("--", "/", 1)
    return "/".join(parts[:-1])


def describe_file(path: str) -> str:
    """The file and where it comes from, which distinguishes two models of one name."""
    return " · ".join(part for part in (file_name(path), origin(path)) if part)


def fit_words(vocabulary: str) -> str:
    """How a draft fits its target, without the differences."""
    return next((str(kind) for kind in FitKind if vocabulary.startswith(kind)), vocabulary)


def full_words(info: ModelInfo, *more: str) -> str:
    """What the tooltip of a chip says besides the name."""
    parts = (info.quantisation, *more, describe_file(info.path), file_size(info.size))
    return " · ".join(part for part in parts if part)


def pair_words(pair: PairInfo) -> str:
    """The models of a pair beside each other, with their quantisation: names alone may be equal."""
    models = filter(None, (pair.target, pair.draft))
    return " ← ".join(f"{model.name} {model.quantisation}".strip() for model in models)


def chip_words(info: ModelInfo) -> tuple[str, str]:
    """Value and detail of a model's chip, such as ("demo 32M", "Q8_0")."""
    size = parameters(info.n_params)
    # Many names contain the size already.
    tells_size = size.upper() in re.split(r"[\s_-]+", info.name.upper())
    return (info.name if tells_size else f"{info.name} {size}"), info.quantisation
