"""`draftscope search`, `pull` and `models`, against the local Hub."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from huggingface_hub import constants

from app.cli import main
from tests.commands import Command, Ended
from tests.files.tiny import Tiny
from tests.hub.server import SECRET, TOKEN, FakeHub, FakeRepo, Fault

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(server: FakeHub, home: Path, tmp_path: Path) -> Start:
    """Starts the real command with a home of its own; HF_ENDPOINT points it to the local Hub."""
    own = {
        "HF_ENDPOINT": server.address,
        "HF_HOME": str(home),
        "DRAFTSCOPE_HOME": str(tmp_path / "draftscope"),
        "NO_PROXY": "127.0.0.1",
    }

    def run(*words: object, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "app", *map(str, words)],
            cwd=ROOT,
            env=os.environ | own | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    return run


@pytest.fixture
def command(
    engines_here: None,
    server: FakeHub,
    home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Command:
    """Runs a command in this process, with the home of `start`; its output holds no secret."""
    monkeypatch.setenv("DRAFTSCOPE_HOME", str(tmp_path / "draftscope"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))

    def run(*words: object, **more: str) -> Ended:
        with monkeypatch.context() as patch:
            patch.setattr(constants, "ENDPOINT", more.pop("HF_ENDPOINT", server.address))
            patch.setattr(constants, "HF_HUB_OFFLINE", more.pop("HF_HUB_OFFLINE", "") == "1")
            for name, value in more.items():
                patch.setenv(name, value)
            code = main(list(map(str, words)))
        out, err = capsys.readouterr()
        assert TOKEN not in out + err and SECRET not in out + err
        assert "Traceback" not in err
        return Ended(code, out, err)

    return run


@pytest.fixture
def repos(server: FakeHub, tiny_file: Callable[[Tiny], Path]) -> dict[str, bytes]:
    """A target and a draft that are real models."""
    target = tiny_file(Tiny(name="target", n_ctx=1024)).read_bytes()
    draft = tiny_file(Tiny(name="draft", n_ctx=1024, noise=0.15, noise_seed=7)).read_bytes()
    server.repos["owner/Target-GGUF"] = FakeRepo({"Target-Q8_0.gguf": target, "README.md": b""}, downloads=50)
    server.repos["owner/Draft-GGUF"] = FakeRepo({"Draft-Q8_0.gguf": draft})
    return {"target": target, "draft": draft}


# ---------------------------------------------------------------------------------------- search


@pytest.mark.usefixtures("repos")
def test_search_lists_repositories(command: Command) -> None:
    ended = command("search", "gguf")
    assert ended.code == 0
    head, first, second = ended.out.splitlines()
    assert head.split() == ["REPOSITORY", "PARAMETERS", "ARCHITECTURE", "LICENCE", "DOWNLOADS"]
    assert first.split() == ["owner/Target-GGUF", "1.7B", "llama", "apache-2.0", "50"]
    assert second.startswith("owner/Draft-GGUF")


@pytest.mark.usefixtures("repos")
def test_search_of_one_repository_lists_its_quantisations(command: Command, server: FakeHub) -> None:
    files = server.repos["owner/Target-GGUF"].files
    files |= {f"Target-F16-0000{i}-of-00002.gguf": files["Target-Q8_0.gguf"] for i in (1, 2)}
    ended = command("search", "https://huggingface.co/owner/Target-GGUF")
    assert ended.code == 0
    head, first, second = ended.out.splitlines()
    assert head.split() == ["QUANTISATION", "SIZE", "FIT", "FILE"]
    assert first.startswith("Q8_0") and "fits in memory, needs about" in first
    assert "2 parts, Target-F16-00001-of-00002.gguf" in second
    assert "licence apache-2.0" in ended.err and "Free now:" in ended.err


def test_a_head_is_named_before_a_download(command: Command, server: FakeHub) -> None:
    repo = "owner/Qwen3.6-27B-MTP-GGUF"
    server.repos[repo] = FakeRepo({"Some-Q8_0.gguf": b"GGUF"}, architecture="qwen35")
    for words in (("search", repo), ("pull", repo, "q8_0")):
        assert "draft-mtp drafts with it" in command(*words).err


def test_a_target_of_the_catalogue_that_has_no_draft_says_so(command: Command, server: FakeHub) -> None:
    server.repos["ggml-org/gpt-oss-20b-GGUF"] = FakeRepo({"gpt-oss-20b-mxfp4.gguf": b"GGUF"})
    ended = command("pull", "gpt-oss-20b")
    assert ended.code == 0 and "EAGLE-3 drafts exist" in ended.err


@pytest.mark.usefixtures("repos")
def test_search_that_finds_nothing(command: Command) -> None:
    ended = command("search", "nothing", "has", "this")
    assert (ended.code, ended.out) == (0, "")
    assert "nothing has this" in ended.err


# ------------------------------------------------------------------------------------------ pull


def test_a_pair_that_was_pulled_chats(command: Command, repos: dict[str, bytes], home: Path) -> None:
    target = command("pull", "owner/Target-GGUF", "Target-Q8_0.gguf")
    draft = command("pull", "owner/Draft-GGUF", "q8_0")
    assert (target.code, draft.code) == (0, 0)
    paths = [Path(ended.out.strip()) for ended in (target, draft)]
    assert [path.read_bytes() for path in paths] == [repos["target"], repos["draft"]]
    assert all(path.is_relative_to(home / "hub") for path in paths)
    answer = command(
        "run", "--target", paths[0], "--draft", paths[1], "--strategy", "draft-simple:n_max=4",
        "--prompt", "Hello", "--chat", "--max-tokens", 30, "--ignore-eos",
    )  # fmt: skip
    assert answer.code == 0 and len(answer.out) > 10
    assert "draft acceptance" in answer.err


def test_a_pair_of_the_catalogue_comes_with_one_word(command: Command, server: FakeHub) -> None:
    server.repos["unsloth/Qwen3-1.7B-GGUF"] = FakeRepo({"Qwen3-1.7B-Q4_K_M.gguf": b"GGUF target"})
    server.repos["unsloth/Qwen3-0.6B-GGUF"] = FakeRepo({"Qwen3-0.6B-Q4_K_M.gguf": b"GGUF draft"})
    ended = command("pull", "qwen3-1.7b")
    assert ended.code == 0
    contents = [Path(line).read_bytes() for line in ended.out.splitlines()]
    assert contents == [b"GGUF target", b"GGUF draft"]

    server.asked.clear()
    offline = command("pull", "qwen3-1.7b", HF_HUB_OFFLINE="1")
    assert (offline.code, offline.out) == (0, ended.out)
    assert "Offline mode is on; all files are already here." in offline.err
    Path(ended.out.splitlines()[1]).unlink()
    offline = command("pull", "qwen3-1.7b", HF_HUB_OFFLINE="1")
    assert (offline.code, offline.out) == (1, "")
    assert "Offline mode is on, and Qwen3-0.6B-Q4_K_M.gguf is not on this machine." in offline.err
    assert server.asked == []


@pytest.mark.real
def test_a_model_that_came_with_draftscope_is_not_pulled(
    command: Command, server: FakeHub, real_file: Path
) -> None:
    server.repos["second-state/SmolLM2-1.7B-Instruct-GGUF"] = FakeRepo(
        {"SmolLM2-1.7B-Instruct-Q4_K_M.gguf": b"GGUF target"}
    )
    ended = command("pull", "smollm2-1.7b")
    target, draft = map(Path, ended.out.splitlines())
    assert ended.code == 0 and (target.read_bytes(), draft) == (b"GGUF target", real_file)
    assert f"{real_file.name} came with Draftscope and is not downloaded." in ended.err
    assert command("pull", "smollm2-1.7b", HF_HUB_OFFLINE="1").out == ended.out
    asked = len(server.asked)
    assert command("pull", "smollm2-135m").out == f"{real_file}\n" and len(server.asked) == asked


@pytest.mark.usefixtures("repos")
def test_what_is_here_is_not_fetched_again(command: Command, server: FakeHub) -> None:
    first = command("pull", "owner/Draft-GGUF", "Draft-Q8_0.gguf")
    server.asked.clear()
    again = command("pull", "https://huggingface.co/owner/Draft-GGUF/blob/main/Draft-Q8_0.gguf")
    assert again.out == first.out
    assert server.requests("cdn") == []

    server.asked.clear()
    offline = command("pull", "owner/Draft-GGUF", "Draft-Q8_0.gguf", HF_HUB_OFFLINE="1")
    assert (offline.code, offline.out) == (0, first.out)
    assert "Offline" in offline.err
    by_name = command("pull", "owner/Draft-GGUF", "q8_0", HF_HUB_OFFLINE="1")
    assert (by_name.code, by_name.out) == (0, first.out)
    assert server.asked == []


@pytest.mark.usefixtures("repos")
def test_trouble_that_passes_is_told_once(command: Command, server: FakeHub) -> None:
    server.faults["cdn"].extend([Fault(cut=10_000), Fault(status=429, headers=(("Retry-After", "1"),))])
    ended = command("pull", "owner/Draft-GGUF", "Draft-Q8_0.gguf")
    assert ended.code == 0
    assert "The connection was cut. Trying again in 1 s." in ended.err
    assert "slow down (429)" in ended.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["owner/Target-GGUF"], 2, "Which file of owner/Target-GGUF?"),
        (["no-pair"], 2, "neither a repository nor a pair"),
        ([], 2, "REPO"),
        (["owner/Target-GGUF", "Q2_K"], 1, "It has Target-Q8_0.gguf."),
        (["owner/none", "Q2_K"], 1, "no repository owner/none"),
        (["qwen3-1.7b"], 1, "no repository unsloth/Qwen3-1.7B-GGUF"),
    ],
)
@pytest.mark.usefixtures("repos")
def test_what_cannot_be_pulled_is_one_line(command: Command, words: list[str], code: int, said: str) -> None:
    ended = command("pull", *words)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err and ended.err.count("\n") == 1


@pytest.mark.usefixtures("repos")
def test_a_gated_repository_wants_a_token(command: Command, server: FakeHub) -> None:
    server.repos["owner/Draft-GGUF"].gated = True
    without = command("pull", "owner/Draft-GGUF", "Q8_0")
    assert without.code == 1
    assert "gated" in without.err and "HF_TOKEN" in without.err
    assert command("pull", "owner/Draft-GGUF", "Q8_0", HF_TOKEN=TOKEN).code == 0


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_ctrl_c_keeps_what_came(
    start: Start, command: Command, repos: dict[str, bytes], server: FakeHub, home: Path
) -> None:
    server.always["cdn"] = Fault(pace=0.05)
    process = start("pull", "owner/Target-GGUF", "Q8_0")
    until = time.monotonic() + PATIENCE
    while not any(file.stat().st_size > 20_000 for file in home.rglob("*.incomplete")):
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, "")
    assert "the same command resumes" in err and "Traceback" not in err
    server.always.clear()
    ended = command("pull", "owner/Target-GGUF", "Q8_0")
    assert Path(ended.out.strip()).read_bytes() == repos["target"]
    assert "range" in server.requests("cdn")[-1].headers


# --------------------------------------------------------------------------- names of the Hub as a pair


RUN = ("--strategy", "draft-simple:n_max=4", "--prompt", "Hello", "--max-tokens", 20, "--ignore-eos")


@pytest.mark.parametrize(
    ("target", "draft"),
    [
        (("--target", "owner/Target-GGUF"), ("--draft", "owner/Draft-GGUF:q8_0")),
        pytest.param(
            ("-hf", "owner/Target-GGUF/Target-Q8_0.gguf"),
            ("-hfd", "owner/Draft-GGUF"),
            marks=pytest.mark.verify,
        ),
    ],
)
def test_a_run_fetches_what_it_names_on_the_hub(
    command: Command,
    server: FakeHub,
    repos: dict[str, bytes],
    tmp_path: Path,
    target: tuple[str, str],
    draft: tuple[str, str],
) -> None:
    numbers = tmp_path / "run.json"
    first = command("run", *target, *draft, *RUN, "--json", numbers)
    assert first.code == 0 and "draft acceptance" in first.err
    assert "Downloading Target-Q8_0.gguf of owner/Target-GGUF" in first.err
    assert "Downloading Draft-Q8_0.gguf of owner/Draft-GGUF" in first.err
    assert re.search(r" %, .* of \d+ kB", first.err)
    assert json.loads(numbers.read_bytes())["drafted"] > 0

    server.asked.clear()
    again = command("run", *target, *draft, *RUN)
    assert (again.code, again.out) == (0, first.out)
    assert "Downloading" not in again.err and server.requests("cdn") == []
    assert " %, " not in again.err, "nothing is on its way"

    server.asked.clear()
    offline = command("run", *target, *draft, *RUN, HF_HUB_OFFLINE="1")
    assert (offline.code, offline.out) == (0, first.out)
    assert server.asked == []
    unreachable = command("run", *target, *draft, *RUN, HF_ENDPOINT="http://127.0.0.1:9")
    assert (unreachable.code, unreachable.out) == (0, first.out)
    assert "Using Target-Q8_0.gguf, which is here." in unreachable.err


@pytest.mark.usefixtures("repos")
def test_bench_and_devices_fetch_what_they_name(command: Command, server: FakeHub, tmp_path: Path) -> None:
    numbers = tmp_path / "bench.json"
    words = ("-hf", "owner/Target-GGUF:Q8_0", "-hfd", "owner/Draft-GGUF", "--prompt", "Hello")
    bench = command(
        "bench", *words, "--strategy", "draft-simple", "--max-tokens", 8, "--repeat", 1, "--json", numbers
    )
    assert bench.code == 0
    report = json.loads(numbers.read_bytes())
    assert [pair["target"]["file"] for pair in report["pairs"]] == ["Target-Q8_0.gguf"]
    commands = [lane["command"] for lane in report["lanes"]]
    assert any("--hf-repo-draft owner/Draft-GGUF:Q8_0" in line for line in commands)
    assert str(tmp_path) not in "".join(commands)

    server.asked.clear()
    devices = command("devices", "-m", "owner/Target-GGUF", "-ngl", 0, "-c", 512)
    assert devices.code == 0 and "its context is 512 tokens" in devices.out
    assert server.requests("cdn") == []


@pytest.mark.usefixtures("repos")
def test_a_lanes_file_names_models_of_the_hub_too(command: Command, tmp_path: Path) -> None:
    lanes, numbers = tmp_path / "lanes.json", tmp_path / "bench.json"
    drafted = {"strategy": "draft-simple", "draft": {"path": "owner/Draft-GGUF:Q8_0", "threads": 1}}
    lanes.write_text(json.dumps([drafted, {"strategy": "suffix", "target": "owner/Target-GGUF"}]))
    words = ("-hf", "owner/Target-GGUF:Q8_0", "--prompt", "Hello", "--max-tokens", 8, "--repeat", 1)
    bench = command("bench", *words, "--lanes", lanes, "--json", numbers)
    assert bench.code == 0, bench.err
    assert "Downloading Draft-Q8_0.gguf of owner/Draft-GGUF" in bench.err
    report = json.loads(numbers.read_bytes())
    assert any(pair["draft"] and pair["draft"]["file"] == "Draft-Q8_0.gguf" for pair in report["pairs"])


def test_a_wrong_strategy_is_told_before_anything_is_fetched(command: Command, server: FakeHub) -> None:
    for words in (["run"], ["bench", "--repeat", 1], ["tune"], ["sweep", "--x", "n_max=1", "--y", "n_min=0"]):
        ended = command(*words, "-hf", "owner/Target-GGUF", "--prompt", "Hello", "--strategy", "magic")
        assert ended.code == 2 and "magic" in ended.err
    assert server.asked == []


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("owner/none", {}, "There is no file owner/none either."),
        ("owner/Target-GGUF:Q2_K", {}, "owner/Target-GGUF has no Q2_K. It has Target-Q8_0.gguf."),
        (
            "owner/Target-GGUF",
            {"HF_HUB_OFFLINE": "1"},
            "Offline mode is on, and owner/Target-GGUF is not on this machine.",
        ),
        ("folder/gone.gguf", {}, "gone.gguf does not exist."),
    ],
)
@pytest.mark.usefixtures("repos")
def test_what_the_hub_does_not_have_is_one_line(
    command: Command, name: str, more: dict[str, str], said: str
) -> None:
    ended = command("run", "--target", name, "--prompt", "Hello", **more)
    assert (ended.code, ended.out) == (1, "")
    assert said in ended.err and ended.err.count("\n") == 1


# ---------------------------------------------------------------------------------------- models


def listed_lines(ended: Ended) -> list[str]:
    """The lines of a list, without the model that set-up may have brought."""
    return [line for line in ended.out.splitlines() if "SmolLM2" not in line]


def test_models_lists_the_bundled_pair_and_what_was_pulled(
    command: Command, repos: dict[str, bytes], tmp_path: Path
) -> None:
    pulled = Path(command("pull", "owner/Draft-GGUF", "Q8_0").out.strip())
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "own.gguf").write_bytes(repos["target"])
    (mine / "bad.gguf").write_bytes(b"GGUF")
    ended = command("models", "--add", mine)
    assert ended.code == 0
    head, *rows = listed_lines(ended)
    assert head.split()[:5] == ["NAME", "ARCHITECTURE", "PARAMETERS", "QUANTISATION", "CONTEXT"]
    assert len(rows) == 5
    (row,) = [row for row in rows if row.endswith(str(pulled))]
    assert row.split()[:2] == ["draft", "llama"]
    assert "bad.gguf cannot be used" in ended.err

    listed = json.loads(command("models", "--json").out)
    of_hub = next(model for model in listed if model["path"] == str(pulled))
    assert (of_hub["repository"], of_hub["from"], of_hub["files"]) == (
        "owner/Draft-GGUF",
        "Hub",
        [str(pulled)],
    )
    assert of_hub["quantisation"] != "Q8_0"  # which only its name says
    assert next(model for model in listed if model["path"].endswith("bad.gguf"))["problem"]
    judged = json.loads(command("models", "--json", "--drafts-for", mine / "own.gguf").out)
    assert [draft["verdict"] for draft in judged][-1] == "cannot" and judged[-1]["because"]

    bundled = command("models", "--drafts-for", "bundled:demo_pair/target.gguf")
    assert bundled.code == 0 and "draft.gguf" in bundled.out
    drafts = command("models", "--drafts-for", mine / "own.gguf")
    assert drafts.code == 0
    lines = listed_lines(drafts)
    assert len(lines) == 5
    assert "cannot, because bad.gguf" in lines[-1]
    assert any("Draft-Q8_0.gguf" in line and "works, because" in line for line in lines)

    assert "freed" in command("models", "--delete", mine / "own.gguf").err
    assert not (mine / "own.gguf").exists()
    assert len(listed_lines(command("models", "--remove", mine))) == 4
    assert (mine / "bad.gguf").exists()


def test_models_use_no_network(command: Command, server: FakeHub) -> None:
    assert command("models").code == 0
    assert server.asked == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--drafts-for", "gone.gguf"], "gone.gguf does not exist"),
        (["--add", "gone"], "does not exist"),
        (["--remove", "gone"], "was not added"),
        (["--delete", "gone.gguf"], "is not a model of the library"),
    ],
)
def test_what_models_cannot_do_is_one_line(command: Command, words: list[str], said: str) -> None:
    ended = command("models", *words)
    assert (ended.code, ended.out) == (1, "")
    assert said in ended.err and ended.err.count("\n") == 1


def test_what_comes_along_is_not_deleted(command: Command) -> None:
    demo = ROOT / "resources" / "demo_pair" / "draft.gguf"
    ended = command("models", "--delete", demo)
    assert ended.code == 1 and "part of Draftscope" in ended.err
    assert demo.exists()


# --------------------------------------------------------------------------------------- offline


@pytest.mark.parametrize(
    ("by", "words", "said"),
    [
        ("variable", ["search", "llama"], ": the network is not used."),
        ("settings", ["search", "owner/Target-GGUF"], ": the network is not used."),
        (
            "variable",
            ["pull", "qwen3-1.7b"],
            ", and Qwen3-1.7B-Q4_K_M.gguf and Qwen3-0.6B-Q4_K_M.gguf are not on this machine.",
        ),
        (
            "settings",
            ["pull", "owner/Target-GGUF", "Q8_0"],
            ", and Q8_0 of owner/Target-GGUF is not on this machine.",
        ),
    ],
)
@pytest.mark.usefixtures("repos")
def test_offline_is_said_and_nothing_is_asked(
    command: Command, server: FakeHub, tmp_path: Path, words: list[str], by: str, said: str
) -> None:
    more = {"HF_HUB_OFFLINE": "1"} if by == "variable" else {}
    if by == "settings":
        config = tmp_path / "draftscope" / "config"
        config.mkdir(parents=True)
        (config / "settings.json").write_text('{"offline": true, "text_scale": "broken"}')
    ended = command(*words, **more)
    assert (ended.code, ended.out) == (1, "")
    assert f"Offline mode is on{said}" in ended.err
    assert server.asked == []
