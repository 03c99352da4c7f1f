"""Run a program, and write what the functions of a file are called with.

Run by itself by the Python that has the libraries: `real_run.py PROGRAM FILE ROOT OUT SECONDS`. It
knows nothing of jaxsight: `sys.monitoring` tells of each call of a function as its body begins.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import runpy
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType

import jax

_CALLS = 50
"""Different calls of a function that are kept."""
_KINDS = {"bfloat": "bf", "float": "f", "uint": "u", "int": "i", "complex": "c"}
_Calls = dict[str, list[dict[str, list[str]]]]


def main() -> None:
    program, file, root, out, seconds = sys.argv[1:]
    calls: _Calls = {}
    sys.path[:0] = [str(Path(program).parent), root]
    os.chdir(root)

    def end(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, end)
    signal.alarm(int(float(seconds)))
    failed = ""
    try:
        _observe(file, calls)
        if re.fullmatch(r"test_.*|.*_test", Path(program).stem):
            import pytest

            pytest.main([program, "-q", "-p", "no:cacheprovider", f"--rootdir={root}"])
        else:
            sys.argv = [program]
            runpy.run_path(program, run_name="__main__")
    except BaseException as error:  # noqa: BLE001 - what was called until then is known
        failed = f"{type(error).__name__}: {error}"[:200]
    signal.alarm(0)
    Path(out).write_text(json.dumps({"failed": failed, "calls": calls}), encoding="utf-8")
    os._exit(0)  # its threads may not end


def _observe(file: str, calls: _Calls) -> None:
    """Note the calls of the functions of a file from now on."""
    monitoring, tool = sys.monitoring, sys.monitoring.PROFILER_ID
    real = os.path.realpath(file)

    def started(code: CodeType, _offset: int) -> object:
        is_function = code.co_flags & inspect.CO_OPTIMIZED
        if not is_function or os.path.realpath(code.co_filename) != real:
            return monitoring.DISABLE
        known = calls.setdefault(code.co_qualname, [])
        if len(known) < _CALLS:
            call = dict(_arguments(sys._getframe(1), code))
            if call not in known:
                known.append(call)
        return None

    monitoring.use_tool_id(tool, "unprepared")
    monitoring.register_callback(tool, monitoring.events.PY_START, started)
    monitoring.set_events(tool, monitoring.events.PY_START)


def _arguments(frame: FrameType, code: CodeType) -> Iterator[tuple[str, list[str]]]:
    """Yield the parameters with the types of the arrays in them."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    for name in code.co_varnames[:count]:
        types: list[str] = []
        with suppress(Exception):  # objects of the program
            types = [_type(leaf) for leaf in jax.tree.leaves(frame.f_locals.get(name))]
        yield name, [each for each in types if each]


def _type(leaf: object) -> str:
    """Return the type of an array as jaxsight writes it; empty for all else."""
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if not isinstance(shape, tuple) or dtype is None:
        return ""
    name = str(dtype)
    for kind, short in _KINDS.items():
        name = re.sub(rf"^{kind}(?=\d)", short, name)
    return f"{name}[{','.join(map(str, shape))}]"


if __name__ == "__main__":
    main()
