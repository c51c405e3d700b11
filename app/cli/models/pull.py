"""`draftscope pull`: download a model, or a pair of the catalogue, into the Hugging Face cache."""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.base.numbers import file_size
from app.base.paths import find_paths
from app.cli.arguments import Parser, UsageError
from app.cli.console import hand_over, say, say_over
from app.cli.interrupt import INTERRUPTED, Interrupt, run_interruptible
from app.cli.models.common import make_hub
from app.engine.errors import UserError
from app.hub.cache import Cache
from app.hub.catalogue import confirm, load_catalogue, wanted_pair
from app.hub.downloads import Download, DownloadChanged, DownloadQueue, QueueEvent, State, Wanted
from app.hub.errors import HubError, Trouble
from app.hub.here import find_entry, find_here
from app.hub.hub import Hub
from app.hub.names import Address, parse_address
from app.hub.repo import read_repo
from app.lab.report.words import duration

PROG = "draftscope pull"
_DESCRIPTION = """\
Download FILE of a repository (a file name, or a quantisation such as Q4_K_M; all parts of a sharded model
are downloaded), or a whole PAIR of the catalogue. The path is printed on standard output. To resume an
interrupted download, give the same command again. Files that are already here are not downloaded again; in
offline mode nothing else is found.
A gated repository needs a token: hf auth login saves one, HF_TOKEN gives one."""
_LOOK = 0.2  # seconds
_LINE_SECONDS = 5.0  # between two lines where standard error is no terminal
_BETWEEN = 0.5  # seconds between two states of the line that is


def pull(argv: list[str]) -> int:
    """Download and print the paths; returns the exit code. Raises UserError."""
    pairs = {pair.id: pair for pair in load_catalogue(find_paths().resources / "catalogue.json")}
    listed = "\n".join(f"  {pair.id:18} {pair.title}: {file_size(pair.size)}" for pair in pairs.values())
    parser = Parser(PROG, _DESCRIPTION, f"{PROG} REPO FILE | ADDRESS | PAIR", f"pairs (about):\n{listed}")
    parser.add_argument(
        "repo", metavar="REPO", help="owner/name, the address of a file on the Hub, or a pair's name"
    )
    parser.add_argument("file", metavar="FILE", nargs="?", default="", help="File, or quantisation")
    arguments = parser.parse_args(argv)
    hub = make_hub()
    if arguments.repo in pairs and not arguments.file:
        pair = pairs[arguments.repo]
        if hub.is_offline:
            return _print_what_is_here({entry.file: find_entry(Cache(), entry) for entry in pair.models})
        return run_interruptible(lambda interrupt: _fetch(hub, wanted_pair(confirm(hub, pair)), interrupt))
    address = _address(arguments.repo, arguments.file)
    if hub.is_offline:
        found = find_here(Cache(), address.repo, address.file, address.revision)
        return _print_what_is_here({f"{address.file} of {address.repo}": found})
    return run_interruptible(lambda interrupt: _fetch(hub, (_wanted(hub, address),), interrupt))


def _address(repo: str, file: str) -> Address:
    address = parse_address(repo)
    if address is None:
        raise UsageError(
            f"{repo!r} is neither a repository nor a pair.", f"Give owner/name and a file; see {PROG} --help."
        )
    if not (file or address.file):
        raise UsageError(
            f"Which file of {address.repo}?",
            f"Give one, or a quantisation; see draftscope search {address.repo}.",
        )
    return Address(address.repo, file or address.file, address.revision)


def _print_what_is_here(found: Mapping[str, Path | None]) -> int:
    """Offline: the paths where all of it is here. Raises HubError that says what is not."""
    if missing := [name for name, path in found.items() if path is None]:
        are = "is" if len(missing) == 1 else "are"
        raise HubError(
            Trouble.OFFLINE,
            f"Offline mode is on, and {' and '.join(missing)} {are} not here.",
            "Turn it off to download.",
        )
    say("Offline mode is on; all files are already here.")
    for path in found.values():
        hand_over(str(path))
    return 0


def _wanted(hub: Hub, address: Address) -> Wanted:
    repo = read_repo(hub, address.repo, address.revision)
    return Wanted.of(repo, repo.holding(address.file))


def _fetch(hub: Hub, wanted: Sequence[Wanted], interrupt: Interrupt) -> int:
    """Download all of it; the paths go to standard output when everything is here."""
    events: queue.SimpleQueue[QueueEvent] = queue.SimpleQueue()
    downloads = DownloadQueue(None, hub, events.put, checked=find_paths().checked)
    progress = _ProgressLine()
    try:
        ids = downloads.add(wanted)
        items: dict[str, Download] = {one.id: one for one in downloads.downloads}
        while not interrupt.pressed and not _is_over([items[id] for id in ids if id in items], len(ids)):
            try:
                event = events.get(timeout=_LOOK)
            except queue.Empty:
                continue
            if isinstance(event, DownloadChanged):
                items[event.download.id] = event.download
                progress.show([items[id] for id in ids if id in items])
    finally:
        progress.end()
        downloads.close()
    items |= {one.id: one for one in downloads.downloads}
    for id in ids:
        if items[id].state is State.FAILED:
            raise _failure(items[id])
    if not all(items[id].state is State.DONE for id in ids):
        say(f"{PROG}: interrupted. What was downloaded is kept: the same command resumes.")
        return INTERRUPTED
    for id in ids:
        hand_over(str(items[id].path))
    return 0


def _is_over(items: Sequence[Download], count: int) -> bool:
    """Everything is here, or something cannot come."""
    states = [one.state for one in items]
    return State.FAILED in states or (len(items) == count and set(states) == {State.DONE})


def _failure(item: Download) -> UserError:
    hint = item.hint
    if item.trouble in (Trouble.GATED, Trouble.DENIED):
        hint += " hf auth login saves a token, HF_TOKEN gives one."
    return HubError(item.trouble or Trouble.CRASHED, item.message, hint)


class _ProgressLine:
    """Progress on standard error: one line that changes on a terminal, else a line now and then."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._next = 0.0
        self._told = ""
        self._open = False  # the line that changes stands there

    def show(self, items: Sequence[Download]) -> None:
        trouble = next((one for one in items if one.state is State.WAITING), None)
        if trouble is not None and trouble.message != self._told:
            self._told = trouble.message
            self.end()
            say(f"{trouble.message} Trying again in {trouble.retry_in or 0:.0f} s.")
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (_BETWEEN if self._terminal else _LINE_SECONDS)
        if self._terminal:
            say_over(_words(items))
            self._open = True
        else:
            say(_words(items))

    def end(self) -> None:
        """Leave the line that changes."""
        if self._open:
            say("")
            self._open = False


def _words(items: Sequence[Download]) -> str:
    done, total = sum(one.done for one in items), sum(one.total for one in items)
    words = [f"{file_size(done)} of {file_size(total)}"]
    if total:
        words.insert(0, f"{done / total * 100:3.0f} %")
    if speed := sum(one.speed or 0 for one in items):
        words.append(f"{file_size(speed)}/s")
        words.append(f"{duration((total - done) / speed)} left")
    if any(one.state is State.CHECKING for one in items):
        words.append("checking")
    return ", ".join(words)
