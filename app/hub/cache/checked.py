"""Which blobs of the cache have had their checksum verified: each is read only once for that."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.base.files import make_own_folder, read_file, write_atomic
from app.hub.kept_file import NewerError, decode_kept

VERSION = 1
MOST = 10_000
"""How many blobs are remembered: the latest."""


class _Stamp(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was when it was read."""

    size: int
    changed: int  # nanoseconds

    @classmethod
    def of(cls, blob: Path) -> _Stamp:
        status = blob.stat()
        return cls(status.st_size, status.st_mtime_ns)


class _ChecksFile(msgspec.Struct, frozen=True):
    sound: dict[str, _Stamp] = {}
    version: int = VERSION


class Checked:
    """The list of verified blobs, by checksum. Losing an entry costs only the time to read a blob again, so
    two downloads that write at once need no lock, and a list that cannot be saved is no error."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def has(self, blob: Path, sha256: str) -> bool:
        """Whether this blob had this checksum, and is unchanged since. Raises OSError where it is gone."""
        return self._read().get(sha256) == _Stamp.of(blob)

    def add(self, blob: Path, sha256: str) -> None:
        """Remember that this blob has this checksum. Raises OSError where it is gone."""
        stamp = _Stamp.of(blob)
        sound = {known: its for known, its in self._read().items() if known != sha256} | {sha256: stamp}
        if self._file is None:
            return
        try:
            make_own_folder(self._file.parent)
            write_atomic(self._file, msgspec.json.encode(_ChecksFile(dict(list(sound.items())[-MOST:]))))
        except OSError:
            return

    def _read(self) -> dict[str, _Stamp]:
        if self._file is None:
            return {}
        try:
            return decode_kept(read_file(self._file), _ChecksFile, VERSION).sound
        except NewerError:
            self._file = None  # kept for the newer version that wrote it
        except (OSError, ValueError):
            pass  # nothing is lost: files are checked against their checksums once more
        return {}
