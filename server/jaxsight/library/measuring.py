"""`jaxsight.measure`: what a function takes on this machine, in Python and in notebooks.

The function runs in this process, on the device that JAX uses here.
"""

from __future__ import annotations

import functools
import html
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jaxsight.figures.figures import line_names
from jaxsight.library import compiling
from jaxsight.library.live_places import LivePlaces, places_of
from jaxsight.targets.achieved import MeasuredKernel, measured_kernels
from jaxsight.targets.roofline import total
from jaxsight.targets.target import CPU, Target, parse, recognized
from jaxsight.text import units
from jaxsight.text.layout import aligned
from jaxsight.wire.kernel_graph import Kernel
from jaxsight.wire.messages.measuring import Conditions, MeasuringLimits, ProgramTimes
from jaxsight_source.compat.staging import open_jaxpr

if TYPE_CHECKING:
    from IPython.lib.pretty import PrettyPrinter
    from jax.stages import Traced

_LINES = 4
"""Lines of source of a kernel in a table, a choice: a fused kernel may have hundreds."""
_FAMILIES = {"gpu": ("cuda", "rocm"), "cpu": (CPU,), "tpu": ("tpu",)}
"""The targets of JAX's platforms."""


class NotHere(Exception):
    """The target is not the device that JAX uses in this process."""


@dataclass(frozen=True)
class Timings:
    """What one run of a function takes. Times are in seconds; printed as a table."""

    function: str
    target: str
    kernels: tuple[MeasuredKernel[str], ...]
    """What the device ran, the dearest first; lines are `model.py:12`."""
    times: ProgramTimes = field(repr=False)
    """All that was measured."""
    conditions: Conditions = field(repr=False)
    """The machine meanwhile."""
    estimate_seconds: float | None = None
    """The estimate of the kernels; `None` for a CPU, or where it is not known."""

    @property
    def wall_seconds(self) -> float:
        """From the call until the results are ready, the median."""
        return self.times.wall.median

    @property
    def wall_quartiles(self) -> tuple[float, float]:
        """The quartiles of the same."""
        return self.times.wall.quartile1, self.times.wall.quartile3

    @property
    def device_seconds(self) -> float:
        """Time in which the device was busy; -1 if there is no profile."""
        return self.times.device_seconds

    def __str__(self) -> str:
        wall = self.times.wall
        first = (
            f"{self.function} on {self.target} ({self.conditions.device_kind}): "
            f"{units.time(wall.median)} "
            f"({units.time(wall.quartile1)}–{units.time(wall.quartile3)}, "
            f"{units.count(wall.runs, 'run')})"
        )
        rows = [("", "kernel", "calls", "time", "share", "lines")]
        rows += [
            (
                "" if row.index is None else str(row.index + 1),
                row.name,
                f"{row.calls:g}",
                units.time(row.seconds),
                units.percent(row.share),
                ", ".join(row.lines[:_LINES]),
            )
            for row in self.kernels
        ]
        return "\n".join([first, *aligned(rows, "l" * len(rows[0])), *self.notes])

    def _repr_pretty_(self, printer: PrettyPrinter, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    @property
    def notes(self) -> tuple[str, ...]:
        """What may have disturbed the measurement, and what is missing of it."""
        notes = []
        if self.times.profile_problem:
            notes.append(f"no times of kernels: {self.times.profile_problem}")
        if self.times.profile_note:
            notes.append(self.times.profile_note)
        if self.conditions.is_busy:
            others, cores = self.conditions.others, self.conditions.cores
            notes.append(f"other processes kept {others:.1f} of {cores} cores busy")
        return tuple(notes)


def measure(
    fn: Callable[..., object],
    *,
    target: str | None = None,
    repeat: int = 0,
    seconds: float = MeasuringLimits().seconds,
) -> Callable[..., Timings]:
    """Return a function that runs `fn` on this machine until its time is known.

    Arguments that are `jax.ShapeDtypeStruct`s are random. One measurement runs at a time on a
    machine. Arguments that `fn` donates are copied before each run.

    Args:
        fn: a function, jitted or not; it is compiled with `jax.jit`.
        target: `cpu`, `cuda`, `rocm` or `tpu`; it has to be the device that JAX uses here, which
            is the default.
        repeat: the number of timed runs; with 0 as many as are needed to know the median to 1 %.
        seconds: the time of all runs after which they end, if `repeat` is 0.

    Returns:
        A function that takes the arguments of `fn` and returns its `Timings`.

    Raises:
        UnknownTarget: there is no such target.
        NotHere: (when called) the target is not the device that JAX uses here.
        CannotMeasure: (when called) the function cannot be run by itself.
        Exception: (when called) any that `fn`, JAX or XLA raises.
    """
    chosen = parse(target) if target else None
    limits = MeasuringLimits(repeat, seconds)

    @functools.wraps(fn, updated=())
    def of(*args: object, **kwargs: object) -> Timings:
        return _timings(fn, chosen, limits, args, kwargs)

    return of


def _timings(
    fn: Callable[..., object],
    target: Target | None,
    limits: MeasuringLimits,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> Timings:

    from jaxsight.compiler.hlo import read
    from jaxsight.measuring.programs import compile_program, default_device, measured
    from jaxsight.tracer.compat import lowering

    device = default_device()
    names = _FAMILIES.get(device.platform, (device.platform,))
    if target is None:
        target = compiling.default()
        if not target.is_here or target.platform not in names:
            target = parse(names[0])
    if not target.is_here or target.platform not in names:
        raise NotHere(
            f"{target.name} is not the device that JAX uses here, which is {device.device_kind}"
        )
    traced, _ = compiling.trace(fn, target, args, kwargs)
    with lowering.no_lines():
        make = functools.partial(
            compile_program,
            lowering.located(traced),
            lowering.names(traced),
            _values(traced, fn, args, kwargs),
            lowering.donated(traced),
        )
        found = measured([make], limits, lambda stage, detail: None)
    target = recognized(target, device.device_kind if target.platform != CPU else "")
    platform = target.platform
    graph = read(found.program.hlo, platform=platform, capability=target.capability)
    places = LivePlaces(dict(places_of(traced.jaxpr)))

    def lines(kernel: Kernel) -> list[str]:
        return line_names(places, kernel.equations or kernel.feeds)

    rows = measured_kernels(graph, found.program.kernels, target, lines, lambda: graph)
    estimated = total(graph, target)
    return Timings(
        getattr(fn, "__name__", "function"),
        target.name,
        tuple(rows),
        found.program,
        found.conditions,
        None if estimated is None or estimated.is_lower_bound else estimated.seconds,
    )


def _values(
    traced: Traced, fn: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> Sequence[object] | dict[str, object]:
    """Return the values of the flat arguments, or those by name if there are static ones, too."""
    import jax

    def known(leaf: object) -> object:
        return None if isinstance(leaf, jax.ShapeDtypeStruct) else leaf

    leaves = jax.tree_util.tree_leaves((args, kwargs))
    if len(leaves) == len(open_jaxpr(traced.jaxpr).invars):
        return list(map(known, leaves))
    bound = inspect.signature(fn).bind(*args, **kwargs)
    return {
        f"{name}{jax.tree_util.keystr(path)}": known(leaf)
        for name, value in bound.arguments.items()
        for path, leaf in jax.tree_util.tree_flatten_with_path(value)[0]
    }
