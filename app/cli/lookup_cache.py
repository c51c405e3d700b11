"""`draftscope lookup-cache`: makes static lookup caches for ngram-cache, and merges them."""

from __future__ import annotations

from pathlib import Path

from app.base.files import reason
from app.cli.answer.recorder import check_writable, write_file
from app.cli.arguments import Parser
from app.cli.console import say
from app.engine.drafters.ngram.cache_file import LookupCache, read_cache
from app.engine.drafters.ngram.counts import STATIC_SIZE, Followers, count_ngrams
from app.engine.errors import PromptError
from app.engine.native import Vocabulary
from app.engine.native.header import FileHeader

PROG = "draftscope lookup-cache"
_DESCRIPTION = """\
Count which token follows each pair of tokens in texts, in the target's vocabulary, and write the counts in
llama.cpp's format. They serve ngram-cache:lookup_cache_static=FILE here, and --lookup-cache-static in
llama.cpp. Control tokens spelled out in a text are read as plain text. The file is valid for one vocabulary
only."""


def lookup_cache(argv: list[str]) -> int:
    """Count, merge and write; returns the exit code. Raises UserError."""
    parser = Parser(
        PROG, _DESCRIPTION, f"{PROG} [FILE.txt ...] --target T.gguf --output OUT.bin [--merge CACHE.bin ...]"
    )
    parser.add_argument("texts", metavar="FILE.txt", nargs="*", type=Path, help="Texts to count, in UTF-8")
    parser.add_argument(
        "--target", metavar="T.gguf", type=Path, required=True, help="The model whose vocabulary is used"
    )
    parser.add_argument(
        "--output",
        metavar="OUT.bin",
        type=Path,
        required=True,
        help="The file to write",
    )
    parser.add_argument(
        "--merge",
        metavar="CACHE.bin",
        type=Path,
        action="append",
        default=[],
        help="Also add the counts of this lookup cache; may be given several times",
    )
    arguments = parser.parse_args(argv)
    if not arguments.texts and not arguments.merge:
        parser.error("there is nothing to count: give a text, or --merge.")
    check_writable(arguments.output)
    header = FileHeader(arguments.target)
    try:
        counts = _counts(header.vocabulary, arguments.texts, arguments.merge)
    finally:
        header.close()
    write_file(arguments.output, LookupCache.empty().merged(counts))
    say(f"{arguments.output}: {len(counts):,} n-grams.")
    return 0


def _counts(vocabulary: Vocabulary, texts: list[Path], caches: list[Path]) -> dict[bytes, Followers]:
    counts: dict[bytes, Followers] = {}
    for path in caches:
        _add_cache(counts, read_cache(path, vocabulary.size))
    for path in texts:
        tokens = vocabulary.tokenize(_text(path), special=True, parse_special=False)
        count_ngrams(counts, tokens, sizes=(STATIC_SIZE, STATIC_SIZE))
        say(f"{path}: {len(tokens):,} tokens.")
    return counts


def _add_cache(counts: dict[bytes, Followers], cache: LookupCache) -> None:
    for key in cache:
        followers = cache.get(key)
        assert followers is not None
        if key not in counts:
            counts[key] = followers
            continue
        for token, count in followers.items().items():
            counts[key].add(token, count)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise PromptError(f"{path} cannot be read: {reason(error)}.", "Give another file.") from None
    except UnicodeDecodeError:
        raise PromptError(f"{path} is not UTF-8 text.", "Convert it first.") from None
