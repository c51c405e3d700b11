"""Downloading models for a command, with progress on standard error."""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from app.base.numbers import duration, file_size
from app.base.paths import BUNDLED, find_paths
from app.cli.models.here import make_hub
from app.cli.terminal.console import say, say_over
from app.cli.terminal.interrupt import Interrupt
from app.engine.types import ModelOptions
from app.hub.cache import Cache
from app.hub.catalogue import find_here
from app.hub.downloads import Download, DownloadChanged, DownloadQueue, QueueEvent, State, Wanted
from app.hub.errors import HubError, Trouble
from app.hub.hub import Hub
from app.hub.names import Address, parse_model
from app.hub.repo import read_repo

_LOOK = 0.2  # seconds between two checks for Ctrl+C
_LINE_SECONDS = 5.0  # between two progress lines where standard error is not a terminal
_BETWEEN = 0.5  # seconds between two updates of the line on a terminal


def on_the_hub(name: str) -> Address | None:
    """The Hub model named on a command line; None if it is a file."""
    return None if name.startswith(BUNDLED) or Path(name).exists() else parse_model(name)


def fetch_pair(
    target: ModelOptions, draft: ModelOptions | None, interrupt: Interrupt
) -> tuple[ModelOptions, ModelOptions | None]:
    """The pair with local files instead of names on the Hub; missing files are downloaded.

    Raises HubError, and KeyboardInterrupt if Ctrl+C came first.
    """
    found = [_fetch_named(options, interrupt) if options else None for options in (target, draft)]
    assert found[0] is not None
    return found[0], found[1]


def _fetch_named(options: ModelOptions, interrupt: Interrupt) -> ModelOptions:
    address = on_the_hub(options.path)
    if address is None:
        return options
    return replace(options, path=str(_fetch_address(address, options.path, interrupt)))


def _fetch_address(address: Address, name: str, interrupt: Interrupt) -> Path:
    """The file of a model on the Hub, downloaded if it is not here. Raises HubError."""
    hub = make_hub()
    here = find_here(Cache(), address.repo, address.file, address.revision)
    if hub.is_offline:
        if here is None:
            raise HubError(
                Trouble.OFFLINE,
                f"Offline mode is on, and {name} is not on this machine.",
                "Turn it off to download.",
            )
        return here
    try:
        repo = read_repo(hub, address.repo, address.revision)
    except HubError as error:
        if error.trouble is Trouble.NOT_FOUND:
            raise HubError(error.trouble, error.message, f"There is no file {name} either.") from error
        if here is None or error.trouble is not Trouble.UNREACHABLE:
            raise
        say(f"{error.message} Using {here.name}, which is here.")
        return here
    quantisation = repo.chosen(address.file)
    found = Cache().find_first(address.repo, quantisation.files)
    if found is None:
        if repo.limits:
            say(repo.limits)
        say(f"Downloading {quantisation.file} of {address.repo}, {file_size(quantisation.size)}.")
    fetched = fetch(hub, (Wanted.of(repo, quantisation),), interrupt)
    if fetched is None:
        say("Interrupted. What was downloaded is kept: the same command resumes.")
        raise KeyboardInterrupt
    return fetched[0]


def fetch(hub: Hub, wanted: Sequence[Wanted], interrupt: Interrupt) -> list[Path] | None:
    """Download what is missing and return all files to load; None if Ctrl+C came first. Raises
    HubError."""
    events: queue.SimpleQueue[QueueEvent] = queue.SimpleQueue()
    downloads = DownloadQueue(None, hub, events.put, checked=find_paths().checked)
    progress = _DownloadLine()
    missing = [Cache().find_first(model.repo, model.files) is None for model in wanted]
    try:
        ids = downloads.add(wanted)
        shown = [id for id, is_missing in zip(ids, missing, strict=True) if is_missing]
        items: dict[str, Download] = {download.id: download for download in downloads.downloads}
        while not interrupt.pressed and not _is_over([items[id] for id in ids if id in items], len(ids)):
            try:
                event = events.get(timeout=_LOOK)
            except queue.Empty:
                continue
            if isinstance(event, DownloadChanged):
                items[event.download.id] = event.download
                progress.show([items[id] for id in shown if id in items])
    finally:
        progress.end()
        downloads.close()
    items |= {download.id: download for download in downloads.downloads}
    for id in ids:
        if items[id].state is State.FAILED:
            item = items[id]
            raise with_token_hint(HubError(item.trouble or Trouble.CRASHED, item.message, item.hint))
    paths = [Path(items[id].path) for id in ids if items[id].state is State.DONE]
    return paths if len(paths) == len(ids) else None


def _is_over(items: Sequence[Download], count: int) -> bool:
    """Whether all downloads are done, or one has failed."""
    states = [download.state for download in items]
    return State.FAILED in states or (len(items) == count and set(states) == {State.DONE})


def with_token_hint(error: HubError) -> HubError:
    """The error, with a hint on tokens if a token is needed."""
    if error.trouble not in (Trouble.GATED, Trouble.DENIED):
        return error
    return HubError(
        error.trouble, error.message, f"{error.hint} Save a token with hf auth login, or set HF_TOKEN."
    )


class _DownloadLine:
    """Progress on standard error: a changing line on a terminal, else a line every few seconds."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._next = 0.0
        self._told = ""
        self._open = False  # whether the changing line is shown

    def show(self, items: Sequence[Download]) -> None:
        if not items:
            return  # all of it is here, and is only looked at
        trouble = next((download for download in items if download.state is State.WAITING), None)
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
        """End the changing line."""
        if self._open:
            say("")
            self._open = False


def _words(items: Sequence[Download]) -> str:
    done, total = sum(download.done for download in items), sum(download.total for download in items)
    words = [f"{file_size(done)} of {file_size(total)}"]
    if total:
        words.insert(0, f"{done / total * 100:3.0f} %")
    if speed := sum(download.speed or 0 for download in items):
        words.append(f"{file_size(speed)}/s")
        words.append(f"{duration((total - done) / speed)} left")
    if any(download.state is State.CHECKING for download in items):
        words.append("checking")
    return ", ".join(words)
