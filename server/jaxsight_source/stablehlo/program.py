"""A StableHLO program that was read, and the error when it cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import jax
from jax.extend.core import ClosedJaxpr

from jaxsight_source.errors import SourceError
from jaxsight_source.text.exprs import is_identifier


class UnreadableProgram(SourceError, ValueError):
    """A text or file that is not a StableHLO module, or that has an operation without counterpart.

    `operation` is the operation's name, empty if the module could not be parsed.
    """

    def __init__(self, why: str, operation: str = "", place: str = "") -> None:
        self.why = why
        self.operation = operation
        self.place = place
        about = f"cannot read {operation or 'the program'}{' at ' + place if place else ''}"
        super().__init__(f"{about}: {why}")


def plain_names(count: int) -> tuple[str, ...]:
    """Return names of arguments of which nothing is known: up to `x`, `y`, `z`, or numbered."""
    letters = ("x", "y", "z")
    return letters[:count] if count <= len(letters) else tuple(f"x{n}" for n in range(count))


def with_plain_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names with a numbered one wherever one is no identifier, or is there before."""
    known = [
        name if is_identifier(name) and name not in names[:position] else ""
        for position, name in enumerate(names)
    ]
    plain = plain_names(len(names))
    if any(known):
        prefix = "arg" if any(name.startswith("x") for name in known) else "x"
        plain = tuple(f"{prefix}{position}" for position in range(len(names)))
    return tuple(name or other for name, other in zip(known, plain, strict=True))


@dataclass(frozen=True, slots=True)
class OpaqueCall:
    """A call of code that the program only names."""

    target: str
    attributes: tuple[tuple[str, str], ...]
    """Its configuration: names, and values as MLIR prints them."""


@dataclass(frozen=True, slots=True)
class StablehloProgram:
    """The main function of a StableHLO module as a jaxpr."""

    jaxpr: ClosedJaxpr
    names: tuple[str, ...]
    """A name for each argument: the module's own, or one of `plain_names`."""
    name: str
    """The main function's name, such as `step` of a module `jit_step`."""
    opaque: tuple[OpaqueCall, ...]
    """Calls of foreign functions that JAX has no function for."""
    x64: bool
    """Whether the program has 64-bit types, so that it needs `jax_enable_x64`."""
    paths: tuple[str, ...] = ()
    """The name of each argument as the module has it, such as `p['w']`; empty if it has none."""
    devices: int = 1
    """The number of devices of its largest mesh."""

    def types(self) -> AbstractContextManager[None]:
        """Return a context in which the program's types can be traced."""
        return jax.enable_x64(self.x64)
