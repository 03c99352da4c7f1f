"""`jaxsight.kernels`: the kernels of a function, in Python and in notebooks.

This module runs where JAX is imported already.
It compiles for the machine's own devices in this process, and for all others in a compiler process.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from jaxsight.drawing import kernel_picture
from jaxsight.figures.figures import Figures, line_names
from jaxsight.figures.program_notes import notes
from jaxsight.figures.rows import table
from jaxsight.library import compiling
from jaxsight.library.compiling import CannotCompile
from jaxsight.library.live_places import LivePlaces, places_of
from jaxsight.targets.roofline import total
from jaxsight.targets.target import Target, parse, recognized
from jaxsight.text.layout import aligned
from jaxsight.wire.frames import PROGRAM_CAPTURED_LIMIT
from jaxsight.wire.kernel_graph import Collective, Graph, Kernel
from jaxsight.wire.kernel_work import HostTransfer
from jaxsight.wire.messages.compiling import Compiled, Memory

if TYPE_CHECKING:
    from IPython.lib.pretty import PrettyPrinter
    from jax.sharding import PartitionSpec
    from jax.stages import Traced

    from jaxsight_source.compat.locations import Location


@dataclass(frozen=True)
class Kernels:
    """The kernels of a function on a target.

    For a function that spans several devices, all figures are those of one of them.
    Printed as a table; in notebooks, shown as a table with a drawing.
    """

    function: str
    figures: Figures[Location] = field(repr=False)
    """All that is known of the compiled program."""
    traced: Traced | None = field(default=None, repr=False, compare=False)
    """What was compiled; `None` if that is not known."""
    _completed: Callable[[], Compiled] | None = field(default=None, repr=False, compare=False)
    """Compiles it completely."""

    @functools.cached_property
    def complete(self) -> Figures[Location]:
        """The figures of a complete compile.

        For a GPU that is not here, the first use compiles the function completely.

        Raises:
            CannotCompile: XLA cannot generate code for the function.
        """
        if self.figures.is_complete or self._completed is None:
            return self.figures
        notes = self.figures.compiled.notes
        return replace(self.figures, compiled=replace(self._completed(), notes=notes))

    @property
    def with_temporaries(self) -> Figures[Location]:
        """The figures of a compile after which the size of temporaries is known."""
        return self.figures if self.figures.knows_temporaries else self.complete

    @property
    def target(self) -> str:
        """The name of the target."""
        return self.figures.compiled.target

    @property
    def how(self) -> str:
        """`device`, `simulated` for CPU devices, or `ahead of time` for devices not present."""
        return self.figures.compiled.how

    @property
    def graph(self) -> Graph:
        """The kernel graph."""
        return self.figures.graph

    @property
    def hlo(self) -> str:
        """The optimized HLO."""
        return self.figures.compiled.hlo

    @property
    def devices(self) -> int:
        """The number of devices that the function spans."""
        return self.figures.compiled.devices

    @property
    def argument_shardings(self) -> dict[str, PartitionSpec]:
        """The shardings that the function is compiled with, by the names of its array arguments.

        Those that the function leaves open are the partitioner's choice. Empty for one device.
        """
        from jax.sharding import PartitionSpec

        make: Any = PartitionSpec
        return {
            name: make(*(axes[0] if len(axes) == 1 else axes or None for axes in chosen.spec))
            for name, chosen in self.figures.argument_shardings
        }

    @property
    def memory(self) -> Memory:
        """The compiler's memory analysis, of a complete compile.

        Raises:
            CannotCompile: XLA cannot generate code for the function.
        """
        return self.complete.compiled.memory

    @property
    def kernel_count(self) -> int:
        """The number of kernels."""
        return self.graph.kernel_count

    @property
    def kernels_at_most(self) -> int:
        """The maximum of `kernel_count` on the device, where autotuning decides."""
        return self.graph.kernels_at_most

    @property
    def launch_count(self) -> int:
        """Launches of one run, with all iterations of loops and the largest arm of conditionals.

        A call of a library counts as one (see `launches_at_most`).
        """
        return self.graph.launch_count

    @property
    def launches_at_most(self) -> int | None:
        """The maximum of `launch_count` on the device; `None` if unknown.

        It is unknown for loops of unknown length, and for libraries such as cuFFT and cuSOLVER.
        """
        return self.graph.launches_at_most

    @property
    def temp_bytes(self) -> int:
        """Temporary device memory in bytes, as the compiler allocates it; -1 if unknown.

        The minimum where the device decides (see `temp_bytes_at_most`).
        """
        return self.with_temporaries.compiled.temporaries

    @property
    def temp_bytes_at_most(self) -> int:
        """The maximum of `temp_bytes` on the device, where autotuning decides; -1 if unknown.

        For a GPU that is not here, a matmul may be given to cuBLAS there, which needs a workspace,
        and a convolution needs a workspace of unknown size.
        """
        return self.with_temporaries.compiled.temporaries_at_most

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """The collectives, in the order of the program; `graph.collectives` are their kernels."""
        return tuple(filter(None, (kernel.collective for kernel in self.graph.collectives)))

    @property
    def moved_bytes(self) -> int:
        """Bytes that collectives move in one run: those on one device, times runs.

        A loop of unknown length counts once. These are bytes of data, not of network traffic.
        """
        return self.graph.moved_bytes

    @property
    def host_transfers(self) -> tuple[HostTransfer, ...]:
        """The transfers between the host and the device, with those of callbacks."""
        return self.graph.host_transfers

    def lines(self, kernel: Kernel | HostTransfer) -> list[str]:
        """Return the lines (`model.py:12`) that a kernel computes, or else those that it feeds."""
        return line_names(self.figures.places, kernel.equations or kernel.feeds)

    def __str__(self) -> str:
        titles, sides, rows = table(self.figures)
        return "\n".join([self.title, *aligned([titles, *rows], sides), *self._notes])

    def _repr_pretty_(self, printer: PrettyPrinter, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return self.table_html() + self.svg()

    def table_html(self) -> str:
        """Return the kernels as a table in HTML."""
        titles, _, rows = table(self.figures)
        head, *body = (
            "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"
            for tag, row in [("th", titles), *(("td", row) for row in rows)]
        )
        below = "".join(f"<div><small>{html.escape(note)}</small></div>" for note in self._notes)
        return (
            f"<div><b>{html.escape(self.title)}</b></div>"
            f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>{below}"
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def svg(self, width: float | None = None) -> str:
        """Return a drawing of the graph as SVG.

        Args:
            width: its width in pixels at most; by default what the boxes need.
        """
        figures = self.figures
        return kernel_picture.svg(
            self.graph, figures.source, title=self.title, inputs=figures.inputs, width=width
        )

    @property
    def title(self) -> str:
        """The name of the function and its figures in a line."""
        return f"{self.function}: {self.with_temporaries.headline}"

    @property
    def _notes(self) -> list[str]:
        return [self.with_temporaries.origin, *notes(self.with_temporaries)]

    def estimate_seconds(self) -> float | None:
        """Return a roofline estimate from the chip's figures, which is not a measurement.

        Returns `None` if unknown: for chips without figures, kernels without a model (eigh,
        callbacks), loops of unknown length, and branches.
        """
        estimate = total(self.graph, self.figures.target)
        return None if estimate is None or estimate.is_lower_bound else estimate.seconds


def kernels(fn: Callable[..., object], *, target: str | None = None) -> Callable[..., Kernels]:
    """Return a function that compiles `fn` for a target, which need not be present.

    Args:
        fn: a function, jitted or not.
        target: a name listed by `jaxsight targets`; by default this machine's GPU or TPU, else an
            H100 if its compiler is installed, else `cpu`.

    Returns:
        A function that takes the arguments of `fn` (arrays or `jax.ShapeDtypeStruct`s) and returns
        its `Kernels`.

    Raises:
        UnknownTarget: there is no such target.
        CannotCompile: (when called) the target's compiler is not installed, or rejects the
            function.
    """
    chosen = parse(target) if target else compiling.default()

    @functools.wraps(fn, updated=())
    def of(*args: object, **kwargs: object) -> Kernels:
        return kernels_on(fn, chosen, args, kwargs)

    return of


def kernels_on(
    fn: Callable[..., object], target: Target, args: tuple[object, ...], kwargs: dict[str, object]
) -> Kernels:
    """Return the kernels of a function on a target; see `kernels`."""
    from jaxsight.compiler import folding
    from jaxsight.tracer.compat import lowering
    from jaxsight.tracer.handlers import lower

    traced, asked = compiling.trace(fn, target, args, kwargs)
    name = getattr(fn, "__name__", "") or traced.fun_name
    limit = PROGRAM_CAPTURED_LIMIT
    if not target.is_here and (problem := lower.captured_too_much(traced.jaxpr, limit)):
        raise CannotCompile(f"{name} {problem}")
    try:
        artifact = lowering.artifact(traced, target.platform, target.capability)
    except Exception as error:
        raise CannotCompile(f"{name} cannot be lowered for {target.name}: {error}") from error
    lowered = lower.live(traced, artifact)
    distribution = lowered.request.distribution
    if distribution is not None and target.devices and distribution.devices > target.devices:
        raise CannotCompile(
            f"{name} spans {distribution.devices} devices, but {target.name} has {target.devices}"
        )
    # In this process other threads may compile, and then no compile may end early.
    request = replace(lowered.request, id=1, target=target.name, complete=target.is_here)
    traps = [fold for fold in lowered.folds if fold.trap]
    if traps:
        request = folding.without(request)
    answer = compiling.compiled(name, target, request)
    worst = max(traps, key=lambda fold: fold.seconds, default=None)
    unfolded = [folding.note(worst.primitive, worst.elements, worst.seconds)] if worst else []
    answer = replace(answer, notes=(*answer.notes, *unfolded, *asked))
    return Kernels(
        name,
        Figures(
            recognized(target, answer.device_kind),
            answer,
            lowered,
            bool(traps),
            LivePlaces(dict(places_of(traced.jaxpr))),
        ),
        traced,
        lambda: compiling.compiled(name, target, replace(request, complete=True)),
    )
