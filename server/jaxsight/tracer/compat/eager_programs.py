"""Tell of the programs that JAX compiles while a user's code runs op by op, or would in a dry run.

This applies to JAX 0.8 to 0.12. Private: `pjit._pjit_call_impl_python`, through which the first
call of each compiled program goes, that of an eager `scan` too; `pjit.jit_p`; and
`DynamicJaxprTrace.process_primitive`, where a dry run's own trace gets what would be compiled.
No public API tells of them: `jax.monitoring` has durations alone.

Which code is part of a program that XLA gets is read off the frames around a call, by the names of
functions in `jax/_src`; no public API tells what a trace is for. A name that another version does
not have says that nothing is compiled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Literal

import jax
from jax._src import pjit
from jax._src.interpreters.partial_eval import DynamicJaxprTrace

from jaxsight.tracer.compat.replacing import replaced
from jaxsight.tracer.isolation import code_origins
from jaxsight_source.compat import avals, locations
from jaxsight_source.compat.inner import in_parameters, walk
from jaxsight_source.compat.jaxpr_types import Params, Primitive

Compiled = Literal["root", "inside", "part", "eager", ""]
"""What a call is to the programs that XLA gets.

`root`: one of them. `inside`: a part of one that is a user's function. `part`: of another one
(`jit` of a gradient or a lambda, an eager `scan`). `eager`: of none, it runs op by op. Empty: it is
only traced, for its types.
"""

_STAGED = frozenset({"jit", "pjit", "scan", "while", "cond"})
"""Primitives that are programs of their own where nothing around them is compiled."""


@dataclass(frozen=True, slots=True)
class EagerProgram:
    """A primitive with its parameters, and the types of its arrays."""

    primitive: Primitive
    params: Params
    arrays: tuple[jax.ShapeDtypeStruct, ...]

    @property
    def title(self) -> str:
        """`scan`, or `jit(f)`."""
        if self.primitive is not pjit.jit_p:
            return str(self.primitive.name)
        name = str(self.params["name"])
        # `x + y` outside of a trace is `jit(add)` of one equation `add`: JAX's own `jit`.
        _, first = next(walk(self.params["jaxpr"]), (None, None))
        is_eager = first is not None and first.primitive.name == name
        return name if is_eager else f"jit({name})"

    @property
    def jaxprs(self) -> tuple[object, ...]:
        """Its jaxprs, as JAX holds them: those that JAX has traced before are the same ones."""
        return tuple(inner.value for inner in in_parameters(self.params))

    def functions(self) -> Iterator[tuple[str, str]]:
        """Yield the names and files of the functions that created its equations, with callers."""
        for jaxpr in self.jaxprs:
            for _, equation in walk(jaxpr):
                yield from ((name, file) for name, file, _ in locations.callers(equation))

    def __call__(self, *arrays: object) -> object:
        """Compute it."""
        return self.primitive.bind(*arrays, **self.params)


@contextlib.contextmanager
def telling(
    tell: Callable[[EagerProgram], None], is_outer: Callable[[object], bool] = lambda trace: False
) -> Iterator[None]:
    """Tell of each program that is compiled in the context, or staged by a dry run's trace.

    Args:
        tell: gets it before it runs.
        is_outer: whether a trace is that of a dry run.
    """
    compile_and_run: Callable[..., object] = pjit._pjit_call_impl_python
    stage: Callable[..., object] = DynamicJaxprTrace.process_primitive

    def told(primitive: Primitive, arrays: Sequence[object], params: Params) -> None:
        with contextlib.suppress(Exception):  # arguments without a type, such as references
            tell(EagerProgram(primitive, params, tuple(map(_type, arrays))))

    def compiling(*arrays: object, **params: object) -> object:
        told(pjit.jit_p, arrays, params)
        return compile_and_run(*arrays, **params)

    def staging(
        self: DynamicJaxprTrace, primitive: Primitive, arrays: Sequence[object], params: Params
    ) -> object:
        if primitive.name in _STAGED and is_outer(self):
            told(primitive, arrays, params)
        return stage(self, primitive, arrays, params)

    # JAX looks both up at each call: in its module, and on the class.
    with replaced(
        (pjit, "_pjit_call_impl_python", compiling),
        (DynamicJaxprTrace, "process_primitive", staging),
    ):
        yield


def _type(array: object) -> jax.ShapeDtypeStruct:
    aval = avals.of(array)
    return avals.struct(aval.shape, aval.dtype, avals.weak(aval))


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
