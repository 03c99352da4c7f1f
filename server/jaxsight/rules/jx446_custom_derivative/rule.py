"""JX446: rules of `custom_vjp` and `custom_jvp` that return what does not fit the function."""

from __future__ import annotations

import re

from jaxsight.rules.error_table import ErrorTable, Matched
from jaxsight.rules.rule import Rule, Violation

RULE = Rule(__name__, "Rule of `custom_vjp` or `custom_jvp` does not fit its function.")


ERRORS = ErrorTable(RULE, "TypeError", "ValueError", "AttributeError")


@ERRORS.explains(
    r"Custom VJP (?:bwd )?rule must produce an output with the same container \(pytree\) "
    r"structure .*?structure (?P<got>PyTreeDef\(.*?\)) for primal input structure "
    r"(?P<wanted>PyTreeDef\(.*\))\."
)
def of_structure(error: Matched) -> Violation:
    got, wanted = _count(error["got"]), _count(error["wanted"])
    return Violation(
        f"backward rule of a `custom_vjp` returns {got} for {wanted}",
        help="return a tuple with one cotangent for each argument, `None` for those without one; "
        "with one argument `(g,)`",
    )


def _count(tree: str) -> str:
    """Return how many items a structure of the outermost level has, in words."""
    inside = re.fullmatch(r"PyTreeDef\(\((?P<items>.*)\)\)", tree, re.DOTALL)
    if inside is None:
        return "one value, no tuple,"
    depth, items = 0, 0
    text = inside["items"].rstrip(", ")
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        items += character == "," and depth == 0
    number = items + 1 if text else 0
    return f"{number} item{'s' * (number != 1)}"


ERRORS.table(r"""
Custom VJP bwd rule (?:attached to \S+ at \S+ )?must produce an output with the same
        (?:type|shape/dtypes) as the args tuple of the primal function, but at
        output\[(?P<index>\d+)\]\S* the bwd rule produced an output of (?:type|shape/dtype)
        (?P<got>\S+) corresponding to an input of (?:type|shape/dtype) (?P<wanted>\w+\[[\d,]*\])
    backward rule returns `{got}` for argument {index}, which is `{wanted}`
    help: return a cotangent of the type of the argument: sum over broadcast axes, convert with
        `.astype(x.dtype)`
Custom VJP fwd rule (?P<rule>\S+) for function (?P<function>\S+) must produce a pair .*?but instead
        of a pair
    forward rule {rule:q24} of {function:q20} returns no pair
    help: return `(result, saved)`: put all that the backward rule needs into one tuple
Custom VJP fwd rule (?P<rule>\S+) for function (?P<function>\S+) must produce a pair 
    result of the forward rule {rule:q24} differs from that of {function:q20}
    help: return the result of {function:q20} first, in the same containers and of the same types
Custom JVP rule (?P<rule>\S+) for function (?P<function>\S+) must produce (?P<what>a pair|primal and
        tangent outputs with equal container)
    rule {rule:q24} of {function:q20} does not return a result and its tangent
    help: return `(result, tangent)`, the tangent with the structure of the result
Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes\.
        Expected (?P<wanted>\S+) \(tangent type of \S+\) but got (?P<got>\w+\[[\d,]*\])
    tangent of a `custom_jvp` is `{got}`, not `{wanted}`
    help: return a tangent of the shape and dtype of the result
Custom JVP rule must produce primal and tangent outputs with corresponding
    tangents of a `custom_jvp` have other types than the results
    help: return tangents of the shapes and dtypes of the results
No VJP defined for custom_vjp function (?P<function>\S+) using
    {function:q} is a `custom_vjp` without a rule
    help: define it: `{function}.defvjp(forward, backward)`
No JVP defined for custom_jvp function (?P<function>\S+) using
    {function:q} is a `custom_jvp` without a rule
    help: define it: `{function}.defjvp(rule)`
can't apply forward-mode (?:autodiff|differentiation) \(jvp\) to a custom_vjp function
    {expression:q} differentiates a `custom_vjp` in forward mode
    help: use reverse mode (`jax.jacrev`, `jax.vjp`), or define the rule with `jax.custom_jvp`, from
        which JAX derives both modes
    note: `jacfwd`, `jvp`, `linearize` and `hessian` need forward mode
""")
