"""Call a function of a file with its example inputs, as a program to capture.

The file runs as it does on import. The function is called as it is, and then under `jax.jit`. Arrays that are given by their type alone are random.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from jaxsight.wire.frames import HEADER, decode
from jaxsight.wire.messages.requests import Trace


def call_function(request_file: Path) -> None:
    """Call the function of a request.

    Args:
        request_file: the frame of a `Trace`, whose slice is not used: the whole file runs.

    Raises:
        Exception: whatever the file or the function raises.
    """
    request = decode(request_file.read_bytes()[HEADER.size :])
    assert isinstance(request, Trace)
    path = Path(request.file)
    for folder in (Path(request.root, "src"), Path(request.root), path.parent):
        sys.path.insert(0, str(folder))
    sys.argv = [request.file]
    namespace = runpy.run_path(request.file, run_name=path.stem)
    import jax

    from jaxsight.tracer.calls.inputs import Evaluator
    from jaxsight.tracer.calls.user_function import find

    user_function = find(namespace, request.function)
    inputs = Evaluator(concrete=True).inputs(request, user_function, namespace)
    args, kwargs = _with_numbers((inputs.args, inputs.kwargs))
    function = _of(namespace, request.function)
    _wait(function(*args, **kwargs))
    if not user_function.jitted:  # what was computed so far is op by op
        leaves, tree = jax.tree.flatten((args, kwargs))
        traced = [isinstance(leaf, jax.Array) for leaf in leaves]

        def jitted(*arrays: object) -> object:
            remaining = iter(arrays)
            again = [
                next(remaining) if is_traced else leaf
                for leaf, is_traced in zip(leaves, traced, strict=True)
            ]
            same_args, same_kwargs = jax.tree.unflatten(tree, again)
            return function(*same_args, **same_kwargs)

        jitted.__name__ = function.__name__
        arrays = [leaf for leaf, is_traced in zip(leaves, traced, strict=True) if is_traced]
        _wait(jax.jit(jitted)(*arrays))


def _wait(results: object) -> None:
    import jax

    for leaf in jax.tree.leaves(results):
        if isinstance(leaf, jax.Array):
            leaf.block_until_ready()


def _of(namespace: dict[str, Any], name: str) -> Callable[..., Any]:
    first, *attributes = name.split(".")
    value = namespace[first]
    for attribute in attributes:
        value = getattr(value, attribute)
    return cast(Callable[..., Any], value)


def _with_numbers(arguments: Any) -> Any:
    """Return arguments with random numbers in place of abstract arrays."""
    import jax
    import numpy as np

    from jaxsight.interpreters.compat import avals, dtypes
    from jaxsight.tracer.comparison.random_inputs import normal_numbers, random_array

    generator = np.random.default_rng(0)
    drawn = 0

    def concrete(leaf: Any) -> Any:
        nonlocal drawn
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        if dtypes.is_subtype(leaf.dtype, np.floating):
            drawn += 1
            return jax.random.normal(jax.random.key(drawn % 3), leaf.shape, leaf.dtype)
        return random_array(avals.of(leaf), normal_numbers, generator)

    return jax.tree.map(concrete, arguments)
