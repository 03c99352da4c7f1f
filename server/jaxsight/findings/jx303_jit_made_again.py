"""JX303: a jitted function is made anew each time: its cache is empty, so it is traced and compiled again.

Found in the text alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

CODE = "JX303"

_JITS = frozenset(
    {
        "jax.jit",
        "jit",
        "jax.pmap",
        "pmap",
        "eqx.filter_jit",
        "nnx.jit",
        "nn.jit",
        "equinox.filter_jit",
    }
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (
    ast.For,
    ast.While,
    ast.AsyncFor,
    ast.ListComp,
    ast.GeneratorExp,
    ast.SetComp,
    ast.DictComp,
)


@dataclass(frozen=True, slots=True)
class Again:
    """A `jit` that is made again and again, and why."""

    node: ast.expr
    message: str


def find(tree: ast.Module) -> Iterator[Again]:
    """Each `jax.jit(…)` in a loop of what is not the same function each time, and each that is made and called in one expression in a function."""
    yield from _within(tree, (), set())


def _within(node: ast.AST, around: tuple[ast.AST, ...], local: set[str]) -> Iterator[Again]:
    for child in ast.iter_child_nodes(node):
        inside = (*around, node)
        names = local
        if isinstance(child, _FUNCTIONS):
            names = {
                each.name
                for each in ast.walk(child)
                if isinstance(each, _FUNCTIONS) and each is not child
            }
        if isinstance(child, ast.Call) and _dotted(child.func) in _JITS and child.args:
            made = _why(child, node, inside, local)
            if made:
                yield Again(child, made)
        yield from _within(child, inside, names)


def _why(call: ast.Call, parent: ast.AST, around: tuple[ast.AST, ...], local: set[str]) -> str:
    function = call.args[0]
    scope = next((n for n in reversed(around) if isinstance(n, (*_FUNCTIONS, ast.Lambda))), None)
    since = around[around.index(scope) :] if scope is not None else around
    looped = any(isinstance(each, _LOOPS) for each in since)
    fresh = (
        isinstance(function, ast.Lambda)
        or (
            isinstance(function, ast.Call)
            and _dotted(function.func).rpartition(".")[2] == "partial"
        )
        or (isinstance(function, ast.Name) and function.id in local)
    )
    called = isinstance(parent, ast.Call) and parent.func is call
    what = {ast.Lambda: "a lambda", ast.Call: "a partial"}.get(
        type(function), "a function that is made here"
    )
    if looped and fresh:
        return f"`jit` of {what} in a loop compiles in each round: make it once, before the loop."
    if scope is not None and called and fresh:
        return (
            f"`jit` of {what}, called at once: each call of `{getattr(scope, 'name', 'the lambda')}` traces and compiles it again. Make the "
            "jitted function once, outside."
        )
    if looped and called:
        return (
            "`jit` is applied in each round of the loop: make the jitted function once, before it."
        )
    return ""


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""
