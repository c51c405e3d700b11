"""Tiny real GGUF files with random weights, made in milliseconds, loaded by the real llama.cpp."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

from tests.files.tokenizer_keys import graft, token_count

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
THINKING_TEMPLATE = (  # as Qwen3's: thinking is on by default
    CHAT_TEMPLATE.removesuffix("{% endif %}")
    + "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"
    "{% endif %}"
)
EFFORT_TEMPLATE = (  # as gpt-oss's
    "{% if reasoning_effort is not defined %}{% set reasoning_effort = 'medium' %}{% endif %}"
    "Reasoning: {{ reasoning_effort + '' }}\n" + CHAT_TEMPLATE
)
CONTROL = ("<|end|>", "<|im_start|>", "<|im_end|>")

HYBRID = ("lfm2", "qwen35")
WINDOWED = ("step35", "gemma4", "gemma4-assistant")
ASSISTANT = "gemma4-assistant"
STATE_SIZE = 8  # mamba's state
CONV_SIZE = 3  # the short convolutions of mamba and lfm2


@dataclass(frozen=True)
class Tiny:
    """What to make. Weights depend on the seed; `scale` sharpens the distributions.

    Architectures: "llama" (a plain KV cache), "gemma3" (every other layer has a sliding window), "mamba"
    (recurrent), "lfm2" and "qwen35" (hybrid: one recurrent layer, one with a KV cache), "llada" (no memory
    at all), "step35" and "gemma4" (sliding windows again); heads: "eagle3", "dflash", "gemma4-assistant".
    """

    seed: int = 0
    n_layers: int = 2
    n_embd: int = 64
    n_heads: int = 4
    n_ff: int = 96
    n_ctx: int = 512
    scale: float = 1.0
    noise_seed: int = 0  # with `noise`: a model near the one of `seed`, as a draft is
    noise: float = 0.0
    letters: str = ""  # only these characters instead of all 256 bytes
    words: tuple[str, ...] = ()  # tokens of their own, merged from the left
    order: int = 0  # shuffles the vocabulary: the same model with other ids
    sentencepiece: bool = False  # instead of BPE: tokens are bytes and `words`, and texts begin with a space
    chain: tuple[str | int, ...] = ()  # weights that make each of these tokens (as the vocabulary spells
    # them, or ids) follow the one before, in a circle
    padding: int = 0  # unused tokens at the end of the vocabulary
    name: str = "tiny"
    architecture: str = "llama"
    window: int = 16  # tokens that a sliding window spans
    template: str = CHAT_TEMPLATE
    vocabulary: bool = True
    tokenizer_of: str = ""  # the file whose tokenizer and chat template this one has, instead of its own
    adds_bos: bool = False
    control: tuple[str, ...] = CONTROL  # the first three: end, BOS, end of turn
    broken: bool = False  # weights that make every logit "not a number"
    overflow: bool = False  # weights that make one logit infinite, another minus infinite
    eps: float = 1e-5  # below zero: llama.cpp aborts the process
    experts: int = 0
    experts_used: int = 0  # none: llama.cpp aborts the process
    reads: tuple[int, ...] = (0, 1)  # eagle3, dflash: the target's layers; eagle3 reads the last one twice
    target_width: int = 0  # eagle3: of its target's rows, whose embeddings and output it uses
    markov: bool = False  # dflash: what makes it a DSpark draft,
    confidence: bool = False  # and one that says how sure it is
    selector: bool = False  # dflash: what makes it a DFlash2 draft
    mtp: int = 0  # qwen35, step35: MTP heads behind the layers
    trunk: bool = True  # False: the head alone, in a file of its own


def byte_alphabet() -> list[str]:
    """GPT-2's printable spelling of the 256 bytes, by byte value."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelled = {}
    extra = 0
    for byte in range(256):
        if byte in printable:
            spelled[byte] = chr(byte)
        else:
            spelled[byte] = chr(256 + extra)
            extra += 1
    return [spelled[byte] for byte in range(256)]


def tokens_of(tiny: Tiny) -> tuple[list[str], list[int]]:
    """Token texts and their GGUF types."""
    if tiny.sentencepiece:
        words = [word.replace(" ", "▁") for word in tiny.words]
        texts = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
        kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.BYTE] * 256]
        texts += list(dict.fromkeys(word[:end] for word in words for end in range(1, len(word) + 1)))
        kinds += [gguf.TokenType.NORMAL] * (len(texts) - len(kinds))
    else:
        texts = list(tiny.letters) if tiny.letters else byte_alphabet()
        texts += ["".join(pair) for pair in _merges(tiny)]
        kinds = [gguf.TokenType.NORMAL] * len(texts)
    texts += tiny.control
    kinds += [gguf.TokenType.CONTROL] * len(tiny.control)
    texts += [f"<pad{i}>" for i in range(tiny.padding)]
    kinds += [gguf.TokenType.UNUSED] * tiny.padding
    order = _order(tiny, len(texts))
    return [texts[i] for i in order], [int(kinds[i]) for i in order]


def spelled(text: str) -> str:
    """A text as BPE vocabularies spell it."""
    alphabet = byte_alphabet()
    return "".join(alphabet[byte] for byte in text.encode())


def _merges(tiny: Tiny) -> list[tuple[str, str]]:
    pairs: dict[tuple[str, str], None] = {}  # in order, each once
    for word in map(spelled, tiny.words):
        for at in range(1, len(word)):
            pairs[word[:at], word[at]] = None
    return list(pairs)


def _order(tiny: Tiny, size: int) -> np.ndarray:
    return np.random.default_rng(tiny.order).permutation(size) if tiny.order else np.arange(size)


def write_tiny(path: Path, tiny: Tiny) -> Path:
    """Write the file and return its path."""
    writer = gguf.GGUFWriter(path, tiny.architecture)
    writer.add_name(tiny.name)
    writer.add_context_length(tiny.n_ctx)
    writer.add_embedding_length(tiny.n_embd)
    writer.add_block_count(tiny.n_layers + tiny.mtp)
    writer.add_feed_forward_length(tiny.n_ff)
    writer.add_head_count(tiny.n_heads)
    hybrid = [0 if _is_recurrent(tiny, layer) else tiny.n_heads for layer in range(tiny.n_layers)]
    writer.add_head_count_kv(hybrid if tiny.architecture == "lfm2" else tiny.n_heads)
    writer.add_layer_norm_rms_eps(tiny.eps)
    writer.add_rope_dimension_count(tiny.n_embd // tiny.n_heads * (1 + (tiny.architecture == ASSISTANT)))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    if tiny.experts:
        writer.add_expert_count(tiny.experts)
    if tiny.experts_used:
        writer.add_expert_used_count(tiny.experts_used)
    if tiny.architecture == "gemma3":
        writer.add_sliding_window(tiny.window)
        writer.add_sliding_window_pattern(2)
    if tiny.architecture == "mamba":
        writer.add_ssm_conv_kernel(CONV_SIZE)
        writer.add_ssm_inner_size(2 * tiny.n_embd)
        writer.add_ssm_state_size(STATE_SIZE)
        writer.add_ssm_time_step_rank(tiny.n_heads)
    if tiny.architecture == "qwen35":
        writer.add_rope_dimension_sections([tiny.n_embd // tiny.n_heads // 2, 0, 0, 0])
        writer.add_full_attention_interval(2)
        writer.add_ssm_conv_kernel(CONV_SIZE)
        writer.add_ssm_inner_size(tiny.n_embd)
        writer.add_ssm_state_size(tiny.n_embd // tiny.n_heads)
        writer.add_ssm_time_step_rank(tiny.n_heads)
        writer.add_ssm_group_count(tiny.n_heads)
    if tiny.mtp:
        writer.add_nextn_predict_layers(tiny.mtp)
    if tiny.architecture in WINDOWED:
        _add_windows(writer, tiny)
    if tiny.architecture == "eagle3":
        writer.add_array("eagle3.target_layers", [*tiny.reads, tiny.reads[-1]])
        writer.add_uint32("eagle3.target_hidden_size", tiny.target_width or tiny.n_embd)
    if tiny.architecture == "dflash":
        writer.add_array("dflash.target_layers", list(tiny.reads))
        writer.add_uint32("dflash.block_size", 8)
        writer.add_mask_token_id(0)
        if tiny.selector:
            sizes = {"conv_kernel_size": 2, "conv_group_size": 8, "selector_rank": 8, "selector_top_k": 4}
            for name, size in sizes.items():
                writer.add_uint32(f"dflash.{name}", size)
    if tiny.architecture == "lfm2":
        writer.add_shortconv_l_cache(CONV_SIZE)
    if tiny.tokenizer_of:
        n_vocab = token_count(tiny.tokenizer_of)
    else:
        n_vocab = len(tokens_of(tiny)[0])
        _add_vocabulary(writer, tiny)
    for name, weight in _weights(tiny, n_vocab).items():
        writer.add_tensor(name, weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    if tiny.tokenizer_of:
        graft(path, tiny.tokenizer_of)
    return path


def _add_windows(writer: gguf.GGUFWriter, tiny: Tiny) -> None:
    """Every other layer has a sliding window; an assistant has a layer of each kind."""
    head = tiny.n_embd // tiny.n_heads
    writer.add_sliding_window(tiny.window)
    writer.add_sliding_window_pattern([layer % 2 == 0 for layer in range(tiny.n_layers + tiny.mtp)])
    if tiny.architecture == "step35":
        writer.add_expert_feed_forward_length(0)
        return
    if tiny.architecture == "gemma4":
        writer.add_embedding_length_per_layer_input(0)
    else:
        head *= 2
        writer.add_nextn_predict_layers(tiny.n_layers)
        writer.add_embedding_length_out(2 * tiny.n_embd)
    for add in (
        writer.add_key_length,
        writer.add_value_length,
        writer.add_key_length_swa,
        writer.add_value_length_swa,
    ):
        add(head)


def _add_vocabulary(writer: gguf.GGUFWriter, tiny: Tiny) -> None:
    texts, kinds = tokens_of(tiny)
    if not tiny.vocabulary:
        writer.add_tokenizer_model("none")
        writer.add_vocab_size(len(texts))
        return
    writer.add_tokenizer_model("llama" if tiny.sentencepiece else "gpt2")
    writer.add_token_list(texts)
    writer.add_token_types(kinds)
    if tiny.sentencepiece:
        writer.add_token_scores([float(len(text)) for text in texts])  # the longest wins
        writer.add_unk_token_id(texts.index("<unk>"))
    else:
        writer.add_tokenizer_pre("gpt-2")
        merges = [" ".join(pair) for pair in _merges(tiny)]
        writer.add_token_merges(merges or ([" ".join(tiny.letters[:2])] if tiny.letters else ["t h"]))
    end, begin, end_of_turn = tiny.control[:3]
    writer.add_eos_token_id(texts.index(end))
    writer.add_eot_token_id(texts.index(end_of_turn))
    writer.add_bos_token_id(texts.index(begin))
    writer.add_add_bos_token(tiny.adds_bos)
    if tiny.template:
        writer.add_chat_template(tiny.template)


def _is_recurrent(tiny: Tiny, layer: int) -> bool:
    return tiny.architecture == "mamba" or (tiny.architecture in HYBRID and layer % 2 == 0)


def _weights(tiny: Tiny, n_vocab: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(tiny.seed)
    nearby = np.random.default_rng(tiny.noise_seed)

    def normal(*shape: int) -> np.ndarray:
        exact = random.standard_normal(shape)
        if tiny.noise:
            exact = exact + tiny.noise * nearby.standard_normal(shape)
        return (exact / np.sqrt(shape[-1])).astype(np.float32)

    def ones(*shape: int) -> np.ndarray:
        return np.ones(shape, np.float32)

    d, ff, head = tiny.n_embd, tiny.n_ff, tiny.n_embd // tiny.n_heads
    weights = {"token_embd.weight": normal(n_vocab, d) * np.float32(np.sqrt(d))}
    for layer in range(tiny.n_layers):
        block = f"blk.{layer}."
        weights[f"{block}attn_norm.weight"] = ones(d)
        if tiny.architecture == "mamba":
            weights |= {f"{block}{name}": weight for name, weight in _mamba(tiny, normal).items()}
            continue
        if _is_recurrent(tiny, layer) and tiny.architecture == "qwen35":
            weights |= {f"{block}{name}": weight for name, weight in _delta_net(tiny, normal).items()}
        elif _is_recurrent(tiny, layer):
            weights[f"{block}shortconv.conv.weight"] = normal(d, CONV_SIZE)
            weights[f"{block}shortconv.in_proj.weight"] = normal(3 * d, d)
            weights[f"{block}shortconv.out_proj.weight"] = normal(d, d)
        else:
            for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
                rows = 2 * d if tiny.architecture == "qwen35" and name == "attn_q" else d  # query and gate
                weights[f"{block}{name}.weight"] = normal(rows, d)
            if tiny.architecture in ("gemma3", "gemma4", "dflash", *HYBRID):
                weights[f"{block}attn_q_norm.weight"] = ones(head)
                weights[f"{block}attn_k_norm.weight"] = ones(head)
        if tiny.architecture.startswith("gemma"):
            weights[f"{block}post_attention_norm.weight"] = ones(d)
            weights[f"{block}post_ffw_norm.weight"] = ones(d)
        if tiny.experts_used:
            weights[f"{block}ffn_gate_inp.weight"] = normal(tiny.experts, d)
            weights[f"{block}ffn_gate_exps.weight"] = normal(tiny.experts, ff, d)
            weights[f"{block}ffn_up_exps.weight"] = normal(tiny.experts, ff, d)
            weights[f"{block}ffn_down_exps.weight"] = normal(tiny.experts, d, ff)
        else:
            weights[f"{block}ffn_gate.weight"] = normal(ff, d)
            weights[f"{block}ffn_up.weight"] = normal(ff, d)
            weights[f"{block}ffn_down.weight"] = normal(d, ff)
        norm = "post_attention_norm" if tiny.architecture == "qwen35" else "ffn_norm"
        weights[f"{block}{norm}.weight"] = ones(d)
    if tiny.architecture == "eagle3":
        _eagle3(tiny, weights, normal)
    if tiny.architecture == "dflash":
        weights["fc.weight"] = normal(d, 2 * d)
        weights["enc.output_norm.weight"] = ones(d)
        if tiny.selector:
            _dflash2(tiny, weights, n_vocab, normal)
        if tiny.markov:
            weights["markov_w1.weight"], weights["markov_w2.weight"] = normal(n_vocab, 8), normal(n_vocab, 8)
            if tiny.confidence:
                weights["conf_proj.weight"] = normal(1, d + 8) * np.float32(8)
    last_norm = "token_embd_norm" if tiny.architecture == "lfm2" else "output_norm"
    weights[f"{last_norm}.weight"] = ones(d) * np.float32(np.nan if tiny.broken else 1)
    weights["output.weight"] = normal(n_vocab, d) * np.float32(3 * tiny.scale)
    if tiny.overflow:
        weights[f"{last_norm}.weight"][0] = 1e6
        weights["output.weight"][65:67] = 0
        weights["output.weight"][65:67, 0] = 3e38, -3e38
    if tiny.architecture in ("gemma4", ASSISTANT):
        weights["rope_freqs.weight"] = ones(head // 2 * (1 + (tiny.architecture == ASSISTANT)))
    if tiny.architecture == ASSISTANT:
        _assistant(tiny, weights, normal)
    if tiny.mtp:
        _mtp(tiny, weights, normal)
    if tiny.chain:
        _chain(tiny, weights)
    elif tiny.order:
        for name in ("token_embd.weight", "output.weight"):
            weights[name] = weights[name][_order(tiny, n_vocab)]
    return weights


def _chain(tiny: Tiny, weights: dict[str, np.ndarray]) -> None:
    """Nothing but embeddings, one dimension a token of the chain, and what follows each of them."""
    for name, weight in weights.items():
        if name.endswith(("attn_output.weight", "ffn_down.weight", "ssm_out.weight")):
            weight[:] = 0
    texts = [] if tiny.tokenizer_of else tokens_of(tiny)[0]
    ids = [token if isinstance(token, int) else texts.index(token) for token in tiny.chain]
    tokens = weights["token_embd.weight"]
    following = weights.get("output.weight", tokens)
    following *= 0.01  # small, but no two tokens are equally probable
    if following is not tokens:
        tokens[:] = 0
    if tiny.architecture == "eagle3":
        _step_along(tiny, weights, len(ids))
    # Heads that step along: they know the target's row of the token before, and no more.
    steps = [f"blk.{tiny.n_layers + head}.nextn.eh_proj.weight" for head in range(tiny.mtp)]
    row = tiny.n_embd
    if tiny.architecture == ASSISTANT:
        steps, row = ["nextn.pre_projection.weight"], 2 * tiny.n_embd
        back = weights["nextn.post_projection.weight"]
        back[:] = 0
        back[range(len(ids)), range(len(ids))] = 1
    for name in steps:
        weights[name][:] = 0
    for place, id in enumerate(ids):
        after = (place + 1) % len(ids)
        for name in steps:
            weights[name][after, row + place] = 1
        following[ids[after], place] = 1
        if following is not tokens:
            tokens[id, place] = 1


def _step_along(tiny: Tiny, weights: dict[str, np.ndarray], n: int) -> None:
    """A head that reads a target's embeddings, knows one of `n` tokens as a dimension, and steps to the next:
    its guesses are right only if each entry has the row of the token before."""
    d, head = tiny.n_embd, tiny.n_embd // tiny.n_heads
    assert 2 * n <= head
    for name in ("fc", *(f"blk.0.attn_{part}" for part in "qkv")):
        weights[f"{name}.weight"][:] = 0
    length = np.sqrt(d)  # of a row with one dimension, after its norm
    weights["fc.weight"][range(n), range(n)] = length
    for place in range(n):
        for part in "qk":  # an entry attends to those of the same token; positions turn pairs of dimensions
            weights[f"blk.0.attn_{part}.weight"][2 * place, place] = 10
        weights["blk.0.attn_v.weight"][place, d + place] -= 1
        weights["blk.0.attn_v.weight"][(place + 1) % n, d + place] += 1
        weights["blk.0.attn_output.weight"][place, place] = 1


def _mamba(tiny: Tiny, normal) -> dict[str, np.ndarray]:
    d, rank = tiny.n_embd, tiny.n_heads
    inner = 2 * d
    return {
        "ssm_in.weight": normal(2 * inner, d),
        "ssm_conv1d.weight": normal(inner, CONV_SIZE),
        "ssm_conv1d.bias": np.zeros(inner, np.float32),
        "ssm_x.weight": normal(rank + 2 * STATE_SIZE, inner),
        "ssm_dt.weight": normal(inner, rank),
        "ssm_dt.bias": np.zeros(inner, np.float32),
        "ssm_a": -np.tile(np.arange(1, STATE_SIZE + 1, dtype=np.float32), (inner, 1)),
        "ssm_d": np.ones(inner, np.float32),
        "ssm_out.weight": normal(d, inner),
    }


def _eagle3(tiny: Tiny, weights: dict[str, np.ndarray], normal) -> None:
    """Layers that read the embedding beside what three layers of a target made."""
    d = tiny.n_embd
    weights["fc.weight"] = normal(d, 3 * (tiny.target_width or d))
    if tiny.target_width:
        del weights["token_embd.weight"]
    for layer in range(tiny.n_layers):
        weights[f"blk.{layer}.attn_norm_2.weight"] = np.ones(d, np.float32)
        for name in ("attn_q", "attn_k", "attn_v"):
            weights[f"blk.{layer}.{name}.weight"] = normal(d, 2 * d)


def _dflash2(tiny: Tiny, weights: dict[str, np.ndarray], n_vocab: int, normal) -> None:
    """What selects one of four candidates behind each of the place before, and convolutions."""
    d, groups = tiny.n_embd, tiny.n_embd // 8
    weights["selector_hidden.weight"] = normal(8, d)
    for name in ("predecessor", "successor"):
        weights[f"selector_{name}.weight"] = normal(n_vocab, 8) * np.float32(3)
    for layer in range(tiny.n_layers):
        for part in ("attn", "ffn"):
            weights[f"blk.{layer}.{part}_conv_base"] = normal(2, 2, d)
            weights[f"blk.{layer}.{part}_conv_proj.weight"] = normal(2 * 2 * groups, d)


def _assistant(tiny: Tiny, weights: dict[str, np.ndarray], normal) -> None:
    """Half as wide as its target, with heads of the same size, and without keys and values of its own."""
    d, head = tiny.n_embd, 2 * tiny.n_embd // tiny.n_heads
    del weights["output.weight"]
    weights["nextn.pre_projection.weight"] = normal(d, 4 * d)
    weights["nextn.post_projection.weight"] = normal(2 * d, d)
    for layer in range(tiny.n_layers):
        block = f"blk.{layer}."
        del weights[f"{block}attn_k.weight"], weights[f"{block}attn_v.weight"]
        weights[f"{block}attn_q.weight"], weights[f"{block}attn_output.weight"] = (
            normal(2 * d, d),
            normal(d, 2 * d),
        )
        weights[f"{block}attn_q_norm.weight"] = np.ones(head, np.float32)
        weights[f"{block}layer_output_scale.weight"] = np.ones(1, np.float32)


def _mtp(tiny: Tiny, weights: dict[str, np.ndarray], normal) -> None:
    """Blocks like those with attention, and what joins them to the layers below."""
    d, last = tiny.n_embd, f"blk.{tiny.n_layers - 1}."
    below = {name.removeprefix(last): weight for name, weight in weights.items() if name.startswith(last)}
    blocks = [f"blk.{tiny.n_layers + head}." for head in range(tiny.mtp)]
    for place, block in enumerate(blocks):
        weights |= {f"{block}{name}": weight / (1 + place) for name, weight in below.items()}
        weights[f"{block}nextn.eh_proj.weight"] = normal(d, 2 * d)
        for name in ("enorm", "hnorm"):
            weights[f"{block}nextn.{name}.weight"] = np.ones(d, np.float32)
    if not tiny.trunk:
        for name in [
            name for name in weights if name.startswith("blk.") and not name.startswith(tuple(blocks))
        ]:
            del weights[name]


def _delta_net(tiny: Tiny, normal) -> dict[str, np.ndarray]:
    d, heads = tiny.n_embd, tiny.n_heads
    return {
        "attn_qkv.weight": normal(3 * d, d),
        "attn_gate.weight": normal(d, d),
        "ssm_conv1d.weight": normal(3 * d, CONV_SIZE),
        "ssm_dt.bias": np.zeros(heads, np.float32),
        "ssm_a": -np.arange(1, heads + 1, dtype=np.float32) / (8 * heads),  # forgets slowly
        "ssm_beta.weight": normal(heads, d),
        "ssm_alpha.weight": normal(heads, d),
        "ssm_norm.weight": np.ones(d // heads, np.float32),
        "ssm_out.weight": normal(d, d),
    }
