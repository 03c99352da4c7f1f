"""Tell of the programs that JAX compiles while a user's code runs op by op, or would in a dry run.

This applies to JAX 0.8 to 0.12. Private: `pjit._pjit_call_impl_python`, through which the first
call of each compiled program goes, that of an eager `scan` too; `pjit.jit_p`; and
`DynamicJaxprTrace.process_primitive`, where a dry run's own trace gets what would be compiled.
No public API tells of them: `jax.monitoring` has durations alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import jax
from jax._src import pjit
from jax._src.interpreters.partial_eval import DynamicJaxprTrace

from jaxsight_source.compat import avals, locations
from jaxsight_source.compat.inner import in_parameters, walk
from jaxsight_source.compat.jaxpr_types import Params, Primitive

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
    pjit._pjit_call_impl_python = compiling
    DynamicJaxprTrace.process_primitive = staging  # type: ignore[method-assign]
    try:
        yield
    finally:
        pjit._pjit_call_impl_python = compile_and_run
        DynamicJaxprTrace.process_primitive = stage  # type: ignore[method-assign]


def _type(array: object) -> jax.ShapeDtypeStruct:
    aval = avals.of(array)
    return avals.struct(aval.shape, aval.dtype, avals.weak(aval))
