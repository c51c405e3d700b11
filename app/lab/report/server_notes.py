"""What a report says of its servers, in sentences."""

from __future__ import annotations

from app.base import numbers
from app.engine.strategy import SERVER
from app.engine.types import ServerInfo, WholeServer
from app.lab.report.report import Report


def server_notes(report: Report) -> list[str]:
    """A sentence on every server of a report, and on what could not be learned from it."""
    notes: dict[str, None] = {}
    for index, lane in enumerate(report.lanes):
        if lane.server is None:
            continue
        notes[server_words(lane.server)] = None
        if lane.baseline is None:
            notes[
                f"{lane.name} has no baseline: the server cannot leave drafting out. Give another --server "
                "with the same model and without drafts."
            ] = None
        if any(run.lane == index and not run.cold for run in report.runs):
            notes[
                f"{lane.name} is warm: the server drafts from earlier answers too, and nothing makes it "
                "forget them."
            ] = None
        counts = [run.whole_server for run in report.runs if run.lane == index and run.whole_server]
        if lane.strategy == SERVER and not lane.server.tells_fates:
            notes[f"{lane.name}: {_whole(counts)}"] = None
    return list(notes)


def server_words(server: ServerInfo) -> str:
    """A server, as it describes itself, in a sentence."""
    version = f" {server.version}" if server.version else ""
    drafts = f"drafts with {numbers.listed(server.speculation)}" if server.speculation else "does not draft"
    slots = f", {numbers.count(server.slots, 'slot')}" if server.slots else ""
    settings = "".join(f", {name} {value:.4g}" for name, value in _numbers(server))
    by_default = f"; by default{settings.removeprefix(',')}" if settings else ""
    return f"{server.kind}{version} at {server.address}: {server.model}, {drafts}{slots}{by_default}."


def _numbers(server: ServerInfo) -> list[tuple[str, float]]:
    return [(name, value) for name, value in server.settings.items() if not isinstance(value, str)]


def _whole(counts: list[WholeServer]) -> str:
    """What a server counted for all its users together while it was measured."""
    drafted = sum(count.drafted for count in counts)
    if not drafted:
        return "the server tells nothing of its drafts."
    share = numbers.percent(sum(count.accepted for count in counts) / drafted)
    return (
        f"the server tells no answer's own drafts. Acceptance of the whole server, all its users together, "
        f"while it was measured: {share} of {drafted:,} drafted tokens."
    )
