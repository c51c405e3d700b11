"""The head of a GGUF file: its metadata and vocabulary, without its weights."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import llama_cpp

from app.engine.native.library import captured_log, model_name, read_metadata
from app.engine.native.model import architecture_of, check_file, explain_failure, head_fault, whole_numbers
from app.engine.native.vocabulary import Vocabulary

_FILE_TYPES = "LLAMA_FTYPE_"
_GUESSED = 1024  # flag: the file type was guessed
_NAME_LAYERS = ("eagle3", "dflash")
_MOST_LAYERS, _MOST_BASES = 64, 4  # a file may hold any number


def _file_types() -> dict[int, str]:
    """llama.cpp's file types with their usual names, such as "Q4_K_M"."""
    return {
        value: name.removeprefix(_FILE_TYPES).removeprefix("MOSTLY_").removeprefix("ALL_")
        for name, value in vars(llama_cpp).items()
        if name.startswith(_FILE_TYPES) and isinstance(value, int)
    }


class FileHeader:
    """A model file's metadata and vocabulary. Reading takes about ten milliseconds; close it after use."""

    def __init__(self, path: Path) -> None:
        """Raises ModelFileError. For a sharded model, `path` is the first file, and all files must exist."""
        check_file(path)
        self._path = path
        params = llama_cpp.llama_model_default_params()
        params.vocab_only = True
        with captured_log() as lines:
            self._handle: Any = llama_cpp.llama_model_load_from_file(os.fsencode(path), params)
        if not self._handle:
            raise explain_failure(path.name, lines)
        self.vocabulary = Vocabulary(self._handle, path, lines)
        self.architecture = self.metadata("general.architecture")
        self.n_params = int(llama_cpp.llama_model_n_params(self._handle))
        self.is_recurrent = bool(
            llama_cpp.llama_model_is_recurrent(self._handle) or llama_cpp.llama_model_is_hybrid(self._handle)
        )
        self.is_diffusion = bool(llama_cpp.llama_model_is_diffusion(self._handle))
        self.has_encoder = bool(llama_cpp.llama_model_has_encoder(self._handle))
        self.has_decoder = bool(llama_cpp.llama_model_has_decoder(self._handle))

    def metadata(self, key: str) -> str:
        """A metadata value as text; empty if the file has none."""
        return read_metadata(self._handle, key)

    @property
    def name(self) -> str:
        """The model's name for people."""
        return model_name(self.metadata, self._path)

    @property
    def kind(self) -> str:
        """The architecture; for a head, its exact kind."""
        return architecture_of(self._path, self.metadata)

    def number(self, key: str) -> int:
        """A number in the architecture's metadata, such as "context_length"; 0 if the file has none."""
        text = self.metadata(f"{self.architecture}.{key}")
        return int(text) if text.isdigit() else 0

    @property
    def reads(self) -> tuple[int, ...]:
        """The target's layers that a head names; empty for other files and heads. Raises ModelFileError."""
        key = f"{self.architecture}.target_layers"
        return whole_numbers(self._path, key, _MOST_LAYERS) if self.architecture in _NAME_LAYERS else ()

    @property
    def bases(self) -> tuple[str, ...]:
        """Names of the models that it was made from, or made for."""
        names = (self.metadata(f"general.base_model.{place}.name") for place in range(_MOST_BASES))
        return tuple(filter(None, names))

    @property
    def fault(self) -> str:
        """Why it can draft for no target, if it is a head: `head_fault`."""
        return head_fault(self._path, self.metadata)

    @property
    def quantisation(self) -> str:
        """The quantisation, such as "Q4_K_M"; empty if the file does not say."""
        text = self.metadata("general.file_type")
        return _file_types().get(int(text) & ~_GUESSED, "") if text.isdigit() else ""

    def vocabulary_digest(self) -> str:
        """A digest of everything that distinguishes vocabularies."""
        vocabulary = self.vocabulary
        rules = (vocabulary.kind, vocabulary.bos, vocabulary.eos, vocabulary.adds_bos, vocabulary.adds_eos)
        digest = hashlib.sha256(repr((vocabulary.size, *rules)).encode())
        if (texts := vocabulary.texts(0, vocabulary.size)) is not None:
            digest.update(texts)
            return digest.hexdigest()[:32]
        # For a vocabulary of kind "none" llama.cpp has no texts: asking would end the process.
        for id in range(vocabulary.size if vocabulary.kind else 0):
            text = vocabulary.raw_text(id)
            digest.update(len(text).to_bytes(8, "little") + text)  # as in the file
        return digest.hexdigest()[:32]

    def close(self) -> None:
        if self._handle:
            llama_cpp.llama_model_free(self._handle)
            self._handle = None
