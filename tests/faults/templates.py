"""Hostile chat templates: ways out of the sandbox, ways to take all time and memory; damaged ones."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import tempfile
import time
from pathlib import Path
from random import Random

from app.engine.errors import PromptError
from app.engine.templates.process import Templates
from app.engine.templates.sandbox import MAX_CHARACTERS
from app.engine.types import Message
from tests.faults.campaign import Fate, checked
from tests.faults.damage import damaged
from tests.files.tiny import CHAT_TEMPLATE, EFFORT_TEMPLATE, THINKING_TEMPLATE

_VECTORS = Path(__file__).parents[1] / "vectors" / "chat_templates.jsonl.gz"
_SOUND = (CHAT_TEMPLATE, THINKING_TEMPLATE, EFFORT_TEMPLATE)
_LIMIT = 2.0  # seconds for a template
_SLACK = 30.0  # seconds more until one must have been stopped, on a busy machine


def _words(text: str) -> list[str]:
    return text.split()


_OBJECTS = _words("""
messages messages[0] '' cycler joiner namespace lipsum self range dict raise_exception strftime_now
bos_token loop caller none (1).real [] {} undefined_thing ''.join '%s' ''.format ''.encode()
""")
_NAMES = _words("""
__class__ __mro__ __base__ __subclasses__() __init__ __globals__ __builtins__ __code__ __self__ __dict__
__getattribute__ gi_frame f_back f_globals func_globals mro() format format_map tojson os append(1) clear()
update({}) __import__('os') environment eval _TemplateReference__context
""")
_FILTERS = _words("""
attr('__class__') map(attribute='__class__')|list tojson list join string length pprint format xmlattr sum
replace('','x'*999999) center(10**9) indent(10**8) wordwrap(1) batch(10**9)|list slice(10**9)|list
groupby('__class__') default(messages)
""")
_WORK = """\
{% for a in range(99999) %}BODY{% endfor %}
{% macro f(n) %}BODY{{ f(n + 1) }}{% endmacro %}{{ f(0) }}
{% set ns = namespace(t='x') %}{% for a in range(999) %}{% set ns.t = ns.t + ns.t %}{% endfor %}{{ ns.t }}
{{ 'x' * 10**NUMBER }}
{{ range(10**NUMBER) | list }}
{{ 9 ** 9 ** NUMBER }}
{{ '%0*d' % (10**NUMBER, 1) }}
{{ [[]] * 10**NUMBER }}
{% set x = messages %}{% for a in range(99) %}{% set x = [x, x] %}{% endfor %}{{ x }}
{{ '(' * NUMBER }}
{% include 'x' %}BODY
{% import 'os' as o %}{{ o }}
{% extends 'x' %}
{% call f() %}BODY{% endcall %}
{% raw %}BODY
{% filter upper %}BODY{% endfilter %}
{% generation %}BODY{% endgeneration %}
{% autoescape true %}BODY{% endautoescape %}
{{ raise_exception(BODY) }}
{{ 1 << 10**NUMBER }}
{{ 'a' ~ 'b' * 10**NUMBER }}
{{ strftime_now('%Y' * 10**NUMBER) }}
""".splitlines()
_LEAKS = re.compile(r"<(class|module|function|built-in|code|frame|bound)|object at 0x")


class HostileTemplates:
    """One rendering process for all templates, replaced where one ends it."""

    name = "templates"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="faults-"))
        self._canary = self._folder / "escaped"
        self._templates = Templates(_LIMIT)
        with gzip.open(_VECTORS) as lines:
            self._real = [*json.loads(lines.readline())["own"].values(), *_SOUND]

    def make(self, random: Random) -> bytes:
        match random.randrange(4):
            case 0:
                return damaged(random.choice(self._real).encode(), random)
            case 1:
                return self._work(random, 3).encode()
            case _:
                parts = (self._escape(random) for _ in range(random.randrange(1, 6)))
                return "".join(parts).encode()

    def _escape(self, random: Random) -> str:
        names = random.choices(_NAMES, k=random.randrange(1, 7))
        reached = ".".join([random.choice(_OBJECTS), *names])
        act = f".system('touch {self._canary}')" if random.random() < 0.5 else ""
        filters = "".join(f" | {name}" for name in random.choices(_FILTERS, k=random.randrange(3)))
        how = random.randrange(3)
        if how == 0:
            return f"{{{{ '{{0.{'.'.join(names)}}}'.format(messages) }}}}"
        if how == 1:
            return f"{{% set x = {reached}{act} %}}{{{{ x{filters} }}}}"
        return f"{{{{ {reached}{act}{filters} }}}}"

    def _work(self, random: Random, deep: int) -> str:
        body = self._work(random, deep - 1) if deep and random.random() < 0.7 else self._escape(random)
        return random.choice(_WORK).replace("BODY", body).replace("NUMBER", str(random.choice((1, 6, 9, 12))))

    def open(self, data: bytes) -> Fate:
        messages = [Message("system", "Be short."), Message("user", "Hello")]
        began = time.monotonic()
        source = data.decode("utf-8", errors="replace")
        try:
            text, _read = self._templates.render(source, messages, "<s>", "</s>", {}, lambda: False)
            fate = Fate.OPENED
            assert len(text) <= MAX_CHARACTERS
            assert not _LEAKS.search(text), text[:500]
        except PromptError as error:
            checked(error)
            fate = Fate.REFUSED
        assert not self._canary.exists(), "the template got out"
        assert time.monotonic() - began < _LIMIT + _SLACK
        return fate

    def close(self) -> None:
        self._templates.close()
        shutil.rmtree(self._folder)
