"""Processes that a process has started, as the system lists them."""

from __future__ import annotations

import contextlib

import psutil


def started(parent: int | None = None) -> set[psutil.Process]:
    """The living child processes of `parent` (this process), and theirs. Two that multiprocessing keeps for
    itself are left out: the server that children are forked from, and the tracker of resources."""
    own = psutil.Process(parent)
    found = set()
    for child in own.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            words = " ".join(child.cmdline())
            server = "multiprocessing.forkserver" in words and child.ppid() == own.pid
            if child.status() != psutil.STATUS_ZOMBIE and not server and "resource_tracker" not in words:
                found.add(child)
    return found
