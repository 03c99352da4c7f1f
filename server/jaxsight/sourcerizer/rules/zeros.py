"""Rules of derivatives that are told which tangents are symbolic zeros: one function for each pattern of them, chosen when called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxsight.interpreters.compat import parameters as read
from jaxsight.sourcerizer.exprs import Atom, Expr, call, dict_, tuple_
from jaxsight.sourcerizer.module import Assign, Effect, Function, Raw, Return, Statement
from jaxsight.sourcerizer.spelling import value
from jaxsight.sourcerizer.writer import Scope, sequence


def with_symbolic_zeros(
    home: Scope, name: str, params: dict[str, Any], bases: Sequence[str]
) -> list[Statement]:
    """The rule of a `custom_jvp` called `name`, and its registration. Patterns that the user's rule refuses are refused.

    For at most `parameters.MOST_PATTERNS` tangents.
    """
    jvp = home.inner()
    primals, tangents, zero = (jvp.names.fresh(name) for name in ("primals", "tangents", "zero"))
    named = [jvp.names.fresh(base) for base in bases]
    body: list[Statement] = [
        Assign(zero, Atom("jax.custom_derivatives.SymbolicZero")),
        Assign(tuple_(map(Atom, named)), Atom(primals)),
    ]
    rules: list[tuple[Expr, Expr]] = []
    for absent in read.absences(params):
        try:
            rule = read.jvp_rule(params, absent)
        except read.Refused:
            continue  # the user's rule may refuse some patterns in any way, and so does the written one
        function = _for_pattern(jvp, rule, absent, named, zero)
        body.append(function)
        rules.append((value(absent), Atom(function.name)))
    chosen, pattern = (jvp.names.fresh(name) for name in ("rules", "zeros"))
    body += [
        Assign(chosen, dict_(rules)),
        Raw(
            [
                f"{pattern} = tuple(type(dot) is {zero} for dot in {tangents})",
                f"return {chosen}[{pattern}](*(dot for dot in {tangents} if type(dot) is not {zero}))",
            ]
        ),
    ]
    derivative = Function(f"{name}_jvp", (primals, tangents), body)
    registered = call(f"{name}.defjvp", Atom(derivative.name), symbolic_zeros=Atom("True"))
    return [derivative, Effect(registered)]


def _for_pattern(
    jvp: Scope, rule: read.Rule, absent: Sequence[bool], named: Sequence[str], zero: str
) -> Function:
    scope = jvp.inner()
    inputs = rule.program.jaxpr.invars
    for var, found in zip(inputs, named, strict=False):
        scope.write(var, Atom(found))
    present = [base for base, is_zero in zip(named, absent, strict=True) if not is_zero]
    parameters = scope.parameters(inputs[len(named) :], [f"{base}_dot" for base in present])
    results = iter(scope.program(rule.program))
    outputs = [next(results) for _ in rule.zeros]
    dots: list[Expr] = []
    for output, is_zero in zip(outputs, rule.zeros, strict=True):
        dots.append(call(f"{zero}.from_primal_value", output) if is_zero else next(results))
    words = "_".join(present) or "nothing"
    return Function(
        jvp.names.fresh(f"by_{words}"),
        tuple(parameters),
        [*scope.body, Return(tuple_([sequence(outputs), sequence(dots)]))],
    )
