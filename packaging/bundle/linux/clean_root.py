"""A Linux system without Python and compiler, in a folder: the packages of a small desktop, and tools to look
at it.

They come from this machine's apt sources. They are unpacked, not installed, so neither root nor debootstrap
is needed. Downloads are kept in the cache.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from console import SetupError, run, say
from native_build import wheels_folder

# A shell with the tools that unpack, the libraries that every desktop has (libraries.py), and to look at the
# window an X server without a screen.
PACKAGES = (
    "base-files", "dash", "coreutils", "tar", "xz-utils", "grep", "sed", "mawk", "findutils", "libc-bin",
    "procps", "libstdc++6", "zlib1g", "libgl1", "libegl1", "libopengl0", "libx11-6", "libx11-xcb1",
    "libfontconfig1", "libfreetype6", "libdbus-1-3", "libglib2.0-0", "libuuid1", "xvfb",
    "xkb-data", "xdotool",
)  # fmt: skip
FORBIDDEN = ("python3", "python", "gcc", "cc", "g++", "c++", "clang", "make", "cmake", "pip", "pip3")


def make_root(folder: Path) -> None:
    """Unpack the packages, and those that they depend on, into a folder. Raises SetupError if they bring
    Python."""
    for package in _download():
        run(["dpkg-deb", "--extract", str(package), str(folder)])
    for name in ("proc", "dev", "tmp", "root", "run"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n", encoding="utf-8")
    if not os.path.lexists(folder / "bin" / "sh"):
        (folder / "bin" / "sh").symlink_to("dash")
    programs = {path.name for place in ("bin", "usr/bin") for path in (folder / place).iterdir()}
    if inside := programs.intersection(FORBIDDEN):
        raise SetupError(f"The clean system has {', '.join(inside)}.", "clean_root.py lists its packages.")


def in_root(
    root: Path, command: Sequence[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command in the system as its root user, without a network."""
    enter = 'mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
    return subprocess.run(
        [
            "unshare", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--net",
            "sh", "-c", enter, str(root), *command,
        ],
        env=dict(environment),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )  # fmt: skip


def _download() -> list[Path]:
    """The packages and those that they depend on, as files."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise SetupError("The trial needs Debian's packages for a clean system; there is no apt-get here.")
    home = wheels_folder().parent / "clean-root"
    archives = home / "archives"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    (home / "status").touch()  # an empty system: everything is needed
    options = {
        "Dir::State::status": home / "status",
        "Dir::Cache::archives": archives,
        "Dir::Cache::pkgcache": home / "pkgcache.bin",
        "Dir::Cache::srcpkgcache": home / "srcpkgcache.bin",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "true",
    }
    flags = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    say("fetching a clean system's packages")
    run(["apt-get", *flags, "--yes", "--download-only", "install", *PACKAGES])
    planned = run(["apt-get", *flags, "--simulate", "install", *PACKAGES])
    found = re.findall(r"^Inst (\S+) \((\S+) .*\[(\w+)\]\)", planned, re.MULTILINE)
    return [archives / f"{name}_{version.replace(':', '%3a')}_{kind}.deb" for name, version, kind in found]
