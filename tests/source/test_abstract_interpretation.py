"""The abstract interpreter goes the ways that Python goes: read off which constants may arrive."""

import ast
from collections.abc import Sequence

import pytest

from jaxsight.source.abstract_interpretation.interpreter import AbstractInterpreter, AbstractState

Constants = frozenset[object]


class Constant(AbstractInterpreter[AbstractState[Constants], Constants]):
    """The lattice of sets of constants; what is computed of them is not known."""

    def expression(self, node: ast.expr) -> Constants:
        match node:
            case ast.Constant(value=value):
                return frozenset({value})
            case ast.Name(id=name):
                return self.state.names.get(name, frozenset())
        return self.either(self.parts(node))

    def assign(self, target: ast.expr, value: Constants, _source: ast.expr | None) -> None:
        assert isinstance(target, ast.Name)
        self.state.names[target.id] = value

    def unpacked(
        self, _value: Constants, targets: Sequence[ast.expr], source: ast.expr | None
    ) -> Sequence[Constants]:
        assert isinstance(source, ast.Tuple)
        return [self.evaluate(part) for part, _ in zip(source.elts, targets, strict=True)]

    def either(self, values: Sequence[Constants]) -> Constants:
        return frozenset().union(*values)


@pytest.mark.parametrize(
    ("code", "x"),
    [
        ("x = 1\nx = 2", {2}),
        ("a, x = 1, 2\na, x = x, a", {1}),
        ("if c:\n  x = 1\nelse:\n  x = 2", {1, 2}),
        ("x = 1\nif c:\n  x = 2", {1, 2}),
        ("x = 1\nif c:\n  x = 2\n  raise E", {1}),
        ("x = 1 if c else 2", {1, 2}),
        ("y = (x := 1)", {1}),
        ("x = 1\nfor _ in s:\n  x = 2", {1, 2}),
        ("x = 1\nfor _ in s:\n  x = 2\nelse:\n  x = 3", {3}),
        ("x = 1\nfor _ in s:\n  x = 2\n  break\nelse:\n  x = 3", {2, 3}),
        ("x = 1\nwhile True:\n  x = 2\n  if c:\n    break\n  x = 3", {2}),
        ("x = y = 1\nfor _ in s:\n  x = y\n  y = 2", {1, 2}),
        ("x = a = b = 1\nfor _ in s:\n  x = a\n  a = b\n  b = 2", {1, 2}),
        ("x = 1\nfor _ in s:\n  if c:\n    x = 2\n    continue\n  x = 3", {1, 2, 3}),
        ("x = 1\nwhile True:\n  x = 2\n  if c:\n    continue\n  return", set()),
        ("x = 1\ntry:\n  x = 2\nexcept E:\n  pass", {1, 2}),
        ("x = 1\ntry:\n  x = 2\nexcept E:\n  raise", {2}),
        ("try:\n  x = 1\nexcept E as x:\n  x = 2\nfinally:\n  y = 3", {1, 2}),
        ("x = 1\nmatch s:\n  case 1:\n    x = 2\n  case [x, *_]:\n    x = 3", {1, 2, 3}),
        ("with c as x:\n  x = 1", {1}),
        ("x = 1\ny = [x for x in (2, 3)]", {1}),
    ],
)
def test_joins_what_arrives_by_all_ways(code: str, x: set[object]) -> None:
    interpreter = Constant(AbstractState())
    interpreter.run(ast.parse(code).body)
    known = interpreter.state.names.get("x", frozenset()) if interpreter.is_reached else frozenset()
    assert known == x


def test_returns_what_all_ways_return() -> None:
    interpreter = Constant(AbstractState())
    (function,) = ast.parse("def f():\n  if c:\n    return 1\n  return 2\n  return 3").body
    assert isinstance(function, ast.FunctionDef)
    assert interpreter.run_function(function) == {1, 2}
