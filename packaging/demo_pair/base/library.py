"""Prose and code of others that set-up installs: `library.jsonl` and `library.md` in `--work`.

Runs in the app's environment (`make ready-dev`), whose versions are pinned by packaging/locks. Only what
stands in SOURCES is read, and nothing that speaks of the GPL.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import inspect
import json
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from zlib import crc32

PYTHON = "Python"
SOURCES = {
    PYTHON: "PSF-2.0",
    "anyio": "MIT",
    "click": "BSD-3-Clause",
    "coverage": "Apache-2.0",
    "diskcache": "Apache-2.0",
    "execnet": "MIT",
    "filelock": "MIT",
    "fsspec": "BSD-3-Clause",
    "gguf": "MIT",
    "grimp": "BSD-2-Clause",
    "h11": "MIT",
    "httpcore2": "BSD-3-Clause",
    "httpx2": "BSD-3-Clause",
    "huggingface-hub": "Apache-2.0",
    "idna": "BSD-3-Clause",
    "import-linter": "BSD-2-Clause",
    "iniconfig": "MIT",
    "jinja2": "BSD-3-Clause",
    "llama-cpp-python": "MIT",
    "markdown-it-py": "MIT",
    "markupsafe": "BSD-3-Clause",
    "mdurl": "MIT",
    "msgspec": "BSD-3-Clause",
    "mypy": "MIT",
    "numpy": "BSD-3-Clause",
    "packaging": "Apache-2.0 or BSD-2-Clause",
    "platformdirs": "MIT",
    "pluggy": "MIT",
    "psutil": "BSD-3-Clause",
    "pygments": "BSD-2-Clause",
    "pyqtgraph": "MIT",
    "pytest": "MIT",
    "pytest-qt": "MIT",
    "pytest-randomly": "MIT",
    "pytest-timeout": "MIT",
    "pytest-xdist": "MIT",
    "pyyaml": "MIT",
    "requests": "Apache-2.0",
    "rich": "MIT",
    "scipy": "BSD-3-Clause",
    "sortedcontainers": "Apache-2.0",
    "typing-extensions": "PSF-2.0",
    "urllib3": "MIT",
}
"""What may be read, and its licence. What is missing here, is: files under GPL, LGPL or MPL (Qt, hypothesis,
certifi, tqdm, pathspec), and packages that carry copies of others (pip, setuptools)."""
SKIPPED = {
    "test", "tests", "testing", "idle_test", "idlelib", "lib2to3", "site-packages", "encodings", "turtledemo",
    "_vendor", "vendor", "vendored", "typeshed", "colors", "__pycache__", "_unicode_data",
}  # fmt: skip
"""Folders that hold tests, tables and copies of other packages."""
FOREIGN = re.compile(r"\bL?GPL|GNU (Lesser |Library )?General Public|Mozilla Public")
SENTENCE = re.compile(r"(?:^|(?<=\. ))[A-Z][A-Za-z0-9 ,;:'()_=-]{20,120}\.(?= |$)")
HEADER = re.compile(r"\A(?:#[^\n]*\n|\n)+")
MOST_BYTES = 200_000
LEAST_LETTERS = 0.55
"""Share of letters and blanks below which a file is a table of numbers."""
LEAST_DOCSTRING = 120
HELD_OUT_SHARE = 16
"""One file of so many is never trained on."""
FROZEN = Path(__file__).parents[1] / "evaluation.jsonl"


@dataclass(frozen=True, slots=True)
class Document:
    """One text of a source. `kind` is `code` or `prose`."""

    source: str
    path: str
    kind: str
    held_out: bool
    text: str


def files_of(source: str) -> Iterator[tuple[str, Path]]:
    """(path that is told, file) of a source's Python files, in order; nothing where it is not installed."""
    if source == PYTHON:
        root = Path(sysconfig.get_path("stdlib"))
        files = {path.relative_to(root).as_posix(): path for path in root.rglob("*.py")}
    else:
        try:
            found = distribution(source)
        except PackageNotFoundError:
            return
        paths = [path for path in found.files or () if path.suffix == ".py" and ".." not in path.parts]
        files = {path.as_posix(): Path(str(path.locate())) for path in paths}
    for name, path in sorted(files.items()):
        if not SKIPPED & set(Path(name).parts) and path.is_file():
            yield name, path


def version(source: str) -> str:
    return sys.version.split()[0] if source == PYTHON else distribution(source).version


def tidy(text: str) -> str:
    """The text with plain line ends, no tabs and no blanks at ends of lines."""
    lines = (line.rstrip() for line in text.replace("\f", "").expandtabs(4).splitlines())
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip("\n") + "\n"


def without_header(text: str) -> str:
    """The text without the comment at its head where that is a notice of copyright."""
    head = HEADER.match(text)
    return text[head.end() :] if head and re.search("(?i)copyright|licen[sc]e", head[0]) else text


def is_text(text: str) -> bool:
    return bool(text) and len(re.findall(r"[A-Za-z\s]", text)) / len(text) >= LEAST_LETTERS


def docstrings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found = inspect.cleandoc(ast.get_docstring(node) or "")
            if len(found) >= LEAST_DOCSTRING:
                yield tidy(found)


def topics(tree: ast.Module) -> Iterator[str]:
    """Chapters of Python's language reference, from `pydoc_data/topics.py`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for value in node.values:
                yield tidy(str(ast.literal_eval(value)))


def about(source: str) -> str:
    """What a package says of itself, without its badges."""
    text = str(distribution(source).metadata.get_payload() or "")
    kept = [
        line
        for line in text.splitlines()
        if not re.match(r"\s*(\[?!\[|\.\. (image|\|)|<|:target:|:alt:)", line)
    ]
    return tidy("\n".join(kept))


@cache
def judged() -> frozenset[str]:
    """The sentences of the 100 judged prompts, those that they quote from the library among them."""
    lines = FROZEN.read_text(encoding="utf-8").splitlines()
    texts = [content for line in lines for _, content in json.loads(line)["messages"]]
    return frozenset(found for text in texts for part in text.split("\n") for found in SENTENCE.findall(part))


def sentences(tree: ast.Module) -> list[str]:
    """Plain sentences of the docstrings of a file."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                found += SENTENCE.findall(" ".join(paragraph.split()))
    return found


def is_held_out(source: str, name: str, said: Iterable[str]) -> bool:
    """Whether a file that says these sentences is kept from training: one of so many, and what is judged."""
    return not crc32(f"{source}/{name}".encode()) % HELD_OUT_SHARE or not judged().isdisjoint(said)


def documents() -> Iterator[Document]:
    """All texts, in order, each once. A file's texts are all trained on, or all held out."""
    seen: set[str] = set()
    for source in SOURCES:
        for name, path in files_of(source):
            text = tidy(path.read_text(encoding="utf-8", errors="replace"))
            if FOREIGN.search(text) or len(text) < 200 or text in seen:
                continue
            try:
                tree = ast.parse(text)
            except SyntaxError:  # a template, or a file that is meant to be wrong
                continue
            seen.add(text)
            held_out = is_held_out(source, name, sentences(tree))
            if name == "pydoc_data/topics.py":
                for number, chapter in enumerate(topics(tree)):
                    kept = not number % HELD_OUT_SHARE
                    yield Document(source, f"{name}/{number}", "prose", kept, chapter)
                continue
            for part in docstrings(tree):
                if part not in seen and is_text(part):
                    seen.add(part)
                    yield Document(source, name, "prose", held_out, part)
            if len(text) <= MOST_BYTES and is_text(text):
                yield Document(source, name, "code", held_out, without_header(text))
        if source != PYTHON and any(files_of(source)):
            text = about(source)
            if not FOREIGN.search(text) and is_text(text):
                held_out = not crc32(source.encode()) % HELD_OUT_SHARE
                yield Document(source, "README", "prose", held_out, text)


def load(work: Path) -> list[Document]:
    """The texts that `main` wrote."""
    with (work / "library.jsonl").open(encoding="utf-8") as lines:
        return [Document(**json.loads(line)) for line in lines]


def table(found: list[Document], digest: str) -> str:
    """Sources, versions, licences and sizes, as Markdown."""
    rows = [
        "| source | version | licence | files | code, kB | prose, kB | held out, kB |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for source, licence in SOURCES.items():
        own = [document for document in found if document.source == source]
        if own:
            sizes = (
                sum(len(document.text) for document in own if keep(document)) // 1000
                for keep in (lambda d: d.kind == "code", lambda d: d.kind == "prose", lambda d: d.held_out)
            )
            files = len({document.path for document in own})
            told = " | ".join(f"{size:,}" for size in sizes)
            rows.append(f"| {source} | {version(source)} | {licence} | {files:,} | {told} |")
    return "\n".join([*rows, "", f"SHA-256 of all texts: `{digest}`", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    missing = [source for source in SOURCES if not any(files_of(source))]
    if missing:
        raise SystemExit(f"not installed: {', '.join(missing)}; `make ready-dev` sets them up")
    found = list(documents())
    content = "".join(json.dumps(asdict(document), ensure_ascii=False) + "\n" for document in found).encode(
        errors="replace"
    )
    (args.work / "library.md").write_text(table(found, hashlib.sha256(content).hexdigest()), encoding="utf-8")
    fresh = args.work / "library.new"
    fresh.write_bytes(content)
    fresh.replace(args.work / "library.jsonl")
    for kind in ("code", "prose"):
        for held_out in (False, True):
            own = [
                document.text for document in found if (document.kind, document.held_out) == (kind, held_out)
            ]
            side = "held out" if held_out else "trained on"
            print(f"{kind}, {side}: {len(own):,} texts, {sum(map(len, own)) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
