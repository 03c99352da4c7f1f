"""Faults that are planted into JAX itself, in programs of libraries: how few equations show each is
known.

`site/sitecustomize.py` plants one when JAX is imported, so a file of public JAX shows it, and only
there.
"""

from __future__ import annotations

import functools
import json
import os
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.corpora.jaxsight_repro.museum import flat

SITE = Path(__file__).parent / "site"

CASES = 100
LIBRARIES = 40
SMALLEST, LARGEST = 10, 500
"""Equations of the functions that are taken."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`kind` is what `sitecustomize` plants; with `after`, only where another primitive is in the
    same module. `floats` are needed to make a result wrong; `outside` of bodies, since a loop is
    compiled even where nothing is jitted. `direct` where statements are reduced: outside of JAX's
    own functions, of which a statement calls all or nothing.
    """

    name: str
    kind: str
    check: str
    after: bool = False
    floats: bool = False
    outside: bool = False
    direct: bool = False

    @property
    def minimum(self) -> int:
        return 2 if self.after else 1


FAULTS = (
    Fault("raises at trace", "trace", "exception", direct=True),
    Fault("raises at lowering", "lower", "exception"),
    Fault("raises for two", "lower", "exception", after=True),
    Fault("wrong", "wrong", "differs:jit,eager", floats=True, outside=True),
    Fault("NaN", "nan", "nan", floats=True),
    Fault("sleeps", "sleep", "hang:5"),
    Fault("allocates", "allocate", "temp>8388608", floats=True),
    Fault("crashes the compiler", "crash", "crash:SIGSEGV"),
    Fault("crashes when run", "crash-run", "crash:SIGSEGV", floats=True),
    Fault("aborts for two", "abort", "crash:SIGABRT", after=True),
)

_CALLBACKS = {"debug_callback", "io_callback", "pure_callback"}
"""Calls of the host, which no file has."""

_EXCLUDED = {
    "broadcast_in_dim",
    "cond",
    "convert_element_type",
    "copy",
    "copy_p",
    "pure_callback",
    "random_bits",
    "random_fold_in",
    "random_seed",
    "random_split",
    "random_unwrap",
    "random_wrap",
    "scan",
    "while",
}
"""Primitives that JAX itself binds to make arguments, and those that are no operations."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a fault may be planted: operations on a type, the first of which is at `position`."""

    primitive: str
    dtype: str
    rank: int
    position: int
    floats: bool
    outside: bool
    direct: bool


@dataclass(frozen=True, slots=True)
class Case:
    """`equations` are those of the whole function."""

    number: int
    function: str
    fault: Fault
    planted: Mapping[str, Any]
    equations: int

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(SITE), "PLANTED": json.dumps(self.planted)}


def sites(program: Any) -> list[Site]:
    """The operations of a jaxpr that a fault may be planted into, each once, in order."""
    places: dict[tuple[str, str, int], Site] = {}
    outside = {id(equation) for equation in flat(program, bodies=False)}
    direct = set(map(id, program.jaxpr.eqns))
    for position, equation in enumerate(flat(program)):
        if not equation.invars or equation.primitive.name in _EXCLUDED:
            continue
        operand, result = equation.invars[0].aval, equation.outvars[0].aval
        if not hasattr(operand, "shape") or str(operand.dtype).startswith("key"):
            continue
        key = (equation.primitive.name, str(operand.dtype), len(operand.shape))
        floats = str(getattr(result, "dtype", "")) in ("float32", "float64")
        before = places.get(key)
        places[key] = Site(
            *key,
            before.position if before else position,
            floats and (before.floats if before else True),
            id(equation) in outside and (before.outside if before else True),
            before.direct if before else id(equation) in direct,
        )
    return list(places.values())


def _properties(site: Site) -> tuple[bool, bool, bool]:
    return site.floats, site.outside, site.direct


def candidates(number: int, fault: Fault, available: Sequence[Site]) -> Iterator[dict[str, Any]]:
    """What to plant, in an order that is the same each time."""
    chance = random.Random(number)
    shuffled = list(available)
    chance.shuffle(shuffled)
    for site in shuffled:
        wanted = (fault.floats, fault.outside, fault.direct)
        if any(want and not has for want, has in zip(wanted, _properties(site), strict=True)):
            continue
        planted = {
            "fault": fault.kind,
            "primitive": site.primitive,
            "dtype": site.dtype,
            "rank": site.rank,
        }
        if fault.after:
            earlier = [
                other.primitive
                for other in available
                if other.position < site.position and other.primitive != site.primitive
            ]
            if not earlier:
                continue
            planted["after"] = chance.choice(earlier)
        yield planted


@functools.cache
def functions() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Functions of libraries with their arguments that are neither tiny nor huge."""
    import jax

    from tests.corpora.jaxsight_source.libraries import FUNCTIONS, Time

    chosen: dict[str, tuple[Any, tuple[Any, ...]]] = {}
    for name, entry in FUNCTIONS.items():
        if entry.time is Time.LONG or len(chosen) == LIBRARIES:
            continue
        try:
            call = entry.make()
            function = functools.partial(call.function, **call.kwargs)
            names = [each.primitive.name for each in flat(jax.make_jaxpr(function)(*call.args))]
        except (ImportError, TypeError):
            continue  # not installed, or its arguments are no arrays
        if SMALLEST <= len(names) <= LARGEST and not _CALLBACKS.intersection(names):
            chosen[name] = (function, call.args)
    return chosen


def write(name: str, file: Path, check: str) -> Any:
    """Write a function as a repro with the demonstration of a check; return its jaxpr."""
    import jax

    from jaxsight_repro.checks.base import parse
    from jaxsight_repro.emit.repro_file import About, write
    from jaxsight_repro.environment import current
    from jaxsight_repro.failures import RunFailure
    from jaxsight_repro.values import value_of

    function, args = functions()[name]
    leaves, tree = jax.tree.flatten(args)

    def flattened(*leaves: Any) -> Any:
        return jax.tree.leaves(function(*jax.tree.unflatten(tree, leaves)))

    lines = parse(check).lines(jitted=True)
    about = About(RunFailure("exception", message="planted"), current(), lines)
    values = [value_of(leaf) for leaf in leaves]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        repro = write(flattened, values, [f"x{index}" for index in range(len(values))], about)
    repro.save(file)
    return jax.make_jaxpr(flattened)(*leaves)


def case(number: int, folder: Path, python: str) -> tuple[Case, Path]:
    """The case of a number, and its file, which fails as the fault does and not without it.

    Raises:
        LookupError: no place in the function shows the fault.
    """
    from jaxsight_repro.checks.base import parse
    from jaxsight_repro.failures import FINISHED
    from jaxsight_repro.running import run_file

    names = list(functions())
    name = names[number % len(names)]
    fault = FAULTS[(number + 3 * (number // len(names))) % len(FAULTS)]
    file = folder / f"case{number:03}.py"
    program = write(name, file, fault.check)
    check = parse(fault.check)
    limit = check.seconds or 60.0
    clean = run_file(python, file, timeout=60.0)
    if clean.failure.kind != FINISHED:
        raise LookupError(f"{name} fails by itself: {clean.failure.headline}")
    for planted in candidates(number, fault, sites(program)):
        equations = sum(1 for _ in flat(program))
        made = Case(number, name, fault, planted, equations)
        ran = run_file(python, file, timeout=limit, environment=made.environment)
        if check.holds(ran.failure):
            return made, file
    raise LookupError(f"{name}: no operation shows the fault {fault.name!r}")
