"""Changes of programs: mutants, which differ in one place, and rewrites, which are the same.

Both work on the text, so that a program keeps its look. What a change means is not known here: that
it is a difference, or none, is proved by `comparing`.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

from jaxsight.text import parsing

ChangeName = Literal["operator", "function", "axis", "dtype", "constant", "order"]
CHANGES: tuple[ChangeName, ...] = get_args(ChangeName)

_OPERATORS = {"+": "-", "-": "+", "*": "+", "/": "*", "@": "*", "<": ">=", ">": "<=", "<=": ">"}
_OPERATORS |= {">=": "<", "==": "!=", "!=": "=="}
_COMMUTATIVE = ("+", "*")
_ORDERED = ("-", "/", "@", "**", "<", ">")

_FUNCTIONS = (
    *("sin cos", "sinh tanh", "exp expm1", "log log1p", "sqrt cbrt", "floor ceil"),
    *("max min", "maximum minimum", "argmax argmin", "cummax cummin", "sum mean", "std var"),
    *("cumsum cumprod", "any all", "logical_and logical_or", "relu softplus", "gelu silu"),
    *("sigmoid log_sigmoid", "segment_max segment_min", "segment_sum segment_prod", "amax amin"),
    *("arcsinh arctan", "triu tril", "less greater", "softmax log_softmax", "square abs"),
    *("vstack hstack", "flipud fliplr", "scatter_add scatter_mul", "reduce_max reduce_min"),
)
_OTHER_FUNCTION = {
    name: other for pair in map(str.split, _FUNCTIONS) for name, other in (pair, reversed(pair))
}

_DTYPES = ("float16", "bfloat16", "float32", "float64"), ("int8", "int16", "int32", "int64")
_UNSIGNED, _COMPLEX = ("uint8", "uint16", "uint32"), ("complex64", "complex128")
_OTHER_DTYPES = {
    name: [other for other in family if other != name]
    for family in (*_DTYPES, _UNSIGNED, _COMPLEX)
    for name in family
}

_AXES = frozenset({"axis", "dimension", "axes", "in_axes", "out_axes"})
_AXIS_VALUES = ("-1", "0", "1", "2")

_NAMES = (
    *("a", "acc", "aux", "base", "block", "buf", "c", "cur", "d", "delta", "e", "g", "h", "inner"),
    *("k", "lhs", "mid", "nxt", "out", "part", "piece", "q", "r", "rhs", "s", "state", "step", "t"),
    *("temp", "term", "u", "v", "val", "w", "work", "y", "z"),
)
"""Names that locals get, a choice: those that people use."""


@dataclass(frozen=True, slots=True)
class TextChange:
    """Another text for a part of a module; positions are in code points."""

    name: ChangeName
    start: int
    end: int
    text: str

    def applied(self, module: str) -> str:
        """Return the module with this change."""
        return module[: self.start] + self.text + module[self.end :]


class _Places:
    """Where nodes are in a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def of(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return where a node begins and ends."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first = self._at(node.lineno, node.col_offset)
        return first, self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        before = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(before)


def mutants(text: str, chance: random.Random) -> Iterator[tuple[ChangeName, str]]:
    """Yield modules that differ from one in a single place, of changing kinds, in random order."""
    by_name: dict[ChangeName, list[TextChange]] = {name: [] for name in CHANGES}
    for change in _mutations(text, chance):
        if change.applied(text) != text:  # `x - x` in the other order is no change
            by_name[change.name].append(change)
    waiting = [changes for changes in by_name.values() if changes]
    for changes in waiting:
        chance.shuffle(changes)
    while waiting:
        chance.shuffle(waiting)
        for changes in waiting:
            change = changes.pop()
            yield change.name, change.applied(text)
        waiting = [changes for changes in waiting if changes]


def rewritten(text: str, chance: random.Random) -> str:
    """Return a module with other names of locals, and other orders where they have no effect."""
    for find in (_commuted, _reordered):
        changes = list(find(text))
        if changes:
            text = chance.choice(changes).applied(text)
    return _renamed(text, chance)


def _nodes(text: str) -> tuple[_Places, list[ast.AST]]:
    """Return the nodes in the bodies of a module's functions."""
    tree = parsing.parse(text)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    nodes = [node for function in functions for part in function.body for node in ast.walk(part)]
    return _Places(text), nodes


def _mutations(text: str, chance: random.Random) -> Iterator[TextChange]:
    places, nodes = _nodes(text)
    for node in nodes:
        match node:
            case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
                yield from _of_operator(places, node, left, right)
                for operand in (left, right):
                    if isinstance(operand, ast.Constant):
                        yield from _of_constant(places, operand, chance)
            case ast.Call(func=ast.Attribute() as function):
                yield from _of_name(places, function, "function", _OTHER_FUNCTION)
                if len(node.args) == 2 and not any(isinstance(a, ast.Starred) for a in node.args):
                    yield _exchanged(places, node.args[0], node.args[1])
                for argument in node.args:
                    if isinstance(argument, ast.Constant):
                        yield from _of_constant(places, argument, chance)
            case ast.Attribute(attr=name) if name in _OTHER_DTYPES:
                other = chance.choice(_OTHER_DTYPES[name])
                yield from _of_name(places, node, "dtype", {name: other})
            case ast.keyword(arg=str(name), value=value) if name in _AXES:
                axis = ast.unparse(value)
                if axis in _AXIS_VALUES:
                    start, end = places.of(value)
                    other = chance.choice([each for each in _AXIS_VALUES if each != axis])
                    yield TextChange("axis", start, end, other)
            case ast.Return(value=ast.Tuple(elts=[first, second, *_])):
                yield _exchanged(places, first, second)


def _of_operator(
    places: _Places, node: ast.BinOp | ast.Compare, left: ast.expr, right: ast.expr
) -> Iterator[TextChange]:
    """Yield another operator, and the operands in another order."""
    start, end, symbol = _operator(places, left, right)
    if symbol in _OPERATORS:
        yield TextChange("operator", start, end, _OPERATORS[symbol])
    if symbol in _ORDERED:
        yield _swapped(places, node, (start, end))


def _operator(places: _Places, left: ast.expr, right: ast.expr) -> tuple[int, int, str]:
    """Return where an operator is between its operands, and which one."""
    offset, until = places.of(left)[1], places.of(right)[0]
    found = re.search(r"[^\s()#\\]+", places.text[offset:until])
    if found is None:
        return offset, offset, ""
    return offset + found.start(), offset + found.end(), found[0]


def _swapped(places: _Places, node: ast.expr, operator: tuple[int, int]) -> TextChange:
    """Return a binary operation with its operands, and their parentheses, exchanged."""
    start, end = places.of(node)
    left = places.text[start : operator[0]]
    right = places.text[operator[1] : end]
    middle = places.text[slice(*operator)]
    text = f"{right.strip()} {middle} {left.strip()}"
    return TextChange("order", start, end, text)


def _exchanged(
    places: _Places, first: ast.expr | ast.Assign, second: ast.expr | ast.Assign
) -> TextChange:
    """Return two expressions, or statements, in the other order."""
    (start, stop), (again, end) = places.of(first), places.of(second)
    text = places.text
    return TextChange("order", start, end, text[again:end] + text[stop:again] + text[start:stop])


def _of_name(
    places: _Places, node: ast.Attribute, name: ChangeName, others: dict[str, str]
) -> Iterator[TextChange]:
    if other := others.get(node.attr):
        end = places.of(node)[1]
        yield TextChange(name, end - len(node.attr), end, other)


def _of_constant(
    places: _Places, node: ast.Constant, chance: random.Random
) -> Iterator[TextChange]:
    start, end = places.of(node)
    match node.value:
        case bool():
            return
        case int(value):
            yield TextChange("constant", start, end, str(value + chance.choice((1, 2))))
        case float(value):
            # A choice: a half more or less is more than rounding, and seldom out of a domain.
            other = float(f"{value * chance.choice((0.5, 0.75, 1.25, 1.5)):.4g}")
            yield TextChange("constant", start, end, repr(other))


def _commuted(text: str) -> Iterator[TextChange]:
    """Yield sums and products with their operands exchanged."""
    places, nodes = _nodes(text)
    for node in nodes:
        if isinstance(node, ast.BinOp):
            start, end, symbol = _operator(places, node.left, node.right)
            if symbol in _COMMUTATIVE and "\n" not in places.text[slice(*places.of(node))]:
                yield _swapped(places, node, (start, end))


def _reordered(text: str) -> Iterator[TextChange]:
    """Yield neighbouring assignments in the other order, where neither uses the other's name."""
    places, nodes = _nodes(text)
    bodies = [node.body for node in parsing.parse(text).body if isinstance(node, ast.FunctionDef)]
    bodies += [node.body for node in nodes if isinstance(node, ast.FunctionDef)]
    for body in bodies:
        for first, second in pairwise(body):
            if not (isinstance(first, ast.Assign) and isinstance(second, ast.Assign)):
                continue
            (stored, read), (other_stored, other_read) = _names_of(first), _names_of(second)
            if not (stored & (other_stored | other_read) or other_stored & read):
                yield _exchanged(places, first, second)


def _names_of(node: ast.AST) -> tuple[set[str], set[str]]:
    """Return the names that a statement stores, and those that it reads."""
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    stored = {each.id for each in names if isinstance(each.ctx, ast.Store)}
    return stored, {each.id for each in names} - stored


def _renamed(text: str, chance: random.Random) -> str:
    """Return a module whose locals have other names; as it is if it has formatted texts."""
    tree = parsing.parse(text)
    places, nodes = _nodes(text)
    names = [node for node in nodes if isinstance(node, ast.Name)]
    everywhere = list(ast.walk(tree))
    if any(isinstance(node, ast.JoinedStr | ast.Global | ast.Nonlocal) for node in everywhere):
        return text
    kept = {
        each.arg
        for node in everywhere
        if isinstance(node, ast.arguments)
        for each in [*node.posonlyargs, *node.args, *node.kwonlyargs]
    }
    kept |= {
        name
        for node in tree.body
        for name in _names_of(node)[0]
        if not isinstance(node, ast.FunctionDef)
    }
    stored = dict.fromkeys(
        node.id for node in names if isinstance(node.ctx, ast.Store) and node.id not in kept
    )
    used = set(re.findall(r"\w+", text)) | set(keyword.kwlist) | set(dir(builtins))
    free = [name for name in _NAMES if name not in used]
    chance.shuffle(free)
    free += [f"{name}_{len(free)}" for name in stored]
    others = dict(zip(stored, free, strict=False))
    for node in sorted(names, key=lambda node: places.of(node), reverse=True):
        if node.id in others:
            start, end = places.of(node)
            text = text[:start] + others[node.id] + text[end:]
    return text
