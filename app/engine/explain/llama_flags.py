"""llama.cpp's flags: their names here, and all flags that its programs know.

They come from the built-in version's common/arg.cpp. The command line also accepts the names in `NAMES`, and
`server_command.py` reads commands with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NAMES = {
    "-m": "--target", "--model": "--target", "-hf": "--target", "-hfr": "--target", "--hf-repo": "--target",
    "-md": "--draft", "--model-draft": "--draft", "--spec-draft-model": "--draft",
    "-hfd": "--draft", "-hfrd": "--draft", "--hf-repo-draft": "--draft", "--spec-draft-hf": "--draft",
    "-p": "--prompt", "-f": "--prompt-file", "--file": "--prompt-file",
    "-n": "--max-tokens", "--predict": "--max-tokens", "--n-predict": "--max-tokens",
    "-r": "--stop", "--reverse-prompt": "--stop",
    "-s": "--seed", "--temp": "--temperature", "--typical": "--typical-p", "--top-nsigma": "--top-n-sigma",
    "-c": "--ctx-size", "-t": "--threads", "-tb": "--threads-batch", "-b": "--batch-size",
    "-ub": "--ubatch-size", "-ngl": "--n-gpu-layers", "--gpu-layers": "--n-gpu-layers",
    "-ctk": "--cache-type-k", "-ctv": "--cache-type-v", "-fa": "--flash-attn", "-dev": "--device",
    "-sm": "--split-mode", "-ts": "--tensor-split", "-mg": "--main-gpu", "-cmoe": "--cpu-moe",
    "-ncmoe": "--n-cpu-moe", "-nkvo": "--no-kv-offload", "-nr": "--no-repack", "-lm": "--load-mode",
    "-cd": "--ctx-size-draft", "-td": "--threads-draft", "--spec-draft-threads": "--threads-draft",
    "-tbd": "--threads-batch-draft", "--spec-draft-threads-batch": "--threads-batch-draft",
    "-ngld": "--n-gpu-layers-draft", "--gpu-layers-draft": "--n-gpu-layers-draft",
    "--spec-draft-ngl": "--n-gpu-layers-draft", "-devd": "--device-draft",
    "--spec-draft-device": "--device-draft", "-ctkd": "--cache-type-k-draft",
    "--spec-draft-type-k": "--cache-type-k-draft", "-ctvd": "--cache-type-v-draft",
    "--spec-draft-type-v": "--cache-type-v-draft", "-cmoed": "--cpu-moe-draft",
    "--spec-draft-cpu-moe": "--cpu-moe-draft", "-ncmoed": "--n-cpu-moe-draft",
    "--spec-draft-ncmoe": "--n-cpu-moe-draft", "--spec-draft-n-cpu-moe": "--n-cpu-moe-draft",
    "--draft-n": "--draft-max", "--spec-draft-n-max": "--draft-max",
    "--draft-n-min": "--draft-min", "--spec-draft-n-min": "--draft-min",
    "--spec-draft-p-min": "--draft-p-min", "-np": "--parallel",
    "-lcs": "--lookup-cache-static", "-lcd": "--lookup-cache-dynamic",
}  # fmt: skip
"""llama.cpp's name -> ours, where they differ."""
DRAFT_KEYS = {"--draft-max": "n_max", "--draft-min": "n_min", "--draft-p-min": "p_min"}
"""Flags of the draft's strategy, and the setting that each stands for."""


@dataclass(frozen=True, slots=True)
class LlamaPreset:
    """The models and settings that a single flag of llama.cpp stands for."""

    target: str
    draft: str = ""
    options: tuple[str, ...] = ()
    sampling: dict[str, str] = field(default_factory=dict)


def _coder(size: str, draft: str = "") -> LlamaPreset:
    def model(size: str) -> str:
        return f"ggml-org/Qwen2.5-Coder-{size}-Q8_0-GGUF/qwen2.5-coder-{size.lower()}-q8_0.gguf"

    return LlamaPreset(model(size), model(draft) if draft else "", _FIM)


_FIM = ("--batch-size", "1024", "--ubatch-size", "1024")
_GPT_OSS = {"temperature": "1", "top_p": "1", "top_k": "0", "min_p": "0.01"}
PRESETS = {
    "--fim-qwen-1.5b-default": _coder("1.5B"),
    "--fim-qwen-3b-default": _coder("3B"),
    "--fim-qwen-7b-default": _coder("7B"),
    "--fim-qwen-7b-spec": _coder("7B", "0.5B"),
    "--fim-qwen-14b-spec": _coder("14B", "0.5B"),
    "--fim-qwen-30b-default": LlamaPreset(
        "ggml-org/Qwen3-Coder-30B-A3B-Instruct-Q8_0-GGUF/qwen3-coder-30b-a3b-instruct-q8_0.gguf", "", _FIM
    ),
    "--gpt-oss-20b-default": LlamaPreset(
        "ggml-org/gpt-oss-20b-GGUF/gpt-oss-20b-mxfp4.gguf", sampling=_GPT_OSS
    ),
    "--gpt-oss-120b-default": LlamaPreset("ggml-org/gpt-oss-120b-GGUF", sampling=_GPT_OSS),
    "--vision-gemma-4b-default": LlamaPreset("ggml-org/gemma-3-4b-it-qat-GGUF"),
    "--vision-gemma-12b-default": LlamaPreset("ggml-org/gemma-3-12b-it-qat-GGUF"),
}
LAYERS = {"all": "-1", "auto": "-1"}
"""llama.cpp's words for numbers of layers -> our numbers."""

_EVERY = """
    --adaptive-decay --adaptive-target --backend-sampling --batch-size --cache-list --cache-type-k
    --cache-type-k-draft --cache-type-v --cache-type-v-draft --check-tensors --completion-bash
    --control-vector --control-vector-layer-range --control-vector-scaled --cpu-mask --cpu-mask-batch
    --cpu-mask-batch-draft --cpu-mask-draft --cpu-moe --cpu-moe-draft --cpu-range --cpu-range-batch
    --cpu-range-draft --cpu-strict --cpu-strict-batch --cpu-strict-batch-draft --cpu-strict-draft
    --ctx-size --defrag-thold --device --device-draft --docker-repo --draft --draft-max --draft-min
    --draft-n --draft-n-min --draft-p-min --draft-p-split --dry-allowed-length --dry-base
    --dry-multiplier --dry-penalty-last-n --dry-sequence-breaker --dynatemp-exp --dynatemp-range --escape
    --fit --fit-ctx --fit-target --flash-attn --frequency-penalty --gpu-layers --gpu-layers-draft
    --grammar --grammar-file --help --hf-file --hf-repo --hf-repo-draft --hf-token --ignore-eos
    --json-schema --json-schema-file --keep --kv-offload --lazy-mode --list-devices --load-mode
    --log-colors --log-disable --log-file --log-jsonl --log-prefix --log-timestamps --log-verbose
    --log-verbosity --logit-bias --lora --lora-scaled --main-gpu --min-p --mirostat --mirostat-ent
    --mirostat-lr --model --model-draft --model-url --n-cpu-ffn --n-cpu-moe --n-cpu-moe-draft
    --n-gpu-layers --n-gpu-layers-draft --n-predict --no-escape --no-host --no-kv-offload --no-log-jsonl
    --no-log-prefix --no-log-timestamps --no-op-offload --no-perf --no-repack
    --no-spec-draft-backend-sampling --numa --offline --op-offload --override-kv --override-tensor
    --override-tensor-draft --parallel --perf --poll --poll-batch --poll-batch-draft --poll-draft
    --predict --presence-penalty --prio --prio-batch --prio-batch-draft --prio-draft --repack
    --repeat-last-n --repeat-penalty --rope-freq-base --rope-freq-scale --rope-scale --rope-scaling --rpc
    --sampler-seq --samplers --sampling-seq --seed --spec-draft-backend-sampling --spec-draft-cpu-mask
    --spec-draft-cpu-mask-batch --spec-draft-cpu-moe --spec-draft-cpu-range --spec-draft-cpu-strict
    --spec-draft-cpu-strict-batch --spec-draft-device --spec-draft-hf --spec-draft-model
    --spec-draft-n-cpu-moe --spec-draft-n-max --spec-draft-n-min --spec-draft-ncmoe --spec-draft-ngl
    --spec-draft-override-tensor --spec-draft-p-min --spec-draft-p-split --spec-draft-poll
    --spec-draft-poll-batch --spec-draft-prio --spec-draft-prio-batch --spec-draft-threads
    --spec-draft-threads-batch --spec-draft-type-k --spec-draft-type-v --spec-ngram-map-k-min-hits
    --spec-ngram-map-k-size-m --spec-ngram-map-k-size-n --spec-ngram-map-k4v-min-hits
    --spec-ngram-map-k4v-size-m --spec-ngram-map-k4v-size-n --spec-ngram-mod-n-match
    --spec-ngram-mod-n-max --spec-ngram-mod-n-min --spec-ngram-simple-min-hits --spec-ngram-simple-size-m
    --spec-ngram-simple-size-n --spec-type --split-mode --swa-full --temp --temperature --tensor-split
    --threads --threads-batch --threads-batch-draft --threads-draft --top-k --top-n-sigma --top-nsigma
    --top-p --typical --typical-p --ubatch-size --usage --verbose --verbosity --version --xtc-probability
    --xtc-threshold --yarn-attn-factor --yarn-beta-fast --yarn-beta-slow --yarn-ext-factor
    --yarn-orig-ctx -C -Cb -Cbd -Cd -Cr -Crb -Crd -b -bs -c -cl -cmoe -cmoed -ctk -ctkd -ctv -ctvd -dev
    -devd -dr -dt -e -fa -fit -fitc -fitt -h -hf -hfd -hff -hfr -hfrd -hft -j -jf -kvo -l -lm -lv -lzm -m
    -md -mg -mu -n -ncffn -ncmoe -ncmoed -ngl -ngld -nkvo -np -nr -ot -otd -s -sm -t -tb -tbd -td -ts -ub
    -v
"""  # of all three programs
_CHAT = """
    --cache-ram --chat-template --chat-template-file --chat-template-kwargs --context-shift
    --ctx-checkpoints --gpt-oss-120b-default --gpt-oss-20b-default --image-max-tokens --image-min-tokens
    --jinja --log-prompts-dir --mmproj --mmproj-auto --mmproj-device --mmproj-offload --mmproj-url
    --no-context-shift --no-jinja --no-mmproj --no-mmproj-auto --no-mmproj-offload
    --no-reasoning-preserve --no-skip-chat-parsing --no-warmup --reasoning --reasoning-budget
    --reasoning-budget-message --reasoning-effort --reasoning-format --reasoning-preserve
    --reverse-prompt --skip-chat-parsing --spec-default --spec-synth-len --spec-synth-rates --special
    --swa-checkpoints --video-ffmpeg-dir --video-fps --video-timestamp-interval
    --vision-gemma-12b-default --vision-gemma-4b-default --warmup -cram -ctxcp -mm -mmdev -mmu -r -rea
    -sp
"""  # of llama-server and llama-cli
_SERVER = """
    --agent --alias --api-key --api-key-file --api-prefix --cache-idle-slots --cache-prompt --cache-reuse
    --checkpoint-min-step --cont-batching --cors-credentials --cors-headers --cors-methods --cors-origins
    --embd-gemma-default --embd-normalize --embedding --embeddings --fim-qwen-1.5b-default
    --fim-qwen-14b-spec --fim-qwen-30b-default --fim-qwen-3b-default --fim-qwen-7b-default
    --fim-qwen-7b-spec --host --kv-unified --kv-unified-per-slot --lookup-cache-dynamic
    --lookup-cache-static --lora-init-without-apply --mcp-servers-config --mcp-servers-json --media-path
    --metrics --models-autoload --models-dir --models-max --models-preset --mtmd-batch-max-tokens
    --no-agent --no-cache-idle-slots --no-cache-prompt --no-cont-batching --no-cors-credentials
    --no-kv-unified --no-models-autoload --no-prefill-assistant --no-slots --no-ui --no-ui-mcp-proxy
    --no-webui --no-webui-mcp-proxy --path --pooling --port --prefill-assistant --props --rerank
    --reranking --reuse-port --sleep-idle-seconds --slot-prompt-similarity --slot-save-path --slots
    --spec-ngram-min-hits --spec-ngram-size-m --spec-ngram-size-n --spm-infill --sse-ping-interval
    --ssl-cert-file --ssl-key-file --tags --threads-http --timeout --tools --tools-runtime --ui
    --ui-config --ui-config-file --ui-mcp-proxy --webui --webui-config --webui-config-file
    --webui-mcp-proxy -a -ag -cb -cms -kvu -lcd -lcs -no-ag -no-kvu -nocb -sps -to
"""
_CLI = """
    --audio --display-prompt --image --multiline-input --no-display-prompt --no-show-timings --output
    --output-file --server-base --show-timings --simple-io --single-turn --system-prompt
    --system-prompt-file --verbose-prompt --video -mli -o -st -sys -sysf
"""
_TEXT = """
    --binary-file --color --file --prompt -bf -co -f -p
"""  # of llama-cli and llama-speculative
_KNOWN = {
    program: frozenset(" ".join(blocks).split())
    for program, blocks in (
        ("llama-server", (_EVERY, _CHAT, _SERVER)),
        ("llama-cli", (_EVERY, _CHAT, _CLI, _TEXT)),
        ("llama-speculative", (_EVERY, _TEXT)),
        ("llama-speculative-simple", (_EVERY, _TEXT)),
    )
}
PROGRAMS = tuple(_KNOWN)
"""The programs of llama.cpp that draft."""


def other_names(flag: str) -> list[str]:
    """llama.cpp's other names for a flag of ours, the short ones first."""
    names = [name for name, ours in NAMES.items() if ours == flag]
    return sorted(names, key=lambda name: name.startswith("--"))


def known_flags(program: str) -> frozenset[str]:
    """The flags that a program of the built-in llama.cpp knows, including removed ones."""
    return _KNOWN[program]
