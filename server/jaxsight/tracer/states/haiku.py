"""Haiku: functions that run inside of `hk.transform`, as functions of their parameters and state.

Public API of dm-haiku (`transform`, `transform_with_state`) and words of its errors, 0.0.9 to
0.0.17: `assert_context` of haiku/_src/base.py, `wrap_method` of haiku/_src/module.py, and
`APPLY_RNG_ERROR` of haiku/_src/transform.py. Haiku is never imported here.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import jax

from jaxsight.tracer.calls.user_function import UserFunction
from jaxsight.tracer.states.linen import shapes

Answer = TypeVar("Answer")
_Args = tuple[object, ...]

_OUTSIDE = re.compile(
    r"(?:initialized inside|used as part of) an `hk\.transform`"
    r"|used outside of hk\.transform"
)
_NEEDS_KEY = re.compile(r"non-None PRNGKey")

inside: set[tuple[str, str]] = set()
"""The functions that run inside of `hk.transform`, by file and name."""


def runs_inside(unit: tuple[str, str], message: str) -> bool:
    """Note that a function runs inside of `hk.transform`, if an error newly says so.

    Args:
        unit: its file and name.
        message: that of the error.
    """
    is_new = unit not in inside and _OUTSIDE.search(message) is not None
    inside.update([unit] if is_new else [])
    return is_new


def made_inside(make: Callable[[], Answer]) -> Answer:
    """Return what is made inside of `hk.transform`, such as a module."""
    made: list[Answer] = []
    _library().transform(lambda: made.append(make())).init(jax.random.PRNGKey(0))
    return made[0]


def applied(
    function: UserFunction, args: _Args, kwargs: dict[str, object]
) -> tuple[UserFunction, _Args, dict[str, object]]:
    """Return a function as `apply` of its transformed function, with the arguments.

    Parameters and state are those that `init` creates with these arguments, without values. They
    are the first arguments, and a key, if there are any; state that there is becomes a result.
    """

    def own(*args: object, **kwargs: object) -> object:
        return function.call(*args, **kwargs)

    key = jax.eval_shape(lambda: jax.random.PRNGKey(0))
    transformed = _library().transform_with_state(own)

    def made(key: object, args: _Args, kwargs: dict[str, object]) -> object:
        return transformed.init(key, *args, **kwargs)

    initial = shapes(made, key, args, kwargs)
    assert isinstance(initial, tuple)
    given = {"params": initial[0], "state": initial[1], "rng": None}
    run = functools.partial(_run, transformed.apply)
    try:
        shapes(run, given, args, kwargs)
    except Exception as error:
        if not _NEEDS_KEY.search(str(error)):
            raise
        given["rng"] = key
    extra = {name: value for name, value in given.items() if value}

    @functools.wraps(function.call, updated=())
    def call(*args: object, **kwargs: object) -> object:
        first = dict(zip(extra, args, strict=False))
        return run(first, args[len(extra) :], kwargs)

    del call.__wrapped__
    kinds = inspect.Parameter
    parameters = [*inspect.signature(function.call).parameters.values()]
    taken = {parameter.name for parameter in parameters}
    more = [kinds(f"hk_{n}" if n in taken else n, kinds.POSITIONAL_ONLY) for n in extra]
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*more, *parameters], __validate_parameters__=False
    )
    return UserFunction(call, False, None), (*extra.values(), *args), kwargs


def _run(
    apply: Callable[..., tuple[object, object]],
    given: dict[str, object],
    args: _Args,
    kwargs: dict[str, object],
) -> object:
    """Return a function's result, with the state that it leaves if it has any."""
    params, state, rng = (given.get(name) for name in ("params", "state", "rng"))
    result, after = apply(params or {}, state or {}, rng, *args, **kwargs)
    return (result, after) if after else result


def _library() -> Any:
    return sys.modules["haiku"]
