"""The command lines of llama.cpp and vLLM for given settings, and the settings that they cannot follow.

Flags are those of the built-in version's common/arg.cpp. If its defaults differ from ours, the flag is
written even if nothing was changed.

Flags and keys are those of vLLM's documentation ("Speculative Decoding", "GGUF")."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from app.engine.compat import HEAD_STRATEGIES
from app.engine.devices.memory import threads_for
from app.engine.drafters.registry import KINDS
from app.engine.lengths.base import Fixed
from app.engine.params import Param, params_of
from app.engine.sampling.dry import NO_BREAKER
from app.engine.strategy import StrategyPart, StrategySpec
from app.engine.templates.options import SWITCHES, TemplateOptions, TemplateValue, Thinking
from app.engine.types import DEFAULT_CTX, ModelOptions, Sampling

_SAMPLERS = "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"
_PENALTIES = ("repeat_penalty", "frequency_penalty", "presence_penalty")
_DRY = ("dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breaker")
_RARER = (*_PENALTIES, *_DRY, "top_n_sigma", "typical_p", "xtc_probability", "xtc_threshold")
"""Sampler settings with the same default in llama.cpp: written only if changed."""
_LAST_N = ("repeat_last_n", "dry_penalty_last_n")
_TARGET_WRITTEN = ("ctx_size", "threads", "n_gpu_layers", "swa_full", "mtp")  # --spec-type says mtp
_DRAFT_CHANGES = ("cache_type_k", "cache_type_v", "device", "cpu_moe", "n_cpu_moe")
_DRAFT_FLAGS = ("threads", "threads_batch", "n_gpu_layers", *_DRAFT_CHANGES)
_CACHED = re.compile(r"/models--(?P<repo>[^/]+)/snapshots/[0-9a-f]{40}/(?P<file>.+\.gguf)$")
_TAG = re.compile(r"[-.]((?:UD-)?(?:I?Q|T?Q|B?F)\d\w*)(?:-\d{5}-of-\d{5})?\.gguf$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CopiedCommand:
    """A command to copy, and a sentence for each difference to Draftscope."""

    text: str
    differences: tuple[str, ...] = ()


def llama_command(
    spec: StrategySpec,
    target: ModelOptions,
    draft: ModelOptions | None,
    sampling: Sampling,
    max_tokens: int,
    n_ctx: int = 0,
    template_options: Mapping[str, TemplateValue] | None = None,
    draft_kind: str = "",
) -> CopiedCommand:
    """The `llama-server` command that comes closest to these settings, on this machine.

    `n_ctx` is the target's context as loaded, 0 if not known. llama-server limits a context to the trained
    length, but takes memory for the whole flag. `template_options` are those of `template_kwargs`.
    `draft_kind` is the draft's architecture as loaded, because an MTP head may be a separate file.
    """
    if not spec.needs_draft and HEAD_STRATEGIES.get(draft_kind) not in [part.name for part in spec.parts]:
        draft = None
    sizes = [size for size in (target.ctx_size, n_ctx) if size]  # a file may have been trained with less
    n_ctx = min(sizes, default=DEFAULT_CTX)
    known = [part for part in spec.parts if KINDS[part.name].llama is not None]
    words = ["llama-server", *_target_file(target.path)]
    if draft is not None:
        words += _draft_file(draft.path)
    words += _target_flags(target, n_ctx)
    if draft is not None:
        words += _draft_flags(draft)
    if known:
        words += ["--spec-type", ",".join(part.name for part in known)]
    for part in known:
        words += _strategy_flags(part)
    words += ["--samplers", _SAMPLERS, "--temp", f"{sampling.temperature:g}"]
    words += ["--top-k", str(sampling.top_k), "--top-p", f"{sampling.top_p:g}"]
    words += ["--min-p", f"{sampling.min_p:g}"]
    words += _rarer_flags(sampling, n_ctx)
    if sampling.seed >= 0:
        words += ["--seed", str(sampling.seed)]
    words += ["--predict", str(max_tokens)]
    if template_options:
        words += ["--chat-template-kwargs", msgspec.json.encode(template_options).decode()]
    differences = [*_strategy_differences(spec, sampling)]
    if draft is not None:
        differences += _draft_differences(target, draft)
    return CopiedCommand(shlex.join(words), tuple(differences))


def of_the_hub(path: str) -> tuple[str, str] | None:
    """Repository and file of a path in the Hugging Face cache, which llama.cpp shares; None for any other."""
    found = _CACHED.search(path.replace("\\", "/"))
    return (found["repo"].replace("--", "/"), found["file"]) if found else None


def _target_file(path: str) -> list[str]:
    source = of_the_hub(path)
    if source is None:
        return ["--model", path]
    return ["--hf-repo", source[0], "--hf-file", source[1], "--no-mmproj"]


def _draft_file(path: str) -> list[str]:
    """The draft's repository and tag. llama.cpp has no --hf-file for the draft: it takes the first file whose
    name contains the tag."""
    source = of_the_hub(path)
    if source is None:
        return ["--model-draft", path]
    return ["--hf-repo-draft", f"{source[0]}:{tag_of(source[1]) or source[1].removesuffix('.gguf')}"]


def tag_of(file: str) -> str:
    """The quantisation in a file's name, "" if it has none."""
    tag = _TAG.search(file)
    return tag[1] if tag else ""


def _rarer_flags(sampling: Sampling, n_ctx: int) -> list[str]:
    values = {param: getattr(sampling, param.name) for param in params_of(Sampling)}
    changed = {
        param.name for param, value in values.items() if param.name in _RARER and value != param.default
    }
    if not changed.isdisjoint(_PENALTIES):
        changed.add("repeat_last_n")
    words: list[str] = []
    for param, value in values.items():
        if param.name in changed:
            whole = param.name in _LAST_N and value < 0  # llama-server needs a number of tokens
            text = str(n_ctx) if whole else param.format(value)
            for word in (text.split() or [NO_BREAKER]) if param.words else [text]:
                words += ["--" + param.name.replace("_", "-"), word]
    return words


def template_kwargs(options: Mapping[str, TemplateValue], thinking: Thinking | None) -> TemplateOptions:
    """The chat template options with which llama.cpp makes the same prompt as here.

    `thinking` describes the template's thinking options, None if not known.
    """
    told = dict(options)
    if thinking is not None:
        told = {name: value for name, value in told.items() if name not in SWITCHES or name in thinking.names}
        # llama.cpp turns thinking on for every template; by default some templates have it off.
        if SWITCHES[0] in thinking.names and not thinking.is_on(told):
            told[SWITCHES[0]] = False
    return told


def _target_flags(options: ModelOptions, n_ctx: int) -> list[str]:
    """Flags for one slot that leave nothing for llama-server to choose by free memory."""
    words = ["--ctx-size", str(n_ctx), "--parallel", "1", "--fit", "off"]
    words += ["--threads", str(options.threads or threads_for(options.path))]
    words += ["--n-gpu-layers", _layers(options)]
    if options.swa_full:
        words.append("--swa-full")
    for param in params_of(ModelOptions):
        if param.name not in _TARGET_WRITTEN:
            words += _changed(options, param, "")
    return words


def _draft_flags(options: ModelOptions) -> list[str]:
    threads = options.threads or threads_for(options.path)
    words = ["--threads-draft", str(threads)]
    # llama.cpp's default is the target's value.
    words += ["--threads-batch-draft", str(options.threads_batch or threads)]
    words += ["--n-gpu-layers-draft", _layers(options)]
    for param in params_of(ModelOptions):
        if param.name in _DRAFT_CHANGES:
            words += _changed(options, param, "-draft")
    return words


def _layers(options: ModelOptions) -> str:
    """`all` instead of -1, which in llama.cpp means "as many as fit"."""
    return "all" if options.n_gpu_layers < 0 else str(options.n_gpu_layers)


def _changed(options: ModelOptions, param: Param, whose: str) -> list[str]:
    """The flag of a setting with the same default in llama.cpp, if changed; `whose` is "" or "-draft"."""
    value = getattr(options, param.name)
    if value == param.default:
        return []
    flag = param.name.replace("_", "-") + whose
    if param.kind is bool:
        return [f"--{flag}" if value else f"--no-{flag}"]
    return [f"--{flag}", param.format(value)]


def _strategy_flags(part: StrategyPart) -> list[str]:
    words: list[str] = []
    flags = KINDS[part.name].llama
    for param in params_of(type(part.params)) if flags is not None else ():
        value = getattr(part.params, param.name)
        if flags is not None and value != param.default and param.name not in flags.own:
            words += [flags.flag(param.name), param.format(value)]
    return words


def _strategy_differences(spec: StrategySpec, sampling: Sampling) -> Iterator[str]:
    for part in spec.parts:
        flags = KINDS[part.name].llama
        if flags is None:
            yield f"llama.cpp has no {part.name}: it is left out."
            continue
        changed = {
            param.name
            for param in params_of(type(part.params))
            if getattr(part.params, param.name) != param.default
        }
        yield from (f"{what}: {key} is left out." for key, what in flags.own.items() if key in changed)
        yield from (note for key, note in flags.notes.items() if key in changed)
    if sampling.top_n_sigma > 0 and sampling.typical_p < 1:
        yield "llama.cpp's typical_p computes with -inf after top_n_sigma, so it keeps different tokens."
    rule = spec.verification_at(sampling.temperature)
    if spec.parts and sampling.temperature > 0 and not rule.in_llama_cpp:
        yield f"llama.cpp verifies by drawing from the target and comparing (match), not by {rule}."
    if spec.length != Fixed():
        yield f"llama.cpp's draft length is fixed: length={spec.length.name} is left out."


def _draft_differences(target: ModelOptions, draft: ModelOptions) -> Iterator[str]:
    """llama-server loads the draft with the target's options, except those with their own flag."""
    shared = [param.name for param in params_of(ModelOptions) if param.name not in (*_DRAFT_FLAGS, "mtp")]
    lost = [name for name in shared if getattr(draft, name) != getattr(target, name)]
    if not draft.ctx_size and "ctx_size" in lost:
        lost.remove("ctx_size")  # the target's size, here too
    if lost:
        yield f"llama.cpp loads the draft with the target's options, without its own {', '.join(lost)}."
    if target.device and not draft.device:
        yield "llama.cpp puts the draft on the target's devices, not on all of them."


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
    part = next((part for part in spec.parts if KINDS[part.name].vllm is not None), None)
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
    """The defaults of requests."""
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
    """The keys of --speculative-config. The draft is on one device: several would wait for each other at
    every token."""
    kind = KINDS[part.name]
    assert kind.vllm is not None
    yield "method", kind.vllm.name
    if kind.needs_draft and draft is not None:
        yield "model", _file(draft.path)
    for key, ours in kind.vllm.keys.items():
        yield key, getattr(part.params, ours) if isinstance(ours, str) else ours
    if kind.needs_draft and devices > 1:
        yield "draft_tensor_parallel_size", 1
    if getattr(part.params, "sample", False):
        yield "draft_sample_method", "probabilistic"


def _differences(spec: StrategySpec, part: StrategyPart | None, sampling: Sampling) -> Iterator[str]:
    yield _FILES
    for other in spec.parts:
        if KINDS[other.name].is_head:
            yield f"vLLM loads no heads from GGUF files: {other.name} is left out."
        elif KINDS[other.name].vllm is None:
            yield f"vLLM has no {other.name}: it is left out."
        elif other is not part and part is not None:
            yield f"vLLM drafts by a single method: {other.name} is left out, {part.name} stays."
    method = KINDS[part.name].vllm if part is not None else None
    if part is not None and method is not None:
        for key in method.lacks:
            if getattr(part.params, key):
                yield f"vLLM always drafts num_speculative_tokens: {key} is left out."
    for name in _NOT_THERE:
        if getattr(sampling, name) != getattr(Sampling(), name):
            yield f"vLLM has no {name}: it is left out."
    if sampling.repeat_penalty != 1 and sampling.repeat_last_n >= 0:
        yield "vLLM's repetition_penalty counts the whole text, not the last repeat_last_n tokens."
    rule = spec.verification_at(sampling.temperature)
    if part is not None and sampling.temperature > 0 and not rule.in_vllm:
        yield f"vLLM verifies by rejection sampling (speculative), not by {rule}."
    if spec.length != Fixed():
        yield f"vLLM's draft length is fixed: length={spec.length.name} is left out."
