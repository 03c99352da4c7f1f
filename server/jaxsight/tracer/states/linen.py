"""Flax Linen: modules without their variables, and their methods as functions of variables.

Public API of `flax.linen.Module` and its errors; `clone(_deep_clone, _reset_names)` as
`Module.unbind` has it (flax/linen/module.py, 0.8 to 0.12).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import jax

from jaxsight.recording import expressions
from jaxsight.tracer.calls.leaves import shapes
from jaxsight.tracer.calls.parameters import signed

_NEEDED = re.compile(r'needs PRNG for "(\w+)"')
"""The stream of random numbers that is missing (`flax.errors.InvalidRngError`)."""
_Args = tuple[object, ...]
_STREAMS = 4
"""Streams of random numbers besides that of parameters that are tried, each by another trace."""


def is_module(value: object) -> bool:
    """Return whether a value is a module of Linen."""
    return expressions.is_of(type(value), "flax.linen", "Module")


def unbound(module: Any) -> Any:
    """Return an equal module without variables."""
    return module.clone(_deep_clone=True, _reset_names=True, name=None)


def applied(
    module: Any, method: str, args: _Args, kwargs: dict[str, object]
) -> tuple[Callable[..., object], tuple[object, ...], dict[str, object]]:
    """Return a method as a function of the module's variables, with its arguments.

    The variables are those that initializing the module with these arguments creates, and they have
    no values. Collections other than parameters may be updated; they are results then.
    """
    streams: dict[str, object] = {}
    key = jax.eval_shape(lambda: jax.random.key(0))

    def made(keys: object, args: _Args, kwargs: dict[str, object]) -> object:
        return module.init(keys, *args, method=method, **kwargs)

    def run(
        variables: Mapping[str, object], args: _Args, kwargs: dict[str, object], keys: object
    ) -> object:
        updated = [name for name in variables if name != "params"]
        return module.apply(
            variables, *args, rngs=keys, method=method, mutable=updated or False, **kwargs
        )

    variables = _with_streams(
        lambda keys: shapes(made, {"params": key, **keys}, args, kwargs), streams, key
    )
    streams.clear()
    _with_streams(lambda keys: shapes(run, variables, args, kwargs, keys), streams, key)

    def call(variables: Mapping[str, object], *args: object, **kwargs: object) -> object:
        keys = kwargs.pop("rngs", {})
        return run(variables, args, kwargs, keys)

    kinds = inspect.Parameter
    more = [kinds("variables", kinds.POSITIONAL_ONLY)]
    if streams:
        more.append(kinds("rngs", kinds.KEYWORD_ONLY))
        kwargs = {**kwargs, "rngs": streams}
    # Bound, as the parameters of the module's method are without `self`.
    own = getattr(type(module), method).__get__(module)
    return signed(call, own, *more), (variables, *args), kwargs


def _with_streams(
    run: Callable[[dict[str, object]], object], streams: dict[str, object], key: object
) -> object:
    """Return the result of a function with the streams of random numbers that it asks for."""
    while True:
        try:
            return run(streams)
        except Exception as error:
            needed = _NEEDED.search(str(error))
            if needed is None or needed[1] in streams or len(streams) == _STREAMS:
                raise
            streams[needed[1]] = key
