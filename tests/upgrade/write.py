"""Writes a home folder as this version leaves it: `python -m tests.upgrade.write FOLDER`.

A folder that a version wrote stays as it is: run this for the next version, into a new folder.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import msgspec

from app.base.paths import BUNDLED_TARGET, Paths, find_paths
from app.cli import main
from app.engine import Engine
from app.engine.process.messages import Finished, RoundFinished, Started
from app.engine.record.trace import Trace
from app.engine.types import GenerationRequest, ModelOptions, Sampling
from app.hub.downloads.item import Download, ItemFile, State
from app.hub.downloads.store import write_queue
from app.hub.library.shelf import AddedPlaces
from app.lab.runs.journal import lock_of, trace_folder_of
from app.saved.chats.conversation import Answer, Conversation
from app.saved.chats.store import ChatStore
from app.saved.measured import Measurement
from app.saved.presets import Preset, PresetStore
from app.saved.settings import Settings, SettingsStore
from tests.files.tiny import Tiny, write_tiny

SAMPLED = Sampling(temperature=0.8, top_k=20, seed=7)
SETTINGS = Settings(
    strategy="prompt-lookup+draft-simple:n_max=3",
    sampling=SAMPLED,
    max_tokens=77,
    stop=("END",),
    system_prompt="Be short. Größe zählt.",
    theme="dark",
    text_scale=1.25,
    drafts_shown=False,
    recent_models=("/models/a.gguf", BUNDLED_TARGET),
    offline=True,
)
PRESETS = (
    Preset.of("Mine", SETTINGS),
    Preset("Plain", ModelOptions(BUNDLED_TARGET, ctx_size=512), None, "none"),
)
DOWNLOAD = Download(
    "1234", "5678", "someone/A-GGUF", "A", (ItemFile("a.gguf", 1000, "0" * 64),), state=State.PAUSED, done=10
)
PLACES = (Path("/models"),)


def _answer(engine: Engine, request: GenerationRequest) -> Trace:
    trace: Trace | None = None
    for event in engine.generate(request):
        if isinstance(event, Started):
            trace = Trace(event.header)
        elif isinstance(event, RoundFinished) and trace is not None:
            trace.rounds.append(event.round)
        elif isinstance(event, Finished) and trace is not None:
            trace.totals = event.totals
    assert trace is not None and trace.totals is not None
    return trace


def _say(store: ChatStore, engine: Engine, chat: Conversation, text: str, strategy: str) -> Conversation:
    chat = store.ask(chat, text)
    messages = chat.messages()
    wrapped = chat.head.mode == "chat"
    prompt, said = (None, messages) if wrapped else (text, ())
    trace = _answer(
        engine,
        GenerationRequest(prompt, said, strategy=strategy, sampling=SAMPLED, max_tokens=8, ignore_eos=True),
    )
    chat, recorder = store.begin_answer(chat, trace.header)
    for round in trace.rounds:
        recorder.add(round)
    assert trace.totals is not None
    return recorder.finish(trace.totals)


def write(paths: Paths, engine: Engine) -> None:
    """Write everything but the journal."""
    paths.prepare()
    SettingsStore(paths.settings).save(SETTINGS)
    PresetStore(paths.presets).save(PRESETS)
    write_queue(paths.data / "downloads.json", (DOWNLOAD,))
    AddedPlaces(paths.data / "library.json").add(PLACES)
    store = ChatStore(paths.chats)
    chat = store.new(system_prompt="Be short.")
    chat = _say(store, engine, chat, "Count: Größe 😀", "draft-simple:n_max=2")
    chat = _say(store, engine, chat, "abcabcabc", "prompt-lookup:num_pred_tokens=3+draft-simple:n_max=2")
    last = chat.turns[-1]
    assert isinstance(last, Answer)
    runs = [
        _answer(engine, GenerationRequest("abc", strategy=strategy, max_tokens=6, ignore_eos=True))
        for strategy in ("none", "draft-simple:n_max=2")
    ]
    store.keep_measurement(chat.id, last, Measurement(*runs))
    _say(store, engine, store.new("completion"), "abcabcab", "draft-simple:n_max=2")
    deleted = store.ask(store.new(), "Forget this")
    store.delete(deleted.id)


def _main(folder: str) -> None:
    home = Path(folder).absolute()
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)  # so that no path of this machine is in the files
        target = write_tiny(Path("target.gguf"), Tiny(name="target", n_ctx=256))
        draft = write_tiny(Path("draft.gguf"), Tiny(name="draft", n_ctx=256, noise=0.15, noise_seed=7))
        paths = find_paths({"DRAFTSCOPE_HOME": str(home)})
        with Engine(target, draft) as engine:
            write(paths, engine)
        Path("prompts.json").write_bytes(msgspec.json.encode([{"category": "code", "prompt": "abcabc"}]))
        journal = paths.data / "compare" / "20261122-120000-000000.jsonl"
        journal.parent.mkdir()
        words = (
            f"bench --target {target} --draft {draft} --strategy draft-simple:n_max=2 --prompts prompts.json"
        )
        words += f" --max-tokens 6 --repeat 2 --engine thread --journal {journal}"
        assert main(words.split()) == 0
        journal.write_bytes(journal.read_bytes().replace(work.encode(), b"/models"))
        shutil.rmtree(trace_folder_of(journal))  # compressed, and a journal is read without them
        lock_of(journal).unlink()


if __name__ == "__main__":
    _main(sys.argv[1])
