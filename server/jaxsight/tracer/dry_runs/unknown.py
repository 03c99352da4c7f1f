"""The value of what failed in a dry run, or depends on something that did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from jaxsight.tracer.importing.placeholders import MissingObject


class UnknownValueError(TypeError):
    """Code needs a value that is unknown."""


class Unknown:
    """An object that nothing is known of: its attributes, items and results are unknown too.

    Nobody can compute with it: arrays, numbers and conditions cannot be made of it.
    """

    __slots__ = ()
    __array_ufunc__ = None

    def __getattr__(self, name: str) -> Unknown:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        """Ignore the value."""

    def __setitem__(self, key: object, value: object) -> None:
        """Ignore the value."""

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return (_UnknownBase,) if bases[0] is self else ()

    def __iter__(self) -> Iterator[Unknown]:
        yield self

    def __exit__(self, *error: object) -> None:
        """Let errors pass."""

    def __format__(self, spec: str) -> str:
        return "?"

    def __repr__(self) -> str:
        return "<unknown>"

    def __bool__(self) -> NoReturn:
        raise UnknownValueError("its value is unknown")

    def __eq__(self, other: object) -> Unknown:  # type: ignore[override]
        return self

    __hash__ = object.__hash__

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        raise UnknownValueError("its value is unknown")

    def _operated(self, *others: object, **named: object) -> Unknown:
        return self

    __call__ = __getitem__ = __next__ = __enter__ = _operated
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _operated
    __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = (
        _operated
    )
    __matmul__ = __rmatmul__ = __neg__ = __pos__ = __abs__ = __invert__ = _operated
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _operated
    __lt__ = __le__ = __gt__ = __ge__ = __ne__ = _operated  # type: ignore[assignment]


UNKNOWN = Unknown()


class _UnknownBase:
    """What a class inherits from something unknown."""

    def __getattr__(self, name: str) -> Unknown:
        return getattr(UNKNOWN, name)  # type: ignore[no-any-return]


def is_unknown(value: object) -> bool:
    """Return whether a value is unknown, or stands for something that is missing."""
    return type(value) in (Unknown, MissingObject)


def has_unknown(value: object, depth: int = 3) -> bool:
    """Return whether a value is unknown, or a container of something unknown, `depth` deep."""
    match value:
        case Unknown() | MissingObject():
            return True
        case dict() if depth:
            return any(has_unknown(part, depth - 1) for part in tuple(value.values()))
        case list() | tuple() if depth:
            return any(has_unknown(part, depth - 1) for part in tuple(value))
        case _:
            return False


def shaped_like(template: object) -> object:
    """Return unknown values in the nested tuples that a loop's target unpacks."""
    return tuple(map(shaped_like, template)) if isinstance(template, tuple) else UNKNOWN
