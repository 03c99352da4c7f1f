"""Runs candidates, in a process of their own: as functions of arrays, like a user's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

import jax
import numpy as np

from jaxsight_repro.checks.base import Check
from jaxsight_repro.compat import configuration
from jaxsight_repro.compat.mesh_equations import concrete, mesh_axes
from jaxsight_repro.environment import ProgramEnvironment
from jaxsight_repro.failures import RunFailure, failure_in
from jaxsight_repro.reducing.equations.candidates import Keys, Shrunk, Value
from jaxsight_repro.values import has_nan
from jaxsight_source.compat import control_flow
from jaxsight_source.compat.equations import NanInCall, bind, called
from jaxsight_source.compat.jaxpr_types import Atom, Equation
from jaxsight_source.compat.staging import Program, is_literal, opened

Path = tuple[tuple[int, int], ...]
"""The way to an inner program: of each level, the position of the equation, and which of its
`programs_of` it is.
"""


def arrays_of(values: Sequence[Value]) -> tuple[jax.Array, ...]:
    """Return arguments as JAX's arrays; this initializes the backend."""
    return tuple(
        jax.random.wrap_key_data(jax.numpy.asarray(value.data), impl=value.impl)
        if isinstance(value, Keys)
        else jax.numpy.asarray(value)
        for value in values
    )


def value_of(array: object) -> Value | None:
    """Return an array as NumPy's; None if it is no array."""
    if isinstance(array, (jax.Array, np.ndarray)):
        if jax.numpy.issubdtype(array.dtype, jax.dtypes.prng_key):
            implementation = str(jax.random.key_impl(array))
            return Keys(np.asarray(jax.random.key_data(array)), implementation)
        return np.asarray(array)
    return None


def programs_of(equation: Equation) -> list[Program]:
    """Return the inner programs of an equation that are run, in a fixed order."""
    match equation.primitive.name:
        case "scan":
            return [control_flow.scan(equation.params).body]
        case "while":
            return [opened(equation.params[name]) for name in ("body_jaxpr", "cond_jaxpr")]
        case "cond":
            return [opened(branch) for branch in equation.params["branches"]]
    program = called(equation)
    return [] if program is None else [program]


def read(atoms: Sequence[Atom], values: Mapping[int, jax.Array]) -> list[jax.Array]:
    """Return the values of atoms: those of literals, and those of variables by identity."""
    return [atom.val if is_literal(atom) else values[id(atom)] for atom in atoms]


Observer: TypeAlias = Callable[[Equation, Sequence[jax.Array], Sequence[jax.Array]], None]


class FirstNan(Exception):
    """An equation made a NaN of operands without any."""

    def __init__(self, equation: Equation, operands: Sequence[jax.Array]) -> None:
        super().__init__()
        self.equation = equation
        self.operands = operands


def stop_at_nan(
    equation: Equation, operands: Sequence[jax.Array], results: Sequence[jax.Array]
) -> None:
    """Observe a run; raise `FirstNan` at the first equation that makes a NaN."""
    if any(map(has_nan, results)) and not any(map(has_nan, operands)):
        raise FirstNan(equation, operands)


@dataclass(slots=True)
class EquationRun:
    """A run of equations.

    Attributes:
        is_split: whether calls and bodies of loops run one operation at a time.
        observe: gets each equation, its operands and its results.
        frames: the inner programs that run, with their operands; the innermost one is last.
    """

    is_split: bool
    observe: Observer = lambda equation, operands, results: None
    frames: list[tuple[Path, Sequence[jax.Array]]] = field(default_factory=list)

    def steps(
        self, equations: Sequence[Equation], values: dict[int, jax.Array], path: Path = ()
    ) -> Iterator[tuple[list[jax.Array], Sequence[jax.Array]]]:
        """Run equations one after the other; yield the operands and the results of each.

        `values` has those of variables by identity, and gets the results.
        """
        for position, equation in enumerate(equations):
            operands = read(equation.invars, values)
            with equation.ctx.manager:
                programs = programs_of(equation) if self.is_split else []
                results = (
                    self._split(equation, programs, operands, (*path, (position, 0)))
                    if programs
                    else _bound(equation, operands)
                )
            self.observe(equation, operands, results)
            values.update(zip(map(id, equation.outvars), results, strict=True))
            yield operands, results

    def program(
        self, program: Program, operands: Sequence[jax.Array], path: Path
    ) -> list[jax.Array]:
        """Run an inner program."""
        self.frames.append((path, operands))
        jaxpr = program.jaxpr
        values = dict(zip(map(id, jaxpr.invars), operands, strict=True))
        constants = cast(tuple[jax.Array, ...], program.consts)
        values.update(zip(map(id, jaxpr.constvars), constants, strict=True))
        for _ in self.steps(jaxpr.eqns, values, path):
            pass
        self.frames.pop()
        return read(jaxpr.outvars, values)

    def _split(
        self, equation: Equation, programs: Sequence[Program], operands: list[jax.Array], path: Path
    ) -> Sequence[jax.Array]:
        """Run a call, a loop or a branch one operation at a time."""

        def run(which: int, operands: Sequence[jax.Array]) -> list[jax.Array]:
            return self.program(programs[which], operands, (*path[:-1], (path[-1][0], which)))

        match equation.primitive.name:
            case "scan":
                return _scan(equation, operands, lambda operands: run(0, operands))
            case "while":
                _, for_test, _, for_body, carry = control_flow.while_loop(equation, operands)
                while bool(run(1, [*for_test, *carry])[0]):
                    carry = run(0, [*for_body, *carry])
                return carry
            case "cond":
                return run(int(operands[0]), operands[1:])
            case _:
                return run(0, operands)


def _bound(equation: Equation, operands: list[jax.Array]) -> Sequence[jax.Array]:
    """Run an equation; where `jax_debug_nans` stops a call, one operation of it at a time.

    So does `jax.jit`, which then raises the operation's error.
    """
    try:
        return bind(equation, operands)
    except NanInCall:
        if programs := programs_of(equation):
            EquationRun(is_split=False).program(programs[0], operands, ())
        raise


def _scan(
    equation: Equation,
    operands: list[jax.Array],
    body: Callable[[Sequence[jax.Array]], list[jax.Array]],
) -> Sequence[jax.Array]:
    scan = control_flow.scan(equation.params)
    first = scan.consts + scan.carry
    consts, carry, xs = operands[: scan.consts], operands[scan.consts : first], operands[first:]
    rows: list[list[jax.Array]] = []
    order = range(scan.length)
    for index in reversed(order) if scan.reverse else order:
        results = body([*consts, *carry, *(x[index] for x in xs)])
        carry = results[: scan.carry]
        rows.append(results[scan.carry :])
    if not rows:
        return list(bind(equation, operands))
    if scan.reverse:
        rows.reverse()
    return [*carry, *(jax.numpy.stack(column) for column in zip(*rows, strict=True))]


def arguments_of(candidate: Shrunk) -> dict[int, jax.Array]:
    """Return the arrays of a candidate's inputs, by identity."""
    arrays = arrays_of(candidate.arguments)
    return dict(zip(map(id, candidate.inputs), arrays, strict=True))


def function_of(candidate: Shrunk) -> Callable[..., tuple[jax.Array, ...]]:
    """Return a candidate as a function of arrays.

    With `jax.disable_jit`, it runs calls and bodies of loops one operation at a time.
    """

    def main(*arguments: jax.Array) -> tuple[jax.Array, ...]:
        values = dict(zip(map(id, candidate.inputs), arguments, strict=True))
        for _ in EquationRun(jax.config.values["jax_disable_jit"]).steps(
            candidate.equations, values
        ):
            pass
        return tuple(read(candidate.outputs, values))

    return main


def observed(candidate: Shrunk, check: Check, jitted: bool) -> RunFailure:
    """Run the demonstration of a check on a candidate, in this process.

    Results without `jit` that are known for its arguments are not computed again.
    """
    candidate = placed(candidate)
    program = function_of(candidate)
    known = [candidate.eager.get(id(atom)) for atom in candidate.outputs]
    results = [value for value in known if value is not None]

    def main(*arguments: jax.Array) -> tuple[jax.Array, ...]:
        if jax.config.values["jax_disable_jit"] and len(results) == len(known):
            return arrays_of(results)
        return program(*arguments)

    namespace = {
        "jax": jax,
        "jnp": jax.numpy,
        "np": np,
        "main": main,
        "inputs": lambda: arrays_of(candidate.arguments),
    }
    lines = "\n".join(check.lines(jitted))
    return failure_in(lambda: exec(lines, namespace))  # noqa: S102 - its own text


# In the process that reduces, meshes have no devices, as one that uses any must not fork: a child
# makes meshes of its first devices.


def _count(candidate: Shrunk) -> int:
    """Return how many devices the meshes of a candidate need: at least one."""
    return max((math.prod(m.values()) for m in mesh_axes(candidate.equations)), default=1)


def placed(candidate: Shrunk) -> Shrunk:
    """Return a candidate with meshes of devices, in a child, which gets as many as they need."""
    configuration.simulate_devices(_count(candidate))
    return replace(candidate, equations=tuple(map(concrete, candidate.equations)))


def environment_of(candidate: Shrunk, environment: ProgramEnvironment) -> ProgramEnvironment:
    """Return what a candidate runs with, with as many devices as it needs."""
    options, variables = configuration.with_devices(
        environment.options, environment.variables, _count(candidate)
    )
    return replace(environment, options=options, variables=variables)
