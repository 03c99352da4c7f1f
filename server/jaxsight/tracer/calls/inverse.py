"""Create the inverse of a function, as a function with inputs to trace it with.

It returns all arguments that have arrays, if the results determine them.
Otherwise it returns the first one except `self`, and takes the others as parameters after the
results.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax

from jaxsight.tracer.calls.inputs import Inputs
from jaxsight.tracer.calls.leaves import ArraysIn
from jaxsight.tracer.calls.parameters import parameter
from jaxsight.tracer.calls.user_function import TraceableCall, UserFunction
from jaxsight.tracer.failures import refusal
from jaxsight_source import NotInvertible, inverse

Key = int | str
"""An argument: its position, or its keyword."""


def inverted(
    user_function: UserFunction, inputs: Inputs, function: str, name: str
) -> TraceableCall:
    """Return the inverse, traceable with its inputs.

    Raises:
        UserError: there is no inverse; its stage is `sourcerize`, and the message names the
            operation and its line.
    """
    by_key: dict[Key, object] = dict(enumerate(inputs.args))
    by_key.update(inputs.kwargs)
    with_arrays = [key for key, value in by_key.items() if ArraysIn.of(value).arrays]
    first = [key for key in with_arrays if not (key == 0 and user_function.owner is not None)][:1]
    problem: NotInvertible | None = None
    for wanted in filter(None, dict.fromkeys((tuple(with_arrays), tuple(first)))):
        given = [key for key in with_arrays if key not in wanted]
        call = _call(user_function, by_key, wanted, given, function, name)
        try:
            # Tracing shows whether there is an inverse, and computes nothing.
            jax.eval_shape(call.function, *call.args)
        except NotInvertible as error:
            problem = error
        else:
            return call
    reason = str(problem) if problem is not None else f"{function} takes no arrays"
    raise refusal("sourcerize", reason, type="NotInvertible") from problem


def _call(
    user_function: UserFunction,
    arguments: dict[Key, object],
    wanted: Sequence[Key],
    given: Sequence[Key],
    function: str,
    name: str,
) -> TraceableCall:
    """Return a function of results and of the arguments `given`, which returns those `wanted`."""
    like = [ArraysIn.of(arguments[key]).arrays for key in wanted]
    known_args = [arguments[key] for key in given]

    def of_asked(known_values: Sequence[object]) -> Callable[..., object]:
        def run(*values: Iterable[object]) -> object:
            by_key = arguments | dict(zip(given, known_values, strict=True))
            for key, arrays in zip(wanted, values, strict=True):
                by_key[key] = ArraysIn.of(arguments[key]).filled(arrays)
            args = [value for key, value in by_key.items() if isinstance(key, int)]
            kwargs = {key: value for key, value in by_key.items() if isinstance(key, str)}
            return user_function.call(*args, **kwargs)

        run.__name__ = function.rpartition(".")[2]
        return run

    known_arrays = ArraysIn.of(known_args)
    results: Any = jax.eval_shape(
        lambda values, known: of_asked(known_arrays.filled(known))(*values),
        *(like, known_arrays.arrays),
    )
    # Not `isinstance`: a named tuple is a single result.
    several = type(results) is tuple and len(results) > 1
    parts = results if several else (results,)

    def undone(*args: object) -> object:
        values = inverse(of_asked(args[len(parts) :]), *like)(*args[: len(parts)])
        values = (values,) if len(wanted) == 1 else values
        undone_args = [ArraysIn.of(arguments[key]) for key in wanted]
        back = tuple(arg.alone(new) for arg, new in zip(undone_args, values, strict=True))
        return back[0] if len(back) == 1 else back

    parameters = [_name(user_function, key) for key in given]
    labels = _labels(len(parts), parameters)
    undone.__name__ = name
    known = (key if key.isidentifier() else f"known{at}" for at, key in enumerate(parameters))
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = [inspect.Parameter(label, positional) for label in (*labels, *known)]
    undone.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    about = f"inverse({function})"
    if given:
        wanted_names = ", ".join(_name(user_function, key) for key in wanted)
        about += f" with respect to {wanted_names}"
    return TraceableCall(undone, (*parts, *known_args), {}, name, about)


def _name(user_function: UserFunction, key: Key) -> str:
    return parameter(user_function, key) if isinstance(key, int) else key


def _labels(count: int, names: Sequence[str]) -> list[str]:
    """Return names of the parameters for results: `y`, or `y0`, `y1`, …."""
    base = "y"
    while True:
        labels = [base] if count == 1 else [f"{base}{index}" for index in range(count)]
        if set(labels).isdisjoint(names):
            return labels
        base += "_"
