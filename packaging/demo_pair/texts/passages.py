"""Dialogues around passages of the library: quote, explain, complete, go on.

What is asked for is a real function or a real paragraph, so what stands in the question can be copied and
the rest is open.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import dedent

from base.library import Document
from base.scene import Dice, ask, fence, wordings
from scenes import copying

Turn = tuple[str, str]
EXPLAIN = wordings(
    "(What|Tell me what) does this function do(|, in short)?\n\n{code}",
    "(Explain|Describe|Summarise) this function(| in a few words|, please).\n\n{code}",
    "{code}\n\nWhat (is this for|does it do)?",
)
DOCUMENT = wordings(
    "(Write|Add) a docstring (for|to) this function:\n\n{code}",
    "This function has no docstring. (Write|Suggest) one.\n\n{code}",
)
COMPLETE = wordings(
    "(Complete|Finish) this (function|code)(|, please):\n\n{code}",
    "{code}\n\n(Complete|Finish) (it|the function).",
)
WRITE = wordings("(Write|I need|Show me) (the body of|the code of) `{head}`: {text}")
GO_ON = wordings(
    "(Go on with|Continue) (this|the following) (text|passage):\n\n{text}",
    "{text}\n\n(Go on|Continue).",
    "How (does|could) this text go on?\n\n{text}",
)
GO_ON_CODE = wordings(
    "(Go on with|Continue) (this|the following) code:\n\n{code}", "{code}\n\nWhat comes next?"
)
QUOTED = (80, 700)
"""Characters of what is copied or completed."""
TEXT = (160, 900)
"""Characters of a text to go on with."""


@dataclass(frozen=True, slots=True)
class Function:
    """A documented function of the library."""

    docstring: str
    """Its first paragraph."""
    lines: tuple[str, ...]
    """Its code without the docstring."""
    head: int
    """How many of the lines stand before the docstring."""

    @property
    def code(self) -> str:
        return "\n".join(self.lines)


def functions(text: str) -> list[Function]:
    """Of one file: those that fit into a dialogue."""
    lines = text.splitlines()
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.end_lineno is None:
            continue
        told = ast.get_docstring(node)
        first = node.body[0]
        if told is None or len(node.body) == 1 or first.end_lineno is None or node.lineno == first.lineno:
            continue
        head = lines[node.lineno - 1 : first.lineno - 1]
        own = dedent("\n".join(head + lines[first.end_lineno : node.end_lineno])).strip("\n")
        paragraph = " ".join(told.split("\n\n", maxsplit=1)[0].split())
        if (
            QUOTED[0] <= len(own) <= QUOTED[1]
            and 20 <= len(paragraph) <= 300
            and "```" not in own + paragraph
        ):
            found.append(Function(paragraph, tuple(own.splitlines()), len(head)))
    return found


@dataclass(frozen=True, slots=True)
class Shelf:
    """What dialogues are made of, from one side of the library."""

    functions: Sequence[Function]
    paragraphs: Sequence[str]


def shelf(documents: Sequence[Document], held_out: bool) -> Shelf:
    own = [document for document in documents if document.held_out == held_out]
    found = [part for document in own if document.kind == "code" for part in functions(document.text)]
    texts = dict.fromkeys(
        part.strip()
        for document in own
        if document.kind == "prose"
        for part in re.split(r"\n{2,}(?=[A-Z])", document.text)
        if part[0].isupper() and TEXT[0] <= len(part) <= TEXT[1] and not re.search(">>>|```", part)
    )
    return Shelf(found, list(texts))


def quote_code(dice: Dice, known: Shelf) -> Turn:
    text = fence(dice.choice(known.functions).code)
    return dice.pick(copying.QUOTE_CODE).format(text=text), text


def quote_text(dice: Dice, known: Shelf) -> Turn:
    text = " ".join(dice.choice(known.paragraphs).split())[: QUOTED[1]]
    return dice.pick(copying.QUOTE).format(text=text), text


def explain(dice: Dice, known: Shelf) -> Turn:
    found = dice.choice(known.functions)
    return dice.pick(EXPLAIN).format(code=fence(found.code)), found.docstring


def document(dice: Dice, known: Shelf) -> Turn:
    found = dice.choice(known.functions)
    return dice.pick(DOCUMENT).format(code=fence(found.code)), fence(f'"""{found.docstring}"""')


def complete(dice: Dice, known: Shelf) -> Turn:
    """The head and the docstring are given, and now and then the first lines."""
    found = dice.choice(known.functions)
    cut = dice.choice((found.head, found.head, dice.randint(found.head, len(found.lines) - 1)))
    told = f'    """{found.docstring}"""'
    given = [*found.lines[: found.head], told, *found.lines[found.head : cut]]
    whole = [*found.lines[: found.head], told, *found.lines[found.head :]]
    return dice.pick(COMPLETE).format(code=fence("\n".join(given))), fence("\n".join(whole))


def write(dice: Dice, known: Shelf) -> Turn:
    found = dice.choice(known.functions)
    head = " ".join(" ".join(found.lines[: found.head]).split()).rstrip(":")
    return dice.pick(WRITE).format(head=head, text=found.docstring), fence(found.code)


def go_on(dice: Dice, known: Shelf) -> Turn:
    said = dice.choice(known.paragraphs).split()
    cut = dice.randint(len(said) // 4, 3 * len(said) // 4)
    return dice.pick(GO_ON).format(text=" ".join(said[:cut])), " ".join(said[cut:])


def go_on_code(dice: Dice, known: Shelf) -> Turn:
    lines = dice.choice(known.functions).lines
    cut = dice.randint(1, len(lines) - 1)
    given, rest = "\n".join(lines[:cut]), "\n".join(lines[cut:])
    return dice.pick(GO_ON_CODE).format(code=fence(given)), fence(rest)


KINDS = {
    quote_code: 2, quote_text: 3, explain: 4, document: 1, complete: 4, write: 2, go_on: 4, go_on_code: 2,
}  # fmt: skip
"""How often each comes."""


def conversation(dice: Dice, known: Shelf) -> list[tuple[str, str]]:
    """One or two turns, (role, content)."""
    messages: list[tuple[str, str]] = []
    for make in dice.choices(list(KINDS), list(KINDS.values()), k=dice.choices((1, 2), (85, 15))[0]):
        request, answer = make(dice, known)
        messages += [("user", ask(dice, request)), ("assistant", answer)]
    return messages
