"""The curated pairs: a data file whose names and sizes the Hub confirms when shown; and which models are
already here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.base.files import decode, read_file
from app.base.paths import Paths
from app.hub.cache import Cache
from app.hub.downloads.item import Wanted
from app.hub.errors import HubError
from app.hub.hub import Hub
from app.hub.names import is_safe, quantisation_of, without_quantisation
from app.hub.repo import HubFile, Quantisation, Repo, group_files, read_repo


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model of a pair in the catalogue."""

    repo: str
    file: str
    size: int = msgspec.field(name="approximate_size")  # bytes: the Hub gives the exact size
    licence: str = ""
    role: str = "target"  # or "draft"
    own: str = ""  # the symbol of the same model, where it may come with Draftscope: "real:target"

    def own_file(self, paths: Paths) -> Path | None:
        """The same model, already brought by set-up or a package."""
        file = Path(paths.model(self.own)) if self.own else None
        return file if file is not None and file.is_file() else None


class CataloguePair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A target and draft known to work together, or a target without a usable draft."""

    id: str
    title: str
    good_for: str
    models: tuple[Entry, ...]
    note: str = ""
    limits: str = ""  # what cannot be done with it here, and what can
    published: str = ""  # speeds that others measured: of which models, on what, and where they are published

    @property
    def size(self) -> int:
        """Bytes, approximate."""
        return sum(model.size for model in self.models)

    @property
    def target(self) -> Entry:
        return next(model for model in self.models if model.role == "target")

    @property
    def draft(self) -> Entry | None:
        return next((model for model in self.models if model.role == "draft"), None)


class _CatalogueFile(msgspec.Struct, frozen=True):
    version: int
    pairs: tuple[CataloguePair, ...]


@dataclass(frozen=True, slots=True)
class Confirmed:
    """An entry confirmed by the Hub: what to download, or why that is impossible."""

    entry: Entry
    repo: Repo | None = None
    quantisation: Quantisation | None = None
    problem: HubError | None = None
    replaced: str = ""  # the listed file, where another file of its quantisation replaced it


_file = msgspec.json.Decoder(_CatalogueFile)


def load_catalogue(path: Path) -> tuple[CataloguePair, ...]:
    """The pairs of resources/catalogue.json, the first choice first."""
    pairs = decode(_file, read_file(path)).pairs
    for pair in pairs:
        roles = sorted(model.role for model in pair.models)
        if roles not in (["target"], ["draft", "target"]) or not all(
            is_safe(model.file) for model in pair.models
        ):
            raise ValueError(f"{path.name}: {pair.id} is not a pair")
    return pairs


def confirm(hub: Hub, models: Iterable[Entry]) -> Iterator[Confirmed]:
    """Ask the Hub for each model of a pair, target first, one answer at a time.

    Never raises for the Hub's answers: problems are part of the result.
    """
    for entry in sorted(models, key=lambda model: model.role != "target"):
        try:
            repo = read_repo(hub, entry.repo)
            yield _confirmed(entry, repo)
        except HubError as error:
            yield Confirmed(entry, problem=error)


def wanted_pair(confirmed: Iterable[Confirmed]) -> tuple[Wanted, ...]:
    """All models of a confirmed pair, to download. Raises HubError if one of them cannot be downloaded."""
    wanted = []
    for entry in confirmed:
        if entry.problem is not None:
            raise entry.problem
        assert entry.repo is not None and entry.quantisation is not None
        wanted.append(Wanted.of(entry.repo, entry.quantisation))
    return tuple(wanted)


def _confirmed(entry: Entry, repo: Repo) -> Confirmed:
    try:
        return Confirmed(entry, repo, repo.holding(entry.file))
    except HubError:
        quantisation = repo.holding(quantisation_of(entry.file))
        return Confirmed(entry, repo, quantisation, replaced=entry.file)


def find_here(cache: Cache, repo: str, file: str, revision: str = "main") -> Path | None:
    """The file to load of a model that is completely here, in the newest commit that has it.

    `file` is any of its files, its quantisation, or empty for the choice of `Repo.chosen`. For a revision
    other than "main", only its last commit counts. Raises HubError if several files have that quantisation.
    """
    for commit, names in cache.commits(repo, revision):
        quantisations, _ = group_files(HubFile(name, 0) for name in names)
        there = Repo(repo, commit.name, False, "", quantisations)
        if there.matching(file) if file else there.quantisations:
            return commit.joinpath(*there.chosen(file).file.split("/"))
    return None


def find_entry(cache: Cache, entry: Entry) -> Path | None:
    """The file to load of a catalogue model; a different file of its quantisation may have replaced the
    listed one."""
    if found := find_here(cache, entry.repo, entry.file):
        return found
    try:
        return find_here(cache, entry.repo, quantisation_of(entry.file))
    except HubError:  # several: which one is meant is not known
        return None


def drafts_for(target: str, pairs: Iterable[CataloguePair], paths: Paths, cache: Cache) -> Iterator[Entry]:
    """The drafts that are paired with a file of this name, in any quantisation, and are not here yet."""

    def model(name: str) -> str:
        return without_quantisation(Path(name).stem).casefold()

    for pair in pairs:
        draft = pair.draft
        if draft is None or model(pair.target.file) != model(target):
            continue
        if draft.own_file(paths) is None and find_entry(cache, draft) is None:
            yield draft
