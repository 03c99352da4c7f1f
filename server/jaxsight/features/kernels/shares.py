"""What a function has of the kernels of the programs that it is a part of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jaxsight.queries.programs.kernels import Kernels
from jaxsight.source.text import Range
from jaxsight.text.units import count


@dataclass(frozen=True, slots=True)
class KernelShare:
    """The kernels of a program that compute something in a function.

    A kernel may be of several functions, so the shares of all need not add up.
    """

    program: str
    """The name of the compiled function."""
    kernels: int
    of: int

    @property
    def label(self) -> str:
        """`in train_step: 133 of 412 kernels`."""
        return f"in {self.program}: {self.kernels} of {count(self.of, 'kernel')}"

    @property
    def words(self) -> str:
        """The same for a hover."""
        return f"in `{self.program}`: {self.kernels} of {count(self.of, 'kernel')}"


def shares_of(programs: Iterable[Kernels], function: Range) -> Iterator[KernelShare]:
    """Yield the shares of a function, given by its place, in programs that begin elsewhere."""
    for kernels in programs:
        own = kernels.view.subject_range
        held = 0 if own.holds(function) or function.holds(own) else len(kernels.holding(function))
        if held:
            yield KernelShare(kernels.view.subject.name, held, kernels.graph.kernel_count)
