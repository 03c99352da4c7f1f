"""Python expressions as `ast` nodes: what builds them, and questions about them.

A node never changes once it is built, because expressions share their parts: `mapped` and `changed`
return new nodes. Some have attributes that Python's grammar has no place for: a public path has its
text, `path`, and the name at its root the `module` to import, unless every module imports that; a
value that the module has only once has the base of its name, `once`; the passes do not look into an
expression that `is_whole`.
"""

from __future__ import annotations

import ast
import functools
import keyword
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

SHORT = {
    "jax.numpy": "jnp", "jax.lax": "lax", "numpy": "np", "jax.extend.core.primitives": "primitives",
    "jax.experimental.pallas": "pl", "jax.experimental.pallas.tpu": "pltpu",
    "jax.experimental.pallas.triton": "plgpu",
}  # fmt: skip
"""The names under which a written module imports modules."""

IMPORTS = {
    "jax": "import jax", "jnp": "import jax.numpy as jnp", "lax": "from jax import lax",
    "np": "import numpy as np", "primitives": "from jax.extend.core import primitives",
    "ad": "from jax.interpreters import ad", "api_util": "from jax import api_util",
    "linear_util": "from jax.extend import linear_util",
    "pl": "from jax.experimental import pallas as pl",
    "pltpu": "from jax.experimental.pallas import tpu as pltpu",
    "plgpu": "from jax.experimental.pallas import triton as plgpu",
}  # fmt: skip
"""The import statement of each name in written modules."""

AT_HAND = frozenset(
    {
        "jax", "jax.checkpoint_policies", "jax.debug", "jax.dtypes", "jax.ffi", "jax.lax",
        "jax.lax.linalg", "jax.memory", "jax.nn", "jax.numpy", "jax.numpy.fft", "jax.numpy.linalg",
        "jax.random", "jax.sharding", "jax.tree", "jax.tree_util",
    }
)  # fmt: skip
"""Modules that `import jax` imports."""

Item: TypeAlias = ast.expr | ast.keyword
"""An argument of a call."""

_Node = TypeVar("_Node", bound=ast.AST)

NONE, TRUE, FALSE = ast.Constant(None), ast.Constant(True), ast.Constant(False)
ELLIPSIS, COLON = ast.Constant(...), ast.Slice()

_OPERATORS: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod,
    "@": ast.MatMult, "**": ast.Pow, "&": ast.BitAnd, "|": ast.BitOr, "^": ast.BitXor,
    "<<": ast.LShift, ">>": ast.RShift,
}  # fmt: skip
_COMPARISONS: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE, "==": ast.Eq, "!=": ast.NotEq,
    "is": ast.Is, "is not": ast.IsNot, "in": ast.In, "not in": ast.NotIn,
}  # fmt: skip
_UNARY: dict[str, type[ast.unaryop]] = {
    "-": ast.USub, "+": ast.UAdd, "~": ast.Invert, "not ": ast.Not,
}  # fmt: skip

SYMBOLS: dict[type[ast.AST], str] = {
    kind: symbol
    for symbols in (_OPERATORS, _COMPARISONS, _UNARY)
    for symbol, kind in symbols.items()
} | {ast.And: "and", ast.Or: "or"}
"""How operators are written."""


@functools.lru_cache(maxsize=4096)  # the public names of a large text
def public(path: str, module: str = "") -> ast.Name | ast.Attribute:
    """Return a name, or a public path such as `jnp.float32`.

    `module` has to be imported for it, unless a written module always imports that.
    """
    root, *attributes = path.split(".")
    expr: ast.Name | ast.Attribute = ast.Name(root)
    if module:
        vars(expr)["module"] = module
    for attribute in attributes:
        expr = ast.Attribute(expr, attribute)
    if module or (attributes and root in IMPORTS):
        vars(expr)["path"] = path
    return expr


@functools.lru_cache(maxsize=4096)
def parsed(text: str) -> ast.expr:
    """Return the expression of a text that the passes do not look into, such as `jax.devices()`."""
    (statement,) = parse(text)
    assert isinstance(statement, ast.Expr)
    return changed(statement.value, is_whole=True)


def parse(text: str) -> list[ast.stmt]:
    """Return the statements of a text, with numbers as they are spelled: `1e-3`, not `0.001`."""
    module, rows = ast.parse(text), text.encode().split(b"\n")
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | complex):
            row = rows[node.lineno - 1]
            node.kind = row[node.col_offset : node.end_col_offset].decode()
    return module.body


def slot(index: int) -> ast.Name:
    """Return the name that stands for the `index`-th operand of the equation being spelled."""
    return ast.Name(f"a{index}")


def call(function: str | ast.expr, *arguments: Item, **keywords: ast.expr) -> ast.Call:
    """Return a call; keywords come last, in the order given."""
    positional = [part for part in arguments if not isinstance(part, ast.keyword)]
    named = [part for part in arguments if isinstance(part, ast.keyword)]
    named += [ast.keyword(key, value) for key, value in keywords.items()]
    return ast.Call(public(function) if isinstance(function, str) else function, positional, named)


def subscript(value: ast.expr, *indices: ast.expr) -> ast.Subscript:
    """Return `value[indices]`."""
    return ast.Subscript(value, indices[0] if len(indices) == 1 else ast.Tuple([*indices]))


def span(start: int | None, stop: int | None, step: int = 1) -> ast.Slice:
    """Return `start:stop:step`, without a step of one and a start of zero."""
    return ast.Slice(
        ast.Constant(int(start)) if start else None,
        None if stop is None else ast.Constant(int(stop)),
        None if step == 1 else ast.Constant(int(step)),
    )


def binary(operator: str, left: ast.expr, right: ast.expr) -> ast.BinOp | ast.Compare:
    """Return `left operator right`, also for comparisons."""
    if operator in _COMPARISONS:
        return ast.Compare(left, [_COMPARISONS[operator]()], [right])
    return ast.BinOp(left, _OPERATORS[operator](), right)


def unary(operator: str, value: ast.expr) -> ast.UnaryOp:
    """Return `operator value`, such as `-x`."""
    return ast.UnaryOp(_UNARY[operator](), value)


def tuple_(elements: Iterable[ast.expr]) -> ast.Tuple:
    return ast.Tuple([*elements])


def list_(elements: Iterable[ast.expr]) -> ast.List:
    return ast.List([*elements])


def dict_(pairs: Iterable[tuple[ast.expr, ast.expr]]) -> ast.Dict:
    keys: list[ast.expr | None] = []
    values: list[ast.expr] = []
    for key, value in pairs:
        keys.append(key)
        values.append(value)
    return ast.Dict(keys, values)


def lambda_(parameters: Sequence[str], body: ast.expr) -> ast.Lambda:
    return ast.Lambda(arguments(parameters), body)


def arguments(parameters: Sequence[str]) -> ast.arguments:
    """Return parameters as in a `def`, with defaults, `*` and `/`."""
    function = ast.parse(f"lambda {', '.join(parameters)}: 0", mode="eval").body
    assert isinstance(function, ast.Lambda)
    return function.args


def generators(target: ast.expr, values: ast.expr) -> list[ast.comprehension]:
    """Return `for target in values` of a comprehension."""
    return [ast.comprehension(target, values, [], 0)]


def once(base: str, value: ast.Call) -> ast.Call:
    """Return an argument without operands that a module has once, under a name like `base`."""
    return changed(value, once=base)


def is_identifier(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def dotted(expr: ast.AST) -> str:
    """Return the text of a name or of a public path; empty for other expressions."""
    if "path" in vars(expr):
        return str(vars(expr)["path"])
    attributes: list[str] = []
    while isinstance(expr, ast.Attribute):
        attributes.append(expr.attr)
        expr = expr.value
    if not isinstance(expr, ast.Name):
        return ""
    if not attributes:
        return expr.id
    is_public = expr.id in IMPORTS or "module" in vars(expr)
    return ".".join((expr.id, *reversed(attributes))) if is_public else ""


def is_atom(expr: ast.AST) -> bool:
    """Return whether an expression is read as a whole: a name, a public path, a number, a slice."""
    kind = type(expr)
    if kind is ast.Name or kind is ast.Constant:
        return True
    return (
        kind is ast.Slice
        or "is_whole" in vars(expr)
        or bool(dotted(expr))
        or (kind is ast.UnaryOp and is_number(expr))
    )


def is_number(expr: object) -> bool:
    """Return whether an expression is a Python number, or one with a NumPy dtype."""
    match expr:
        case ast.Constant(number):
            return isinstance(number, int | float)
        case ast.UnaryOp(ast.USub(), ast.Constant() | ast.Attribute() as operand):
            return is_number(operand)
        case ast.Attribute(ast.Name("jnp"), "inf" | "nan"):
            return True
        case ast.Call(function, [inner], []):
            return dotted(function).startswith(("np.", "jnp.")) and is_number(inner)
        case _:
            return False


def uses_python(expr: ast.AST) -> bool:
    """Return whether an expression has operators, methods or indices.

    Their meaning depends on the types of the values.
    """
    match expr:
        case _ if is_atom(expr) or "once" in vars(expr):
            return False
        case ast.Lambda(_, body):
            return uses_python(body)
        case ast.Call() | ast.Tuple() | ast.List() | ast.Set() | ast.Dict():
            return any(map(uses_python, parts_of(expr)))
        case ast.keyword(_, value) | ast.Starred(value):
            return uses_python(value)
        case _:
            return True


def indices_of(expr: ast.Subscript) -> list[ast.expr]:
    """Return what stands in the brackets of an expression."""
    inside = expr.slice
    return inside.elts if isinstance(inside, ast.Tuple) and len(inside.elts) > 1 else [inside]


_PARTS = (ast.expr, ast.keyword, ast.comprehension, ast.stmt, ast.withitem)


def children(node: ast.AST) -> Iterator[Any]:
    """Yield the expressions, and the statements, directly in a node."""
    return (part for part in ast.iter_child_nodes(node) if isinstance(part, _PARTS))


def parts_of(expr: Any) -> Sequence[Any]:
    """Return the parts of an expression that Python evaluates before the expression, in order."""
    match expr:
        case ast.Name() | ast.Constant() | ast.Lambda() | ast.IfExp():
            return ()
        case _ if "is_whole" in vars(expr) or "once" in vars(expr):
            return ()
        case ast.Subscript(value):
            return (value, *indices_of(expr))
        case ast.ListComp(body, [each]) | ast.GeneratorExp(body, [each]):
            return (each.iter, body)
        case ast.DictComp(key, value, [each]):
            return (each.iter, key, value)
        case _:
            return [*children(expr)]


def modules_in(expr: ast.AST) -> set[str]:
    """Return the modules to import for the names in an expression or a statement."""
    names = (node for node in ast.walk(expr) if type(node) is ast.Name)
    return {vars(node)["module"] for node in names if "module" in vars(node)}


def changed(node: _Node, **fields: object) -> _Node:
    """Return a copy of a node with other fields or attributes."""
    copy: _Node = type(node).__new__(type(node))
    vars(copy).update(vars(node), **fields)
    return copy


def mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """Return a node with each of its parts changed; the node itself if no part changes."""
    fields: dict[str, object] = {}
    for field, part in vars(node).items():
        if type(part) is list:
            others = [change(each) if isinstance(each, _PARTS) else each for each in part]
            if any(map(operator.is_not, others, part)):
                fields[field] = others
        elif isinstance(part, _PARTS) and (other := change(part)) is not part:
            fields[field] = other
    return changed(node, **fields) if fields else node


def substituted(expr: Any, values: Mapping[str, ast.expr]) -> Any:
    """Return `expr` with other expressions in place of names."""
    if type(expr) is ast.Name:
        return values.get(expr.id, expr)
    if type(expr) is ast.Constant or "path" in vars(expr):
        return expr
    return mapped(expr, lambda part: substituted(part, values))


def with_operands(expr: ast.expr, operands: Sequence[ast.expr]) -> Any:
    """Return `expr` with an operand in place of each slot."""
    return substituted(expr, {slot(i).id: operand for i, operand in enumerate(operands)})


def without_once(expr: Any, named: Callable[[str, ast.expr], ast.expr]) -> Any:
    """Return `expr` with each part that is written once replaced by its name."""
    if (base := vars(expr).get("once")) is not None:
        return named(base, expr)
    if type(expr) is ast.Name or type(expr) is ast.Constant or "path" in vars(expr):
        return expr
    return mapped(expr, lambda part: without_once(part, named))


def quoted(text: str) -> str:
    """Return a string literal, in double quotes as formatters write it."""
    shown = repr(text)
    if shown.startswith("'") and '"' not in text:
        return '"' + shown[1:-1].replace("\\'", "'") + '"'
    return shown
