"""Numbers, times, models and the ends of drafts as the window writes them.

A no-break space is before each unit, so a line never ends between a number and its unit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import datetime

from app.base import numbers
from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET, OWN, REAL_DRAFT, REAL_TARGET
from app.demo import REAL_PAIR, SMALL_PAIR
from app.engine.compat import FitKind
from app.engine.types import ModelInfo, PairInfo, Role


def end_words(end: str) -> str:
    """A round's reason in words. If a setting ended the draft, the drafter gives only its name."""
    return "; ".join(_words(reason) for reason in end.split("; "))


def _words(end: str) -> str:
    if end == "p_min":
        return "below p_min"
    is_setting = "_" in end and end.isidentifier()
    return f"at {end}" if is_setting else end


def file_name(path: str) -> str:
    """The last part of a path of any system."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def unread_name(path: str) -> str:
    """The name of a model whose file has not been read, from its path as the settings have it."""
    if path == REAL_TARGET:
        return REAL_PAIR.name
    if path == REAL_DRAFT:
        return f"EAGLE-3 head for {REAL_PAIR.name}"
    bundled = path in (BUNDLED_TARGET, BUNDLED_DRAFT)
    return SMALL_PAIR.name if bundled else file_name(path).removesuffix(".gguf")


def own_words(path: str) -> str:
    """What a model of our own is for, by its path as the settings have it; "" for others."""
    pair = REAL_PAIR if path in (REAL_TARGET, REAL_DRAFT) else SMALL_PAIR
    return f"{pair.name}, {pair.words}" if path.startswith(OWN) else ""


def parameters(count: int) -> str:
    """A number of parameters as model names have it: 1.4M, 32M, 7.2B."""
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if count >= size:
            value = count / size
            return f"{value:.0f}{letter}" if value >= 9.95 else f"{value:.1f}{letter}"
    return str(count)


def describe_model(info: ModelInfo) -> str:
    """What the file contains."""
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
    """What computes the answers: threads and devices, or a server, whose threads and devices are unknown."""
    if pair.server is not None:
        return pair.server.kind, pair.server.address.partition("://")[2]
    threads = pair.target.threads
    return f"{threads} thread{'s' * (threads != 1)}", pair.devices


def load_warning(info: ModelInfo, role: Role) -> str:
    """What is wrong with the way it is loaded; "" for nothing."""
    if info.n_ctx <= info.n_ctx_train:
        return ""
    return (
        f"The context is longer than the {info.n_ctx_train:,} tokens the model was trained on: "
        f"{'expect nonsense' if role is Role.TARGET else 'few of its tokens will be accepted'} beyond those."
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
    """The models of a pair with their quantisation, since their names may be equal."""
    models = filter(None, (pair.target, pair.draft))
    return " ← ".join(f"{model.name} {model.quantisation}".strip() for model in models)


def chip_words(info: ModelInfo) -> tuple[str, str]:
    """Value and detail of a model's chip, such as ("demo 32M", "Q8_0")."""
    size = parameters(info.n_params)
    # Many names contain the size already.
    tells_size = size.upper() in re.split(r"[\s_-]+", info.name.upper())
    return (info.name if tells_size else f"{info.name} {size}"), info.quantisation


NONE, significant = numbers.NONE, numbers.significant
SPACE = "\N{NO-BREAK SPACE}"


def whole(text: str) -> str:
    """A text on one line."""
    return text.replace(" ", SPACE)


def dotted(parts: Iterable[str]) -> str:
    """Parts with dots between them. A line may end after a dot, not before it."""
    return f"{SPACE}· ".join(filter(None, parts))


def count(value: int | None) -> str:
    """A number of things: 2,048."""
    return NONE if value is None else f"{value:,}"


def ratio(value: float | None) -> str:
    """A share or rate in [0, 1], always with the same width: 0.812, 1.000."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:.3f}"


def probability(value: float | None) -> str:
    """Like `ratio`, but a value above zero never reads as zero, nor one below one as one."""
    if value is None or not math.isfinite(value):
        return NONE
    if 0 < value < 0.0005:
        return "<.001"
    if 0.9995 <= value < 1:
        return ">.999"
    return f"{value:.3f}"


def percent(value: float | None) -> str:
    """A share as whole percent: 43 %."""
    return numbers.percent(value, 0)


def factor(value: float | None) -> str:
    """How many times as much: 1.42×."""
    shown = significant(value)
    return shown if shown == NONE else f"{shown}×"


def per_second(value: float | None) -> str:
    """A rate in tokens: 214 tok/s."""
    shown = significant(value)
    return shown if shown == NONE else f"{shown}{SPACE}tok/s"


def duration(seconds: float | None) -> str:
    """A time in the unit that fits: 85.0 µs, 1.10 ms, 231 ms, 4.20 s, 2 min 03 s."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds == 0:
        return f"0.00{SPACE}ms"
    if round(seconds) >= 120:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes:,}{SPACE}min{SPACE}{rest:02d}{SPACE}s"
    rounded = abs(float(f"{seconds:.2e}"))  # so that 0.9996 s reads 1.00 s, not 1,000 ms
    if rounded < 1e-3:
        return f"{significant(seconds * 1e6)}{SPACE}µs"
    if rounded < 1:
        return f"{significant(seconds * 1e3)}{SPACE}ms"
    return f"{significant(seconds)}{SPACE}s"


def file_size(size: float) -> str:
    """Bytes in the unit that fits: 34.1 MB, 4.37 GB."""
    return numbers.file_size(size).replace(" ", SPACE)


# Not strftime: its names follow the system's language, and nothing else here does.
MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"


def relative_time(then: datetime, now: datetime) -> str:
    """Such as "now", "5 min", "3 h", "yesterday", "4 d", "12 Mar", "12 Mar 2024".

    Both times carry their zone; days are those of the zone of `now`.
    """
    then = then.astimezone(now.tzinfo)
    seconds = (now - then).total_seconds()
    if seconds < 60:  # a clock that was set back makes it negative
        return "now"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min"
    days = (now.date() - then.date()).days
    if days == 0 or seconds < 12 * 3600:
        return f"{seconds // 3600:.0f} h"
    if days == 1:
        return "yesterday"
    if days < 7:
        return f"{days} d"
    month = MONTHS[3 * (then.month - 1) : 3 * then.month]
    year = f" {then.year}" if then.year != now.year else ""
    return f"{then.day} {month}{year}"
