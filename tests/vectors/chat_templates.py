"""Renders every template of a folder as transformers does, as JSON Lines; see README.md."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jinja2
from transformers.utils import chat_template_utils

BOS, EOS = "<s>", "</s>"
TODAY = (2026, 3, 5)

SYSTEM = {"role": "system", "content": " Be brief.\n"}
USER = {"role": "user", "content": 'What is 2 < 3 & "so on"?\n  Say it\'s so. '}
ASSISTANT = {"role": "assistant", "content": "Yes: 2 < 3.\n\n```py\nassert 2 < 3\n```"}
AGAIN = {"role": "user", "content": "And   then?"}
THOUGHT = {"role": "assistant", "content": "<think>\nÉasy: 東京.\n</think>\n\n東京 🙂 {{ bos_token }}"}
CHATS = {
    "question": [USER],
    "system": [SYSTEM, USER],
    "turns": [USER, ASSISTANT, AGAIN, THOUGHT, USER],
    "everything": [SYSTEM, USER, THOUGHT, AGAIN, ASSISTANT, AGAIN],
}
OWN = {
    "generation": (
        "{% for message in messages %}{% set said = message.content %}\n"
        "{% if message.role == 'assistant' %}\n"
        "  {% generation %}\n  {{ said }}{% set said = 'inside' %}{{ said }}\n  {% endgeneration %}\n"
        "{%- generation -%} {{ said }} {%- endgeneration -%} {{ said }}\n"
        "{% else %}{{ message.role }}{% endif %}{% endfor %}"
    ),
    "a loop left in a generation": (
        "{% for message in messages %}{% generation %}{% for word in message.content.split() %}"
        "{% if loop.index > 2 %}{% break %}{% endif %}{{ word }}{% endfor %}{% endgeneration %}{% endfor %}"
    ),
    "tojson": (
        "{{ messages | tojson }}{{ messages | tojson(indent=2) }}{{ messages | tojson(ensure_ascii=true) }}"
        "{{ messages | tojson(separators=(',', ':'), sort_keys=true) }}"
        "{{ messages | tojson(ensure_ascii=False, indent=none, separators=(' , ', ' : ')) }}"
        "{{ {'b': [1, 2.5, none, true], 'a': '<&>'} | tojson(sort_keys=True, indent=1) }}"
    ),
    "names": (
        "{{ bos_token }}{{ eos_token }}{{ add_generation_prompt }}{{ tools is none }}{{ tools is defined }}"
        "{{ strftime_now('%d %b %Y') }}{{ messages[0].name is defined }}{{ messages[0] | length }}"
        "{{ messages[0].items() | list }}{{ messages[-1]['role'] | upper }}{{ no }}{{ no is defined }}"
    ),
    "refuses": "{{ raise_exception('Only ' ~ messages | length ~ ' messages.') }}",
    "is none": "{% if %}",
}
"""Templates of our own, for what the others use now and then."""


class Today(chat_template_utils.datetime):
    @classmethod
    def now(cls, _zone: object = None) -> Today:
        return cls(*TODAY)


def main(folder: Path) -> None:
    chat_template_utils.datetime = Today
    put({"bos": BOS, "eos": EOS, "today": TODAY, "chats": CHATS, "own": OWN})
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.jinja"))}
    for template, source in (OWN | files).items():
        for name, chat in CHATS.items():
            put({"template": template, "chat": name} | rendered(source, chat))


def rendered(source: str, chat: list[dict[str, str]]) -> dict[str, str]:
    """The text, or the words with which the template refused, or the error that it ended with."""
    try:
        (text,), _ = chat_template_utils.render_jinja_template(
            [chat], chat_template=source, add_generation_prompt=True, bos_token=BOS, eos_token=EOS
        )
    except jinja2.TemplateError as error:
        return {"refused": str(error)}
    except Exception as error:
        return {"failed": type(error).__name__}
    return {"text": text}


def put(line: dict[str, Any]) -> None:
    print(json.dumps(line, ensure_ascii=False))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
