"""The lanes of a server."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

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


def with_server(lanes: Sequence[Lane], info: PairInfo) -> tuple[Lane, ...]:
    """`lanes` with those of a server in the place of its earlier ones, else behind all; labels that somebody
    gave them stay."""
    pair = Pair(ModelOptions(info.target.path))
    assert info.server is not None
    before = {lane.strategy: lane.label for lane in lanes if lane.pair == pair}
    given = {name: label for name, label in before.items() if not label.startswith(f"{info.server.kind}: ")}
    new = [
        msgspec.structs.replace(lane, label=given.get(lane.strategy, lane.label))
        for lane in server_lanes(info)
    ]
    at = next((index for index, lane in enumerate(lanes) if lane.pair == pair), len(lanes))
    others = [[lane for lane in part if lane.pair != pair] for part in (lanes[:at], lanes[at:])]
    return (*others[0], *new, *others[1])
