"""The library: what is found, read in another process, judged as a draft, added and deleted."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import gguf
import numpy as np
import psutil
import pytest
from huggingface_hub import scan_cache_dir

from app.engine.compat import FitKind, VocabularyFit
from app.engine.errors import ModelFileError, UserError
from app.hub.cache import Cache
from app.hub.downloads.fetch import Fetcher
from app.hub.downloads.item import ItemFile
from app.hub.downloads.messages import Job
from app.hub.fits import Room
from app.hub.library import (
    Candidate,
    DraftsChanged,
    Facts,
    Library,
    LibraryChanged,
    LibraryEvent,
    LibraryProblem,
    LocalModel,
    Origin,
    Reader,
    Shelf,
    Verdict,
    best_first,
    find_model,
    short_number,
)
from app.hub.library.drafts import judge_draft
from app.hub.library.probe import Answer, Question
from tests.hub.server import FakeHub, FakeRepo
from tests.tiny import Tiny

E = TypeVar("E")
MakeTiny = Callable[[Tiny], Path]
PATIENCE = 40.0

TARGET = Tiny(name="target", n_embd=128, n_ff=256, n_layers=4)
DRAFT = Tiny(name="draft")


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    made = Reader()
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "my models"
    made.mkdir()
    return made


@pytest.fixture
def shelf(tmp_path: Path, cache: Cache, reader: Reader) -> Shelf:
    """Not closed: its reader is shared."""
    return Shelf(tmp_path / "data", cache, (), reader)


@pytest.fixture
def put(folder: Path, tiny_file: MakeTiny) -> Callable[..., Path]:
    """Puts a tiny model into the folder."""

    def make(tiny: Tiny, name: str = "") -> Path:
        path = folder / (name or f"{tiny.name}.gguf")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tiny_file(tiny), path)
        return path

    return make


Put = Callable[..., Path]


# ------------------------------------------------------------------------------------- reading files


def test_what_a_file_says_of_itself(reader: Reader, put: Put) -> None:
    facts = reader.facts(put(TARGET))
    assert (facts.architecture, facts.name, facts.layers, facts.context) == ("llama", "target", 4, 512)
    assert (facts.quantisation, facts.chat, facts.recurrent, facts.refusal) == ("F32", True, False, "")
    assert facts.vocabulary_size > 256
    assert 100_000 < facts.parameters < 2_000_000
    assert reader.facts(put(Tiny(name="hybrid", architecture="lfm2"))).recurrent


def test_equal_vocabularies_have_equal_digests(reader: Reader, put: Put) -> None:
    first, same = reader.facts(put(TARGET)), reader.facts(put(DRAFT))
    assert first.vocabulary == same.vocabulary
    for other in (Tiny(order=3), Tiny(padding=8), Tiny(adds_bos=True), Tiny(sentencepiece=True)):
        assert reader.facts(put(other, "other.gguf")).vocabulary != first.vocabulary


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
    """Files as they arrive broken, or are made to hurt."""
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
    assert reader.facts(sound).architecture == "llama"  # and the next one is read


def test_a_file_that_aborts_llama_cpp_ends_the_probe_only(reader: Reader, put: Put, folder: Path) -> None:
    """A vocabulary whose numbers lie: a token type array shorter than the token list."""
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


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_the_death_of_the_probe_is_survived(put: Put) -> None:
    """As a fault in native code ends it, in the middle of a question."""
    reader = Reader()
    path = put(TARGET)
    reader.facts(path)
    (probe,) = [one for one in psutil.Process().children() if _is_probe(one, reader)]
    probe.send_signal(signal.SIGSTOP)
    answered: list[Facts] = []

    def ask() -> None:
        answered.append(reader.facts(path))

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.2)
    probe.send_signal(signal.SIGKILL)
    thread.join(PATIENCE)
    assert answered[0].architecture == "llama"  # a fresh one was asked
    reader.close()


class Dying(Reader):
    """Its probes end before they answer, as where memory is short."""

    dies = True

    def _ask_once(self, question: Question) -> Answer:
        if self.dies:
            raise EOFError
        return super()._ask_once(question)


def test_a_probe_that_died_is_not_held_against_the_file(tmp_path: Path, cache: Cache, put: Put) -> None:
    with Shelf(tmp_path / "data", cache, (), reader := Dying()) as shelf:
        shelf.add([put(TARGET)])
        (model,) = shelf.scan()
        assert "twice, reading it ended the process" in shelf.read(model).problem
        reader.dies = False
        (again,) = shelf.scan()
        assert shelf.read(again).facts is not None


def test_what_is_free_has_words_of_its_own() -> None:
    with pytest.raises(ModelFileError, match="What is free") as raised:
        Dying().room()
    assert "damaged" not in str(raised.value)


def _is_probe(process: psutil.Process, reader: Reader) -> bool:
    return reader._probe is not None and process.pid == reader._probe._process.pid


@pytest.mark.skipif(os.name != "posix", reason="named pipes are POSIX")
def test_a_file_that_never_ends_is_given_up(folder: Path, put: Put) -> None:
    os.mkfifo(folder / "pipe.gguf")
    reader = Reader(PATIENCE)
    try:
        reader.facts(put(TARGET))
        reader._patience = 0.5
        with pytest.raises(ModelFileError, match="within"):
            reader.facts(folder / "pipe.gguf")
        reader._patience = PATIENCE
        assert reader.facts(put(TARGET)).layers == 4
    finally:
        reader.close()


def test_what_is_free_on_this_machine(reader: Reader) -> None:
    room = reader.room()
    assert isinstance(room, Room) and room.memory > 100_000_000


# ------------------------------------------------------------------------------------------- finding


def test_everything_is_found_once(
    shelf: Shelf, put: Put, folder: Path, server: FakeHub, cache: Cache, tmp_path: Path
) -> None:
    one, two = put(TARGET), put(DRAFT, "deep/er/draft.gguf")
    put(DRAFT, ".hidden/draft.gguf")
    put(DRAFT, "mmproj-F16.gguf")
    (folder / "notes.txt").write_text("no model")
    server.repos["owner/name-GGUF"] = FakeRepo({"Sub/hub-Q8_0.gguf": one.read_bytes()})
    job = Job(
        "owner/name-GGUF", "main", (ItemFile("Sub/hub-Q8_0.gguf", 0),), str(cache.folder), server.address
    )
    Fetcher(job, lambda _report: None).run()
    shelf.add([folder, one, cache.folder])
    found = shelf.scan()
    assert [(model.path.name, model.origin, model.repo) for model in found] == [
        ("draft.gguf", Origin.ADDED, ""),
        ("hub-Q8_0.gguf", Origin.HUB, "owner/name-GGUF"),
        ("target.gguf", Origin.ADDED, ""),
    ]
    assert found[0].path == two
    assert found[1].size == one.stat().st_size and found[1].quantisation == "Q8_0"
    assert not any(model.is_read for model in found)
    read = shelf.read(found[2])
    assert (read.name, read.is_read, read.problem) == ("target", True, "")

    # Another commit of the same bytes is not another model.
    server.repos["owner/name-GGUF"].history += 1
    Fetcher(job, lambda _report: None).run()
    assert len(shelf.scan()) == 3


def test_parts_are_one_model(shelf: Shelf, folder: Path, put: Put) -> None:
    put(DRAFT, "big-00002-of-00002.gguf")
    first = put(TARGET, "big-00001-of-00002.gguf")
    put(TARGET, "half-00001-of-00003.gguf")
    shelf.add([folder])
    big, half = shelf.scan()
    assert big.path == first and len(big.files) == 2
    assert big.size == sum(file.stat().st_size for file in big.files)
    assert half.problem == "1 of its 3 parts are here." and half.hint and half.is_read
    assert shelf.read(half) is half
    assert find_model([big, half], big.files[1]) is big


def test_what_was_read_is_remembered_until_the_file_changes(
    tmp_path: Path, cache: Cache, reader: Reader, put: Put, folder: Path
) -> None:
    path = put(TARGET)
    first = Shelf(tmp_path / "data", cache, (), reader)
    first.add([folder])
    found = [first.read(model) for model in first.scan()]
    first.save(found)

    second = Shelf(tmp_path / "data", cache, (), reader)
    assert second.scan() == tuple(found)
    put(DRAFT, "target.gguf")
    os.utime(path, (1, 1))
    (changed,) = second.scan()
    assert not changed.is_read
    assert second.read(changed).name == "draft"


def test_what_cannot_be_read_is_not_tried_again(shelf: Shelf, folder: Path, put: Put) -> None:
    bad = folder / "bad.gguf"
    bad.write_bytes(b"nothing")
    shelf.add([folder])
    (model,) = shelf.scan()
    assert shelf.read(model).problem == "bad.gguf is not a GGUF file."
    (again,) = shelf.scan()
    assert again.problem and again.is_read
    put(TARGET, "bad.gguf")
    os.utime(bad, (2, 2))
    (mended,) = shelf.scan()
    assert shelf.read(mended).problem == ""


def test_a_part_that_was_mended_is_tried_again(shelf: Shelf, folder: Path) -> None:
    for index in (1, 2):
        (folder / f"m-0000{index}-of-00002.gguf").write_bytes(b"nothing")
    shelf.add([folder])
    (model,) = shelf.scan()
    assert shelf.read(model).problem
    (folder / "m-00002-of-00002.gguf").write_bytes(b"something else")
    (mended,) = shelf.scan()
    assert mended.problem == ""


def test_adding_what_is_none(shelf: Shelf, folder: Path) -> None:
    (folder / "x.txt").write_text("")
    for path, words in [
        (folder / "gone.gguf", "is not there"),
        (folder / "x.txt", "is not a GGUF file"),
        (folder, r"no \.gguf file"),
    ]:
        with pytest.raises(UserError, match=words):
            shelf.add([path])
    assert shelf.places.added == ()


def test_added_places_are_remembered_and_removed(
    shelf: Shelf, put: Put, folder: Path, tmp_path: Path
) -> None:
    path = put(TARGET)
    shelf.add([path])
    other = Shelf(tmp_path / "data", Cache(tmp_path / "none"))
    assert other.places.added == (path,)
    other.places.remove(path)
    assert shelf.places.added == () and path.exists()


def test_a_damaged_list_costs_only_itself(tmp_path: Path, cache: Cache) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "library.json").write_text("{")
    (data / "library-cache.json").write_text("[]")
    shelf = Shelf(data, cache)
    assert shelf.scan() == ()
    assert "damaged" in shelf.places.notice


# ------------------------------------------------------------------------------------------ deleting


def test_deleting_frees_the_disk(
    shelf: Shelf, put: Put, folder: Path, server: FakeHub, cache: Cache, left: Callable[[], list[str]]
) -> None:
    data = put(TARGET).read_bytes()
    names = [f"m-0000{i}-of-00002.gguf" for i in (1, 2)]
    server.repos["a/b"] = FakeRepo({names[0]: data, names[1]: data[:-1]})
    job = Job("a/b", "main", tuple(ItemFile(name, 0) for name in names), str(cache.folder), server.address)
    for _ in range(2):  # in two commits
        Fetcher(job, lambda _report: None).run()
        server.repos["a/b"].history += 1
    (model,) = shelf.scan()
    assert shelf.delete(model) == model.size == 2 * len(data) - 1
    assert left() == []

    shelf.add([folder, folder / "target.gguf"])
    (model,) = shelf.scan()
    assert shelf.delete(model) == len(data)
    assert not model.path.exists()
    assert shelf.places.added == (folder,)
    assert shelf.scan() == ()


@pytest.mark.parametrize("fault", ["a broken link", "a branch that leads nowhere"])
def test_deleting_where_the_client_passes_over_a_repository(
    shelf: Shelf, server: FakeHub, cache: Cache, fault: str
) -> None:
    server.repos["a/b"] = FakeRepo({"m.gguf": b"GGUF"})
    job = Job("a/b", "main", (ItemFile("m.gguf", 0),), str(cache.folder), server.address)
    Fetcher(job, lambda _report: None).run()
    (model,) = shelf.scan()
    blob = model.path.resolve()
    if fault == "a broken link":
        model.path.with_name("gone.json").symlink_to("../../blobs/gone")
    else:
        (cache.folder / "models--a--b" / "refs" / "old").write_text("0" * 40)
    assert scan_cache_dir(cache.folder).warnings
    assert shelf.delete(model) == 4
    assert not blob.exists() and shelf.scan() == ()


def test_what_comes_along_stays(cache: Cache, put: Put, reader: Reader) -> None:
    path = put(TARGET)
    shelf = Shelf(None, cache, [path], reader)
    (model,) = shelf.scan()
    assert model.origin is Origin.BUNDLED and not model.can_delete
    with pytest.raises(UserError, match="part of Draftscope"):
        shelf.delete(model)
    assert path.exists()


# -------------------------------------------------------------------------------------------- drafts


def test_every_other_file_is_a_draft_with_its_reason(shelf: Shelf, put: Put, folder: Path) -> None:
    path = put(TARGET)
    put(DRAFT, "good.gguf")
    put(Tiny(name="padded", padding=8), "padded.gguf")
    put(Tiny(name="large", n_embd=128, n_ff=256, n_layers=4, seed=5), "large.gguf")
    put(Tiny(name="other", order=3), "through-text.gguf")
    put(Tiny(name="spm", sentencepiece=True), "through-text-too.gguf")
    put(Tiny(name="hybrid", architecture="lfm2"), "hybrid.gguf")
    put(Tiny(architecture="llada"), "diffusion.gguf")
    put(Tiny(vocabulary=False), "mute.gguf")
    put(DRAFT, "part-00001-of-00002.gguf")
    (folder / "broken.gguf").write_bytes(b"GGUF")
    shelf.add([folder])
    models = shelf.scan()
    target = shelf.at(path, models)
    said = {one.model.path.stem: one for one in shelf.candidates(target, models)}
    assert {name: one.verdict for name, one in said.items()} == {
        "good": Verdict.GOOD,
        "padded": Verdict.GOOD,
        "large": Verdict.WORKS,
        "through-text": Verdict.WORKS,
        "through-text-too": Verdict.WORKS,
        "hybrid": Verdict.WORKS,
        "diffusion": Verdict.CANNOT,
        "mute": Verdict.CANNOT,
        "part-00001-of-00002": Verdict.CANNOT,
        "broken": Verdict.CANNOT,
    }
    words = {
        "good": "good",
        "large": "works, because the vocabulary fits; at 100 % of the target's size it will hardly",
        "through-text": "works, because its drafts can go through text; token 5 is",
        "hybrid": "works, because the vocabulary fits; its memory cannot be cut",
        "diffusion": "cannot, because it does not write text token by token",
        "mute": "cannot, because it has no vocabulary",
        "part-00001-of-00002": "cannot, because 1 of its 2 parts are here",
        "broken": "cannot, because broken.gguf is cut short or damaged",
    }
    for name, beginning in words.items():
        assert str(said[name]).startswith(beginning), str(said[name])
    assert "tokens" in said["padded"].reason
    order = [one.verdict for one in best_first(target, said.values())]
    assert order == sorted(order, key=list(Verdict).index)


def test_a_target_that_was_chosen_elsewhere(shelf: Shelf, put: Put, tmp_path: Path) -> None:
    path = put(TARGET)
    target = shelf.at(path, [])
    assert list(shelf.candidates(target, [])) == []
    with pytest.raises(ModelFileError, match="is not there"):
        shelf.at(tmp_path / "gone.gguf", [])


def test_a_target_of_no_use_is_said(shelf: Shelf, put: Put) -> None:
    for tiny in (Tiny(vocabulary=False), Tiny(architecture="llada")):
        target = shelf.at(put(tiny), [])
        with pytest.raises(ModelFileError, match="is no language model"):
            list(shelf.candidates(target, []))


def local(size: int, architecture: str = "llama", name: str = "x") -> LocalModel:
    facts = Facts(architecture, name, 1, "", 1, 1, 1, "v")
    path = Path(f"/{name}-{size}.gguf")
    return LocalModel(path, (path,), size, 0, Origin.ADDED, facts=facts)


def test_the_best_is_first() -> None:
    """SmolLM2 1.7B: the 135M before the 360M, both before another family, a heavy one, another vocabulary."""
    target = local(1_060_000_000)
    same, text = VocabularyFit(FitKind.SAME), VocabularyFit(FitKind.THROUGH_TEXT, "token 7 differs")
    wished = [
        judge_draft(target, local(145_000_000), same),
        judge_draft(target, local(386_000_000), same),
        judge_draft(target, local(120_000_000, "qwen2"), same),
        judge_draft(target, local(700_000_000), same),
        judge_draft(target, local(110_000_000, "qwen2"), text),
        Candidate(local(1, name="c"), Verdict.CANNOT, "it is broken"),
    ]
    wished[3:5] = sorted(wished[3:5], key=lambda one: one.model.facts.architecture != "llama")  # type: ignore[union-attr]
    assert list(best_first(target, reversed(wished))) == wished


def test_numbers_as_people_write_them() -> None:
    written = [short_number(n) for n in (0, 135_000_000, 1_711_376_384, 8_030_261_248, 70_553_706_496, 1500)]
    assert written == ["", "135M", "1.7B", "8B", "70.6B", "1.5K"]


# -------------------------------------------------------------------------- on a thread of its own


class Told:
    def __init__(self) -> None:
        self.events: list[LibraryEvent] = []

    def wait(self, kind: type[E], reached: Callable[[E], bool] = lambda _one: True) -> E:
        """The newest event of its kind, as soon as it is as wished; forgets the earlier ones."""
        until = time.monotonic() + PATIENCE
        while True:
            found = [one for one in self.events if isinstance(one, kind) and reached(one)]
            if found:
                self.events.clear()
                return found[-1]
            assert time.monotonic() < until, self.events
            time.sleep(0.01)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def library(tmp_path: Path, cache: Cache, told: Told) -> Iterator[Library]:
    made = Library(Shelf(tmp_path / "data", cache), told.events.append)
    yield made
    made.close()
    assert not made._thread.is_alive()


def test_a_window_follows_the_library(library: Library, told: Told, put: Put, folder: Path) -> None:
    path, draft = put(TARGET), put(DRAFT)
    library.refresh()
    assert told.wait(LibraryChanged).models == ()
    library.add([folder])
    changed = told.wait(LibraryChanged, lambda one: not one.reading)
    assert [model.name for model in changed.models] == ["draft", "target"]
    assert library.models == changed.models

    library.find_drafts(path)
    found = told.wait(DraftsChanged, lambda one: not one.reading)
    assert found.target == path and [str(one) for one in found.candidates] == ["good"]

    # A change of the library is one of its drafts.
    library.delete(changed.models[0])
    assert told.wait(DraftsChanged, lambda one: not one.reading).candidates == ()
    assert not draft.exists()
    assert library.added == (folder,)
    library.remove(folder)
    told.wait(LibraryChanged, lambda one: one.models == ())
    assert path.exists()


def test_problems_are_told(library: Library, told: Told, put: Put, folder: Path) -> None:
    with pytest.raises(UserError, match=r"no \.gguf file"):
        library.add([folder])
    library.find_drafts(folder / "gone.gguf")
    assert "is not there" in told.wait(DraftsChanged).problem
    path = put(TARGET)
    bundled = LocalModel(path, (path,), 1, 0, Origin.BUNDLED)
    library.delete(bundled)
    assert "part of Draftscope" in told.wait(LibraryProblem).message
    assert path.exists()


def test_closing_in_the_middle_of_reading(tmp_path: Path, cache: Cache, put: Put, folder: Path) -> None:
    for i in range(8):
        put(DRAFT, f"{i}.gguf")
    told = Told()
    library = Library(Shelf(tmp_path / "data", cache), told.events.append)
    library.add([folder])
    told.wait(LibraryChanged)
    library.close()
    assert not library._thread.is_alive()
