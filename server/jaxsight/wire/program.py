"""A traced program as plain data, from which findings are derived without JAX.

As part of the protocol with a tracer, this uses only the standard library.
Values are numbered across the whole program; a `Step` refers to its operands and results by these
numbers.
Paths of equations have the common form, e.g. `3/body/1` (`interpreters.compat.inner`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

from jaxsight.text.parsing import literal_in
from jaxsight.wire.chunks import Span

# What is known of a Pallas kernel before it is compiled, for one call of it.
#
# As part of the protocol with a tracer, this uses only the standard library.


VMEM, SMEM, ELSEWHERE = "VMEM", "SMEM", "elsewhere"
"""The memories of a TPU's core in which arrays of a kernel are; `elsewhere` for main memory, and
for semaphores."""


@dataclass(frozen=True, slots=True)
class Outside:
    """A block that lies completely outside of its array."""

    position: tuple[int, ...]
    """The position in the grid at which the index map returns it."""
    start: tuple[int, ...]
    """The index of its first element."""


@dataclass(frozen=True, slots=True)
class KernelArray:
    """An array of a kernel: a block of an operand or a result, or scratch memory."""

    name: str
    shape: tuple[int, ...]
    """The shape of the block; an axis that the kernel does not see has size 1."""
    dtype: str
    memory: str
    """One of the above: for a `pallas_call`, that on a TPU."""
    buffers: int
    """How many blocks are in memory at once: two where the next one is copied meanwhile."""
    bytes: int
    """The size of all buffers, with their padding."""
    array: tuple[int, ...] = ()
    """The shape of the whole array; empty for scratch memory and prefetched scalars."""
    outside: Outside | None = None


@dataclass(frozen=True, slots=True)
class PallasKernel:
    """A call of a kernel."""

    name: str
    grid: tuple[int, ...]
    """The sizes of the grid; -1 for one that is computed."""
    arrays: tuple[KernelArray, ...]
    vmem_limit: int
    """The bytes of VMEM that the kernel asks for (`vmem_limit_bytes`), 0 for the default."""

    def used(self, memory: str) -> int:
        """Return the bytes of all arrays in a memory."""
        return sum(array.bytes for array in self.arrays if array.memory == memory)

    def vmem_may_be(self, usual: int, all_of_it: int) -> int:
        """Return the bytes of VMEM that it may take: the usual ones, or those it asks for."""
        return min(self.vmem_limit, all_of_it) if self.vmem_limit else usual

    def used_by_itself(self, memory: str) -> int:
        """Return the bytes of scratch memory and prefetched scalars, which no call goes without."""
        own = (array for array in self.arrays if array.memory == memory and not array.array)
        return sum(array.bytes for array in own)


Default = TypeVar("Default")

INPUT, CONSTANT, LITERAL, RESULT = "input", "constant", "literal", "result"


@dataclass(frozen=True, slots=True)
class ProgramValue:
    """An array of a program.

    `text` is its type as in jaxprs (`f32[8,16]`), `origin` one of the four above.
    """

    text: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    origin: str
    weak: bool = False
    said: str = ""
    """The Python source of a scalar, the name of an argument, or an expression that generates a
    captured array (`jnp.arange(1, 10)`), if any.
    """
    integers: tuple[int, ...] = ()
    """The elements of a captured array of integers or booleans, row by row.

    The least and the greatest element where it has more than 64.
    """
    numbers: tuple[float, ...] = ()
    """The elements of a captured array of floats, if it has at most 64 and all are finite."""

    @property
    def elements(self) -> int:
        """How many elements an array has."""
        return math.prod(self.shape)

    @property
    def is_inexact(self) -> bool:
        """Whether an array may have a derivative: one of floats or complex numbers."""
        return self.dtype.startswith(("float", "bfloat", "complex"))

    @property
    def is_constant(self) -> bool:
        """Whether a value is known while compiling."""
        return self.origin in (CONSTANT, LITERAL)


@dataclass(frozen=True, slots=True)
class Body:
    """A jaxpr: the program's own (with an empty `name`), or an equation's."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """An equation.

    `parameters` are those without defaults, as Python literals if possible.
    """

    path: str
    primitive: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    span: Span | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    bodies: tuple[Body, ...] = ()
    backward: bool = False
    """Whether it belongs to the backward pass of a reverse-mode derivative."""
    forward: bool = False
    """Whether it belongs to a function that is differentiated, or to its forward pass."""
    mapped: bool = False
    """Whether it was traced under `vmap`."""
    scope: tuple[str, ...] = ()
    """The functions, modules and named scopes that it was created in, as of `replies.Equation`."""
    call: int = -1
    """The index of the innermost call that created it, as of `replies.Equation`."""
    kernel: PallasKernel | None = None
    """What a call of a Pallas kernel takes."""

    def parameter(self, name: str) -> object:
        """Return a parameter as a Python value.

        Return its text where it is not a literal, and `None` where it is missing.
        """
        text = dict(self.parameters).get(name)
        if text is None:
            return None
        try:
            return literal_in(text)
        except ValueError:
            return text

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return a parameter that holds one integer or several; other parameters are empty."""
        value = self.parameter(name)
        several = value if isinstance(value, tuple | list) else (value,)
        return tuple(number for number in several if isinstance(number, int))

    def number(self, name: str, default: Default) -> int | Default:
        """Return the first of these integers."""
        return next(iter(self.numbers(name)), default)


@dataclass(frozen=True, slots=True)
class TracedProgram:
    """A whole program; `cut` if it is incomplete because of its length."""

    values: tuple[ProgramValue, ...]
    body: Body
    donated: tuple[int, ...] = ()
    """Indices of the inputs whose buffers the caller donates."""
    cut: bool = False
