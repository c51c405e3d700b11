"""Running servers on the command line: --server, and the sources of their keys."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from app.cli.terminal.arguments import UsageError, add_options
from app.engine.types import PairInfo
from app.servers.address import find_key, server_address


def add_server_options(group: argparse._ActionsContainer, what: str, *, several: bool) -> None:
    """Add --server and --server-key-env; `what` describes the server's role."""
    many, times = (" ...", "; may be given several times") if several else ("", "")
    text = f"""
--server URL{many}  {what}: the address of a running llama-server or vLLM, such as http://127.0.0.1:8080{times}
--server-key-env NAME  The environment variable that contains the server's key (without it: the key that the
    system's keyring keeps for this address, if any)
"""
    add_options(group, text, server_key_env=(None, ""))


def keys(arguments: argparse.Namespace) -> Callable[[str], str]:
    """The function that returns a server's key. Raises UsageError for a variable without a server."""
    if arguments.server_key_env and not arguments.server:
        raise UsageError("--server-key-env needs a server.", "Give one with --server.")
    return partial(find_key, variable=arguments.server_key_env)


def described(arguments: argparse.Namespace) -> list[PairInfo]:
    """The named servers' descriptions. Raises UserError."""
    from app.servers.client import ServerClient  # its HTTP client takes a moment to import

    key_of = keys(arguments)
    addresses = dict.fromkeys(map(server_address, arguments.server))
    return [ServerClient(address, key_of(address), lambda: False).describe() for address in addresses]
