"""The kernel graph of one compiled program: what the device launches, what passes between, what
repeats.

Plain data that crosses processes: `jaxsight.compiler.hlo` makes it, everyone reads it. Sizes are
bytes. Kernels, loops and branches are named by their index in the graph's tuples, so that a graph
is a tree of tuples without cycles.

*Counted as kernels*: every instruction of the entry computation, and of computations reached
through while, conditional and call, but those that launch nothing (parameter, constant, tuple,
get-tuple-element, bitcast, after-all, opt-barrier, ids, annotations that are custom calls). A start
and its done count once. A TPU's asynchronous copies between memories are `transfers`, not kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

PARAMETER = "parameter"
KERNEL = "kernel"
OUTPUT = "output"
CALLBACK = "callback"
"""The kind of a kernel that is a transfer to the host, or from there."""


@dataclass(frozen=True, slots=True)
class Value:
    """One array on the device: `text` as HLO prints it without layout (`f32[8,16]`), `layout` minor
    to major (`1,0`).
    """

    text: str
    layout: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Operations:
    """Arithmetic of one run of a kernel that goes through the same units.

    `unit` is `matrix` or `vector`, `dtype` that of the operands as HLO names it (`f32`, `c64`).
    `precision` is `high`, `highest`, a dot algorithm (`dot_bf16_bf16_f32_x3`) or empty.
    """

    unit: str
    dtype: str
    count: int
    """Real operations; a fused multiply-add counts two."""
    precision: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """What one run of a kernel does, for estimates of its time. Sizes in bytes of device memory."""

    operations: tuple[Operations, ...] = ()
    read: int = 0
    """What is touched of the inputs: the rows of a gather, not its table."""
    written: int = 0
    cycles: int = 0
    """What libtpu's cost model gives for it, in cycles; 0 on other platforms."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One unit that the device launches."""

    name: str
    """The instruction's name in the HLO."""
    kind: str
    """`fusion`, `library`, `sort`, `copy`, `memset`, `collective`, `triton`, `custom call`,
    `callback`, `op`, …
    """
    what: str
    """For people: `loop fusion`, `input fusion (reduction)`, `cuBLAS matmul`, `cuFFT`, `transpose`…
    """
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
    """How often one run launches it, if its arm is taken; an unknown trip count counts once. 0 for
    the condition of a loop that runs without it.
    """
    at_least: int = 1
    """The same, an unknown trip count as 0; of a sort without copies that may not be made."""
    runs: int = 1
    """How often one run of the program executes it: the trips of its loops.

    A kernel of many launches runs once.
    """
    work: Work | None = None
    """`None` where nobody knows what it does: eigh, callbacks, kernels of the user's own."""
    recomputes: tuple[str, ...] = ()
    """Those of its equations that an earlier kernel computes too."""
    feeds: tuple[str, ...] = ()
    """The paths of the equations that it prepares something for, where it computes none itself:
    what reads its results, the loop that carries them, or what made the result that it copies.
    """
    workspace: int = 0
    """Bytes of scratch memory that a library's call asks for, besides its results."""
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
    "host callback",
    "collective",
    "scatter",
    "gather",
    "random bits",
    "shared result",  # several kernels read it
    "concat/slice",
    "recompute limit",
    "output",
    "XLA's choice",  # one kernel reads it, and nothing is known that kept the two apart
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
    waits: bool = False
    """Whether each iteration copies the condition to the host and waits for it: on a GPU where the
    HLO does not say how many iterations there are (`xla/backends/gpu/runtime/while_thunk.cc`)."""


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
    """A value that a kernel leaves in device memory for another one, neither input nor output of
    the program.
    """

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
        """The most launches of one run: of a conditional the arm with the most. A loop without a
        known trip count counts once (see `launches_known`)."""
        return self.launches_of(range(len(self.kernels)))

    @property
    def launches_at_least(self) -> int:
        """The fewest launches of one run: of a conditional the arm with the fewest, and no
        iteration of a loop without a known trip count.
        """
        return self.fewest_of(range(len(self.kernels)))

    @property
    def callback_count(self) -> int:
        """How many places of the program call back to Python on the host, which copies there and
        waits.
        """
        found = (kernel for kernel in self.kernels if kernel.kind == CALLBACK)
        return len({kernel.equations or (kernel.name,) for kernel in found})

    @property
    def launches_known(self) -> bool:
        """Whether every trip count is known."""
        return all(loop.trips is not None for loop in self.loops)

    def launches_of(self, kernels: Iterable[int]) -> int:
        """The most launches that one run makes of some kernels, counted as `launch_count` is."""
        return self._one_arm_each({each: self.kernels[each].launches for each in kernels}, max)

    def fewest_of(self, kernels: Iterable[int]) -> int:
        """The fewest launches that one run makes of some kernels, counted as `launches_at_least`
        is.
        """
        return self._one_arm_each({each: self.kernels[each].at_least for each in kernels}, min)

    def iterations(self, loop: int) -> int:
        """How often one run of the program runs a loop's body, at least 1: an unknown trip count
        counts once. 1 for no loop (-1)."""
        times = 1
        while loop >= 0:
            times *= max(1, 1 if (trips := self.loops[loop].trips) is None else trips)
            loop = self.loops[loop].parent
        return times

    def is_within(self, branch: int, arms: range) -> bool:
        """Whether a branch is one of some arms, or within one; -1 is none."""
        while branch >= 0 and branch not in arms:
            branch = self.branches[branch].parent
        return branch >= 0

    def _one_arm_each(self, counts: Mapping[int, int], of: Callable[[Sequence[int]], int]) -> int:
        """Add up counts of kernels, one arm of each conditional."""
        sums = [0] * len(self.branches)
        total = 0
        for index, count in counts.items():
            branch = self.kernels[index].branch
            if branch < 0:
                total += count
            else:
                sums[branch] += count
        for first in self._conditionals():
            parent = self.branches[first].parent
            taken = of(sums[first : first + self.branches[first].arms])
            if parent < 0:
                total += taken
            else:
                sums[parent] += taken
        return total

    def _conditionals(self) -> Iterator[int]:
        """The first branch of each conditional; those within an arm have greater numbers than
        it.
        """
        for index in range(len(self.branches) - 1, -1, -1):
            if self.branches[index].arm == 0:
                yield index
