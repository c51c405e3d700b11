"""`draftscope lookup-cache`: makes static lookup caches for ngram-cache, and merges them."""

from __future__ import annotations

from pathlib import Path

from app.cli.answer.recorder import check_writable, write_file
from app.cli.terminal.arguments import Parser, add_options
from app.cli.terminal.console import say
from app.engine.drafters.cache_file import TextCounts, read_cache
from app.engine.native.header import FileHeader

PROG = "draftscope lookup-cache"
_DESCRIPTION = """\
Count which token follows each pair of tokens in texts, in the target's vocabulary, and write the counts in
llama.cpp's format. They serve ngram-cache:lookup_cache_static=FILE here, and --lookup-cache-static in
llama.cpp. Control tokens spelled out in a text are read as plain text. The file is valid for one vocabulary
only."""
_MERGE = "--merge CACHE.bin ...  Also add the counts of this lookup cache; may be given several times"


def lookup_cache(argv: list[str]) -> int:
    """Count, merge and write; returns the exit code. Raises UserError."""
    parser = Parser(
        PROG, _DESCRIPTION, f"{PROG} [FILE.txt ...] --target T.gguf --output OUT.bin [--merge CACHE.bin ...]"
    )
    add_options(parser, "texts [FILE.txt ...]  Texts to count, in UTF-8", Path)
    parser.add_argument(
        "--target", metavar="T.gguf", type=Path, required=True, help="The model whose vocabulary is used"
    )
    add_options(parser, "--output OUT.bin  The file to write", Path, required=True)
    add_options(parser, _MERGE, Path)
    arguments = parser.parse_args(argv)
    if not arguments.texts and not arguments.merge:
        parser.error("there is nothing to count: give a text, or --merge.")
    check_writable(arguments.output)
    header = FileHeader(arguments.target)
    try:
        counts = TextCounts(header.vocabulary)
        for cache in arguments.merge:
            counts.add_cache(read_cache(cache, header.vocabulary.size))
        for text in arguments.texts:
            say(f"{text}: {counts.add_text(text):,} tokens.")
    finally:
        header.close()
    write_file(arguments.output, counts.as_file())
    say(f"{arguments.output}: {len(counts):,} n-grams.")
    return 0
