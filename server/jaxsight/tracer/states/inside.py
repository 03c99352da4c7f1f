"""Functions that only run inside of a library's context, as `hk.transform` or NumPyro's handlers.

Which ones do is known once a trace outside of it failed with the library's own error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar

from jaxsight.tracer.calls.user_function import UserFunction
from jaxsight.tracer.states import haiku, numpyro
from jaxsight.wire.observations import Failure

Made = TypeVar("Made")
Unit = tuple[str, str]
"""A function's file and name."""

_LIBRARIES = {"haiku": haiku, "numpyro": numpyro}
_of: dict[Unit, str] = {}


def newly(unit: Unit, failure: Failure) -> bool:
    """Return whether an error says that a function runs inside of a context, for the first time."""
    found = next((name for name, each in _LIBRARIES.items() if each.is_outside(failure)), None)
    if found is None or unit in _of:
        return False
    _of[unit] = found
    return True


def runs(unit: Unit) -> bool:
    """Return whether a function runs inside of a context."""
    return unit in _of


def made(unit: Unit, make: Callable[[], Made]) -> Made:
    """Return the inputs of a function, made inside of its context: they may be its modules."""
    return haiku.made(make) if _of.get(unit) == "haiku" else make()


def applied(
    unit: Unit, function: UserFunction, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[UserFunction, tuple[object, ...], dict[str, object]]:
    """Return a function of what the context gives it, and of its arguments, with all of these."""
    library = _LIBRARIES[_of[unit]]
    given, call = library.applied(function.call, args, kwargs)
    return (
        UserFunction(_signed(call, function.call, given), False, None),
        (*given.values(), *args),
        kwargs,
    )


def _signed(
    call: Callable[..., object], own: Callable[..., object], given: Mapping[str, object]
) -> Callable[..., object]:
    """Return a function with the user's name and signature, after what the context gives it."""

    def signed(*args: object, **kwargs: object) -> object:
        return call(dict(zip(given, args, strict=False)), args[len(given) :], kwargs)

    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(signed, name, getattr(own, name, None))
    kinds = inspect.Parameter
    parameters = [*inspect.signature(own).parameters.values()]
    taken = {parameter.name for parameter in parameters}
    first = [kinds(f"{n}_" if n in taken else n, kinds.POSITIONAL_ONLY) for n in given]
    signed.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*first, *parameters], __validate_parameters__=False
    )
    return signed
