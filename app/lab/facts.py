"""The circumstances of a measurement: machine, versions, model files, energy, and other programs."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

from app import __version__
from app.base.files import open_file
from app.engine.devices.memory import cpu_name
from app.engine.types import ModelInfo, PairInfo

_CHUNK = 4 * 2**20


class SystemFacts(msgspec.Struct, frozen=True):
    app: str
    llama_cpp_python: str
    python: str
    system: str
    cpu: str
    cores: int
    devices: str
    threads: int


class FileFacts(msgspec.Struct, frozen=True):
    """A model file, without its folder."""

    file: str
    name: str
    architecture: str
    quantisation: str
    size: int  # bytes
    n_params: int
    n_ctx: int
    threads: int
    memory: int | None  # bytes in use; None if unknown
    sha256: str | None  # None if it was not computed


class PairFacts(msgspec.Struct, frozen=True):
    target: FileFacts
    draft: FileFacts | None
    vocabulary: str  # the vocabulary check, in words
    passes: tuple[dict[int, float], ...] = ()
    """Seconds of target passes by their tokens, for each time that it was loaded; `quants` measures them."""

    def memory(self, needs_draft: bool) -> int | None:
        """The bytes that a lane on this pair needs; None if unknown."""
        parts = [self.target.memory]
        if needs_draft and self.draft is not None:
            parts.append(self.draft.memory)
        known = [size for size in parts if size is not None]
        return sum(known) if len(known) == len(parts) else None


Digest = Callable[[str], str | None]
"""Path of a model file -> its SHA-256."""


def no_digest(_path: str) -> str | None:
    """No digest, if reading the files again would take too long."""
    return None


def system_facts(pair: PairInfo | None) -> SystemFacts:
    return SystemFacts(
        app=__version__,
        llama_cpp_python=importlib.metadata.version("llama-cpp-python"),
        python=platform.python_version(),
        system=platform.platform(terse=True),
        cpu=cpu_name(),
        cores=os.cpu_count() or 1,
        devices=pair.devices if pair else "",
        threads=pair.target.threads if pair else 0,
    )


def pair_facts(
    pair: PairInfo, digest: Digest = no_digest, passes: Sequence[dict[int, float]] = ()
) -> PairFacts:
    draft = _file_facts(pair.draft, digest) if pair.draft else None
    return PairFacts(_file_facts(pair.target, digest), draft, pair.vocabulary, tuple(passes))


def _file_facts(model: ModelInfo, digest: Digest) -> FileFacts:
    same = {name: getattr(model, name) for name in FileFacts.__struct_fields__ if hasattr(model, name)}
    memory = sum(device.total for device in model.memory) or None
    return FileFacts(**same | {"memory": memory, "sha256": digest(model.path)})


def sha256(path: str, stopped: Callable[[], bool] = lambda: False) -> str | None:
    """The SHA-256 of a file, in hex; None if it cannot be read (it was moved) or was `stopped`."""
    whole = hashlib.sha256()
    try:
        with open_file(Path(path)) as file:
            while chunk := file.read(_CHUNK):
                if stopped():
                    return None
                whole.update(chunk)
    except OSError:
        return None
    return whole.hexdigest()


POWERCAP = Path("/sys/class/powercap")
_NVML = "nvml.dll" if os.name == "nt" else "libnvidia-ml.so.1"

Counter = Callable[[], float | None]
"""Joules used so far; None if it cannot be read now."""


class EnergyMeter:
    """Adds up the energy since its creation, over all readable counters.

    RAPL counts whole processor packages and NVML whole cards, including other programs.
    """

    def __init__(self, counters: Mapping[str, tuple[Counter, float]] | None = None) -> None:
        """`counters`: name -> (counter, the joules at which it wraps to 0; 0 if it does not)."""
        self._counters = _known() if counters is None else counters
        self._before = {name: read() for name, (read, _) in self._counters.items()}

    def joules(self) -> tuple[float | None, str]:
        """(joules, what was counted, such as "RAPL package-0"); (None, "") if nothing can be read."""
        used = {}
        for name, (read, limit) in self._counters.items():
            before, now = self._before[name], read()
            if before is not None and now is not None:
                used[name] = now - before + (limit if now < before else 0.0)
        return (sum(used.values()), ", ".join(used)) if used else (None, "")


def rapl_counters(folder: Path = POWERCAP) -> dict[str, tuple[Counter, float]]:
    """The readable counters of processor packages; often only the administrator may read them."""
    found: dict[str, tuple[Counter, float]] = {}
    for domain in sorted(folder.glob("intel-rapl:*")):
        if domain.name.count(":") != 1:
            continue  # a part of a package, counted with it
        counter = _file_counter(domain / "energy_uj")
        if counter() is not None:
            limit = _file_counter(domain / "max_energy_range_uj")() or 0.0
            found[f"RAPL {_domain_name(domain)}"] = counter, limit
    return found


def nvml_counters() -> dict[str, tuple[Counter, float]]:
    """The counters of NVIDIA cards; none without the driver, or for cards that do not count."""
    try:
        nvml = ctypes.CDLL(_NVML)
        count = ctypes.c_uint()
        if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(ctypes.pointer(count)):
            return {}
    except (OSError, AttributeError):  # no driver, or one that is too old
        return {}
    found: dict[str, tuple[Counter, float]] = {}
    for index in range(count.value):
        card = ctypes.c_void_p()
        if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.pointer(card)):
            continue
        counter = _card_counter(nvml, card)
        if counter() is not None:
            found[f"NVML GPU {index}"] = counter, 0.0
    return found


@cache
def _known() -> dict[str, tuple[Counter, float]]:
    return rapl_counters() | nvml_counters()


def _domain_name(domain: Path) -> str:
    try:
        return (domain / "name").read_text().strip()
    except OSError:
        return domain.name


def _file_counter(file: Path) -> Counter:
    """A counter of microjoules in a file."""

    def read() -> float | None:
        try:
            return int(file.read_text()) / 1e6
        except (OSError, ValueError):
            return None

    return read


def _card_counter(nvml: ctypes.CDLL, card: ctypes.c_void_p) -> Counter:
    """A card's counter of millijoules."""

    def read() -> float | None:
        used = ctypes.c_ulonglong()
        failed = nvml.nvmlDeviceGetTotalEnergyConsumption(card, ctypes.pointer(used))
        return None if failed else used.value / 1e3

    return read


_IDLE = (3, 4)  # of the fields of /proc/stat: idle, and waiting for a disk
_COUNTED = 8  # the fields after these are already part of them


class OtherLoad:
    """Adds up the processor time of other programs since its creation. Only Linux reports it."""

    def __init__(self, proc: Path = Path("/proc"), clock: Callable[[], float] = time.monotonic) -> None:
        self._proc = proc
        self._clock = clock
        self._began = clock()
        self._before = self._others()

    def cores(self) -> float | None:
        """Processor cores kept busy by programs other than this one and its children; None if unknown. At
        most all cores: the system counts in hundredths of a second, and a run may be shorter."""
        now, seconds = self._others(), self._clock() - self._began
        if self._before is None or now is None or seconds <= 0:
            return None
        return min(max(0.0, now - self._before) / seconds, float(os.cpu_count() or 1))

    def _others(self) -> float | None:
        """Seconds of processor time that all programs but ours have used so far."""
        try:
            line = (self._proc / "stat").read_text().split("\n", 1)[0]
            ticks = [int(field) for field in line.split()[1 : _COUNTED + 1]]
            ours = sum(self._ticks_of(pid) for pid in (os.getpid(), *self._children()))
        except (OSError, ValueError):
            return None
        busy = sum(taken for field, taken in enumerate(ticks) if field not in _IDLE)
        return (busy - ours) / os.sysconf("SC_CLK_TCK")

    def _children(self) -> list[int]:
        """This process's children and theirs. Raises OSError if no thread of this process lists them: engines
        would then count as other programs."""
        found = self._listed("self")
        if found is None:
            raise FileNotFoundError("children")
        for pid in found:  # grows meanwhile
            found += self._listed(str(pid)) or []
        return found

    def _listed(self, process: str) -> list[int] | None:
        """The children of a process; None if no thread of it lists them."""
        listed: list[str] = []
        with suppress(OSError):  # the process has ended
            for thread in (self._proc / process / "task").iterdir():
                with suppress(OSError):  # the thread has ended
                    listed.append((thread / "children").read_text())
        return [int(pid) for pids in listed for pid in pids.split()] if listed else None

    def _ticks_of(self, pid: int) -> int:
        """The clock ticks of a process and of its children that ended; 0 if it has just ended."""
        with suppress(OSError):
            # The name in brackets may hold spaces and brackets; utime is the 14th field.
            fields = (self._proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
            return sum(map(int, fields[11:15]))
        return 0
