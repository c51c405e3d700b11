"""The one door to llama.cpp: models, vocabularies, contexts. Nothing else imports llama_cpp."""

from app.engine.native.context import SNAPSHOTS, Cancelled, Context
from app.engine.native.library import AbortFlag, cores, devices, system_info
from app.engine.native.model import Model
from app.engine.native.vocabulary import Vocabulary

__all__ = [
    "SNAPSHOTS",
    "AbortFlag",
    "Cancelled",
    "Context",
    "Model",
    "Vocabulary",
    "cores",
    "devices",
    "system_info",
]
