"""The Models place's descriptions of files, repositories and downloads, in a few words."""

from __future__ import annotations

from datetime import UTC, datetime

from app.hub.downloads import Download, State
from app.hub.errors import Trouble
from app.hub.fits import Fit, Light, Room
from app.hub.library.model import FileOrigin, LocalModel
from app.hub.repo import Repo, RepoHit
from app.ui.widgets.words import SPACE, count, file_size, parameters, percent, relative_time

DOT = " · "
ORIGINS = {
    FileOrigin.HUB: "Hub",
    FileOrigin.ADDED: "added",
    FileOrigin.BUNDLED: "bundled",
    FileOrigin.MADE: "made here",
    FileOrigin.SET_UP: "set-up",
}


def joined(*parts: str) -> str:
    """The parts that are not empty, with dots between."""
    return DOT.join(part for part in parts if part)


def capital(words: str) -> str:
    """A phrase with its first letter in upper case."""
    return words[:1].upper() + words[1:]


def time_left(seconds: float | None) -> str:
    """Coarse, so that it does not jitter: "42 s left", "12 min left", "3 h 05 min left"; "" for unknown."""
    if seconds is None:
        return ""
    if seconds < 90:
        return f"{max(1, round(seconds))}{SPACE}s left"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes}{SPACE}min left"
    return f"{minutes // 60}{SPACE}h {minutes % 60:02d}{SPACE}min left"


def share(download: Download) -> float:
    """The downloaded share, in [0, 1]."""
    return min(1.0, download.done / download.total) if download.total else 0.0


def speed(value: float | None) -> str:
    return f"{file_size(round(value))}/s" if value is not None else ""


def state_words(download: Download, retry_in: float) -> str:
    """What an item of the queue is doing."""
    match download.state:
        case State.QUEUED:
            return "queued"
        case State.RUNNING:
            return "downloading" if download.speed is not None or download.done else "starting"
        case State.CHECKING:
            return "checking the file"
        case State.WAITING:
            return f"retrying in {round(retry_in)}{SPACE}s"
        case State.PAUSED:
            return "paused"
        case State.FAILED:
            if download.trouble is Trouble.OFFLINE:
                return "resumes when offline mode is off"
            return "cancelled" if download.trouble is Trouble.NOT_DELETED else "stopped"
        case State.DONE:
            return "here"


def progress_words(download: Download) -> str:
    """Bytes, share, speed and time left, as far as they are known."""
    if download.state is State.DONE:
        parts = f"{len(download.files)} files" if len(download.files) > 1 else ""
        return joined(file_size(download.total), parts)
    sizes = f"{file_size(download.done)} of {file_size(download.total)}"
    return joined(sizes, percent(share(download)), speed(download.speed), time_left(download.seconds_left))


def fit_words(fit: Fit) -> str:
    """The light with its two numbers."""
    if fit.light is Light.GPU and fit.room.device:
        free = fit.room.device
    else:
        free = fit.room.memory if fit.light is Light.MEMORY else fit.room.together
    light = "Too tight" if fit.is_tight else capital(fit.light)
    return f"{light}: needs about {file_size(fit.needed)}, {file_size(free)} free"


def room_words(room: Room) -> str:
    """The free memory, as the lights count it."""
    memory = f"{file_size(room.memory)} of memory free"
    return memory if room.device is None else f"{file_size(room.device)} on the GPU and {memory}"


def hit_words(hit: RepoHit) -> str:
    """A found repository in one line."""
    size = parameters(hit.parameters) if hit.parameters else ""
    downloads = f"{parameters(hit.downloads)}{SPACE}downloads"
    return joined(size, hit.architecture, hit.licence, downloads, "gated" if hit.gated else "")


def hit_tooltip(hit: RepoHit) -> str:
    """Everything that is known of a found repository."""
    updated = f"updated {relative_time(hit.updated, datetime.now(UTC))}" if hit.updated else ""
    more = joined(f"{count(hit.downloads)} downloads", f"{count(hit.likes)} likes", updated)
    return f"{hit.repo}\n{more}"


def repo_words(repo: Repo) -> str:
    """What the Hub says of a repository."""
    size = f"{parameters(repo.parameters)}{SPACE}parameters" if repo.parameters else ""
    context = f"context {count(repo.context)}{SPACE}tokens" if repo.context else ""
    licence = f"licence{SPACE}{repo.licence}" if repo.licence else "no licence given"
    return joined(repo.architecture, size, context, licence)


def model_words(model: LocalModel) -> str:
    """What a file is, once it is read."""
    if model.facts is None:
        return joined(model.quantisation.replace("?", ""), file_size(model.size))
    facts = model.facts
    return joined(
        facts.architecture,
        f"{model.parameters}{SPACE}parameters" if model.parameters else "",
        model.quantisation,
        file_size(model.size),
    )


def more_words(model: LocalModel) -> str:
    """The second line about a file."""
    facts = model.facts
    if facts is None:
        return ""
    return joined(
        f"made from {model.made_from}" if model.made_from else "",
        f"context {count(facts.context)}{SPACE}tokens" if facts.context else "",
        f"{count(facts.layers + 1)}{SPACE}layers including output" if facts.layers else "",
        f"{count(facts.vocabulary_size)}{SPACE}tokens in the vocabulary" if facts.vocabulary_size else "",
        "chat template" if facts.chat else "no chat template",
        f"licence{SPACE}{facts.licence}" if facts.licence else "",
    )
