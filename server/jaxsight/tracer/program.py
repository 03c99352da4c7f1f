"""A traced program as plain data: what findings are made from, without JAX.

Part of the protocol with a tracer, so the standard library alone. Values are numbered through the
whole program; a `Step` names what it reads and gives by these numbers. Paths of equations are those
of everything else here: `3/body/1` (`tracer.compat.jaxprs`).
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.tracer.places import Span

INPUT, CONSTANT, LITERAL, RESULT = "input", "constant", "literal", "result"


@dataclass(frozen=True, slots=True)
class Value:
    """One array of a program.

    `text` is its type as jaxprs print it (`f32[8,16]`), `origin` one of the four above.
    """

    text: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    origin: str
    weak: bool = False
    said: str = ""
    """What a scalar is as Python source; for an argument its name; for a captured array with a
    rule, what would make it (`jnp.arange(1, 10)`).
    """
    integers: tuple[int, ...] = ()
    """Of a captured array of integers or booleans its elements, row by row; of one with more than
    64 the least and the greatest.
    """


@dataclass(frozen=True, slots=True)
class Body:
    """A jaxpr: the program's own (`name` is empty), or one that an equation carries."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One equation.

    `parameters` are those that say something, as Python literals where they can be.
    """

    path: str
    primitive: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    span: Span | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    bodies: tuple[Body, ...] = ()
    backward: bool = False
    """It is of the backward pass of a reverse-mode derivative."""
    mapped: bool = False
    """It was traced under `vmap`."""


@dataclass(frozen=True, slots=True)
class Program:
    """All of it. `cut` when it was too long to be told whole."""

    values: tuple[Value, ...]
    body: Body
    donated: tuple[int, ...] = ()
    """Indices of the inputs whose buffers the caller gives away."""
    cut: bool = False
