"""The kernel graph of one compiled program: what the device launches, what passes between, what repeats.

Plain data that crosses processes: `jaxsight.compiler.hlo` makes it, everyone reads it. Sizes are bytes. Kernels, loops and
branches are named by their index in the graph's tuples, so that a graph is a tree of tuples without cycles.

*Counted as kernels*: every instruction of the entry computation, and of computations reached through while, conditional and call, but
those that launch nothing (parameter, constant, tuple, get-tuple-element, bitcast, after-all, opt-barrier, ids, annotations that are
custom calls). A start and its done count once. A TPU's asynchronous copies between memories are `transfers`, not kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PARAMETER = "parameter"
KERNEL = "kernel"
OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Value:
    """One array on the device: `text` as HLO prints it without layout (`f32[8,16]`), `layout` minor to major (`1,0`)."""

    text: str
    layout: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """One unit that the device launches."""

    name: str
    """The instruction's name in the HLO."""
    kind: str
    """`fusion`, `library`, `sort`, `copy`, `memset`, `collective`, `triton`, `custom call`, `callback`, `op`, …"""
    what: str
    """For people: `loop fusion`, `input fusion (reduction)`, `cuBLAS matmul`, `cuFFT`, `transpose`…"""
    ends_because: str
    """The fusion barrier: one of `REASONS`."""
    equations: tuple[str, ...]
    """Paths of the equations that are computed in it, in the order of the program."""
    ends_at: str = ""
    """The path of the equation that ends it, where one does."""
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    flops: int = 0
    """Floating point operations of one launch, counted from shapes; an estimate."""
    loops: tuple[int, ...] = ()
    """The loops that it is in, outermost first."""
    branch: int = -1
    """The innermost branch that it is in, if any."""
    launches: int = 1
    """How often one run launches it; an unknown trip count counts once."""
    recomputes: tuple[str, ...] = ()
    """Those of its equations that an earlier kernel computes too."""
    instruction: int = 0
    """The line of the HLO text, from 0, that it stands on."""

    @property
    def bytes_in(self) -> int:
        """Bytes read by one launch, each input once."""
        return sum(value.bytes for value in self.inputs)

    @property
    def bytes_out(self) -> int:
        """Bytes written by one launch."""
        return sum(value.bytes for value in self.outputs)


REASONS = (
    "reduction",
    "fft",
    "sort",
    "matmul",
    "convolution",
    "scan",
    "while",
    "conditional",
    "layout change",
    "optimization_barrier",
    "custom call",
    "collective",
    "scatter",
    "gather",
    "random bits",
    "multi-output",
    "concat/slice",
    "recompute limit",
    "output",
    "other",
)


@dataclass(frozen=True, slots=True)
class End:
    """One end of an edge: `what` is `parameter`, `kernel` or `output`, `index` says which."""

    what: str
    index: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A value that passes through device memory from `source` to `target`."""

    source: End
    target: End
    value: Value


@dataclass(frozen=True, slots=True)
class Loop:
    """A while of the HLO. `trips` is `None` where the compiler does not know it."""

    name: str
    trips: int | None
    parent: int = -1
    """The loop around it."""
    equation: str = ""
    """The path of the scan, while or fori_loop that it comes from."""
    branch: int = -1
    carried: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """One arm of a conditional: `arm` of `arms`."""

    name: str
    arm: int
    arms: int
    equation: str = ""
    loop: int = -1
    parent: int = -1


@dataclass(frozen=True, slots=True)
class Temporary:
    """A value that a kernel leaves in device memory for another one, neither input nor output of the program."""

    value: Value
    producer: int
    """The kernel."""
    consumers: tuple[int, ...]
    equation: str = ""


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant in the executable, larger than a scalar."""

    name: str
    value: Value
    equations: tuple[str, ...] = ()
    folded: bool = False
    """The program had no such constant: the compiler computed it."""


@dataclass(frozen=True, slots=True)
class Graph:
    """See the module's docstring."""

    module: str
    kernels: tuple[Kernel, ...]
    edges: tuple[Edge, ...] = ()
    loops: tuple[Loop, ...] = ()
    branches: tuple[Branch, ...] = ()
    parameters: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    temporaries: tuple[Temporary, ...] = ()
    constants: tuple[Constant, ...] = ()
    transfers: int = 0
    """Asynchronous copies between memories of the device, which are not counted as kernels."""
    notes: tuple[str, ...] = field(default=())
    """What could not be read, for people; empty when all was."""

    @property
    def kernel_count(self) -> int:
        """How many kernels there are."""
        return len(self.kernels)

    @property
    def launch_count(self) -> int:
        """Kernels times trip counts; a loop without a known count counts once (see `launches_known`)."""
        return sum(kernel.launches for kernel in self.kernels)

    @property
    def launches_known(self) -> bool:
        """Whether every trip count is known."""
        return all(loop.trips is not None for loop in self.loops)
