"""Check and repair: what is damaged or left over in the user's folders, and what would be done about it.

Nothing is changed before `repair` is called with what was found, and nothing is deleted: what is left over
goes to the trash of the chats, what is damaged is kept under another name.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from app.base.files import DamagedError, decode_object, is_left, read_file, reason, set_aside
from app.base.paths import Paths
from app.care.chat_check import TO_TRASH, ChatCheck
from app.care.finding import DataFault
from app.engine.errors import UserError
from app.lab.drafts.kept import results_in
from app.lab.runs.journal.journal import Journal, OtherVersionError, is_free, trace_folder_of

_SET_ASIDE = "It is kept under another name, and a new one is begun."
_YOUNG = 600  # seconds; something may still be writing beside it


def check_data(paths: Paths) -> tuple[DataFault, ...]:
    """What is wrong with the user's data; reads every chat and every trace, and changes nothing."""
    chats = ChatCheck(paths.chats)
    found = [
        *_lists(paths),
        *_journals(paths.data / "compare", chats),
        *_measured_drafts(paths.data / "drafts"),
    ]
    if not (paths.chats.exists() or paths.settings.exists()):
        return tuple(found)  # no window has been here, which makes the folder of the chats
    try:
        found += [*chats.findings(), *_partials(paths, chats)]
    except UserError as error:
        found.append(DataFault(str(error)))
    except OSError as error:
        found.append(DataFault(f"The folders cannot be read: {reason(error)}."))
    return tuple(found)


def repair(findings: Iterable[DataFault]) -> tuple[str, ...]:
    """Apply every remedy; returns a sentence for each that could not be applied."""
    failed = []
    for finding in findings:
        if finding.mend is None:
            continue
        try:
            finding.mend()
        except UserError as error:
            failed.append(f"{finding.words} {error}")
        except OSError as error:
            failed.append(f"{finding.words} It could not be mended: {reason(error)}.")
    return tuple(failed)


def _lists(paths: Paths) -> Iterator[DataFault]:
    """The lists that are one JSON object each."""
    lists = {
        "settings file": paths.settings,
        "presets file": paths.presets,
        "list of downloads": paths.data / "downloads.json",
        "list of added files": paths.data / "library.json",
        "list of what is known of models": paths.data / "library-cache.json",
        "list of verified files": paths.checked,
        "set-up of Compare": paths.data / "compare" / "setup.json",
    }
    for subject, path in lists.items():
        try:
            decode_object(read_file(path))
        except FileNotFoundError:
            continue
        except OSError as error:
            yield DataFault(f"The {subject} cannot be read: {reason(error)}.")
        except DamagedError as error:
            words = f"The {subject} is damaged: {error}."
            yield DataFault(words, _SET_ASIDE, partial(set_aside, path, "damaged"))


def _journals(folder: Path, chats: ChatCheck) -> Iterator[DataFault]:
    for path in sorted(folder.glob("*.jsonl")):
        try:
            Journal.read(path)
        except OtherVersionError as error:
            yield DataFault(error.message, "It stays as it is.")
        except UserError as error:
            if is_free(path):
                remedy = "It is kept under another name, and no longer offered."
                yield DataFault(error.message, remedy, partial(set_aside, path, "damaged"))
    journals = {trace_folder_of(path) for path in folder.glob("*.jsonl")}
    for traces in sorted(folder.glob("*-traces")):
        if traces not in journals and time.time() - traces.stat().st_mtime > _YOUNG:
            words = f"The traces {traces.name} belong to a measurement that is gone."
            yield DataFault(words, TO_TRASH, partial(chats.put_away, traces))


def _measured_drafts(folder: Path) -> Iterator[DataFault]:
    for path in sorted(folder.glob("*.json")):
        try:
            results_in(read_file(path))
        except OSError as error:
            yield DataFault(f"The measured drafts {path.name} cannot be read: {reason(error)}.")
        except DamagedError as error:
            words = f"The measured drafts {path.name} are damaged: {error}."
            remedy = "The file is kept under another name; measure that target's drafts again."
            yield DataFault(words, remedy, partial(set_aside, path, "damaged"))


def _partials(paths: Paths, chats: ChatCheck) -> Iterator[DataFault]:
    """Files that a process was writing when it was killed. (A window removes them when it starts.)"""
    for folder in (paths.config, paths.data):
        for left in sorted(folder.rglob("*.partial")):
            if is_left(left):
                words = f"{left.name} is half written, and the program that wrote it is gone."
                yield DataFault(words, TO_TRASH, partial(chats.put_away, left))
