"""Run programs as Python does, and print what their functions are called with, as JSON.

This observes a real run on its own, without jaxsight: `python real_runs.py FILE…`. For each file it
prints the calls of each function by its qualified name, and of each call the types of the arrays in
each argument; those that functions among the arguments capture are apart.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import runpy
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType

import jax
import numpy as np

Call = dict[str, tuple[list[str], list[str]]]
"""By parameter, the types of the arrays in an argument, and of those that its functions capture."""

_NAMES = {"bfloat": "bf", "float": "f", "uint": "u", "int": "i", "complex": "c"}
_TOOL = sys.monitoring.PROFILER_ID


def array_type(leaf: object) -> str | None:
    """Return the type of an array, as `f32[2,3]`; `None` of anything else."""
    if not isinstance(leaf, jax.Array | np.ndarray | jax.ShapeDtypeStruct):
        return None
    name = str(leaf.dtype)
    for long, short in _NAMES.items():
        name = name.replace(long, short) if name.startswith(long) else name
    return f"{name}[{','.join(map(str, leaf.shape))}]"


def captured(value: object, seen: set[int]) -> Iterator[str]:
    """Yield the types of the arrays that functions in a value capture."""
    for leaf in jax.tree_util.tree_leaves(value):
        if isinstance(leaf, FunctionType) and id(leaf) not in seen:
            seen.add(id(leaf))
            for cell in leaf.__closure__ or ():
                with contextlib.suppress(ValueError):  # it is empty
                    found = jax.tree_util.tree_leaves(cell.cell_contents)
                    yield from filter(None, map(array_type, found))
                    yield from captured(cell.cell_contents, seen)


def arguments(frame: FrameType) -> Call:
    """Return the types in the arguments of a frame."""
    info = inspect.getargvalues(frame)
    found: Call = {}
    for name in (*info.args, *filter(None, (info.varargs, info.keywords))):
        value = info.locals[name]
        leaves = jax.tree_util.tree_leaves(value)
        own = sorted(filter(None, map(array_type, leaves)))
        found[name] = own, sorted(captured(value, set()))
    return found


def run(file: str) -> dict[str, list[Call]]:
    """Return the calls of a file's functions that differ."""
    calls: dict[str, list[Call]] = {}

    def started(code: CodeType, _: int) -> object:
        if code.co_filename != file:
            return sys.monitoring.DISABLE
        if not code.co_name.startswith("<"):
            seen = calls.setdefault(code.co_qualname, [])
            call = arguments(sys._getframe(1))
            if call not in seen:
                seen.append(call)
        return None

    monitoring = sys.monitoring
    monitoring.use_tool_id(_TOOL, "real runs")
    monitoring.register_callback(_TOOL, monitoring.events.PY_START, started)
    monitoring.set_events(_TOOL, monitoring.events.PY_START)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(file, run_name="__main__")
    finally:
        monitoring.set_events(_TOOL, 0)
        monitoring.free_tool_id(_TOOL)
    return calls


if __name__ == "__main__":
    print(json.dumps({file: run(file) for file in sys.argv[1:]}))
