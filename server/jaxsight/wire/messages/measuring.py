"""The reply to `Measure`: what programs took on a device of this machine.

Times are in seconds, and those of a kernel are those of one run of the program.
This module uses only the standard library: the server and all processes that measure import it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeasuringLimits:
    """What ends the runs of one program: the first of these."""

    runs: int = 0
    """Runs that are timed; 0: as many as are needed until the median is known to 1 %."""
    seconds: float = 5.0
    """Time of all timed runs of one program; at least one run is timed."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How timed runs are spread.

    `low` and `high` are the bounds of a confidence interval of the median (98 %), from medians of
    ten blocks of successive runs. With fewer than 20 runs they are the shortest and the longest.
    """

    median: float
    quartile1: float
    quartile3: float
    low: float
    high: float
    least: float
    runs: int


@dataclass(frozen=True, slots=True)
class KernelTime:
    """What a device's profile has about one kernel, or one kind of transfers, in one run."""

    name: str
    """The name of the HLO's instruction; for a transfer that of the profile (`MemcpyH2D`)."""
    calls: float
    """How often it ran; not whole if runs differ."""
    seconds: float


@dataclass(frozen=True, slots=True)
class ProgramTimes:
    """What one program took."""

    wall: Spread
    """From the call until the results are ready, as the user's own `block_until_ready` waits."""
    device_seconds: float
    """Time in which the device was busy in one run; -1 if there is no profile.

    Kernels that run at the same time count once.
    """
    between_seconds: float
    """Time between the first kernel of a run and the end of the last in which none ran; -1 if
    there is no profile."""
    host_seconds: float = -1.0
    """Time of a run before the first kernel and after the last; -1 if there is no profile.

    In a profile it is longer than without: what is profiled costs time.
    """
    kernels: tuple[KernelTime, ...] = ()
    """The kernels, the dearest first."""
    transfers: tuple[KernelTime, ...] = ()
    """Copies and clears of memory that are no kernels of the HLO, the dearest first."""
    profiled_runs: int = 0
    profile_problem: str = ""
    """Why there is no profile, in a clause."""
    lower_seconds: float = 0.0
    compile_seconds: float = 0.0
    """How long XLA compiled it in the process that measured; less where JAX's cache has it."""
    first_seconds: float = 0.0
    """The first run, which loads code and autotunes where XLA does so late."""
    peak_bytes: int = -1
    """Memory of the device in use at the peak, with everything else in the process; -1 if the
    backend does not tell."""
    drawn: tuple[str, ...] = ()
    """Names of the arguments that are random numbers; all others are the user's own values."""
    hlo: str = ""
    """The optimized HLO, with large constants elided; its instructions have the kernels' names."""


@dataclass(frozen=True, slots=True)
class MeasuredRatio:
    """How much longer the other program takes than the first: the ratio of their medians.

    The runs alternate. `low` and `high` are the bounds of a 95 % confidence interval, by resampling
    pairs of neighbouring runs.
    """

    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Conditions:
    """The machine while it measured."""

    device_kind: str
    """JAX's name of the device."""
    platform: str
    jax: str
    jaxlib: str
    cores: int
    """CPU cores that the process may use."""
    load: float
    """Processes that were ready to run before, on average over a minute; -1 if unknown."""
    others: float
    """Cores that other processes kept busy meanwhile, on average; -1 if unknown."""
    governor: str = ""
    """The frequency governor of the CPU (`powersave`); empty if unknown."""
    clock_seconds: float = 0.0
    """The resolution of the clock: the shortest difference of two readings."""
    waited_seconds: float = 0.0
    """How long another measurement on this machine had to be waited for."""
    command_buffers: bool | None = None
    """Whether the GPU's runtime may launch several kernels at once; `None` for other devices. The
    profile is that of a run without them where JAX can switch them off."""

    @property
    def is_busy(self) -> bool:
        """Whether other processes took so much that times may be longer than on an idle machine."""
        return self.others > BUSY * self.cores


BUSY = 0.1
"""The share of a machine's cores from which others are said to disturb, a choice."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a program took; `other` is the one that it was compared with."""

    id: int
    program: ProgramTimes
    conditions: Conditions
    other: ProgramTimes | None = None
    ratio: MeasuredRatio | None = None
