"""JX421: a variable is read after the buffer that it names was donated.

Found in the text alone, where it is certain: the function that donates is bound once in the module,
and every way to the read comes by the call.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from jaxsight.rules.jx421_read_after_donation.scope_flow import ScopeFlow
from jaxsight.rules.jx421_read_after_donation.variables import Donor
from jaxsight.rules.rule import ModuleViolation, NodeViolation, Rule
from jaxsight.rules.text.jitted import JittedCalls, jit_of, jitted_module
from jaxsight.rules.text.scope_tree import scopes_of
from jaxsight.rules.text.scopes import NameScope
from jaxsight.rules.text.statements import Statement, imports_of
from jaxsight.rules.wording import quoted

RULE = Rule(__name__, "Variable is read after its buffer was donated.", word="donate_arg")


@RULE.finds_in_module
def find(statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
    """Yield the first read of each variable after its donation, in each function and in the module.

    Code that JAX traces is skipped, since a call in a trace donates nothing (`_pjit_lowering` in
    jax/_src/pjit.py).
    """
    trees = [statement.tree() for statement in statements]
    number_of = {node: number for number, tree in enumerate(trees) for node in ast.walk(tree)}
    module = ast.Module([statement for tree in trees for statement in tree.body], [])
    calls = JittedCalls(jitted_module(statements))
    for scope in scopes_of(module, dict(imports_of(statements))):
        body = getattr(scope.node or module, "body", None)
        if isinstance(body, list) and not calls.is_traced(scope):
            for violation in _violations(body, partial(_donor, calls, scope)):
                yield ModuleViolation(number_of[violation.node], violation)


def _donor(calls: JittedCalls, scope: NameScope, call: ast.Call) -> Donor | None:
    """Return the function that a call donates arguments to.

    `nnx.jit` updates the objects that it is given, so they can be read afterwards.
    """
    name, jitted = calls.called(scope, call) or ("", next(jit_of(call.func, scope.imports), None))
    if jitted is None or jitted.how.library != "jax":
        return None
    how, parameters = jitted.how, jitted.parameters
    positions = {at if at >= 0 else at + len(parameters) for at in how.donated}
    names = {*how.donated_names, *(name for at, name in enumerate(parameters) if at in positions)}
    positions |= {parameters.index(name) for name in names if name in parameters}
    at_once = call.func.args[:1] if isinstance(call.func, ast.Call) else []
    named = name or " ".join(map(ast.unparse, at_once))
    return Donor(named, frozenset(positions), frozenset(names)) if positions or names else None


def _violations(
    body: Sequence[ast.stmt], donor_of: Callable[[ast.Call], Donor | None]
) -> Iterator[NodeViolation]:
    flow = ScopeFlow(donor_of)
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
