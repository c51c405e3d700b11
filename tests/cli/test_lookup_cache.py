"""`draftscope lookup-cache`: static statistics in llama.cpp's format, counted and joined."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from app.cli import main
from app.engine.drafters.cache_file import read_cache
from app.engine.engine import Engine
from tests.answers import answer

VECTORS = Path(__file__).parents[1] / "vectors"
TEXT = "abcabcabd abc é"


@pytest.fixture
def target(pair_files: tuple[Path, Path]) -> str:
    return str(pair_files[0])


def made(tmp_path: Path, target: str, *words: str, output: str = "static.bin") -> dict[bytes, dict[int, int]]:
    path = tmp_path / output
    assert main(["lookup-cache", *words, "--target", target, "--output", str(path)]) == 0
    cache = read_cache(path, 10**6)
    return {key: dict(cache.get(key).items()) for key in cache}


def text(tmp_path: Path, name: str, words: str) -> str:
    (tmp_path / name).write_text(words, encoding="utf-8")
    return str(tmp_path / name)


def test_it_counts_what_follows_two_tokens_as_llama_lookup_create_does(
    tmp_path: Path, target: str, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = made(tmp_path, target, text(tmp_path, "one.txt", TEXT))
    tokens = engine.target.model.vocabulary.tokenize(TEXT, special=True, parse_special=False)
    expected: dict[bytes, dict[int, int]] = {}
    for at in range(2, len(tokens)):
        followers = expected.setdefault(tokens[at - 2 : at].astype("<i4").tobytes(), {})
        followers[int(tokens[at])] = followers.get(int(tokens[at]), 0) + 1
    assert counted == expected
    assert f"one.txt: {len(tokens)} tokens." in capsys.readouterr().err
    strategy = f"ngram-cache:lookup_cache_static={str(tmp_path / 'static.bin').replace('%', '%25')}"
    trace = answer(engine, "xyab", strategy=strategy, max_tokens=8, ignore_eos=True)
    assert trace.rounds[0].drafted[0].piece == b"c", "three of four times"


def test_texts_are_counted_apart_and_caches_joined(tmp_path: Path, target: str) -> None:
    first, second = text(tmp_path, "one.txt", TEXT), text(tmp_path, "two.txt", "abcd")
    both = made(tmp_path, target, first, second)
    apart = [made(tmp_path, target, file, output=f"{at}.bin") for at, file in enumerate((first, second))]
    expected: dict[bytes, dict[int, int]] = {}
    for counts in apart:
        for key, followers in counts.items():
            known = expected.setdefault(key, {})
            for token, count in followers.items():
                known[token] = known.get(token, 0) + count
    assert both == expected
    merged = [f"--merge={tmp_path / name}" for name in ("0.bin", "1.bin")]
    assert made(tmp_path, target, *merged, output="merged.bin") == expected


def test_a_file_of_llama_cpp_comes_out_as_it_went_in(tmp_path: Path, target: str) -> None:
    original = tmp_path / "original.bin"
    original.write_bytes(gzip.decompress((VECTORS / "static_60.bin.gz").read_bytes()))
    made(tmp_path, target, f"--merge={original}")
    assert (tmp_path / "static.bin").read_bytes() == original.read_bytes()


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        ([], "there is nothing to count", 2),
        (["missing.txt"], "missing.txt cannot be read", 1),
        (["picture.txt"], "picture.txt is not UTF-8 text", 1),
        (["--merge=picture.txt"], "picture.txt is damaged or not a lookup cache", 2),
    ],
)
def test_what_is_wrong_is_one_line(
    words: list[str],
    said: str,
    code: int,
    tmp_path: Path,
    target: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("picture.txt").write_bytes(b"\x89PNG\r\n")
    assert main(["lookup-cache", *words, "--target", target, "--output", "out.bin"]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert not Path("out.bin").exists()


def test_a_link_stays_and_what_cannot_be_written_is_told_first(
    tmp_path: Path, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = text(tmp_path, "one.txt", TEXT)
    (tmp_path / "link.bin").symlink_to("real.bin")
    made(tmp_path, target, words, output="link.bin")
    assert (tmp_path / "link.bin").is_symlink() and (tmp_path / "real.bin").is_file()
    capsys.readouterr()
    assert main(["lookup-cache", words, "--target", target, "--output", str(tmp_path / "no" / "x.bin")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "x.bin cannot be written" in line
