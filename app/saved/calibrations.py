"""What passes of each pair take on this machine, kept from the first time that they were timed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.base.files import DamagedError, decode, read_file, write_atomic
from app.engine.process.messages import PassSeconds
from app.engine.types import ModelInfo, PairInfo

_MOST = 200  # pairs; the oldest go first
_decoder = msgspec.json.Decoder(dict[str, PassSeconds])


class Calibrations:
    """The file with the times, by pair: its models' files, sizes and threads."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, pair: PairInfo) -> PassSeconds | None:
        """The times of a pair; None where they are not known."""
        return self._read().get(_key(pair))

    def of_files(self, target: str, draft: str = "") -> PassSeconds | None:
        """The newest times of two files, however they were loaded; "" stands for no draft."""
        for key, seconds in reversed(self._read().items()):
            if key.startswith(f"{target} ") and (f" {draft} " in key if draft else key.endswith(" ")):
                return seconds
        return None

    def keep(self, pair: PairInfo, seconds: PassSeconds) -> None:
        """Keep the times of a pair; raises OSError."""
        known = self._read()
        known.pop(_key(pair), None)
        newest = [*known.items(), (_key(pair), seconds)][-_MOST:]
        write_atomic(self._path, msgspec.json.encode(dict(newest)))

    def _read(self) -> dict[str, PassSeconds]:
        """All known times; none where the file is missing or damaged, since they can be measured again."""
        try:
            return decode(_decoder, read_file(self._path))
        except (OSError, DamagedError):
            return {}


def _key(pair: PairInfo) -> str:
    def of(model: ModelInfo | None) -> str:
        if model is None:
            return ""
        return f"{model.path} {model.size} {model.threads} {model.n_gpu_layers}"

    return f"{of(pair.target)} {pair.devices} {of(pair.draft)}"
