"""`jaxsight.kernels`: the kernels of a function, in Python and in notebooks.

This module runs where JAX is imported already.
It compiles for the machine's own devices in this process, and for all others in a compiler process.
"""

from __future__ import annotations

import base64
import functools
import html
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from jaxsight.drawing import kernel_picture
from jaxsight.drawing.dot import dot
from jaxsight.library import compiling, on_target
from jaxsight.library.collectives import CollectiveFigures, collectives, specs
from jaxsight.library.compiling import CannotCompile
from jaxsight.library.written import expression, file_title
from jaxsight.meshes import named_shardings
from jaxsight.targets.roofline import total
from jaxsight.targets.target import Target, parse, recognized
from jaxsight.text.layout import aligned
from jaxsight.text.units import count, interval
from jaxsight.wire.donation import Alias, Donation, donations
from jaxsight.wire.frames import PROGRAM_CAPTURED_LIMIT
from jaxsight.wire.host_transfers import HostTransfer
from jaxsight.wire.kernel_graph import Graph, Kernel
from jaxsight.wire.kernels.undecided import at_least, at_most
from jaxsight.wire.meshes import Mesh
from jaxsight.wire.messages.compiling import Compile, Compiled, Memory
from jaxsight_source.compat.staging import open_jaxpr
from jaxsight_source.files.ours import OURS

if TYPE_CHECKING:
    from IPython.lib.pretty import PrettyPrinter
    from jax.sharding import PartitionSpec
    from jax.stages import Traced

    from jaxsight_source.compat.locations import Location

"""Programs that jaxsight read from StableHLO have its own lines."""
_LINES = 4
"""Lines of source of a kernel in a table, a choice: a fused kernel may have hundreds."""


@dataclass(frozen=True)
class Kernels:
    """The kernels of a function on a target.

    For a function that spans several devices, all figures are those of one of them.
    Printed as a table; in notebooks, shown as a table with a drawing.
    """

    function: str
    target: str
    how: str
    """`device`, `simulated` for CPU devices, or `ahead of time` for devices that are not present.
    """
    graph: Graph
    hlo: str = field(repr=False)
    """The optimized HLO."""
    notes: tuple[str, ...] = ()
    donations: tuple[Donation, ...] = ()
    """The donated inputs, each with the result that reuses its buffer."""
    sources: dict[str, str] = field(default_factory=dict, repr=False)
    """Source lines of equations (`model.py:12`), by their paths."""
    expressions: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The source of equations (`jnp.sum(x * y)`), by their paths, on one line each."""
    is_unfolded: bool = False
    """Whether constant folding was disabled, as it would take long; the last note says so."""
    device_kind: str = ""
    """JAX's `device_kind` of the machine's own GPU or TPU; empty for other targets."""
    devices: int = 1
    """The number of devices that the function spans."""
    meshes: tuple[Mesh, ...] = ()
    """The meshes that the function names."""
    argument_shardings: Mapping[str, PartitionSpec] = field(default_factory=dict, repr=False)
    """The shardings that the function is compiled with, by the names of its array arguments.

    Those that the function leaves open are the partitioner's choice. Empty for one device.
    """
    result_shardings: Mapping[str, PartitionSpec] = field(default_factory=dict, repr=False)
    """The same of results: `result 0`."""
    operations: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The primitives of equations, by their paths."""
    places: Mapping[str, Location] = field(default_factory=dict, repr=False, compare=False)
    """Where equations are written, by their paths."""
    parameters: tuple[str, ...] = field(default=(), repr=False)
    """The names of the program's parameters."""
    compiled: Compiled | None = field(default=None, repr=False, compare=False)
    """The compiler's answer; `None` for figures that are not of one."""
    traced: Traced | None = field(default=None, repr=False, compare=False)
    """What was compiled; `None` if that is not known."""
    _temporaries: int = field(default=-1, repr=False, compare=False)
    """Known before the compile is complete, or -1."""
    _memory: Callable[[], Memory] = field(default=Memory, repr=False, compare=False)
    aliases: tuple[Alias, ...] = field(default=(), repr=False)
    """The results in the buffers of donated parameters, by number."""

    @functools.cached_property
    def memory(self) -> Memory:
        """The compiler's memory analysis.

        For a GPU that is not here, the first use compiles the function completely.

        Raises:
            CannotCompile: XLA cannot generate code for the function.
        """
        return self._memory()

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
        return at_least(self._assigned, self.graph.undecided)

    @property
    def temp_bytes_at_most(self) -> int:
        """The maximum of `temp_bytes` on the device, where autotuning decides; -1 if unknown.

        For a GPU that is not here, a matmul may be given to cuBLAS there, which needs a workspace,
        and a convolution needs a workspace of unknown size.
        """
        return at_most(self._assigned, self.graph.undecided)

    @property
    def _assigned(self) -> int:
        return self._temporaries if self._temporaries >= 0 else self.memory.temporaries

    @property
    def folded_bytes(self) -> int:
        """Bytes of constants that the compiler folded and embedded in the executable."""
        return sum(constant.value.bytes for constant in self.graph.constants if constant.folded)

    @property
    def collectives(self) -> tuple[CollectiveFigures, ...]:
        """The collectives, in the order of the program."""
        return tuple(collectives(self.graph, self.lines))

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

    @property
    def host_bytes(self) -> int:
        """Bytes of these transfers in one run, without those of callbacks.

        A loop of unknown length counts once.
        """
        return self.graph.host_bytes(self.graph.offloads)

    def lines(self, kernel: Kernel | HostTransfer) -> list[str]:
        """Return the lines (`model.py:12`) that a kernel computes, or else those that it feeds."""
        return lines_of(kernel, self.sources)

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [
            ("", "kernel", "launches", "in", "out", "fusion boundary", "lines")
        ]
        rows += [tuple(map(str, row)) for row in self._rows()]
        lines = [self._headline(), *aligned(rows, "l" * len(rows[0]))]
        for transfer in self.host_transfers:
            # `to host f32[512,512], 1,048,576 B, 8 times  model.py:12`
            times = f", {transfer.runs} times" if transfer.runs > 1 else ""
            what = f"{transfer.direction} {transfer.type}, {transfer.bytes:,} B{times}"
            lines.append(f"{what}  {', '.join(self.lines(transfer)[:_LINES])}".rstrip())
        return "\n".join([*lines, *map(str, self.donations), *self.notes])

    def _repr_pretty_(self, printer: PrettyPrinter, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return self.table_html() + self.svg()

    def table_html(self) -> str:
        """Return the kernels as a table in HTML."""
        head = "".join(
            f"<th>{title}</th>"
            for title in ("", "kernel", "launches", "in", "out", "fusion boundary", "lines")
        )
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
            for row in self._rows()
        )
        notes = "".join(f"<div><small>{html.escape(note)}</small></div>" for note in self.notes)
        return (
            f"<div><b>{html.escape(self._headline())}</b></div>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def svg(self, width: float | None = None) -> str:
        """Return a drawing of the graph as SVG.

        Args:
            width: its width in pixels at most; by default what the boxes need.
        """
        return kernel_picture.svg(
            self.graph,
            self._written,
            title=self._headline(),
            inputs=self.parameters,
            width=width,
        )

    def dot(self) -> str:
        """Return the graph in Graphviz DOT format."""
        return dot(self.graph, self._written)

    def _written(self, path: str) -> str:
        """Return the source of an equation; without one, its primitive."""
        return self.expressions.get(path) or self.operations.get(path, path)

    def _headline(self) -> str:
        temp = "?" if self.temp_bytes < 0 else f"{self.temp_bytes:,} B"
        if self.temp_bytes_at_most > self.temp_bytes:
            temp += f" (+ ≤ {self.temp_bytes_at_most - self.temp_bytes:,} B on the device)"
        elif self.temp_bytes_at_most < self.temp_bytes:
            temp = f"≥ {temp}"
        on = self.target
        if self.devices > 1:
            temp += " per device"
            if parse(self.target).devices != self.devices:
                on = f"{self.devices} devices of {self.target}"
        launched = interval(self.graph.launches_at_least, self.launches_at_most)
        number = interval(self.kernel_count, self.kernels_at_most)
        kernels = f"{number} {'kernel' if number == '1' else 'kernels'}"
        launches = "launch" if launched == "1" else "launches"
        parts = [kernels, f"{launched} {launches}", f"temp {temp}"]
        if communicating := len(self.graph.collectives):
            moved = f"{self.moved_bytes:,} B"
            if not self.graph.moved_known:
                moved = f"≥ {self.graph.moved_at_least:,} B"
            parts.append(f"{count(communicating, 'collective')} of {moved}")
        if offloads := len(self.graph.offloads):
            moved = f"{self.host_bytes:,} B"
            if not self.graph.host_bytes_known:
                moved = f"≥ {self.graph.host_bytes_at_least(self.graph.offloads):,} B"
            parts.append(f"{count(offloads, 'host transfer')} of {moved}")
        return f"{self.function} on {on} ({self.how}): {', '.join(parts)}"

    def _rows(self) -> Iterator[tuple[object, ...]]:
        for index, kernel in enumerate(self.graph.kernels):
            yield (
                index + 1,
                "  " * len(kernel.loops) + kernel.title,
                interval(kernel.launches, kernel.launches_at_most),
                f"{kernel.bytes_in:,}",
                f"{kernel.bytes_out:,}",
                kernel.ends_because,
                ", ".join(self.lines(kernel)[:_LINES]),
            )

    def estimate_seconds(self) -> float | None:
        """Return a roofline estimate from the chip's figures, which is not a measurement.

        Returns `None` if unknown: for chips without figures, kernels without a model (eigh,
        callbacks), loops of unknown length, and branches.
        """
        estimate = total(self.graph, recognized(parse(self.target), self.device_kind))
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
    from jaxsight.tracer.handlers import lower as lowered
    from jaxsight.tracer.programs import folding_costs

    traced, asked = on_target.trace(fn, target, args, kwargs)
    name = getattr(fn, "__name__", "") or traced.fun_name
    traps = [fold for fold in folding_costs.predicted(traced) if fold.trap]
    request, inputs = _request(name, traced, target)
    if traps:
        request = folding.without(request)
    answer = compiling.compiled(name, target, request)
    worst = max(traps, key=lambda fold: fold.seconds, default=None)
    notes = [folding.note(worst.primitive, worst.elements, worst.seconds)] if worst else []
    found = _described(name, traced, answer, lowered.named(lowering.names(traced), inputs))
    return replace(
        found,
        notes=(*answer.notes, *notes, *asked),
        is_unfolded=bool(traps),
        meshes=request.distribution.meshes if request.distribution is not None else (),
        _memory=functools.partial(_memory, name, target, request, answer),
    )


def _request(name: str, traced: Traced, target: Target) -> tuple[Compile, tuple[int, ...]]:
    """Return what the compiler of a target is asked for, and the inputs that the program has.

    Raises:
        CannotCompile: JAX cannot lower the function for the target, it needs more devices, or it
            captures arrays that are too large to be sent to a compiler process.
    """
    from jaxsight.tracer.compat import lowering
    from jaxsight.tracer.handlers import lower as lowered
    from jaxsight.tracer.programs import folding_costs

    limit = PROGRAM_CAPTURED_LIMIT
    if not target.is_here and (problem := lowered.captured_too_much(traced.jaxpr, limit)):
        raise CannotCompile(f"{name} {problem}")
    try:
        artifact = lowering.artifact(traced, target.platform, target.capability)
    except Exception as error:
        raise CannotCompile(f"{name} cannot be lowered for {target.name}: {error}") from error
    distribution = artifact.distribution
    if distribution is not None and target.devices and distribution.devices > target.devices:
        raise CannotCompile(
            f"{name} spans {distribution.devices} devices, but {target.name} has {target.devices}"
        )
    program = base64.b64encode(artifact.bytes).decode("ascii")
    chosen, facts = folding_costs.compiler_options(traced), lowered.facts(traced.jaxpr)
    # In this process other threads may compile, and then no compile may end early.
    request = Compile(1, target.name, program, options=chosen, complete=target.is_here, **facts)
    if distribution is not None:
        asks = lowered.communicating(traced.jaxpr)
        request = replace(request, distribution=distribution, communicates=asks)
    return request, artifact.parameters


def _described(name: str, traced: Traced, answer: Compiled, parameters: tuple[str, ...]) -> Kernels:
    """Return the kernels of a compiled program, with the source of its equations."""
    from jaxsight.tracer.compat import lowering
    from jaxsight.tracer.handlers import lower as lowered
    from jaxsight_source.compat.inner import walk

    places = dict(places_of(traced.jaxpr))
    results = tuple(lowered.results(len(open_jaxpr(traced.jaxpr).outvars)))
    donated = lowered.named(lowering.names(traced), lowering.donated(traced))
    return Kernels(
        name,
        answer.target,
        answer.how,
        answer.graph,
        answer.hlo,
        donations=donations(
            answer.aliases, len(answer.graph.parameters), parameters, results, donated
        ),
        sources=lines_at(places),
        expressions=sources_at(places),
        operations={path: each.primitive.name for path, each in walk(traced.jaxpr)},
        places=places,
        device_kind=answer.device_kind,
        devices=answer.devices,
        argument_shardings=specs(named_shardings.of_parameters(answer.shardings, parameters)),
        result_shardings=specs(named_shardings.of_results(answer.shardings, results)),
        parameters=parameters,
        compiled=answer,
        traced=traced,
        _temporaries=answer.memory.temporaries,
        aliases=answer.aliases,
    )


def _memory(name: str, target: Target, request: Compile, answer: Compiled) -> Memory:
    """Return the memory of a compiled program, for which it may have to be compiled completely."""
    if answer.is_complete:
        return answer.memory
    return compiling.compiled(name, target, replace(request, complete=True)).memory


def lines_of(kernel: Kernel | HostTransfer, sources: Mapping[str, str]) -> list[str]:
    """Return the lines that a kernel computes, or else those that it feeds.

    That of an equation without one is that of the equation around it.

    Args:
        kernel: the kernel, or the transfer.
        sources: the lines of equations (`model.py:12`), by their paths.
    """
    lines: dict[str, None] = {}
    for path in kernel.equations or kernel.feeds:
        while path and path not in sources:
            path = _outer(path)
        if path:
            lines[sources[path]] = None
    return list(lines)


def places_of(jaxpr: object) -> Iterator[tuple[str, Location]]:
    """Yield the paths of equations, each with where it is written, if that is known.

    That of an equation without a place of its own is that of the equation around it.
    """
    from jaxsight_source.compat.inner import walk
    from jaxsight_source.compat.locations import locations

    around: dict[str, Location] = {}
    for path, equation in walk(jaxpr):
        at = next(locations(equation), None) or around.get(_outer(path))
        if at is not None and not at.file.startswith(OURS):
            around[path] = at
            yield path, at


def _outer(path: str) -> str:
    """Return the path of the equation around one: `3` of `3/body/1`."""
    return path.rpartition("/")[0].rpartition("/")[0]


def lines_at(places: Mapping[str, Location]) -> dict[str, str]:
    """Return the lines of equations (`model.py:12`, `In [3]:2`), by their paths."""
    return {path: f"{file_title(at.file)}:{at.line}" for path, at in places.items()}


def sources_at(places: Mapping[str, Location]) -> dict[str, str]:
    """Return the source of equations, by their paths, of those where it is known."""
    return {path: text for path, at in places.items() if (text := expression(at))}
