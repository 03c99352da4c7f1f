"""Programs for the gate: each is made anew under the setting that it is checked under, so that what
it closes over has that setting's types.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np


@dataclass(frozen=True, slots=True)
class Call:
    """A function and what to call it with."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    recursion: int | None = None
    """Python's limit that JAX itself needs for it."""
    bits: bool = True
    """Whether two runs of the function itself give the same bits (and a CPU can run it)."""
    orders: int | None = None
    """How many orders of its rules are compared, where each order is larger than the one before."""
    mesh: Any = None
    """The mesh that is set where it is called."""


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    make: Callable[[], Call]
    devices: int
    x64: tuple[bool, ...]
    """The settings that it runs under."""
    gradient: bool
    """Whether its gradient is compared, where it has one."""
    imports: frozenset[str]
    """What the text may import beside jax and numpy."""
    refused: str
    """What the refusal to write it says, for a program that no public text stands for."""


PROGRAMS: dict[str, Program] = {}


def called(
    function: Callable[..., Any],
    /,
    *args: Any,
    _bits: bool = True,
    _recursion: int | None = None,
    _orders: int | None = None,
    _mesh: Any = None,
    **kwargs: Any,
) -> Call:
    return Call(
        function, args, kwargs, recursion=_recursion, bits=_bits, orders=_orders, mesh=_mesh
    )


def program(
    *,
    devices: int = 1,
    x64: tuple[bool, ...] = (False, True),
    since: tuple[int, ...] = (0, 8),
    before: tuple[int, ...] = (99,),
    gradient: bool = True,
    imports: tuple[str, ...] = (),
    refused: str = "",
    needs: tuple[str, ...] = (),
) -> Callable[[Callable[[], Call]], Callable[[], Call]]:
    """Registers what makes a program; `since` and `before` are versions of JAX, `needs` names
    modules without which it is no program.
    """

    def register(make: Callable[[], Call]) -> Callable[[], Call]:
        there = all(importlib.util.find_spec(module) for module in needs)
        if there and since <= jax.__version_info__ < before:
            if make.__name__ in PROGRAMS:
                raise ValueError(f"two programs are called {make.__name__}")
            PROGRAMS[make.__name__] = Program(
                make.__name__, make, devices, x64, gradient, frozenset(imports), refused
            )
        return make

    return register


def all_programs() -> Iterator[Program]:
    """Those of all modules beside this one."""
    package = __name__.rpartition(".")[0]
    for module in sorted(pkgutil.iter_modules([str(Path(__file__).parent)]), key=lambda m: m.name):
        if not module.name.startswith("_"):
            importlib.import_module(f"{package}.{module.name}")
    yield from PROGRAMS.values()


def floats(*shape: int, dtype: Any = np.float32, low: float = -1.0, high: float = 1.0) -> Any:
    """Values that differ from each other, the same each time."""
    size = int(np.prod(shape))
    spread = np.linspace(low, high, num=max(size, 1), dtype=np.float64)[:size]
    order = (np.arange(size) * 7919) % size if size and 7919 % size else np.arange(size)
    return spread[order].reshape(shape).astype(dtype)


def integers(*shape: int, dtype: Any = np.int32, modulus: int = 11) -> Any:
    size = int(np.prod(shape))
    return ((np.arange(size) * 7 + 3) % modulus).reshape(shape).astype(dtype)
