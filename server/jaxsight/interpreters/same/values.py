"""Comparison of the parameters of two equations, which are values of any type."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Hashable, Mapping, Sequence

import jax
import numpy as np

from jaxsight.interpreters.compat.hi_primitives import params_of_object
from jaxsight.interpreters.compat.rule_identity import is_wrapped_function, is_wrapper
from jaxsight.interpreters.compat.staging import Program, is_jaxpr, is_tracer, opened
from jaxsight.interpreters.contents import Identity, contents
from jaxsight.interpreters.same.difference import Parted, require, step_to_inner
from jaxsight.interpreters.same.tokens import value_token

_INFORMATION = frozenset({"debug", "debug_info"})
"""Fields of JAX's own dataclasses that do not affect the results."""

_BY_IDENTITY: object = object.__eq__

TRUSTED = frozenset({"builtins", "enum", "functools", "jax", "jaxlib", "ml_dtypes", "numpy"})
"""Packages whose `==` is trusted."""

_NUMBERS = (bool, int, float, complex, np.generic)
"""Types of numbers that differ although `==` is true: `0.0` and `-0.0`, `1` and `True`."""


class ValueComparison:
    """Compares values of any type; raises `Parted` where they differ.

    Args:
        compare_programs: compares the jaxprs among the values.
    """

    def __init__(self, compare_programs: Callable[[Program, Program], None]) -> None:
        self._compare_programs = compare_programs
        self._opening: set[tuple[int, int]] = set()
        """Pairs of ids of the objects whose contents are being compared."""

    def compare(self, what: str, left: object, right: object) -> None:
        """Compare two values; `what` describes them in the difference."""
        left, right = _without_vacuous_sharding(left), _without_vacuous_sharding(right)
        if left is right:
            return
        if is_jaxpr(left) and is_jaxpr(right):
            self._compare_programs(opened(left), opened(right))
            return
        if type(left) is not type(right):
            # A size may be Python's or NumPy's integer.
            if _equal_integers(left, right) or _equal_of_jax(left, right):
                return
            raise Parted(what, _typed(left), _typed(right))
        require(not is_tracer(left), what, left, right)
        if isinstance(left, (tuple, list, dict, set, frozenset)):
            self._collections(what, left, right)
        elif isinstance(left, (np.ndarray, jax.Array)):
            require(value_token(left) == value_token(right), what, left, right)
        elif isinstance(left, (float, complex, np.generic)):
            same_bits = np.asarray(left).tobytes() == np.asarray(right).tobytes()
            require(same_bits, what, left, right)
        else:
            self._objects(what, left, right)

    def _collections(self, what: str, left: object, right: object) -> None:
        """Compare two collections of one type."""
        match left, right:
            case ((tuple() | list()), (tuple() | list())):
                self._sequences(what, left, right)
            case dict(), dict():
                self._dictionaries(what, left, right)
            case ((set() | frozenset()), (set() | frozenset())):
                require(set(map(_key, left)) == set(map(_key, right)), what, left, right)
                return
        if not _is_plain(left):  # a user's class, which may have other attributes
            self._contents(what, left, right)

    def _sequences(self, what: str, left: Sequence[object], right: Sequence[object]) -> None:
        require(len(left) == len(right), what, left, right)
        for index, (part, counterpart) in enumerate(zip(left, right, strict=True)):
            with step_to_inner(str(index)):
                self.compare(what, part, counterpart)

    def _dictionaries(
        self, what: str, left: Mapping[object, object], right: Mapping[object, object]
    ) -> None:
        left_keys, right_keys = ({_key(key): key for key in side} for side in (left, right))
        require(left_keys.keys() == right_keys.keys(), what, left, right)
        for unique, key in left_keys.items():
            self.compare(what, left[key], right[right_keys[unique]])

    def _objects(self, what: str, left: object, right: object) -> None:
        """Compare two objects of one type that are neither numbers nor collections."""
        if isinstance(left, jax.tree_util.PyTreeDef):  # its `==` calls that of the user's classes
            self._contents(what, left, right)
        elif isinstance(left, jax.lax.Tolerance):
            self.compare(what, vars(left), vars(right))
        elif dataclasses.is_dataclass(left) and is_of_jax(left):
            for field in dataclasses.fields(left):
                if field.name not in _INFORMATION:
                    first, second = (getattr(side, field.name, None) for side in (left, right))
                    self.compare(what, first, second)
        elif _is_trusted(left) and _plain_equal(left, right):
            return
        elif (params := params_of_object(left)) is not None:
            self.compare(what, params, params_of_object(right))
        elif is_wrapped_function(left) and is_wrapped_function(right):
            self.compare(what, left.f, right.f)
            self.compare(what, left.params, right.params)
        else:
            self._contents(what, left, right)

    def _contents(self, what: str, left: object, right: object) -> None:
        """Compare two objects by their contents if their `==` compares identity.

        Objects that contain each other are the same if nothing else differs.
        """
        pair = id(left), id(right)
        if pair in self._opening:
            return
        left_parts, right_parts = contents(left), contents(right)
        if left_parts is None or right_parts is None or len(left_parts) != len(right_parts):
            raise Parted(what, left, right)
        self._opening.add(pair)
        try:
            self.compare(what, left_parts, right_parts)
        finally:
            self._opening.discard(pair)


def _without_vacuous_sharding(value: object) -> object:
    """Return a parameter; None for a sharding over a mesh without axes.

    Derivatives leave such shardings behind; they place nothing and compile to nothing.
    """
    match value:
        case jax.sharding.NamedSharding(memory_kind=None | "device") if not value.mesh.axis_names:
            return None
        case _:
            return value


def _equal_integers(left: object, right: object) -> bool:
    return _is_integer(left) and _is_integer(right) and left == right


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def package(cls: type) -> str:
    return str(cls.__module__).partition(".")[0]


def is_of_jax(value: object) -> bool:
    return package(type(value)) in ("jax", "jaxlib")


def _is_trusted(value: object) -> bool:
    """Return whether the `==` of a value can be trusted.

    Trusted are objects of Python, NumPy and JAX, and those that compare by identity.
    """
    cls = type(value)
    if issubclass(cls, enum.Enum) or getattr(cls, "__eq__", None) is _BY_IDENTITY:
        return True
    wraps = isinstance(value, functools.partial) or is_wrapper(value)
    return package(cls) in TRUSTED and not wraps


def _equal_of_jax(left: object, right: object) -> bool:
    """Return whether JAX or NumPy objects of two types are equal, as dtypes and layouts may be."""
    kinds = (*_NUMBERS, str, tuple, list, dict, set, frozenset)
    if isinstance(left, kinds) and isinstance(right, kinds):
        return False
    return _is_trusted(left) and _is_trusted(right) and _plain_equal(left, right)


def _is_plain(value: object) -> bool:
    """Return whether a tuple, list or dictionary has nothing but its items."""
    return not getattr(value, "__dict__", None)


def _key(value: object) -> Hashable:
    """Return a key that is equal for dictionary keys and members of sets that are the same.

    `0.0` and `-0.0`, `1` and `True` are different.
    """
    if isinstance(value, _NUMBERS):
        return (type(value), np.asarray(value).dtype.str, np.asarray(value).tobytes())
    if isinstance(value, tuple):
        return (type(value), *map(_key, value))
    if isinstance(value, frozenset):
        return (type(value), frozenset(map(_key, value)))
    return (type(value), value if _is_trusted(value) else Identity(value))


def _typed(value: object) -> str:
    return f"{value!r} ({type(value).__name__})"


def _plain_equal(left: object, right: object) -> bool:
    try:
        return bool(left == right)
    except (TypeError, ValueError, RuntimeError):
        return False
