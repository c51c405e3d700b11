"""The vLLM command line for given settings, and the settings that vLLM cannot follow.

Flags and keys are those of vLLM's documentation ("Speculative Decoding", "GGUF").
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from app.engine.explain.llama_command import CopiedCommand, of_the_hub, tag_of
from app.engine.strategy import StrategyPart, StrategySpec
from app.engine.types import DEFAULT_CTX, LengthRule, ModelOptions, Sampling, Verification

_METHODS = {
    "prompt-lookup": "ngram",
    "ngram-simple": "ngram",
    "suffix": "suffix",
    "draft-simple": "draft_model",
}
_SAMPLING = (
    "temperature", "top_k", "top_p", "min_p", "frequency_penalty", "presence_penalty",
)  # fmt: skip
_NOT_THERE = ("typical_p", "top_n_sigma", "xtc_probability", "dry_multiplier")
_FILES = (
    "vLLM reads GGUF files through its plug-in vllm-gguf-plugin; give --tokenizer the original model's "
    "repository."
)


def vllm_command(
    spec: StrategySpec,
    target: ModelOptions,
    draft: ModelOptions | None,
    sampling: Sampling,
    max_tokens: int,
    n_ctx: int = 0,
) -> CopiedCommand:
    """The `vllm serve` command that comes closest to these settings.

    `n_ctx` is the target's context as loaded, 0 if not known.
    """
    part = next((part for part in spec.parts if part.name in _METHODS), None)
    sizes = [size for size in (target.ctx_size, n_ctx) if size]
    words = ["vllm", "serve", _file(target.path), "--max-model-len", str(min(sizes, default=DEFAULT_CTX))]
    devices = len([name for name in target.device.split(",") if name.strip()])
    if devices > 1:
        words += ["--tensor-parallel-size", str(devices)]
    if part is not None:
        config = dict(_config(part, draft, devices))
        words += ["--speculative-config", json.dumps(config)]
    if sampling.seed >= 0:
        words += ["--seed", str(sampling.seed)]
    words += ["--generation-config", "vllm"]  # not what the model's repository recommends
    words += ["--override-generation-config", _generation(sampling, max_tokens)]
    return CopiedCommand(shlex.join(words), tuple(_differences(spec, part, sampling)))


def _file(path: str) -> str:
    """A file, or the repository and quantisation that it came from."""
    source = of_the_hub(path)
    if source is None:
        return path
    tag = tag_of(source[1])
    return f"{source[0]}:{tag}" if tag else source[0]


def _generation(sampling: Sampling, max_tokens: int) -> str:
    """What holds for requests that say nothing else."""
    told: dict[str, float] = {name: getattr(sampling, name) for name in _SAMPLING}
    if sampling.repeat_penalty != 1:
        told["repetition_penalty"] = sampling.repeat_penalty
    for name in ("frequency_penalty", "presence_penalty"):
        if not told[name]:
            del told[name]
    return json.dumps(told | {"max_new_tokens": max_tokens})


def _config(
    part: StrategyPart, draft: ModelOptions | None, devices: int
) -> Iterator[tuple[str, str | int | float]]:
    """The keys of --speculative-config. A draft on several devices would wait for them at every token."""
    params = part.params
    yield "method", _METHODS[part.name]
    match part.name:
        case "prompt-lookup":
            yield "num_speculative_tokens", params.num_pred_tokens
            yield "prompt_lookup_max", params.max_ngram_size
            yield "prompt_lookup_min", 1
        case "ngram-simple":
            yield "num_speculative_tokens", params.size_m
            yield "prompt_lookup_max", params.size_n
            yield "prompt_lookup_min", params.size_n
        case "suffix":
            yield "num_speculative_tokens", params.n_max
            yield "suffix_decoding_max_tree_depth", params.max_depth
            yield "suffix_decoding_max_spec_factor", params.max_spec_factor
            yield "suffix_decoding_min_token_prob", params.p_min
        case _:
            if draft is not None:
                yield "model", _file(draft.path)
            yield "num_speculative_tokens", params.n_max
            if devices > 1:
                yield "draft_tensor_parallel_size", 1
            if params.sample:
                yield "draft_sample_method", "probabilistic"


def _differences(spec: StrategySpec, part: StrategyPart | None, sampling: Sampling) -> Iterator[str]:
    yield _FILES
    for other in spec.parts:
        if other.name not in _METHODS:
            yield f"vLLM has no {other.name}: it is left out."
        elif other is not part and part is not None:
            yield f"vLLM drafts by a single method: {other.name} is left out, {part.name} stays."
    if part is not None and part.name == "draft-simple":
        for key in ("n_min", "p_min"):
            if getattr(part.params, key):
                yield f"vLLM always drafts num_speculative_tokens: {key} is left out."
    for name in _NOT_THERE:
        if getattr(sampling, name) != getattr(Sampling(), name):
            yield f"vLLM has no {name}: it is left out."
    if sampling.repeat_penalty != 1 and sampling.repeat_last_n >= 0:
        yield "vLLM's repetition_penalty counts the whole text, not the last repeat_last_n tokens."
    rule = spec.verification_at(sampling.temperature)
    if part is not None and sampling.temperature > 0 and rule is not Verification.SPECULATIVE:
        yield f"vLLM verifies by rejection sampling (speculative), not by {rule}."
    if spec.length is not LengthRule.FIXED:
        yield f"vLLM's draft length is fixed: length={spec.length} is left out."
