"""The chat templates of llama.cpp's `models/templates` render as transformers renders them: tests/vectors."""

from __future__ import annotations

import datetime
import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from app.engine.templates import sandbox
from app.engine.templates.options import Thinking
from app.engine.templates.sandbox import (
    Rendered,
    RenderQuestion,
    TemplateRefused,
    ThinkingQuestion,
    Understood,
)
from app.engine.types import Message
from tests.files.llama_models import models_folder

_VECTORS = Path(__file__).parents[2] / "vectors" / "chat_templates.jsonl.gz"
with gzip.open(_VECTORS, "rt", encoding="utf-8") as _lines:
    SETTINGS: dict[str, Any] = json.loads(next(_lines))
    EXPECTED: dict[str, list[dict[str, str]]] = defaultdict(list)
    for _line in map(json.loads, _lines):
        EXPECTED[_line["template"]].append(_line)
ENDS = {"bos_token": SETTINGS["bos"], "eos_token": SETTINGS["eos"], "seconds": 2.0}


class Today(datetime.datetime):
    @classmethod
    @override
    def now(cls, _zone: object = None) -> Today:
        return cls(*SETTINGS["today"])


@pytest.fixture(autouse=True)
def today(monkeypatch: pytest.MonkeyPatch) -> None:
    """The day on which transformers rendered them."""
    monkeypatch.setattr(datetime, "datetime", Today)


def test_the_vectors_are_those_of_every_template() -> None:
    files = {path.name for path in (models_folder() / "templates").glob("*.jinja")}
    assert files | set(SETTINGS["own"]) == set(EXPECTED)
    assert all([line["chat"] for line in lines] == list(SETTINGS["chats"]) for lines in EXPECTED.values())
    texts = [line["text"] for name in files for line in EXPECTED[name] if "text" in line]
    assert len(texts) == 262


@pytest.mark.parametrize(
    ("template", "thinking"),
    [
        ("Qwen-Qwen3-0.6B", Thinking(("enable_thinking",), on=True)),
        ("deepseek-ai-DeepSeek-V3.1", Thinking(("enable_thinking", "thinking"), on=False)),
        ("ibm-granite-granite-3.3-2B-Instruct", Thinking(("thinking",), on=False)),
        ("Kimi-K3", Thinking(("thinking",), on=True)),
        ("openai-gpt-oss-120b", Thinking(("reasoning_effort",), None, ("low", "medium", "high"), "medium")),
        ("tencent-Hy3", Thinking(("reasoning_effort",), None, ("no_think", "low", "high"), "no_think")),
        ("Qwen-Qwen2.5-7B-Instruct", None),
        ("Apriel-1.6-15b-Thinker-fixed", None),
    ],
)
def test_what_a_real_template_can_be_told_about_thinking(template: str, thinking: Thinking | None) -> None:
    source = (models_folder() / "templates" / f"{template}.jinja").read_text(encoding="utf-8")
    assert sandbox.answer(ThinkingQuestion(source=source, **ENDS)) == Understood(thinking)


@pytest.mark.parametrize("template", EXPECTED)
def test_a_template_renders_as_transformers_renders_it(template: str) -> None:
    own = SETTINGS["own"].get(template)
    source = own or (models_folder() / "templates" / template).read_text(encoding="utf-8")
    for line in EXPECTED[template]:
        messages = [Message(**message) for message in SETTINGS["chats"][line["chat"]]]
        question = RenderQuestion(source=source, messages=messages, options={}, **ENDS)
        said = sandbox.answer(question)
        if "text" in line:
            assert said == Rendered(line["text"], [])
        else:
            assert isinstance(said, TemplateRefused)
            refused = f"refused the messages: {line.get('refused', '').removesuffix('.')}."
            failed = f"failed: {line.get('failed')}: "
            assert (refused if "refused" in line else failed) in said.message
