"""`draftscope models`: the models on this machine, and which of them can draft for a target."""

from __future__ import annotations

import json
from pathlib import Path

from app.base.files import DamagedError, decode_object, read_file
from app.base.numbers import file_size
from app.base.paths import find_paths
from app.cli.terminal.arguments import Parser, add_options
from app.cli.terminal.console import aligned, hand_over, put, say
from app.engine.errors import UserError
from app.hub.hub import Hub
from app.hub.library.model import DraftVerdict, LocalModel, best_first, names_apart
from app.hub.library.shelf import Shelf, find_model, own_models


def make_hub() -> Hub:
    """The Hub, offline if HF_HUB_OFFLINE or the window's settings say so."""
    offline = _is_offline(find_paths().settings)
    return Hub(lambda: offline)


def _is_offline(settings: Path) -> bool:
    """Whether the settings file says offline; the window reports other problems of that file."""
    try:
        return decode_object(read_file(settings)).get("offline") is True
    except (OSError, DamagedError):
        return False


def open_shelf() -> Shelf:
    """The window's library."""
    paths = find_paths()
    return Shelf(paths.data, own=own_models(paths))


PROG = "draftscope models"
_DESCRIPTION = """\
List the models on this machine: the Hugging Face cache, files and folders that you added, the bundled
pair, and SmolLM2 if set-up brought it. The network is not used."""
_ONE_OF = """
--drafts-for T.gguf  List every other model as a draft for this target, best first
--add PATH  Add a model file, or a folder of them
--remove PATH  Remove an added file or folder from the list; nothing is deleted
--delete FILE.gguf  Delete a model file, with all its parts, from the disk
"""


def models(argv: list[str]) -> int:
    """List or change the library and print it; returns the exit code. Raises UserError."""
    parser = Parser(
        PROG,
        _DESCRIPTION,
        f"{PROG} [--json] [--drafts-for T.gguf | --add PATH | --remove PATH | --delete FILE.gguf]",
    )
    add_options(parser.add_mutually_exclusive_group(), _ONE_OF, Path)
    add_options(parser, "--json  Print the list as JSON")
    arguments = parser.parse_args(argv)
    with open_shelf() as shelf:
        if arguments.add:
            shelf.add([arguments.add])
        elif arguments.remove:
            _remove(shelf, arguments.remove)
        elif arguments.delete:
            return _delete(shelf, arguments.delete)
        found = [shelf.read(model) for model in shelf.scan()]
        if arguments.drafts_for:
            target = Path(find_paths().model(str(arguments.drafts_for)))  # of our own by its symbol
            _print_drafts(shelf, target, found, arguments.json)
        elif arguments.json:
            _print_json([_facts(model) for model in found])
        else:
            _print_models(found)
        if shelf.places.notice:
            say(shelf.places.notice)
        shelf.save(found)
    return 0


def _remove(shelf: Shelf, path: Path) -> None:
    path = path.expanduser().absolute()
    if path not in shelf.places.added:
        added = ", ".join(map(str, shelf.places.added)) or "nothing"
        raise UserError(f"{path} was not added.", f"Added: {added}.")
    shelf.places.remove(path)


def _delete(shelf: Shelf, path: Path) -> int:
    model = find_model(shelf.scan(), path)
    if model is None:
        raise UserError(f"{path} is not a model of the library.", f"{PROG} lists them.")
    say(f"Deleted {model.path.name}: {file_size(shelf.delete(model))} freed.")
    return 0


def _print_models(found: list[LocalModel]) -> None:
    head = ("NAME", "ARCHITECTURE", "PARAMETERS", "QUANTISATION", "CONTEXT", "SIZE", "PATH")
    rows = []
    for model, name in zip(found, names_apart(found), strict=True):
        facts = model.facts
        rows.append(
            (
                name,
                facts.architecture if facts else "?",
                model.parameters or "?",
                model.quantisation,
                f"{facts.context:,}" if facts and facts.context else "?",
                file_size(model.size),
                str(model.path),
            )
        )
    put(aligned(head, rows, right=("PARAMETERS", "CONTEXT", "SIZE")))
    for model in found:
        if model.problem:
            say(f"{model.path.name} cannot be used: {model.problem}")


def _facts(model: LocalModel) -> dict[str, object]:
    """A model's facts for JSON; null for unknown ones."""
    facts = model.facts
    return {
        "name": model.name,
        "path": str(model.path),
        "files": [str(file) for file in model.files],
        "size": model.size,
        "source": model.origin,
        "from": model.origin,  # its name before "source"
        "repository": model.repo or None,
        "made_from": model.made_from or None,
        "architecture": facts.architecture if facts else None,
        "parameters": facts.parameters if facts else None,
        "quantisation": None if model.quantisation == "?" else model.quantisation,
        "context": (facts.context or None) if facts else None,
        "licence": (facts.licence or None) if facts else None,
        "problem": model.refusal or None,
    }


def _print_json(rows: list[dict[str, object]]) -> None:
    hand_over(json.dumps(rows, indent=2))  # in ASCII, whatever the names hold


def _print_drafts(shelf: Shelf, path: Path, found: list[LocalModel], as_json: bool) -> None:
    target = shelf.at(path, found)
    drafts = best_first(shelf.candidates(target, found))
    if as_json:
        _print_json(
            [_facts(draft.model) | {"verdict": draft.verdict, "because": draft.reason} for draft in drafts]
        )
        return
    rows = []
    for draft in drafts:
        reason = f"good: {draft.reason}" if draft.verdict is DraftVerdict.GOOD else str(draft)
        rows.append((draft.model.path.name, file_size(draft.model.size), reason, str(draft.model.path)))
    if not rows:
        say("There is no other model on this machine.")
        return
    put(aligned(("DRAFT", "SIZE", "VERDICT", "PATH"), rows, right=("SIZE",)))
