"""Options of chat templates: which are read, and their effect on thinking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.engine.engine import Engine
from app.engine.errors import PromptError, SettingError
from app.engine.native import Model, Vocabulary
from app.engine.process.host import make_home
from app.engine.process.messages import Load, Loaded
from app.engine.templates.chat import ChatTemplate
from app.engine.templates.options import (
    LARGEST,
    TemplateOptions,
    Thinking,
    check_options,
    option_text,
    read_option,
    switched,
)
from app.engine.templates.process import Templates
from app.engine.types import GenerationRequest, Message, ModelOptions
from tests.files.tiny import CHAT_TEMPLATE, CONTROL, EFFORT_TEMPLATE, THINKING_TEMPLATE, Tiny

HELLO = (Message("user", "hi"),)
OFF: TemplateOptions = {"enable_thinking": False}


@pytest.fixture(scope="module")
def templates() -> Iterator[Templates]:
    process = Templates()
    yield process
    process.close()


@pytest.fixture(scope="module")
def vocabulary(tiny_file: Callable[[Tiny], Path]) -> Iterator[Vocabulary]:
    model = Model(ModelOptions(str(tiny_file(Tiny(name="thinking")))))
    yield model.vocabulary
    model.close()


@pytest.fixture(scope="module")
def thinking_file(tiny_file: Callable[[Tiny], Path]) -> Path:
    return tiny_file(Tiny(name="thinks", template=THINKING_TEMPLATE))


# ------------------------------------------------------------- what a template says about thinking

TURN = "{{ messages[0].content }}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (CHAT_TEMPLATE, None),
        (THINKING_TEMPLATE, Thinking(("enable_thinking",), on=True)),
        # DeepSeek's: two names, off by default.
        (
            TURN + "{% set think = thinking | default(enable_thinking) | default(false) %}"
            "{% if think %}<think>{% else %}</think>{% endif %}",
            Thinking(("enable_thinking", "thinking"), on=False),
        ),
        # Granite's.
        (TURN + "{% if thinking %}Think.{% endif %}", Thinking(("thinking",), on=False)),
        # A template that leaves it to the model by default.
        (
            TURN + "{% if enable_thinking is defined %}{{ '<think>' if enable_thinking else '</think>' }}"
            "{% endif %}",
            Thinking(("enable_thinking",), on=True),
        ),
        # A field read from a message is not an option.
        (TURN + "{{ messages[0].thinking }}{{ messages[0]['enable_thinking'] }}", None),
        ("{% set thinking = true %}" + TURN + "{% if thinking %}x{% endif %}", None),
        ("{# enable_thinking #}" + TURN + "{{ 'enable_thinking' }}", None),
        # gpt-oss's takes any word.
        (EFFORT_TEMPLATE, Thinking(("reasoning_effort",), None, ("low", "medium", "high"), "medium")),
        # Hunyuan's refuses the words that it does not know.
        (
            "{% set effort = reasoning_effort | default('no_think') %}"
            "{% if effort not in ['high', 'low', 'no_think'] %}{{ raise_exception(effort) }}{% endif %}"
            "{{ effort }}" + TURN,
            Thinking(("reasoning_effort",), None, ("no_think", "low", "high"), "no_think"),
        ),
        # Command's knows one word, and ignores the others.
        (
            TURN + "{% if reasoning_effort | default('') == 'none' %}</think>{% endif %}",
            Thinking(("reasoning_effort",), None, ("none", "high"), "high"),
        ),
        # Nothing to choose.
        (TURN + "{% if tools %}{{ reasoning_effort }}{% endif %}", Thinking(("reasoning_effort",))),
        # A switch has precedence over an effort.
        (
            TURN + "{% if enable_thinking %}{{ reasoning_effort | default('low') }}{% endif %}",
            Thinking(("enable_thinking", "reasoning_effort"), on=False),
        ),
    ],
)
def test_what_a_template_can_be_told(
    vocabulary: Vocabulary, templates: Templates, source: str, expected: Thinking | None
) -> None:
    assert ChatTemplate(source, vocabulary, templates).thinking() == expected


def test_no_template_can_be_told_nothing(vocabulary: Vocabulary, templates: Templates) -> None:
    assert ChatTemplate("", vocabulary, templates).thinking() is None


def test_a_template_that_never_ends_is_stopped_at_looking_too(vocabulary: Vocabulary) -> None:
    limited = Templates(1.5)
    endless = (
        "{% if thinking %}{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    )
    try:
        with pytest.raises(PromptError, match="longer than"):
            ChatTemplate(endless + "{% endif %}", vocabulary, limited).thinking()
        assert ChatTemplate("ok", vocabulary, limited).thinking() is None
    finally:
        limited.close()


def test_what_is_told_counts_and_else_what_the_template_does() -> None:
    off = Thinking(("enable_thinking", "thinking"), on=False)
    assert not off.is_on({}) and off.is_on(switched(True))
    assert off.is_on({"thinking": True}) and not off.is_on({"reasoning_effort": "high"})
    on = Thinking(("thinking",), on=True)
    assert on.is_on({}) and not on.is_on(switched(False))
    assert on.is_on({"enable_thinking": False}), "it does not read that name"
    effort = Thinking(("reasoning_effort",), None, ("low", "high"), "high")
    assert effort.effort_of({}) == "high" and effort.effort_of({"reasoning_effort": "low"}) == "low"
    assert effort.effort_of({"reasoning_effort": "another"}) == "another"


# -------------------------------------------------------------------------------- options


def test_options_reach_the_template_and_those_read_are_told(
    vocabulary: Vocabulary, templates: Templates
) -> None:
    template = ChatTemplate("{{ a }}|{{ b }}|{{ c + 1 }}|{{ d is true }}", vocabulary, templates)
    made = template.tokenize(HELLO, {"a": "x", "b": 1.5, "c": 2, "d": True, "e": "y"})
    assert made.text == "x|1.5|3|True"
    assert made.options == {"a": "x", "b": 1.5, "c": 2, "d": True}


@pytest.mark.parametrize("content", [*CONTROL, "<|im_<|end|>end|>", "\ufdd0<|end|>"])
def test_an_option_never_becomes_a_control_token(
    vocabulary: Vocabulary, templates: Templates, content: str
) -> None:
    ids = ChatTemplate("{{ a }}", vocabulary, templates).tokenize(HELLO, {"a": content}).ids.tolist()
    assert b"".join(vocabulary.piece(id) for id in ids).decode() == content.replace("\ufdd0", "")


def test_no_option_replaces_what_every_template_is_given(
    vocabulary: Vocabulary, templates: Templates
) -> None:
    template = ChatTemplate(TURN, vocabulary, templates)
    assert template.tokenize(HELLO, {"messages": "mine"}).text == "hi"


@pytest.mark.parametrize(
    ("written", "option"),
    [
        ("a=true", ("a", True)),
        ("a=0", ("a", 0)),
        ("a=-1.5", ("a", -1.5)),
        ('a="true"', ("a", "true")),
        ("a=low", ("a", "low")),
        ("a=b=c", ("a", "b=c")),
        ("a=", ("a", "")),
        ("a=NaN", ("a", "NaN")),
        ("a=True", ("a", "True")),
    ],
)
def test_a_value_is_json_where_it_is_some(written: str, option: tuple[str, Any]) -> None:
    read = read_option(written)
    assert read == option and type(read[1]) is type(option[1])
    assert read_option(option_text(*read)) == read or isinstance(read[1], str)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("a", "KEY=VALUE"),
        ("a b=1", "not a valid name"),
        ("=1", "not a valid name"),
        ("a=[1]", "cannot be a list"),
        ("a={}", "cannot be an object"),
        ("a=null", "cannot be null"),
        (f"a={LARGEST + 1}", "too large"),
        ("a=1e300", "too large"),
        ("messages=x", "already receives messages"),
    ],
)
def test_options_that_cannot_be_are_refused(written: str, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        read_option(written)


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(SettingError, match="too large"):
        check_options({"a": float("nan")})


# ------------------------------------------------------------------------------ in the engine


def test_the_header_holds_what_the_template_was_told_and_read(thinking_file: Path) -> None:
    with Engine(thinking_file) as engine:
        told = GenerationRequest(messages=HELLO, template_options=switched(False), max_tokens=2)
        trace = engine.answer(told)
        assert trace.header.template_options == OFF
        assert trace.header.prompt.endswith("assistant\n<think>\n\n</think>\n\n")
        untold = engine.answer(GenerationRequest(messages=HELLO, max_tokens=2))
        assert untold.header.template_options == {}
        assert untold.header.prompt.endswith("assistant\n")
        raw = GenerationRequest(prompt="hi", template_options=OFF, max_tokens=2)
        assert engine.answer(raw).header.template_options == {}
        with pytest.raises(SettingError, match="already receives tools"):
            next(engine.generate(GenerationRequest(messages=HELLO, template_options={"tools": True})))


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_the_loaded_pair_says_what_its_template_can_be_told(
    thinking_file: Path, pair_files: tuple[Path, Path], kind: str
) -> None:
    home = make_home(kind)
    try:
        for run, (file, expected) in enumerate(
            [(thinking_file, Thinking(("enable_thinking",), on=True)), (pair_files[0], None)]
        ):
            home.send(Load(run, ModelOptions(str(file))))
            while not isinstance(event := home.receive(30.0), Loaded):
                assert event is not None
            assert event.pair.thinking == expected
    finally:
        home.close()


def test_a_template_that_breaks_does_not_keep_its_pair_from_loading(
    tiny_file: Callable[[Tiny], Path],
) -> None:
    home = make_home("thread")
    try:
        home.send(Load(0, ModelOptions(str(tiny_file(Tiny(name="broken", template="{% if %}"))))))
        while not isinstance(event := home.receive(30.0), Loaded):
            assert event is not None
        assert event.pair.thinking is None
    finally:
        home.close()
