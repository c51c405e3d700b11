"""Draftscope.app in a disk image.

Only the hosted workflow makes and starts it; it is untested elsewhere. It is signed without a name (ad hoc),
as Apple's processors demand, but not notarised. So macOS asks before it opens the application for the first
time.
"""

from __future__ import annotations

import plistlib
import shutil
import tempfile
from pathlib import Path

from console import run, say
from recipe import ROOT

DIST = ROOT / "dist"
LAUNCHER = """\
#!/bin/sh
here=$(cd "$(dirname "$0")/../Resources" && pwd)
exec "$here/python/bin/python3" -I -m draftscope "$@"
"""


def make_disk_image(folder: Path) -> None:
    """Make an application of a collected folder, and write the image into dist/."""
    version = folder.name.split("-")[1]
    with tempfile.TemporaryDirectory(dir=DIST, prefix=".bundle-") as temporary:
        application = Path(temporary) / "Draftscope.app"
        contents = application / "Contents"
        shutil.copytree(folder, contents / "Resources", symlinks=True)
        launcher = contents / "MacOS" / "draftscope"
        launcher.parent.mkdir()
        launcher.write_text(LAUNCHER, encoding="utf-8")
        launcher.chmod(0o755)
        with (contents / "Info.plist").open("wb") as file:
            plistlib.dump(_description(version), file)
        run(["codesign", "--force", "--deep", "--sign", "-", str(application)])
        run([str(launcher), "--version"])
        image = DIST / f"{folder.name}.dmg"
        run(
            [
                "hdiutil",
                "create",
                "-ov",
                "-volname",
                "Draftscope",
                "-srcfolder",
                temporary,
                "-format",
                "UDZO",
                str(image),
            ]
        )
    say(f"{image.relative_to(ROOT)}: {image.stat().st_size / 1e6:.0f} MB")


def _description(version: str) -> dict[str, object]:
    """The content of Info.plist. Traces are JSON Lines, which other programs open, too."""
    return {
        "CFBundleIdentifier": "draftscope",
        "CFBundleName": "Draftscope",
        "CFBundleExecutable": "draftscope",
        "CFBundlePackageType": "APPL",
        "CFBundleShortVersionString": version,
        "CFBundleVersion": version,
        "LSMinimumSystemVersion": "13.0",
        "NSHighResolutionCapable": True,
        "CFBundleDocumentTypes": [
            {
                "CFBundleTypeName": "Draftscope trace",
                "CFBundleTypeRole": "Viewer",
                "LSHandlerRank": "Alternate",
                "CFBundleTypeExtensions": ["jsonl"],
            }
        ],
    }
