"""`jaxsight.sweep`: how a function's figures grow with its sizes, in Python and in notebooks."""

from __future__ import annotations

import functools
import html
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jaxsight.library import compiling
from jaxsight.library.compiling import CannotCompile
from jaxsight.library.kernels import kernels
from jaxsight.library.measuring import NotHere
from jaxsight.library.measuring import measure as measured
from jaxsight.sweeps import table
from jaxsight.sweeps.memory_search import MemorySearch
from jaxsight.sweeps.picture import svg
from jaxsight.sweeps.points import (
    BadSizes,
    LargestSize,
    Sizes,
    Sweep,
    SweepPoint,
    SweptSize,
    combined,
    point_of,
    swept_size,
)
from jaxsight.targets.target import Target, parse
from jaxsight.text import units
from jaxsight.text.layout import aligned

if TYPE_CHECKING:
    from IPython.lib.pretty import PrettyPrinter

Function = Callable[..., object]


@dataclass(frozen=True)
class SweepResult:
    """The sweeps of functions on a target, one for each.

    Printed as tables; in notebooks, shown as curves of temporary memory with the tables.
    """

    sweeps: tuple[Sweep, ...]

    @property
    def points(self) -> tuple[SweepPoint, ...]:
        """The points of the first function."""
        return self.sweeps[0].points

    @property
    def largest(self) -> tuple[LargestSize, ...]:
        """The largest first size that fits in memory, for each combination of the others.

        Of the first function; empty if the target's memory is not known.
        """
        return self.sweeps[0].largest

    def svg(self, figure: table.FigureName = "temp") -> str:
        """Return the curves as SVG.

        Args:
            figure: `temp`, `kernels`, `launches`, `arguments`, `memory` (arguments, results and
                temporaries), `traffic` (what kernels read and write), `moved` (what collectives
                move), `time` (the estimate) or `measured`.

        Raises:
            LookupError: there is no such figure, or no point has it.
        """
        if figure not in table.FIGURES:
            raise LookupError(f"unknown figure {figure!r}; use one of {', '.join(table.FIGURES)}")
        return svg(self.sweeps, table.FIGURES[figure])

    def csv(self) -> str:
        """Return the points as CSV with a header; bytes, and seconds."""
        return table.as_csv(self.sweeps)

    def __str__(self) -> str:
        return "\n\n".join(map(_text, self.sweeps))

    def _repr_pretty_(self, printer: PrettyPrinter, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        try:
            picture = self.svg()
        except LookupError:
            picture = ""
        tables = (f"<pre>{html.escape(_text(each))}</pre>" for each in self.sweeps)
        return picture + "".join(tables)


def _text(sweep: Sweep) -> str:
    """Return the table of a function, and what follows from it."""
    rows = [table.titles(sweep), *table.rows(sweep)]
    title = f"{sweep.function} on {sweep.target}"
    return "\n".join([title, *aligned(rows, "r" * len(rows[0])), *table.remarks(sweep)])


def sweep(
    *functions: Function,
    target: str | None = None,
    memory: int | str | None = None,
    measure: bool = False,
    **sizes: int | Iterable[int],
) -> Callable[..., SweepResult]:
    """Return a function that compiles functions with one size after another.

    `jaxsight.sweep(loop, n=range(1, 10))(x)` passes `n` to `loop`. For an array with a swept
    dimension, pass a function of the size:

        shape = lambda B: jax.ShapeDtypeStruct((B, 128), "float32")
        jaxsight.sweep(loss, B=[1, 2, 4, 8], target="cuda:h100")(params, shape)

    Args:
        *functions: functions, jitted or not, that take the same arguments.
        target: as for `kernels`.
        memory: the memory that the largest size must fit in, in bytes or as `"60 GiB"`; by default
            that of the target's chip.
        measure: whether to run the functions with each size, too, on the device that JAX uses
            here.
        **sizes: the values of each size: a number, a range or an iterable. The first size is that
            of the curves. Of a range with many values, each is about twice the one before.

    Returns:
        A function that takes the arguments of `functions` (arrays, `jax.ShapeDtypeStruct`s, or
        functions of sizes that return them) and returns the `SweepResult`.

    Raises:
        UnknownTarget: there is no such target.
        NotHere: (when called) the target to measure on is not the device that JAX uses here.
        BadSizes: there is no function or no size, or there are too many points; also (when called)
            if nothing depends on a size.
    """
    if not functions:
        raise BadSizes("no function to sweep")
    if not sizes:
        raise BadSizes("no sizes to sweep; pass e.g. n=range(1, 10)")
    swept = tuple(swept_size(name, values) for name, values in sizes.items())
    every = combined(swept)
    chosen = parse(target) if target else compiling.default()
    capacity = units.parse_size(memory) if isinstance(memory, str) else memory
    if memory is not None and capacity is None:
        raise ValueError(f"invalid amount of memory {memory!r}: expected bytes, or e.g. '60 GiB'")

    def of(*args: object, **kwargs: object) -> SweepResult:
        calls = [_Calls.of(fn, chosen, args, kwargs, swept) for fn in functions]
        return SweepResult(
            tuple(
                _sweep(each, swept, every, None if capacity is None else int(capacity), measure)
                for each in calls
            )
        )

    return of


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of a function, which differ in the sizes of arguments."""

    function: Function
    target: Target
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    passed: frozenset[str]
    """The sizes that are arguments themselves."""

    @staticmethod
    def of(
        function: Function,
        target: Target,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        swept: Sequence[SweptSize],
    ) -> _Calls:
        names = {size.name for size in swept}
        passed = names & set(inspect.signature(function).parameters) - set(kwargs)
        used = {name for argument in (*args, *kwargs.values()) for name in _read(argument, names)}
        if unused := next((size.name for size in swept if size.name not in passed | used), ""):
            raise BadSizes(
                f"no argument of {_name(function)} depends on {unused}; pass a function of it, "
                f"such as `lambda {unused}: jax.ShapeDtypeStruct(({unused}, 128), 'float32')`"
            )
        return _Calls(function, target, args, kwargs, frozenset(passed))

    def point(self, sizes: Sizes, is_measured: bool = False) -> SweepPoint:
        """Compile the function with sizes, and run it if it is to be measured."""
        try:
            function, args, kwargs = self._with(sizes)
            found = kernels(function, target=self.target.name)(*args, **kwargs)
        except CannotCompile as error:
            return SweepPoint(sizes, str(error))
        except Exception as error:  # noqa: BLE001 - of the user's function, with these sizes
            return SweepPoint(sizes, f"cannot be traced: {type(error).__name__}: {error}")
        point = point_of(sizes, found.with_temporaries)
        if not is_measured:
            return point
        try:
            timings = measured(function, target=self.target.name)(*args, **kwargs)
        except NotHere:
            raise
        except Exception as error:  # noqa: BLE001 - of the user's function, with these sizes
            return replace(point, problem=f"not measured: {type(error).__name__}: {error}")
        return replace(point, wall_seconds=timings.wall_seconds)

    def _with(self, sizes: Sizes) -> tuple[Function, tuple[object, ...], Mapping[str, object]]:
        """Return the function and its arguments with sizes."""

        def at(argument: object) -> object:
            read = _read(argument, set(sizes))
            if not read or not callable(argument):
                return argument
            return argument(**{name: sizes[name] for name in read})

        numbers = {name: sizes[name] for name in self.passed}
        args = tuple(map(at, self.args))
        kwargs = {name: at(argument) for name, argument in self.kwargs.items()}
        if hasattr(self.function, "trace"):  # a jitted function knows which arguments are static
            return self.function, args, {**kwargs, **numbers}
        function = functools.wraps(self.function)(functools.partial(self.function, **numbers))
        return function, args, kwargs


def _read(argument: object, names: set[str]) -> tuple[str, ...]:
    """Return the sizes that an argument is a function of; none for any other argument."""
    if not callable(argument):
        return ()
    try:
        parameters = tuple(inspect.signature(argument).parameters)
    except (TypeError, ValueError):
        return ()
    return parameters if set(parameters) <= names else ()


def _name(function: Function) -> str:
    return getattr(function, "__name__", "function")


def _sweep(
    calls: _Calls,
    swept: tuple[SweptSize, ...],
    every: Sequence[Sizes],
    memory: int | None,
    is_measured: bool,
) -> Sweep:
    points = tuple(calls.point(sizes, is_measured) for sizes in every)
    found = Sweep(_name(calls.function), calls.target.name, swept, points)
    chip = calls.target.chip
    capacity = memory if memory is not None or chip is None else chip.memory
    if capacity is None:
        return found
    largest: list[LargestSize] = []
    for _, curve in found.curves():
        search = MemorySearch.of(swept[0], curve, capacity)
        while (sizes := search.following()) is not None:
            search.take(calls.point(sizes))
        largest.append(search.largest())
    return Sweep(found.function, found.target, swept, points, tuple(largest))
