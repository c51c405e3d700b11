"""The messages between the queue and a child process."""

from __future__ import annotations

import msgspec

from app.hub.downloads.item import ItemFile
from app.hub.errors import Trouble


class Patience(msgspec.Struct, frozen=True):
    """How long a download waits, and how often it tries, before it gives up. Times are in seconds."""

    stall: float = 20.0  # without one byte: the connection is closed and opened again
    first_wait: float = 1.0  # after the first failure; doubled after each further one
    longest_wait: float = 60.0
    attempts: int = 10  # in a row that brought no bytes


class DownloadJob(msgspec.Struct, frozen=True):
    """Everything that a child process needs to know, except the token, which it reads itself."""

    repo: str
    revision: str
    files: tuple[ItemFile, ...]
    cache: str
    endpoint: str
    patience: Patience = Patience()
    checked: str = ""  # the file that lists the verified blobs; "" for none


class DownloadBegun(msgspec.Struct, frozen=True, tag=True):
    """A file was looked up. `found`: it does not belong to this download; reported again, without `found`,
    before any of it is written."""

    index: int
    etag: str
    commit: str
    size: int
    found: bool


class DownloadProgress(msgspec.Struct, frozen=True, tag=True):
    """Bytes of the whole item that are here; `checking`: they are being read for the checksum."""

    done: int
    checking: bool = False


class Waiting(msgspec.Struct, frozen=True, tag=True):
    """Something failed that may work later; the next try is in `seconds`."""

    trouble: Trouble
    message: str
    hint: str
    seconds: float


class FileDone(msgspec.Struct, frozen=True, tag=True):
    """A file is complete, verified and in its place."""

    index: int
    path: str


class DownloadFailed(msgspec.Struct, frozen=True, tag=True):
    """The child has given up."""

    trouble: Trouble
    message: str
    hint: str


class DownloadFinished(msgspec.Struct, frozen=True, tag=True):
    """Every file is done."""


Report = DownloadBegun | DownloadProgress | Waiting | FileDone | DownloadFailed | DownloadFinished

encode = msgspec.msgpack.Encoder().encode
decode_report = msgspec.msgpack.Decoder(Report).decode
decode_job = msgspec.msgpack.Decoder(DownloadJob).decode
