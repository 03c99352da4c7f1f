"""What one top-level statement says about calls, bindings and signatures.

It is remembered with the statement, so that an edit costs the statement that it touches.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from jaxsight.rules.text.expressions import FunctionNode, dotted
from jaxsight.rules.text.statements import own_statements
from jaxsight.text.names import bound_in_scope

TRANSFORMS = frozenset(
    {
        "jit", "pjit", "pmap", "vmap", "grad", "value_and_grad", "jacfwd", "jacrev", "hessian",
        "checkpoint", "remat", "scan", "fori_loop", "while_loop", "cond", "switch", "shard_map",
        "eval_shape", "make_jaxpr", "linearize", "vjp", "jvp", "custom_vjp", "custom_jvp", "map",
        "associative_scan", "filter_jit", "filter_vmap", "filter_grad", "filter_value_and_grad",
    }
)  # fmt: skip
"""What traces the functions that it is given: a call in a trace donates nothing."""


@dataclass(frozen=True, slots=True)
class DonationFacts:
    """What a statement says, whatever the rest of its module says."""

    signatures: tuple[tuple[str, tuple[str, ...]], ...]
    """Functions, inner ones too, with their positional parameters."""
    bound: tuple[str, ...]
    """The module's names that it binds, once for each time."""
    called: frozenset[str]
    """What it calls, by dotted names; empty for calls of other expressions."""
    called_by_module: frozenset[str]
    """Those of them that are not in functions or classes."""
    traced: frozenset[str]
    """Names that are given to transformations."""


def facts_of(tree: ast.Module) -> DonationFacts:
    """Return what a statement says."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return DonationFacts(
        tuple(
            (node.name, parameters_of(node))
            for node in ast.walk(tree)
            if isinstance(node, FunctionNode)
        ),
        tuple(bound_in_scope(*tree.body)),
        frozenset(dotted(call.func) for call in calls),
        frozenset(
            dotted(node.func)
            for statement in own_statements(tree.body)
            if not isinstance(statement, FunctionNode | ast.ClassDef)
            for part in ast.iter_child_nodes(statement)
            if not isinstance(part, ast.stmt)
            for node in ast.walk(part)
            if isinstance(node, ast.Call)
        ),
        frozenset(
            argument.id
            for call in calls
            if dotted(call.func).rpartition(".")[2] in TRANSFORMS
            for argument in (*call.args, *(keyword.value for keyword in call.keywords))
            if isinstance(argument, ast.Name)
        ),
    )


def parameters_of(function: FunctionNode | ast.Lambda) -> tuple[str, ...]:
    """Return the names of a function's positional parameters."""
    arguments = function.args
    return tuple(argument.arg for argument in (*arguments.posonlyargs, *arguments.args))
