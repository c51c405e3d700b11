"""Logs the network access that every Python process of a test tries, a line each.

Python itself imports a module of this name at its start, from the folders in PYTHONPATH.
"""

import os
import sys
from pathlib import Path

_NAMES = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
_ADDRESSES = ("socket.connect", "socket.sendto", "socket.sendmsg")


def _write(words: str) -> None:
    file = os.open(os.environ["NETWORK_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{os.getpid()} {words}\n".encode())
    os.close(file)


def _listen(event: str, arguments: tuple[object, ...]) -> None:
    # A path, or no address at all, is a socket of this machine.
    if event in _NAMES or (event in _ADDRESSES and isinstance(arguments[1], tuple)):
        _write(f"{event} {arguments[0 if event in _NAMES else 1]}")


_write(f"began {Path(sys.argv[0] if sys.argv else '').name}")
sys.addaudithook(_listen)
