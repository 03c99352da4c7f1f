"""Trace a call with the state that it updates, by JAX or by the `jit` of its library."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.stages import Traced

from jaxsight.tracer.calls.inputs import Inputs
from jaxsight.tracer.calls.parameters import named, parameter
from jaxsight.tracer.calls.stateful_call import Outcome, StatefulCall, Updates, static_leaves
from jaxsight.tracer.calls.user_function import UserFunction
from jaxsight.tracer.compat import contexts, in_place_updates
from jaxsight.tracer.failures import UserError
from jaxsight.tracer.states import nnx
from jaxsight.tracer.states.watch import Change, Watch
from jaxsight.wire.chunks import Chunk
from jaxsight.wire.observations import Caveat
from jaxsight_source.compat.staging import open_jaxpr, surroundings

Returned = TypeVar("Returned")

_PARAMETER = re.compile(r"[.\[]")

_UNBOUND = re.compile(r"\bunbound axis name: (\w+)")
"""`NameError` of JAX: `core.AxisEnv.axis_size` (jax/_src/core.py), 0.4.35 to 0.12."""
_MOST_AXES = 8
"""Maximum number of axes, each of which costs a trace; meshes of programs have up to five."""


def traced(user_function: UserFunction, inputs: Inputs) -> tuple[Traced, Outcome]:
    """Trace the call; return JAX's `Traced` stage, which can be lowered, and the other results."""
    if user_function.jitted or nnx.is_jitted(user_function.wrapper):
        return _traced_by_jit(user_function, inputs)
    call, stage = _with_state(user_function, inputs, _staged)
    return stage, _with_refs(stage, call.outcome, user_function, inputs)


def updating(user_function: UserFunction, inputs: Inputs) -> StatefulCall | None:
    """Return the call if it updates arrays in place; those that it replaces are inputs.

    The function's errors are raised.
    """
    if user_function.jitted:
        return None

    def attempt(call: StatefulCall) -> None:
        with _like_its_call(call.user_function):
            jax.make_jaxpr(call.function)(*call.args, **call.kwargs)

    call, _ = _with_state(user_function, inputs, attempt)
    return call if set(call.outcome.updates) != set(call.outcome.left_out) else None


def with_values(user_function: UserFunction, inputs: Inputs) -> StatefulCall:
    """Return the call to make with concrete arrays, without the `jit` of a jitted function."""
    if user_function.jitted:
        # `__wrapped__` of a `PjitFunction` is the user's function.
        body = getattr(user_function.call, "__wrapped__", user_function.call)
        user_function = replace(user_function, call=body, jitted=False, pure=True)
    return StatefulCall(user_function, inputs)


def _like_its_call(user_function: UserFunction) -> contextlib.AbstractContextManager[None]:
    """Let a function do what only functions without `jit` can, if it is one."""
    return contexts.eager() if user_function.wrapper is None else contextlib.nullcontext()


def _with_state(
    user_function: UserFunction, inputs: Inputs, run: Callable[[StatefulCall], Returned]
) -> tuple[StatefulCall, Returned]:
    """Run the call, and return it with the result.

    NNX objects that it changes and that are not arguments become inputs, and so does state that it
    replaces.
    """
    call = StatefulCall(user_function, inputs)
    holders: Sequence[Change] = ()
    try:
        result = run(call)
    except Exception as error:
        # By name, as Flax need not be installed.
        if type(error).__name__ == "TraceContextError":
            holders = _watch(user_function, inputs).holders
        if not holders:
            raise
    if holders:  # not above: the first error is no cause of another one
        call = StatefulCall(user_function, inputs, holders=holders)
        result = run(call)
    if call.lifts:
        # Constants of the first trace may be state that the call replaces.
        again = call.again()
        with contextlib.suppress(Exception):  # e.g. if `float(self.count)` needs a constant
            return again, run(again)
    return call, result


def _staged(call: StatefulCall) -> Traced:
    user_function = call.user_function
    function = _marked(call.function) if user_function.pure else call.function
    donates_first, donates_others = user_function.donates
    donated = [at for at in range(len(call.args)) if (donates_first if at == 0 else donates_others)]
    named_too = list(call.kwargs) if donates_others else []
    jitted = jax.jit(function, donate_argnums=donated, donate_argnames=named_too)
    with _like_its_call(user_function):
        stage = jitted.trace(*call.args, **call.kwargs)
    # After tracing, which replaces the outcome.
    call.outcome.markers = int(user_function.pure)
    return stage


def _marked(function: Callable[..., list[object]]) -> Callable[..., list[object]]:
    """Add the scalar before all results that `eqx.filter_jit` adds.

    See `equinox/_jit.py`, 0.11 to 0.13.
    """

    @functools.wraps(function, updated=())
    def call(*args: object, **kwargs: object) -> list[object]:
        results = function(*args, **kwargs)
        return [jnp.array(0), *results]

    return call


def _watch(user_function: UserFunction, inputs: Inputs) -> Watch:
    """Return a watch of all that a call can reach besides the arrays of its arguments."""
    by_name = named(user_function, inputs.args, inputs.kwargs)
    return Watch(user_function.call, static_leaves(by_name))


def _traced_by_jit(user_function: UserFunction, inputs: Inputs) -> tuple[Traced, Outcome]:
    """Return the program of `jax.jit`, which returns no state, or that of `nnx.jit`.

    The latter also returns the state of objects in its arguments.
    """
    call: Any = user_function.call
    updates = Updates(returns=False)
    with _watch(user_function, inputs) as watch:
        if nnx.is_jitted(user_function.wrapper):
            program = nnx.traced(user_function.wrapper, inputs.args, inputs.kwargs)
        else:
            stage = call.trace(*inputs.args, **inputs.kwargs)
            structure: jax.tree_util.PyTreeDef = jax.tree_util.tree_structure(stage.out_info)
            program = nnx.JittedProgram(stage, structure, 0, structure.num_leaves, ())
        updates.add_all(watch)
    keys = program.updated
    names = (parameter(user_function, key) if isinstance(key, int) else key for key in keys)
    updates.names = dict.fromkeys((*names, *updates.names))
    outcome = Outcome(program.structure, start=program.start, count=program.count)
    updates.note(outcome)
    return program.stage, _with_refs(program.stage, outcome, user_function, inputs)


def _with_refs(
    stage: Traced, outcome: Outcome, user_function: UserFunction, inputs: Inputs
) -> Outcome:
    """Add the names of references that the program writes to its updates."""
    places = list(in_place_updates.written_refs(stage.jaxpr))
    if not places:
        return outcome
    opened = open_jaxpr(stage.jaxpr)
    constants = getattr(stage.jaxpr, "consts", ())
    watch = Watch(user_function.call, inputs.named)
    argument_names = getattr(opened.debug_info, "arg_names", None) or ()
    labels = []
    for index in places:
        if index < len(opened.constvars):
            labels.append(watch.label(constants[index]) or "a captured reference")
        else:
            path = argument_names[index - len(opened.constvars)] if argument_names else None
            labels.append(_PARAMETER.split(str(path or "an argument"), maxsplit=1)[0])
    outcome.updates = tuple(dict.fromkeys((*outcome.updates, *labels)))
    return outcome


def with_axes(trace: Callable[[], Returned]) -> tuple[Returned, tuple[str, ...]]:
    """Return an answer, and the axes that had to be bound for it: those of maps around a function.

    `lax.pmean(x, "batch")` has a meaning only in a program that maps over `batch`. A function that
    is traced by itself sees such an axis with one device, as in that program on a machine that has
    one.

    Args:
        trace: is called again with each axis that it finds unbound.

    Raises:
        UserError: that of `trace`.
    """
    axes: list[str] = []
    while True:
        try:
            with surroundings(None, [(name, 1) for name in axes]):
                return trace(), tuple(axes)
        except UserError as error:
            unbound = _UNBOUND.search(error.failure.message)
            # An axis that is bound already would be asked for without end.
            if unbound is None or unbound[1] in axes or len(axes) == _MOST_AXES:
                raise
            axes.append(unbound[1])


def axis_caveats(axes: Iterable[str], chunks: Iterable[Chunk], function: str) -> tuple[Caveat, ...]:
    """Return what is said of a function about the axes that were bound for it."""
    defining = next((chunk for chunk in chunks if function.partition(".")[0] in chunk.binds), None)
    if defining is None:
        return ()
    words = "names the axis `{}`, which nothing here binds: traced with a size of 1"
    return tuple(Caveat(defining.id, words.format(name)) for name in axes)
