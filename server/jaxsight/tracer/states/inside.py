"""Functions that only run inside of a library's context, and methods of Flax Linen's modules.

The former run in `hk.transform` or NumPyro's handlers. Which ones do is known once a trace outside
of it failed with the library's own error. They are traced as functions of what the context gives
them. None of these libraries is ever imported here.

Public API of dm-haiku (`transform_with_state`, `running_init`) and words of its errors, 0.0.9 to
0.0.17: `assert_context` of haiku/_src/base.py, `wrap_method` of haiku/_src/module.py, and
`APPLY_RNG_ERROR` of haiku/_src/transform.py. `numpyro.handlers.seed` is public; a model that
samples outside of it fails in `assert is_prng_key(key)` of the modules of numpyro/distributions,
0.13 to 0.22. Public API of `flax.linen.Module` and its errors; `clone(_deep_clone, _reset_names)`
as `Module.unbind` has it (flax/linen/module.py, 0.8 to 0.12).
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, TypeVar

import jax

from jaxsight.recording import expressions
from jaxsight.tracer.calls.leaves import shapes
from jaxsight.tracer.calls.parameters import signed
from jaxsight.wire.observations import Failure

Made = TypeVar("Made")
Unit = tuple[str, str]
"""A function's file and name."""
_Args = tuple[object, ...]
_Kwargs = dict[str, object]
_Applied = tuple[_Kwargs, Callable[[_Kwargs, _Args, _Kwargs], object]]
"""What a context gives a function by name, and the function of that and its arguments."""

_OUTSIDE_HAIKU = re.compile(
    r"(?:initialized inside|used as part of) an `hk\.transform`|used outside of hk\.transform"
)
_NEEDS_KEY = re.compile(r"non-None PRNGKey")
_WITHOUT_KEY = "unexpected PRNG key type <class 'NoneType'>"
"""What JAX says where NumPyro passes no key on: `random_wrap` and others of jax/_src/random.py."""
_NUMPYRO = ("numpyro", "distributions")

_NEEDED = re.compile(r'needs PRNG for "(\w+)"')
"""The stream of random numbers that is missing (`flax.errors.InvalidRngError`)."""
_STREAMS = 4
"""Streams of random numbers besides that of parameters that are tried, each by another trace."""

_of: dict[Unit, str] = {}


def newly(unit: Unit, failure: Failure) -> bool:
    """Return whether an error says that a function runs inside of a context, for the first time."""
    where = PurePath(failure.frames[-1].file).parts[-3:-1] if failure.frames else ()
    if unit in _of:
        return False
    if _OUTSIDE_HAIKU.search(failure.message):
        _of[unit] = "haiku"
    elif ("numpyro" in sys.modules and _WITHOUT_KEY in failure.message) or (
        failure.type == AssertionError.__name__ and where == _NUMPYRO
    ):
        _of[unit] = "numpyro"
    return unit in _of


def runs(unit: Unit) -> bool:
    """Return whether a function runs inside of a context."""
    return unit in _of


def make_inputs(unit: Unit, make: Callable[[], Made]) -> Made:
    """Return the inputs of a function, made inside of its context: they may be its modules."""
    if _of.get(unit) != "haiku":
        return make()
    results: list[Made] = []
    sys.modules["haiku"].transform(lambda: results.append(make())).init(jax.random.PRNGKey(0))
    return results[0]


def applied(
    unit: Unit, function: Callable[..., object], args: _Args, kwargs: _Kwargs
) -> tuple[Callable[..., object], _Args, _Kwargs]:
    """Return a function of what the context gives it, and of its arguments, with all of these."""
    of_library = _applied_by_haiku if _of[unit] == "haiku" else _applied_by_numpyro
    given, call = of_library(function, args, kwargs)

    def run(*args: object, **kwargs: object) -> object:
        return call(dict(zip(given, args, strict=False)), args[len(given) :], kwargs)

    kinds = inspect.Parameter
    taken = inspect.signature(function).parameters
    first = [kinds(f"{n}_" if n in taken else n, kinds.POSITIONAL_ONLY) for n in given]
    return signed(run, function, *first), (*given.values(), *args), kwargs


def is_linen(value: object) -> bool:
    """Return whether a value is a module of Linen."""
    return expressions.is_of(type(value), "flax.linen", "Module")


def unbound(module: Any) -> Any:
    """Return an equal module without variables."""
    return module.clone(_deep_clone=True, _reset_names=True, name=None)


def applied_method(
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


def is_in_haiku() -> bool:
    """Return whether the current code runs inside of `hk.transform`."""
    if "haiku" not in sys.modules:
        return False
    try:
        sys.modules["haiku"].running_init()
    except ValueError:
        return False
    return True


def _applied_by_haiku(function: Callable[..., object], args: _Args, kwargs: _Kwargs) -> _Applied:
    """Return parameters, state and key that a function takes by name, and `apply` with these.

    Parameters and state are those that `init` creates with these arguments, without values. State
    that there is becomes a result.
    """
    transformed = sys.modules["haiku"].transform_with_state(
        lambda *args, **kwargs: function(*args, **kwargs)
    )

    def initialized(key: object, args: _Args, kwargs: _Kwargs) -> object:
        return transformed.init(key, *args, **kwargs)

    def run(given: _Kwargs, args: _Args, kwargs: _Kwargs) -> object:
        params, state, rng = (given.get(name) for name in ("params", "state", "rng"))
        result, after = transformed.apply(params or {}, state or {}, rng, *args, **kwargs)
        return (result, after) if after else result

    key = _key()
    initial = shapes(initialized, key, args, kwargs)
    given = {name: value for name, value in zip(("params", "state"), initial, strict=True) if value}
    try:
        shapes(run, given, args, kwargs)
    except Exception as error:
        if not _NEEDS_KEY.search(str(error)):
            raise
        given["rng"] = key
    return given, run


def _applied_by_numpyro(function: Callable[..., object], args: _Args, kwargs: _Kwargs) -> _Applied:
    """Return the key that a model takes by name, and the model inside of `seed`.

    There is none if the model runs without, as it may once it was edited.
    """
    seed = sys.modules["numpyro.handlers"].seed

    def run(given: _Kwargs, args: _Args, kwargs: _Kwargs) -> object:
        call = seed(function, given["rng_key"]) if given else function
        return call(*args, **kwargs)

    try:
        shapes(run, {}, args, kwargs)
    except Exception:  # noqa: BLE001 - user code, or it needs the key
        return {"rng_key": _key()}, run
    return {}, run


def _key() -> object:
    return jax.eval_shape(lambda: jax.random.PRNGKey(0))


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
