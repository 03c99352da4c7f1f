"""`jaxsight.show`: the kernels of a function as the panel, in the output of a cell.

The page is the panel of editors with its data inside, in a frame that has scripts and nothing else:
no network, no access to the notebook. Where frames are removed, as on GitHub, the drawing is shown,
and `nbconvert` has it as SVG.

Stages of JAX are arguments of `show`, too: traced, lowered and compiled functions.
"""

from __future__ import annotations

import base64
import html
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from jaxsight import page
from jaxsight.figures.figures import Figures
from jaxsight.figures.panel import Json, PanelTimes, panel_record
from jaxsight.hlo.metadata import lines_of_equations, without_metadata
from jaxsight.library import compiling
from jaxsight.library.kernels import Kernels, kernels_on
from jaxsight.library.live_places import LivePlaces, editor_range, place_of
from jaxsight.library.measuring import Timings
from jaxsight.library.measuring import measure as measured
from jaxsight.runs.compiled_hlo import numbered
from jaxsight.targets.target import parse
from jaxsight.text import units
from jaxsight.text.inert import clause
from jaxsight.wire.messages.compiling import ON_DEVICE, Compile, Compiled
from jaxsight.wire.messages.replies import Lowered, LoweredEquation
from jaxsight_source.errors import NotAProgram

if TYPE_CHECKING:
    from jaxsight_source.compat.locations import Location

# What the panel's page shows of a live function: `Entry` of the panel's `messages.ts`.


def entry(kernels: Kernels, timings: Timings | None) -> Json:
    """Return a function with its texts, and what was measured of it."""
    texts = dict(_texts(kernels))
    measured = _times(kernels, timings) if timings is not None else None
    shown = {
        "function": kernels.function,
        "uri": f"jaxsight:{kernels.function}",
        "range": None,
        "set": "",
        "sets": [""],
        "target": kernels.target,
        "targets": [kernels.target],
        "stale": False,
        "assumed": "",
        "measurable": False,
        "trouble": "",
        "documents": {name: f"jaxsight:{kernels.function}.{name}" for name in texts},
        "drawn": panel_record(kernels.figures, _located, measured=measured),
    }
    return {"shown": shown, "contents": texts, "swept": None}


def _texts(kernels: Kernels) -> Iterator[tuple[str, Json]]:
    """Yield the texts that the page offers, with links from lines to equations."""
    from jaxsight.tracer.compat import lowering
    from jaxsight.tracer.handlers import lower
    from jaxsight.tracer.programs import jaxpr_text
    from jaxsight_source.compat.inner import walk

    content = partial(_content, kernels.figures)
    if kernels.traced is not None:
        jaxpr = jaxpr_text.whole(0, kernels.traced.jaxpr)
        yield "jaxpr", content(jaxpr.text, ((link.line, link.path) for link in jaxpr.links))
        module = lowering.text(kernels.traced, parse(kernels.target).platform)
        links = lower.links(module, {path: None for path, _ in walk(kernels.traced.jaxpr)})
        yield "stablehlo", content(module.text, ((link.line, link.path) for link in links))
    of_lines = list(lines_of_equations(kernels.hlo).items())
    yield "hlo", content(without_metadata(kernels.hlo), of_lines)
    yield "hlo-metadata", content(kernels.hlo, of_lines)


def _content(figures: Figures[Location], text: str, links: Iterable[tuple[int, str]]) -> Json:
    return {
        "text": text,
        "stale": False,
        "links": [
            {"line": line, "path": path, **(located or {"uri": "", "range": None})}
            for line, path in links
            for at in [figures.place(path)]
            for located in [_located(at) if at is not None else None]
        ],
    }


def _located(at: Location) -> Json:
    path = PurePath(at.file)
    uri = path.as_uri() if path.is_absolute() else f"cell:{at.file}"
    return {"uri": uri, "range": editor_range(at)}


def _times(kernels: Kernels, timings: Timings) -> PanelTimes:
    """Return a measurement as the panel shows it."""
    seconds = {row.index: row.seconds for row in timings.kernels if row.index is not None}
    estimated = timings.estimate_seconds
    beside = f" (≈ {units.time(estimated)})" if estimated is not None else ""
    return PanelTimes(
        f"{units.time(timings.wall_seconds)} measured{beside}",
        False,
        timings.wall_seconds,
        timings.device_seconds if timings.device_seconds >= 0 else None,
        sum(row.seconds for row in timings.kernels if row.index is None),
        tuple(map(seconds.get, range(len(kernels.graph.kernels)))),
        timings.notes,
    )


_HEIGHT = 480
"""Pixels of the panel, a choice: a graph of ten kernels, and the list below it."""
_MOST_DRAWN = 300
"""Kernels that are drawn without scripts: larger pictures are no longer read, and take seconds."""


@dataclass(frozen=True)
class KernelDisplay:
    """The kernels of a function as a picture; printed as a table.

    IPython, Jupyter, Colab, VS Code and marimo show it as the panel.
    """

    kernels: Kernels
    timings: Timings | None = None
    """What was measured, with `measure=True`."""
    width: float | None = None
    """Pixels that it may take, or `None` for all that there are."""
    height: float | None = None
    interactive: bool = True
    _seen: list[int] = field(default_factory=list, repr=False, compare=False)
    """The executions of cells that have displayed it."""

    def __str__(self) -> str:
        return "\n\n".join(str(each) for each in (self.kernels, self.timings) if each is not None)

    def svg(self) -> str:
        """Return the drawing for where there are no scripts."""
        return self.kernels.svg(self.width)

    def page(self) -> str:
        """Return the panel as a page of its own: one HTML file, which needs no network."""
        data = {"entries": [entry(self.kernels, self.timings)]}
        return page.embedded(data, f"jaxsight: {self.kernels.function}")

    def _repr_html_(self) -> str:
        name = f"kernels of {self.kernels.function}"
        still = self.kernels.table_html()
        if self.timings is not None:
            still += f"<pre>{html.escape(str(self.timings))}</pre>"
        if len(self.kernels.graph.kernels) <= _MOST_DRAWN:
            drawn = base64.b64encode(self.svg().encode()).decode("ascii")
            still += f'<img alt="{html.escape(name)}" src="data:image/svg+xml;base64,{drawn}">'
        inside = self.page() if self.interactive else ""
        return page.framed(inside, name, still, self.width, self.height or _HEIGHT)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, object]:
        shown: dict[str, object] = {"text/plain": str(self), "text/html": self._repr_html_()}
        if len(self.kernels.graph.kernels) <= _MOST_DRAWN:
            shown["image/svg+xml"] = self.svg()
        return shown

    def _mime_(self) -> tuple[str, str]:
        """Return what marimo shows."""
        return "text/html", self._repr_html_()

    def _ipython_display_(self) -> None:
        """Display it, but not twice in a cell that ends with a call of `show`."""
        from IPython import get_ipython
        from IPython.display import display

        shell = get_ipython()
        execution = shell.execution_count if shell is not None else -1
        if execution not in self._seen:
            self._seen.append(execution)
            display(self._repr_mimebundle_(), raw=True)


def show(
    fn: Callable[..., object],
    *args: object,
    width: float | None = None,
    height: float | None = None,
    target: str | None = None,
    measure: bool = False,
    interactive: bool = True,
    **kwargs: object,
) -> KernelDisplay:
    """Show the kernels of a function in the output of a cell: as a graph, with memory and source.

    In IPython it is displayed at once, wherever the call is in a cell; marimo displays what is
    returned.

    Args:
        fn: a function, jitted or not, or one that is traced, lowered or compiled already.
        *args: its arguments: arrays or `jax.ShapeDtypeStruct`s; none for a lowered function.
        width: pixels that the picture may take.
        height: pixels of the panel.
        target: as for `kernels`: by default this machine's GPU or TPU.
        measure: whether to run the function, too, on the device that JAX uses here.
        interactive: whether to show the panel, about 700 kB in the notebook; else a drawing.
        **kwargs: its keyword arguments.

    Raises:
        UnknownTarget: there is no such target.
        CannotCompile: the target's compiler is not installed, or rejects the function.
        CannotMeasure: the function cannot be run by itself.
        NotHere: the target to measure on is not the device that JAX uses here.
    """
    shown = KernelDisplay(*_found(fn, args, kwargs, target, measure), width, height, interactive)
    if "IPython" in sys.modules:
        from IPython import get_ipython

        if get_ipython() is not None:
            shown._ipython_display_()
    return shown


def _found(
    fn: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    target: str | None,
    measure: bool,
) -> tuple[Kernels, Timings | None]:
    compiled = of_compiled(fn, target)
    if compiled is not None:
        if measure:
            raise CannotShow("a compiled function cannot be measured; pass the function")
        return compiled, None
    fn, args, kwargs = call(fn, args, kwargs)
    chosen = parse(target) if target else compiling.default()
    found = kernels_on(fn, chosen, args, kwargs)
    return found, measured(fn, target=target)(*args, **kwargs) if measure else None


Call = tuple[Callable[..., object], tuple[object, ...], dict[str, object]]


class CannotShow(TypeError):
    """What was passed is no function that has kernels; the message is one clause."""


def call(fn: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Call:
    """Return the call of a function, or of the program that a stage or a jaxpr is.

    Raises:
        CannotShow: it is neither.
    """
    import jax

    if isinstance(fn, jax.stages.Traced):
        return fn, (), {}  # `kernels_on` takes it as it is
    if callable(fn) and not hasattr(fn, "eqns"):
        return fn, args, kwargs
    from jaxsight_source import program_of

    try:
        given = program_of(fn)  # type: ignore[arg-type]
    except NotAProgram:
        raise CannotShow(f"expected a function, got {clause(repr(fn), 60)}") from None
    bound = given.call()
    return bound.function, bound.bound.args, bound.bound.kwargs


def of_compiled(fn: object, target: str | None) -> Kernels | None:
    """Return the kernels of a compiled function, which are known from its HLO; `None` for others.

    Raises:
        CannotShow: another target is asked for than it is compiled for.
    """
    import jax

    if isinstance(fn, jax.stages.Lowered) and target in (None, jax.default_backend()):
        fn = fn.compile()
    if not isinstance(fn, jax.stages.Compiled):
        return None
    from jaxsight.compiler.compat.xla import memory_of
    from jaxsight.compiler.hlo import read
    from jaxsight.targets.target import parse, recognized

    executable: Any = fn.runtime_executable()
    device = executable.local_devices()[0]
    version = str(getattr(device.client, "platform_version", ""))
    gpu = "rocm" if "rocm" in version.lower() else "cuda"
    own = parse({"gpu": gpu}.get(device.platform, device.platform))
    if target is not None and parse(target).name != own.name:
        raise CannotShow(f"it is compiled for {own.name}; pass the function for another target")
    hlo, written = numbered(fn.as_text() or "")
    graph = read(hlo, platform=own.platform, capability=own.capability)
    memory = memory_of(executable)
    kind = "" if own.platform == "cpu" else device.device_kind
    devices = len(executable.local_devices())
    answer = Compiled(
        0, own.name, ON_DEVICE, graph, memory, hlo, 0.0, device_kind=kind, devices=devices
    )
    places = {path: place_of(at) for path, (_, at) in written.items() if at is not None}
    equations = (LoweredEquation(path, operation) for path, (operation, _) in written.items())
    lowered = Lowered(0, own.platform, "", Compile(0, own.name, ""), equations=tuple(equations))
    figures = Figures(recognized(own, kind), answer, lowered, places=LivePlaces(places))
    return Kernels(_NAME.sub("", graph.module), figures)


_NAME = re.compile(r"^jit_|^pmap_")
