"""A compiled program on a target: whatever people and programs are shown of it is read from here.

Hovers, hints, lenses, panels, terminals, notebooks, reports, locks and answers to agents are views
of `Figures`. It has no words: those are in the other modules of this package.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Generic, TypeAlias, TypeVar

from jaxsight.figures.summary import WITH_SIZES, headline, origin
from jaxsight.meshes.divided import shardings_by_name
from jaxsight.targets.target import Target, recognized
from jaxsight.wire.chunks import Span
from jaxsight.wire.donation import Donation, donations
from jaxsight.wire.kernel_graph import Graph, Kernel
from jaxsight.wire.meshes import Chosen, Mesh
from jaxsight.wire.messages.compiling import SLOW, Compiled
from jaxsight.wire.messages.replies import Lowered, LoweredEquation

At = TypeVar("At")
"""A place in the source: of an open document, or of a file as Python has it."""


class Places(Generic[At]):
    """Where a program is written; by itself, nothing has a place."""

    def of(self, path: str) -> At | None:
        """Return the place of an equation; without one, that of the equation around it."""
        return None

    def text(self, path: str) -> str:
        """Return the user's text of an equation on one line; empty if it has no place."""
        return ""

    def lines(self, at: At) -> tuple[str, int, int]:
        """Return a file's title, empty for that of the function, the first and the last line."""
        return "", 0, 0

    def at(self, span: Span) -> At | None:
        """Return where a span is now; `None` if it is gone."""
        return None

    def written(self, at: At) -> str:
        """Return the text at a place."""
        return ""

    def tree(self, chunk: str) -> ast.AST | None:
        """Return the syntax tree of a traced chunk; `None` if it is not known."""
        return None


@dataclass(eq=False)
class Figures(Generic[At]):
    """A compiled program on a target, with the places of its equations."""

    target: Target
    """It has the figures of the device that the program was compiled on."""
    compiled: Compiled
    lowered: Lowered
    is_unfolded: bool = False
    """Whether it was compiled without constant folding, unlike the user's own compile."""
    places: Places[At] = field(default_factory=Places)

    @staticmethod
    def of(
        target: Target, compiled: Compiled, lowered: Lowered, *, is_unfolded: bool = False
    ) -> Figures[Any]:
        """Return the figures of a compiler's answer."""
        return Figures(recognized(target, compiled.device_kind), compiled, lowered, is_unfolded)

    @property
    def graph(self) -> Graph:
        """The kernel graph."""
        return self.compiled.graph

    @property
    def slow(self) -> float | None:
        """The seconds that it took to compile, if they are many."""
        seconds = self.compiled.seconds
        return seconds if seconds >= SLOW and not self.is_unfolded else None

    @property
    def is_complete(self) -> bool:
        """Whether another compile would add nothing."""
        return self.compiled.is_complete

    @property
    def knows_temporaries(self) -> bool:
        """Whether another compile would say no more about temporaries."""
        return self.compiled.knows_temporaries

    @property
    def has_assumed_sizes(self) -> bool:
        """Whether nobody wrote the inputs that the function was traced with."""
        return False

    @property
    def headline(self) -> str:
        """Return `2 kernels · 2 launches · temp 512 KiB · h100`."""
        assumed = f" {WITH_SIZES}" if self.has_assumed_sizes else ""
        return f"{headline(self.compiled, self.target)}{assumed}"

    @property
    def origin(self) -> str:
        """Return `NVIDIA H100 80GB HBM3, compiled ahead of time (no device)`."""
        return origin(self.compiled, self.target)

    @property
    def trace_seconds(self) -> float | None:
        """How long JAX traced the function, with the observation of its expressions."""
        return None

    @functools.cached_property
    def equations(self) -> Mapping[str, LoweredEquation]:
        """The equations of the program, by path."""
        return {equation.path: equation for equation in self.lowered.equations}

    @property
    def inputs(self) -> Sequence[str]:
        """The names of the program's parameters; empty if they are unknown."""
        names = self.lowered.parameters
        return names if len(names) == len(self.graph.parameters) else ()

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
    def meshes(self) -> tuple[Mesh, ...]:
        """The meshes that the program names."""
        distribution = self.lowered.request.distribution
        return distribution.meshes if distribution is not None else ()

    @property
    def argument_shardings(self) -> list[tuple[str, Chosen]]:
        """The shardings of the arguments, each with its name."""
        return shardings_by_name(self.compiled.shardings, "parameter", self.lowered.parameters)

    @property
    def result_shardings(self) -> list[tuple[str, Chosen]]:
        """The shardings of the results, each with its name."""
        return shardings_by_name(self.compiled.shardings, "output", self.lowered.results)

    def place(self, path: str) -> At | None:
        """Return the place of an equation; without one, that of the enclosing equation."""
        return self.places.of(path)

    def ending(self, kernel: Kernel) -> At | None:
        """Return the place of a kernel's fusion boundary."""
        paths = (kernel.ends_at, *reversed(kernel.equations))
        return next((at for path in paths if path and (at := self.place(path)) is not None), None)

    def source(self, path: str) -> str:
        """Return the user's text of an equation on one line; without one, its primitive."""
        equation = self.equations.get(path)
        return self.places.text(path) or (equation.primitive if equation is not None else path)

    def line(self, path: str) -> int | None:
        """Return the line (from 1) of an equation, if that is known."""
        at = self.places.of(path) if path else None
        return self.places.lines(at)[1] if at is not None else None

    def lines(self, kernel: Kernel) -> list[int]:
        """Return the lines (from 1) of a kernel's equations."""
        return self.lines_of(kernel.equations)

    def lines_of(self, equations: Iterable[str]) -> list[int]:
        """Return the lines (from 1) of equations."""
        return [line for _, line in _lines_of(self.places, equations)]

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


def line_names(places: Places[At], equations: Iterable[str]) -> list[str]:
    """Return the lines of equations as `12`, of other files as `model.py:12`."""
    return [f"{title}:{line}".lstrip(":") for title, line in _lines_of(places, equations)]


def _lines_of(places: Places[At], equations: Iterable[str]) -> list[tuple[str, int]]:
    found = map(places.of, equations)
    return sorted({places.lines(at)[:2] for at in found if at is not None})


AnyFigures: TypeAlias = Figures[Any]
"""Figures, wherever the source is."""
