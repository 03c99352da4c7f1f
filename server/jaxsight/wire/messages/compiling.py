"""Messages between the server and a compiler, framed like the tracer's (`jaxsight.wire.frames`).

A compiler starts with `Hello`, then answers each `Compile` with exactly one `Compiled` or
`NotCompiled` with the same `id`.
It compiles one program at a time. A `Cancel` ends a compile where XLA can end, with `NotCompiled`;
to stop it at once, the server kills the process.
The same messages are used over a pipe to a local process and over ssh.

This module uses only the standard library: it is imported by the server, and by compilers in Python
environments that are not ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from jaxsight.wire.donation import Alias
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.kernel_work import at_least, at_most
from jaxsight.wire.meshes import Chosen, Distribution, Rematerialization
from jaxsight.wire.messages.measuring import Measured, MeasuringLimits

ON_DEVICE, SIMULATED, AHEAD_OF_TIME = "device", "simulated", "ahead of time"

COMPILER_VERSION = 21
"""Incremented when a message or the meaning of a graph changes; it is part of every cache key."""


@dataclass(frozen=True, slots=True)
class Compile:
    """Compile a program for a target.

    `program` is StableHLO as a portable artifact (MLIR bytecode, base64), in which the location of
    every operation is the path of its equation.
    """

    id: int
    target: str
    """A name such as `cpu`, `cuda:h100` or `tpu:v5e`."""
    program: str
    options: tuple[tuple[str, str], ...] = ()
    """XLA's debug options by name."""
    constants: tuple[str, ...] = ()
    """Types of the arrays that the program captures; other constants in the HLO are folded ones."""
    barriers: tuple[str, ...] = ()
    """Paths of the equations whose results go directly into an `optimization_barrier`, which is not
    in the optimized HLO.
    """
    trips: tuple[tuple[str, int], ...] = ()
    """Trip counts of scans by path, for targets whose HLO does not have them."""
    complete: bool = True
    """Whether the compile must be complete; if not, it may end once kernels are known."""
    distribution: Distribution | None = None
    """How the program is distributed over devices; `None` for one device."""
    communicates: tuple[str, ...] = ()
    """Paths of the equations that are collectives."""
    runs: MeasuringLimits | None = None
    """If given, the program is run too, with random arguments, within these limits."""
    indices: tuple[tuple[int, int], ...] = ()
    """Parameters that are indices, each with the size of what they index."""


@dataclass(frozen=True, slots=True)
class HostMemory:
    """What a program keeps in the memory of the host, in bytes; -1 if unknown.

    Other figures of memory do not contain it.
    """

    temporaries: int = -1
    arguments: int = -1
    outputs: int = -1
    aliased: int = -1


@dataclass(frozen=True, slots=True)
class Memory:
    """The compiler's own memory analysis of one device, in bytes; -1 if unknown."""

    temporaries: int = -1
    arguments: int = -1
    outputs: int = -1
    aliased: int = -1
    code: int = -1
    peak: int = -1
    host: HostMemory = field(default_factory=HostMemory)


class Incomplete(Exception):
    """A figure was read that only complete compiles have; the program must be compiled again."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled program.

    If it is not complete, the compile ended when XLA had fused and scheduled the program: `memory`
    has at most the size of temporaries, and everything else is as of a complete compile.
    """

    id: int
    target: str
    how: str
    """`device`: compiled for devices of the machine; `simulated`: for simulated CPU devices;
    `ahead of time`: for devices that are not present.
    """
    graph: Graph
    memory: Memory
    hlo: str
    """The optimized HLO, with large constants elided."""
    seconds: float
    """How long XLA worked, be the compile complete or not."""
    flops: float = -1.0
    """From the compiler's cost analysis; -1 if there is none."""
    jaxlib: str = ""
    platform: str = ""
    """The platform's version, from the plugin."""
    device_kind: str = ""
    """JAX's `device_kind` of the machine's own GPUs or TPUs; empty for other devices."""
    aliases: tuple[Alias, ...] = ()
    """Results that reuse the buffers of donated parameters."""
    notes: tuple[str, ...] = field(default=())
    """Differences from a compile on the device."""
    is_complete: bool = True
    devices: int = 1
    """The number of devices that the program runs on; all figures are those of one of them."""
    shardings: tuple[Chosen, ...] = ()
    """The shardings of the program's values; empty for one device."""
    rematerialized: tuple[Rematerialization, ...] = ()
    measured: Measured | None = None
    """What its runs took, if they were asked for."""

    @property
    def knows_temporaries(self) -> bool:
        """Whether a complete compile would say no more about temporaries."""
        return self.is_complete or self.memory.temporaries >= 0

    @property
    def temporaries(self) -> int:
        """The size of temporaries in bytes, the minimum where the device decides; -1 if unknown.

        Raises:
            Incomplete: the compile ended before it was known.
        """
        if not self.knows_temporaries:
            raise Incomplete
        return at_least(self.memory.temporaries, self.graph.undecided)

    @property
    def temporaries_at_most(self) -> int:
        """The maximum size of temporaries in bytes, where the device decides; -1 if unknown.

        Raises:
            Incomplete: the compile ended before it was known.
        """
        if not self.knows_temporaries:
            raise Incomplete
        return at_most(self.memory.temporaries, self.graph.undecided)

    @property
    def compile_seconds(self) -> float:
        """The time of the complete compile.

        Raises:
            Incomplete: the compile ended before.
        """
        if not self.is_complete:
            raise Incomplete
        return self.seconds


@dataclass(frozen=True, slots=True)
class Folding:
    """Compile times of a program with and without constant folding, measured in one process.

    `folded` and `unfolded` are seconds; `is_ended`: the compile with folding was stopped after
    `folded`.
    """

    folded: float
    unfolded: float
    is_ended: bool = False


SLOW = 10.0
"""Seconds of a compile from which it is reported, a choice: one waits for it at each change."""


Refusal: TypeAlias = Literal[
    "target",  # this compiler does not support the target
    "busy",  # the device is full, or another process uses it; the message is a predicate
    "program",  # it cannot be read
    "xla",  # an error of XLA's
    "cancelled",
]


@dataclass(frozen=True, slots=True)
class NotCompiled:
    """The program was not compiled."""

    id: int
    kind: Refusal
    message: str


FromCompiler = Compiled | NotCompiled
