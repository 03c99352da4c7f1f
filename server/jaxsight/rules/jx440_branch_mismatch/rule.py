"""JX440: branches of `cond` or `switch` return different types, or the predicate is no scalar."""

# Longer than most rules: a table of errors; how two branches differ is read off the message and put
# in words.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.rules.differences import (
    LeafDifference,
    TreeDifference,
    at,
    leaf_differences,
    public_dtype,
    shape_text,
    tree_difference,
    varying_cast,
)
from jaxsight.rules.error_table import ErrorTable, Matched
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.wording import quoted, short

RULE = Rule(__name__, "Branches of `cond` or `switch` return different types.")

_BRANCH = re.compile(
    r"^(?P<branch>true_fun|false_fun|branch ?\d+) is (?P<name>\S+) at (?P<place>\S+)$", re.MULTILINE
)
_KINDS = ("bool", "uint", "int", "bfloat", "float", "complex")
"""Kinds of dtypes, each wider than those before it (JAX's table of type promotion)."""
_WHY = "both branches are traced, and the result has one type whichever of them runs"


def _predicate(error: Matched) -> str:
    """Return the source of the predicate; nothing where it is not known."""
    return ast.unparse(error.arguments[0]) if error.arguments else ""


ERRORS = ErrorTable(
    RULE,
    "TypeError",
    "ValueError",
    predicate=lambda error: f"predicate {quoted(_predicate(error), 'of `cond`')}",
    condition=lambda error: short(_predicate(error) or "condition"),
)


@ERRORS.explains(
    r"Pred (?:type must be either boolean or number|must be a scalar), got (?:<function|"
    r"[^\n]*<class 'function'>)"
)
def of_function(error: Matched) -> Violation:
    source, arguments = _predicate(error), error.arguments
    call = f"{source or 'condition'}({ast.unparse(arguments[3]) if len(arguments) == 4 else 'x'})"
    return Violation(
        f"predicate {quoted(source, 'of `cond`')} is a function, not its result",
        help=f"call it: `{short(call)}`",
        notes=("`jax.lax.while_loop` takes a function, `jax.lax.cond` a value",),
    )


@ERRORS.explains(r"(?:cond|switch) branch(?:es| outputs) must have ")
def of_branches(error: Matched) -> Violation:
    names = _names(error.message)
    leaves = leaf_differences(error.message)
    tree = tree_difference(error.message)
    message, help = "branches return different types", "return the same types from all branches"
    if leaves:
        message, help = _of_leaf(leaves[0], names, error.message, _literal(error))
    elif tree is not None:
        message, help = _of_tree(tree, names)
    others = len(leaves) - 1
    more = (f"{others} more {'leaf differs' if others == 1 else 'leaves differ'}",)
    return Violation(
        message,
        help=help,
        notes=(*(more if others > 0 else ()), *_places(error.message, names), _WHY),
        data=leaves[0].first + leaves[0].second if leaves else None,
    )


def _names(message: str) -> tuple[str, str]:
    """Return what the two branches are called: by their functions, or by their places."""
    found = list(_BRANCH.finditer(message))
    if len(found) < 2:
        return "one branch", "another"
    names = [match["name"].rpartition(".")[2] for match in found[:2]]
    alike = names[0] == names[1]
    first, second = (
        _place(match["branch"]) if alike or name == "<lambda>" else quoted(name, most=24)
        for match, name in zip(found, names, strict=False)
    )
    return first, second


def _place(branch: str) -> str:
    """Return `the true branch` for `true_fun`, `branch 2` for `branch2`."""
    number = branch.removeprefix("branch").strip()
    return f"branch {number}" if number.isdigit() else f"the {branch.removesuffix('_fun')} branch"


def _places(message: str, names: tuple[str, str]) -> Iterator[str]:
    """Yield where the branches are, if they are functions of the user on different lines."""
    places = [match["place"] for match in _BRANCH.finditer(message)][:2]
    if len(set(places)) == 2 and not any("site-packages" in place for place in places):
        yield f"{names[0]} is at {places[0]}, {names[1]} at {places[1]}"


def _literal(error: Matched) -> str:
    """Return the integer that a branch `lambda: 0` returns, as a float: `0.0`."""
    return next((f"{ast.unparse(number)}.0" for number in _integers(error.arguments)), "")


def _integers(branches: list[ast.expr]) -> Iterator[ast.Constant]:
    """Yield the integers that branches return which are nothing else."""
    for branch in branches:
        match branch:
            case ast.Lambda(body=ast.Constant(value=int() as value) as body):
                if type(value) is int:
                    yield body


def _of_leaf(
    leaf: LeafDifference, names: tuple[str, str], message: str, literal: str
) -> tuple[str, str]:
    first, second = names
    text = f"{first} returns `{leaf.first}`{at(leaf.path)}, {second} `{leaf.second}`"
    cast, branch = varying_cast(message)
    if leaf.types is None or cast:
        return text, f"apply `{cast}` to the result of `{branch}`" if cast else "return one type"
    a, b = leaf.types
    if a.shape == b.shape:
        dtype, whose = (b.dtype, first) if _wider(b.dtype, a.dtype) else (a.dtype, second)
        if literal and a.shape == () and "float" in dtype:
            return text, f"return `{literal}` from {whose}"
        return text, f"convert what {whose} returns: `.astype({public_dtype(dtype)})`"
    if () in (a.shape, b.shape):
        shape = shape_text(a.shape or b.shape)
        return text, f"return the same shape from both: `jnp.full({shape}, value)` for the scalar"
    return text, "return the same shape from both: reshape, pad or broadcast one of them"


def _wider(one: str, other: str) -> bool:
    """Return whether values of the other dtype are usually meant as this one."""
    kinds = [re.sub(r"\d.*", "", dtype) for dtype in (one, other)]
    if kinds[0] == kinds[1] or not all(kind in _KINDS for kind in kinds):
        return (len(one), one) > (len(other), other)
    return _KINDS.index(kinds[0]) > _KINDS.index(kinds[1])


def _of_tree(tree: TreeDifference, names: tuple[str, str]) -> tuple[str, str]:
    first, second = names
    text = f"{first} returns {tree.first}{at(tree.path)}, {second} {tree.second}"
    if tree.keys:
        return text, f"return the same keys from both; only one has {quoted(tree.keys)}"
    if "None" in (tree.first, tree.second):
        return text, f"return a value from {first if tree.first == 'None' else second}, too"
    return text, "return the same containers from both"


ERRORS.table(r"""
Pred must be a scalar, got [^\n]*? of shape (?P<shape>\([\d, ]+\))
    {predicate} has shape {shape}, but `cond` takes one branch for all
    help: select elements with `jnp.where({condition}, a, b)`, or reduce it with `jnp.any` or
        `jnp.all`
Pred (?:type must be either boolean or number|must be a scalar), got 
    predicate of `cond` is not a boolean scalar
    help: pass a `bool`, or an array of shape `()`
Index type must be an integer, got (?:\S+ as )?(?P<type>\w+)
    index of `switch` is {type}, not an integer
    help: convert it with `.astype(jnp.int32)`, or branch on a condition with `jax.lax.cond`
Branch index must be scalar, got [^\n]*? of shape (?P<shape>\([\d, ]+\))
    index of `switch` has shape {shape}, but `switch` takes one branch for all
    help: map over the indices: `jax.vmap(lambda i, x: jax.lax.switch(i, branches, x))`
Empty branch sequence
    `switch` has no branches
    help: pass a list of functions, of which the index chooses one
""")


# The fix: write a float where a branch returns an integer literal.


@RULE.fixes("a float literal in a branch (unsafe)")
def candidates(context: FixContext, types: str) -> Iterator[Candidate]:
    """Yield the call with `0.0` for a branch `lambda: 0`, where the other returns a float."""
    for call in context.find(ast.Call) if "float" in types else ():
        for number in _integers(call.args):
            text = f"{ast.unparse(number)}.0"
            yield context.replaced(number, text, f"Return `{text}`", same=False)
            return
