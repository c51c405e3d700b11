"""Finds models that are already here, without asking the Hub."""

from __future__ import annotations

from pathlib import Path

from app.hub.cache import Cache
from app.hub.catalogue import Entry
from app.hub.errors import HubError
from app.hub.names import quantisation_of
from app.hub.repo import HubFile, Repo, group_files


def find_here(cache: Cache, repo: str, file: str, revision: str = "main") -> Path | None:
    """The file to load of a model that is here whole, in the newest commit that has it.

    `file` is any of its files, its quantisation, or empty for the choice of `Repo.chosen`. For a revision
    other than "main" only the commit that it last pointed to counts. Raises HubError where several files have
    that quantisation.
    """
    for commit, names in cache.commits(repo, revision):
        quantisations, _ = group_files(HubFile(name, 0) for name in names)
        there = Repo(repo, commit.name, False, "", quantisations)
        if there.matching(file) if file else there.quantisations:
            return commit.joinpath(*there.chosen(file).file.split("/"))
    return None


def find_entry(cache: Cache, entry: Entry) -> Path | None:
    """The file to load of a model of the catalogue; another file of its quantisation may have replaced the
    listed one."""
    if found := find_here(cache, entry.repo, entry.file):
        return found
    try:
        return find_here(cache, entry.repo, quantisation_of(entry.file))
    except HubError:  # several: which one is meant is not known
        return None
