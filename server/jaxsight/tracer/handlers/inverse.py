"""Create the inverse of a function, as a function with inputs to trace it with.

It returns all arguments that have arrays, if the results determine them.
Otherwise it returns the first one except `self`, and takes the others as parameters after the
results.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from jaxsight.interpreters import NotInvertible, inverse
from jaxsight.tracer.failures import refusal
from jaxsight.tracer.function_lookup import Found, parameter
from jaxsight.tracer.handlers.transforms import Call
from jaxsight.tracer.inputs import Inputs, is_array

Key = int | str
"""An argument: its position, or its keyword."""


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments of a call."""

    given: dict[Key, Any]
    names: dict[Key, str]

    def with_arrays(self) -> list[Key]:
        return [key for key, value in self.given.items() if _arrays(value)]


def inverted(found: Found, inputs: Inputs, function: str, name: str) -> Call:
    """Return the inverse, traceable with its inputs.

    Raises:
        UserError: there is no inverse; its stage is `sourcerize`, and the message names the
            operation and its line.
    """
    given: dict[Key, Any] = dict(enumerate(inputs.args))
    given.update(inputs.kwargs)
    names = {key: parameter(found, key) if isinstance(key, int) else key for key in given}
    arguments = _Arguments(given, names)
    every = arguments.with_arrays()
    one = [key for key in every if not (key == 0 and found.owner is not None)][:1]
    problem: NotInvertible | None = None
    for asked in dict.fromkeys((tuple(every), tuple(one))):
        if not asked:
            continue
        call = _call(found, arguments, asked, function, name)
        try:
            jax.eval_shape(call.function, *call.args)
        except NotInvertible as error:
            problem = error
        else:
            return call
    told = str(problem) if problem is not None else f"{function} takes no arrays"
    raise refusal("sourcerize", told, type="NotInvertible") from problem


def _call(
    found: Found, arguments: _Arguments, asked: Sequence[Key], function: str, name: str
) -> Call:
    known = [key for key in arguments.with_arrays() if key not in asked]
    like = [_arrays(arguments.given[key]) for key in asked]
    others = [arguments.given[key] for key in known]

    def of_asked(known_values: Sequence[Any]) -> Callable[..., Any]:
        def run(*values: Any) -> Any:
            whole = dict(arguments.given) | dict(zip(known, known_values, strict=True))
            for key, arrays in zip(asked, values, strict=True):
                whole[key] = _filled(arguments.given[key], arrays)
            args = [value for key, value in whole.items() if isinstance(key, int)]
            kwargs = {key: value for key, value in whole.items() if isinstance(key, str)}
            return found.call(*args, **kwargs)

        run.__name__ = function.rpartition(".")[2]
        return run

    results = _results(of_asked, like, others)
    several = type(results) is tuple and len(results) > 1
    parts = results if several else (results,)

    def undone(*given: Any) -> Any:
        values = inverse(of_asked(given[len(parts) :]), *like)(*given[: len(parts)])
        values = (values,) if len(asked) == 1 else values
        back = [
            _emptied(arguments.given[key], arrays)
            for key, arrays in zip(asked, values, strict=True)
        ]
        return back[0] if len(back) == 1 else tuple(back)

    taken = [arguments.names[key] for key in known]
    labels = _labels(len(parts), taken)
    undone.__name__ = name
    undone.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(label, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            for label in (*labels, *_identifiers(taken))
        ]
    )
    told = f"inverse({function})"
    if known:
        wanted = ", ".join(arguments.names[key] for key in asked)
        told += f" with respect to {wanted}"
    return Call(undone, (*parts, *others), {}, name, told)


def _results(
    of_asked: Callable[[Sequence[Any]], Callable[..., Any]],
    like: Sequence[Any],
    others: Sequence[Any],
) -> Any:
    """Return the function's results as structs; raise the function's errors."""
    known = [_arrays(other) for other in others]

    def run(values: Sequence[Any], known_arrays: Sequence[Any]) -> Any:
        whole = [_filled(other, arrays) for other, arrays in zip(others, known_arrays, strict=True)]
        return of_asked(whole)(*values)

    return jax.eval_shape(run, list(like), known)


def _arrays(value: Any) -> list[Any]:
    return [leaf for leaf in jax.tree_util.tree_leaves(value) if is_array(leaf)]


def _filled(like: Any, arrays: Sequence[Any]) -> Any:
    """Return a pytree with replaced arrays."""
    leaves, structure = jax.tree_util.tree_flatten(like)
    own = iter(arrays)
    whole = [next(own) if is_array(leaf) else leaf for leaf in leaves]
    return jax.tree_util.tree_unflatten(structure, whole)


def _emptied(like: Any, arrays: Sequence[Any]) -> Any:
    """Return a pytree with replaced arrays, and `None` for all other leaves."""
    leaves, structure = jax.tree_util.tree_flatten(like)
    own = iter(arrays)
    whole = [next(own) if is_array(leaf) else None for leaf in leaves]
    return jax.tree_util.tree_unflatten(structure, whole)


def _labels(count: int, taken: Sequence[str]) -> list[str]:
    """Return names of the parameters for results: `y`, or `y0`, `y1`, …."""
    base = "y"
    while True:
        labels = [base] if count == 1 else [f"{base}{index}" for index in range(count)]
        if set(labels).isdisjoint(taken):
            return labels
        base += "_"


def _identifiers(names: Sequence[str]) -> list[str]:
    return [name if name.isidentifier() else f"known{index}" for index, name in enumerate(names)]
