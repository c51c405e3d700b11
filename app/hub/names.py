"""Names on the Hub: pasted addresses, file names and quantisations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from huggingface_hub import constants
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id

from app.engine.shards import shard_of

_QUANTISATION = re.compile(
    r"(?:^|[-._/])((?:UD-)?(?:I?Q\d(?:_[0-9A-Z]+)*|TQ\d_\d|BF16|FP?16|FP?32|MXFP4(?:_MOE)?|NVFP4))(?=$|[-._/])",
    re.IGNORECASE,
)
_MODEL = re.compile(r"(?P<repo>[^/:]+/[^/:]+)(?::(?P<quantisation>[^/:]+)|/(?P<file>[^:]+\.gguf))?")
_FILE_VIEWS = ("blob", "resolve", "raw")
_OTHER_KINDS = ("datasets", "spaces", "collections")  # of repositories; the first word of their addresses
# No models: files beside the weights of a multimodal model, and importance matrices.
_BESIDE = re.compile(r"(?:^|[-._/])(mmproj|imatrix)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """A repository on the Hub, with a file and a revision if the address has them."""

    repo: str
    file: str = ""
    revision: str = "main"  # a branch, a tag, a commit, or refs/pr/N
    pasted: bool = False  # a whole address, not just `owner/name`


def parse_address(text: str) -> Address | None:
    """`owner/name`, or an address such as https://huggingface.co/owner/name/blob/main/file.gguf (also at
    hf.co, and at the mirror of HF_ENDPOINT); None for anything else."""
    text = text.strip()
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        host = (parts.hostname or "").removeprefix("www.")
    except ValueError:
        return None
    if host in constants.HF_URL_HOSTS and parts.path.strip("/"):
        words = [unquote(word) for word in parts.path.strip("/").split("/")]
        if len(words) < 2 or words[0] in _OTHER_KINDS or not _is_repo(repo := "/".join(words[:2])):
            return None
        view, rest = words[2:3], words[3:]
        if not rest or view[0] not in (*_FILE_VIEWS, "tree"):
            return Address(repo, pasted=True)
        long = 3 if rest[0] == "refs" else 1  # refs/pr/1, refs/convert/parquet
        revision, file = "/".join(rest[:long]), "/".join(rest[long:])
        return Address(repo, "" if view[0] == "tree" else file, revision, pasted=True)
    return Address(text) if text.count("/") == 1 and _is_repo(text) else None


def parse_model(text: str) -> Address | None:
    """Parse a model on the Hub: `owner/name`, `owner/name:QUANTISATION`, `owner/name/file.gguf`, or a whole
    address; None for anything else. `file` may be a quantisation."""
    address = parse_address(text)
    if address is not None and address.pasted:
        return address
    found = _MODEL.fullmatch(text)
    if found is None or not _is_repo(found["repo"]):
        return None
    file = found["quantisation"] or found["file"] or ""
    if not file and is_model(found["repo"]):  # a file in a folder
        return None
    return Address(found["repo"], file)


def _is_repo(name: str) -> bool:
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return "/" in name


def is_safe(name: str) -> bool:
    """Whether a file name from the Hub stays inside its folder, on every system."""
    parts = name.split("/")
    return (
        0 < len(name) <= 512
        and not re.search(r'[\x00-\x1f\\:*?"<>|]', name)
        and all(part not in ("", ".", "..") and not part.endswith((" ", ".")) for part in parts)
    )


def is_model(name: str) -> bool:
    return name.lower().endswith(".gguf") and not _BESIDE.search(name)


def quantisation_of(name: str) -> str:
    """The quantisation in a file name, such as "Q4_K_M"; "?" if it has none."""
    shard = shard_of(name)
    stem = shard.stem if shard else name.removesuffix(".gguf")
    for part in reversed(stem.split("/")):  # the file's own name first, then its folders
        if found := _QUANTISATION.findall(part):
            word: str = found[-1].upper()
            return {"FP16": "F16", "FP32": "F32"}.get(word, word)
    return "?"


def without_quantisation(stem: str) -> str:
    """A file name without its ending, and without the quantisation at its end."""
    found = [*_QUANTISATION.finditer(stem)]
    return stem[: found[-1].start()] if found and found[-1].end() == len(stem) and found[-1].start() else stem
