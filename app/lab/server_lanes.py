"""The lanes of a server."""

from __future__ import annotations

from app.engine.strategy import NONE, SERVER
from app.engine.types import ModelOptions, PairInfo
from app.lab.experiment import Lane, Pair


def server_lanes(info: PairInfo) -> tuple[Lane, ...]:
    """The lanes of a server that described itself as `info`: as it is set, and, if it can leave drafting out,
    without drafts. A server that does not draft is a baseline itself, also for other servers of its model."""
    server, target = info.server, info.target
    assert server is not None
    pair = Pair(ModelOptions(server.address))
    model = f"{target.name} {target.quantisation} {target.n_params} {target.size}"
    plain = Lane(NONE, f"{server.kind}: none", pair, model=model)
    if not server.speculation:
        return (plain,)
    drafting = Lane(SERVER, f"{server.kind}: {'+'.join(server.speculation)}", pair, model=model)
    return (plain, drafting) if server.switches_off else (drafting,)
