"""The library: which models are here, what they are, and which can draft for which."""

from app.hub.library.drafts import Candidate, DraftVerdict, best_first
from app.hub.library.facts import Facts, short_number
from app.hub.library.library import DraftsChanged, Library, LibraryChanged, LibraryEvent, LibraryProblem
from app.hub.library.model import FileOrigin, LocalModel, names_apart
from app.hub.library.reader import Reader
from app.hub.library.scan import own_models
from app.hub.library.shelf import Shelf, find_model

__all__ = [
    "Candidate",
    "DraftVerdict",
    "DraftsChanged",
    "Facts",
    "FileOrigin",
    "Library",
    "LibraryChanged",
    "LibraryEvent",
    "LibraryProblem",
    "LocalModel",
    "Reader",
    "Shelf",
    "best_first",
    "find_model",
    "names_apart",
    "own_models",
    "short_number",
]
