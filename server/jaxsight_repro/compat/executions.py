"""Observe each execution of a primitive on concrete arrays, just before it starts.

Applies to JAX 0.8 to 0.12. There is no public hook before a compile and before a run.

Private API used: `core.EvalTrace.process_primitive`, through which primitives are executed;
`pjit._pjit_call_impl_python`, which compiles and runs what `jax.jit` traced, given the parameters
of its primitive (without the executable in its result, `jax.jit` does not bypass Python on later
calls; clearing `pjit._cpp_pjit_cache_…` does the same for functions called before); `pjit.jit_p`;
`Traced._params`, the same parameters for what is compiled ahead of time;
`traceback_util.register_exclusion` and `source_info_util.register_exclusion`, which keep this
module out of the user's tracebacks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax._src import core, pjit, source_info_util, traceback_util

from jaxsight_source.compat.jaxpr_types import Aval, Params, Primitive

if TYPE_CHECKING:  # it is called by this module
    from jaxsight_repro.capturing.recorder import CaseRecorder


@contextlib.contextmanager
def observed(observer: CaseRecorder) -> Iterator[None]:
    """Notify an observer of the outermost execution of each thread, until the context ends."""
    for exclusions in (traceback_util, source_info_util):
        exclusions.register_exclusion(__file__)
    trace_class: Any = core.EvalTrace
    dispatch: Any = pjit
    # Functions that were called before go through Python again; JAX's other caches are kept.
    for cache in ("_cpp_pjit_cache_fun_only", "_cpp_pjit_cache_explicit_attributes"):
        getattr(dispatch, cache).clear()
    process = trace_class.process_primitive
    call_jitted = dispatch._pjit_call_impl_python

    def process_primitive(
        self: object,
        primitive: Primitive,
        arguments: Sequence[object],
        parameters: Mapping[str, object],
        /,
    ) -> object:
        execution = (primitive, arguments, parameters)
        return _observe(observer, execution, partial(process, self, *execution))

    def pjit_call_impl_python(*arguments: object, **parameters: object) -> object:
        def execute() -> object:
            results, *_ = call_jitted(*arguments, **parameters)
            return results

        return _observe(observer, (dispatch.jit_p, arguments, parameters), execute), None, None, []

    trace_class.process_primitive = process_primitive
    dispatch._pjit_call_impl_python = pjit_call_impl_python
    try:
        with _stages_observed(observer, dispatch.jit_p):
            yield
    finally:
        trace_class.process_primitive = process
        dispatch._pjit_call_impl_python = call_jitted


def _observe(
    observer: CaseRecorder,
    execution: tuple[Primitive, Sequence[object], Mapping[str, object]],
    execute: Callable[[], object],
) -> object:
    """Execute, and notify the observer unless the thread is executing something already."""
    within = observer.within
    if getattr(within, "execution", False):
        return execute()
    within.execution = True
    try:
        observer.starting(*execution)
        try:
            results = execute()
        except BaseException as error:
            observer.failed(error)
            raise
        observer.finished(results)
        return results
    finally:
        within.execution = False


_MOST_STAGES = 64
"""Lowered and compiled programs that are known at the same time, a choice: each is held by this."""


@contextlib.contextmanager
def _stages_observed(observer: CaseRecorder, jit: Primitive) -> Iterator[None]:
    """Notify an observer of what is compiled and called ahead of time, by the stages of `jit`."""
    traced_class: Any = jax.stages.Traced
    lowered_class: Any = jax.stages.Lowered
    compiled_class: Any = jax.stages.Compiled
    lower, compile_, call = traced_class.lower, lowered_class.compile, compiled_class.__call__
    known: dict[int, tuple[object, Params]] = {}

    def remember(stage: object, parameters: Params | None) -> None:
        if parameters is not None:
            known[id(stage)] = stage, parameters
            if len(known) > _MOST_STAGES:
                del known[next(iter(known))]

    def traced_lower(self: object, *arguments: object, **options: object) -> object:
        lowered = lower(self, *arguments, **options)
        remember(lowered, getattr(self, "_params", None))
        return lowered

    def lowered_compile(self: object, *arguments: object, **options: object) -> object:
        execute = partial(compile_, self, *arguments, **options)
        _, parameters = known.get(id(self), (None, None))
        if parameters is None:
            return execute()
        zeros = [_zeros(aval) for aval in parameters["jaxpr"].in_avals]
        compiled = _observe(observer, (jit, zeros, parameters), execute)
        remember(compiled, parameters)
        return compiled

    def compiled_call(self: object, *arguments: object, **named: object) -> object:
        execute = partial(call, self, *arguments, **named)
        _, parameters = known.get(id(self), (None, None))
        leaves = jax.tree.leaves((arguments, named))
        if parameters is None or len(leaves) != len(parameters["jaxpr"].in_avals):
            return execute()
        return _observe(observer, (jit, leaves, parameters), execute)

    traced_class.lower = traced_lower
    lowered_class.compile = lowered_compile
    compiled_class.__call__ = compiled_call
    try:
        yield
    finally:
        traced_class.lower, lowered_class.compile = lower, compile_
        compiled_class.__call__ = call


def _zeros(aval: Aval) -> object:
    """Return zeros of an abstract value, or itself if NumPy has no such dtype."""
    try:
        return np.zeros(aval.shape, aval.dtype)
    except TypeError:
        return aval
