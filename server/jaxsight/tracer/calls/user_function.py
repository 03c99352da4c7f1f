"""Find the function that a request names, as a callable that JAX can trace.

Wrappers that hide the traced body in one `jit` equation are unwrapped (`eqx.filter_jit`,
`nnx.jit`); `jax.jit` objects stay, for their static arguments, and so do those that define
derivatives (`custom_vjp`).
This module does not import flax or equinox.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from jaxsight.tracer.failures import UserError, failure, refusal
from jaxsight.tracer.importing import placeholders
from jaxsight.tracer.states import nnx

_OPENED = {
    ("equinox", "_JitWrapper"),
    *(("flax", name) for name in ("JitFn", "SimpleJitFn", "SimpleJitPartialFn", *nnx.JITTED)),
}
"""Package and class of wrappers around `jax.jit`; each has the user's function as `__wrapped__`."""

_TRANSFORMED = {("haiku", name) for name in ("Transformed", "TransformedWithState")}
"""Package and class of what `hk.transform` makes of the user's function.

That is the attribute `_original_fn` of its functions: `tie_in_original_fn` of
haiku/_src/transform.py, 0.0.5 to 0.0.17.
"""

_PURE = {("equinox", "_JitWrapper")}
"""Wrappers that return only the function's results, and pass numbers on unchanged."""


@dataclass(frozen=True, slots=True)
class UserFunction:
    """The function.

    `jitted`: it is a `jax.jit` object.
    `owner` is the class of a method that still needs its `self`.
    `wrapper` is the library's own jitted function around `call`, `pure` if it drops the function's
    updates.
    """

    call: Callable[..., object]
    jitted: bool = False
    owner: type | None = None
    wrapper: object = None
    pure: bool = False

    @property
    def donates(self) -> tuple[bool, bool]:
        """Whether the buffers of the first argument, and those of the others, are donated."""
        wrapper = self.wrapper if self.pure else None
        first, others = (getattr(wrapper, f"donate_{which}", False) for which in ("first", "rest"))
        return bool(first), bool(others)


@dataclass(frozen=True, slots=True)
class TraceableCall:
    """A function with the inputs to trace it with; `about` describes it for users."""

    function: Callable[..., object]
    args: tuple[object, ...]
    kwargs: dict[str, object]
    name: str
    about: str


def find(namespace: Mapping[str, object], name: str) -> UserFunction:
    """Look up `name` (`f`, `Class.method`).

    Raises:
        UserError: there is no such function, or it cannot be traced; its stage is `find`.
    """
    first, *attributes = name.split(".")
    if "<locals>" in attributes:
        raise refusal("find", f"{name} is a nested function: trace the enclosing function instead")
    if first not in namespace:
        raise refusal("find", f"{first} is not defined after running the module", type="NameError")
    value, owner = namespace[first], None
    for part in attributes:
        value, owner = _member(value, part, name)
    found = opened(value, owner)
    _check(found.call, name)
    return found


def opened(value: object, owner: type | None = None) -> UserFunction:
    """Return a function without the wrappers that hide its body."""
    value = placeholders.opened(value)
    call: Any = value
    while _kind(call) in _OPENED and (inside := getattr(call, "__wrapped__", None)) is not None:
        call = inside
    wrapper = value if call is not value else None
    if _kind(call) in _TRANSFORMED:
        call = getattr(call.apply, "_original_fn", call)
    return UserFunction(call, _is_jitted(call), owner, wrapper, _kind(wrapper) in _PURE)


def as_called(function: UserFunction) -> UserFunction:
    """Return the function inside of JAX's transformations other than `jit`, such as `vmap`.

    What it was called with is what they pass to it. A constructor is the class.
    """
    call: Any = function.call
    if function.owner is not None and getattr(call, "__name__", "") == "__init__":
        return UserFunction(function.owner)
    inner = call
    while callable(inside := getattr(inner, "__wrapped__", None)):
        call = inside if _is_transformation(inner) else call
        inner = inside
    return function if call is function.call else opened(call, function.owner)


def _is_transformation(value: object) -> bool:
    """Return whether a wrapper is one that passes something else on than it was called with."""
    if isinstance(value, FunctionType):
        return str(value.__globals__.get("__name__")).startswith(("jax.", "flax.nnx."))
    return type(value).__module__.startswith(("equinox._ad", "equinox._vmap_pmap"))


def _member(holder: object, part: str, name: str) -> tuple[object, type | None]:
    """Return the function of an attribute, and the class whose `self` it needs, if any."""
    try:
        # Decide by what the class holds: `getattr` calls properties and binds methods.
        static = inspect.getattr_static(holder, part)
        value = getattr(holder, part)
    except AttributeError:
        words = f"{name} is not defined after running the module"
        raise refusal("find", words, type="NameError") from None
    except Exception as error:
        raise UserError(failure(error, "find")) from error
    owner = holder if isinstance(holder, type) else None
    match static:
        case property() if static.fget is not None:
            return static.fget, owner
        case functools.cached_property():
            return static.func, owner
        case staticmethod() | classmethod() | type():
            return value, None
        case _:
            return value, owner


def _kind(value: object) -> tuple[str, str]:
    """Return the package and the name of a value's class."""
    return str(type(value).__module__).partition(".")[0], type(value).__name__


def _is_jitted(value: object) -> bool:
    # jaxlib's class has no public name.
    return type(value).__name__ == "PjitFunction" and hasattr(value, "trace")


def _check(value: Any, name: str) -> None:
    if isinstance(value, type):
        raise refusal("find", f"{name} is a class: trace one of its methods instead")
    if not callable(value):
        raise refusal("find", f"{name} is not a function but of type {type(value).__name__}")
    body = value
    while isinstance(body, functools.partial) or _is_jitted(body):
        body = body.func if isinstance(body, functools.partial) else body.__wrapped__
    if inspect.iscoroutinefunction(body):
        raise refusal("find", f"{name} is an async function: JAX cannot trace it")
    if inspect.isasyncgenfunction(body) or inspect.isgeneratorfunction(body):
        raise refusal("find", f"{name} is a generator: JAX cannot trace it")
