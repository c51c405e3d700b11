"""`draftscope search` and `draftscope pull`: finds models on the Hugging Face Hub, and downloads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from app.base.numbers import file_size
from app.base.paths import find_paths
from app.cli.models.fetching import fetch
from app.cli.models.here import make_hub
from app.cli.terminal.arguments import Parser, UsageError, add_options, plain_text
from app.cli.terminal.console import aligned, hand_over, put, say
from app.cli.terminal.interrupt import INTERRUPTED, Interrupt, run_interruptible
from app.engine.errors import UserError
from app.hub.cache import Cache
from app.hub.catalogue import CataloguePair, confirm, find_entry, find_here, load_catalogue, wanted_pair
from app.hub.downloads import Wanted
from app.hub.errors import HubError, Trouble
from app.hub.fits import Fit, fit_in
from app.hub.hub import Hub
from app.hub.library.probe import Reader, short_number
from app.hub.names import Address, parse_address
from app.hub.repo import LIMIT, Quantisation, Repo, RepoHit, read_repo
from app.hub.repo import search as search_hub

PROG = "draftscope search"
_DESCRIPTION = """\
Find GGUF repositories on the Hugging Face Hub by words, most downloaded first. For an address, or
owner/name, list that repository's quantisations with their sizes, and whether they fit this machine."""
_OPTIONS = f"""
words WORDS ...  Words, or an address
--limit N  List at most N (default {LIMIT})
"""


def search(argv: list[str]) -> int:
    """Ask the Hub and print; returns the exit code. Raises UserError."""
    parser = Parser(PROG, _DESCRIPTION, f"{PROG} WORDS [--limit N]")
    add_options(parser, _OPTIONS, words=plain_text, limit=(int, LIMIT))
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
        many, file, size = len(quantisation.files), quantisation.file, file_size(quantisation.size)
        parts, where = f"{many} parts, {file}" if many > 1 else file, "here" if path is not None else ""
        rows.append((quantisation.name, size, light, parts, where))
    about = [repo.repo, repo.architecture, f"licence {repo.licence or 'not given'}"]
    say(", ".join(filter(None, about)) + (", gated: it needs a token" if repo.gated else ""))
    for notice in filter(None, (repo.limits, *repo.notices)):
        say(notice)
    if not rows:
        raise UserError(f"{repo.repo} has no GGUF file.", "Choose a different repository.")
    put(aligned(("QUANTISATION", "SIZE", "FIT", "FILE", ""), rows, right=("SIZE",)))


def _lights(quantisations: tuple[Quantisation, ...]) -> list[str]:
    """Whether each fits, as a light; prints the free memory on standard error."""
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


PULL = "draftscope pull"
_OF_PULL = """\
Download FILE of a repository, or a whole PAIR of the catalogue. FILE is a file name, or a quantisation
such as Q4_K_M; all parts of a sharded model are downloaded. The path is printed on standard output. To
resume an interrupted download, give the same command again. Files that are already here are not
downloaded again; in offline mode only those files are found. A gated repository needs a token: save one
with hf auth login, or set HF_TOKEN."""
_WANTED = """
repo REPO  owner/name, the address of a file on the Hub, or a pair's name
file [FILE]  File, or quantisation
"""


def pull(argv: list[str]) -> int:
    """Download and print the paths; returns the exit code. Raises UserError."""
    pairs = {pair.id: pair for pair in load_catalogue(find_paths().resources / "catalogue.json")}
    listed = "\n".join(f"  {pair.id:18} {pair.title}: {file_size(pair.size)}" for pair in pairs.values())
    parser = Parser(
        PULL, _OF_PULL, f"{PULL} REPO FILE | ADDRESS | PAIR", f"pairs (approximate size):\n{listed}"
    )
    add_options(parser, _WANTED, file=(None, ""))
    arguments = parser.parse_args(argv)
    hub = make_hub()
    if arguments.repo in pairs and not arguments.file:
        return _pull_pair(hub, pairs[arguments.repo])
    address = _address(arguments.repo, arguments.file)
    if hub.is_offline:
        found = find_here(Cache(), address.repo, address.file, address.revision)
        return _print_what_is_here({f"{address.file} of {address.repo}": found})
    return run_interruptible(lambda interrupt: _fetch(hub, (_wanted(hub, address),), interrupt))


def _pull_pair(hub: Hub, pair: CataloguePair) -> int:
    """Download a pair, except models that came with Draftscope; prints the target's path first."""
    cache, paths = Cache(), find_paths()
    if hub.is_offline:
        return _print_what_is_here(
            {entry.file: find_entry(cache, entry) or entry.own_file(paths) for entry in pair.models}
        )
    if pair.limits:
        say(pair.limits)
    own = {
        entry: file
        for entry in pair.models
        if find_entry(cache, entry) is None and (file := entry.own_file(paths)) is not None
    }
    for file in own.values():
        say(f"{file.name} came with Draftscope and is not downloaded.")
    missing = [entry for entry in pair.models if entry not in own]

    def fetch_missing(interrupt: Interrupt) -> int:
        return _fetch(hub, wanted_pair(confirm(hub, missing)), interrupt) if missing else 0

    code = run_interruptible(fetch_missing)
    for file in own.values() if code == 0 else ():
        hand_over(str(file))
    return code


def _address(repo: str, file: str) -> Address:
    address = parse_address(repo)
    if address is None:
        raise UsageError(
            f"{repo!r} is neither a repository nor a pair.", f"Give owner/name and a file; see {PULL} --help."
        )
    if not (file or address.file):
        raise UsageError(
            f"Which file of {address.repo}?",
            f"Give one, or a quantisation; see draftscope search {address.repo}.",
        )
    return Address(address.repo, file or address.file, address.revision)


def _print_what_is_here(found: Mapping[str, Path | None]) -> int:
    """Offline: print the paths if all files are here. Raises HubError that names the missing ones."""
    if missing := [name for name, path in found.items() if path is None]:
        are = "is" if len(missing) == 1 else "are"
        raise HubError(
            Trouble.OFFLINE,
            f"Offline mode is on, and {' and '.join(missing)} {are} not on this machine.",
            "Turn it off to download.",
        )
    say("Offline mode is on; all files are already here.")
    for path in found.values():
        hand_over(str(path))
    return 0


def _wanted(hub: Hub, address: Address) -> Wanted:
    repo = read_repo(hub, address.repo, address.revision)
    if repo.limits:
        say(repo.limits)
    return Wanted.of(repo, repo.holding(address.file))


def _fetch(hub: Hub, wanted: Sequence[Wanted], interrupt: Interrupt) -> int:
    """Download all files, then print their paths on standard output."""
    paths = fetch(hub, wanted, interrupt)
    if paths is None:
        say(f"{PULL}: interrupted. What was downloaded is kept: the same command resumes.")
        return INTERRUPTED
    for path in paths:
        hand_over(str(path))
    return 0
