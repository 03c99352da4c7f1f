"""JX421: a variable is read after the buffer that it names was donated.

Found in the text alone, where it is certain: the function that donates is bound once in the module,
and every way to the read comes by the call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from jaxsight.rules.jx421_read_after_donation.donors import TRANSFORMS, Donor, Donors
from jaxsight.rules.jx421_read_after_donation.scope_flow import ScopeFlow
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.expressions import dotted
from jaxsight.rules.text.statements import Statement
from jaxsight.rules.violation import ModuleViolation, NodeViolation
from jaxsight.rules.wording import quoted

RULE = Rule(
    "JX421",
    "read-after-donation",
    "Variable is read after its buffer was donated.",
    word="donate_arg",
)


@RULE.finds_in_module
def find(statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
    """Yield the first read of each variable after its donation, in each function and in the module.

    Code that JAX traces is skipped, since a call in a trace donates nothing (`_pjit_lowering` in
    jax/_src/pjit.py).
    """
    donors = Donors(statements)
    if not donors:
        return
    if donors.are_called_by_module:
        trees = [statement.tree() for statement in statements]
        number_of = {node: number for number, tree in enumerate(trees) for node in ast.walk(tree)}
        body = [statement for tree in trees for statement in tree.body]
        for violation in _violations(body, donors.of_module, donors):
            yield ModuleViolation(number_of[violation.node], violation)
    for number, function, visible in donors.functions():
        if function.name not in donors.traced and not any(map(_traces, function.decorator_list)):
            for violation in _violations(function.body, visible, donors):
                yield ModuleViolation(number, violation)


def _violations(
    body: Sequence[ast.stmt], visible: dict[str, Donor], donors: Donors
) -> Iterator[NodeViolation]:
    flow = ScopeFlow(visible, donors.of_call)
    flow.run(body)
    for read in flow.reads:
        node, dead = read.node, read.dead
        shown, donor = quoted(ast.unparse(node), most=30), quoted(dead.donor.name, most=30)
        call = quoted(ast.unparse(dead.call), most=60)
        note = f"{call} deletes the buffer of {quoted(dead.path)}, and reading it raises an error"
        if read.held:
            message = f"{shown} holds {quoted(read.held, most=20)} twice, and {donor} donates it"
            note = "a buffer cannot be donated twice in one call, which raises an error"
        elif read.is_twice:
            donor = quoted(dead.donor.name, most=26)
            message = f"{shown} is passed twice to {donor}, which donates it"
            note = "a buffer that is donated cannot be read by the same call, which raises an error"
        elif read.is_holder:
            message = f"{shown} holds a buffer that was donated to {donor}"
        elif any(part is node for part in ast.walk(dead.call)):
            message = f"{shown} is donated to {donor} again after its buffer was deleted"
        else:
            message = f"{shown} is read after its buffer was donated to {donor}"
        yield NodeViolation(
            node,
            message,
            help=f"let one of them be a copy: `jnp.copy({dead.path})`"
            if read.held
            else f"use the result of the call, or donate a copy: `jnp.copy({dead.path})`",
            notes=(note,),
        )


def _traces(decorator: ast.expr) -> bool:
    """Whether a decorator traces the function: `@jax.jit`, `@partial(jax.jit, …)`."""
    names = {
        dotted(node).rpartition(".")[2]
        for node in ast.walk(decorator)
        if isinstance(node, ast.Name | ast.Attribute)
    }
    return bool(names & TRANSFORMS)
