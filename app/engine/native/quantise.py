"""llama.cpp's own quantiser: a model in another number format, and how large that would be."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path
from typing import NamedTuple

import llama_cpp

from app.engine.errors import ModelFileError
from app.engine.native.library import captured_report
from app.engine.native.model import check_file
from app.engine.shards import size_of

_MIB = 2**20


class QuantSize(NamedTuple):
    """A model in another number format."""

    size: int  # bytes, known before it is written to some kilobytes
    tensors: int
    fallbacks: int  # tensors whose rows that format cannot hold, for which llama.cpp takes a larger one


def quantise(source: Path, kind: str, target: Path | None = None) -> QuantSize:
    """Write `source` in the format `kind`, such as "Q4_K_M", to `target`; with None, only say how large it
    would be, which takes a tenth of a second. Of a sharded model, `source` is the first file.

    Raises ModelFileError; what was written to `target` stays then. A damaged file may end the process.
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
        f"llama.cpp cannot quantise {source.name}: {reason[:300]}.", "Choose another file or format."
    )
