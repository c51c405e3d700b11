"""Model files are read in another process, whatever they are."""

from __future__ import annotations

import errno
import os
import signal
import struct
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import gguf
import numpy as np
import pytest
from typing_extensions import override

from app.base.processes import Child
from app.engine.errors import ModelFileError
from app.hub.cache import Cache
from app.hub.fits import Room
from app.hub.library.probe import Facts, ProbeAnswer, ProbeQuestion, Reader
from app.hub.library.shelf import Shelf
from tests.engine.native.test_library import python
from tests.files.tiny import Tiny
from tests.processes import started

PATIENCE = 40.0
TARGET = Tiny(name="target", n_embd=128, n_ff=256, n_layers=4)
DRAFT = Tiny(name="draft")
Put = Callable[..., Path]


def test_what_a_file_says_of_itself(reader: Reader, put: Put) -> None:
    facts = reader.facts(put(TARGET))
    assert (facts.architecture, facts.name, facts.layers, facts.context) == ("llama", "target", 4, 512)
    assert (facts.quantisation, facts.chat, facts.recurrent, facts.refusal) == ("F32", True, False, "")
    assert facts.vocabulary_size > 256
    assert 100_000 < facts.parameters < 2_000_000
    assert reader.facts(put(Tiny(name="hybrid", architecture="lfm2"))).recurrent


def test_the_probe_does_not_import_the_hubs_client() -> None:
    """Which took longer than reading a file."""
    code = "import sys, app.hub.library.probe; print('huggingface_hub' in sys.modules)"
    assert python(code) == "False"


def test_equal_vocabularies_have_equal_digests(reader: Reader, put: Put) -> None:
    first, same = reader.facts(put(TARGET)), reader.facts(put(DRAFT))
    assert first.vocabulary == same.vocabulary
    for tiny in (Tiny(order=3), Tiny(padding=8), Tiny(adds_bos=True), Tiny(sentencepiece=True)):
        assert reader.facts(put(tiny, "other.gguf")).vocabulary != first.vocabulary


@pytest.mark.parametrize(
    ("tiny", "words"),
    [
        (Tiny(architecture="llada"), "does not write text token by token"),
        (Tiny(vocabulary=False), "no vocabulary"),
    ],
)
def test_what_is_no_language_model(reader: Reader, put: Put, tiny: Tiny, words: str) -> None:
    assert words in reader.facts(put(tiny)).refusal


def hostile(path: Path, kind: str, sound: bytes) -> None:
    """Files that are broken, or made to do harm."""
    head = b"GGUF" + struct.pack("<I", 3)
    contents = {
        "empty": b"",
        "text": b"<html>not found</html>",
        "cut": sound[: len(sound) // 3],
        "cut in the head": sound[:200],
        "many tensors": head + struct.pack("<QQ", 2**62, 1),
        "many keys": head + struct.pack("<QQ", 0, 2**63 - 1),
        "long key": head + struct.pack("<QQQ", 0, 1, 2**60) + b"x" * 64,
        "old version": b"GGUF" + struct.pack("<I", 99) + bytes(64),
        "zeros": b"GGUF" + bytes(4096),
    }
    path.write_bytes(contents[kind])


@pytest.mark.parametrize(
    "kind",
    (
        "empty", "text", "cut", "cut in the head", "many tensors", "many keys", "long key",
        "old version", "zeros",
    ),
)  # fmt: skip
def test_a_hostile_file_is_a_sentence(reader: Reader, put: Put, folder: Path, kind: str) -> None:
    sound = put(TARGET)
    bad = folder / "bad.gguf"
    hostile(bad, kind, sound.read_bytes())
    with pytest.raises(ModelFileError, match=r"bad\.gguf") as raised:
        reader.facts(bad)
    assert raised.value.hint
    assert reader.facts(sound).architecture == "llama"  # and the next file is read


def test_a_file_that_aborts_llama_cpp_ends_the_probe_only(
    reader: Reader, put: Put, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A vocabulary with wrong counts: its token type array is shorter than its token list."""
    writer = gguf.GGUFWriter(folder / "abort.gguf", "llama")
    writer.add_block_count(1)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([b"a"] * 300)
    writer.add_token_types([1])
    writer.add_token_merges(["\0 \0"])
    writer.add_tensor("token_embd.weight", np.zeros((1, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelFileError):
        reader.facts(folder / "abort.gguf")
    assert reader.facts(put(TARGET)).architecture == "llama"
    assert capfd.readouterr().err == ""


class Watched(Reader):
    """Signals when a question is sent to the probe."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    @override
    def _ask_once(self, question: ProbeQuestion) -> ProbeAnswer:
        self.asked.set()
        return super()._ask_once(question)


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_the_death_of_the_probe_is_survived(put: Put) -> None:
    """The probe is killed in the middle of a question, as by a fault in native code."""
    others = started()
    reader = Watched()
    path = put(TARGET)
    reader.facts(path)
    (probe,) = started() - others
    probe.send_signal(signal.SIGSTOP)
    reader.asked.clear()
    answered: list[Facts] = []

    def ask() -> None:
        answered.append(reader.facts(path))

    thread = threading.Thread(target=ask)
    thread.start()
    assert reader.asked.wait(PATIENCE)
    probe.send_signal(signal.SIGKILL)
    thread.join(PATIENCE)
    assert answered[0].architecture == "llama"  # a new probe was asked
    reader.close()


class Dying(Reader):
    """Its probes end before they answer, as where memory is short."""

    dies = True

    @override
    def _ask_once(self, question: ProbeQuestion) -> ProbeAnswer:
        if self.dies:
            raise EOFError
        return super()._ask_once(question)


def test_a_probe_that_died_is_not_held_against_the_file(tmp_path: Path, cache: Cache, put: Put) -> None:
    with Shelf(tmp_path / "data", cache, {}, reader := Dying()) as shelf:
        shelf.add([put(TARGET)])
        (model,) = shelf.scan()
        assert "reading it ended the process twice" in shelf.read(model).problem
        reader.dies = False
        (again,) = shelf.scan()
        assert shelf.read(again).facts is not None


def test_a_probe_that_cannot_start_is_not_held_against_the_file(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_arguments: object) -> Child:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr("app.hub.library.probe.Child", none)
    with pytest.raises(ModelFileError, match="was not read: resource temporarily unavailable") as raised:
        Reader().facts(put(TARGET))
    assert "damaged" not in str(raised.value)


def test_what_is_free_has_words_of_its_own() -> None:
    with pytest.raises(ModelFileError, match="The free memory") as raised:
        Dying().room()
    assert "damaged" not in str(raised.value)


def test_a_file_that_never_ends_is_given_up(put: Put) -> None:
    before = started()
    reader = Reader(PATIENCE)
    try:
        reader.facts(put(TARGET))
        (probe,) = started() - before
        probe.suspend()  # a pipe would never end, but is refused
        reader.patience = 0.1
        with pytest.raises(ModelFileError, match="within"):
            reader.facts(put(DRAFT))
        reader.patience = PATIENCE
        assert reader.facts(put(TARGET)).layers == 4
    finally:
        reader.close()


@pytest.mark.skipif(os.name != "posix", reason="names are bytes on POSIX")
def test_a_name_that_is_no_text_is_a_sentence(reader: Reader, folder: Path) -> None:
    with pytest.raises(ModelFileError, match="its name is not valid text"):
        reader.facts(folder / os.fsdecode(b"mod\xe8le.gguf"))


def test_what_is_free_on_this_machine(reader: Reader) -> None:
    room = reader.room()
    assert isinstance(room, Room) and room.memory > 100_000_000


def rubbish(connection: Connection) -> None:
    """A probe that something has damaged."""
    while True:
        connection.recv_bytes()
        connection.send_bytes(b"\xff rubbish")


def no_text(connection: Connection) -> None:
    """One whose answer holds a text that is not UTF-8."""
    while True:
        connection.recv_bytes()
        connection.send_bytes(b"\x81\xa4type\xa1\xff")


@pytest.mark.parametrize("damaged", [rubbish, no_text])
def test_a_damaged_message_ends_the_probe_and_not_its_reader(
    folder: Path, put: Put, monkeypatch: pytest.MonkeyPatch, damaged: Callable[[Connection], None]
) -> None:
    monkeypatch.setattr("app.hub.library.probe.serve", damaged)
    reader = Reader()
    try:
        with pytest.raises(ModelFileError, match="reading it ended the process twice"):
            reader.facts(put(TARGET))
        monkeypatch.undo()
        assert reader.facts(put(TARGET)).architecture == "llama"
    finally:
        reader.close()
