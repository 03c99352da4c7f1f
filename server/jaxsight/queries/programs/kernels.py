"""A function's kernels on a target, joined with the current places of their equations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from jaxsight.meshes import named_shardings
from jaxsight.queries.programs.compile_result import CompileResult
from jaxsight.queries.traces.equation_ranges import Places
from jaxsight.queries.traces.located_answer import View
from jaxsight.source.text import Range
from jaxsight.targets.target import Target
from jaxsight.wire.donation import Donation, donations
from jaxsight.wire.kernel_graph import Graph, Kernel
from jaxsight.wire.meshes import Chosen
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.wire.messages.replies import Equation, Lowered
from jaxsight.wire.spans import Span


@dataclass(slots=True, eq=False)
class Kernels:
    """A function's kernels on one target, at their current places in the text."""

    view: View
    target: Target
    compiled: Compiled
    lowered: Lowered
    equations: Mapping[str, Equation]
    places: Places
    _shardings: Mapping[tuple[str, str], Chosen]
    _written: dict[Range | None, list[str]] = field(default_factory=dict)
    _by_primitive: dict[str, list[str]] = field(default_factory=dict)

    @staticmethod
    def of(view: View, result: CompileResult) -> Kernels | None:
        """Return the kernels of a result; `None` if it was not compiled."""
        if not isinstance(result.outcome, Compiled) or result.lowered is None:
            return None
        equations = {equation.path: equation for equation in result.lowered.equations}
        places = Places(view, {path: equation.span for path, equation in equations.items()})
        shardings = {(each.equation, each.type): each for each in result.outcome.shardings}
        return Kernels(
            view, result.target, result.outcome, result.lowered, equations, places, shardings
        )

    @property
    def graph(self) -> Graph:
        """The kernel graph."""
        return self.compiled.graph

    @property
    def donations(self) -> tuple[Donation, ...]:
        """The donated inputs, each with the result that takes its buffer."""
        lowered = self.lowered
        return donations(
            self.compiled.aliases,
            len(self.graph.parameters),
            lowered.parameters,
            lowered.results,
            lowered.donated,
        )

    @property
    def argument_shardings(self) -> list[tuple[str, Chosen]]:
        """The shardings of the arguments, each with its name."""
        return named_shardings.of_parameters(self.compiled.shardings, self.lowered.parameters)

    @property
    def result_shardings(self) -> list[tuple[str, Chosen]]:
        """The shardings of the results, each with its name."""
        return named_shardings.of_results(self.compiled.shardings, self.lowered.results)

    def sharding(self, path: str, type: str) -> Chosen | None:
        """Return the sharding of an equation's result of a type, as the HLO has it."""
        return self._shardings.get((path, type))

    def written_at(self, range: Range) -> Sequence[str]:
        """Return the equations whose place is exactly a range."""
        if not self._written:
            for path in self.equations:
                self._written.setdefault(self.place(path), []).append(path)
        return self._written.get(range, ())

    def paths_of(self, primitive: str) -> Sequence[str]:
        """Return the equations of a primitive."""
        if not self._by_primitive:
            for path, equation in self.equations.items():
                self._by_primitive.setdefault(equation.primitive, []).append(path)
        return self._by_primitive.get(primitive, ())

    def place(self, path: str) -> Range | None:
        """Return the current range of an equation; without one, that of the enclosing equation."""
        return self.places.of(path)

    def source(self, path: str) -> str:
        """Return the user's text of an equation on one line; without one, its primitive."""
        equation = self.equations.get(path)
        return self.places.text(path) or (equation.primitive if equation is not None else path)

    def lines(self, kernel: Kernel) -> list[int]:
        """Return the lines (from 1) of a kernel's equations."""
        return self.lines_of(kernel.equations)

    def lines_of(self, equations: Iterable[str]) -> list[int]:
        """Return the lines (from 1) of equations."""
        places = map(self.place, equations)
        return sorted({place.start.line + 1 for place in places if place is not None})

    def fed_lines(self, kernel: Kernel) -> list[int]:
        """Return the lines (from 1) that a kernel without lines of its own feeds."""
        return self.lines_of(kernel.feeds)

    def feeding(self, kernel: Kernel) -> str:
        """Return `for scan at line 274`; empty for a kernel with lines of its own."""
        if not kernel.feeds:
            return ""
        equation = self.equations.get(kernel.feeds[0])
        consumer = equation.primitive if equation is not None else "what follows"
        lines = self.fed_lines(kernel)
        where = f" at line {lines[0]}" if lines else ""
        more = f" and {len(kernel.feeds) - 1} more" if len(kernel.feeds) > 1 else ""
        return f"for {consumer}{where}{more}"

    def ending(self, kernel: Kernel) -> Range | None:
        """Return the range of a kernel's fusion boundary; its start while it is being edited."""
        paths = [kernel.ends_at, *reversed(kernel.equations)]
        span = next((at for path in paths if path and (at := self.places.span(path))), None)
        if span is None:
            return None
        start = Span(span.chunk, span.line, span.column, span.line, span.column)
        return self.view.range_of(span) or self.view.range_of(start)

    def holding(self, place: Range) -> list[int]:
        """Return the kernels that compute an equation within a range."""
        return [
            index
            for index, kernel in enumerate(self.graph.kernels)
            if any(
                (at := self.place(path)) is not None and place.holds(at)
                for path in kernel.equations
            )
        ]

    def scope(self, kernel: Kernel) -> tuple[str, ...]:
        """Return the innermost function or module that most equations of a kernel belong to.

        Equations that an earlier kernel computes too do not count. A kernel without equations
        belongs to the scope of those that it feeds.
        """
        own = [path for path in kernel.equations if path not in kernel.recomputes]
        paths = own or kernel.equations or kernel.feeds
        scopes = [
            equation.scope for path in paths if (equation := self.equations.get(path)) is not None
        ]
        scope: tuple[str, ...] = ()
        while scopes:
            inner = Counter(each[: len(scope) + 1] for each in scopes if len(each) > len(scope))
            best, count = max(inner.items(), key=itemgetter(1), default=(scope, 0))
            if 2 * count <= len(scopes):
                break
            scope = best
        return scope

    def reason(self, kernel: Kernel) -> str:
        """Return the reason of a kernel's fusion boundary; `scan` for a loop written as one."""
        if kernel.ends_because == "while":
            for index in reversed(kernel.loops):
                equation = self.equations.get(self.graph.loops[index].equation)
                if equation is not None and equation.primitive == "scan":
                    return "scan"
        return kernel.ends_because


def folded(compiled: Compiled) -> int:
    """Return the size in bytes of the constants that XLA folded into the executable."""
    return sum(constant.value.bytes for constant in compiled.graph.constants if constant.folded)
