"""Derivative rules that distinguish symbolic zeros: a function for each pattern of zeros.

The written rule chooses among them when it is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxsight.interpreters.compat import parameters as read
from jaxsight.sourcerizer.text.exprs import Atom, Expr, call, dict_, tuple_
from jaxsight.sourcerizer.text.statements import Assign, Effect, Function, Raw, Return, Statement
from jaxsight.sourcerizer.values import scalars
from jaxsight.sourcerizer.values.spelling import value
from jaxsight.sourcerizer.writing.results import sequence
from jaxsight.sourcerizer.writing.scope import Scope
from jaxsight.sourcerizer.writing.writer import Writer

_ZERO = "jax.custom_derivatives.SymbolicZero"

_LONGEST = 20
"""The maximum length of a function name that lists all of its tangents."""


def with_symbolic_zeros(
    home: Scope, name: str, params: dict[str, Any], bases: Sequence[str], called: str
) -> list[Statement]:
    """Write the rule of a `custom_jvp` function `name`, and its registration.

    There may be at most `parameters.MOST_PATTERNS` tangents. Patterns that the user's rule rejects
    raise an error. `called` is the function's name in messages.

    Raises:
        Refused: if the user's rule rejects every pattern.
    """
    jvp = home.inner()
    primals, tangents, zero = (jvp.names.fresh(name) for name in ("primals", "tangents", "zero"))
    named = [jvp.names.fresh(base) for base in bases]
    derivative = Function(f"{name}_jvp", (primals, tangents), [])
    body = derivative.body
    short_name: Statement = Assign(zero, Atom(_ZERO))
    body.append(Assign(tuple_(map(Atom, named)), Atom(primals)))
    registered = call(f"{name}.defjvp", Atom(derivative.name), symbolic_zeros=Atom("True"))
    patterns, may_be = read.absences(params), read.differentiable(params)
    if patterns is None:
        raise read.Refused("its rule asks for too many patterns of zeros")
    if len(patterns) == 1:
        rule = read.jvp_rule(params, patterns[0])
        dots, statements = _by(jvp.inner(), rule, patterns[0], named, zero)
        present = iter(dots)
        targets = [Atom("_" if is_zero else next(present)) for is_zero in patterns[0]]
        body += [Assign(tuple_(targets), Atom(tangents)), *statements]
        body[:0] = [short_name] if any(rule.zeros) else []
        return [derivative, Effect(registered)]
    chooser = _chooser(home.writer)
    rules: list[tuple[Expr, Expr]] = []
    refused: list[Expr] = []
    whys: list[read.Refused] = []
    answers_zeros = False
    for absent in patterns:
        told = value(tuple(is_zero for is_zero, may in zip(absent, may_be, strict=True) if may))
        try:
            rule = read.jvp_rule(params, absent)
        except read.Refused as error:
            refused.append(told)
            whys.append(error)
            continue
        answers_zeros |= any(rule.zeros)
        present_bases = [base for base, is_zero in zip(named, absent, strict=True) if not is_zero]
        words = "_".join(["by", *present_bases])
        short = words if len(words) <= _LONGEST else f"by_{len(present_bases)}_tangents"
        dots, statements = _by(jvp.inner(), rule, absent, named, zero)
        function = Function(jvp.names.fresh(short), tuple(dots), statements)
        body.append(function)
        rules.append((told, Atom(function.name)))
    if not rules:
        raise whys[0]
    if refused:
        why = scalars.text(f"no derivative of {called} with these zeros: {whys[0]}")
        no_rule = jvp.names.fresh("no_rule")
        body.append(Function(no_rule, ("*_",), [Effect(call("raise NotImplementedError", why))]))
        rules += [(told, Atom(no_rule)) for told in refused]
    dots_of: Expr = Atom(tangents)
    if not all(may_be):  # integers have no tangents
        dots_of = tuple_(Atom(f"{tangents}[{i}]") for i, may in enumerate(may_be) if may)
    body[:0] = [short_name] if answers_zeros else []
    chosen = jvp.names.fresh("rules")
    body += [Assign(chosen, dict_(rules)), Return(call(chooser, Atom(chosen), dots_of))]
    return [derivative, Effect(registered)]


def _chooser(writer: Writer) -> str:
    """Return the name of the module's function that selects a rule; write it if needed."""
    name = "by_zeros"
    if any(
        isinstance(found, Function) and found.name == name for found in writer.functions.statements
    ):
        return name
    writer.names.keep(name)
    body: list[Statement] = [
        Raw(
            [
                f"zero = {_ZERO}",
                "zeros = tuple(type(dot) is zero for dot in tangents)",
                "return rules[zeros](*(dot for dot in tangents if type(dot) is not zero))",
            ]
        )
    ]
    writer.functions.statements.append(Function(name, ("rules", "tangents"), body))
    return name


def _by(
    scope: Scope, rule: read.Rule, absent: Sequence[bool], named: Sequence[str], zero: str
) -> tuple[list[str], list[Statement]]:
    """Write the rule for one pattern of zeros, given the names of the primals.

    Return the names of the nonzero tangents, and the statements.
    """
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
    returned = Return(tuple_([sequence(outputs), sequence(dots)]))
    return parameters, [*scope.body, returned]
