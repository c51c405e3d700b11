"""Bad model files: each gives one clear sentence, and the engine stays usable."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gguf
import pytest

from app.engine import pair
from app.engine.compat import FitKind, VocabularyFit
from app.engine.devices.offload import measure
from app.engine.engine import Engine
from app.engine.errors import ModelFileError, PairError, SettingError
from app.engine.native import Model
from app.engine.native.library import model_name
from app.engine.types import DEFAULT_CTX, ModelOptions, Role
from tests.answers import answer, assert_same_answer
from tests.files.tiny import Tiny

DAMAGED = "cut short or damaged"

Edit = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def whole(tiny_file: Callable[[Tiny], Path]) -> bytes:
    return tiny_file(Tiny(name="whole", n_layers=1)).read_bytes()


def refusal(path: Path | str) -> ModelFileError:
    with pytest.raises(ModelFileError) as refused:
        Model(ModelOptions(str(path)))
    return refused.value


def check(error: ModelFileError, name: str, said: str) -> None:
    """Check for one sentence that names the file, and a hint."""
    assert error.message.startswith(name)
    assert said in error.message
    assert error.message.endswith(".") and error.message.count(". ") == 0
    assert error.hint.endswith(".")


def test_a_missing_file(tmp_path: Path) -> None:
    error = refusal(tmp_path / "gone.gguf")
    check(error, "gone.gguf", "does not exist")
    assert str(tmp_path) in error.hint


def test_a_folder(tmp_path: Path) -> None:
    check(refusal(tmp_path), tmp_path.name, "is a folder")


@pytest.mark.skipif(os.name != "posix", reason="named pipes in folders are POSIX's")
@pytest.mark.timeout(30)
def test_a_named_pipe_is_no_model(tmp_path: Path, whole: bytes) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    check(refusal(tmp_path / "pipe.gguf"), "pipe.gguf", "is not a regular file")
    (tmp_path / "m-00001-of-00002.gguf").write_bytes(whole)
    os.mkfifo(tmp_path / "m-00002-of-00002.gguf")
    check(refusal(tmp_path / "m-00001-of-00002.gguf"), "m-00002-of-00002.gguf", "is not a regular file")


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty.gguf").touch()
    check(refusal(tmp_path / "empty.gguf"), "empty.gguf", "is empty")


def test_a_path_that_no_file_can_have(tmp_path: Path) -> None:
    check(refusal(f"{tmp_path}/zero\0byte.gguf"), "zero\0byte.gguf", "does not exist")
    check(refusal(f"{tmp_path}/{'x' * 300}.gguf"), "xxx", "cannot be read")


def test_a_file_inside_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check(refusal(tmp_path / "file" / "model.gguf"), "model.gguf", "cannot be read: Not a directory")


def test_an_alignment_that_cannot_be(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "head.gguf", "llama")
    writer.add_uint32("general.alignment", 3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    check(refusal(tmp_path / "head.gguf"), "head.gguf", "is damaged: its header cannot be read")


def test_a_context_length_that_cannot_be_is_as_none(tiny_file: Callable[[Tiny], Path]) -> None:
    with Engine(tiny_file(Tiny(name="boundless", n_ctx=2**32 - 1))) as engine:
        assert (engine.pair.target.n_ctx_train, engine.pair.target.n_ctx) == (0, DEFAULT_CTX)


@pytest.mark.parametrize(
    "content",
    [b"PK\x03\x04" + bytes(100), b"GGU", b"<!DOCTYPE html>", b"FUGG" + bytes(100), b"ggml" * 10],
    ids=repr,
)
def test_no_gguf(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.gguf"
    path.write_bytes(content)
    check(refusal(path), "other.gguf", "is not a GGUF file")


def test_cut_short_anywhere(tmp_path: Path, whole: bytes) -> None:
    """Inside the header, the metadata, the vocabulary, the tensor list, the weights."""
    tensors = whole.index(b"token_embd.weight")
    names = whole.index(b"tokenizer.ggml.tokens")
    lengths = [
        *range(4, 40),
        *range(40, names, 61),
        *range(names, tensors, 997),
        *range(tensors, tensors + 1200, 101),
        *range(tensors + 1200, len(whole), len(whole) // 7),
        len(whole) - 1,
    ]
    path = tmp_path / "cut.gguf"
    for length in lengths:
        path.write_bytes(whole[:length])
        check(refusal(path), "cut.gguf", DAMAGED)


def replaced(old: bytes, new: bytes) -> Edit:
    def edit(raw: bytes) -> bytes:
        assert len(old) == len(new) and old in raw
        return raw.replace(old, new)

    return edit


def number_behind(key: bytes, value: int) -> Edit:
    """Set the 32-bit metadata value of a key."""

    def edit(raw: bytes) -> bytes:
        at = raw.index(key) + len(key) + 4
        return raw[:at] + value.to_bytes(4, "little") + raw[at + 4 :]

    return edit


def patched(at: int, new: bytes) -> Edit:
    return lambda raw: raw[:at] + new + raw[at + len(new) :]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (patched(4, bytes([99])), "GGUF version 99, which this llama.cpp does not read"),
        (patched(4, bytes([1])), "GGUF version 1, which this llama.cpp does not read"),
        (patched(8, b"\xff" * 8), DAMAGED),
        (patched(16, b"\xff" * 8), DAMAGED),
        (patched(8, (10**6).to_bytes(8, "little")), DAMAGED),
        (replaced(b"blk.0.attn_q.weight", b"blk.0.attn_z.weight"), "tensor 'blk.0.attn_q.weight' not found"),
        (replaced(b"llama.context_length", b"llama.context_lengtx"), "llama.context_length"),
        (number_behind(b"llama.embedding_length", 65), "token_embd.weight"),
        (number_behind(b"llama.attention.head_count", 0), "cannot be loaded"),
        (number_behind(b"llama.block_count", 9), "cannot be loaded"),
        (replaced(b"tokenizer.ggml.model", b"tokenizer.ggml.mudel"), "no usable vocabulary"),
        (replaced(b"tokenizer.ggml.merges", b"tokenizer.ggml.mergas"), "no usable vocabulary"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_files(tmp_path: Path, whole: bytes, edit: Edit, said: str) -> None:
    path = tmp_path / "odd.gguf"
    path.write_bytes(edit(whole))
    check(refusal(path), "odd.gguf", said)


def test_an_unknown_architecture(tiny_file: Callable[[Tiny], Path]) -> None:
    path = tiny_file(Tiny(name="new", architecture="llama9000"))
    error = refusal(path)
    check(error, path.name, "has the architecture “llama9000”")
    assert "Update" in error.hint


def test_no_vocabulary(tiny_file: Callable[[Tiny], Path]) -> None:
    path = tiny_file(Tiny(name="mute", vocabulary=False))
    check(refusal(path), path.name, "has no vocabulary")


def test_no_text_generator(tiny_file: Callable[[Tiny], Path]) -> None:
    path = tiny_file(Tiny(name="llada", architecture="llada"))
    with pytest.raises(ModelFileError) as refused:
        Engine(path)
    check(refused.value, path.name, "does not write text token by token")


def test_a_name_that_is_no_unicode(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "t\udcffny.gguf"
    path.write_bytes(whole)
    model = Model(ModelOptions(str(path)))
    assert model.vocabulary.size > 0
    model.close()


def test_loading_can_be_given_up(pair_files: tuple[Path, Path]) -> None:
    fractions: list[float] = []

    def report(role: Role, name: str, fraction: float, beside: str) -> bool:
        fractions.append(fraction)
        return len(fractions) < 2

    with pytest.raises(ModelFileError):
        Engine(pair_files[0], on_progress=report)
    assert len(fractions) == 2


def test_progress_runs_from_nothing_to_all(pair_files: tuple[Path, Path]) -> None:
    seen: dict[str, list[float]] = {}

    def report(role: Role, name: str, fraction: float, beside: str) -> bool:
        seen.setdefault(name, []).append(fraction)
        return True

    Engine(*pair_files, on_progress=report).close()
    assert list(seen) == [path.name for path in pair_files]
    for fractions in seen.values():
        assert fractions == sorted(fractions)
        assert fractions[-1] == 1


def test_the_draft_is_read_beside_the_target(
    pair_files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    target, draft = (path.name for path in pair_files)
    told: set[tuple[str, str]] = set()
    read_by: dict[str, str] = {}

    class Watched(Model):
        def __init__(self, options: ModelOptions, on_progress: Callable[[float], bool]) -> None:
            read_by[Path(options.path).name] = threading.current_thread().name
            super().__init__(options, on_progress)

    def report(role: Role, name: str, fraction: float, beside: str) -> bool:
        told.add((name, beside))
        return True

    monkeypatch.setattr(pair, "Model", Watched)
    Engine(*pair_files, on_progress=report).close()
    assert told == {(target, draft), (draft, "")}
    assert read_by == {target: threading.current_thread().name, draft: f"reads {draft}"}


@pytest.mark.parametrize("role", Role)
def test_a_setting_that_is_refused_is_its_models(pair_files: tuple[Path, Path], role: Role) -> None:
    options = dict(zip(Role, (ModelOptions(str(path)) for path in pair_files), strict=True))
    options[role] = replace(options[role], ctx_size=-3)
    with pytest.raises(SettingError, match="ctx_size") as refused:
        Engine(options[Role.TARGET], options[Role.DRAFT])
    assert refused.value.role is role


@pytest.mark.parametrize("role", [0, 1], ids=["target", "draft"])
def test_each_file_read_beside_another_has_its_own_error(
    pair_files: tuple[Path, Path], tmp_path: Path, role: int
) -> None:
    """llama.cpp's log about one file is not attributed to the other, and the sound model is freed."""
    files = list(pair_files)
    files[role] = tmp_path / "cut.gguf"
    files[role].write_bytes(pair_files[role].read_bytes()[:-200])
    with pytest.raises(ModelFileError, match=r"cut\.gguf is cut short") as refused:
        Engine(files[0], files[1])
    assert refused.value.role is list(Role)[role]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("reads ")]


OTHER_DRAFTS = {
    "sizes": (Tiny(name="draft", padding=129), "259 tokens in the target's vocabulary, 388 in the draft's"),
    "letters": (
        Tiny(name="draft", letters="abcdefgh"),
        "259 tokens in the target's vocabulary, 11 in the draft's",
    ),
    "texts": (
        Tiny(name="draft", control=("<|end|>", "<|im_start|>", "<|other|>")),
        "token 258 is “<|im_end|>” in the target and “<|other|>” in the draft",
    ),
    "BOS": (Tiny(name="draft", adds_bos=True), "only the draft adds a BOS token"),
}


@pytest.mark.parametrize("kind", OTHER_DRAFTS)
def test_a_draft_of_another_vocabulary_serves_through_text(
    pair_files: tuple[Path, Path], tiny_file: Callable[[Tiny], Path], kind: str
) -> None:
    tiny, said = OTHER_DRAFTS[kind]
    with Engine(pair_files[0], tiny_file(tiny)) as engine:
        assert engine.pair.vocabulary == f"different: through text ({said})"
        drafted = answer(engine, strategy="draft-simple", max_tokens=30, ignore_eos=True)
        assert any(round.drafted for round in drafted.rounds)
        assert_same_answer(drafted, answer(engine, max_tokens=30, ignore_eos=True))


def test_a_draft_with_another_kind_of_tokenizer(
    pair_files: tuple[Path, Path], tiny_file: Callable[[Tiny], Path], tmp_path: Path
) -> None:
    raw = tiny_file(Tiny(name="draft")).read_bytes()
    key = b"tokenizer.ggml.model"
    at = raw.index(key) + len(key) + 4 + 8
    assert raw[at : at + 4] == b"gpt2"
    path = tmp_path / "wordpiece.gguf"
    path.write_bytes(raw[:at] + b"bert" + raw[at + 4 :])
    with Engine(pair_files[0], path) as engine:
        assert "BPE tokenizer in the target, WordPiece in the draft" in engine.pair.vocabulary
        drafted = answer(engine, strategy="draft-simple", max_tokens=30, ignore_eos=True)
        assert_same_answer(drafted, answer(engine, max_tokens=30, ignore_eos=True))


def test_a_draft_that_cannot_serve(
    engine: Engine, pair_files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = VocabularyFit(FitKind.CANNOT, "no token of the draft has a text")
    monkeypatch.setattr("app.engine.pair.check_vocabularies", lambda *_: fit)
    with pytest.raises(PairError) as refused:
        Engine(*pair_files, previous=engine)
    assert refused.value.message == "The draft cannot serve this target: no token of the draft has a text."
    assert refused.value.role is Role.DRAFT
    assert answer(engine, strategy="draft-simple", max_tokens=4, ignore_eos=True).token_ids


def test_a_padded_draft_fits(pair_files: tuple[Path, Path], tiny_file: Callable[[Tiny], Path]) -> None:
    with Engine(pair_files[0], tiny_file(Tiny(name="padded", n_ctx=1024, padding=100))) as engine:
        assert engine.pair.vocabulary == "same but padded: 259 and 359 tokens"
        drafted = answer(engine, strategy="draft-simple", max_tokens=30)
        assert_same_answer(drafted, answer(engine, max_tokens=30))


def test_settings_out_of_range(pair_files: tuple[Path, Path]) -> None:
    for options in (
        ModelOptions(str(pair_files[0]), ctx_size=-1),
        ModelOptions(str(pair_files[0]), cache_type_k="q9"),
        ModelOptions(str(pair_files[0]), flash_attn="maybe"),
        ModelOptions(str(pair_files[0]), batch_size=0),
    ):
        with pytest.raises(SettingError, match="cannot be"):
            Engine(options)


def test_what_a_file_is(engine: Engine, pair_files: tuple[Path, Path]) -> None:
    target = engine.pair.target
    assert target.file == pair_files[0].name
    assert (target.name, target.architecture) == ("target", "llama")
    assert target.quantisation == "all F32"
    assert target.size == pair_files[0].stat().st_size
    reader = gguf.GGUFReader(pair_files[0])
    assert target.n_params == sum(int(tensor.n_elements) for tensor in reader.tensors)
    assert (target.n_layers, target.n_vocab, target.n_ctx, target.n_ctx_train) == (2, 259, 1024, 1024)
    assert target.has_chat_template


def test_an_mtp_head_is_loaded_if_wanted_and_changes_no_answer(tiny_file: Callable[[Tiny], Path]) -> None:
    said, weights = [], []
    for mtp, wanted in ((False, True), (True, False), (True, True)):
        path = tiny_file(Tiny(name="q", architecture="qwen35", mtp=mtp))
        options = ModelOptions(str(path), mtp=wanted)
        weights.append(sum(usage.weights for usage in measure(options).memory))
        with Engine(options) as engine:
            said.append(answer(engine, "abcabc", strategy="suffix", max_tokens=30, ignore_eos=True).token_ids)
    assert len(said[0]) == 30 and said[0] == said[1] == said[2]
    assert weights[0] == weights[1] < weights[2]


def test_a_long_architecture_is_no_long_message(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "long.gguf", "x" * 5_000_000)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    error = refusal(tmp_path / "long.gguf")
    assert len(str(error)) < 400 and "has the architecture “xxx" in error.message


@pytest.mark.parametrize(
    ("said", "file", "shown"),
    [
        ("Qwen2.5 Coder 7B Instruct", "q.gguf", "Qwen2.5 Coder 7B Instruct"),
        ("Qwen3 4B Instruct 2507", "q.gguf", "Qwen3 4B Instruct 2507"),
        ("Smollm2 135M 8k Lc100K Mix1 Ep2", "SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct"),
        ("", "gemma-3-270m-Q4_K_M.gguf", "gemma-3-270m"),
        ("2fe192450127e6a83f7441aef6e3ca586c338b77", "Some-1B-UD-IQ2_XXS.gguf", "Some-1B"),
        ("Model", "mine.F16.gguf", "mine"),
        ("Mine checkpoint-500", "Q8_0.gguf", "Q8_0"),
        ("Deep 7B", "x.gguf", "Deep 7B"),
    ],
)
def test_a_name_that_tells_a_training_run_yields_to_the_files(said: str, file: str, shown: str) -> None:
    assert model_name({"general.name": said}.__getitem__, Path(file)) == shown
