"""What a report says of its servers, in sentences."""

from __future__ import annotations

from app.engine.strategy import SERVER
from app.engine.types import WholeServer
from app.lab.report.report import Report
from app.servers.address import server_words, whole_words


def server_notes(report: Report) -> list[str]:
    """A sentence on every server of a report, and on what could not be learned from it."""
    servers = [server_words(lane.server) for lane in report.lanes if lane.server is not None]
    return [*dict.fromkeys(servers), *server_limits(report)]


def server_limits(report: Report) -> list[str]:
    """A sentence on each thing that could not be learned from the servers of a report."""
    limits: dict[str, None] = {}
    for index, lane in enumerate(report.lanes):
        if lane.server is None:
            continue
        if lane.baseline is None:
            limits[
                f"{lane.name} has no baseline: the server cannot leave drafting out. Measure another server "
                "with the same model and without drafts beside it."
            ] = None
        if any(run.lane == index and not run.cold for run in report.runs):
            limits[
                f"{lane.name} is warm: the server drafts from earlier answers too, and nothing makes it "
                "forget them."
            ] = None
        counts = [run.whole_server for run in report.runs if run.lane == index and run.whole_server]
        if lane.strategy == SERVER and not lane.server.tells_fates:
            limits[f"{lane.name}: {_whole(counts)}"] = None
    return list(limits)


def _whole(counts: list[WholeServer]) -> str:
    """What a server counted for all its users together while it was measured."""
    total = WholeServer(sum(count.drafted for count in counts), sum(count.accepted for count in counts))
    if not (told := whole_words(total)):
        return "the server tells nothing of its drafts."
    return (
        "the server tells no answer's own drafts. Acceptance of the whole server, all its users together, "
        f"while it was measured: {told}."
    )
