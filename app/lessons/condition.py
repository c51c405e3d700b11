"""Conditions on the facts of a recorded answer, such as "round.accepted == 0 and answer.rate < 0.5"."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from app.engine.errors import UserError

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Add: operator.add, ast.Sub: operator.sub,
    ast.Mult: operator.mul, ast.Div: operator.truediv, ast.In: lambda part, whole: part in whole,
}  # fmt: skip


class ConditionError(UserError):
    """A condition is not understood, or names a fact that does not exist."""


def holds(condition: str, facts: Mapping[str, object]) -> bool:
    """Whether a condition holds. A comparison with a fact that does not apply (None) never does.

    Raises ConditionError.
    """
    try:
        return bool(_value(ast.parse(condition, mode="eval").body, facts))
    except (SyntaxError, KeyError, AttributeError) as error:
        raise ConditionError(f"The condition {condition!r} is not understood: {error}.") from error


def _value(node: ast.expr, facts: Mapping[str, object]) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return facts[name]
        case ast.Attribute(value=of, attr=name):
            return getattr(_value(of, facts), name)
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, facts) for part in parts)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return any(_value(part, facts) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return not _value(part, facts)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _applied(op, _value(left, facts), _value(right, facts))
        case ast.Compare(left=left, ops=ops, comparators=rights):
            values = [_value(part, facts) for part in (left, *rights)]
            return all(_applied(op, *pair) for op, pair in zip(ops, pairwise(values), strict=True))
    raise SyntaxError(ast.unparse(node))


def _applied(op: ast.AST, left: Any, right: Any) -> Any:
    if type(op) not in _OPERATORS:
        raise SyntaxError(type(op).__name__)
    if left is None or right is None:
        return False if isinstance(op, ast.cmpop) else None
    return _OPERATORS[type(op)](left, right)
