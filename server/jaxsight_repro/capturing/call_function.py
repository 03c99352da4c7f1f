"""Call a function of a file with its example inputs, as a program to capture.

The file runs as it does on import. The function is called as it is, and then under
`jax.jit`. Arrays that are given by their type alone are random.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from jaxsight.meshes.compat import meshes
from jaxsight.tracer.calls.inputs import Evaluator
from jaxsight.tracer.calls.user_function import find
from jaxsight.wire.messages.requests import Trace
from jaxsight_source.jaxprs.arguments import with_numbers


def call_function(request: Trace, namespace: dict[str, Any]) -> None:
    """Call the function of a request.

    Args:
        request: its slice is not used: the whole file was run.
        namespace: the globals of the file.

    Raises:
        Exception: whatever the function raises.
    """
    user_function = find(namespace, request.function)
    evaluator = Evaluator(concrete=True)
    mesh = evaluator.mesh(request, namespace)
    with meshes.entered(mesh):
        inputs = evaluator.inputs(request, user_function, namespace, mesh)
        args, kwargs = with_numbers((inputs.args, inputs.kwargs))
        first, *attributes = request.function.split(".")
        function: Callable[..., object] = functools.reduce(getattr, attributes, namespace[first])
        _wait(function(*args, **kwargs))
        if not user_function.jitted:  # what was computed so far is op by op
            _wait(_jitted(function, args, kwargs)())


def _jitted(
    function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> Callable[[], object]:
    """Return a call of a function under `jax.jit`, whose arguments that are no arrays are fixed."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    is_traced = [isinstance(leaf, jax.Array) for leaf in leaves]
    if all(is_traced):
        return functools.partial(jax.jit(function), *args, **kwargs)

    @functools.wraps(function)
    def with_fixed(*arrays: object) -> object:
        remaining = iter(arrays)
        again = [
            next(remaining) if traced else leaf
            for leaf, traced in zip(leaves, is_traced, strict=True)
        ]
        same_args, same_kwargs = jax.tree.unflatten(tree, again)
        return function(*same_args, **same_kwargs)

    del with_fixed.__wrapped__
    arrays = [leaf for leaf, traced in zip(leaves, is_traced, strict=True) if traced]
    return functools.partial(jax.jit(with_fixed), *arrays)


def _wait(results: object) -> None:
    for leaf in jax.tree.leaves(results):
        if isinstance(leaf, jax.Array):
            leaf.block_until_ready()
