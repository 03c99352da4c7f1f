"""Find in the text of a module which of its functions are differentiated, and by what."""

from __future__ import annotations

import ast
import functools
import re

from jaxsight.source.analysis.syntax_trees import last_name
from jaxsight.source.module import Module
from jaxsight.source.statements import tree_of

_BY_FIRST = frozenset(
    {
        "grad", "value_and_grad", "jacobian", "jacfwd", "jacrev", "hessian", "filter_grad",
        "filter_value_and_grad", "filter_jacfwd", "filter_jacrev", "filter_hessian",
    }
)  # fmt: skip
"""Transformations that differentiate by the first argument, unless `argnums` says otherwise."""
_BY_ALL = frozenset({"jvp", "vjp", "linearize", "filter_jvp", "filter_vjp", "check_grads"})
TRANSFORMATIONS = _BY_FIRST | _BY_ALL
_KEPT = 1024
"""Statements with such a word whose functions are remembered: a module has few."""
_WORDS = re.compile(r"grad|jac|hessian|jvp|vjp|linearize")

_Numbers = tuple[int, ...] | None


def parameters(module: Module, function: str, *, chosen: bool = False) -> frozenset[str]:
    """Return the parameters of a function that the module's text differentiates it by.

    Args:
        function: its qualified name; only those at the top of the module are found.
        chosen: leave out what only transformations by all arguments differentiate by: who calls
            `jax.vjp(f, x, mask)` need not want a gradient with respect to `mask`.
    """
    differentiated: set[str] = set()
    names: tuple[str, ...] | None = None
    for chunk in module.chunks:
        if chunk.statement.broken is not None or not _WORDS.search(chunk.statement.text):
            continue
        for name, numbers in _transformed_in(chunk.statement.text):
            if name != function or (chosen and numbers is None):
                continue
            names = _positional(module, function) if names is None else names
            indices = range(len(names)) if numbers is None else numbers
            differentiated.update(
                names[index] for index in indices if -len(names) <= index < len(names)
            )
    return frozenset(differentiated)


def gradients(module: Module) -> frozenset[str]:
    """Return the names that a module gives to functions that compute derivatives."""
    gradients: set[str] = set()
    for chunk in module.chunks:
        if chunk.statement.broken is None and _WORDS.search(chunk.statement.text):
            gradients.update(_bound(chunk.statement.text))
    return frozenset(gradients)


@functools.lru_cache(maxsize=_KEPT)
def _bound(text: str) -> tuple[str, ...]:
    """Return the names that are assigned transformed functions, and of functions so decorated."""
    names: list[str] = []
    for node in ast.walk(tree_of(text)):
        if isinstance(node, ast.Assign) and _transforms(node.value):
            names += filter(None, map(last_name, node.targets))
        elif isinstance(node, ast.FunctionDef) and any(map(_transforms, node.decorator_list)):
            names.append(node.name)
    return tuple(names)


def _transforms(node: ast.AST) -> bool:
    """Whether an expression is a transformed function: `jax.jit(jax.grad(f))`, not `grad(f)(x)`."""
    names = [last_name(inner) for inner in ast.walk(node) if isinstance(inner, ast.expr)]
    # `grad(f)(x)` is a value: a derivative, not a function that computes one.
    applied = isinstance(node, ast.Call) and isinstance(node.func, ast.Call)
    return not applied and not TRANSFORMATIONS.isdisjoint(names)


@functools.lru_cache(maxsize=_KEPT)
def _transformed_in(text: str) -> tuple[tuple[str, _Numbers], ...]:
    """Return the functions that a statement differentiates, and by which arguments."""
    transformed: list[tuple[str, _Numbers]] = []
    for node in ast.walk(tree_of(text)):
        match node:
            case ast.Call(func=by, args=[ast.Name(id=function), *_]) if last_name(by) in _BY_ALL:
                transformed.append((function, None))
            case ast.Call(func=by, args=[ast.Name(id=function), *_]) if last_name(by) in _BY_FIRST:
                transformed.append((function, _numbers(node)))
    return tuple(transformed)


def _numbers(call: ast.Call) -> _Numbers:
    """Return the positions that a call differentiates by; `None` where they are not known."""
    # `jax.grad(f, 1)`: it may be positional.
    argnums = [key.value for key in call.keywords if key.arg == "argnums"] or call.args[1:2]
    if not argnums:
        return (0,)
    try:
        value = ast.literal_eval(argnums[0])
    except ValueError:
        return None
    numbers = tuple(value) if isinstance(value, tuple | list) else (value,)
    return numbers if all(isinstance(number, int) for number in numbers) else None


def _positional(module: Module, function: str) -> tuple[str, ...]:
    """Return the names of a function's positional parameters."""
    kinds = ("positional_only", "positional")
    found = (each for _, each in module.functions if each.qualname == function)
    of = next(found, None)
    return tuple(p.name for p in of.parameters if p.kind in kinds) if of is not None else ()
