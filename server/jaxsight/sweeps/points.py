"""The figures of a program at one combination of sizes, and the points of a function's sweep."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jaxsight.figures.figures import AnyFigures
from jaxsight.targets.roofline import total

# Which sizes are swept: `B=1..4096`, `L=128,256`, `n=8..64:8`.

Sizes = Mapping[str, int]
"""The value of each swept size."""

FEW = 16
"""Values of a range that are all compiled, a choice: a screen of a table, some seconds each. Of
more, each is about twice the one before."""
MOST = 64
"""Points of a sweep of one function, a choice: some minutes of compiling."""

_SWEPT = re.compile(r"(?P<name>[^\W\d]\w*)=(?P<values>.*)", re.DOTALL)
_PART = re.compile(r"(?P<first>\d+)(?:\.\.(?P<last>\d+)(?::(?P<step>\d+))?)?")
LARGEST = 2**63 - 1
"""The largest dimension that XLA can represent: an `int64` (`xla/shape.h`)."""


class BadSizes(ValueError):
    """Sizes that cannot be swept; the message says why, and what to write."""


@dataclass(frozen=True, slots=True)
class SweptSize:
    """A size, the values that are compiled, and the distance of the values that it may have."""

    name: str
    values: tuple[int, ...]
    step: int = 1


def parse(text: str) -> SweptSize | None:
    """Return the size of `B=1..4096`; `None` if the text is no assignment to a name.

    Values are a number, a range with both ends (`1..4096`), a range with a step (`8..64:8`), or
    several of these with commas between them.

    Raises:
        BadSizes: the values are not valid.
    """
    if (match := _SWEPT.fullmatch(text)) is None:
        return None
    name = match["name"]
    values: set[int] = set()
    step = 1
    for part in match["values"].split(","):
        if (found := _PART.fullmatch(part.strip())) is None:
            raise BadSizes(
                f"invalid sizes {text!r}; write {name}=1..4096, {name}=128,256 or {name}=8..64:8"
            )
        first, last = int(found["first"]), int(found["last"] or found["first"])
        step = int(found["step"] or step)
        if last < first or not step:
            raise BadSizes(f"invalid sizes {text!r}: {part.strip()} has no values")
        if last > LARGEST:
            raise BadSizes(f"invalid sizes {text!r}: the largest size is {LARGEST:,}")
        values |= {*thinned(range(first, last + 1, step))}
    return SweptSize(name, tuple(sorted(values)), step)


def swept_size(name: str, values: int | Iterable[int]) -> SweptSize:
    """Return the size of Python values: a number, a `range`, a list, an array.

    Raises:
        BadSizes: there are none, or one is not a whole number that a size may be.
    """
    if isinstance(values, range) and values.step > 0 and len(values):
        return SweptSize(name, tuple(thinned(values)), values.step)
    numbers = [values] if isinstance(values, int) else [*values]
    try:
        whole = sorted({number.__index__() for number in numbers})
    except AttributeError:
        whole = []
    if not whole or not 0 <= whole[0] <= whole[-1] <= LARGEST:
        raise BadSizes(f"invalid sizes for {name}: {values!r}; give a range or a list of numbers")
    return SweptSize(name, tuple(whole))


def thinned(values: range) -> Iterator[int]:
    """Yield all of a few values; of many, the first, the last, and every time about the double."""
    if len(values) <= FEW:
        yield from values
        return
    at = 0
    while at < len(values) - 1:
        yield values[at]
        at = max(at + 1, (2 * values[at] - values.start) // values.step)
    yield values[-1]


def combined(swept: Sequence[SweptSize]) -> list[dict[str, int]]:
    """Return the sizes of each point; those of the first size vary fastest.

    Raises:
        BadSizes: a size is named twice, or there are too many points.
    """
    names = [size.name for size in swept]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise BadSizes(f"{twice} is swept twice; write its values with commas: {twice}=1..8,64")
    if (number := math.prod(len(size.values) for size in swept)) > MOST:
        raise BadSizes(f"a sweep of {number:,} points is too long; sweep at most {MOST}")
    others, first = swept[1:], swept[:1]
    return [
        {size.name: value for size, value in zip((*first, *others), (*own, *rest), strict=True)}
        for rest in itertools.product(*(size.values for size in others))
        for own in itertools.product(*(size.values for size in first))
    ]


def written(sizes: Sizes) -> str:
    """Return `B=4, L=128`."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


_POINTER = 8
"""Bytes for each of several results: XLA returns a tuple of pointers to them, which counts in its
own sum (`ShapeUtil::ByteSizeOf` in `xla/shape_util.cc`)."""


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """A function compiled with some sizes; amounts are bytes of one device, times are seconds.

    The fields are those of the JSON and of the rows in Python. If the function could not be traced
    or compiled, `problem` says why, and no figure is known.
    """

    sizes: Sizes
    problem: str = ""
    is_too_large: bool = field(default=False, repr=False)
    """Whether the compiler rejects it, as it needs more memory than the device has."""
    kernel_count: int | None = None
    kernels_at_most: int | None = None
    """The maximum on the device, where autotuning decides."""
    launch_count: int | None = None
    launches_at_most: int | None = None
    """`None` also if unknown: a library launches an unknown number of kernels."""
    temp_bytes: int | None = None
    """Temporary memory as the compiler assigns it: the minimum where the device decides."""
    temp_bytes_at_most: int | None = None
    argument_bytes: int | None = None
    output_bytes: int | None = None
    aliased_bytes: int | None = None
    """Bytes of results that use the buffers of donated arguments."""
    traffic_bytes: int | None = None
    """Bytes that kernels read and write in one run, each input and output of a launch once."""
    moved_bytes: int | None = None
    """Bytes that collectives move in one run."""
    estimate_seconds: float | None = None
    """A roofline estimate, not a measurement; `None` if unknown."""
    estimate_is_lower_bound: bool | None = None
    wall_seconds: float | None = None
    """The measured median of a run, if the sweep runs the function."""
    kinds: tuple[str, ...] = field(default=(), repr=False)
    """What each kernel is, in the order of the program: `loop fusion`, `cuBLAS matmul`."""
    program: tuple[str, ...] = field(default=(), repr=False)
    """Its equations: equal programs differ in their sizes alone."""

    @property
    def is_compiled(self) -> bool:
        """Whether it has figures."""
        return self.kernel_count is not None

    @property
    def needed_bytes(self) -> int | None:
        """Device memory of one run: arguments, results and temporaries; `None` if unknown.

        Results in the buffers of donated arguments count once, as in JX423. What autotuning on the
        device may add to the temporaries is not in it.
        """
        arguments, outputs, temporaries = self.argument_bytes, self.output_bytes, self.temp_bytes
        if arguments is None or outputs is None or temporaries is None:
            return None
        return arguments + outputs - (self.aliased_bytes or 0) + temporaries


def point_of(sizes: Sizes, figures: AnyFigures) -> SweepPoint:
    """Return the point of a compiled program whose temporaries are known.

    Args:
        sizes: the sizes that it was traced with.
        figures: those of the program.
    """
    compiled, graph = figures.compiled, figures.graph
    estimated = total(graph, figures.target)
    temporaries, temporaries_at_most = compiled.temporaries, compiled.temporaries_at_most
    parameters, outputs = (
        sum(value.bytes for value in values if not value.on_host)
        for values in (graph.parameters, graph.outputs)
    )
    if len(graph.outputs) > 1:
        outputs += _POINTER * len(graph.outputs)
    traffic = sum(kernel.runs * (kernel.bytes_in + kernel.bytes_out) for kernel in graph.kernels)
    return SweepPoint(
        sizes,
        kernel_count=graph.kernel_count,
        kernels_at_most=graph.kernels_at_most,
        launch_count=graph.launch_count,
        launches_at_most=graph.launches_at_most,
        temp_bytes=temporaries if temporaries >= 0 else None,
        temp_bytes_at_most=temporaries_at_most if temporaries_at_most >= 0 else None,
        argument_bytes=parameters,
        output_bytes=outputs,
        aliased_bytes=sum(graph.parameters[alias.parameter].bytes for alias in compiled.aliases),
        traffic_bytes=traffic,
        moved_bytes=graph.moved_bytes,
        estimate_seconds=estimated.seconds if estimated else None,
        estimate_is_lower_bound=estimated.is_lower_bound if estimated else None,
        kinds=tuple(kernel.title for kernel in graph.kernels),
        program=tuple(f"{each.path} {each.primitive}" for each in figures.lowered.equations),
    )


@dataclass(frozen=True, slots=True)
class LargestSize:
    """The largest value of the first swept size with which a program fits in memory.

    `size` is `None` if none is known to fit, or if there is no largest one; `reason` then says why.
    """

    name: str
    size: int | None
    memory_bytes: int
    """The memory that it fits in."""
    needed_bytes: int | None = None
    """What the program needs with this size."""
    too_large: int | None = None
    """The smallest value that is known not to fit; the next one if the largest size is exact."""
    others: Sizes = field(default_factory=dict)
    """The other swept sizes."""
    compiles: int = 0
    """Programs that were compiled for it, besides those of the points."""
    is_exact: bool = False
    """Whether the next larger size was compiled too, and does not fit."""
    reason: str = ""

    @property
    def sizes(self) -> dict[str, int] | None:
        """The swept sizes with the largest one."""
        return None if self.size is None else {self.name: self.size, **self.others}


@dataclass(frozen=True, slots=True)
class Sweep:
    """The points of one function, and the largest sizes that fit in memory, if asked for."""

    function: str
    target: str
    swept: tuple[SweptSize, ...]
    points: tuple[SweepPoint, ...]
    largest: tuple[LargestSize, ...] = ()

    def curves(self) -> list[tuple[str, Sequence[SweepPoint]]]:
        """Return the points for each combination of the sizes but the first, with its name."""
        first = self.swept[0].name
        groups: dict[str, list[SweepPoint]] = {}
        for point in self.points:
            others = {name: size for name, size in point.sizes.items() if name != first}
            groups.setdefault(written(others), []).append(point)
        return [*groups.items()]
