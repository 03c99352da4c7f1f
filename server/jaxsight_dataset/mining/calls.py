"""Makes a program of a call of a library's function."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef

from jaxsight.tracer.execution import device_demand
from jaxsight_dataset.program import Array, Record, RowProgram
from jaxsight_dataset.rows.directions import Direction, backward, forward, primitives
from jaxsight_source.api import sourcerize
from jaxsight_source.text.names import identifier, unused

_CATEGORIES = (
    ("random numbers", ("random_", "threefry", "rng_")),
    ("convolutions", ("conv_",)),
    ("loops", ("scan", "while")),
    ("conditionals", ("cond",)),
    ("linear algebra", ("dot_general", "cholesky", "eigh", "lu", "qr", "svd", "triangular")),
    ("indexing", ("gather", "scatter", "dynamic_")),
    ("reductions", ("reduce_", "cum", "arg", "sort", "top_k")),
    ("math", ("exp", "log", "sin", "cos", "tan", "erf", "sqrt", "pow")),
)
"""The first category of which a program has a primitive whose name begins so."""

_MOST_ELEMENTS = 1 << 16
"""The elements of the arguments of a call, as `Spec.max_elements` by default."""

_COUNTERS = 100
"""The least number of different values of a scalar that is an integer, a choice: counters rise."""


SEVERAL_DEVICES = "needs several devices"
"""A cause: rows have the figures of programs for one device."""


def needs_devices(error: BaseException) -> bool:
    """Return whether code failed for want of devices."""
    return isinstance(error, Exception) and device_demand.wanted(error, []) is not None


class NoProgram(Exception):
    """A call does not become a program; `cause` says why."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a function is from: its qualified name, its package, and its own text."""

    name: str
    package: str
    version: str
    path: str
    licence: str
    source: str = ""

    def record(self) -> dict[str, str]:
        """Return this as a program's provenance."""
        return {name: text for name, text in asdict(self).items() if name != "name"}


@dataclass(slots=True)
class Mined:
    """The programs of calls, and how many calls do not become programs, by cause."""

    programs: list[RowProgram] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        function: Callable[..., object],
        args: Sequence[object],
        kwargs: dict[str, object],
        origin: Origin,
        labels: Sequence[str] = (),
    ) -> None:
        """Add the program of a call, or count why there is none."""
        try:
            program = program_of(function, args, kwargs, origin)
            self.programs.append(replace(program, labels=(*program.labels, *labels)))
        except NoProgram as reason:
            self.rejected[reason.cause] += 1

    def record(self) -> Record:
        """Return this as JSON."""
        programs = [program.record() for program in self.programs]
        return {"programs": programs, "rejected_calls": dict(self.rejected)}


def program_of(
    function: Callable[..., object],
    args: Sequence[object],
    kwargs: dict[str, object],
    origin: Origin,
) -> RowProgram:
    """Return a call as a program of the arrays among its arguments.

    Raises:
        NoProgram: there are no such, or too large ones, or the call cannot be traced or written.
    """
    try:
        leaves, tree = jax.tree.flatten((tuple(args), kwargs))
    except Exception as error:  # JAX's about keys of dictionaries, and a library's own
        raise NoProgram("arguments cannot be flattened") from error
    at = [index for index, leaf in enumerate(leaves) if _is_array(leaf)]
    if not at:
        raise NoProgram("no array argument")
    if sum(leaves[index].size for index in at) > _MOST_ELEMENTS:
        raise NoProgram("large arguments")

    flat = _Flat(function, leaves, tree, at, _names(function, args, kwargs))
    try:
        flat = flat.without_idle(forward(flat.call(), flat.arrays()))
        direction = forward(flat.call(), flat.arrays())
    except NoProgram:
        raise
    except Exception as error:  # whatever a library raises
        cause = SEVERAL_DEVICES if needs_devices(error) else "call cannot be traced"
        raise NoProgram(cause) from error
    short = identifier(origin.name.rpartition(".")[2], "function")
    arrays, names = flat.arrays(), flat.names
    try:
        text = sourcerize(flat.call(), style="pretty", name=short, run=False)(*arrays)
    except Exception as error:  # ours, and whatever a library raises when it is traced again
        raise NoProgram("call cannot be written") from error
    if text.passed:
        raise NoProgram("calls Python back")
    used = set(primitives(direction.program))
    categories = (
        category
        for category, beginnings in _CATEGORIES
        if any(name.startswith(beginnings) for name in used)
    )
    plain = "arithmetic" if used & {"add", "sub", "mul", "div"} else "array"
    return RowProgram(
        number=0,
        text=str(text),
        function=short,
        arguments=dict(zip(names, map(_argument, arrays), strict=True)),
        category=next(categories, plain),
        template=origin.name,
        is_differentiable=backward(direction) is not None,
        labels=("own-derivative",) if "stop_gradient(" in text else (),
        provenance=origin.record(),
    )


@dataclass(frozen=True, slots=True)
class _Flat:
    """A call as a function of the arrays at some positions of its flat arguments.

    Attributes:
        kept: the positions of results that are returned, of those that are arrays; all if None.
    """

    function: Callable[..., object]
    leaves: Sequence[object]
    tree: PyTreeDef
    at: Sequence[int]
    names: Sequence[str]
    kept: Sequence[int] | None = None

    def arrays(self) -> tuple[jax.Array, ...]:
        """Return the arrays that the call has."""
        return tuple(jnp.asarray(self.leaves[index]) for index in self.at)

    def call(self) -> Callable[..., object]:
        """Return the function; its parameters have names."""

        def flat(*arrays: jax.Array) -> object:
            values = list(self.leaves)
            for index, array in zip(self.at, arrays, strict=True):
                values[index] = array
            positional, named = jax.tree.unflatten(self.tree, values)
            results = jax.tree.leaves(self.function(*positional, **named))
            numeric = [result for result in results if hasattr(result, "dtype")]
            if self.kept is not None:
                numeric = [numeric[index] for index in self.kept]
            return numeric[0] if len(numeric) == 1 else tuple(numeric)

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        flat.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, kind) for name in self.names]
        )
        return flat

    def without_idle(self, direction: Direction) -> _Flat:
        """Return the call without arrays that no result depends on, and the other way round.

        Raises:
            NoProgram: nothing is left.
        """
        jaxpr = direction.program.jaxpr
        sources = {var: {index} for index, var in enumerate(jaxpr.invars)}
        for equation in jaxpr.eqns:
            reached = [sources.get(each, set()) for each in equation.invars if _is_variable(each)]
            for var in equation.outvars:
                sources[var] = set[int]().union(*reached)
        results = [sources.get(v, set()) if _is_variable(v) else set() for v in jaxpr.outvars]
        kept = [index for index, reached in enumerate(results) if reached]
        if not kept:
            raise NoProgram("no result depends on an array")
        used = sorted(set[int]().union(*results))
        at = [self.at[index] for index in used]
        return replace(self, at=at, names=[self.names[index] for index in used], kept=kept)


def _is_variable(atom: object) -> bool:
    return not hasattr(atom, "val")  # literals have one, and no hash


def _is_array(leaf: object) -> bool:
    kinds = (np.number, np.bool_, jax.dtypes.prng_key)
    return isinstance(leaf, jax.Array | np.ndarray) and any(
        jnp.issubdtype(leaf.dtype, kind) for kind in kinds
    )


def _names(
    function: Callable[..., object], args: Sequence[object], kwargs: dict[str, object]
) -> list[str]:
    """Return distinct names for the arrays among arguments, after the parameters."""
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        parameters = []
    parameters += [f"x{index}" for index in range(len(parameters), len(args))]
    names: list[str] = []
    labelled = [*zip(parameters, args, strict=False), *sorted(kwargs.items())]
    for name, value in labelled:
        count = sum(map(_is_array, jax.tree.leaves(value)))
        bases = [name] if count == 1 else [f"{name}_{index}" for index in range(count)]
        for base in bases:
            names.append(unused(identifier(base, "x"), names.__contains__))
    return names


def _argument(array: jax.Array) -> Array:
    """Return an array's type, with a rule whose values are in the range of its own."""
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return Array("key", array.shape, "key")
    dtype, shape, values = str(array.dtype), array.shape, np.asarray(array)
    if values.dtype == np.bool_:
        return Array(dtype, shape, "booleans")
    if jnp.issubdtype(array.dtype, jnp.integer):
        if values.size and values.min() >= 0:
            # A rule for what is 0 here, such as a counter, has other values, too.
            least = 2 if shape else _COUNTERS
            return Array(dtype, shape, f"integers:{max(int(values.max()) + 1, least)}")
        return Array(dtype, shape)
    real = np.abs(values) if np.iscomplexobj(values) else values.astype(np.float64)
    if not values.size or real.min() < 0:
        return Array(dtype, shape, "unit" if values.size and abs(real).max() < 1 else "normal")
    return Array(dtype, shape, "uniform" if real.max() <= 1 else "positive")
