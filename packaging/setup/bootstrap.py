"""The first step of `make run` and `make test`, on the machine's own Python.

If that is too old, this file says so in one line, so it must be valid in old Pythons. The steps themselves
are in steps.py.
"""

import os
import subprocess
import sys

NEEDED = (3, 11)


def main():  # type: () -> int
    if sys.version_info < NEEDED:
        newer = [name for name in _NEWER if runs(name)]
        have = "%d.%d" % sys.version_info[:2]  # noqa: UP031 (older than f-strings)
        message = "set-up: Draftscope needs Python 3.11 or later; this is Python " + have + "."
        hint = "Run: make run PYTHON=" + newer[0] if newer else "Install a newer Python."
        sys.stderr.write(message + "\n        " + hint + "\n")
        return 1
    import steps

    return steps.main(sys.argv[1:])


def runs(name):  # type: (str) -> bool
    with open(os.devnull, "w") as nowhere:  # subprocess.DEVNULL is younger than Python 2
        try:
            return subprocess.call([name, "-c", ""], stderr=nowhere) == 0
        except OSError:
            return False


_NEWER = ("python3.14", "python3.13", "python3.12", "python3.11")

if __name__ == "__main__":
    sys.exit(main())
