"""Fetches an item's files into the cache: looks them up, resumes, verifies checksums and retries.

Requests go through huggingface_hub; the transfer is plain HTTP with ranges. (huggingface_hub's own downloads
restart in every process, and Xet transfers can be neither paused nor watched.)
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import urlsplit

import httpx2
from huggingface_hub import get_hf_file_metadata, hf_hub_url
from huggingface_hub.errors import RevisionNotFoundError
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

from app.base.files import open_file
from app.base.numbers import file_size
from app.hub.cache import Cache
from app.hub.cache_entry import CacheEntry, Checked
from app.hub.downloads import item
from app.hub.errors import PASSING, HubError, Trouble, explain, unusable_answer
from app.hub.hub import FILE, bounded_session

_REPORT_SECONDS = 0.1
_BLOCK = 1 << 20  # bytes read at once for the checksum
_HUB = ("https", "huggingface.co", None)  # a mirror may redirect there
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KEPT_FREE = 64_000_000  # bytes that a download leaves on the disk
LARGEST = 50_000_000_000  # bytes; what the Hub hands out in one file over HTTP


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


@dataclass(frozen=True, slots=True)
class _Remote:
    """The server's present version of a file."""

    address: str
    headers: dict[str, str]
    etag: str
    commit: str
    size: int
    sha256: str  # empty if the server does not give it
    at_hub: bool  # the bytes come from the Hub itself, which names their etag


class Fetcher:
    """Fetches one job. Runs in a child process; may be killed at any moment."""

    def __init__(
        self,
        job: item.DownloadJob,
        report: Callable[[item.Report], None],
        free_bytes: Callable[[], int] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._job = job
        self._report = report
        self._cache = Cache(Path(job.cache))
        self._checked = Checked(Path(job.checked) if job.checked else None)
        self._free_bytes = free_bytes or self._cache.free_bytes
        self._sleep = sleep
        self._patience = job.patience
        # All files of an item come from one commit, also after a restart.
        self._commit = next((file.commit for file in job.files if file.commit), "")
        self._goes_on = bool(self._commit)  # the revision may point to a newer commit now
        self._before = 0  # bytes of the files that are done
        self._next_report = 0.0
        self._furthest = 0  # the most bytes of the current file that were ever here

    def run(self) -> None:
        """Fetch every file; raises HubError if it gives up."""
        for index, file in enumerate(self._job.files):
            path, size = self._persist(index, file)
            self._before += size
            self._report(item.FileDone(index, str(path)))
            self._report(item.DownloadProgress(self._before))

    def _persist(self, index: int, file: item.ItemFile) -> tuple[Path, int]:
        """Fetch a file, retrying while that may help."""
        fruitless = self._furthest = 0
        while True:
            furthest = self._furthest
            try:
                return self._fetch(index, file)
            except Exception as error:
                known = self._explain(error, file)
                if known is None:
                    raise
                fruitless = 1 if self._furthest > furthest else fruitless + 1
                if known.trouble not in PASSING or fruitless > self._patience.attempts:
                    raise known from error
            wait = min(self._patience.longest_wait, self._patience.first_wait * 2 ** (fruitless - 1))
            wait = wait if known.wait is None else max(wait, known.wait)
            self._report(item.Waiting(known.trouble, known.message, known.hint, wait))
            self._sleep(wait)

    def _explain(self, error: Exception, file: item.ItemFile) -> HubError | None:
        if isinstance(error, RevisionNotFoundError) and self._commit:
            self._commit, self._goes_on = "", False  # the repository's history was rewritten
            return _changed()
        return explain(error, f"{file.name} of {self._job.repo}")

    def _fetch(self, index: int, file: item.ItemFile) -> tuple[Path, int]:
        remote = self._look(file)
        entry = self._cache.entry(self._job.repo, file.name, remote.etag, remote.commit)
        self._begun(index, remote, found=True)  # until its lock is held, it belongs to another program
        if not self._is_here(file, remote, entry):
            with entry.locked():
                # Another program may have downloaded it while this one waited: only now its owner is known.
                if not self._is_here(file, remote, entry):
                    self._begun(index, remote, found=False)
                    self._bring(file, remote, entry)
        path = entry.link()
        entry.refer(self._job.revision, unless_known=self._goes_on)
        return path, remote.size

    def _is_here(self, file: item.ItemFile, remote: _Remote, entry: CacheEntry) -> bool:
        """Whether the file is in the cache, downloaded by any program. A crash or a bad disk can leave wrong
        bytes of the right size, so they are read once."""
        places = (path for path in (entry.pointer, entry.blob) if path.is_file())
        here = next((path for path in places if path.stat().st_size == remote.size), None)
        if here is None:
            return False
        sha256 = _checksum_of(file, remote)
        if not sha256 or self._checked.has(here, sha256):
            return True
        checksum: _Hash = hashlib.sha256()
        self._read_again(here, checksum)
        if checksum.hexdigest() != sha256:
            self._report(item.DownloadProgress(self._before))
            return False
        self._checked.add(here, sha256)
        return True

    def _begun(self, index: int, remote: _Remote, found: bool) -> None:
        self._report(item.DownloadBegun(index, remote.etag, remote.commit, remote.size, found))

    def _look(self, file: item.ItemFile) -> _Remote:
        """Ask the Hub for the file's address, size and checksum."""
        revision = self._commit or self._job.revision
        address = hf_hub_url(self._job.repo, file.name, revision=revision, endpoint=self._job.endpoint)
        bounded_session()  # for the client's own function, too
        try:
            found = get_hf_file_metadata(address, timeout=self._patience.stall)
            at_hub = _origin(found.location) in (_origin(address), _HUB)
        except ValueError as error:  # of an address or a number that is none
            raise unusable_answer("it does not describe the file") from error
        if not found.etag or not found.commit_hash or found.size is None or found.size < 0:
            raise unusable_answer("it does not describe the file")
        self._commit = found.commit_hash
        if found.size > LARGEST:
            raise HubError(
                Trouble.NOT_FOUND,
                f"{file.name} is {file_size(found.size)} in one file; the Hub serves at most "
                f"{file_size(LARGEST)}.",
                "Choose a smaller quantisation, or one in several parts.",
            )
        # The token is for the Hub, and must not be sent to the server that has the bytes.
        headers = build_hf_headers() if at_hub else build_hf_headers(token=False)
        headers["Accept-Encoding"] = "identity"
        sha256 = found.etag if _SHA256.fullmatch(found.etag) else ""
        if file.listed == found.commit_hash:  # a commit does not change
            sizes, checksums = (file.size, found.size), (file.sha256, sha256)
            if any(all(both) and both[0] != both[1] for both in (sizes, checksums)):
                raise HubError(
                    Trouble.CHECKSUM,
                    f"The Hub's listing of {file.name} differs from the file that it sent for the same "
                    "commit.",
                    "Do not trust this file. Search the repository again, or choose a different one.",
                )
        return _Remote(found.location, headers, found.etag, found.commit_hash, found.size, sha256, at_hub)

    def _bring(self, file: item.ItemFile, remote: _Remote, entry: CacheEntry) -> None:
        """Download what is missing, verify it, and make it the blob."""
        start = entry.begin()
        if start > remote.size:
            entry.partial.unlink()
            start = 0
        self._check_space(remote.size - start)
        checksum: _Hash = hashlib.sha256()
        if start:
            self._read_again(entry.partial, checksum)
        if start < remote.size or not remote.size:
            checksum = self._receive(remote, entry.partial, start, checksum)
        sha256 = _checksum_of(file, remote)
        if sha256 and checksum.hexdigest() != sha256:
            entry.partial.unlink()
            self._report(item.DownloadProgress(self._before))  # the partial file is gone
            now = self._look(file)
            if (now.etag, now.size) != (remote.etag, remote.size):
                raise _changed()
            raise HubError(
                Trouble.CHECKSUM,
                f"{file.name} arrived damaged: its checksum is wrong. It was deleted.",
                "Try again to download it once more.",
            )
        entry.settle()
        if sha256:
            self._checked.add(entry.blob, sha256)

    def _check_space(self, missing: int) -> None:
        free = self._free_bytes()
        if missing + _KEPT_FREE > free:
            raise HubError(
                Trouble.NO_SPACE,
                f"There is no room on the disk: {file_size(missing)} needed; {file_size(free)} free.",
                "Free some space, or set HF_HOME to a folder on a different disk; then resume.",
            )

    def _read_again(self, path: Path, checksum: _Hash) -> None:
        """Add the bytes of earlier tries to the checksum."""
        done = 0
        with open_file(path) as file:
            while block := file.read(_BLOCK):
                checksum.update(block)
                done += len(block)
                self._progress(done, checking=True)

    def _receive(self, remote: _Remote, path: Path, start: int, checksum: _Hash) -> _Hash:
        """Append the bytes from `start` on; returns the checksum of the whole."""
        headers = dict(remote.headers)
        if start:
            headers["Range"] = f"bytes={start}-"
        with (
            # Unbuffered: whatever kills this process, the bytes it received are in the file.
            path.open("ab", buffering=0) as file,
            bounded_session().stream(
                "GET", remote.address, headers=headers, timeout=self._patience.stall, extensions=FILE
            ) as response,
        ):
            try:
                begins = _beginning(response, remote, start)
            except HubError as error:
                if error.trouble is Trouble.CHANGED:
                    self._empty(file)
                raise
            if begins != start:  # a server without ranges sends the whole file
                file.truncate(0)
                checksum = hashlib.sha256()
            done = begins
            for chunk in response.iter_raw():
                if done + len(chunk) > remote.size:
                    self._empty(file)
                    raise unusable_answer("it sends more than the file has")
                _write(file.fileno(), chunk)
                checksum.update(chunk)
                done += len(chunk)
                self._furthest = max(self._furthest, done)
                self._progress(done)
        if done < remote.size:
            raise HubError(Trouble.UNREACHABLE, "The connection was cut.", "Try again in a moment.")
        return checksum

    def _empty(self, file: BinaryIO) -> None:
        """Discard the received bytes: none can be used."""
        file.truncate(0)
        self._report(item.DownloadProgress(self._before))

    def _progress(self, done: int, *, checking: bool = False) -> None:
        now = time.monotonic()
        if now >= self._next_report:
            self._next_report = now + _REPORT_SECONDS
            self._report(item.DownloadProgress(self._before + done, checking))


def _beginning(response: httpx2.Response, remote: _Remote, start: int) -> int:
    """The byte at which this answer begins; raises HubError for a different file."""
    if response.status_code in (401, 403, 404, 410, 416) and not remote.at_hub:
        # Signed addresses expire: the next look-up gives a new one.
        raise HubError(Trouble.SERVER, "The file's address has expired.", "A new one is requested.")
    if response.status_code == 416:
        raise _changed()
    hf_raise_for_status(response)
    if response.status_code == 206:
        told = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("content-range", ""))
        if told is None or int(told[1]) != start:
            raise unusable_answer("it sends a different part than was requested")
        if told[2] != "*" and int(told[2]) != remote.size:
            raise _changed()
        begins = start
    elif response.status_code == 200:
        length = response.headers.get("content-length", "")
        if length.isdigit() and int(length) != remote.size:
            raise _changed()
        begins = 0
    else:
        raise unusable_answer(f"status {response.status_code}")
    etag = response.headers.get("x-linked-etag") or response.headers.get("etag") or ""
    if remote.at_hub and etag and etag.removeprefix("W/").strip('"') != remote.etag:
        raise _changed()
    return begins


def _changed() -> HubError:
    return HubError(Trouble.CHANGED, "The file was changed on the Hub meanwhile.", "It starts over.")


def _checksum_of(file: item.ItemFile, remote: _Remote) -> str:
    """The checksum that the file must have, "" if unknown. If a mirror gives none, the Hub's listed one
    applies, unless the file's size has changed."""
    return remote.sha256 or (file.sha256 if file.size in (0, remote.size) else "")


def _write(descriptor: int, data: bytes) -> None:
    """Write all of `data`; an unbuffered write may take only a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port
