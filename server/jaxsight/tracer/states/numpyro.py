"""NumPyro: models that run inside of handlers, as functions of the key that `seed` gives them.

`numpyro.handlers.seed` is public. A model that samples outside of it fails in
`assert is_prng_key(key)` of the modules of numpyro/distributions, 0.13 to 0.22. NumPyro is never
imported here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import PurePath

import jax

from jaxsight.tracer.states.linen import shapes
from jaxsight.wire.observations import Failure

_WITHOUT_KEY = "unexpected PRNG key type <class 'NoneType'>"
"""What JAX says where NumPyro passes no key on: `random_wrap` and others of jax/_src/random.py."""
_WHERE = ("numpyro", "distributions")


def is_outside(failure: Failure) -> bool:
    """Return whether an error is that of a model that was called outside of handlers."""
    if "numpyro" in sys.modules and _WITHOUT_KEY in failure.message:
        return True
    where = PurePath(failure.frames[-1].file).parts[-3:-1] if failure.frames else ()
    return failure.type == AssertionError.__name__ and where == _WHERE


def applied(
    function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[dict[str, object], Callable[..., object]]:
    """Return the key that a model takes by name, and the model inside of `seed`.

    There is none if the model runs without, as it may once it was edited.
    """
    seed = sys.modules["numpyro.handlers"].seed
    key = jax.eval_shape(lambda: jax.random.PRNGKey(0))

    def run(
        given: dict[str, object], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        call = seed(function, given["rng_key"]) if given else function
        return call(*args, **kwargs)

    try:
        shapes(run, {}, args, kwargs)
    except Exception:  # noqa: BLE001 - user code, or it needs the key
        return {"rng_key": key}, run
    return {}, run
