"""`--drafter FILE`: plug-in drafters, for the commands that take a strategy."""

from __future__ import annotations

from typing import Any

from app.cli.terminal.arguments import Parser
from app.cli.terminal.console import complain
from app.engine.drafters.tried_drafters import TriedDrafters
from app.engine.plugins import use_drafters


def add_drafter_option(group: Any) -> None:
    """Add --drafter to a parser or to a group of one."""
    group.add_argument(
        "--drafter",
        metavar="FILE.py",
        action="append",
        default=[],
        help="Add the strategy that this Python file defines. Its code is run; may be given several times",
    )


def know_drafters(prog: str, argv: list[str]) -> None:
    """Register the drafters that `argv` names with --drafter, and those of installed packages.

    Raises DrafterError for the first file that cannot be used; a package that cannot be used is reported on
    one line of standard error.
    """
    parser = Parser(prog, "", "", add_help=False)
    add_drafter_option(parser)
    # Only this option: the rest of the command line may depend on these strategies.
    files = parser.parse_known_args(argv)[0].drafter
    # Each is tried in a separate process first: one that ends its process would end this command mutely.
    problems = TriedDrafters().use(files) if files else use_drafters(())
    for source, problem in problems.items():
        if source in files:
            raise problem
        complain(prog, str(problem))
