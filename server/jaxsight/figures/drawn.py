"""The kernel graph of a function as a panel draws it, with places in its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from jaxsight.wire.messages.compiling import Compiled

At = TypeVar("At")
"""A place in the source: of an open document, or of a file as Python has it."""


@dataclass(frozen=True, slots=True)
class DividedResult:
    """How the result of an equation is divided over devices."""

    text: str
    """Its global type with the axes: `f32[8@data,16]`."""
    local: str
    """Its type on one device; empty if unknown."""
    cells: tuple[tuple[tuple[int, ...], ...], ...] = ()
    """For each row and column of parts, the devices that have it; empty if that is not known."""


@dataclass(frozen=True, slots=True)
class PanelEquation(Generic[At]):
    """An equation of the program, with the user's text of it and its place."""

    path: str
    primitive: str
    outputs: tuple[str, ...]
    text: str = ""
    range: At | None = None
    divided: DividedResult | None = None
    """`None` for one device, several results, and if it is not known."""
    scope: tuple[str, ...] = ()
    """The functions, modules and named scopes that it was created in, outermost first."""
    backward: bool = False
    """Whether it belongs to the backward pass of a derivative."""


@dataclass(frozen=True, slots=True)
class PanelGroup(Generic[At]):
    """A group of kernels: `backward`, or the calls of `block`; `parent` is the index of another.

    `place` is the call in the source.
    """

    title: str
    parent: int = -1
    place: At | None = None


@dataclass(frozen=True, slots=True)
class PanelTimes:
    """What was measured of a function.

    `stale`: of another program than the one that is drawn. Then `kernels` is empty, otherwise it
    has the measured seconds of each kernel, or `None`.
    """

    headline: str
    """`412 µs measured (≈ 380)`"""
    stale: bool
    seconds: float
    """The median of a call."""
    device_seconds: float | None
    unmatched_seconds: float
    """Device time of what is no kernel of the graph."""
    kernels: tuple[float | None, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drawn(Generic[At]):
    """The data that a panel draws.

    `reasons` and `seconds` belong to the graph's kernels, in their order.
    """

    compiled: Compiled
    headline: str
    """`2 kernels · 2 launches · temp 512 KiB · h100`"""
    device: str
    """The device, and how the program was compiled for it."""
    reasons: tuple[str, ...]
    """The reason of each kernel's fusion boundary, in the user's terms."""
    seconds: tuple[float | None, ...]
    """A roofline estimate of all launches of each kernel; `None` for chips without known rates."""
    equations: tuple[PanelEquation[At], ...]
    collectives: tuple[tuple[str, ...], ...] = ()
    """What is known about each collective, in words, in the order of the graph's."""
    mesh: str = ""
    """The axes of the program's meshes: `data=2, model=4`."""
    before: Compiled | None = None
    """The program of the saved file, if it differs."""
    notes: tuple[str, ...] = ()
    """Constants, workspaces and donated buffers, and what is unknown until the program runs."""
    change: str = ""
    """The change since then: `kernels 7 → 5`, or `the same`; empty if unknown."""
    groups: tuple[PanelGroup[At], ...] = ()
    group_of: tuple[int, ...] = ()
    """For each kernel the index of its group; -1 for kernels of the function itself."""
    inputs: tuple[str, ...] = ()
    """The names of the program's parameters; empty if they are unknown."""
    measured: PanelTimes | None = None
    """The last measurement, if the user had one made."""
