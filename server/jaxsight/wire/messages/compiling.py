"""Messages between the server and a compiler, framed like the tracer's (`jaxsight.wire.frames`).

A compiler starts with `Ready`, then answers each `Compile` with exactly one `Compiled` or
`NotCompiled` with the same `id`.
It compiles one program at a time; to stop a compile, the server kills the process.
The same messages are used over a pipe to a local process and over ssh.

This module uses only the standard library: it is imported by the server, and by compilers in Python
environments that are not ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxsight.wire.donation import Alias
from jaxsight.wire.kernel_graph import Graph

COMPILER_VERSION = 7
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


@dataclass(frozen=True, slots=True)
class Memory:
    """The compiler's own memory analysis, in bytes; -1 if unknown."""

    temporaries: int
    arguments: int
    outputs: int
    aliased: int
    code: int
    peak: int = -1


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled program."""

    id: int
    target: str
    how: str
    """`device`: compiled for a device of the machine; `ahead of time`: for one not present."""
    graph: Graph
    memory: Memory
    hlo: str
    """The optimized HLO, with large constants elided."""
    seconds: float
    flops: float = -1.0
    """From the compiler's cost analysis; -1 if there is none."""
    bytes_accessed: float = -1.0
    jaxlib: str = ""
    platform: str = ""
    """The platform's version, from the plugin."""
    aliases: tuple[Alias, ...] = ()
    """Results that reuse the buffers of donated parameters."""
    notes: tuple[str, ...] = field(default=())
    """Differences from a compile on the device."""


@dataclass(frozen=True, slots=True)
class Folding:
    """Compile times of a program with and without constant folding, measured in one process.

    `folded` and `unfolded` are seconds; `is_ended`: the compile with folding was stopped after
    `folded`.
    """

    folded: float
    unfolded: float
    is_ended: bool = False


@dataclass(frozen=True, slots=True)
class NotCompiled:
    """The program was not compiled.

    `kind`: `target` (this compiler does not support the target), `program` (cannot be read), `xla`
    (an
    error of XLA's).
    """

    id: int
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Ready:
    """A compiler's handshake; `problem` is the reason why it cannot compile."""

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
