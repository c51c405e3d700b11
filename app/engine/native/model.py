"""Model files: opening them, explaining failures, quantising them, the sizes of their tensors, and files that
are only a head for one target.

llama.cpp loads heads like models, but a pass through a head alone ends the process or drafts garbage."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import llama_cpp

from app.base.files import NotAFileError, open_file
from app.engine.compat import ASSISTANT, DFLASH2, DSPARK, HEAD_STRATEGIES, MTP
from app.engine.errors import ModelFileError, NoRoomError, no_model_at
from app.engine.native.devices import chosen_devices, hold, release
from app.engine.native.library import captured_log, captured_report, model_name, read_metadata
from app.engine.native.library import raw_call as _call
from app.engine.native.load_params import MEASURED, ModelParams
from app.engine.native.vocabulary import Vocabulary
from app.engine.shards import parts_of, size_of
from app.engine.types import ModelOptions


class _NoAlloc(ctypes.Structure):
    """gguf_init_params"""

    _fields_ = (("no_alloc", ctypes.c_bool), ("context", ctypes.c_void_p))


_open = _call("gguf_init_from_file", ctypes.c_void_p, ctypes.c_char_p, _NoAlloc)
_free = _call("gguf_free", None, ctypes.c_void_p)
_count = _call("gguf_get_n_tensors", ctypes.c_int64, ctypes.c_void_p)
_name = _call("gguf_get_tensor_name", ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64)
_size = _call("gguf_get_tensor_size", ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int64)
_find = _call("gguf_find_key", ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p)
_type = _call("gguf_get_kv_type", ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)
_array_type = _call("gguf_get_arr_type", ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)
_array_size = _call("gguf_get_arr_n", ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int64)
_array = _call("gguf_get_arr_data", ctypes.POINTER(ctypes.c_int32), ctypes.c_void_p, ctypes.c_int64)
_WHOLE, _ARRAY = (4, 5), 9  # gguf_type: 32 bits


@contextmanager
def _header(shard: Path) -> Iterator[int]:
    head = _open(os.fsencode(shard), _NoAlloc(True, None))
    if not head:
        raise ModelFileError(f"{shard.name} is cut short or damaged.", "Download or copy it again.")
    try:
        yield head
    finally:
        _free(head)


def tensor_sizes(path: Path) -> Iterator[tuple[str, int]]:
    """Yield name and bytes of every tensor of a model file, in all its shards. Raises ModelFileError."""
    for shard in parts_of(path):
        with _header(shard) as head:
            for index in range(_count(head)):
                yield _name(head, index).decode("utf-8", errors="replace"), _size(head, index)


def whole_numbers(path: Path, key: str, most: int) -> tuple[int, ...]:
    """The first numbers of an array in a file's metadata, at most so many; empty if the file has none.
    llama.cpp gives no arrays as text. Raises ModelFileError."""
    with _header(path) as head:
        at = _find(head, key.encode())
        if at < 0 or _type(head, at) != _ARRAY or _array_type(head, at) not in _WHOLE:
            return ()
        return tuple(_array(head, at)[: min(_array_size(head, at), most)])


_RELATIVES = {"markov_w1.weight": DSPARK, "selector_hidden.weight": DFLASH2}  # by a tensor of their own


def architecture_of(path: Path, metadata: Callable[[str], str]) -> str:
    """The architecture of the file at `path`; for a head, its exact kind, which the file does not name.

    `metadata` returns a value of the file as text, or "". Raises ModelFileError for a damaged file.
    """
    architecture = metadata("general.architecture")
    heads = metadata(f"{architecture}.nextn_predict_layers")
    if architecture == "dflash" or (heads not in ("", "0") and architecture != ASSISTANT):
        names = [name for name, _ in tensor_sizes(path)]
        if architecture == "dflash":
            return next((kind for name, kind in _RELATIVES.items() if name in names), architecture)
        if not any(name.startswith("blk.0.") for name in names):
            return MTP
    return architecture


def head_fault(path: Path, metadata: Callable[[str], str]) -> str:
    """Why a head can draft for no target, as a clause after "because"; empty if nothing is wrong. Without
    a mask llama.cpp cannot make a block, without a width it loads no file, and for matrices of different
    widths it ends the process. Arguments and errors as in `architecture_of`."""
    architecture = metadata("general.architecture")
    for key in ("embedding_length", *(["target_hidden_size"] if architecture == "eagle3" else ())):
        if not metadata(f"{architecture}.{key}"):
            return f"its file gives no embedding size: {architecture}.{key} is missing"
    if architecture == "dflash" and not metadata("tokenizer.ggml.mask_token_id"):
        return "it has no mask token"
    if architecture == "eagle3":
        ours, theirs = (metadata(f"eagle3.{key}") for key in ("embedding_length", "target_hidden_size"))
        names = {name for name, _ in tensor_sizes(path)} if ours != theirs else _OWN
        if not names >= _OWN:
            return f"it takes embeddings from its target, but its embedding size is {ours}, not {theirs}"
    return ""


_OWN = {"token_embd.weight", "output.weight"}  # without which it takes the target's
_OTHER_FILE = "Choose a different GGUF file."
_DOWNLOAD_AGAIN = "Download or copy it again."
_WITH_TOKENIZER = "Choose a file with a tokenizer."
_VOCAB_NONE = 0
_LONGEST_LINE = 300  # characters of llama.cpp's log
_LONGEST_NAME = 80
_MOST_DIGITS = 7  # of a number of experts: a file may hold any text
MAIN_MEMORY = "main memory"


def check_file(path: Path) -> None:
    """Raise ModelFileError for a file that is not a model, as far as can be seen without llama.cpp (which
    also opens a model's other parts)."""
    name = path.name or str(path)
    try:
        for part in parts_of(path):
            if part != path:
                open_file(part).close()
        with open_file(path) as file:
            magic = file.read(4)
            size = path.stat().st_size
    except (FileNotFoundError, ValueError):  # a path with a zero byte is a ValueError
        raise no_model_at(path) from None
    except IsADirectoryError:
        raise ModelFileError(f"{name} is a folder.", "Choose a .gguf file inside it.") from None
    except NotAFileError as error:
        raise ModelFileError(f"{Path(error.filename).name} is not a regular file.", _OTHER_FILE) from None
    except OSError as error:
        raise ModelFileError(
            f"{name} cannot be read: {error.strerror or error}.", "Check its permissions."
        ) from error
    if size == 0:
        raise ModelFileError(f"{name} is empty.", _DOWNLOAD_AGAIN)
    if magic != b"GGUF":
        raise ModelFileError(f"{name} is not a GGUF file.", _OTHER_FILE)


def explain_failure(name: str, lines: list[str]) -> ModelFileError:
    """The error for a failed load, from llama.cpp's log `lines`."""
    text = "\n".join(line[:_LONGEST_LINE] for line in lines)  # a line may quote a text of the file
    if found := re.search(r"unknown model architecture: '([^'\n]*)", text):
        return ModelFileError(
            f"{name} has the architecture “{found[1][:_LONGEST_NAME]}”, which this llama.cpp does not know.",
            "Update Draftscope, or choose a different model.",
        )
    if found := re.search(r"file is version (\d+)|GGUFv(\d+) is no longer supported", text):
        return ModelFileError(
            f"{name} is of GGUF version {found[1] or found[2]}, which this llama.cpp does not read.",
            "Update Draftscope, or choose a different model file.",
        )
    if re.search(r"not within the file bounds|failed to read|unexpectedly reached end", text):
        return ModelFileError(f"{name} is cut short or damaged.", _DOWNLOAD_AGAIN)
    if ran_out(text):
        place = place_of(text)
        less = "Lower the layers on devices (n_gpu_layers), split them differently, or choose a smaller file."
        return NoRoomError(
            f"{name} does not fit: {place} has no room for its weights.",
            "Close other programs, or choose a smaller file." if place == MAIN_MEMORY else less,
        )
    if found := re.search(r"error loading model vocabulary: (.*)", text):
        return ModelFileError(f"{name} has no usable vocabulary: {found[1]}.", _WITH_TOKENIZER)
    if found := re.search(r"device (\S+) does not support split buffers", text):
        return ModelFileError(f"{found[1]} cannot split rows.", "Set the split mode to layer.")
    if "failed to load model from" in text:
        return ModelFileError(f"{name} is damaged: its header cannot be read.", _DOWNLOAD_AGAIN)
    found = re.search(r"error loading model: (?:error loading model \w+: )?(.*)", text)
    reason = " ".join(found[1].split()) if found else "llama.cpp gave no reason"
    return ModelFileError(f"{name} cannot be loaded: {reason}.", _OTHER_FILE)


def explain_context(name: str, n_ctx: int, lines: list[str]) -> ModelFileError:
    """The error for a context that could not be made, from llama.cpp's log `lines`."""
    text = "\n".join(lines)
    if ran_out(text):
        place = place_of(text)
        if "kv cache" in text or "rs cache" in text:
            what = f"a context of {n_ctx:,} tokens"
            ways = ["Lower the context size", "use a smaller cache type"]
            elsewhere = ["keep the cache in main memory", "lower the layers on devices"]
        else:
            what = "the numbers of a pass"
            ways = ["Lower the micro-batch size (ubatch_size)", "lower the context size"]
            elsewhere = ["lower the layers on devices"]
        if place != MAIN_MEMORY:
            ways += elsewhere
        error = NoRoomError(
            f"{name} is read, but {place} has no room for {what}.", f"{', '.join(ways[:-1])}, or {ways[-1]}."
        )
        error.of_context = True
        return error
    reason = lines[-1].split(": ", 1)[-1] if lines else "llama.cpp gave no reason"
    return ModelFileError(
        f"No context of {n_ctx:,} tokens can be made for {name}: {reason}.",
        "Lower the context size, or choose a different cache type.",
    )


def ran_out(text: str) -> bool:
    """Whether llama.cpp's log says that memory ran out."""
    return bool(re.search(r"(unable|failed) to allocate|alloc\w* failed|bad_alloc|out of memory", text))


def place_of(text: str) -> str:
    """The place where memory ran out, in words."""
    found = re.search(r"allocat\w+ (\S+) buffer", text)
    if found is None or re.match(r"CPU|\w+_Host$", found[1]):  # a backend's host buffer is main memory too
        return MAIN_MEMORY
    worker = re.fullmatch(r"RPC\d+\[(.*)\]", found[1])
    return f"the worker at {worker[1]}" if worker else found[1]


class Model:
    """Weights and vocabulary of one GGUF file. Close it after its contexts."""

    def __init__(
        self,
        options: ModelOptions,
        on_progress: Callable[[float], bool] | None = None,
        only_measured: bool = False,
    ) -> None:
        """Load the file. `on_progress` gets the fraction read and returns False to stop. With `only_measured`
        no weights are read and no memory is taken; its contexts cannot decode.

        Raises ModelFileError (NoRoomError if memory is short), SettingError, WorkerError.
        """
        path = Path(options.path)
        check_file(path)
        self.devices = chosen_devices(options)  # the devices besides the CPU that may hold layers
        self._params = ModelParams(options, self.devices)
        params = self._params.value
        if only_measured:
            params.no_alloc, params.load_mode = True, MEASURED
        report = llama_cpp.llama_progress_callback(
            lambda fraction, _data: on_progress is None or on_progress(fraction)
        )
        params.progress_callback = report
        with captured_log() as lines, captured_report() as self.log:
            self.handle: Any = llama_cpp.llama_model_load_from_file(os.fsencode(path), params)
        if not self.handle:
            raise explain_failure(path.name, lines)
        try:
            self.architecture = architecture_of(path, self.metadata)
        except ModelFileError:
            llama_cpp.llama_model_free(self.handle)
            raise
        self._workers = {device.endpoint for device in self.devices if device.endpoint}
        hold(self._workers)
        self.path = path
        self.vocabulary = Vocabulary(self.handle, path, lines)
        if self.vocabulary.kind == _VOCAB_NONE or self.vocabulary.size == 0:
            self.close()
            raise ModelFileError(f"{path.name} has no vocabulary.", _WITH_TOKENIZER)
        self.is_head = self.architecture in HEAD_STRATEGIES
        has_encoder = bool(llama_cpp.llama_model_has_encoder(self.handle)) and not self.is_head  # such as T5
        self.can_decode = bool(llama_cpp.llama_model_has_decoder(self.handle)) and not has_encoder
        self.n_ctx_train = max(
            0, int(llama_cpp.llama_model_n_ctx_train(self.handle))
        )  # a file may hold any number
        self.n_layers = int(llama_cpp.llama_model_n_layer(self.handle))
        self.n_params = int(llama_cpp.llama_model_n_params(self.handle))
        self.n_heads = int(llama_cpp.llama_model_n_layer_nextn(self.handle)) if options.mtp else 0  # MTP
        self.n_embd = int(llama_cpp.llama_model_n_embd(self.handle))
        # Recurrent states in some or all layers: such a memory cannot be cut in the middle.
        self.is_recurrent = bool(
            llama_cpp.llama_model_is_recurrent(self.handle) or llama_cpp.llama_model_is_hybrid(self.handle)
        )
        self.n_swa = int(llama_cpp.llama_model_n_swa(self.handle))

    def metadata(self, key: str) -> str:
        """A metadata value as text; empty if the file has none."""
        return read_metadata(self.handle, key)

    @property
    def n_experts(self) -> int:
        """The experts of a layer; 0 for a dense model."""
        count = self.metadata(f"{self.metadata('general.architecture')}.expert_count")
        return int(count) if count.isascii() and count.isdigit() and len(count) < _MOST_DIGITS else 0

    @property
    def name(self) -> str:
        """The model's name for people."""
        return model_name(self.metadata, self.path)

    @property
    def quantisation(self) -> str:
        """llama.cpp's own words, such as "Q8_0" or "Q4_K - Medium". If the file names no type, it is that of
        most tensors."""
        buffer = ctypes.create_string_buffer(256)
        llama_cpp.llama_model_desc(self.handle, buffer, 256)
        # "llama 10.9M Q8_0": architecture, size, then the file type
        words = buffer.value.decode("utf-8", errors="replace").split(" ")
        return " ".join(words[2:]).removeprefix("(guessed) ") or " ".join(words)

    @property
    def chat_template(self) -> str:
        """The Jinja source of the file's chat template; empty if it has none."""
        raw = llama_cpp.llama_model_chat_template(self.handle, None)
        return raw.decode("utf-8", errors="replace") if raw else ""

    def close(self) -> None:
        if self.handle:
            llama_cpp.llama_model_free(self.handle)
            self.handle = None
            release(self._workers)


_MIB = 2**20


class QuantSize(NamedTuple):
    """A model in a different number format."""

    size: int  # bytes, known before it is written to some kilobytes
    tensors: int
    fallbacks: int  # tensors whose rows that format cannot hold, for which llama.cpp takes a larger one


def quantise(source: Path, kind: str, target: Path | None = None) -> QuantSize:
    """Write `source` in the format `kind`, such as "Q4_K_M", to `target`. With None, only return its size,
    which takes a tenth of a second. For a sharded model, `source` is the first file.

    Raises ModelFileError and leaves a partial `target`. A damaged file may end the process.
    """
    check_file(source)
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{kind}")
    params.allow_requantize = True
    params.dry_run = target is None
    with captured_report() as lines:
        status = llama_cpp.llama_model_quantize(
            os.fsencode(source), os.fsencode(target or os.devnull), ctypes.byref(params)
        )
    text = "\n".join(lines)
    if status:
        raise _refusal(source, target, text)
    weights, made = (float(found) * _MIB for found in re.findall(r"(?:model|quant) size +=\s*([\d.]+)", text))
    tensors = re.findall(r"^\[ *\d+/ *(\d+)\]", text, re.MULTILINE)
    fallbacks = re.search(r"(\d+) of \d+ tensor\(s\) required fallback", text)
    size = size_of(source) - weights + made if target is None else target.stat().st_size
    return QuantSize(int(size), int(tensors[-1]), int(fallbacks[1]) if fallbacks else 0)


def _refusal(source: Path, target: Path | None, text: str) -> ModelFileError:
    """The error of a quantisation that failed, from llama.cpp's log."""
    if target is not None and "iostream" in text:  # it keeps the system's reason to itself
        with target.open("ab") as file:
            file.write(bytes(_MIB))  # raises OSError with it
            file.flush()
        return ModelFileError(f"{target.name} could not be written.", "Try again.")
    found = re.search(r"failed to quantize: (.*)", text)
    reason = found[1].strip().rstrip(".") if found else "it gave no reason"
    return ModelFileError(
        f"llama.cpp cannot quantise {source.name}: {reason[:300]}.",
        "Choose a different model file or format.",
    )
