"""Proof of written text by running it with the original: eagerly, under `jit` and under `grad`.

The jaxprs were compared before. That does not prove that the text computes the same values without
tracing, where Python numbers are not arrays and NumPy's arrays compute in their own way.

For the original, its jaxpr runs, not the user's code, and only if it is small, has no effects and
terminates. Arguments that are not concrete arrays are random.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_source.compat import avals
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.pallas import kernel_call
from jaxsight_source.compat.staging import Program, evaluate, is_literal, opened
from jaxsight_source.jaxprs.arguments import drawn_array
from jaxsight_source.jaxprs.same.comparison import same_jaxpr

Way = Literal["eagerly", "under jit", "under grad"]

Flat = Callable[..., object]
"""A function of leaves that returns a pytree."""

LARGEST = 16 << 20
"""The maximum size, in bytes, of the results of one equation, and of all inputs together.

A choice: the weights of a layer of 2,048 by 2,048 numbers are this large. With less, programs that
have such a layer would not be run; with more, several copies of them would fill the memory.
"""

MOST_EQUATIONS = 60
"""The maximum number of equations, inner ones included: each may take 5 to 50 ms to compile."""

MOST_NUMBERS = 1 << 22
"""The maximum number of elements that all equations compute, over all iterations.

A choice: XLA's CPU code computes so many in milliseconds, less than compiling takes.
"""

_EFFECTFUL = ("callback", "infeed", "outfeed", "print", "io_", "pallas", "ffi_call")

_TOLERANCE = {8: 1e-9, 4: 1e-4, 2: 3e-2, 1: 3e-1}
"""Tolerance relative to the largest number, by the bytes of a floating-point number: XLA may fuse
differently. A choice: less rejects such programs, more accepts wrong ones.
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """The ways in which a text and the original ran with equal results, or why they did not run."""

    ways: tuple[Way, ...] = ()
    skipped: str = ""


NOT_RUN = Ran(skipped="not requested")


class Differs(Exception):
    """The text and the original have different results when they run."""


def is_number_type(kind: type) -> bool:
    """Return whether results of a type are Python numbers, which are not arrays."""
    return issubclass(kind, (bool, int, float, complex)) and not issubclass(kind, np.generic)


def run_beside(
    text: Flat,
    original: Flat,
    jaxpr: object,
    values: Sequence[object],
    numbers: Sequence[bool],
    *,
    derivatives: bool = True,
) -> Ran:
    """Run a text and the original, and compare their results.

    Args:
        text: the written function, of leaves.
        original: the user's function, of leaves; it is only traced.
        jaxpr: its program.
        values: leaves, or structs for which random values are generated.
        numbers: for each result of the original, whether it is a Python number.
        derivatives: also compare gradients.

    Raises:
        Differs: if they differ, or the text does not run.
    """
    program = opened(jaxpr)
    is_drawn = any(isinstance(value, jax.ShapeDtypeStruct) for value in values)
    if reason := too_much(program, is_drawn=is_drawn):
        return Ran(skipped=reason)
    try:
        generator = np.random.default_rng(0)
        leaves = [_concrete(value, generator) for value in values]
        outputs = zip(evaluate(program, *_copies(leaves)), program.jaxpr.outvars, strict=True)
        expected = [
            np.asarray(output).astype(var.aval.dtype) if is_literal(var) else output
            for output, var in outputs
        ]
    except Exception as error:  # noqa: BLE001 - a program that fails on these values proves nothing
        return Ran(skipped=f"the original does not run on these inputs: {_short(error)}")
    ways: list[Way] = ["eagerly"]
    _eagerly(text, program, leaves, expected, numbers)
    if _compiled(text, program, leaves):
        ways.append("under jit")
    if derivatives and _differentiated(text, original, program, leaves):
        ways.append("under grad")
    return Ran(tuple(ways))


def too_much(program: Program, *, is_drawn: bool, most_equations: int = MOST_EQUATIONS) -> str:
    """Return the reason why a program is not run; empty if it is."""
    if getattr(program.jaxpr, "effects", None):
        return "it has effects"
    if sum(avals.size(var.aval) for var in program.jaxpr.invars) > LARGEST:
        return f"its arguments have more than {LARGEST >> 20} MiB"
    numbers = 0.0
    for count, (equation, times) in enumerate(_equations(program, 1.0)):
        name = str(equation.primitive.name)
        is_interpreted = equation.params.get("interpret") is True
        if any(word in name for word in _EFFECTFUL) and not is_interpreted:
            return f"it has a {name}"
        if times is math.inf and is_drawn:
            return "it has a loop that may not terminate on random values"
        if sum(avals.size(var.aval) for var in equation.outvars) > LARGEST:
            return f"it creates an array of more than {LARGEST >> 20} MiB"
        if count >= most_equations:
            return f"it has more than {most_equations} equations"
        if math.isfinite(times):
            numbers += times * _work(equation)
    return f"it computes more than {MOST_NUMBERS:,} numbers" if numbers > MOST_NUMBERS else ""


def _work(equation: Equation) -> float:
    """Return the approximate number of multiplications and additions."""
    size = sum(math.prod(getattr(var.aval, "shape", ())) for var in equation.outvars)
    name = str(equation.primitive.name)
    if name not in ("dot_general", "conv_general_dilated"):
        return size
    inner = max(math.prod(getattr(atom.aval, "shape", ())) for atom in equation.invars)
    return size * max(1.0, inner / max(size, 1))


def _equations(program: Program, times: float) -> Iterator[tuple[Equation, float]]:
    """Yield equations with the number of times each runs; infinity if unknown."""
    for equation in program.jaxpr.eqns:
        yield equation, times
        inside = times
        if equation.primitive.name == "scan":
            inside = times * equation.params["length"]
        elif equation.primitive.name == "while":
            inside = math.inf
        elif equation.primitive.name == "pallas_call":
            programs = kernel_call(equation).programs
            inside = math.inf if programs is None else times * programs
        for part in inner_jaxprs(equation):
            yield from _equations(part.program, inside)


def _concrete(value: object, generator: np.random.Generator) -> object:
    """Return a leaf, or for a struct a random array: normal numbers, small integers, or keys."""
    if not isinstance(value, jax.ShapeDtypeStruct):
        return value
    aval = avals.of(value)
    # Zeros and ones, as a program may run as often as its argument says.
    drawn = drawn_array(aval, generator, integers=(0, 2))
    if not avals.weak(aval) or not drawn.size:
        return drawn
    number = drawn.ravel()[0].item()  # weakly typed, as Python's numbers are
    return jax.lax.full(drawn.shape, number)


def _copies(leaves: Sequence[object]) -> list[object]:
    """Return arguments for one run outside `jit`, which deletes those that the program donates."""
    return [leaf.copy() if isinstance(leaf, jax.Array) else leaf for leaf in leaves]


def _eagerly(
    text: Flat,
    program: Program,
    leaves: Sequence[object],
    expected: Sequence[object],
    numbers: Sequence[bool],
) -> None:
    results = jax.tree.leaves(_of_text(text, _copies(leaves), "eagerly"))
    if len(results) != len(expected):
        raise Differs(f"run eagerly, it returns {len(results)} results, not {len(expected)}")
    types = [var.aval for var in program.jaxpr.outvars]
    for index, (wanted, leaf, aval) in enumerate(zip(expected, results, types, strict=True)):
        subject = f"result {index} (run eagerly)"
        is_number = is_number_type(type(leaf))
        if is_number != numbers[index]:
            kinds = ("an array", "a Python number")
            raise Differs(f"{subject} is {kinds[is_number]}, not {kinds[numbers[index]]}")
        weak = getattr(leaf, "weak_type", None)
        if isinstance(leaf, jax.Array) and weak != getattr(aval, "weak_type", False):
            raise Differs(f"{subject} has a different weak type")
        _agree(subject, wanted, leaf)


def _of_text(text: Flat, leaves: Sequence[object], way: Way) -> Any:
    try:
        return text(*leaves)
    except Exception as error:
        raise Differs(f"it fails {way}: {_short(error)}") from error


def _compiled(text: Flat, program: Program, leaves: Sequence[object]) -> bool:
    """Compare the StableHLO, and if that differs, the computed values."""
    original = jax.jit(lambda *args: evaluate(program, *args))
    written = jax.jit(lambda *args: jax.tree.leaves(text(*args)))
    try:
        theirs = original.lower(*leaves).as_text()
    except Exception:  # noqa: BLE001 - a program that cannot be lowered here is not compared
        return False
    ours = _of_text(lambda *args: written.lower(*args).as_text(), leaves, "under jit")
    if _anonymous(ours) == _anonymous(theirs):
        return True
    values = _of_text(written, leaves, "under jit")
    for index, pair in enumerate(zip(original(*leaves), values, strict=True)):
        _agree(f"result {index} (under jit)", *pair)
    return True


def _anonymous(text: str) -> str:
    """Return StableHLO with functions renamed, without their names in Python."""
    names: dict[str, str] = {}
    return re.sub(r"@[\w.]+", lambda match: names.setdefault(match[0], f"@f{len(names)}"), text)


def _differentiated(text: Flat, original: Flat, program: Program, leaves: Sequence[object]) -> bool:
    """Compare gradients of the sum of all results; return False if the original has none."""
    chosen = [index for index, leaf in enumerate(leaves) if _is_float(leaf)]
    if not chosen or not any(_is_float(var.aval) for var in program.jaxpr.outvars):
        return False

    def gradient(function: Flat) -> Flat:
        def total(*args: object) -> object:
            parts = [
                jnp.sum(jnp.asarray(leaf).astype(np.float32))
                for leaf in jax.tree.leaves(function(*args))
                if _is_float(leaf)
            ]
            return sum(parts, jnp.float32(0))

        return jax.grad(total, argnums=tuple(chosen))

    try:
        expected = jax.make_jaxpr(gradient(original))(*leaves)
    except Exception:  # noqa: BLE001 - whatever the error, the original has no gradient
        return False
    written = _of_text(jax.make_jaxpr(gradient(text)), leaves, "under grad")
    # Differentiation consumes one order of the rules that were written.
    if same_jaxpr(expected, written, orders=2, sums=True) is None:
        return True
    # JAX may add cotangents in another order than for the original.
    ours, theirs = (opened(traced) for traced in (expected, written))
    try:
        slopes = jax.jit(lambda *args: evaluate(ours, *args))(*leaves)
    except Exception:  # noqa: BLE001
        return False
    written_slopes = _of_text(jax.jit(lambda *args: evaluate(theirs, *args)), leaves, "under grad")
    for index, pair in enumerate(zip(slopes, written_slopes, strict=True)):
        _agree(f"gradient {index}", *pair)
    return True


def _is_float(leaf: object) -> bool:
    if is_literal(leaf):
        return False
    dtype = getattr(leaf, "dtype", None)
    if dtype is None:
        return isinstance(leaf, float)
    return bool(avals.is_subtype(dtype, np.floating))


def _agree(subject: str, wanted: Any, leaf: Any) -> None:
    """Raise `Differs` if two results have different types, or differ by more than rounding."""
    if avals.is_key(getattr(wanted, "aval", wanted)):
        if getattr(leaf, "dtype", None) != wanted.dtype:
            raise Differs(f"{subject} is not an array of keys")
        wanted, leaf = jax.random.key_data(wanted), jax.random.key_data(leaf)
    first = np.asarray(wanted)
    second = np.asarray(leaf, None if hasattr(leaf, "dtype") else wanted.dtype)
    if (first.dtype, first.shape) != (second.dtype, second.shape):
        raise Differs(
            f"{subject} is {second.dtype}{list(second.shape)}, not {first.dtype}{list(first.shape)}"
        )
    if first.tobytes() == second.tobytes():
        return
    if not avals.is_subtype(first.dtype, np.inexact):
        raise Differs(f"{subject} has different values")
    wide = np.complex128 if first.dtype.kind == "c" else np.float64
    a, b = first.astype(wide), second.astype(wide)
    size = first.dtype.itemsize // (2 if first.dtype.kind == "c" else 1)
    finite = np.isfinite(a)
    scale = float(np.max(np.abs(a[finite]), initial=0.0))
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= _TOLERANCE[size] * scale
    if not (near | (a == b) | (np.isnan(a) & np.isnan(b))).all():
        raise Differs(f"{subject} has different values")


def _short(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}"
