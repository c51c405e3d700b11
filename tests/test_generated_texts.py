"""Tests that compare two answers are marked `same_text`: `make test` tries them on other kernels too.

Kernels round differently, from processor to processor and from batch shape to batch shape, so a greedy answer
may part from another at a near-tie. A test either allows for that (`baselines` and `assert_same_answer`
measure it), compares passes of the same shapes, or has a prompt without near-ties (`clear_prompt`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from typing_extensions import override

from app.engine.engine import Engine

TESTS = Path(__file__).parent
MARK = "same_text"
GENERATES = ("generate", "Runner")
"""What every answer of a test comes from: a method of engines and servers, and the lab's runs. So does the
method `answer`; functions of this name are looked into."""

Function = tuple[str, str]  # its module and name


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it, in the order in which they are written."""
    yield node
    for child in ast.iter_child_nodes(node):
        yield from parts(child)


class Suite:
    """All test modules, and which of their functions return what they had generated."""

    def __init__(self, modules: dict[str, ast.Module]) -> None:
        self.modules = modules
        self.functions: dict[Function, ast.FunctionDef] = {}
        self.imported: dict[Function, Function] = {}
        for module, tree in modules.items():
            for node in parts(tree):
                if isinstance(node, ast.FunctionDef):
                    self.functions[module, node.name] = node
                elif isinstance(node, ast.ImportFrom) and node.module:
                    for alias in node.names:
                        self.imported[module, alias.asname or alias.name] = node.module, alias.name
        self.parts = {function: list(parts(node)) for function, node in self.functions.items()}
        self.generating: set[Function] = set()
        before = -1
        while before < len(self.generating):
            before = len(self.generating)
            self.generating |= {
                function
                for function in self.functions.keys() - self.generating
                if not function[1].startswith("test_") and self.answers(function, self.parts[function])
            }

    def answers(self, function: Function, within: Iterable[ast.AST]) -> set[ast.Call]:
        """The calls that generate, among parts of a function."""
        return {
            part for part in within if isinstance(part, ast.Call) and self._generates(function, part.func)
        }

    def _generates(self, function: Function, called: ast.expr) -> bool:
        if isinstance(called, ast.Attribute):
            return called.attr in (*GENERATES, "answer")
        if not isinstance(called, ast.Name):
            return False
        return called.id in GENERATES or self._found(function, called.id) in self.generating

    def _found(self, function: Function, name: str) -> Function | None:
        """The function or fixture that a name stands for."""
        module = function[0]
        if (module, name) in self.functions:
            return module, name
        while module := module.rpartition(".")[0]:
            if (fixture := (f"{module}.conftest", name)) in self.functions:
                return fixture
        return self.imported.get((function[0], name))

    def unmarked(self) -> dict[str, list[str]]:
        """The tests without the mark that compare two answers, and where they do."""
        found: dict[str, list[str]] = {}
        for function, node in self.functions.items():
            if function[1].startswith("test_"):
                compared = [part for part in self.parts[function] if compares_ids(part)]
                if self.answers(function, self.parts[function]):
                    compared += Origins(self, function).compared
                if compared and not is_marked(self.modules[function[0]], node):
                    found[".".join(function)] = list(map(ast.unparse, compared))
        return found


class Origins(ast.NodeVisitor):
    """Which answers the variables of a test are made of, and its comparisons of what came from two."""

    def __init__(self, suite: Suite, function: Function) -> None:
        self._suite, self._function = suite, function
        self._names: dict[str, set[ast.Call]] = {}
        self.compared: list[ast.AST] = []
        self.visit(suite.functions[function])

    @override
    def visit(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                for name, value in zip(names, values, strict=False):
                    self._name(name, value)
            case ast.Assign(targets=[*targets], value=value):
                for target in targets:
                    self._name(target, value)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                self._name(target, value)
            case ast.Compare() if is_equality(node):
                sides = list(filter(None, map(self._origins, (node.left, *node.comparators))))
                if len(sides) > 1 and len(set.union(*sides)) > 1:
                    self.compared.append(node)
        self.generic_visit(node)

    def _name(self, target: ast.AST, value: ast.AST) -> None:
        for node in parts(target):
            if isinstance(node, ast.Name):
                self._names[node.id] = self._origins(value)

    def _origins(self, part: ast.AST) -> set[ast.Call]:
        """The calls that generated what a part of the test is made of."""
        inner = [node.target for node in parts(part) if isinstance(node, ast.comprehension)]
        own = {node.id for target in inner for node in parts(target) if isinstance(node, ast.Name)}
        used = {node.id for node in parts(part) if isinstance(node, ast.Name)} - own
        return self._suite.answers(self._function, parts(part)).union(
            *(self._names.get(name, ()) for name in used)
        )


def is_equality(node: ast.Compare) -> bool:
    return all(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops)


def compares_ids(part: ast.AST) -> bool:
    """Whether it has token ids beside token ids, or a set of them."""
    if isinstance(part, ast.Compare):
        return is_equality(part) and sum(map(tells_ids, (part.left, *part.comparators))) > 1
    return isinstance(part, ast.SetComp) and tells_ids(part)


def tells_ids(part: ast.AST) -> bool:
    """Whether token ids are in it, and not only their number."""
    match part:
        case ast.Call(func=ast.Name(id="len")):
            return False
        case ast.Attribute(attr="token_ids") | ast.Constant(value="token_ids"):
            return True
    return any(map(tells_ids, ast.iter_child_nodes(part)))


def is_marked(module: ast.Module, function: ast.FunctionDef) -> bool:
    """Whether the test, or its whole module, has the mark."""
    of_all = [
        node.value
        for node in module.body
        if isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node)
    ]
    return any(MARK in ast.unparse(mark) for mark in (*function.decorator_list, *of_all))


PLANTED = """
from tests.answers import answer, assert_same_answer

def counted(engine, **settings):
    trace = answer(engine, **settings)
    return len(trace.rounds), sum(round.accepted for round in trace.rounds)

def test_ids(engine):
    plain, drafted = answer(engine), answer(engine, strategy="suffix")
    assert plain.token_ids == drafted.token_ids

def test_texts(engine):
    first = answer(engine).text
    assert first.strip() and answer(engine, cold=True).text != first

def test_what_follows_from_a_text(engine):
    rounds, accepted = counted(engine)
    found = [counted(engine, strategy="suffix")]
    for other, _ in found:
        assert rounds == other

def test_of_many_runs(runs):
    assert len({run.token_ids for run in runs}) == 1

@pytest.mark.same_text
def test_with_the_mark(engine):
    assert answer(engine).token_ids == answer(engine).token_ids

def test_with_the_guard(engine):
    assert_same_answer(answer(engine), answer(engine))

def test_of_one_answer(engine):
    trace = answer(engine)
    ids = [token.id for round in trace.rounds for token in round.emitted]
    assert ids == list(trace.token_ids)[: len(ids)]
"""


def test_two_answers_that_are_compared_without_the_mark_are_found() -> None:
    answers = ast.parse((TESTS / "answers.py").read_bytes())
    suite = Suite({"tests.answers": answers, "tests.planted": ast.parse(PLANTED)})
    found = {name.rpartition(".")[2]: at for name, at in suite.unmarked().items()}
    assert found.keys() == {"test_ids", "test_texts", "test_what_follows_from_a_text", "test_of_many_runs"}
    assert found["test_what_follows_from_a_text"] == ["rounds == other"]


def test_two_answers_are_compared_only_in_tests_with_the_mark() -> None:
    files = sorted(TESTS.rglob("*.py"))
    names = (".".join(file.relative_to(TESTS.parent).with_suffix("").parts) for file in files)
    suite = Suite({name: ast.parse(file.read_bytes()) for name, file in zip(names, files, strict=True)})
    assert len(suite.generating) > 40
    assert suite.unmarked() == {}


@pytest.mark.same_text
def test_the_second_run_loads_models_for_other_kernels(pytestconfig: pytest.Config, engine: Engine) -> None:
    other = pytestconfig.getoption("--other-kernels")
    for part in engine.models.parts:
        chosen = part.options.repack, part.options.flash_attn, part.options.threads
        assert chosen == ((False, "off", 2) if other else (True, "auto", 0))
