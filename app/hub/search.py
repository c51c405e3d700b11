"""Search for GGUF repositories by words or by a pasted address."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from huggingface_hub.hf_api import ExpandModelProperty_T, ModelInfo
from huggingface_hub.utils import validate_repo_id

from app.base.files import decode
from app.engine.errors import UserError
from app.hub.errors import HubError, Trouble
from app.hub.hub import Hub
from app.hub.names import parse_address
from app.hub.repo import licence_of, number

LIMIT = 30
_ASKED: list[ExpandModelProperty_T] = [
    "downloads",
    "likes",
    "gated",
    "lastModified",
    "tags",
    "gguf",
    "cardData",
]
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
            return (_read(hub, address.repo),)
        except HubError as error:
            # `owner/name` may be the beginning of a name, a whole address may not.
            if address.pasted or error.trouble is not Trouble.NOT_FOUND:
                raise
    query = {"search": words, "filter": "gguf", "sort": "downloads", "limit": limit, "expand": _ASKED}
    with hub.asking("the search"):
        found = decode(_hits, hub.get("/api/models", query))
        return tuple(_hit(entry) for entry in found[:limit])


def _read(hub: Hub, repo: str) -> RepoHit:
    with hub.asking(repo):
        return _hit(decode(_one, hub.get(f"/api/models/{repo}", {"expand": _ASKED})))


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
