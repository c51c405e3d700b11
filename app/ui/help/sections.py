"""What Help says, as text: words, keys, files, about. No Qt here."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from app import __version__
from app.base.paths import Paths
from app.ui.instruments.definitions import GLOSSARY

TITLES = {"words": "Words", "keys": "Keys", "files": "Files", "about": "About"}
"""The sections by name."""

_FIGURES = {
    "inter_token": "between tokens",
    "draft_length": "draft length",
    "acc_per_pos": "acc per pos",
    "acceptance_by_place": "of drafted there",
    "judged_acceptance_by_place": "of judged there",
    "accepted_per_round": "accepted per round",
    "ranks": "choice, rank",
    "target_entropy": "entropy",
    "strategies": "share of each strategy",
}
"""The columns of reports that are words of the window too, and those words."""

_LICENCES = {
    "PySide6-Essentials": "LGPL 3.0",
    "llama-cpp-python": "MIT, as llama.cpp in it",
    "numpy": "BSD",
    "msgspec": "BSD",
    "Jinja2": "BSD",
    "pyqtgraph": "MIT",
    "markdown-it-py": "MIT",
    "Pygments": "BSD",
    "platformdirs": "MIT",
    "filelock": "MIT",
    "huggingface-hub": "Apache 2.0",
    "httpx2": "BSD",
}
"""The libraries that Draftscope is made with, and their licences."""


@dataclass(frozen=True, slots=True)
class HelpEntry:
    """A word, a key, a file or a fact, and what there is to know about it."""

    head: str
    text: str
    path: Path | None = None  # a file or a folder that can be opened

    def holds(self, words: Iterable[str]) -> bool:
        """Whether all these words, in small letters, stand in it."""
        text = f"{self.head} {self.text}".lower()
        return all(word in text for word in words)


@dataclass(frozen=True, slots=True)
class HelpSection:
    """Entries under a title, such as the keys of a place. `name` is one of TITLES."""

    name: str
    title: str
    entries: tuple[HelpEntry, ...]

    def found(self, typed: str) -> HelpSection:
        """The section with the entries in which every typed word stands."""
        words = typed.lower().split()
        return replace(self, entries=tuple(entry for entry in self.entries if entry.holds(words)))


def words() -> HelpSection:
    """The glossary."""
    from app.lab.load.export import LOAD_COLUMNS  # not before Help is opened: it would slow the start
    from app.lab.report.columns import COLUMNS, SHAPE

    columns = (column for column in (*COLUMNS, *SHAPE) if column.key in _FIGURES)
    figures = {_FIGURES[column.key]: column.definition for column in columns}
    figures |= {column.title: column.definition for column in LOAD_COLUMNS if column.title == "goodput"}
    entries = (HelpEntry(*word) for word in (GLOSSARY | figures).items())
    return HelpSection("words", "Words", tuple(entries))


def keys(where: str, rows: Iterable[tuple[str, str]]) -> HelpSection:
    """The keys of the window or of a place: rows of what they do, and the keys."""
    return HelpSection("keys", f"Keys · {where}", tuple(HelpEntry(*row) for row in rows))


def files(paths: Paths) -> HelpSection:
    """Where Draftscope writes."""
    places = {
        "Chats, with their traces": paths.chats,
        "Measurements": paths.data / "compare",
        "Settings": paths.settings,
        "Presets": paths.presets,
        "Logs": paths.logs,
    }
    entries = (HelpEntry(what, str(path), path) for what, path in places.items())
    return HelpSection("files", "Files", tuple(entries))


def about(engine: str) -> HelpSection:
    """Versions and licences. `engine` says where the engine runs."""
    facts = [("Draftscope", f"{__version__} · MIT licence"), ("Engine", f"runs {engine}")]
    facts += [("Python", platform.python_version()), ("System", f"{platform.system()} {platform.release()}")]
    facts += [(name, f"{_version(name)} · {licence}") for name, licence in _LICENCES.items()]
    facts.append(("Inter, JetBrains Mono", "the fonts · SIL Open Font License 1.1"))
    return HelpSection("about", "About", tuple(HelpEntry(*fact) for fact in facts))


def _version(library: str) -> str:
    import importlib.metadata  # brings a parser of e-mails, for which the start of the window waited

    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:  # a bundle may leave out what pip keeps about libraries
        return "bundled"
