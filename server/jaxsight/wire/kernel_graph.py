"""The kernel graph of a compiled program: launched kernels, values between them, and loops.

Plain data that crosses processes: `jaxsight.compiler.hlo` creates it, all packages read it.
Sizes are bytes.
Kernels, loops and branches are referred to by their index in the graph's tuples, so that a graph is
a tree of tuples without cycles.

*Counted as kernels*: every instruction of the entry computation, and of computations reached
through while, conditional and call, except those that launch nothing (parameter, constant, tuple,
get-tuple-element, bitcast, after-all, opt-barrier, ids, annotations that are custom calls).
A start and its done count once.
A TPU's asynchronous copies between its own memories are `transfers`, copies between the host and
the device are `host_transfers`; neither are kernels.
Callbacks are kernels, whose data is in `host_transfers` too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from jaxsight.wire.kernel_work import TO_DEVICE, HostTransfer, Undecided, Work, scratch_at_most

EndKind: TypeAlias = Literal["parameter", "kernel", "output"]
PARAMETER: Final = "parameter"
KERNEL: Final = "kernel"
OUTPUT: Final = "output"

KernelKind: TypeAlias = Literal[
    "fusion", "library", "sort", "copy", "memset", "collective", "triton", "custom call",
    "callback", "op",
]  # fmt: skip
CALLBACK: Final = "callback"
"""The kind of a kernel that transfers data to or from the host."""

CollectiveKind: TypeAlias = Literal[
    "all-reduce", "all-gather", "all-to-all", "ragged-all-to-all", "reduce-scatter",
    "collective-permute", "collective-broadcast", "send", "recv",
]  # fmt: skip
"""Operations of HLO that communicate."""


@dataclass(frozen=True, slots=True)
class Value:
    """An array on the device, or in the memory of the host.

    `text` is its type as HLO prints it, without layout (`f32[8,16]`); `layout` is minor to major
    (`1,0`).
    """

    text: str
    layout: str
    bytes: int
    on_host: bool = False


@dataclass(frozen=True, slots=True)
class Collective:
    """The communication of one run of a kernel of the kind `collective`."""

    kind: CollectiveKind
    bytes: int
    """The size of the data on one device: of its operands or its results, whichever is larger."""
    groups: tuple[tuple[int, ...], ...] = ()
    """Devices of the program that communicate with each other; for `collective-permute`, the pairs
    of source and target.
    """
    axes: tuple[str, ...] = ()
    """The mesh axes that they communicate over; empty if the groups are not those of axes."""
    inserted: bool = False
    """Whether the partitioner inserted it; else an equation such as `psum` is this collective."""
    is_async: bool = False
    """Whether other kernels run between its start and its end."""
    reduction: str = ""
    """The operation of a reduction, as HLO names it: `add`, `maximum`, …"""

    @property
    def group_size(self) -> int:
        """The number of devices that communicate with each other; 1 if unknown."""
        return max(map(len, self.groups), default=1)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A unit that the device launches."""

    name: str
    """The instruction's name in the HLO."""
    kind: KernelKind
    title: str
    """A description: `loop fusion`, `input fusion (reduction)`, `cuBLAS matmul`, `cuFFT`, …"""
    ends_because: str
    """The fusion boundary: one of `REASONS`."""
    equations: tuple[str, ...]
    """Paths of the equations that are computed in it, in the order of the program."""
    ends_at: str = ""
    """The path of the equation at its fusion boundary; empty if there is none."""
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    flops: int = 0
    """Floating point operations of one launch, counted from shapes; an estimate."""
    loops: tuple[int, ...] = ()
    """The loops around it, outermost first."""
    branch: int = -1
    """The innermost branch around it; -1 if there is none."""
    launches: int = 1
    """Launches in one run of the program, if its arm is taken; an unknown trip count counts once.

    0 for the condition of a loop that is not evaluated.
    """
    at_least: int = 1
    """Like `launches`, but without loops of unknown trip count and uncertain copies of a sort."""
    besides: int | None = 0
    """Maximum launches of one execution that are not in `launches`; `None` if unknown.

    A library launches several kernels in one call, or clears memory first; autotuning on the device
    may give the kernel to one.
    """
    runs: int = 1
    """Executions in one run of the program: the iterations of its loops.

    A kernel of many launches, such as a sort, is executed once.
    """
    work: Work | None = None
    """`None` if unknown: for eigh, callbacks, and the user's own kernels."""
    recomputes: tuple[str, ...] = ()
    """Its equations that an earlier kernel computes too."""
    feeds: tuple[str, ...] = ()
    """If it computes no equation, the paths of equations that it prepares data for.

    These are the readers of its results, the loop that carries them, or the equations whose result
    it copies.
    """
    workspace: int = 0
    """Bytes of scratch memory that a library call requests, besides its results."""
    instruction: int = 0
    """Its line in the HLO text, from 0."""
    collective: Collective | None = None
    """What it communicates, if its kind is `collective`."""
    undecided: Undecided | None = None
    """What autotuning on the device may make of it; `None` if it is as on the device."""

    @property
    def launches_at_most(self) -> int | None:
        """Maximum launches in one run of the program, if its arm is taken; `None` if unknown."""
        if self.besides is None and self.launches:
            return None
        return self.launches + self.runs * (self.besides or 0)

    @property
    def moved_bytes(self) -> int:
        """Bytes that it communicates in one run of the program, if its arm is taken."""
        return self.runs * self.collective.bytes if self.collective is not None else 0

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
    "XLA's choice",  # one kernel reads it, and no reason is known why XLA did not fuse the two
)


@dataclass(frozen=True, slots=True)
class End:
    """An end of an edge: a parameter, a kernel or an output, with its `index`."""

    what: EndKind
    index: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A value that is passed through device memory from `source` to `target`."""

    source: End
    target: End
    value: Value


@dataclass(frozen=True, slots=True)
class Loop:
    """A while loop of the HLO; `trips` is `None` if the compiler does not know it."""

    name: str
    trips: int | None
    parent: int = -1
    """The loop around it; -1 if there is none."""
    equation: str = ""
    """The path of the equation of its scan, while or fori_loop."""
    branch: int = -1
    carried: tuple[Value, ...] = ()
    waits: bool = False
    """Whether each iteration copies the condition to the host and waits for it.

    XLA does so on GPUs if the HLO does not have the number of iterations
    (`xla/backends/gpu/runtime/while_thunk.cc`).
    """


@dataclass(frozen=True, slots=True)
class Branch:
    """Arm `arm` of the `arms` of a conditional."""

    name: str
    arm: int
    arms: int
    equation: str = ""
    loop: int = -1
    parent: int = -1


@dataclass(frozen=True, slots=True)
class Temporary:
    """A value that one kernel writes for another, neither input nor output of the program.

    A value that waits on the host is none.
    """

    value: Value
    producer: int
    """The kernel that writes it."""
    consumers: tuple[int, ...]
    equation: str = ""


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant in the executable, larger than a scalar."""

    name: str
    value: Value
    equations: tuple[str, ...] = ()
    folded: bool = False
    """Whether the compiler computed it, as the program has no such constant."""


@dataclass(frozen=True, slots=True)
class Graph:
    """The kernel graph of a compiled program."""

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
    host_transfers: tuple[HostTransfer, ...] = ()
    """Transfers between the host and the device, in the order of the program."""
    notes: tuple[str, ...] = field(default=())
    """Messages about HLO that could not be read; empty if all was read."""

    @property
    def kernel_count(self) -> int:
        """The number of kernels."""
        return len(self.kernels)

    @property
    def undecided(self) -> tuple[Undecided, ...]:
        """What autotuning on the device may make of kernels, of each that it may change."""
        return tuple(kernel.undecided for kernel in self.kernels if kernel.undecided is not None)

    def kernels_for(self, library: str) -> tuple[Undecided, ...]:
        """Return what autotuning may make of the kernels that a library may get."""
        return tuple(each for each in self.undecided if each.library == library)

    @property
    def kernels_at_most(self) -> int:
        """The maximum number of kernels, where autotuning on the device decides."""
        return sum(k.undecided.kernels if k.undecided else 1 for k in self.kernels)

    @property
    def scratch_at_most(self) -> int | None:
        """Maximum bytes of temporaries that only the device decides about; `None` if unknown."""
        return scratch_at_most(self.undecided)

    @property
    def launch_count(self) -> int:
        """Maximum launches of one run: the arm of a conditional with the most.

        A loop without a known trip count counts once, and a library's call as one launch (see
        `launches_known`).
        """
        return self.launches_of(range(len(self.kernels)))

    @property
    def launches_at_most(self) -> int | None:
        """Maximum launches of one run on the device; `None` if unknown (see `launches_known`)."""
        return self.most_of(range(len(self.kernels))) if self.trips_known else None

    @property
    def launches_at_least(self) -> int:
        """Minimum launches of one run.

        It has the arm of a conditional with the fewest, and no iteration of a loop without a known
        trip count.
        """
        return self.fewest_of(range(len(self.kernels)))

    @property
    def callback_count(self) -> int:
        """The number of calls of Python on the host, each of which copies data there and waits."""
        callbacks = (kernel for kernel in self.kernels if kernel.kind == CALLBACK)
        return len({kernel.equations or (kernel.name,) for kernel in callbacks})

    @property
    def collectives(self) -> tuple[Kernel, ...]:
        """The kernels that communicate with other devices."""
        return tuple(kernel for kernel in self.kernels if kernel.collective is not None)

    @property
    def moved_bytes(self) -> int:
        """Maximum bytes that collectives move in one run: those on one device, times runs.

        Of a conditional, that is the arm with the most. A loop without a known trip count counts
        once (see `moved_known`). These are bytes of data, not of network traffic.
        """
        return self._one_arm_of(((each.branch, each.moved_bytes) for each in self.collectives), max)

    @property
    def moved_at_least(self) -> int:
        """Minimum bytes that collectives move in one run.

        It has the arm of a conditional with the fewest, and no iteration of a loop without a known
        trip count.
        """
        moved = ((each.branch, each.moved_bytes * bool(each.at_least)) for each in self.collectives)
        return self._one_arm_of(moved, min)

    @property
    def moved_known(self) -> bool:
        """Whether the trip count of every loop with collectives is known."""
        return self._knows_trips(self.collectives)

    @property
    def constant_bytes(self) -> int:
        """The bytes of all constants in the executable."""
        return sum(constant.value.bytes for constant in self.constants)

    @property
    def folded_bytes(self) -> int:
        """The bytes of those that the compiler folded."""
        return sum(constant.value.bytes for constant in self.constants if constant.folded)

    @property
    def fixed_bytes(self) -> int:
        """The bytes of parameters and outputs on the device."""
        values = (*self.parameters, *self.outputs)
        return sum(value.bytes for value in values if not value.on_host)

    @property
    def written_bytes(self) -> int:
        """The bytes that kernels and transfers from the host write on the device, each once."""
        written = sum(kernel.bytes_out + kernel.workspace for kernel in self.kernels)
        return written + sum(each.bytes for each in self.offloads if each.direction == TO_DEVICE)

    @property
    def offloads(self) -> tuple[HostTransfer, ...]:
        """The transfers between the host and the device, without those of callbacks."""
        return tuple(transfer for transfer in self.host_transfers if transfer.is_offload)

    def host_bytes(self, transfers: Iterable[HostTransfer]) -> int:
        """Return the maximum bytes that some of the host transfers move in one run.

        As in `moved_bytes`, with one arm of each conditional.
        """
        return self._one_arm_of(((each.branch, each.runs * each.bytes) for each in transfers), max)

    def host_bytes_at_least(self, transfers: Iterable[HostTransfer]) -> int:
        """Return the minimum of `host_bytes`, as in `moved_at_least`."""
        return self._one_arm_of(
            ((each.branch, each.at_least * each.bytes) for each in transfers), min
        )

    @property
    def host_bytes_known(self) -> bool:
        """Whether the trip count of every loop with host transfers is known."""
        return self._knows_trips(self.host_transfers)

    def _knows_trips(self, parts: Iterable[Kernel | HostTransfer]) -> bool:
        return all(self.loops[loop].trips is not None for part in parts for loop in part.loops)

    @property
    def trips_known(self) -> bool:
        """Whether every trip count is known."""
        return all(loop.trips is not None for loop in self.loops)

    @property
    def launches_known(self) -> bool:
        """Whether every trip count is known, and how many kernels each library's call launches."""
        return self.trips_known and not self.libraries

    @property
    def libraries(self) -> tuple[Kernel, ...]:
        """The kernels that are calls of libraries with an unknown number of launches."""
        return tuple(kernel for kernel in self.kernels if kernel.launches_at_most is None)

    def launches_of(self, kernels: Iterable[int]) -> int:
        """Return the maximum launches of some kernels in one run, as in `launch_count`."""
        chosen = [self.kernels[index] for index in kernels]
        return self._one_arm_of(((each.branch, each.launches) for each in chosen), max)

    def most_of(self, kernels: Iterable[int]) -> int | None:
        """Return the maximum launches of some kernels in one run, as in `launches_at_most`."""
        counts = [
            (self.kernels[index].branch, self.kernels[index].launches_at_most) for index in kernels
        ]
        known = [(branch, count) for branch, count in counts if count is not None]
        return self._one_arm_of(known, max) if len(known) == len(counts) else None

    def fewest_of(self, kernels: Iterable[int]) -> int:
        """Return the minimum launches of some kernels in one run, as in `launches_at_least`."""
        chosen = [self.kernels[index] for index in kernels]
        return self._one_arm_of(((each.branch, each.at_least) for each in chosen), min)

    def iterations(self, loop: int) -> int:
        """Return how often one run of the program runs a loop's body, at least 1.

        An unknown trip count counts once; -1, for no loop, yields 1.
        """
        times = 1
        while loop >= 0:
            times *= max(1, self.loops[loop].trips or 1)
            loop = self.loops[loop].parent
        return times

    def is_within(self, branch: int, arms: range) -> bool:
        """Return whether a branch is one of some arms, or within one; -1 is no branch."""
        while branch >= 0 and branch not in arms:
            branch = self.branches[branch].parent
        return branch >= 0

    def _one_arm_of(
        self, counts: Iterable[tuple[int, int]], of: Callable[[Sequence[int]], int]
    ) -> int:
        """Return the sum of counts, each with its branch, with one arm of each conditional.

        `of` selects the arm.
        """
        sums = [0] * len(self.branches)
        total = 0
        for branch, count in counts:
            if branch < 0:
                total += count
            else:
                sums[branch] += count
        # The first branch of each conditional; inner ones come first.
        for first in range(len(self.branches) - 1, -1, -1):
            if self.branches[first].arm != 0:
                continue
            parent = self.branches[first].parent
            of_arms = of(sums[first : first + self.branches[first].arms])
            if parent < 0:
                total += of_arms
            else:
                sums[parent] += of_arms
        return total
