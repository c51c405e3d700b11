"""Change one line of a room at a time and see whether the room's own tests fail.

    python tests/benchmarks/mutations.py engine/record [--count 30] [--seed 1]

Works in a copy of the checkout. A change whose tests still pass is printed: either a test is missing, or the
program does the same. Texts, logging, annotations and error messages are not changed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_OTHER: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
_LIBRARIES = ("gguf", "httpx2", "huggingface_hub", "llama_cpp", "pyqtgraph", "scipy.stats")
_OPTIONS = ("-x", "-q", "-n0", "-p", "no:randomly", "-p", "no:cacheprovider")
_QUIET = {"QT_QPA_PLATFORM": "offscreen", "GOMP_SPINCOUNT": "1000", "OPENBLAS_NUM_THREADS": "1"}
_SILENT = ("log", "_log", "logger", "logging", "warnings", "param")  # calls whose arguments are words


@dataclass(frozen=True)
class Mutant:
    path: Path  # below the root
    line: int
    kind: str
    start: int  # bytes of the file that are replaced
    end: int
    text: str


def mutants(path: Path) -> Iterator[Mutant]:
    """All changes of one file."""
    source = (ROOT / path).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def made(kind: str, old: ast.stmt | ast.expr, text: str) -> Mutant:
        end = starts[(old.end_lineno or 1) - 1] + (old.end_col_offset or 0)
        return Mutant(path, old.lineno, kind, starts[old.lineno - 1] + old.col_offset, end, text)

    for node in _behaviour(ast.parse(source)):
        match node:
            case ast.Compare(ops=[op]) if type(op) in _OTHER:
                changed = ast.Compare(node.left, [_OTHER[type(op)]()], node.comparators)
                yield made("comparison", node, f"({ast.unparse(changed)})")
            case ast.BoolOp():
                yield made(
                    "and/or", node, f"({ast.unparse(ast.BoolOp(_OTHER[type(node.op)](), node.values))})"
                )
                for dropped in node.values:
                    rest = [value for value in node.values if value is not dropped]
                    text = ast.unparse(ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0])
                    yield made("part of a condition dropped", node, f"({text})")
            case ast.BinOp() if type(node.op) in _OTHER:
                changed_op = ast.BinOp(node.left, _OTHER[type(node.op)](), node.right)
                yield made("sign", node, f"({ast.unparse(changed_op)})")
            case ast.Constant(value=bool(value)):
                yield made("truth", node, str(not value))
            case ast.Constant(value=int(value)):
                yield made("off by one", node, f"({value + 1})")
            case ast.Call(func=ast.Name(id="min" | "max" as name)):
                yield made("limit", node.func, "max" if name == "min" else "min")
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                yield made("sign", node, f"({ast.unparse(node.operand)})")
            case ast.If(test=test) | ast.IfExp(test=test):
                yield made("guard dropped", test, "False")
            case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Continue() | ast.Break():
                yield made("statement dropped", node, "pass")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
                yield made("statement dropped", node, "pass")
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield made("nothing returned", value, "None")


def _behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below `node` that decide what the program does, not what it says or which types it names."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
                continue
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name))) if name in _SILENT:
                continue
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))) if name in _SILENT:
                continue
            case ast.ClassDef():  # not what its decorator or base class is told
                yield from _behaviour(ast.Module(child.body, []))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from (part for line in child.body for part in _behaviour(ast.Module([line], [])))
            case ast.AnnAssign(value=value):
                yield from _behaviour(ast.Tuple([value])) if value is not None else ()
            case _:
                yield child
                yield from _behaviour(child)


def _tests_pass(copy: Path, tests: list[Path], limit: float) -> bool:
    """Run the tests in a fork of this process, which has loaded the libraries and nothing of the checkout."""
    child = os.fork()
    if not child:
        os.setsid()
        os.chdir(copy)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        sys.path[0] = str(copy)
        os._exit(pytest.main([*_OPTIONS, *map(str, tests)]))
    end, status = time.monotonic() + limit, 1
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # and the engines that it left
    if not done:
        os.waitpid(child, 0)
    return done != 0 and status == 0


def _nearest_first(tests: list[Path], source: Path) -> list[Path]:
    """The order in which the tests that most likely fail come first: those that import the changed file, then
    those of a similar name."""
    words, module = set(source.stem.split("_")), ".".join(source.with_suffix("").parts)
    return sorted(
        tests,
        key=lambda test: (module not in (ROOT / test).read_text(), -len(words & set(test.stem.split("_")))),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("room", help="a folder or file below app/, such as engine/record")
    parser.add_argument("--count", type=int, default=30, help="how many changes are tried")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument(
        "--tests", nargs="*", type=Path, help="instead of the folder of the same name in tests/"
    )
    args = parser.parse_args()
    os.environ.update(_QUIET)
    sys.dont_write_bytecode = True
    for name in _LIBRARIES:
        importlib.import_module(name)

    room = Path("app") / args.room
    files = [room] if room.suffix else sorted(path.relative_to(ROOT) for path in (ROOT / room).rglob("*.py"))
    folder = ROOT / "tests" / (Path(args.room).parent if room.suffix else args.room)
    tests = args.tests or sorted(path.relative_to(ROOT) for path in folder.rglob("test_*.py"))
    every = [mutant for path in files for mutant in mutants(path)]
    chosen = random.Random(args.seed).sample(every, min(args.count, len(every)))
    with tempfile.TemporaryDirectory() as made:
        copy = Path(made) / "checkout"
        shutil.copytree(
            ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(".venv", ".git", "__pycache__")
        )
        started = time.monotonic()
        if not _tests_pass(copy, tests, 3600):
            sys.exit("The tests fail without any change.")
        limit = 60 + 4 * (time.monotonic() - started)
        killed = 0
        for mutant in chosen:
            source = (ROOT / mutant.path).read_bytes()
            changed = source[: mutant.start] + mutant.text.encode() + source[mutant.end :]
            (copy / mutant.path).write_bytes(changed)
            if _tests_pass(copy, _nearest_first(tests, mutant.path), limit):
                before = source[mutant.start : mutant.end].decode()
                print(
                    f"{mutant.path}:{mutant.line}: {mutant.kind}\n  - {before}\n  + {mutant.text}", flush=True
                )
            else:
                killed += 1
            (copy / mutant.path).write_bytes(source)
    print(f"{args.room}: {killed} of {len(chosen)} killed, of {len(every)} possible changes")


if __name__ == "__main__":
    main()
