"""What a function has of the kernels of the programs that it is a part of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.source.text import Range
from jaxsight.text.units import count


@dataclass(frozen=True, slots=True)
class KernelShare:
    """The kernels of a program that compute something in a function.

    A kernel may be of several functions, so the shares of all need not add up.
    """

    program: str
    """The name of the compiled function, or what is compiled at a call."""
    line: int | None
    """The line of that call, from 1."""
    kernels: int
    of: int

    @property
    def label(self) -> str:
        """`in train_step: 133 of 412 kernels`."""
        return f"in {self.program}{self._at}: {self.kernels} of {count(self.of, 'kernel')}"

    @property
    def words(self) -> str:
        """The same for a hover."""
        return f"in `{self.program}`{self._at}: {self.kernels} of {count(self.of, 'kernel')}"

    @property
    def _at(self) -> str:
        return f" at line {self.line}" if self.line is not None else ""


def shares_of(programs: Iterable[LocatedFigures], function: Range) -> Iterator[KernelShare]:
    """Yield the shares of a function, given by its place, in programs that begin elsewhere."""
    for kernels in programs:
        own = kernels.view.subject_range
        held = 0 if own.holds(function) or function.holds(own) else len(kernels.holding(function))
        if held:
            subject = kernels.view.subject
            line = own.start.line + 1 if subject.is_program else None
            yield KernelShare(subject.title, line, held, kernels.graph.kernel_count)
