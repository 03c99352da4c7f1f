"""What the server and a compiler say to each other; framed as the tracer's messages are
(`jaxsight.workers.wire`).

A compiler speaks first (`Ready`), then answers each `Compile` with exactly one of `Compiled` or
`NotCompiled` that carries its `id`. It works on one at a time; to stop one is to kill the process.
The same messages go over a pipe to a process here, or over ssh. Standard library alone: this module
is imported by the server, and by compilers in interpreters that we do not own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxsight.compiler.donation import Alias
from jaxsight.compiler.graph import Graph

COMPILER_VERSION = 7
"""Raised whenever a message or the meaning of a graph changes; it is part of every cache key."""


@dataclass(frozen=True, slots=True)
class Compile:
    """Compile a program for a target.

    `program` is StableHLO as a portable artifact (MLIR bytecode, base64), every operation located
    by the path of its equation.
    """

    id: int
    target: str
    """As users write it: `cpu`, `cuda:h100`, `tpu:v5e`."""
    program: str
    options: tuple[tuple[str, str], ...] = ()
    """XLA's debug options by name."""
    constants: tuple[str, ...] = ()
    """Types of the arrays that the program captures, so that others in the HLO are known as folded.
    """
    barriers: tuple[str, ...] = ()
    """Paths of the equations whose results go straight into an `optimization_barrier`, which
    optimized HLO no longer shows.
    """
    trips: tuple[tuple[str, int], ...] = ()
    """How often the loops of scans go round, by path, for targets whose HLO does not tell."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The compiler's own memory analysis, bytes; -1 where it does not tell."""

    temporaries: int
    arguments: int
    outputs: int
    aliased: int
    code: int
    peak: int = -1


@dataclass(frozen=True, slots=True)
class Compiled:
    """What became of a program."""

    id: int
    target: str
    how: str
    """`device`: compiled for a device of this machine; `ahead of time`: for the specification of
    one that is not here.
    """
    graph: Graph
    memory: Memory
    hlo: str
    """The optimized HLO, with large constants elided."""
    seconds: float
    flops: float = -1.0
    """The compiler's cost analysis; -1 where there is none."""
    bytes_accessed: float = -1.0
    jaxlib: str = ""
    platform: str = ""
    """The platform's version as the plugin tells it."""
    aliases: tuple[Alias, ...] = ()
    """Results that lie in the buffers of donated parameters."""
    notes: tuple[str, ...] = field(default=())
    """What differs from a compile on the device (`autotuning is not known without the device`)."""


@dataclass(frozen=True, slots=True)
class Folding:
    """How long a program compiles with constant folding and without, one after the other in one
    process.

    `folded` and `unfolded` are seconds; `is_ended`: the compile with folding was ended after
    `folded`.
    """

    folded: float
    unfolded: float
    is_ended: bool = False


@dataclass(frozen=True, slots=True)
class NotCompiled:
    """The compiler refused.

    `kind`: `target` (cannot be compiled for here), `program` (not understood), `xla` (an error of
    XLA's).
    """

    id: int
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Ready:
    """A compiler's greeting. `problem` says why it cannot compile."""

    version: int
    python: str
    executable: str
    jaxlib: str = ""
    stablehlo: str = ""
    """The newest StableHLO version that it reads."""
    problem: str = ""
    pid: int = 0


ToCompiler = Compile
FromCompiler = Ready | Compiled | NotCompiled
