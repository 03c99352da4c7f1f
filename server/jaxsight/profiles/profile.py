"""What a profile says: figures of devices, kernels, lines and hosts; all times are in seconds."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from jaxsight.profiles.host_lines import HostTask
from jaxsight.profiles.places import CodePlace, LibraryPlace, Place
from jaxsight.profiles.timeline import ProfiledStep, median

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class ProfiledKernel:
    """A kernel of a program, on all devices together."""

    name: str
    """The name of the instruction, or that of the kernel where that is not known."""
    title: str
    """The name of the kernel on the device, if it is another one."""
    program: str
    opcode: str
    place: Place | None
    lines: tuple[CodePlace, ...]
    """All lines that are fused in it."""
    scope: str
    is_for: bool
    """Whether XLA has added it for the line."""
    is_collective: bool
    is_transfer: bool
    calls: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ProfiledDevice:
    """What a device did."""

    host: str
    name: str
    seconds: float
    """From its first kernel to the end of its last one."""
    busy_seconds: float
    kernel_seconds: float
    """The sum of all kernels, which is more than the time busy where they ran side by side."""
    idle_inside: float
    idle_between: float
    collective_seconds: float
    exposed_seconds: float
    """Time of collectives in which nothing else was executed."""
    steps_of: str
    steps: tuple[ProfiledStep, ...]

    @property
    def step_seconds(self) -> float:
        """The median time of a step; 0 if there is none."""
        return median(self.steps)


@dataclass(frozen=True, slots=True)
class ProfiledHost:
    """What a host did that devices may have waited for."""

    name: str
    seconds: float
    """How long the profile was recorded; 0 if it is not known."""
    work: tuple[tuple[HostTask, int, float], ...]
    """Calls and time of each kind of work."""


@dataclass(frozen=True, slots=True)
class Share:
    """The time of some kernels."""

    seconds: float = 0.0
    calls: int = 0
    kernels: int = 0

    def with_share(self, other: Share) -> Share:
        """Return the time of both."""
        return Share(
            self.seconds + other.seconds, self.calls + other.calls, self.kernels + other.kernels
        )

    def plus(self, kernel: ProfiledKernel) -> Share:
        """Return the share with one more kernel."""
        return self.with_share(Share(kernel.seconds, kernel.calls, 1))


@dataclass(frozen=True)
class Profile:
    """A profile of a run."""

    paths: tuple[str, ...]
    run: str
    taken: float
    """The time at which it began, in seconds since the epoch; 0 if it is not known."""
    versions: tuple[tuple[str, str], ...]
    hosts: tuple[ProfiledHost, ...]
    devices: tuple[ProfiledDevice, ...]
    kernels: tuple[ProfiledKernel, ...]
    """Those that take the most time come first."""
    notes: tuple[str, ...] = ()

    @cached_property
    def kernel_seconds(self) -> float:
        """The time of all kernels on all devices."""
        return sum(kernel.seconds for kernel in self.kernels)

    @cached_property
    def lines(self) -> dict[CodePlace, Share]:
        """The time of each line of the user's files, as a line of one function."""
        return self.shares(lambda kernel: _code(kernel.place))

    @cached_property
    def functions(self) -> dict[tuple[str, str], Share]:
        """The time of each function, by file and name."""
        return self.shares(
            lambda kernel: (
                (place.file, place.function or "?") if (place := _code(kernel.place)) else None
            )
        )

    @cached_property
    def programs(self) -> dict[str, Share]:
        """The time of each program that XLA compiled."""
        return self.shares(lambda kernel: kernel.program or None)

    @cached_property
    def scopes(self) -> dict[str, Share]:
        """The time of each module of a neural network, or other named scope."""
        return self.shares(lambda kernel: scope_of(kernel.scope) or None)

    @cached_property
    def libraries(self) -> dict[str, Share]:
        """The time of kernels that only have lines of a library."""
        return self.shares(
            lambda kernel: kernel.place.library if isinstance(kernel.place, LibraryPlace) else None
        )

    @cached_property
    def unmatched(self) -> Share:
        """The time of kernels that have no line at all."""
        return self.shares(
            lambda kernel: "" if kernel.place is None and not kernel.is_transfer else None
        ).get("", Share())

    @cached_property
    def transfers(self) -> Share:
        """The time of copies and clears that belong to no program, such as of arguments."""
        return self.shares(lambda kernel: "" if kernel.is_transfer else None).get("", Share())

    def shares(self, key: Callable[[ProfiledKernel], Key | None]) -> dict[Key, Share]:
        """Return the time of kernels by a key, most first; those without one are left out."""
        found: dict[Key, Share] = {}
        for kernel in self.kernels:
            if (of := key(kernel)) is not None:
                found[of] = found.get(of, Share()).plus(kernel)
        return dict(sorted(found.items(), key=lambda item: -item[1].seconds))


def _code(place: Place | None) -> CodePlace | None:
    return place if isinstance(place, CodePlace) else None


_SLASH = re.compile(r"/(?![^()]*\))")
"""A slash that is not in parentheses."""
_TRANSFORMS = ("jit", "jvp", "transpose", "vmap", "checkpoint", "rematted_computation", "pjit")


def scope_of(scope: str) -> str:
    """Return the named scopes of an instruction, without transformations and its primitive.

    JAX writes `jit(step)/transpose(jvp(MLP))/Dense_0/dot_general`: this returns `MLP/Dense_0`.
    XLA writes those of instructions that it has merged with `;` between them.
    """
    parts = []
    for part in _SLASH.split(scope.partition(";")[0])[:-1]:
        name = part
        while "(" in name and name.partition("(")[0] in _TRANSFORMS and name.endswith(")"):
            transform, _, inner = name[:-1].partition("(")
            name = "" if transform in ("jit", "pjit") else inner
        if name and name not in _STRUCTURE and name not in _TRANSFORMS:
            parts.append(name)
    return "/".join(parts)


_STRUCTURE = frozenset(
    {"while", "body", "cond", "scan", "closed_call", "core_call", "custom_jvp_call"}
    | {"custom_vjp_call", "branch_0_fun", "branch_1_fun", "remat", "shard_map"}
)
