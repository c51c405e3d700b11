"""Suites: the built-in ones, and people's own files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.base.paths import resource_folder
from app.engine.engine import Engine
from app.engine.errors import PromptError
from app.engine.types import FinishReason, ModelOptions
from app.lab.depths import documents_of
from app.lab.experiment import Experiment, Pair, Prompt
from app.lab.suites import LONG, PLACEHOLDER, SPEED_BENCH, built_in, parse_suite, read_suite
from tests.answers import answer

CATEGORIES = {"chat", "code", "rewrite", "summarise", "extraction", "maths", "story", "long context"}


def test_both_sets_hold_every_category() -> None:
    suites = {suite.name: suite for suite in built_in(resource_folder()) if suite.name not in ("fim", "long")}
    assert list(suites) == ["bundled", "general"]
    for suite in suites.values():
        assert set(suite.categories) == CATEGORIES
        assert suite.chat and suite.title and suite.about
        texts = [prompt.prompt for prompt in suite.prompts]
        assert len(set(texts)) == len(texts)
    assert len(suites["bundled"].prompts) >= 40
    assert set(SPEED_BENCH) <= CATEGORIES


def test_gaps_are_asked_for_without_a_template() -> None:
    suite = next(suite for suite in built_in(resource_folder()) if suite.name == "fim")
    assert suite.categories == ("fim",) and not suite.chat
    assert all(prompt.prompt and prompt.suffix for prompt in suite.prompts)
    experiment = Experiment(Pair(ModelOptions("t.gguf")), (), suite.prompts, chat=True)
    request = experiment.request(0, "none")
    assert (request.prompt, request.suffix) == (suite.prompts[0].prompt, suite.prompts[0].suffix)
    assert request.messages == ()


def test_the_bundled_suite_fits_the_bundled_pair(demo_engine: Engine) -> None:
    """Every prompt and its answer fit into the context."""
    suite = next(suite for suite in built_in(resource_folder()) if suite.name == "bundled")
    for prompt in suite.prompts:
        demo_engine.reset()
        trace = answer(demo_engine, prompt.prompt, max_tokens=1)
        assert trace.header.prompt_tokens + suite.max_tokens < demo_engine.pair.target.n_ctx
        assert trace.totals is not None and trace.totals.finish_reason is not FinishReason.CONTEXT


def test_a_category_of_a_suite() -> None:
    suite = built_in(resource_folder())[0]
    some = suite.only(("code", "story"))
    assert set(some.categories) == {"code", "story"}
    with pytest.raises(PromptError, match="Allowed: code"):
        suite.only(("nosuch",))


def test_a_category_goes_by_its_name_in_speed_bench_too() -> None:
    suite = built_in(resource_folder())[0]
    assert suite.only(("coding", "math")) == suite.only(("code", "maths"))
    assert set(suite.only(("rag",)).categories) == {"extraction", "long context"}
    theirs = parse_suite('[{"category": "coding", "prompt": "a"}, {"category": "qa", "prompt": "b"}]', "mine")
    assert [prompt.prompt for prompt in theirs.only(("coding",)).prompts] == ["a"]
    with pytest.raises(PromptError, match=r"by SPEED-Bench's names: .*coding"):
        suite.only(("stem",))


@pytest.mark.parametrize(
    ("name", "text", "prompts"),
    [
        (
            "a.json",
            '["one", {"prompt": "two", "category": "code"}, ""]',
            (Prompt("one"), Prompt("two", "code")),
        ),
        ("a.txt", "one\n\n  two \r\n[INST] three\n", (Prompt("one"), Prompt("two"), Prompt("[INST] three"))),
        ("a.prompts", '["one"]', (Prompt("one"),)),
        ("verse.json", '["  two\\n  lines\\n", " "]', (Prompt("  two\n  lines\n"),)),
        ("lines.txt", "one\u2028still one\x0cand still\n", (Prompt("one\u2028still one\x0cand still"),)),
        ("bom.txt", "\ufeffone\n", (Prompt("one"),)),
    ],
)
def test_files_of_ones_own(tmp_path: Path, name: str, text: str, prompts: tuple[Prompt, ...]) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    suite = read_suite(file)
    assert suite.prompts == prompts
    assert not suite.chat


def test_a_suite_is_written_as_ours_are(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"name": "m", "title": "Mine", "prompts": [{"prompt": "a"}], "chat": True}))
    assert read_suite(file).title == "Mine"
    assert read_suite(file).chat


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", b'{"prompt": 3}', "contains a JSON object"),
        ("a.json", b"[1, 2]", "whose entry 1 is a number"),
        ("a.txt", b"\n \n", "contains no prompt"),
        ("a.txt", b"\xff\xfe\x00", "UTF-8"),
        ("missing.txt", None, "cannot be read"),
    ],
)
def test_what_is_no_suite_says_so(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(PromptError, match=words):
        read_suite(file)


def test_a_text_is_a_prompt_a_line() -> None:
    assert parse_suite("a\nb", "name").prompts == (Prompt("a"), Prompt("b"))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", '{"data": [], "version": 2}', "a.json contains a JSON object with “data” and “version”."),
        (
            "a.txt",
            '[{"text": "x"}]',
            "a.txt contains a JSON list whose entry 1 is a JSON object with “text”.",
        ),
        ("a.json", '["x", 3]', "a.json contains a JSON list whose entry 2 is a number."),
        ("a.json", '[{"prompt": "x", "category": 3}]', "with an entry whose category is not text."),
        (
            "a.jsonl",
            '{"q": 1}\n\n{"q": 2}\n',
            "a.jsonl contains a JSON object on each line, the first with “q”.",
        ),
        ("a.json", "hello", "a.json contains no list: "),
    ],
)
def test_a_file_of_another_shape_is_refused_by_what_it_holds(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(PromptError) as error:
        read_suite(path)
    assert said in str(error.value)
    assert 'Expected: a JSON list of strings or of {"category": "...", "prompt": "..."}.' in str(error.value)


def test_a_line_of_text_may_look_like_json(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text('What does this mean?\n{"not": 1}\n12\n')
    assert len(read_suite(path).prompts) == 3


SPEC_BENCH = (
    '{"question_id": 81, "category": "writing", "turns": ["Compose a blog post.", "Rewrite it."]}\n'
    '{"question_id": 161, "category": "translation", "turns": ["Translate."], "reference": ["…"]}\n'
)
SPEED_BENCH_ROWS = (
    '{"question_id": "a1", "category": "coding", "sub_category": "python", "turns": ["Write a sort."], '
    '"source": "s", "src_id": "1", "difficulty": "easy", "multiturn": false}\n'
    '{"question_id": "a2", "category": "math", "sub_category": "", "turns": ["FULL BENCHMARK DATA SHOULD BE '
    'FETCHED FROM THE SOURCE USING SPECDEC_BENCH"], "source": "s", "src_id": "2", "difficulty": "", '
    '"multiturn": false}\n'
)


def test_spec_bench_is_read_as_it_is_published(tmp_path: Path) -> None:
    file = tmp_path / "question.jsonl"
    file.write_text(SPEC_BENCH)
    suite = read_suite(file)
    first = "Compose a blog post."
    assert suite.prompts == (
        Prompt(first, "writing"),
        Prompt("Rewrite it.", "writing", before=(first,)),
        Prompt("Translate.", "translation"),
    )
    assert [prompt.turn for prompt in suite.prompts] == [1, 2, 1]
    assert suite.chat, "turns are a user's messages"
    assert suite.notes == (
        "question.jsonl: 1 conversation with several turns. Each turn is a prompt, sent with the "
        "conversation "
        "before it.",
    )
    assert suite.only(("writing",)).prompts == suite.prompts[:2]


def test_a_conversation_with_a_placeholder_in_a_later_turn_is_left_out() -> None:
    rows = [{"turns": ["Why?", f"{PLACEHOLDER} USING SPECDEC_BENCH"]}, {"turns": ["How?"]}]
    suite = parse_suite("\n".join(map(json.dumps, rows)), "speed")
    assert suite.prompts == (Prompt("How?"),) and "1 placeholder left out" in suite.notes[0]


def test_placeholders_of_speed_bench_are_left_out_and_told(tmp_path: Path) -> None:
    file = tmp_path / "speed.jsonl"
    file.write_text(SPEED_BENCH_ROWS)
    suite = read_suite(file)
    assert suite.prompts == (Prompt("Write a sort.", "coding"),)
    assert suite.notes == (
        "speed.jsonl: 1 placeholder left out: SPEED-Bench's script fetches these prompts.",
    )
    file.write_text(SPEED_BENCH_ROWS.splitlines()[1])
    with pytest.raises(PromptError, match="placeholders instead of prompts"):
        read_suite(file)


def test_prepared_files_with_conversations_are_read(tmp_path: Path) -> None:
    file = tmp_path / "prepared.jsonl"
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    file.write_text(json.dumps({"category": "qa", "messages": messages}))
    assert read_suite(file).prompts == (Prompt("Why?", "qa"),)


def test_a_parquet_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="JSON Lines"):
        read_suite(tmp_path / "test-00000.parquet")


def test_long_prompts_are_of_three_kinds_and_name_their_licence() -> None:
    suite = next(suite for suite in built_in(resource_folder()) if suite.name == LONG)
    assert len(suite.categories) == 3 and set(suite.categories) <= CATEGORIES
    assert all(2_000 < len(prompt.prompt) / 4 < 8_000 for prompt in suite.prompts), "about four to a token"
    assert "PSF License" in suite.about and "Copyright" in suite.about
    documents = documents_of(suite)
    assert not any(prompt.prompt.partition("\n\n")[0] in documents for prompt in suite.prompts)
    assert len(documents) / 4 > 16_384 + 8_192, "enough for the depths that people ask for"


def test_the_suites_together_stay_small() -> None:
    assert sum(file.stat().st_size for file in (resource_folder() / "suites").iterdir()) < 300_000
