"""Haiku: functions that run inside of `hk.transform`, as functions of their parameters and state.

Public API of dm-haiku (`transform_with_state`, `running_init`) and words of its errors, 0.0.9 to
0.0.17: `assert_context` of haiku/_src/base.py, `wrap_method` of haiku/_src/module.py, and
`APPLY_RNG_ERROR` of haiku/_src/transform.py. Haiku is never imported here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TypeVar

import jax

from jaxsight.tracer.states.linen import shapes
from jaxsight.wire.observations import Failure

Made = TypeVar("Made")
_Args = tuple[object, ...]

_OUTSIDE = re.compile(
    r"(?:initialized inside|used as part of) an `hk\.transform`|used outside of hk\.transform"
)
_NEEDS_KEY = re.compile(r"non-None PRNGKey")


def is_outside(failure: Failure) -> bool:
    """Return whether an error is that of a function that was called outside of `hk.transform`."""
    return _OUTSIDE.search(failure.message) is not None


def is_running() -> bool:
    """Return whether the current code runs inside of `hk.transform`."""
    if "haiku" not in sys.modules:
        return False
    try:
        sys.modules["haiku"].running_init()
    except ValueError:
        return False
    return True


def made(make: Callable[[], Made]) -> Made:
    """Return what is made inside of `hk.transform`, such as a module."""
    results: list[Made] = []
    sys.modules["haiku"].transform(lambda: results.append(make())).init(jax.random.PRNGKey(0))
    return results[0]


def applied(
    function: Callable[..., object], args: _Args, kwargs: dict[str, object]
) -> tuple[dict[str, object], Callable[..., object]]:
    """Return parameters, state and key that a function takes by name, and `apply` with these.

    Parameters and state are those that `init` creates with these arguments, without values. State
    that there is becomes a result.
    """
    key = jax.eval_shape(lambda: jax.random.PRNGKey(0))
    transformed = sys.modules["haiku"].transform_with_state(
        lambda *args, **kwargs: function(*args, **kwargs)
    )

    def initialized(key: object, args: _Args, kwargs: dict[str, object]) -> object:
        return transformed.init(key, *args, **kwargs)

    def run(given: dict[str, object], args: _Args, kwargs: dict[str, object]) -> object:
        params, state, rng = (given.get(name) for name in ("params", "state", "rng"))
        result, after = transformed.apply(params or {}, state or {}, rng, *args, **kwargs)
        return (result, after) if after else result

    initial = shapes(initialized, key, args, kwargs)
    assert isinstance(initial, tuple)
    given = {name: value for name, value in zip(("params", "state"), initial, strict=True) if value}
    try:
        shapes(run, given, args, kwargs)
    except Exception as error:
        if not _NEEDS_KEY.search(str(error)):
            raise
        given["rng"] = key
    return given, run
