"""Runs candidates, in a process of their own: as functions of arrays, like a user's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from jaxsight.interpreters.compat import control_flow
from jaxsight.interpreters.compat.equations import bind, called
from jaxsight.interpreters.compat.jaxpr_types import Atom, Equation
from jaxsight.interpreters.compat.staging import Program, is_literal, opened
from jaxsight.repro.checks.base import Check
from jaxsight.repro.failures import Failure
from jaxsight.repro.reducing.checker import raised
from jaxsight.repro.reducing.equations.candidates import Candidate, Keys, Value


def function_of(candidate: Candidate) -> Callable[..., tuple[Any, ...]]:
    """Return a candidate as a function of arrays.

    With `jax.disable_jit`, it runs calls and bodies of loops one operation at a time.
    """

    def main(*arguments: object) -> tuple[Any, ...]:
        values = dict(zip(map(id, candidate.inputs), arguments, strict=True))
        _run(candidate.equations, values)
        return tuple(_read(values, atom) for atom in candidate.outputs)

    return main


def arrays_of(values: Sequence[Value]) -> tuple[Any, ...]:
    """Return arguments as JAX's arrays; this initializes the backend."""
    return tuple(
        jax.random.wrap_key_data(jax.numpy.asarray(value.data), impl=value.impl)
        if isinstance(value, Keys)
        else jax.numpy.asarray(value)
        for value in values
    )


def value_of(array: Any) -> Value | None:
    """Return an array as NumPy's; None if it is no array."""
    if isinstance(array, (jax.Array, np.ndarray)):
        if jax.numpy.issubdtype(array.dtype, jax.dtypes.prng_key):
            implementation = str(jax.random.key_impl(array))
            return Keys(np.asarray(jax.random.key_data(array)), implementation)
        return np.asarray(array)
    return None


def steps(candidate: Candidate) -> Iterator[tuple[int, list[Any], Sequence[Any]]]:
    """Run equation by equation; yield each position with the operands and the results."""
    arguments = arrays_of(candidate.arguments)
    values = dict(zip(map(id, candidate.inputs), arguments, strict=True))
    for index, equation in enumerate(candidate.equations):
        operands = [_read(values, atom) for atom in equation.invars]
        results = _results(equation, operands)
        values.update(zip(map(id, equation.outvars), results, strict=True))
        yield index, operands, results


def _run(equations: Sequence[Equation], values: dict[int, Any]) -> None:
    for equation in equations:
        results = _results(equation, [_read(values, atom) for atom in equation.invars])
        values.update(zip(map(id, equation.outvars), results, strict=True))


def _read(values: dict[int, Any], atom: Atom) -> Any:
    return atom.val if is_literal(atom) else values[id(atom)]


def _results(equation: Equation, operands: list[Any]) -> Sequence[Any]:
    with equation.ctx.manager:
        if jax.config.values["jax_disable_jit"]:
            split = _split(equation, operands)
            if split is not None:
                return split
        return bind(equation, operands)


def _split(equation: Equation, operands: list[Any]) -> Sequence[Any] | None:
    """Run a call or a loop one operation at a time; return None for other primitives."""
    match equation.primitive.name:
        case "scan":
            return _scan(equation, operands)
        case "while":
            return _while(equation, operands)
        case "cond":
            choice, *rest = operands
            branch = equation.params["branches"][int(choice)]
            return _program(opened(branch), rest)
    program = called(equation)
    return None if program is None else _program(program, operands)


def _program(program: Program, operands: Sequence[Any]) -> list[Any]:
    jaxpr = program.jaxpr
    values = dict(zip(map(id, jaxpr.invars), operands, strict=True))
    values.update(zip(map(id, jaxpr.constvars), program.consts, strict=True))
    _run(jaxpr.eqns, values)
    return [_read(values, atom) for atom in jaxpr.outvars]


def _scan(equation: Equation, operands: list[Any]) -> list[Any]:
    scan = control_flow.scan(equation.params)
    first = scan.consts + scan.carry
    consts, init, xs = operands[: scan.consts], operands[scan.consts : first], operands[first:]

    def step(carry: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
        results = _program(scan.body, [*consts, *carry, *slices])
        return results[: scan.carry], results[scan.carry :]

    carry, ys = lax.scan(step, list(init), list(xs), length=scan.length, reverse=scan.reverse)
    return [*carry, *ys]


def _while(equation: Equation, operands: list[Any]) -> list[Any]:
    params = equation.params
    of_test, of_body = params["cond_nconsts"], params["body_nconsts"]
    for_test, for_body = operands[:of_test], operands[of_test : of_test + of_body]
    carry = operands[of_test + of_body :]
    test, body = opened(params["cond_jaxpr"]), opened(params["body_jaxpr"])
    while bool(_program(test, [*for_test, *carry])[0]):
        carry = _program(body, [*for_body, *carry])
    return carry


def _known_eagerly(candidate: Candidate) -> Callable[..., tuple[Any, ...]]:
    """Return a candidate as a function, whose results without `jit` need not be computed again.

    They are known for the candidate's own arguments only.
    """
    main = function_of(candidate)
    known = [candidate.eager.get(id(atom)) for atom in candidate.outputs]
    results = [value for value in known if value is not None]
    if len(results) < len(known):
        return main

    def known_main(*arguments: object) -> tuple[Any, ...]:
        if jax.config.values["jax_disable_jit"]:
            return arrays_of(results)
        return main(*arguments)

    return known_main


def observed(candidate: Candidate, check: Check, jitted: bool) -> Failure:
    """Run the demonstration of a check on a candidate, in this process."""
    namespace = {
        "jax": jax,
        "jnp": jax.numpy,
        "np": np,
        "main": _known_eagerly(candidate),
        "inputs": lambda: arrays_of(candidate.arguments),
    }
    lines = "\n".join(check.lines(jitted))
    return raised(lambda: exec(lines, namespace))  # noqa: S102 - its own text
