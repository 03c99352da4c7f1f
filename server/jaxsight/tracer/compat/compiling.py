"""Which code is part of a program that XLA gets, by the frames around a call.

This applies to JAX 0.8 to 0.12. Private: the names of functions in `jax/_src`; no public API tells
what a trace is for. A name that another version does not have says that nothing is compiled.
"""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Literal

from jaxsight.tracer.isolation import code_origins

Compiled = Literal["root", "inside", "part", "eager", ""]
"""What a call is to the programs that XLA gets.

`root`: one of them. `inside`: a part of one that is a user's function. `part`: of another one
(`jit` of a gradient or a lambda, an eager `scan`). `eager`: of none, it runs op by op. Empty: it is
only traced, for its types.
"""

_COMPILING = {
    "pjit.py": frozenset({"cache_miss", "jit_lower", "jit_trace"}),
    "pmap.py": frozenset({"wrapped"}),
    "lax/control_flow/loops.py": frozenset({"scan", "while_loop", "fori_loop", "map"}),
    "lax/control_flow/conditionals.py": frozenset({"cond", "_cond", "switch", "_switch_internal"}),
}
"""Functions that compile what they trace, by their files. Run eagerly, a loop is one program."""
_TRACING = {
    "pjit.py": frozenset({"jit_eval_shape"}),
    "api.py": frozenset({"eval_shape", "make_jaxpr_f"}),
}
"""Functions that only trace."""
_STAGING = frozenset(
    {
        *("pjit.py", "linear_util.py", "api_util.py", "profiler.py", "traceback_util.py"),
        *("interpreters/partial_eval.py", "stages.py", "core.py", "util.py"),
    }
)
"""Files of JAX through which `jit` calls a function as it is, in contrast to transformations."""


def compiled(frame: FrameType | None, end: CodeType | None, asking: CodeType) -> Compiled:
    """Return what a call of a function is to the programs that are compiled.

    Args:
        frame: that which calls the function.
        end: code of ours that traces all of the user's program.
        asking: code of ours that traces for types what the program would run.
    """
    found: Compiled = "eager"
    is_whole, is_in_function, is_traced = True, False, False
    for each in code_origins.outwards(frame):
        code = each.f_code
        if code is end:
            break
        if code is asking:
            is_traced = False
            continue
        # The whole name if the file is not JAX's.
        file = code.co_filename.replace("\\", "/").rpartition("jax/_src/")[2]
        if code.co_name in _COMPILING.get(file, ()):
            is_jit = file == "pjit.py"
            found = "inside" if is_in_function and is_jit else "part"
            found = "root" if is_whole and is_jit else found
            is_whole = is_in_function = False
        elif code.co_name in _TRACING.get(file, ()):
            is_traced = True
        elif file != code.co_filename.replace("\\", "/") and file not in _STAGING:
            is_whole = is_in_function = False  # a transformation
            found = "part" if found == "root" else found
        elif code_origins.is_users_file(code.co_filename):
            is_whole, is_in_function = False, not code.co_name.startswith("<")
    return "" if is_traced else found
