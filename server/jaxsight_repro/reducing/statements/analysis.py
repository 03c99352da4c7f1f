"""Observes a run of a text: which functions were running when it failed, and types of values."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import jax
import numpy as np

from jaxsight_repro.failures import failure_in
from jaxsight_repro.reducing import children
from jaxsight_repro.reducing.children import ChildLimits
from jaxsight_repro.reducing.statements.simplification import FileText, functions

_DEEPEST = 3
"""Containers in containers that are written: deeper values are left to the program."""
_LONGEST = 2000
"""Characters of an expression, a choice: longer ones would be most of the reduced file."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What was observed in a run.

    Attributes:
        frames: the functions of the file that were running when it failed, innermost first: the
            line of each definition, and the line that was running.
        values: expressions of the last values of names, by the line of the function's definition
            (0 for the module).
    """

    frames: list[tuple[int, int]] = field(default_factory=list)
    values: Mapping[tuple[int, str], str] = field(default_factory=dict)


def analyse(text: FileText, file: str, limits: ChildLimits) -> Analysis:
    """Run a text in a child, and observe it."""
    _, output = children.run(lambda: _observe(text, file), limits)
    try:
        frames, values = json.loads(output)
    except ValueError:
        return Analysis()
    return Analysis(
        [(first, line) for first, line in frames],
        {(first, name): expression for first, name, expression in values},
    )


def _observe(text: FileText, file: str) -> bytes:
    values: dict[tuple[int, str], str] = {}
    frames: list[tuple[int, int]] = []
    # The line of each definition, by the function's name and the first line of its code.
    lines = {("<module>", 1): 0}
    for each in functions(text.tree):
        first = min(part.lineno for part in (each, *each.decorator_list))
        lines[each.name, first] = each.lineno

    def line_of(code: CodeType) -> int | None:
        first = 1 if code.co_name == "<module>" else code.co_firstlineno
        return lines.get((code.co_name, first)) if code.co_filename == file else None

    def trace(frame: FrameType, event: str, _: object) -> Any:
        """Record the variables of a function of the text when it ends (`sys.settrace`)."""
        first = line_of(frame.f_code)
        if first is None:
            return None
        frame.f_trace_lines = False
        if event == "return":
            for name, value in frame.f_locals.items():
                if (expression := expression_of(value)) is not None:
                    values[first, name] = expression
        return trace

    def run() -> None:
        sys.settrace(trace)
        try:
            exec(code, {"__name__": "__main__", "__file__": file})  # noqa: S102 - runs user code
        except BaseException as error:
            for frame, line in traceback.walk_tb(error.__traceback__):
                if frame.f_code.co_filename == file:
                    frames.insert(0, (line_of(frame.f_code) or 0, line))
            raise
        finally:
            sys.settrace(None)

    code = compile(text.body, file, "exec")
    failure_in(run)
    return json.dumps([frames, [[*key, value] for key, value in values.items()]]).encode()


def expression_of(value: object, depth: int = 0) -> str | None:
    """Return an expression of a value of the same type, with zeros for numbers in arrays."""
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        text = repr(value)
        return text if len(text) < _LONGEST and "inf" not in text and "nan" not in text else None
    if isinstance(value, (jax.Array, jax.core.Tracer)):
        return _zeros(value, "jnp")
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return _zeros(value, "np")
    if depth >= _DEEPEST or type(value) not in (tuple, list, dict):
        return None
    assert isinstance(value, (tuple, list, dict))
    inside = value.values() if isinstance(value, dict) else value
    written = [part for each in inside if (part := expression_of(each, depth + 1)) is not None]
    if len(written) < len(value):
        return None
    if isinstance(value, dict):
        items = (f"{key!r}: {part}" for key, part in zip(value, written, strict=True))
        has_names = all(isinstance(key, str) for key in value)
        return f"{{{', '.join(items)}}}" if has_names else None
    if sum(map(len, written)) > _LONGEST:
        return None
    if isinstance(value, list):
        return f"[{', '.join(written)}]"
    return f"({', '.join(written)}{',' if len(written) == 1 else ''})"


def _zeros(value: object, module: str) -> str | None:
    """Return zeros of the type of an array, or the first key; None if the type is not known."""
    try:
        dtype, shape = getattr(value, "dtype", None), tuple(map(int, getattr(value, "shape", ())))
    except (TypeError, ValueError):
        return None
    if dtype is None:
        return None
    if jax.numpy.issubdtype(dtype, jax.dtypes.prng_key):
        return "jax.random.key(0)" if not shape else None
    name = "bool_" if str(dtype) == "bool" else str(dtype)
    return f"{module}.zeros({shape}, {module}.{name})"
