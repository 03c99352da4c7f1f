"""Candidates: programs that the reducer tries, as equations with the values of their inputs."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeGuard, TypeVar

import numpy as np

from jaxsight_repro.compat.mesh_equations import mesh_axes
from jaxsight_source.compat import avals, staging
from jaxsight_source.compat.avals import is_key
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Literal, Params, Var
from jaxsight_source.compat.pallas import kernel_call
from jaxsight_source.compat.staging import (
    Program,
    is_dropped,
    is_jaxpr,
    is_literal,
    new_variable,
    opened,
    substituted,
)

Array: TypeAlias = np.ndarray
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Keys:
    """Typed PRNG keys: their data, and the name of their implementation."""

    data: Array
    impl: str


Value: TypeAlias = Array | Keys


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A program without constants, and its arguments.

    Attributes:
        eager: what variables are for these arguments without `jit`, by identity, as far as known.
    """

    inputs: tuple[Var, ...]
    arguments: tuple[Value, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Atom, ...]
    eager: Mapping[int, Value] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of equations, including those of inner programs."""
        return weight(self.equations)

    @property
    def producers(self) -> dict[int, int]:
        """The positions of the equations that compute variables, by their identities."""
        return {
            id(var): index
            for index, equation in enumerate(self.equations)
            for var in equation.outvars
        }


def of_program(program: Program, arguments: Sequence[Value]) -> Shrunk:
    """Return a traced program as a candidate; its constants become inputs.

    A program without results returns all that it computes and does not read.

    Raises:
        TypeError: a constant is not an array.
    """
    jaxpr = program.jaxpr
    constants = tuple(np.asarray(value) for value in program.consts)
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    arguments = (*constants, *arguments)
    candidate = Shrunk(inputs, arguments, tuple(jaxpr.eqns), tuple(jaxpr.outvars))
    if not candidate.outputs:
        candidate = cut(candidate, range(len(candidate.equations)), {}) or candidate
    return pruned(candidate)


def pruned(candidate: Shrunk) -> Shrunk:
    """Return a candidate without inputs that nothing reads."""
    read = reads(candidate.equations) | {id(atom) for atom in candidate.outputs}
    kept = [index for index, var in enumerate(candidate.inputs) if id(var) in read]
    return replace(
        candidate,
        inputs=tuple(candidate.inputs[index] for index in kept),
        arguments=tuple(candidate.arguments[index] for index in kept),
    )


def replaced(candidate: Shrunk, replacements: dict[int, Atom]) -> Shrunk:
    """Return a candidate in which atoms take the place of variables."""
    equations = tuple(
        equation.replace(invars=substituted(equation.invars, replacements))
        if any(id(atom) in replacements for atom in equation.invars)
        else equation
        for equation in candidate.equations
    )
    outputs = tuple(atom for atom in candidate.outputs if id(atom) not in replacements)
    return pruned(Shrunk(candidate.inputs, candidate.arguments, equations, outputs))


def cones(candidate: Shrunk, atoms: Iterable[Atom]) -> list[list[int]]:
    """Return the positions of the equations that each of some results needs, the fewest first."""
    producers = candidate.producers
    needed: list[list[int]] = []
    for atom in atoms:
        kept: set[int] = set()
        pending = [producers[id(atom)]] if id(atom) in producers else []
        while pending:
            index = pending.pop()
            if index not in kept:
                kept.add(index)
                read = map(id, candidate.equations[index].invars)
                pending += [producers[key] for key in read if key in producers]
        needed.append(sorted(kept))
    return sorted(filter(None, needed), key=len)


def reads(equations: Iterable[Equation]) -> set[int]:
    """Return the identities of all operands of equations."""
    return {id(atom) for equation in equations for atom in equation.invars}


def cut(candidate: Shrunk, kept: Iterable[int], values: Mapping[int, Value]) -> Shrunk | None:
    """Return the program of some equations of a candidate.

    Variables that they use but do not produce become inputs; those that none of them reads become
    outputs.

    Args:
        kept: positions of equations, in order.
        values: values of variables, by identity.

    Returns:
        None if a new input is no array.
    """
    equations = [candidate.equations[index] for index in kept]
    read = reads(equations)
    for position, equation in enumerate(equations):
        if equation.outvars and all(map(is_dropped, equation.outvars)):  # its results are outputs
            new = [new_variable(var.aval) for var in equation.outvars]
            equations[position] = equation.replace(outvars=new)
    results = [var for equation in equations for var in equation.outvars]
    produced = set(map(id, results))
    own = dict(zip(map(id, candidate.inputs), candidate.arguments, strict=True))
    inputs = {
        id(atom): atom
        for equation in equations
        for atom in equation.invars
        if not is_literal(atom) and id(atom) not in produced
    }
    arguments: list[Value] = []
    eager = candidate.eager
    for key, var in inputs.items():
        value = own.get(key, values.get(key))
        if value is None:
            eager = {}
            value = zeros(var.aval)
        if value is None:
            return None
        arguments.append(value)
    outputs = [var for var in results if id(var) not in read and not is_dropped(var)]
    parts = tuple(inputs.values()), tuple(arguments), tuple(equations), tuple(outputs)
    return Shrunk(*parts, eager)


def zeros(aval: object) -> Value | None:
    """Return zeros of an abstract value; None if it is no array."""
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    if shape is None or dtype is None or is_key(aval):
        return None
    return np.broadcast_to(np.zeros((), dtype), shape)


def weight(equations: Iterable[Equation]) -> int:
    """Count equations and those of their inner programs; filled arrays count nothing."""
    total = 0
    for equation in equations:
        filled = equation.primitive.name == "broadcast_in_dim" and is_literal(equation.invars[0])
        total += not filled
        total += sum(weight(part.jaxpr.eqns) for part in inner_jaxprs(equation))
    return total


def cost(candidate: Shrunk) -> tuple[int, ...]:
    """Return what the reducer minimizes, most important first."""
    variables = (*candidate.inputs, *(v for e in candidate.equations for v in e.outvars))
    shapes = [var.aval.shape for var in variables if hasattr(var.aval, "shape")]
    meshes = mesh_axes(candidate.equations)
    return (
        candidate.count,
        len(candidate.inputs) + len(candidate.outputs),
        sum(math.prod(mesh.values()) + len(mesh) for mesh in meshes),
        sum(map(math.prod, shapes)),
        sum(map(len, shapes)),
        iterations(candidate.equations),
        sum(len(equation.invars) for equation in candidate.equations),
        sum(map(avals.size, (var.aval for var in candidate.inputs))),
        sum(map(_complexity, candidate.arguments)),
    )


def _complexity(value: Value) -> int:
    """Return how long the text of a value is: 0 for zeros, 1 for another number throughout."""
    if isinstance(value, Keys):
        return 4 + int(np.count_nonzero(value.data))
    if value.size == 0 or not value.any():
        return 0
    flat = value.reshape(-1)
    if (flat == flat[0]).all():
        return 1 if flat[0] == 1 else 1 + len(str(flat[0]))
    if flat.dtype.kind == "c" or not np.isfinite(flat.astype(float)).all():
        return 6 + flat.size
    if (flat == np.arange(flat.size)).all():
        return 3
    whole = (flat == np.round(flat.astype(float)).astype(flat.dtype)).all()
    return 4 + flat.size * (1 if whole else 3)


def cheaper(candidate: Shrunk, tries: Iterable[Shrunk | None]) -> Iterator[Shrunk | None]:
    """Yield those of other candidates that cost less."""
    before = cost(candidate)
    for smaller in tries:
        if smaller is not None and cost(smaller) < before:
            yield smaller


def is_finite(candidate: Shrunk) -> bool:
    """Return whether all arguments are finite."""
    return all(map(is_finite_value, candidate.arguments))


def is_finite_value(value: Value) -> bool:
    """Return whether all numbers of a value are finite."""
    if isinstance(value, Keys) or value.dtype.kind in "iub":
        return True
    return bool(np.isfinite(value.astype(complex)).all())


_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


@dataclass(slots=True)
class Digests:
    """Computes digests of candidates, which are the same in every process."""

    _known: dict[int, tuple[object, str]] = field(default_factory=dict)
    """The digests of parts by identity, with what must live for it."""

    def of(self, candidate: Shrunk) -> str:
        """Return the digest of a candidate."""
        numbers: dict[int, int] = {}

        def text(atoms: Iterable[Atom]) -> str:
            return " ".join(
                f"{atom.val!r}:{avals.text(atom.aval)}"
                if is_literal(atom)
                else str(numbers[id(atom)])
                for atom in atoms
            )

        parts: list[str] = []
        for var, value in zip(candidate.inputs, candidate.arguments, strict=True):
            numbers[id(var)] = len(numbers)
            parts.append(f"{avals.text(var.aval)}={self._once(value, value_digest)}")
        for equation in candidate.equations:
            operands = text(equation.invars)
            for var in equation.outvars:
                numbers[id(var)] = len(numbers)
            results = " ".join(avals.text(var.aval) for var in equation.outvars)
            params = self._once(equation.params, _params_digest)
            parts.append(f"{results}={equation.primitive.name}[{params}] {operands}")
        parts.append(text(candidate.outputs))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    def _once(self, part: T, digest: Callable[[T], str]) -> str:
        """Return the digest of a part that many candidates share."""
        if id(part) not in self._known:
            self._known[id(part)] = part, digest(part)
        return self._known[id(part)][1]


def _params_digest(params: Params) -> str:
    text = ";".join(f"{name}={_text(value)}" for name, value in sorted(params.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def value_digest(value: Value) -> str:
    """Return the digest of a value."""
    data = value.data if isinstance(value, Keys) else value
    if data.size and data.strides and not any(data.strides):  # one number, broadcast
        data = data.reshape(-1)[:1]
    digest = hashlib.sha256(f"{data.dtype}{value.data.shape}".encode())
    digest.update(np.ascontiguousarray(data).tobytes())
    return digest.hexdigest()[:16]


def _text(parameter: object) -> str:
    text = _ADDRESS.sub("@", str(parameter))
    parts = parameter if isinstance(parameter, (tuple, list)) else (parameter,)
    for part in parts:
        if is_jaxpr(part):
            text += "".join(value_digest(np.asarray(value)) for value in opened(part).consts)
    return text


def iterations(equations: Iterable[Equation]) -> int:
    """Count iterations of loops, at every level; of a `while`, the integers that bound it.

    Of kernels, positions in the grid count, and elements of blocks.
    """
    total = 0
    for equation in equations:
        if equation.primitive.name == "scan":
            total += equation.params["length"]
        elif equation.primitive.name == "pallas_call":
            call = kernel_call(equation)
            total += (call.programs or 0) + sum(math.prod(block.sizes) for block in call.blocks)
        elif equation.primitive.name == "while":
            tested = staging.open_jaxpr(equation.params["cond_jaxpr"])
            atoms = [*equation.invars, *(atom for each in tested.eqns for atom in each.invars)]
            total += sum(abs(int(atom.val)) for atom in atoms if is_bound(atom))
        total += sum(iterations(part.jaxpr.eqns) for part in inner_jaxprs(equation))
    return total


def is_bound(atom: Atom) -> TypeGuard[Literal]:
    return staging.is_literal(atom) and atom.aval.dtype.kind in "iu"
