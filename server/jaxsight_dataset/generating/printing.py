"""Writes the syntax tree of a program as text, as `ruff format` writes it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from jaxsight_dataset.generating.expansion import Expansion
from jaxsight_dataset.program import Argument, Array
from jaxsight_source.text.layout import WIDTH
from jaxsight_source.text.statements import formatted

SHORT = {
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "float16": "f16",
    "bool": "bool",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "complex64": "c64",
    "complex128": "c128",
    "key": "key<fry>",
}
"""Dtypes as jaxprs print them."""

IMPORTS = {
    "math": "import math",
    "np": "import numpy as np",
    "jnp": "import jax.numpy as jnp",
    "jax": "import jax",
    "lax": "from jax import lax",
    "partial": "from functools import partial",
    "NamedTuple": "from typing import NamedTuple",
    "checkpoint_name": "from jax.ad_checkpoint import checkpoint_name",
    "pl": "from jax.experimental import pallas as pl",
    "AxisType": "from jax.sharding import AxisType",
    "NamedSharding": "from jax.sharding import NamedSharding",
    "PartitionSpec": "from jax.sharding import PartitionSpec",
}
_STANDARD = ("functools", "math", "typing")

_LONGEST = 84
"""Characters of a statement with its indentation; calls inside of longer ones are assigned to
names. A choice: brackets that `ast.unparse` leaves out fit the line, too."""

_EXPONENT = re.compile(r"(?<=\de)-0(?=\d\b)")
"""The zero of an exponent, such as that of `1e-05`, which nobody writes."""

_TUPLE = re.compile(r"^( *\w+(?:, \w+)+ = )\((.+)\)$", re.MULTILINE)
"""An assignment of a tuple, to which `ast.unparse` writes brackets."""

_RESULTS = {
    "mean": "mean", "sum": "total", "max": "largest", "min": "smallest", "std": "deviation",
    "abs": "magnitude", "sqrt": "root", "rsqrt": "inverse_root", "tanh": "bounded", "sin": "wave",
    "cos": "wave", "exp": "exponential", "square": "squares", "softmax": "probabilities",
    "sigmoid": "gate", "softplus": "rates", "log": "logs", "log1p": "logs", "arange": "places",
    "array": "values", "normal": "noise", "uniform": "noise", "where": "chosen", "dot": "product",
    "grad": "gradient", "vmap": "batched", "jit": "compiled", "astype": "converted",
    "ones_like": "ones", "zeros": "zeros", "ShapeDtypeStruct": "shape", "zeros_like": "zeros",
    "full_like": "filled", "einsum": "product",
}  # fmt: skip
"""Names of what functions return, for calls that need one."""


def module(program: Expansion) -> str:
    """Return the text of a program; its parameters that nothing reads are removed from it."""
    body = _tidied(program.body, set(program.parameters))
    above = _tidied(program.module, set(), everything=body)
    read = _read([*body, *above])
    for name in [name for name in program.parameters if not read[name]]:
        del program.parameters[name]
    while program.name in {*read, *program.parameters}:
        program.name += "_of"
    examples = [
        f"        {line}"
        for name, item in program.parameters.items()
        for line in _example(name, item)
    ]
    title = program.title.rstrip(".")
    docstring = "\n".join([f"{title}.", "", "    Example inputs:", *examples, "    "])
    function = ast.FunctionDef(
        program.name,
        ast.arguments([], [ast.arg(name) for name in program.parameters], None, [], [], None, []),
        [ast.Expr(ast.Constant(docstring)), *body],
        [],
    )
    imports = _imports([*above, *body])
    text, before = imports, None
    for statement in [*above, function]:
        blocks = (ast.FunctionDef, ast.ClassDef)
        is_apart = isinstance(statement, blocks) or isinstance(before, blocks)
        gap = "\n\n\n" if is_apart else "\n" if before else "\n\n"
        module = ast.fix_missing_locations(ast.Module([statement], []))
        written = _EXPONENT.sub("-", formatted(ast.unparse(module)))
        written = _TUPLE.sub(_without_brackets, written)
        text += (gap if text else "") + written.rstrip("\n")
        before = statement
    return text + "\n"


# What is not needed, and what is too long


def _tidied(
    body: Sequence[ast.stmt],
    parameters: set[str],
    everything: Sequence[ast.stmt] = (),
) -> list[ast.stmt]:
    """Return statements without those whose names nothing reads, none of them too long."""
    kept, before = list(body), ""
    while before != (before := ast.dump(ast.Module(kept, []))):
        kept = _without_unread(kept, _read([*kept, *everything]))
    kept = _without_overwritten(_without_copies(kept, parameters))
    taken = {*_read([*kept, *everything]), *_assigned([*kept, *everything]), "_"}
    kept = list(_short(_returning(kept), 1, taken))
    return _renumbered(kept, {*_read([*kept, *everything]), *_assigned([*kept, *everything])})


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


def _without_unread(body: Sequence[ast.stmt], read: Counter[str]) -> list[ast.stmt]:
    kept: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.Assign([ast.Name(name)]) if not read[name] and name != "_":
                continue
            case ast.Assign([ast.Tuple(parts)], ast.Call() | ast.Tuple()) if not any(
                read[getattr(part, "id", "")] or getattr(part, "id", "_") == "_" for part in parts
            ):
                continue
            case ast.FunctionDef(name) if not read[name] and not _is_rule(statement):
                continue
            case ast.FunctionDef(body=inner):
                statement.body = _without_unread(inner, _read(inner))
            case ast.For(body=inner) | ast.With(body=inner) | ast.If(body=inner):
                statement.body = _without_unread(inner, read)
        kept.append(statement)
    return kept


def _without_overwritten(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a function without values that nothing reads before they change."""
    kept: list[ast.stmt] = []
    for statement in reversed(body):
        match statement:
            case ast.Assign([ast.Name(name)]) if _is_overwritten(name, kept):
                continue
            case ast.FunctionDef(body=inner):
                statement.body = _without_overwritten(inner)
        kept.insert(0, statement)
    return kept


def _is_overwritten(name: str, after: Sequence[ast.stmt]) -> bool:
    """Return whether statements assign to a name, or return, before they read it."""
    for statement in after:
        if _read([statement])[name]:
            return False
        match statement:
            case ast.Assign([ast.Name(other)]) if other == name:
                return True
            case ast.Return():
                return True
    return False


def _without_copies(body: list[ast.stmt], parameters: set[str]) -> list[ast.stmt]:
    """Return statements without other names for values that keep theirs."""
    stored = Counter([*_assigned(body), *parameters])
    stored.subtract(_read(body))
    copies = {
        target.id: value.id
        for node in _nodes(body)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
        for target, value in [(node.targets[0], node.value)]
        if isinstance(target, ast.Name) and stored[target.id] == 1 and stored[value.id] <= 1
    }
    for node in _nodes(body):
        while isinstance(node, ast.Name) and node.id in copies:
            node.id = copies[node.id]
    return _without_selves(body)


def _without_selves(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    kept: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.Assign([ast.Name(name)], ast.Name(value)) if name == value:
                continue
            case ast.FunctionDef() | ast.For() | ast.With() | ast.If():
                statement.body = _without_selves(statement.body)
        kept.append(statement)
    return kept


def _returning(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return statements in which no value gets a name only to be returned."""
    kept: list[ast.stmt] = []
    for statement in body:
        match kept[-1:], statement:
            case [ast.Assign([ast.Name(name)], value)], ast.Return(ast.Name(read)) if name == read:
                kept[-1] = ast.Return(value)
                continue
            case _, ast.FunctionDef() | ast.For() | ast.With() | ast.If():
                statement.body = _returning(statement.body)
        kept.append(statement)
    return kept


_NUMBERED = re.compile(r"([a-z]{3,}(?:_[a-z]+)*)\d+")


def _renumbered(body: list[ast.stmt], taken: set[str]) -> list[ast.stmt]:
    """Return statements in which no name has a number where that without one is free."""
    shorter = {
        name: match[1]
        for name in sorted(taken)
        if (match := _NUMBERED.fullmatch(name))
        and match[1] not in taken
        and f"{match[1]}1" not in taken
    }
    for node in _nodes(body):
        if isinstance(node, ast.Name) and node.id in shorter:
            node.id = shorter[node.id]
    return body


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
                while len(_text(statement)) + 4 * depth > _LONGEST and not _wraps(statement, depth):
                    call = _inner_call(statement)
                    if call is None:
                        break
                    base = _RESULTS.get(getattr(call.func, "attr", ""), "part")
                    name = next(
                        name
                        for number in range(1, 99)
                        if (name := f"{base}{number if number > 1 else ''}") not in taken
                    )
                    taken.add(name)
                    before.append(ast.Assign([ast.Name(name)], call))
                    statement = _Replace(ast.dump(call), name).visit(statement)
                yield from before
            case ast.FunctionDef() | ast.For() | ast.With() | ast.If():
                statement.body = list(_short(statement.body, depth + 1, taken))
        yield statement


def _wraps(statement: ast.stmt, depth: int) -> bool:
    """Return whether a statement reads well with a part on each line."""
    match getattr(statement, "value", None):
        case ast.Call(args=arguments, keywords=keywords):
            parts: Sequence[ast.AST] = [*arguments, *keywords]
        case ast.Tuple(parts) if isinstance(statement, ast.Assign):
            pass
        case _:
            return False
    longest = max(len(ast.unparse(part)) for part in parts) if parts else WIDTH
    return len(parts) > 2 and longest + 4 * depth + 8 <= WIDTH


def _text(statement: ast.stmt) -> str:
    return ast.unparse(ast.fix_missing_locations(statement))


def _inner_call(statement: ast.stmt) -> ast.Call | None:
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
        and 16 <= len(ast.unparse(node)) <= _LONGEST - 16  # shorter ones save no room
    ]
    return max(calls, key=lambda node: len(ast.unparse(node)), default=None)


class _Replace(ast.NodeTransformer):
    """Replaces an expression by a name."""

    def __init__(self, dump: str, name: str) -> None:
        self.dump = dump
        self.name = name

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return ast.Name(self.name) if ast.dump(node) == self.dump else self.generic_visit(node)


def _without_brackets(match: re.Match[str]) -> str:
    depths = accumulate((each in "([{") - (each in ")]}") for each in match[2])
    return match[1] + match[2] if min(depths) >= 0 else match[0]


def _example(name: str, item: Argument) -> list[str]:
    """Return the lines of an argument among example inputs."""
    line = f"{name}: {notation(item)}"
    if len(line) <= WIDTH - 8 or isinstance(item, Array):
        return [line]
    if isinstance(item, dict):
        parts = [f"    '{key}': {notation(each)}," for key, each in item.items()]
        return [f"{name}: {{", *parts, "}"]
    parts = [f"    {notation(each)}," for each in item]
    return [f"{name}: [", *parts, "]"] if isinstance(item, list) else [f"{name}: (", *parts, ")"]


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
