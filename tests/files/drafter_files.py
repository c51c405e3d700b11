"""Drafter files for tests: made from a body, or the app's examples."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

EXAMPLES = Path(__file__).parents[2] / "resources" / "plugins"
PHRASE_TRIE = EXAMPLES / "phrase_trie.py"
PATTERN = EXAMPLES / "pattern.py"

_FILE = '''\
from dataclasses import dataclass
from app.engine.plugins import Drafter, Proposal, StrategyKind, UserError, param


@dataclass(frozen=True, slots=True)
class Params:
    """Settings."""
    n_max: int = param(4, "Draft at most this many tokens a round.", low=1, high=64, unit="tokens")


class Mine(Drafter):
    def __init__(self, params, resources):
        self.params, self.resources = params, resources

{body}

STRATEGY = StrategyKind("{name}", Params, "Repeats the last token.", make=Mine)
'''

ECHO = """
def propose(self, context, k):
    return Proposal(ids=[int(context[-1])] * min(k, self.params.n_max), end="n_max")
"""


def write_drafter(folder: Path, body: str = ECHO, name: str = "echo", file: str = "echo.py") -> Path:
    """A drafter file whose class has `body`; by default it repeats the last token."""
    path = folder / file
    path.write_text(_FILE.format(body=indent(dedent(body), "    "), name=name), encoding="utf-8")
    return path
