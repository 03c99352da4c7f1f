"""JX421: a variable is read after the buffer that it names was donated.

Found in the text alone, where it is certain: the function that donates is bound once in the module,
and every way to the read comes by the call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.exceptions import quoted
from jaxsight.rules.jx421_read_after_donation.donors import Donor, Donors, dotted
from jaxsight.rules.jx421_read_after_donation.flow import Flow, Read
from jaxsight.rules.noticed import InModule, InText
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.statements import Statement

RULE = Rule(
    "JX421",
    "read-after-donation",
    "Variable is read after its buffer was donated.",
    word="donate_arg",
)

_TRANSFORMS = frozenset(
    {
        "jit", "pjit", "pmap", "vmap", "grad", "value_and_grad", "jacfwd", "jacrev", "hessian",
        "checkpoint", "remat", "scan", "fori_loop", "while_loop", "cond", "switch", "shard_map",
        "eval_shape", "make_jaxpr", "linearize", "vjp", "jvp", "custom_vjp", "custom_jvp", "map",
        "associative_scan", "filter_jit", "filter_vmap", "filter_grad", "filter_value_and_grad",
    }
)  # fmt: skip
"""What traces the functions that it is given: a call in a trace donates nothing."""


@dataclass(frozen=True, slots=True)
class ReadAfterDonation:
    """A read of a deleted buffer."""

    variable: str
    function: str
    """What it was donated to."""


@RULE.finds_in_module
def find(statements: Sequence[Statement]) -> Iterator[InModule]:
    """Yield the first read of each variable after its donation, in each function and in the module.

    Code that JAX traces is skipped, since a call in a trace donates nothing.
    """
    trees = [statement.tree() for statement in statements]
    donors = Donors(trees)
    if not donors:
        return
    traced = _traced(trees)
    at: dict[ast.AST, int] = {
        node: index for index, tree in enumerate(trees) for node in ast.walk(tree)
    }
    scopes: list[tuple[Sequence[ast.stmt], dict[str, Donor]]] = [
        ([statement for tree in trees for statement in tree.body], donors.of_module)
    ]
    scopes += [
        (function.body, visible)
        for function, visible in donors.functions()
        if function.name not in traced and not any(map(_traces, function.decorator_list))
    ]
    for body, visible in scopes:
        flow = Flow(visible, donors.of_call)
        flow.run(body)
        for read in flow.found:
            yield InModule(at[read.node], _noticed(read))


def _noticed(read: Read) -> InText:
    node, dead = read.node, read.dead
    name, function = ast.unparse(node), dead.donor.name
    shown, donor = quoted(name, most=30), quoted(function, most=30)
    call = quoted(ast.unparse(dead.call), most=60)
    if read.is_holder:
        message = f"{shown} holds a buffer that was donated to {donor}"
    elif any(part is node for part in ast.walk(dead.call)):
        message = f"{shown} is donated to {donor} again after its buffer was deleted"
    else:
        message = f"{shown} is read after its buffer was donated to {donor}"
    return InText(
        node,
        message,
        help=f"use the result of the call, or donate a copy: `jnp.copy({dead.path})`",
        notes=(
            f"{call} deletes the buffer of {quoted(dead.path)}, and reading it raises an error",
        ),
        data=ReadAfterDonation(name, function),
    )


def _traced(trees: Sequence[ast.Module]) -> set[str]:
    """Return the names of functions that are given to transformations."""
    return {
        argument.id
        for tree in trees
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and dotted(call.func).rpartition(".")[2] in _TRANSFORMS
        for argument in (*call.args, *(each.value for each in call.keywords))
        if isinstance(argument, ast.Name)
    }


def _traces(decorator: ast.expr) -> bool:
    """Whether a decorator traces the function: `@jax.jit`, `@partial(jax.jit, …)`."""
    names = {
        dotted(node).rpartition(".")[2]
        for node in ast.walk(decorator)
        if isinstance(node, ast.Name | ast.Attribute)
    }
    return bool(names & _TRANSFORMS)
