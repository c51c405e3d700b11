"""The packages for Linux: a tarball, and one file, which is a script and the same tarball after it.

The script unpacks and runs the tarball. An AppImage would need a loader from elsewhere and FUSE, which many
systems no longer have. A compressed image also starts more slowly than a folder in the cache, because it is
unpacked page by page at every start. PyInstaller brings no Python for people's drafters and the template
process, and its single file is unpacked at every start.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from console import CommandError, say
from linux.libraries import complete, newest_symbols
from pruning import check_imports
from recipe import ROOT

HERE = Path(__file__).parent
DESKTOP = ROOT / "packaging" / "desktop"
DIST = ROOT / "dist"


def make_archives(folder: Path) -> None:
    """Complete a collected folder and write both files into dist/."""
    complete(folder)
    check_imports(folder / "python" / "bin" / "python3")
    share = folder / "share"
    shutil.copytree(DESKTOP, share)
    (share / "desktop.sh").chmod(0o755)
    launcher = folder / "draftscope"
    shutil.copyfile(HERE / "draftscope.sh", launcher)
    launcher.chmod(0o755)
    _compile_modules(folder)
    needs = ", ".join(f"{name} {version}" for name, version in newest_symbols(folder).items())
    say(f"the bundle has {_megabytes(folder)} MB and needs {needs}")
    tarball = make_tarball(folder, DIST)
    single = make_single_file(folder, tarball, DIST)
    for file in (tarball, single):
        say(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1e6:.0f} MB")


def make_tarball(folder: Path, target: Path) -> Path:
    """Pack a folder; the same content gives the same bytes."""
    tarball = target / f"{folder.name}.tar.xz"
    new = tarball.with_suffix(".new")
    pack = [
        "tar", "--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0",
        "--directory", str(folder.parent), folder.name,
    ]  # fmt: skip
    with new.open("wb") as file, subprocess.Popen(pack, stdout=subprocess.PIPE) as tar:
        done = subprocess.run(["xz", "-6", "-T0", "-c"], stdin=tar.stdout, stdout=file, check=False)
    if tar.returncode or done.returncode:
        raise CommandError(["tar"], tar.returncode or done.returncode, "")
    return new.replace(tarball)


def make_single_file(folder: Path, tarball: Path, target: Path) -> Path:
    """Write one file: the script that unpacks, then the tarball."""
    script = (HERE / "single_file.sh").read_text(encoding="utf-8")
    with tarball.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    blanks = {
        "NAME": f"{folder.name}-{digest[:12]}",
        "SHA256": digest,
        "LINES": str(script.count("\n") + 1),
        "MEGABYTES": str(_megabytes(folder)),
    }
    for name, value in blanks.items():
        script = script.replace(f"@{name}@", value)
    single = target / f"{folder.name}.run"
    new = single.with_suffix(".new")
    with new.open("wb") as out, tarball.open("rb") as file:
        out.write(script.encode())
        shutil.copyfileobj(file, out)
    new.chmod(0o755)
    return new.replace(single)


def _compile_modules(folder: Path) -> None:
    """Compile every module, because the bundle's folder may be read-only. Dates of sources are not
    checked."""
    python = folder / "python" / "bin" / "python3"
    subprocess.run(
        [
            str(python), "-I", "-m", "compileall", "-q", "-j0", "--invalidation-mode", "unchecked-hash",
            "-s", str(folder), "-p", "draftscope", str(folder / "python" / "lib"),
        ],
        check=True,
        stdout=sys.stderr,
    )  # fmt: skip


def _megabytes(folder: Path) -> int:
    files = (file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return sum(os.stat(file).st_size for file in files) // 10**6 + 1
