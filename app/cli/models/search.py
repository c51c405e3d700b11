"""`draftscope search`: GGUF repositories by words, or the quantisations of one repository."""

from __future__ import annotations

from app.base.numbers import file_size
from app.cli.models.common import make_hub
from app.cli.terminal.arguments import Parser, plain_text
from app.cli.terminal.console import put, say
from app.cli.terminal.table import aligned
from app.engine.errors import UserError
from app.hub.cache import Cache
from app.hub.fits import Fit, fit_in
from app.hub.library.probe import short_number
from app.hub.library.reader import Reader
from app.hub.names import parse_address
from app.hub.repo import LIMIT, Quantisation, Repo, RepoHit, read_repo
from app.hub.repo import search as search_hub

PROG = "draftscope search"
_DESCRIPTION = """\
Find GGUF repositories on the Hugging Face Hub by words, most downloaded first. An address, or owner/name,
lists what that repository has: each quantisation with its size, and whether it fits this machine."""


def search(argv: list[str]) -> int:
    """Ask the Hub and print; returns the exit code. Raises UserError."""
    parser = Parser(PROG, _DESCRIPTION, f"{PROG} WORDS [--limit N]")
    parser.add_argument("words", metavar="WORDS", nargs="+", type=plain_text, help="Words, or an address")
    parser.add_argument(
        "--limit", metavar="N", type=int, default=LIMIT, help=f"List at most N (default {LIMIT})"
    )
    arguments = parser.parse_args(argv)
    if arguments.limit < 1:
        parser.error("argument --limit: cannot be below 1.")
    hub = make_hub()
    words = " ".join(arguments.words)
    found = search_hub(hub, words, arguments.limit)
    address = parse_address(words)
    if address is not None and [hit.repo for hit in found] == [address.repo]:
        _print_repo(read_repo(hub, address.repo, address.revision))
    elif found:
        _print_hits(found)
        say(f"To list a repository's files: {PROG} OWNER/NAME")
    else:
        say(f"No GGUF repository on the Hub matches “{words}”. Try fewer words.")
    return 0


def _print_hits(found: tuple[RepoHit, ...]) -> None:
    head = ("REPOSITORY", "PARAMETERS", "ARCHITECTURE", "LICENCE", "DOWNLOADS", "")
    rows = [
        (
            hit.repo,
            short_number(hit.parameters or 0) or "?",
            hit.architecture or "?",
            hit.licence or "?",
            f"{hit.downloads:,}",
            "gated" if hit.gated else "",
        )
        for hit in found
    ]
    put(aligned(head, rows, right=("PARAMETERS", "DOWNLOADS")))


def _print_repo(repo: Repo) -> None:
    lights = _lights(repo.quantisations)
    here = Cache().find_all(repo.repo, [quantisation.files for quantisation in repo.quantisations])
    rows = []
    for quantisation, light, path in zip(repo.quantisations, lights, here, strict=True):
        parts = (
            f"{len(quantisation.files)} parts, {quantisation.file}"
            if len(quantisation.files) > 1
            else quantisation.file
        )
        rows.append(
            (
                quantisation.name,
                file_size(quantisation.size),
                light,
                parts,
                "here" if path is not None else "",
            )
        )
    about = [repo.repo, repo.architecture, f"licence {repo.licence or 'not given'}"]
    say(", ".join(filter(None, about)) + (", gated: it needs a token" if repo.gated else ""))
    for notice in filter(None, (repo.limits, *repo.notices)):
        say(notice)
    if not rows:
        raise UserError(f"{repo.repo} has no GGUF file.", "Choose another repository.")
    put(aligned(("QUANTISATION", "SIZE", "FIT", "FILE", ""), rows, right=("SIZE",)))


def _lights(quantisations: tuple[Quantisation, ...]) -> list[str]:
    """Whether each fits, as a light; the memory that is free is printed on standard error."""
    reader = Reader()
    try:
        room = reader.room()
    except UserError as error:  # then there are no lights, but the rest is known
        say(str(error))
        return ["?"] * len(quantisations)
    finally:
        reader.close()
    fits: list[Fit] = [fit_in(quantisation.size, room) for quantisation in quantisations]
    say(f"Free now: {room}.")
    return [f"{fit.light}, needs about {file_size(fit.needed)}" for fit in fits]
