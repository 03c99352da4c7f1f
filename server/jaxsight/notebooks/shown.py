"""`jaxsight.show`: the kernels of a function as the panel, in the output of a cell.

The page is the panel of editors with its data inside, in a frame that has scripts and nothing else:
no network, no access to the notebook. Where frames are removed, as on GitHub, the drawing is shown,
and `nbconvert` has it as SVG.
"""

from __future__ import annotations

import base64
import html
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from jaxsight import page
from jaxsight.library import compiling
from jaxsight.library.kernels import Kernels, kernels_on
from jaxsight.library.measuring import Timings
from jaxsight.library.measuring import measure as measured
from jaxsight.notebooks import stages
from jaxsight.notebooks.panel_data import entry
from jaxsight.targets.target import parse

_HEIGHT = 480
"""Pixels of the panel, a choice: a graph of ten kernels, and the list below it."""
_MOST_DRAWN = 300
"""Kernels that are drawn without scripts: larger pictures are no longer read, and take seconds."""


@dataclass(frozen=True)
class ShownKernels:
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
) -> ShownKernels:
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
    shown = ShownKernels(*_found(fn, args, kwargs, target, measure), width, height, interactive)
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
    compiled = stages.of_compiled(fn, target)
    if compiled is not None:
        if measure:
            raise stages.CannotShow("a compiled function cannot be measured; pass the function")
        return compiled, None
    fn, args, kwargs = stages.call(fn, args, kwargs)
    chosen = parse(target) if target else compiling.default()
    found = kernels_on(fn, chosen, args, kwargs)
    return found, measured(fn, target=target)(*args, **kwargs) if measure else None
