"""The bank of small Python functions behind the code dialogues (`functions.txt`)."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

BANK = Path(__file__).with_name("functions.txt")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a body, indented below the `def`, and what it does in the third person."""

    code: str
    note: str


@dataclass(frozen=True, slots=True)
class Function:
    """A function, the ways to ask for it and calls whose results were computed, not guessed."""

    signature: str
    wants: tuple[str, ...]
    body: tuple[Line, ...]
    examples: tuple[tuple[str, str], ...]
    empty: str

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

    def renamed(self, old: str, new: str) -> Function:
        """The same function with one name of its code replaced."""

        def swap(text: str) -> str:
            return re.sub(rf"\b{old}\b", new, text)

        return Function(
            swap(self.signature),
            self.wants,
            tuple(Line(swap(line.code), line.note) for line in self.body),
            tuple((swap(call), result) for call, result in self.examples),
            swap(self.empty),
        )


def third_person(want: str) -> str:
    """`return the mean` becomes `returns the mean`."""
    verb, _, rest = want.partition(" ")
    if verb.endswith("ly"):
        verb = verb[:-1] + "ie"
    elif verb.endswith(("ch", "do")):
        verb += "e"
    return f"{verb}s {rest}".strip()


def parse(block: str) -> Function:
    """Read one block of the bank and run its example calls."""
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
    source = f"{signature}:\n" + "\n".join(line.code for line in body)
    scope: dict[str, object] = {}
    exec(source, scope)
    calls = [call.strip() for call in fields["calls"].split(" ; ") if call]
    return Function(
        signature,
        tuple(fields["want"].split(" | ")),
        tuple(body),
        tuple((call, repr(eval(call, scope))) for call in calls),
        fields["empty"],
    )


def load() -> list[Function]:
    """All functions of the bank, each of which has run."""
    return [parse(block) for block in BANK.read_text(encoding="utf-8").strip().split("\n\n")]
