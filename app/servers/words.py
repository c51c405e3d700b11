"""Servers in sentences, the same in window, command line and reports."""

from __future__ import annotations

from app.base import numbers
from app.engine.types import ServerInfo, WholeServer


def server_words(server: ServerInfo) -> str:
    """A server, as it describes itself, in a sentence."""
    version = f" {server.version}" if server.version else ""
    drafts = f"drafts with {numbers.listed(server.speculation)}" if server.speculation else "does not draft"
    slots = f", {numbers.count(server.slots, 'slot')}" if server.slots else ""
    settings = "".join(f", {name} {value:.4g}" for name, value in _numbers(server))
    by_default = f"; by default{settings.removeprefix(',')}" if settings else ""
    return f"{server.kind}{version} at {server.address}: {server.model}, {drafts}{slots}{by_default}."


def fate_words(server: ServerInfo) -> str:
    """A sentence on what a server tells of its drafts."""
    if not server.speculation:
        return "Without drafts every token is plain."
    if server.tells_fates:
        return "It tells how many tokens of every draft were accepted; p and q are unknown."
    return "It does not tell what became of its drafts: fates, p and q are unknown."


def whole_words(whole: WholeServer) -> str:
    """The drafts of a whole server in a few words; "" where it had none."""
    share = numbers.percent(whole.accepted / whole.drafted) if whole.drafted else ""
    return f"{share} of {whole.drafted:,} drafted tokens" if share else ""


def baseline_words(server: ServerInfo) -> str:
    """A sentence on what a server's answers can be compared with."""
    if not server.speculation:
        return "It is a baseline for itself and for other servers of the same model."
    if server.switches_off:
        return "It answers without drafts where it is asked to: that is its baseline."
    return "It cannot leave drafting out: its baseline is another server of the same model without drafts."


def _numbers(server: ServerInfo) -> list[tuple[str, float]]:
    return [(name, value) for name, value in server.settings.items() if not isinstance(value, str)]
