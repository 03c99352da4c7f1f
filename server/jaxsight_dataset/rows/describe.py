"""Describes a program: traces it in both directions, compiles it, and checks what can be in place.

What needs another process, such as an eager run, is in `check`.
"""

from __future__ import annotations

import base64
import io
import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

import jaxsight
from jaxsight.compiler.compat import xla
from jaxsight.targets.target import CPU, parse
from jaxsight.tracer.comparison.two_ways import plain
from jaxsight_dataset.program import Record, RowProgram, leaves
from jaxsight_dataset.rows import compiling, loading
from jaxsight_dataset.rows.canonical import digests
from jaxsight_dataset.rows.compiling import Executable
from jaxsight_dataset.rows.directions import Direction, backward, forward, primitives
from jaxsight_dataset.rows.finite_differences import gradient_problem
from jaxsight_dataset.schema import LONGEST, VERSION, is_fine
from jaxsight_source.api import sourcerize
from jaxsight_source.errors import TooLarge, TooLong, Unsourceable

_LEVELS = ((8, "basic"), (24, "medium"), (80, "hard"))
"""The largest number of equations, inner ones included, of each difficulty: a choice."""

Labels = Callable[[Direction, Sequence[str]], list[Record]]
"""Compiles a direction for targets other than this machine's CPU."""


Result = TypeVar("Result")


class Rejected(Exception):
    """A program is no row; `cause` is counted in the card."""

    def __init__(self, cause: str, message: str = "") -> None:
        super().__init__(message)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Survey:
    """What decides which programs become rows."""

    program: str
    structure: str
    equations: int
    minhash: tuple[int, ...]


def survey(program: RowProgram) -> Survey:
    """Trace a program, to find out whether an earlier one is the same.

    Raises:
        Rejected: it cannot be loaded or traced.
    """
    _, direction = traced(program)
    found = digests(direction.program)
    count = len(primitives(direction.program))
    return Survey(found.program, found.structure, count, tuple(found.minhash))


def describe(program: RowProgram, targets: Sequence[str], labels: Labels) -> Record:
    """Return the row of a program, with what `check` needs under `_results`.

    Raises:
        Rejected: it cannot be traced, compiled or run, or its results do not depend on its
            arguments.
    """
    loaded, direction = traced(program)
    spans = program.category == "distributed"
    executable = compiled("compile", direction, spans=spans)
    results = attempt("run", lambda: executable(direction.arguments))
    row = _described(program, direction, executable, targets, labels)
    row["alignment"] = compiling.alignment(
        direction, loaded.file, program.text, executable.answer.hlo
    )
    row["normal_form"] = _normal_form(loaded.function, loading.arguments(program))
    validation = {
        "jitted": "passed",
        "finite": finiteness(program, results),
        "inputs": _dependence(program, direction, executable, results),
    }
    backwards: Record = dict.fromkeys(
        ("jaxpr", "stablehlo", "unoptimized_hlo", "hlo", "equation_count", "targets")
    )
    gradient = "not applicable"
    derivative = backward(direction) if program.is_differentiable else None
    if derivative is not None:
        backwards, gradient = _backward(direction, executable, derivative, targets, labels)
        if "own-derivative" in program.labels and not is_fine(gradient):
            gradient = "not compared: own derivative"
    row |= {f"backward_{name}": value for name, value in backwards.items()}
    row["directions"] = ["forward", "backward"] if derivative is not None else ["forward"]
    row["validation"] = {**validation, "gradient": gradient, "one_device": "not applicable"}
    row["_results"] = packed(results)
    return row


def traced(program: RowProgram) -> tuple[loading.LoadedProgram, Direction]:
    """Load a program and trace it.

    Raises:
        Rejected: one of these fails.
    """
    loaded = attempt("load", lambda: loading.load(program))
    arguments = loading.arguments(program)
    return loaded, attempt("trace", lambda: forward(loaded.function, arguments))


def _normal_form(function: Callable[..., object], arguments: tuple[object, ...]) -> str | None:
    """Return a function as pretty source that traces to the same jaxpr; None if it has no such."""
    try:
        return str(sourcerize(function, style="pretty", run=False)(*arguments))
    except (Unsourceable, TooLarge, TooLong):
        return None


def attempt(stage: str, action: Callable[[], Result]) -> Result:
    """Do a step of the work.

    Raises:
        Rejected: it raises; the stage is the cause.
    """
    try:
        return action()
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        raise Rejected(stage, f"{type(error).__name__}: {first}"[:LONGEST]) from error


def compiled(stage: str, direction: Direction, *, spans: bool = False) -> Executable:
    """Compile a direction for this machine's CPU.

    Raises:
        Rejected: that fails, or it runs on several devices, and is not one that `spans` them.
    """
    executable = attempt(stage, lambda: compiling.compile(direction))
    if executable.answer.devices > 1 and not spans:
        raise Rejected("spans several devices", f"it spans {executable.answer.devices} devices")
    return executable


def _described(
    program: RowProgram,
    direction: Direction,
    executable: Executable,
    targets: Sequence[str],
    labels: Labels,
) -> Record:
    """Return the columns of the forward direction."""
    names = primitives(direction.program)
    found = digests(direction.program)
    arrays = [array for argument in program.arguments.values() for array in leaves(argument)]
    return {
        "schema_version": VERSION,
        "number": program.number,
        "source_code": program.text,
        "function": program.function,
        "category": program.category,
        "template": program.template,
        "difficulty": difficulty(len(names)),
        "arguments": json.dumps(program.record()["arguments"]),
        "input_shapes": [list(array.shape) for array in arrays],
        "input_dtypes": [array.dtype for array in arrays],
        "transformations": list(program.transformations),
        "tags": list(program.labels),
        "primitives": sorted(set(names)),
        "equation_count": len(names),
        "jaxpr": str(direction.traced.jaxpr),
        "stablehlo": executable.stablehlo,
        "unoptimized_hlo": executable.unoptimized_hlo,
        "hlo": executable.answer.hlo,
        "targets": [
            on_cpu(executable),
            *labels(direction, [name for name in targets if name != CPU]),
        ],
        "canonical_digest": found.program,
        "structure_digest": found.structure,
        "minhash": list(found.minhash),
        **origin(program),
    }


def origin(program: RowProgram) -> Record:
    """Return where a program is from, and what it is made into a row with."""
    return {
        "provenance": {
            "package": "jaxsight",
            "version": jaxsight.__version__,
            "path": "",
            "licence": "CC0-1.0",
            "source": "",
            **program.provenance,
        },
        "versions": versions(),
        "x64": bool(jax.config.values["jax_enable_x64"]),
    }


def versions() -> dict[str, str]:
    """Return the versions of this process's packages, and of its Python."""
    return {
        "jax": jax.__version__,
        "jaxlib": xla.JAXLIB,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "jaxsight": jaxsight.__version__,
    }


def difficulty(equations: int) -> str:
    """Return the difficulty of a program of so many equations."""
    return next((name for most, name in _LEVELS if equations <= most), "very hard")


def on_cpu(executable: Executable) -> Record:
    """Return the figures of a program that is compiled for this machine's CPU."""
    return compiling.label(executable.answer, parse(CPU), "")


def _dependence(
    program: RowProgram, direction: Direction, executable: Executable, results: list[jax.Array]
) -> str:
    """Return `passed` if each argument has an effect on the results.

    Raises:
        Rejected: it has none, or a result is the same for all arguments.
    """
    others = jax.tree.leaves(loading.arguments(program, draw=1))
    arguments = direction.arguments
    changed = executable(tuple(others))
    if not results:
        raise Rejected("no results")
    for first, second in zip(results, changed, strict=True):
        if same_bits(first, second):
            raise Rejected("constant result")
    for at, other in enumerate(others):
        if same_bits(arguments[at], other):
            continue
        mixed = (*arguments[:at], other, *arguments[at + 1 :])
        if all(map(same_bits, results, executable(mixed))):
            raise Rejected("unused argument")
    return "passed"


def same_bits(first: jax.Array, second: jax.Array) -> bool:
    """Return whether two arrays are equal, NaNs included."""
    lhs, rhs = plain(first), plain(second)
    return lhs.tobytes() == rhs.tobytes()


def finiteness(program: RowProgram, results: list[jax.Array]) -> str:
    """Return whether all results are finite.

    Raises:
        Rejected: one is not, and the program is not labelled so.
    """
    arrays = [plain(result) for result in results]
    inexact = [array for array in arrays if jnp.issubdtype(array.dtype, jnp.inexact)]
    if all(bool(np.isfinite(array).all()) for array in inexact):
        return "passed"
    if "non-finite" in program.labels:
        return "labelled"
    raise Rejected("not finite")


def _backward(
    direction: Direction,
    executable: Executable,
    derivative: Direction,
    targets: Sequence[str],
    labels: Labels,
) -> tuple[Record, str]:
    """Return the columns of the backward direction, and what was found about the gradients.

    Raises:
        Rejected: it cannot be compiled or run.
    """
    spans = executable.answer.devices > 1
    pullback = compiled("compile backward", derivative, spans=spans)
    gradients = attempt("run backward", lambda: pullback(derivative.arguments))
    row = {
        "jaxpr": str(derivative.traced.jaxpr),
        "stablehlo": pullback.stablehlo,
        "unoptimized_hlo": pullback.unoptimized_hlo,
        "hlo": pullback.answer.hlo,
        "equation_count": len(primitives(derivative.program)),
        "targets": [on_cpu(pullback), *labels(derivative, [t for t in targets if t != CPU])],
    }
    cotangents = derivative.arguments[len(direction.arguments) :]
    problem = gradient_problem(executable, direction, cotangents, gradients)
    return row, problem


def packed(arrays: Sequence[jax.Array]) -> str:
    """Return arrays as text, exactly; keys as their data."""
    data = io.BytesIO()
    contents: dict[str, np.ndarray] = {}
    for at, array in enumerate(map(plain, arrays)):
        shape = ",".join(map(str, array.shape))
        content = np.ascontiguousarray(array).tobytes()
        contents[f"{at} {array.dtype} {shape}"] = np.frombuffer(content, np.uint8)
    np.savez_compressed(data, allow_pickle=False, **contents)
    return base64.b64encode(data.getvalue()).decode()


def unpacked(text: str) -> list[np.ndarray]:
    """Return the arrays of `packed`."""
    arrays: list[np.ndarray] = []
    with np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False) as contents:
        for name in contents.files:
            _, dtype, shape = name.split(" ")
            sizes = [int(size) for size in shape.split(",") if size]
            arrays.append(np.frombuffer(contents[name].tobytes(), jnp.dtype(dtype)).reshape(sizes))
    return arrays
