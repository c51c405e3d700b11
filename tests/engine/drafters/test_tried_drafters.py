"""A drafter file that hangs or crashes is tried in another process first, and not used here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.engine.drafters.foreign import foreign_kinds
from app.engine.plugins import TriedDrafters
from tests.files.drafter_files import write_drafter

pytestmark = pytest.mark.usefixtures("known_strategies")

HARM = {
    "hangs.py": ("while True:\n    pass\n", "it was not read within 1 s"),
    "leaves.py": ("import os\nos._exit(3)\n", "it ended the process that read it (exit code 3)"),
    "disturbs.py": (
        "import contextlib, os, struct\nfor fd in range(3, 64):\n"
        "    with contextlib.suppress(OSError):\n        os.write(fd, struct.pack('!i', 7) + b'rubbish')\n",
        "it disturbed the process that read it",
    ),
    "faults.py": ("import os\nos.abort()\n", "it ended the process that read it ("),
}


def test_what_does_harm_is_named_and_the_others_are_used(tmp_path: Path) -> None:
    files = []
    for name, (source, _why) in HARM.items():
        (tmp_path / name).write_text(source)
        files.append(str(tmp_path / name))
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import nowhere\n")
    files += [str(wrong), str(write_drafter(tmp_path))]
    problems = TriedDrafters(limit=1).use(files)
    assert list(problems) == files[:-1]
    for file, (name, (_source, why)) in zip(files, HARM.items(), strict=False):
        assert str(problems[file]).startswith(f"{name} is not used: {why}")
    assert "No module named 'nowhere'" in str(problems[str(wrong)])
    assert [kind.name for kind in foreign_kinds()] == ["echo"]


def test_each_is_tried_once_until_it_changes_or_is_to_be_forgotten(tmp_path: Path) -> None:
    file, log = tmp_path / "echo.py", tmp_path / "log"
    says_who_reads_it = (
        f"import os\nwith open({str(log)!r}, 'a') as log:\n    log.write(f'{{os.getpid()}}\\n')\n"
    )

    def tries() -> int:
        """The number of times that another process read the file."""
        return sum(int(line) != os.getpid() for line in log.read_text().splitlines())

    file.write_text(says_who_reads_it + HARM["leaves.py"][0])
    drafters = TriedDrafters()
    for _ in range(2):
        assert "exit code 3" in str(drafters.use([str(file)])[str(file)])
    assert tries() == 1
    drafters.forget()
    assert drafters.use([str(file)])
    assert tries() == 2
    write_drafter(tmp_path)
    file.write_text(says_who_reads_it + file.read_text())
    os.utime(file, ns=(1, 1))
    for _ in range(2):
        assert not drafters.use([str(file)])
    assert tries() == 3
    assert not drafters.use([])
