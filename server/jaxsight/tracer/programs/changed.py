"""A traced program with one change, to measure what the change saves of compiling it.

Calls are run inline first, as XLA inlines them, so that each operation can be changed alone. Loops
and branches stay operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.stages import Traced

from jaxsight.wire.messages.requests import BARRIER, BEFORE, ROLLED, WITHOUT
from jaxsight.wire.primitives import INLINED
from jaxsight_source.compat.equations import attributed_to, bind, called
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Var
from jaxsight_source.compat.staging import Program, is_literal, new_variable, open_jaxpr, opened
from jaxsight_source.folding import steps as folding
from jaxsight_source.folding.calls import with_loops
from jaxsight_source.folding.steps import FoldedLoop, FoldedStep, atom_key
from jaxsight_source.jaxprs.base import Environment

_INLINED = INLINED | {"call"}
"""Calls that XLA inlines; `checkpoint` has barriers of its own."""
_MOST_OPERATIONS = 10_000
"""Operations of a program up to which a loop is searched; the search takes a second then."""


class NoSuchChange(Exception):
    """The program has effects, no such operation, or no loop; the message says which."""


@dataclass(frozen=True, slots=True)
class ChangedTrace:
    """A changed program: `stage` is to be lowered for one device."""

    stage: Traced
    operations: int
    """The number of operations of the unchanged program."""
    path: str = ""
    """The operation that the change is about; the first one of a loop."""
    copies: int = 0
    """The iterations of the loop that was rolled up."""


@dataclass(eq=False, slots=True)
class _Flat:
    """A program without calls."""

    operations: list[Equation] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    constants: list[tuple[Var, object]] = field(default_factory=list)
    inputs: Sequence[Var] = ()
    outputs: Sequence[Atom] = ()

    @staticmethod
    def of(jaxpr: object) -> _Flat:
        program = opened(jaxpr)
        flat = _Flat(inputs=program.jaxpr.invars)
        atoms: dict[int, Atom] = {id(var): var for var in program.jaxpr.invars}
        flat.outputs = flat._inline(program, atoms, "")
        return flat

    def _inline(self, program: Program, atoms: dict[int, Atom], prefix: str) -> list[Atom]:
        """Add the operations of a program, and return its results."""
        for var, value in zip(program.jaxpr.constvars, program.consts, strict=True):
            # A new one each time, as a shared jaxpr is inlined at each of its calls.
            atoms[id(var)] = constant = new_variable(var.aval)
            self.constants.append((constant, value))

        def read(atom: Atom) -> Atom:
            return atom if is_literal(atom) else atoms[id(atom)]

        for index, equation in enumerate(program.jaxpr.eqns):
            path, operands = f"{prefix}{index}", list(map(read, equation.invars))
            inner = called(equation) if equation.primitive.name in _INLINED else None
            results: Sequence[Atom]
            if inner is not None:
                part = next(inner_jaxprs(equation)).name
                own = dict(zip(map(id, inner.jaxpr.invars), operands, strict=True))
                results = self._inline(inner, own, f"{path}/{part}/")
            else:
                results = [new_variable(var.aval) for var in equation.outvars]
                self.operations.append(equation.replace(invars=operands, outvars=results))
                self.paths.append(path)
            atoms.update(zip(map(id, equation.outvars), results, strict=True))
        return list(map(read, program.jaxpr.outvars))


def changed(traced: Traced, change: str, at: int) -> ChangedTrace:
    """Return a traced program for one device with a change.

    Args:
        change: `BEFORE` has only the operations before `at`, and returns what the others read;
            `WITHOUT` gets the results of operation `at` as inputs, and returns its operands;
            `BARRIER` has an `optimization_barrier` around its operands; `ROLLED` has the largest
            loop that Python unrolled as a `scan`.
        at: an operation, from 0.

    Raises:
        NoSuchChange: the program has effects, or cannot be changed so.
    """
    if open_jaxpr(traced.jaxpr).effects:
        raise NoSuchChange("a program with effects")
    flat = _Flat.of(traced.jaxpr)
    count = len(flat.operations)
    if change == ROLLED:
        items, loop = _rolled(flat)
        start = next(index for index, item in enumerate(flat.operations) if item is loop.runs[0][0])
        stage = _stage(flat, items, flat.inputs, flat.outputs)
        return ChangedTrace(stage, count, flat.paths[start], len(loop.runs))
    if not 0 <= at < count + (change == BEFORE):
        raise NoSuchChange(f"operation {at} of {count}")
    before, after = flat.operations[:at], flat.operations[at:]
    inputs, outputs, items = list(flat.inputs), list(flat.outputs), [*before, *after]
    if change == BEFORE:
        items = before
        outputs = _made([*(atom for item in after for atom in item.invars), *outputs], before)
    elif change == WITHOUT:
        removed, *items[at:] = after
        inputs += removed.outvars
        outputs = _made([*outputs, *removed.invars], items)
    barrier = after[0] if change == BARRIER else None
    return ChangedTrace(_stage(flat, items, inputs, outputs, barrier), count, (*flat.paths, "")[at])


def _made(atoms: Iterable[Atom], items: Sequence[Equation]) -> list[Atom]:
    """Return those of some atoms that operations compute, each once."""
    made = {id(var) for item in items for var in item.outvars}
    return list({id(atom): atom for atom in atoms if id(atom) in made}.values())


def _rolled(flat: _Flat) -> tuple[list[Any], FoldedLoop]:
    """Return the operations with the largest loop as one step."""
    if len(flat.operations) > _MOST_OPERATIONS:
        raise NoSuchChange(f"{len(flat.operations)} operations")
    steps = with_loops(list(flat.operations), flat.outputs, folding.EquationNumbers())
    loops = [step for step in steps if isinstance(step, FoldedStep) and step.name == folding.LOOP]
    largest = max(loops, key=lambda step: len(step.members), default=None)
    if largest is None or any(isinstance(item, FoldedStep) for item in largest.members):
        raise NoSuchChange("no loop")
    items: list[object] = []
    for step in steps:
        items += step.members if isinstance(step, FoldedStep) and step is not largest else [step]
    return items, largest.family


def _stage(
    flat: _Flat,
    items: Sequence[Any],
    inputs: Sequence[Var],
    outputs: Sequence[Atom],
    barrier: Equation | None = None,
) -> Traced:
    """Return the traced program of some operations and loops."""

    def program(*values: object) -> list[object]:
        environment: Environment[object] = Environment()
        for var, value in (*flat.constants, *zip(inputs, values, strict=True)):
            environment.write(var, value)
        for item in items:
            if isinstance(item, FoldedStep):
                _run_loop(item.family, environment)
            else:
                _run(item, environment, held=item is barrier)
        return [_value(atom, environment) for atom in outputs]

    struct: Any = jax.ShapeDtypeStruct
    types = [struct(var.aval.shape, var.aval.dtype) for var in inputs]
    return jax.jit(program).trace(*types)


def _value(atom: Atom, environment: Environment[object]) -> object:
    return atom.val if is_literal(atom) else environment.read(atom)


def _array(atom: Atom, environment: Environment[object]) -> Any:
    return jnp.asarray(atom.val, atom.aval.dtype) if is_literal(atom) else environment.read(atom)


def _run(
    equation: Equation,
    environment: Environment[object],
    values: Sequence[object] | None = None,
    held: bool = False,
) -> None:
    """Run an operation; if it is `held`, nothing before it fuses with it."""
    if values is None:
        values = [_value(atom, environment) for atom in equation.invars]
    if held:
        barrier: Any = jax.lax.optimization_barrier
        values = barrier(list(values))
    with attributed_to(equation):
        results = bind(equation, values)
    for var, result in zip(equation.outvars, results, strict=True):
        environment.write(var, result)


def _run_loop(loop: FoldedLoop, environment: Environment[object]) -> None:
    """Run the iterations of a loop as a `scan`."""
    first, last = loop.runs[0], loop.runs[-1]
    reads = list(_reads(loop))

    def body(carry: Sequence[object], varying: Sequence[object]) -> tuple[list[object], Any]:
        own: Environment[object] = Environment(environment)
        reading = iter(reads)
        for equation in first:
            values = [
                _value(atom, own) if (read := next(reading)) is None else read(carry, varying)
                for atom in equation.invars
            ]
            _run(equation, own, values)
        sent, collected, finals = (
            [own.read(first[position].outvars[output]) for position, output in places]
            for places in ([place for _, place in loop.carried], loop.collected, loop.finals)
        )
        return [*sent, *finals], collected

    starts = [_value(cast(Atom, initial), environment) for initial, _ in loop.carried]
    finals = [first[position].outvars[output].aval for position, output in loop.finals]
    starts += [jnp.zeros(aval.shape, aval.dtype) for aval in finals]
    rows = [jnp.stack([_array(atom, environment) for atom in row]) for row in loop.varying]
    ends, collected = jax.lax.scan(body, starts, rows, length=len(loop.runs))
    places = [*(place for _, place in loop.carried), *loop.finals]
    for (position, output), value in zip(places, ends, strict=True):
        environment.write(last[position].outvars[output], value)
    for (position, output), values in zip(loop.collected, collected, strict=True):
        for number, run in enumerate(loop.runs):
            environment.write(run[position].outvars[output], values[number])


_Read = Callable[[Sequence[object], Sequence[object]], object]
"""Returns an operand in an iteration, from the carried and the varying values."""


def _reads(loop: FoldedLoop) -> Iterator[_Read | None]:
    """Yield how the operands of an iteration are read, in order; `None` is as in the first one."""
    first = loop.runs[0]
    varying = {tuple(map(atom_key, row)): index for index, row in enumerate(loop.varying)}
    carried: dict[tuple[int, folding.Place], int] = {
        (id(initial), place): index for index, (initial, place) in enumerate(loop.carried)
    }
    made: Mapping[int, folding.Place] = {
        id(var): (position, output)
        for position, equation in enumerate(first)
        for output, var in enumerate(equation.outvars)
    }
    for position, equation in enumerate(first):
        for slot, atom in enumerate(equation.invars):
            row = [run[position].invars[slot] for run in loop.runs]
            source = made.get(id(row[1]))
            if id(atom) in made:
                yield None
            elif source is not None and (key := (id(atom), source)) in carried:
                yield _item(0, carried[key])
            elif (index := varying.get(tuple(map(atom_key, row)))) is not None:
                yield _item(1, index)
            else:
                yield None


def _item(which: int, index: int) -> _Read:
    return lambda *lists: lists[which][index]
