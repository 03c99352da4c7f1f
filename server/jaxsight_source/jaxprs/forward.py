"""Runs a jaxpr forwards with a pytree of arrays in place of each array.

Such a pytree may be a pair of bounds, a value with its error, or a pair of derivatives. Calls are
run inline; loops and branches stay loops and branches, with such pytrees as their carries and
operands, so each leaf's leading axis must be that of the array for which it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from jax import lax

from jaxsight_source.compat import control_flow
from jaxsight_source.compat.equations import attributed_to, called
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Params
from jaxsight_source.compat.staging import Program, is_literal, opened
from jaxsight_source.jaxprs.base import Environment, Rules

Rule: TypeAlias = Callable[..., object]
"""`rule(equation, *values)` returns the pytree for the result, or a list of pytrees if the
primitive has several results.
"""

_Trees: TypeAlias = list[object]


class Interpreter:
    """Interprets jaxprs by rules.

    >>> bounds = Interpreter(lift=lambda x: (x, x), decide=lambda x: x[0])
    >>> @bounds.rules("neg")
    ... def neg(equation, x):
    ...     return -x[1], -x[0]
    >>> @bounds.rules("exp", "tanh")
    ... def rising(equation, x):
    ...     return tuple(equation.primitive.bind(end, **equation.params) for end in x)
    >>> jaxpr = jax.make_jaxpr(lambda x: jax.numpy.tanh(-x))(0.0)
    >>> [(low, high)] = bounds.run(jaxpr, [(0.5, 1.0)])
    >>> print(f"{low:.3f} to {high:.3f}")
    -0.762 to -0.462

    Args:
        lift: converts a constant of the program to a pytree.
        decide: converts a pytree back to a number, for branches and loops that depend on it.

    A rule for `scan`, `while`, `cond` or a call replaces the handling here.
    """

    def __init__(self, lift: Callable[[Any], object], decide: Callable[[Any], object]) -> None:
        self.rules: Rules[Rule] = Rules()
        self._lift = lift
        self._decide = decide

    def run(self, jaxpr: object, values: Sequence[object]) -> list[Any]:
        """Return the pytrees for the results of a jaxpr, from the pytrees for its inputs.

        `jaxpr` is a result of `jax.make_jaxpr`. Raise `NotImplementedError` for a primitive without
        a rule.
        """
        return self._run(opened(jaxpr), values)

    def _run(self, program: Program, values: Sequence[object]) -> list[object]:
        environment: Environment[object] = Environment()
        for var, value in zip(program.jaxpr.invars, values, strict=True):
            environment.write(var, value)
        for var, constant in zip(program.jaxpr.constvars, program.consts, strict=True):
            environment.write(var, self._lift(constant))

        def read(atom: Atom) -> object:
            return self._lift(atom.val) if is_literal(atom) else environment.read(atom)

        for equation in program.jaxpr.eqns:
            with attributed_to(equation):
                results = self._results(equation, [read(atom) for atom in equation.invars])
            for var, result in zip(equation.outvars, results, strict=True):
                environment.write(var, result)
        return [read(atom) for atom in program.jaxpr.outvars]

    def _results(self, equation: Equation, values: Sequence[object]) -> Sequence[object]:
        name = equation.primitive.name
        rule = self.rules.of(name)
        if rule is not None:
            result = rule(equation, *values)
            several = equation.primitive.multiple_results
            return cast(Sequence[object], result) if several else [result]
        match name:
            case "scan":
                return self._scan(equation.params, values)
            case "while":
                return self._while(equation, values)
            case "cond":
                return self._cond(equation.params, values)
            case _ if (program := called(equation)) is not None:
                return self._run(program, values)
            case _:
                raise NotImplementedError(f"no rule for {name}")

    def _scan(self, params: Params, values: Sequence[object]) -> Sequence[object]:
        scan = control_flow.scan(params)
        first = scan.consts + scan.carry
        consts, init, xs = values[: scan.consts], values[scan.consts : first], values[first:]

        def step(carry: _Trees, slices: _Trees) -> tuple[_Trees, _Trees]:
            results = self._run(scan.body, [*consts, *carry, *slices])
            return results[: scan.carry], results[scan.carry :]

        carry, ys = lax.scan(
            step, list(init), list(xs), length=scan.length, reverse=scan.reverse, unroll=scan.unroll
        )
        return [*carry, *ys]

    def _while(self, equation: Equation, values: Sequence[object]) -> Sequence[object]:
        test, for_test, body, for_body, init = control_flow.while_loop(equation, values)
        return lax.while_loop(
            lambda carry: self._decide(self._run(test, [*for_test, *carry])[0]),
            lambda carry: self._run(body, [*for_body, *carry]),
            list(init),
        )

    def _cond(self, params: Params, values: Sequence[object]) -> Sequence[object]:
        choice, *operands = values

        def branch(program: Program) -> Callable[..., list[object]]:
            return lambda *arguments: self._run(program, arguments)

        branches = [branch(opened(jaxpr)) for jaxpr in params["branches"]]
        return list(lax.switch(self._decide(choice), branches, *operands))
