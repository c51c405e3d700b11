"""The pages that people read, and the commands on them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

ROOT = Path(__file__).parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKED = [*DOCS, *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"))]
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`]+)`", re.DOTALL)
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def commands_in(text: str) -> list[str]:
    """The lines of the blocks of commands; a line that ends with a backslash goes on in the next."""
    return "".join(_BLOCK.findall(text)).replace("\\\n", " ").splitlines()


@dataclass(frozen=True, slots=True)
class Page:
    """A page by its path."""

    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def commands(self) -> list[str]:
        return commands_in(self.text)

    @property
    def sections(self) -> dict[str, list[str]]:
        """The commands of each section that has some, by the section's title."""
        parts = {
            part.partition("\n")[0]: commands_in(part) for part in re.split(r"^## ", self.text, flags=re.M)
        }
        return {title: commands for title, commands in parts.items() if commands}

    @property
    def prose(self) -> str:
        """Everything but its blocks."""
        return _FENCED.sub("", self.text)

    @property
    def spans(self) -> list[str]:
        """Code in its sentences, each without line breaks."""
        return [" ".join(span.split()) for span in _SPAN.findall(self.prose)]

    @property
    def anchors(self) -> set[str]:
        """What a link to one of its headings ends with, as the sites that host it make it."""
        titles = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}

    @override
    def __str__(self) -> str:
        return self.path.relative_to(ROOT).as_posix()


PAGES = [Page(path) for path in DOCS]
EVERY_PAGE = [Page(path) for path in LINKED]
