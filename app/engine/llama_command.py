"""The llama.cpp command line of a setting, and what of it llama.cpp cannot do.

Flags are those of the built-in version's common/arg.cpp.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from app.engine.params import params_of
from app.engine.strategy import StrategyPart, StrategySpec
from app.engine.types import LengthRule, ModelOptions, Sampling, Verification

_TYPES = {"draft-simple", "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"}
_OWN_KEYS = {"sample": "drafting by sampling", "replace": "drafting through text"}
_FLAGS = {"lookup_cache_static": "--lookup-cache-static", "lookup_cache_dynamic": "--lookup-cache-dynamic"}
_PREFIXES = {"draft-simple": "--spec-draft-"}
_SAMPLERS = "penalties;top_k;top_p;min_p;temperature"


@dataclass(frozen=True, slots=True)
class LlamaCommand:
    """A command to copy, and one sentence for everything that it does otherwise."""

    text: str
    differences: tuple[str, ...] = ()


def llama_command(
    spec: StrategySpec,
    target: ModelOptions,
    draft: ModelOptions | None,
    sampling: Sampling,
    max_tokens: int,
) -> LlamaCommand:
    """The `llama-server` that comes nearest to these settings.

    All sampling settings are written out: llama.cpp's own defaults differ.
    """
    known = [part for part in spec.parts if part.name in _TYPES]
    words = ["llama-server", "--model", target.path]
    if spec.needs_draft and draft is not None:
        words += ["--model-draft", draft.path]
    words += _load_flags(target, "")
    if spec.needs_draft and draft is not None:
        words += _load_flags(draft, "-draft")
    if known:
        words += ["--spec-type", ",".join(part.name for part in known)]
    for part in known:
        words += _strategy_flags(part)
    words += ["--samplers", _SAMPLERS, "--temp", _number(sampling.temperature)]
    words += ["--top-k", str(sampling.top_k), "--top-p", _number(sampling.top_p)]
    words += ["--min-p", _number(sampling.min_p)]
    if sampling.repeat_penalty != 1:
        words += ["--repeat-penalty", _number(sampling.repeat_penalty)]
        words += ["--repeat-last-n", str(sampling.repeat_last_n)]
    if sampling.seed >= 0:
        words += ["--seed", str(sampling.seed)]
    words += ["--predict", str(max_tokens)]
    return LlamaCommand(shlex.join(words), tuple(_differences(spec, sampling)))


def _load_flags(options: ModelOptions, whose: str) -> list[str]:
    """Where a setting differs from its default; `whose` is "" or "-draft"."""
    words: list[str] = []
    for one in params_of(ModelOptions):
        value = getattr(options, one.name)
        if value == one.default or (whose and one.name not in _DRAFT_SETTINGS):
            continue
        flag = "--" + one.name.replace("_", "-")
        if one.kind is not bool:
            words += [flag + whose, one.format(value)]
        elif value:
            words.append(flag)
        else:
            words.append(f"--no-{flag[2:]}")
    return words


_DRAFT_SETTINGS = ("threads", "threads_batch", "n_gpu_layers", "cache_type_k", "cache_type_v")


def _strategy_flags(part: StrategyPart) -> list[str]:
    words: list[str] = []
    prefix = _PREFIXES.get(part.name, f"--spec-{part.name}-")
    for one in params_of(type(part.params)):
        value = getattr(part.params, one.name)
        if value != one.default and one.name not in _OWN_KEYS:
            flag = _FLAGS.get(one.name, prefix + one.name.replace("_", "-"))
            words += [flag, one.format(value)]
    return words


def _differences(spec: StrategySpec, sampling: Sampling) -> Iterator[str]:
    for part in spec.parts:
        if part.name not in _TYPES:
            yield f"llama.cpp has no {part.name}: it is left out."
            continue
        for key, what in _OWN_KEYS.items():
            if getattr(part.params, key, False):
                yield f"llama.cpp has no {what}: {key} is left out."
    rule = spec.verification_at(sampling.temperature)
    if spec.parts and sampling.temperature > 0 and rule is not Verification.MATCH:
        yield f"llama.cpp verifies by drawing from the target and comparing (match), not by {rule}."
    if spec.length is not LengthRule.FIXED:
        yield f"llama.cpp's draft length is fixed: length={spec.length} is left out."


def _number(value: float) -> str:
    return f"{value:g}"
