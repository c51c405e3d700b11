"""The one door to llama.cpp: models, vocabularies, contexts. Nothing else imports llama_cpp."""

from app.engine.native.context import SNAPSHOTS, Cancelled, Context
from app.engine.native.devices import chosen_devices, list_devices
from app.engine.native.exponentials import exponentials
from app.engine.native.ggml import backends
from app.engine.native.library import AbortFlag, on_abort, system_info
from app.engine.native.model import Model
from app.engine.native.vocabulary import Vocabulary

__all__ = [
    "SNAPSHOTS",
    "AbortFlag",
    "Cancelled",
    "Context",
    "Model",
    "Vocabulary",
    "backends",
    "chosen_devices",
    "exponentials",
    "list_devices",
    "on_abort",
    "system_info",
]
