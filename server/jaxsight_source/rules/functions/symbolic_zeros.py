"""Derivative rules that distinguish symbolic zeros: a function for each pattern of zeros.

The written rule chooses among them when it is called.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight_source.compat import derivative_rules
from jaxsight_source.text.exprs import TRUE, call, dict_, public, subscript, tuple_
from jaxsight_source.text.statements import Raw, assign, define, effect, return_
from jaxsight_source.values import scalars
from jaxsight_source.values.spelling import value
from jaxsight_source.writing.results import sequence
from jaxsight_source.writing.scope import Scope

_ZERO = "jax.custom_derivatives.SymbolicZero"

_LONGEST = 20
"""The maximum length of a function name that lists all of its tangents, chosen: two or three."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule that is being written: its scope and the names in it."""

    scope: Scope
    primals: Sequence[str]
    """The names of the primals, after unpacking."""
    tangents: str
    """The parameter that holds all tangents."""
    zero: str
    """A short name of the class of symbolic zeros."""


def with_symbolic_zeros(
    home: Scope, name: str, params: dict[str, object], bases: Sequence[str], called: str
) -> list[ast.stmt]:
    """Write the rule of a `custom_jvp` function `name`, and its registration.

    There may be at most `parameters.MOST_PATTERNS` tangents. Patterns that the user's rule rejects
    raise an error. `called` is the function's name in messages.

    Raises:
        Refused: if the user's rule rejects every pattern.
    """
    jvp = home.inner()
    primals, tangents, zero = (jvp.names.fresh(name) for name in ("primals", "tangents", "zero"))
    written = _Rule(jvp, [jvp.names.fresh(base) for base in bases], tangents, zero)
    unpacked: ast.stmt = assign(tuple_(map(ast.Name, written.primals)), ast.Name(primals))
    patterns = derivative_rules.absences(params)
    if patterns is None:
        raise derivative_rules.Refused("its rule asks for too many patterns of zeros")
    if len(patterns) == 1:
        (absent,) = patterns
        rule = derivative_rules.jvp_rule(params, absent)
        dots, statements = _by(written, rule, absent)
        present = iter(dots)
        targets = [ast.Name("_" if is_zero else next(present)) for is_zero in absent]
        statements.insert(0, assign(tuple_(targets), ast.Name(tangents)))
        makes_zeros = any(rule.zeros)
    else:
        statements, makes_zeros = _for_patterns(written, params, patterns, called)
    short_name: list[ast.stmt] = [assign(zero, public(_ZERO))] if makes_zeros else []
    body = [*short_name, unpacked, *statements]
    derivative = define(f"{name}_jvp", (primals, tangents), body)
    registered = call(f"{name}.defjvp", ast.Name(derivative.name), symbolic_zeros=TRUE)
    return [derivative, effect(registered)]


def _for_patterns(
    written: _Rule, params: dict[str, object], patterns: Sequence[Sequence[bool]], called: str
) -> tuple[list[ast.stmt], bool]:
    """Write a function for each pattern, and the choice among them.

    Return the statements, and whether a rule makes zeros.
    """
    names, may_be = written.scope.names, derivative_rules.differentiable(params)
    chooser = written.scope.writer.functions.helper("by_zeros", _chooser)
    body: list[ast.stmt] = []
    rules: list[tuple[ast.expr, ast.expr]] = []
    refused: list[ast.expr] = []
    whys: list[derivative_rules.Refused] = []
    makes_zeros = False
    for absent in patterns:
        pattern = value(tuple(is_zero for is_zero, may in zip(absent, may_be, strict=True) if may))
        try:
            rule = derivative_rules.jvp_rule(params, absent)
        except derivative_rules.Refused as error:
            refused.append(pattern)
            whys.append(error)
            continue
        makes_zeros |= any(rule.zeros)
        dots, statements = _by(written, rule, absent)
        present = [primal for primal, zero in zip(written.primals, absent, strict=True) if not zero]
        words = "_".join(["by", *present])
        short = words if len(words) <= _LONGEST else f"by_{len(present)}_tangents"
        function = define(names.fresh(short), tuple(dots), statements)
        body.append(function)
        rules.append((pattern, ast.Name(function.name)))
    if not rules:
        raise whys[0]
    if refused:
        why = scalars.text(f"no derivative of {called} with these zeros: {whys[0]}")
        no_rule = names.fresh("no_rule")
        body.append(define(no_rule, ("*_",), [ast.Raise(call("NotImplementedError", why))]))
        rules += [(pattern, ast.Name(no_rule)) for pattern in refused]
    dots_of: ast.expr = ast.Name(written.tangents)
    if not all(may_be):  # integers have no tangents
        positions = [index for index, may in enumerate(may_be) if may]
        dots_of = tuple_(subscript(dots_of, ast.Constant(index)) for index in positions)
    chosen = names.fresh("rules")
    choice = return_(call(chooser, ast.Name(chosen), dots_of))
    return [*body, assign(chosen, dict_(rules)), choice], makes_zeros


def _chooser() -> ast.FunctionDef:
    """Return the module's function that selects a rule."""
    lines = [
        f"zero = {_ZERO}",
        "zeros = tuple(type(dot) is zero for dot in tangents)",
        "return rules[zeros](*(dot for dot in tangents if type(dot) is not zero))",
    ]
    return define("by_zeros", ("rules", "tangents"), [Raw(lines)])


def _by(
    written: _Rule, rule: derivative_rules.DerivativeRule, absent: Sequence[bool]
) -> tuple[list[str], list[ast.stmt]]:
    """Write the rule for one pattern of zeros.

    Return the names of the nonzero tangents, and the statements.
    """
    scope, primals = written.scope.inner(), written.primals
    inputs = rule.program.jaxpr.invars
    for var, primal in zip(inputs, primals, strict=False):
        scope.write(var, ast.Name(primal))
    present = [primal for primal, is_zero in zip(primals, absent, strict=True) if not is_zero]
    parameters = scope.parameters(inputs[len(primals) :], [f"{primal}_dot" for primal in present])
    results = iter(scope.program(rule.program))
    outputs = [next(results) for _ in rule.zeros]
    dots: list[ast.expr] = []
    for output, is_zero in zip(outputs, rule.zeros, strict=True):
        zero = f"{written.zero}.from_primal_value"
        dots.append(call(zero, output) if is_zero else next(results))
    returned = return_(tuple_([sequence(outputs), sequence(dots)]))
    return parameters, [*scope.body, returned]
