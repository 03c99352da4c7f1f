"""Writes the syntax tree of a program as text, as `ruff format` writes it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from jaxsight.dataset.generating.expansion import Expansion
from jaxsight.dataset.program import Argument, Array
from jaxsight.sourcerizer.text import exprs, statements
from jaxsight.sourcerizer.text.layout import STEP, WIDTH, flat

SHORT = {
    **{"float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16", "bool": "bool"},
    **{"int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64"},
    **{"uint8": "u8", "uint16": "u16", "uint32": "u32"},
    **{"complex64": "c64", "complex128": "c128", "key": "key<fry>"},
}
"""Dtypes as jaxprs print them."""

IMPORTS = {
    "np": "import numpy as np",
    "jnp": "import jax.numpy as jnp",
    "jax": "import jax",
    "lax": "from jax import lax",
    "partial": "from functools import partial",
    "NamedTuple": "from typing import NamedTuple",
    "dataclass": "from dataclasses import dataclass",
    "checkpoint_name": "from jax.ad_checkpoint import checkpoint_name",
    "linear_call": "from jax.custom_derivatives import linear_call",
    "AxisType": "from jax.sharding import AxisType",
    "NamedSharding": "from jax.sharding import NamedSharding",
    "PartitionSpec": "from jax.sharding import PartitionSpec",
}
_STANDARD = ("dataclasses", "functools", "typing")

_OPERATORS = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//"},
    **{ast.Mod: "%", ast.MatMult: "@", ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>"},
    **{ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.USub: "-", ast.Invert: "~"},
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="},
}
_LONGEST = 66
"""Calls inside of longer expressions are assigned to names."""


def module(program: Expansion) -> str:
    """Return the text of a program; its parameters that nothing reads are removed from it."""
    body = _tidied(program.body)
    above = _tidied(program.module, everything=body)
    read = _read([*body, *above])
    for name in [name for name in program.parameters if not read[name]]:
        del program.parameters[name]
    while program.name in {*read, *program.parameters}:
        program.name += "_of"
    docstring = [
        f"{program.title.rstrip('.')}.",
        *("", "Example inputs:"),
        *(f"    {name}: {notation(item)}" for name, item in program.parameters.items()),
    ]
    function = statements.Function(
        program.name, tuple(program.parameters), _block(body), [], "\n".join(docstring)
    )
    parts = [_lines([each]) for each in _block(above)] + [_lines([function])]
    imports = _imports([*above, *body])
    text = imports
    for part in parts:
        is_block = part.startswith(("def ", "class ", "@")) or _is_block(text)
        text += ("\n\n\n" if is_block else "\n\n" if text == imports else "\n") + part
    return text.lstrip("\n") + "\n"


def _is_block(text: str) -> bool:
    """Return whether a module ends inside of a function or a class."""
    return text.rpartition("\n")[2].startswith(" ")


# What is not needed, and what is too long


def _tidied(body: Sequence[ast.stmt], everything: Sequence[ast.stmt] = ()) -> list[ast.stmt]:
    """Return statements without those whose names nothing reads, none of them too long."""
    kept = list(body)
    while True:
        read = _read([*kept, *everything])
        fewer = _without_unread(kept, read, {"_"})
        if ast.dump(ast.Module(fewer, [])) == ast.dump(ast.Module(kept, [])):
            break
        kept = fewer
    taken = {*_read([*kept, *everything]), *_assigned([*kept, *everything])}
    return list(_short(kept, 1, taken))


def _nodes(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        yield from ast.walk(statement)


def _read(body: Sequence[ast.stmt]) -> Counter[str]:
    """Return how often each name is read."""
    stored = {
        id(node)
        for each in _nodes(body)
        for target in _targets(each)
        for node in ast.walk(target)
        if isinstance(node, ast.Name)
    }
    names = (node for node in _nodes(body) if isinstance(node, ast.Name))
    return Counter(node.id for node in names if id(node) not in stored)


def _targets(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Assign(targets):
            return targets
        case ast.For(target) | ast.comprehension(target):
            return [target]
    return []


def _assigned(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in _nodes(body):
        match node:
            case ast.FunctionDef(name) | ast.ClassDef(name):
                yield name
            case ast.Name(name) | ast.arg(name):
                yield name


def _without_unread(
    body: Sequence[ast.stmt], read: Counter[str], always: set[str]
) -> list[ast.stmt]:
    kept: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.Assign([ast.Name(name)]) if not read[name]:
                continue
            case ast.FunctionDef(name) if not read[name] and not _is_rule(statement):
                continue
            case ast.FunctionDef() | ast.For() | ast.With() | ast.If():
                statement.body = _without_unread(statement.body, read, always)
        kept.append(statement)
    return kept


def _is_rule(function: ast.FunctionDef) -> bool:
    """Return whether a decorator registers a function."""
    return any(
        isinstance(each, ast.Attribute) and each.attr == "defjvp"
        for each in function.decorator_list
    )


def _short(body: Sequence[ast.stmt], depth: int, taken: set[str]) -> Iterator[ast.stmt]:
    """Yield statements whose long expressions have been split."""
    for statement in body:
        match statement:
            case ast.Assign() | ast.Return() | ast.Expr():
                before: list[ast.stmt] = []
                while len(ast.unparse(statement.value or statement)) + 4 * depth > _LONGEST:
                    call = _inner_call(statement)
                    if call is None:
                        break
                    name = next(
                        name
                        for number in range(1, 99)
                        if (name := f"part{number if number > 1 else ''}") not in taken
                    )
                    taken.add(name)
                    before.append(ast.Assign([ast.Name(name)], call))
                    statement = _Replace(ast.dump(call), name).visit(statement)
                yield from before
            case ast.FunctionDef() | ast.For() | ast.With() | ast.If():
                statement.body = list(_short(statement.body, depth + 1, taken))
        yield statement


def _inner_call(statement: ast.stmt) -> ast.expr | None:
    """Return the longest call inside of an expression that is worth a name."""
    value = getattr(statement, "value", None)
    scopes = (ast.Lambda, ast.GeneratorExp, ast.ListComp)
    if any(isinstance(node, scopes) for node in ast.walk(statement)):
        return None
    calls = [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and node is not value
        and 16 <= len(ast.unparse(node)) <= _LONGEST
    ]
    return max(calls, key=lambda node: len(ast.unparse(node)), default=None)


class _Replace(ast.NodeTransformer):
    """Replaces an expression by a name."""

    def __init__(self, dump: str, name: str) -> None:
        self.dump = dump
        self.name = name

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return ast.Name(self.name) if ast.dump(node) == self.dump else self.generic_visit(node)


# As text


def _lines(body: Sequence[statements.Statement], indent: str = "") -> str:
    return "\n".join(line.text for line in statements.lines(body, indent))


def _block(body: Sequence[ast.stmt]) -> list[statements.Statement]:
    return [_statement(each) for each in body]


def _statement(statement: ast.stmt) -> statements.Statement:
    match statement:
        case ast.Assign([ast.Name(name)], value):
            return statements.Assign(name, _expr(value))
        case ast.Assign([target], value):
            named: Any = _expr(target)
            return statements.Assign(named, _expr(value))
        case ast.Return(value):
            assert value is not None
            return statements.Return(_expr(value))
        case ast.Expr(value):
            return statements.Effect(_expr(value))
        case ast.With([ast.withitem(context)], body):
            return statements.With(_expr(context), _block(body))
        case ast.For(target, values, body):
            to: Any = target.id if isinstance(target, ast.Name) else _expr(target)
            return statements.For(to, _expr(values), _block(body))
        case ast.If(test, body, []):
            inner = _lines(_block(body), STEP)
            return statements.Raw([f"if {flat(_expr(test))}:", *inner.split("\n")])
        case ast.ClassDef():
            return statements.Raw(_class(statement))
        case ast.FunctionDef(name, arguments, body, decorators):
            text = body[0].value if isinstance(body[0], ast.Expr) else None
            is_documented = isinstance(text, ast.Constant) and isinstance(text.value, str)
            docstring = text.value if isinstance(text, ast.Constant) and is_documented else ""
            return statements.Function(
                name,
                tuple(_parameters(arguments)),
                _block(body[1:] if is_documented else body),
                [_expr(each) for each in decorators],
                str(docstring),
            )
    raise TypeError(f"not a statement of a program: {ast.unparse(statement)}")


def _class(node: ast.ClassDef) -> list[str]:
    docstring, *fields = node.body
    bases = f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
    return [
        *(f"@{ast.unparse(each)}" for each in node.decorator_list),
        f"class {node.name}{bases}:",
        f'    """{ast.literal_eval(ast.unparse(docstring))}"""',
        "",
        *(f"    {ast.unparse(each)}" for each in fields),
    ]


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    first = len(arguments.args) - len(arguments.defaults)
    for index, each in enumerate(arguments.args):
        default = f"={flat(_expr(arguments.defaults[index - first]))}" if index >= first else ""
        yield each.arg + default
    if arguments.vararg is not None:
        yield f"*{arguments.vararg.arg}"


def _expr(node: ast.expr) -> Any:
    """Return an expression as the sourcerizer lays it out."""
    match node:
        case ast.Constant(str(text)):
            return exprs.Atom(f'"{text}"')
        case ast.Attribute(value, name):
            inner = _expr(value)
            is_path = isinstance(inner, exprs.Atom) and inner.text[-1:].isidentifier()
            return exprs.Atom(f"{inner.text}.{name}") if is_path else exprs.Attribute(inner, name)
        case ast.Call(function, arguments, named):
            options = (exprs.Keyword(str(each.arg), _expr(each.value)) for each in named)
            if len(arguments) == 1 and isinstance(arguments[0], ast.GeneratorExp):
                return exprs.Call(_expr(function), (_each(arguments[0]),))
            return exprs.Call(_expr(function), (*map(_expr, arguments), *options))
        case ast.Starred(value):
            return exprs.Star(_expr(value))
        case ast.BinOp(left, operator, right):
            return exprs.Binary(_OPERATORS[type(operator)], _expr(left), _expr(right))
        case ast.Compare(left, [operator], [right]):
            return exprs.Binary(_OPERATORS[type(operator)], _expr(left), _expr(right))
        case ast.UnaryOp(operator, value):
            return exprs.Unary(_OPERATORS[type(operator)], _expr(value))
        case ast.Subscript(value, ast.Tuple(parts)) if parts:
            return exprs.Index(_expr(value), tuple(map(_expr, parts)))
        case ast.Subscript(value, part):
            return exprs.Index(_expr(value), (_expr(part),))
        case ast.Slice():
            return exprs.Atom(_slice(node))
        case ast.Tuple(parts):
            return exprs.Sequence_("(", tuple(map(_expr, parts)))
        case ast.List(parts):
            return exprs.Sequence_("[", tuple(map(_expr, parts)))
        case ast.ListComp():
            return exprs.Sequence_("[", (_each(node),))
        case ast.Dict(keys, parts):
            pairs = zip(keys, parts, strict=True)
            items = (exprs.Pair(_expr(key), _expr(part)) for key, part in pairs if key is not None)
            return exprs.Sequence_("{", tuple(items))
        case ast.Lambda(arguments, body):
            return exprs.Lambda(tuple(_parameters(arguments)), _expr(body))
    return exprs.Atom(ast.unparse(node))


def _each(node: ast.ListComp | ast.GeneratorExp) -> exprs.Each:
    [loop] = node.generators
    return exprs.Each(_expr(node.elt), ast.unparse(loop.target), _expr(loop.iter))


def _slice(node: ast.Slice) -> str:
    """Return a slice, with spaces around its colon if a part is no name or number."""
    parts = [node.lower, node.upper, *([node.step] if node.step else [])]
    shown = [flat(_expr(part)) if part else "" for part in parts]
    if all(re.fullmatch(r"-?\w*", part) for part in shown):
        return ":".join(shown)
    return " : ".join(shown).strip() if shown[0] else f": {shown[1]}"


def notation(item: Argument) -> str:
    """Return an argument in the notation of example inputs."""
    if isinstance(item, Array):
        return f"{SHORT[item.dtype]}[{', '.join(map(str, item.shape))}]"
    if isinstance(item, dict):
        return "{" + ", ".join(f"'{name}': {notation(each)}" for name, each in item.items()) + "}"
    inner = ", ".join(notation(each) for each in item)
    if isinstance(item, list):
        return f"[{inner}]"
    return f"({inner},)" if len(item) == 1 else f"({inner})"


def _imports(body: Sequence[ast.stmt]) -> str:
    """Return the imports of a module, sorted as ruff sorts them."""
    names = _read(body)
    names.update(
        name for node in _nodes(body) if isinstance(node, ast.ClassDef) for name in ("jax",) if node
    )
    merged: dict[str, set[str]] = {}
    for name, line in IMPORTS.items():
        if names[name]:
            head, _, what = line.partition(" import ")
            merged.setdefault(head if what else line, set()).update([what] if what else [])
    whole = [
        f"{head} import {', '.join(sorted(what))}" if what else head
        for head, what in merged.items()
    ]

    def order(line: str) -> tuple[bool, str]:
        return line.startswith("from"), line.split()[1]

    standard = sorted((line for line in whole if line.split()[1] in _STANDARD), key=order)
    others = sorted((line for line in whole if line.split()[1] not in _STANDARD), key=order)
    return "\n\n".join("\n".join(group) for group in (standard, others) if group)


assert WIDTH > _LONGEST
