"""Plug-in drafters: how they are found, what is refused, and the two bundled examples."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from app.engine import plugins
from app.engine.drafters.base import Drafter, Proposal, StrategyKind
from app.engine.drafters.foreign import ForeignKind
from app.engine.drafters.registry import KINDS
from app.engine.engine import Engine
from app.engine.errors import DrafterError, SettingError
from app.engine.params import param
from app.engine.plugins import register, unregister, use_drafters
from app.engine.process.host import make_home
from app.engine.process.messages import Failed, Generate, Loaded, RoundFinished
from app.engine.record.llama_cpp_lines import llama_cpp_lines
from app.engine.record.stats import Statistics
from app.engine.strategy import StrategySpec
from app.engine.types import GenerationRequest, Sampling
from tests.answers import answer
from tests.engine.process.test_home import Talk
from tests.equality import RULES, Baselines
from tests.files.drafter_files import ECHO, PATTERN, PHRASE_TRIE, write_drafter

pytestmark = pytest.mark.usefixtures("known_strategies")

BUILT_IN = tuple(KINDS)


@dataclass(frozen=True, slots=True)
class Params:
    n_max: int = param(4, "Draft at most this many tokens.", low=1, high=64)


class Nothing(Drafter):
    def __init__(self, params: Params, resources: Any) -> None:
        self.params = params

    @override
    def propose(self, context: Any, k: int) -> Proposal:
        return Proposal()


KIND = StrategyKind("mine", Params, "For a test.", make=Nothing)


def outside() -> list[str]:
    return [name for name in KINDS if name not in BUILT_IN]


def use(*files: Path) -> None:
    assert use_drafters([str(file) for file in files]) == {}


def refusal(*files: Path) -> str:
    """The reason why the last of these files cannot be used; all others can."""
    problems = use_drafters([str(file) for file in files])
    assert list(problems) == [str(files[-1])]
    return problems[str(files[-1])].message


# ------------------------------------------------------------------------------------ registering


@pytest.mark.parametrize("name", ["app", "draftscope"])
def test_a_file_may_call_the_package_by_either_name(tmp_path: Path, name: str) -> None:
    file = write_drafter(tmp_path)
    text = file.read_text(encoding="utf-8").replace("from app.", f"from {name}.")
    file.write_text(f"import {name}.engine.plugins as whole\n{text}", encoding="utf-8")
    use(file)
    assert outside() == ["echo"]
    assert KINDS["echo"].params.__module__ in sys.modules


def test_what_is_registered_is_a_strategy_like_any_other(engine: Engine) -> None:
    register(KIND)
    spec = StrategySpec.parse("mine:n_max=7+draft-simple:n_max=2")
    assert str(spec) == "mine:n_max=7+draft-simple:n_max=2"
    with pytest.raises(SettingError, match="n_max cannot be 65"):
        StrategySpec.parse("mine:n_max=65")
    assert answer(engine, strategy="mine", max_tokens=4).header.strategy == "mine"
    unregister("mine")
    with pytest.raises(SettingError, match="no strategy “mine”"):
        StrategySpec.parse("mine")


def test_built_in_strategies_stay() -> None:
    unregister("prompt-lookup")
    assert "prompt-lookup" in KINDS


@dataclass(frozen=True, slots=True)
class NoDefault:
    n_max: int = field(metadata={"doc": "x"})


@dataclass(frozen=True, slots=True)
class Outside:
    n_max: int = param(99, "Out of its own range.", low=1, high=64)


@dataclass(frozen=True, slots=True)
class Listed:
    names: list = field(default_factory=list, metadata={"doc": "No kind that can be written."})


@dataclass(frozen=True, slots=True)
class Verifying:
    verify: bool = param(True, "Taken.")


@dataclass(frozen=True, slots=True)
class Wordy:
    n_max: str = param("many", "No number.")


@dataclass(frozen=True, slots=True)
class Measured:
    n_max: int = param(4, "Draft at most this many tokens.", low=1, high=64)
    shortest: str = param("few", "No number.")


@dataclass(frozen=True, slots=True)
class Superstitious:
    n_max: int = param(4, "Any number but one.", low=1, high=64)

    def __post_init__(self) -> None:
        if self.n_max == 13:
            raise ValueError("unlucky")


class Unfinished(Drafter):
    """Has no propose."""


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ({"name": "mine"}, "its STRATEGY is of type dict and not StrategyKind"),
        (replace(KIND, name="Mine!"), "'Mine!' is not a valid name"),
        (replace(KIND, name="a--b"), "'a--b' is not a valid"),
        (replace(KIND, name="x" * 41), "at most 40"),
        (replace(KIND, name=7), "7 is not a valid"),  # type: ignore[arg-type]
        (replace(KIND, name="none"), "the name “none” is taken (Draftscope)"),
        (replace(KIND, name="draft-simple"), "the name “draft-simple” is taken (Draftscope)"),
        (replace(KIND, summary=" "), "mine has no summary"),
        (replace(KIND, make=7), "make of mine cannot be called"),  # type: ignore[arg-type]
        (replace(KIND, make=dict), "dict is not derived from Drafter"),  # type: ignore[arg-type]
        (replace(KIND, make=Unfinished), "Unfinished has no propose"),  # type: ignore[arg-type]
        (replace(KIND, params=dict), "its params are not a dataclass"),
        (replace(KIND, params=NoDefault), "its params cannot be made: TypeError"),
        (replace(KIND, params=Outside), "its params cannot be made: SettingError: n_max cannot be 99."),
        (replace(KIND, params=Listed), "its params cannot be made"),
        (replace(KIND, params=Verifying), "a parameter cannot be called verify"),
        (replace(KIND, params=Wordy), "the parameter n_max is a number of tokens"),
        (replace(KIND, params=Measured, least="shortest"), "the parameter shortest is a number of tokens"),
        (replace(KIND, needs_draft=True), "mine asks for the draft model"),
    ],
)
def test_what_is_no_strategy_is_refused_in_one_sentence(kind: Any, words: str) -> None:
    with pytest.raises(DrafterError) as refused:
        register(kind, "/somewhere/mine.py")
    assert refused.value.message.startswith("mine.py cannot be used: ")
    assert words in refused.value.message
    assert outside() == []


def test_what_params_raise_is_told_where_the_setting_was_made() -> None:
    register(replace(KIND, params=Superstitious))
    spec = StrategySpec.parse("mine:n_max=12")
    assert str(spec) == "mine:n_max=12"
    assert spec == StrategySpec.parse(str(spec))
    with pytest.raises(SettingError, match=r"ValueError: unlucky \(test_plugins\.py, line"):
        StrategySpec.parse("mine:n_max=13")
    with pytest.raises(SettingError, match="unlucky"):
        replace(spec.parts[0].params, n_max=13)


# ------------------------------------------------------------------------------------ files


def test_a_file_registers_under_its_own_name_until_it_is_removed(tmp_path: Path) -> None:
    echo, other = write_drafter(tmp_path), write_drafter(tmp_path, name="other", file="second file.py")
    use(echo, other, echo)
    assert outside() == ["echo", "other"]
    assert isinstance(KINDS["echo"], ForeignKind)
    assert list(tmp_path.iterdir()) == [echo, other] or len(list(tmp_path.iterdir())) == 2, "no bytecode"
    kept = KINDS["other"]
    use(other)
    assert outside() == ["other"]
    assert KINDS["other"] is kept, "and was not read again"
    register(KIND)
    use()
    assert outside() == ["mine"], "what a script registered is the script's"


def test_a_changed_file_is_read_again_and_drafts_by_what_it_says_now(engine: Engine, tmp_path: Path) -> None:
    file = write_drafter(tmp_path)
    use(file)
    settings = {"strategy": "echo", "max_tokens": 6, "ignore_eos": True}
    assert answer(engine, **settings).rounds[0].draft_end == "n_max"  # type: ignore[arg-type]
    write_drafter(tmp_path, ECHO.replace("n_max", "changed").replace("params.changed", "params.n_max"))
    os.utime(file, ns=(1, 1))
    use(file)
    assert answer(engine, **settings).rounds[0].draft_end == "changed"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1\ny = = 2\n", "bad.py cannot be used: SyntaxError: invalid syntax (bad.py, line 2)."),
        ("x = 1\n\nimport nowhere\n", "ModuleNotFoundError: No module named 'nowhere' (bad.py, line 3)."),
        ("def f():\n    return {}['k']\nf()\n", "bad.py cannot be used: KeyError: 'k' (bad.py, line 2)."),
        ("raise SystemExit(3)\n", "bad.py cannot be used: SystemExit: 3 (bad.py, line 1)."),
        ("x = 1\n", "bad.py cannot be used: it has no STRATEGY."),
        ("STRATEGY = 5\n", "bad.py cannot be used: its STRATEGY is of type int and not StrategyKind."),
        ("GGUF\0\0", "bad.py cannot be used: "),
        ("x" * 1_000_001, "bad.py cannot be used: it is not a Python file."),
    ],
)
def test_a_file_that_cannot_be_used_costs_itself_only(tmp_path: Path, source: str, words: str) -> None:
    good, bad = write_drafter(tmp_path), tmp_path / "bad.py"
    bad.write_text(source)
    modules = set(sys.modules)
    said = refusal(good, bad)
    assert words in said
    assert "\n" not in said
    assert outside() == ["echo"]
    assert len(set(sys.modules) - modules) <= 2
    bad.write_text(write_drafter(tmp_path, name="mended", file="m.py").read_text())
    use(good, bad)
    assert outside() == ["echo", "mended"]


def test_a_file_that_is_gone_or_no_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "gone.py") == "gone.py cannot be read: no such file or directory."
    assert refusal(tmp_path).endswith("it is not a Python file.")
    file = write_drafter(tmp_path)
    use(file)
    file.unlink()
    refusal(file)
    assert outside() == [], "and what it brought is gone with it"


def test_of_two_files_with_one_name_the_second_is_refused(tmp_path: Path) -> None:
    first, second = write_drafter(tmp_path), write_drafter(tmp_path, file="again.py")
    said = refusal(first, second)
    assert said == "again.py cannot be used: the name “echo” is taken (echo.py)."


# ------------------------------------------------------------------------------------ entry points


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Install a package whose module `installed_drafter` has this source."""

    def install(source: str) -> None:
        (tmp_path / "installed_drafter.py").write_text(source, encoding="utf-8")
        info = tmp_path / "installed_drafter-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-drafter\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            "[draftscope.drafters]\nanything = installed_drafter:STRATEGY\n"
        )
        plugins.installed_points.cache_clear()
        monkeypatch.syspath_prepend(tmp_path)

    yield install
    plugins.installed_points.cache_clear()
    sys.modules.pop("installed_drafter", None)


def test_an_installed_package_brings_its_drafter(package: Callable[[str], None], tmp_path: Path) -> None:
    package(write_drafter(tmp_path, name="installed").read_text())
    for _ in range(2):
        use()
        assert outside() == ["installed"]
    assert refusal(write_drafter(tmp_path, name="installed")) == (
        "echo.py cannot be used: the name “installed” is taken (Entry point anything)."
    )


def test_a_package_that_cannot_be_used_costs_itself_only(
    package: Callable[[str], None], tmp_path: Path
) -> None:
    package("import nowhere\n")
    problems = use_drafters([str(write_drafter(tmp_path))])
    assert outside() == ["echo"]
    assert [problem.message for problem in problems.values()] == [
        "Entry point anything cannot be used: ModuleNotFoundError: No module named 'nowhere' "
        "(installed_drafter.py, line 1)."
    ]


# ------------------------------------------------------------------------------------ in the engine's home


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_the_engine_learns_the_files_with_the_request(
    pair_files: tuple[Path, Path], tmp_path: Path, kind: str
) -> None:
    file, bad = write_drafter(tmp_path), tmp_path / "bad.py"
    bad.write_text("x = 1\nimport nowhere\n")
    home = make_home(kind)
    try:
        talk = Talk(home)
        assert isinstance(talk.load(pair_files[0])[-1], Loaded)

        def ask(strategy: str, *files: Path) -> list[Any]:
            request = GenerationRequest(prompt="aaaa", strategy=strategy, max_tokens=8, ignore_eos=True)
            names = tuple(map(str, files))
            return talk.until_over(talk.send(lambda run: Generate(run, request, names)))

        events = ask("echo:n_max=2", bad, file)
        rounds = [event.round for event in events if isinstance(event, RoundFinished)]
        assert {round.strategy for round in rounds if round.drafted} == {"echo"}
        assert len(rounds[0].drafted) == 2
        assert isinstance(ask("none", bad)[-1], type(events[-1])), "nothing else is lost"
        failed = ask("bad", bad)[-1]
        assert isinstance(failed, Failed)
        assert failed.expected
        assert failed.message.endswith("No module named 'nowhere' (bad.py, line 2).")
        failed = ask("echo")[-1]
        assert isinstance(failed, Failed)
        assert failed.message == "There is no strategy “echo”.", "it was taken away"
    finally:
        home.close()


# ------------------------------------------------------------------------------------ the worked examples


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("file", "strategy", "prompt"),
    [
        (PHRASE_TRIE, "phrase-trie", "It is important to note that on the o"),
        (PHRASE_TRIE, "phrase-trie:min_match=1:n_max=3", "be it now or at the s"),
        (PATTERN, "pattern", "if __name"),
        (PATTERN, "pattern:pattern=[ab]*c%2Bd=e:min_match=0", "aaacd"),
    ],
)
def test_the_examples_draft_and_the_answer_is_the_baselines(
    engine: Engine, baselines: Baselines, file: Path, strategy: str, prompt: str, rule: str
) -> None:
    use(file)
    request = GenerationRequest(prompt=prompt, max_tokens=24, ignore_eos=True)
    trace = baselines.check(engine, request, strategy + rule)
    assert trace.rounds[0].drafted
    assert trace.rounds[0].draft_end


@pytest.mark.parametrize("file", [PHRASE_TRIE, PATTERN])
def test_the_examples_are_baselines_under_match_at_a_temperature(
    engine: Engine, baselines: Baselines, file: Path
) -> None:
    use(file)
    request = GenerationRequest(
        prompt="if __name", max_tokens=30, ignore_eos=True, sampling=Sampling(temperature=0.9, seed=4)
    )
    baselines.check(engine, request, f"{file.stem.replace('_', '-')}:verify=match")


def made(engine: Engine, strategy: str) -> Drafter:
    part = StrategySpec.parse(strategy).parts[0]
    drafter = engine.new_drafter(part)
    return drafter.drafter  # type: ignore[attr-defined] # behind the guard


def tokens(engine: Engine, text: str) -> np.ndarray:
    return engine.target.model.vocabulary.tokenize(text, special=False, parse_special=False)


def proposed(engine: Engine, drafter: Drafter, text: str, k: int = 40) -> str:
    context = tokens(engine, text)
    drafter.begin(context, None)
    ids = drafter.propose(context, k).ids
    return b"".join(map(engine.target.model.vocabulary.piece, ids)).decode()


def test_the_trie_completes_phrases_and_learns_which(engine: Engine) -> None:
    use(PHRASE_TRIE)
    trie = made(engine, "phrase-trie:n_max=64")
    assert proposed(engine, trie, "He did it as soon") == " as possible"
    assert proposed(engine, trie, "On the other") == " hand,"
    assert proposed(engine, trie, "zzz") == ""
    assert proposed(engine, trie, " as soon", k=3) == " as"
    context = tokens(engine, " on the o")
    first = trie.propose(context, 40)
    trie.observe(context, first, 0)
    second = trie.propose(context, 40)
    assert second.ids != first.ids, "what was wrong comes second"
    trie.observe(context, second, len(second.ids))
    assert trie.propose(context, 40).ids == second.ids
    trie.reset()
    assert trie.propose(context, 40).ids == first.ids


@pytest.mark.parametrize(
    ("pattern", "line", "text"),
    [
        (r"import numpy as np", "x\nimpo", "rt numpy as np"),
        (r"\{\"role\": \"[a-z]+\", \"content\": \"", '{"role": "user"', ', "content": "'),
        (r"\| ?---\|", "| -", "--|"),
        (r" *def \w+\(self", "  def __init__", ""),
        (r"ab?c|abd", "a", ""),
        (r"ab?c|xyz", "ab", "c"),
        (r"a+b\.", "aab", "."),
        (r"Überraschung", "Übe", "rraschung"),
        (r"abc", "xabc", ""),
        (r"abc", "abc", ""),
    ],
)
def test_the_pattern_drafts_what_leaves_no_choice(engine: Engine, pattern: str, line: str, text: str) -> None:
    use(PATTERN)
    params = KINDS["pattern"].params(pattern=pattern, min_match=0)
    spec = str(replace(StrategySpec.parse("pattern").parts[0], params=params))
    drafter = made(engine, spec)
    assert proposed(engine, drafter, line) == text
    assert StrategySpec.parse(spec).parts[0].params == params, "patterns are written and read back"


def test_the_pattern_follows_the_text_as_it_grows(engine: Engine) -> None:
    use(PATTERN)
    drafter = made(engine, "pattern:min_match=1:pattern=äbc")
    whole = tokens(engine, "x\näb")
    drafter.begin(whole[:3], None)  # in the middle of a character
    drafter.observe(whole, Proposal(), 0)
    assert drafter.propose(whole, 4).ids == tokens(engine, "c").tolist()


@pytest.mark.parametrize("pattern", ["(a)", "*a", "[z-a]", "[a"])
def test_a_pattern_that_cannot_be_read_is_refused_where_it_is_typed(pattern: str) -> None:
    use(PATTERN)
    with pytest.raises(SettingError, match="pattern"):
        StrategySpec.parse(f"pattern:pattern={pattern}")


def test_statistics_are_kept_under_its_own_name(engine: Engine) -> None:
    use(PHRASE_TRIE)
    trace = answer(engine, "On the other", strategy="phrase-trie+draft-simple:n_max=2", max_tokens=12)
    statistics = Statistics.of(trace.rounds)
    assert "phrase-trie" in statistics.strategies
    lines = llama_cpp_lines(statistics, ["phrase-trie", "draft-simple"], 8)
    assert any("statistics      phrase-trie:" in line for line in lines)
