"""The bank of small Python functions behind the code dialogues (`functions.txt`)."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

BANK = Path(__file__).with_name("functions.txt")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a body, indented below the `def`, and what it does in the third person."""

    code: str
    note: str


@dataclass(frozen=True)
class Function:
    """A function, the ways to ask for it, and calls of it."""

    signature: str
    wants: tuple[str, ...]
    body: tuple[Line, ...]
    calls: tuple[str, ...]
    empty: str = ""
    """The argument that may be an empty list, text or dictionary."""
    invented: bool = False
    """Not of the bank: nobody knows it by heart, so the results of its calls are not said."""

    @property
    def name(self) -> str:
        return self.signature.removeprefix("def ").split("(")[0]

    @property
    def arguments(self) -> tuple[str, ...]:
        definition = ast.parse(f"{self.signature}: pass").body[0]
        assert isinstance(definition, ast.FunctionDef)
        return tuple(argument.arg for argument in definition.args.args)

    @property
    def plain_signature(self) -> str:
        """The signature without type hints."""
        return f"def {self.name}({', '.join(self.arguments)})"

    @property
    def source(self) -> str:
        return "\n".join([f"{self.signature}:", *(line.code for line in self.body)])

    @cached_property
    def examples(self) -> tuple[tuple[str, str], ...]:
        """(call, `repr` of its result), worked out by running them."""
        scope: dict[str, object] = {}
        exec(self.source, scope)
        return tuple((call, repr(eval(call, scope))) for call in self.calls)

    def renamed(self, old: str, new: str) -> Function:
        """The same function with one name, or number, of its code replaced."""

        def swap(text: str) -> str:
            return re.sub(rf"\b{old}\b", new, text)

        def swap_note(note: str) -> str:
            # A note speaks of names in backticks; without them `total` is only a word.
            return swap(note) if old.isdigit() else note.replace(f"`{old}`", f"`{new}`")

        return replace(
            self,
            signature=swap(self.signature),
            body=tuple(Line(swap(line.code), swap_note(line.note)) for line in self.body),
            calls=tuple(re.sub(rf"\b{old}\(", f"{new}(", call) for call in self.calls),
            empty=swap(self.empty),
        )


def third_person(want: str) -> str:
    """`return the mean` becomes `returns the mean`; `multiply x and add y` changes both."""
    first, *others = want.split(" and add ") if want.startswith("multiply") else [want]
    verb, _, rest = first.partition(" ")
    if verb.endswith("ly"):
        verb = verb[:-1] + "ie"
    elif verb.endswith(("ch", "do")):
        verb += "e"
    return " and adds ".join([f"{verb}s {rest}".strip(), *others])


def parse(block: str) -> Function:
    """Read one block of the bank."""
    signature, *rest = block.splitlines()
    fields = {"empty": "", "calls": "", "want": ""}
    body = []
    for line in rest:
        if line.startswith("\t"):
            code, note = line[1:].split(" ## ")
            body.append(Line("    " + code.replace("\t", "    "), note))
        else:
            key, _, value = line.partition(": ")
            fields[key] = value
    return Function(
        signature,
        tuple(fields["want"].split(" | ")),
        tuple(body),
        tuple(call.strip() for call in fields["calls"].split(" ; ") if call),
        fields["empty"],
    )


def load() -> list[Function]:
    """All functions of the bank."""
    return [parse(block) for block in BANK.read_text(encoding="utf-8").strip().split("\n\n")]
