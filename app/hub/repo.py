"""A repository on the Hub: its quantisations, its licence, whether it is gated; and the search."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

import msgspec
from huggingface_hub.hf_api import ExpandModelProperty_T, ModelInfo
from huggingface_hub.utils import validate_repo_id

from app.base import numbers
from app.base.files import decode
from app.engine.errors import UserError
from app.engine.shards import shard_of
from app.hub.errors import HubError, Trouble, unusable_answer
from app.hub.hub import Hub
from app.hub.names import is_model, is_safe, parse_address, quantisation_of

_COMMIT = re.compile(r"[0-9a-f]{40}")
_WITH_HEAD = re.compile(r"(?<![A-Za-z])MTP(?![A-Za-z])", re.IGNORECASE)
_USUAL = ("Q4_K_M", "Q8_0")
_MOST_NAMED = 20  # files in a sentence, and notices
_LONGEST_NAME = 60  # characters
_NO_COUNT = 2**53  # bytes, parameters or downloads: more than there are anywhere


class _Lfs(msgspec.Struct):
    sha256: str = ""


class _Sibling(msgspec.Struct):
    rfilename: str
    size: int | None = None
    lfs: _Lfs | None = None


class _Info(msgspec.Struct):
    """The fields of the Hub's answer about a repository that are used here."""

    sha: str = ""
    gated: bool | str | None = False
    tags: tuple[str, ...] | None = ()
    cardData: dict[str, Any] | None = None  # noqa: N815 # the Hub's name
    gguf: dict[str, Any] | None = None  # what the Hub read from the GGUF files
    siblings: tuple[_Sibling, ...] = ()


_info = msgspec.json.Decoder(_Info)


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file on the Hub. `size` in bytes; `sha256` is empty if the Hub does not give it."""

    name: str
    size: int
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Quantisation:
    """A model of a repository; several files if it is sharded."""

    name: str  # such as "Q4_K_M"; "?" if the file name has none
    files: tuple[HubFile, ...]

    @property
    def file(self) -> str:
        """The file to open: the first shard."""
        return self.files[0].name

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class Repo:
    """The Hub's data on a repository, smallest quantisation first."""

    repo: str
    commit: str
    gated: bool
    licence: str  # as the Hub names it, such as "apache-2.0"; empty if there is none
    quantisations: tuple[Quantisation, ...]
    architecture: str = ""
    parameters: int | None = None
    context: int | None = None  # tokens
    notices: tuple[str, ...] = ()  # files that are left out, and why
    revision: str = "main"  # as requested

    @property
    def limits(self) -> str:
        """A sentence on what Draftscope cannot do with its models; "" if nothing."""
        if _WITH_HEAD.search(self.repo):
            return (
                "The name suggests an MTP head. If the model's file contains it, draft-mtp drafts with it. A "
                "file with only the head is a draft for its model."
            )
        return ""

    def matching(self, file: str) -> tuple[Quantisation, ...]:
        """The quantisation that contains `file`, else all that have it as their name."""
        holds = (
            quantisation
            for quantisation in self.quantisations
            if file in [part.name for part in quantisation.files]
        )
        if found := next(holds, None):
            return (found,)
        return tuple(quantisation for quantisation in self.quantisations if file.upper() == quantisation.name)

    def chosen(self, file: str = "") -> Quantisation:
        """`holding(file)`; without a file Q4_K_M, else Q8_0, as llama.cpp chooses, else the smallest.

        Raises HubError.
        """
        file = file or next((name for name in _USUAL if self.matching(name)), "")
        if not file and self.quantisations:
            return self.quantisations[0]
        return self.holding(file or "GGUF file")

    def holding(self, file: str) -> Quantisation:
        """The quantisation that `file` (any shard of it, or the quantisation's own name) belongs to.

        Raises HubError if there is none, or if several files have that quantisation.
        """
        named = self.matching(file)
        if len(named) == 1:
            return named[0]
        names = some([quantisation.file for quantisation in named or self.quantisations]) or "no GGUF file"
        if named:
            raise HubError(
                Trouble.NOT_FOUND,
                f"{self.repo} has {len(named)} files of {file}.",
                f"Name one of them: {names}.",
            )
        raise HubError(Trouble.NOT_FOUND, f"{self.repo} has no {file}.", f"It has {names}.")


def read_repo(hub: Hub, repo: str, revision: str = "main") -> Repo:
    """Ask the Hub for a repository's contents at a branch, tag or commit. Raises HubError."""
    with hub.asking(repo):
        validate_repo_id(repo)
        path = f"/api/models/{repo}/revision/{quote(revision, safe='')}"
        info = decode(_info, hub.get(path, {"blobs": True}))
    if not _COMMIT.fullmatch(info.sha):
        raise unusable_answer(f"{repo} has no commit")
    files = (
        HubFile(sibling.rfilename, number(sibling.size) or 0, sibling.lfs.sha256 if sibling.lfs else "")
        for sibling in info.siblings
    )
    quantisations, notices = group_files(files)
    facts = info.gguf or {}
    return Repo(
        repo,
        info.sha,
        bool(info.gated),
        licence_of(info.tags, info.cardData),
        quantisations,
        str(facts.get("architecture") or "")[:_LONGEST_NAME],
        number(facts.get("total")),
        number(facts.get("context_length")),
        notices,
        revision,
    )


def group_files(files: Iterable[HubFile]) -> tuple[tuple[Quantisation, ...], tuple[str, ...]]:
    """The models among files, shards joined, smallest first; and sentences about those left out."""
    wholes: list[Quantisation] = []
    shards: defaultdict[tuple[str, int], dict[int, HubFile]] = defaultdict(dict)
    notices = []
    for file in files:
        if not is_model(file.name):
            continue
        if not is_safe(file.name):
            notices.append(f"A file is left out: its name points outside the folder ({file.name[:80]!r}).")
        elif shard := shard_of(file.name):
            shards[shard.stem, shard.count][shard.index] = file
        else:
            wholes.append(Quantisation(quantisation_of(file.name), (file,)))
    for (stem, count), parts in shards.items():
        if len(parts) == count:
            joined = tuple(parts[index] for index in range(1, count + 1))
            wholes.append(Quantisation(quantisation_of(joined[0].name), joined))
        else:
            notices.append(f"{some([stem])} is left out: {len(parts)} of {count} parts are there.")
    if (more := len(notices) - _MOST_NAMED) > 0:
        notices[_MOST_NAMED:] = [f"{numbers.count(more, 'more file')} are left out."]
    return tuple(sorted(wholes, key=lambda whole: (whole.size, whole.file))), tuple(notices)


def some(names: list[str]) -> str:
    """Foreign names in a sentence, shortened and limited in number."""
    cut = [name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…" for name in names[:_MOST_NAMED]]
    return ", ".join(cut) + (f" and {len(names) - len(cut):,} more" if len(names) > len(cut) else "")


def licence_of(tags: Iterable[str] | None, card: Any) -> str:
    """The licence in a repository's tags, else in its model card; empty if there is none."""
    for tag in tags or ():
        if tag.startswith("license:") and tag != "license:other":
            return tag.removeprefix("license:")[:_LONGEST_NAME]
    card = card or {}
    name = card.get("license_name") or card.get("license") or ""
    return name[:_LONGEST_NAME] if isinstance(name, str) else ""


def number(value: object) -> int | None:
    """A count that the Hub reports; None if it is not a count."""
    return value if isinstance(value, int) and 0 < value < _NO_COUNT else None


LIMIT = 30
_ASKED: list[ExpandModelProperty_T] = [
    "downloads", "likes", "gated", "lastModified", "tags", "gguf", "cardData"
]  # fmt: skip
_hits = msgspec.json.Decoder(list[dict[str, Any]])
_one = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class RepoHit:
    """A repository that a search found."""

    repo: str
    downloads: int
    likes: int
    gated: bool
    licence: str
    architecture: str = ""
    parameters: int | None = None
    updated: datetime | None = None


def search(hub: Hub, words: str, limit: int = LIMIT) -> tuple[RepoHit, ...]:
    """GGUF repositories whose names contain these words, most downloaded first; a pasted address gives
    exactly its repository. Raises HubError, and UserError for no words."""
    words = words.strip()
    if not words:
        raise UserError("There is nothing to search for.", "Type a model's name, or paste its address.")
    address = parse_address(words)
    if address is not None:
        try:
            with hub.asking(address.repo):
                answer = hub.get(f"/api/models/{address.repo}", {"expand": _ASKED})
                return (_hit(decode(_one, answer)),)
        except HubError as error:
            # `owner/name` may be the beginning of a name, a whole address may not.
            if address.pasted or error.trouble is not Trouble.NOT_FOUND:
                raise
    query = {"search": words, "filter": "gguf", "sort": "downloads", "limit": limit, "expand": _ASKED}
    with hub.asking("the search"):
        found = decode(_hits, hub.get("/api/models", query))
        return tuple(_hit(entry) for entry in found[:limit])


def _hit(entry: dict[str, Any]) -> RepoHit:
    info = ModelInfo(**entry)  # type: ignore[no-untyped-call]
    validate_repo_id(info.id or "")
    facts = info.gguf if isinstance(info.gguf, dict) else {}
    return RepoHit(
        info.id,
        number(info.downloads) or 0,
        number(info.likes) or 0,
        bool(info.gated),
        licence_of(info.tags, info.card_data),
        str(facts.get("architecture") or "")[:60],
        number(facts.get("total")),
        info.last_modified,
    )
