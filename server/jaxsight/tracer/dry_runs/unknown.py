"""The value of what failed in a dry run, or depends on something that did."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterator
from typing import NoReturn

from jaxsight.text import unknown_sizes
from jaxsight.tracer.importing.placeholders import MissingObject
from jaxsight.tracer.isolation import code_origins


class UnknownValueError(TypeError):
    """Code needs a value that is unknown."""


class Unknown:
    """An object that nothing is known of: its attributes, items and results are unknown too.

    Nobody can compute with it: arrays, numbers and conditions cannot be made of it. Its attributes
    and items are the same objects each time, as one size may be taken from them twice.
    """

    __slots__ = ("_parts",)
    __array_ufunc__ = None
    _parts: dict[object, Unknown]

    def __init__(self) -> None:
        object.__setattr__(self, "_parts", {})

    def __getattr__(self, name: str) -> Unknown:
        if name == "_parts" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return self._parts.setdefault(name, _UnknownShape() if name == "shape" else Unknown())

    def __getitem__(self, key: object) -> object:
        try:
            return self._parts.setdefault((key,), Unknown())
        except TypeError:  # it has no hash, as a slice before Python 3.12
            return Unknown()

    def __setattr__(self, name: str, value: object) -> None:
        """Ignore the value."""

    def __setitem__(self, key: object, value: object) -> None:
        """Ignore the value."""

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return (_UnknownBase,) if bases[0] is self else ()

    def __iter__(self) -> Iterator[Unknown]:
        yield Unknown()

    def __exit__(self, *error: object) -> None:
        """Let errors pass."""

    def __format__(self, spec: str) -> str:
        return "?"

    def __repr__(self) -> str:
        return "<unknown>"

    def __bool__(self) -> NoReturn:
        raise UnknownValueError("its value is unknown")

    def __eq__(self, other: object) -> Unknown:  # type: ignore[override]
        return Unknown()

    __hash__ = object.__hash__

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        raise UnknownValueError("its value is unknown")

    def _operated(self, *others: object, **named: object) -> Unknown:
        return Unknown()

    __call__ = __next__ = __enter__ = __copy__ = __deepcopy__ = _operated
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _operated
    __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = (
        _operated
    )
    __matmul__ = __rmatmul__ = __neg__ = __pos__ = __abs__ = __invert__ = _operated
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _operated
    __lt__ = __le__ = __gt__ = __ge__ = __ne__ = _operated  # type: ignore[assignment]


class _UnknownShape(Unknown):
    """The shape of something unknown: its items are sizes."""

    __slots__ = ()

    def __getitem__(self, key: object) -> object:
        part = super().__getitem__(key)
        return sizes.of(part) if isinstance(key, int) else part


class UnknownSizes:
    """The numbers that stand for unknown sizes in one dry run, by what they are sizes of."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[object, int]] = {}
        """By the ids of objects, which stay alive."""
        self.places: dict[str, tuple[str, int, int]] = {}
        """By name, the file and the line of the project's code that needed it first; its number."""
        self._keys: dict[str, _Key] = {}
        """By name, what a size is in each run."""
        self._divisors: dict[_Key, int] = {}
        """What the program divides sizes by."""
        self._equal: dict[_Key, tuple[_Key | None, _Place]] = {}
        """Sizes that have to be equal to others, and where; to none if that does not help."""
        self.has_changed = False
        """Whether another run would have other numbers."""

    def begin(self) -> None:
        """Begin with another program, of which no run has shown what its sizes have to be."""
        self._divisors.clear()
        self._equal.clear()

    def clear(self) -> None:
        """Begin another dry run."""
        self._of.clear()
        self.places.clear()
        self._keys.clear()
        self.has_changed = False

    def of(self, value: object) -> object:
        """Return the number of an unknown value or its length; the value if none is left."""
        known = self._of.get(id(value))
        if known is not None:
            return known[1]
        if len(self._of) == len(unknown_sizes.NAMES):
            return value
        place = code_origins.caller(sys._getframe(1))
        key = (*place, sum(each[:2] == place for each in self._keys.values()))
        other = self._equal.get(key, (None,))[0]
        name = next((name for name, each in self._keys.items() if each == other), "")
        if not name:
            name = f"?{unknown_sizes.NAMES[len(self._of)]}"
            self._keys[name] = key
        number = unknown_sizes.number(name, self._divisors.get(self._keys[name], 1))
        if number is None:
            return value
        self._of[id(value)] = value, number
        self.places.setdefault(name, (*place, number))
        return number

    def divided(self, number: int, divisor: int) -> None:
        """Note that a number is divided without a rest, for the next run."""
        name, needed = unknown_sizes.factor(number, divisor)
        if name not in self._keys or number % divisor == 0:
            return
        every = math.lcm(self._divisors.get(self._keys[name], 1), needed)
        if unknown_sizes.number(name, every) is not None:
            self._divisors[self._keys[name]] = every
            self.has_changed = True

    def failed(self, text: str, place: _Place) -> None:
        """Note what the message of an error asks of sizes: a divisor, or that two are equal."""
        numbers = [*dict.fromkeys(map(int, _NUMBER.findall(text)))]
        names = {*map(unknown_sizes.formula, numbers)} - {""}
        for key, (other, of) in self._equal.items():
            if of == place and names:  # it is not that
                self.has_changed |= other is not None
                self._equal[key] = None, place
                return
        sizes = [name for name in self._keys if name in names]
        if len(names) == len(sizes) == 2:
            first, second = (self._keys[name] for name in sizes)
            if second not in self._equal:
                self._equal[second] = first, place
                self.has_changed = True
        elif len(names) == 1:
            for number in filter(is_size, numbers):
                for divisor in numbers:
                    if 1 < divisor <= _LARGEST_DIVISOR:
                        self.divided(number, divisor)

    def given(
        self,
        function: Callable[..., object],
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """Return arguments with numbers for the unknown ones that a parameter says are sizes.

        Its annotation has to be `int` and its name that of a size: with five million layers nobody
        builds a model. Of a `shape`, each unknown item is one.
        """
        is_class = isinstance(function, type)
        try:
            signature = inspect.signature(function.__init__ if is_class else function)
            bound = signature.bind(*((None, *args) if is_class else args), **kwargs)
        except Exception:  # noqa: BLE001 - user code, or a metaclass that takes anything
            return args, kwargs
        for name, value in bound.arguments.items():
            annotation = signature.parameters[name].annotation
            text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
            if name == "shape" and isinstance(value, tuple | list):
                numbers = (self.of(each) if is_unknown(each) else each for each in value)
                bound.arguments[name] = tuple(numbers)
            elif is_unknown(value) and _INTEGER.fullmatch(text) and _SIZE.search(name):
                bound.arguments[name] = self.of(value)
        return bound.args[is_class:], bound.kwargs


sizes = UnknownSizes()
_Place = tuple[str, int]
_Key = tuple[str, int, int]
"""The file and the line that a size is from, and its number of those that are from there."""
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_LARGEST_DIVISOR = 4096
"""The largest number of a message that is taken for a divisor of a size, a choice."""

_INTEGER = re.compile(r"(?:typing\.)?(?:Optional\[)?int(?:\]| \| None)?|.*\bint\b.*'scalar'.*")
"""Annotations of whole numbers; the last one is that of Equinox' layers."""
_SIZE = re.compile(
    r"(?:size|dim|features|classes|embeddings|vocab|width|channels|length|samples)s?$"
)
"""Names of parameters that are sizes of arrays, in contrast to layers, heads, steps and axes."""


class Rest(int):
    """What dividing an unknown size leaves: 0 for the number that stands for it, but unknown."""


class _UnknownBase:
    """What a class inherits from something unknown."""

    def __getattr__(self, name: str) -> Unknown:
        return getattr(Unknown(), name)  # type: ignore[no-any-return]


class SomeItems(list[object]):
    """What stands for unknown many items in a loop: one of them."""


def is_unknown(value: object) -> bool:
    """Return whether a value is unknown, or stands for something that is missing."""
    return type(value) in (Unknown, _UnknownShape, MissingObject)


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
    return tuple(map(shaped_like, template)) if isinstance(template, tuple) else Unknown()


def is_size(value: object) -> bool:
    """Return whether a number follows from an unknown size."""
    return isinstance(value, int) and unknown_sizes.formula(value) != ""


def has_size(value: object) -> bool:
    """Return whether a number does, or one of those in a tuple or list."""
    return any(map(is_size, value)) if isinstance(value, tuple | list) else is_size(value)


def fills_memory(function: object, args: tuple[object, ...]) -> bool:
    """Return whether a call with unknown sizes would make an array of numpy, which has values."""
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or type(owner).__module__
    if not isinstance(module, str) or module.partition(".")[0] != "numpy":
        return False
    # `randint(0, len(data), 16)` only draws from a range.
    ranged = 2 if getattr(function, "__name__", "") in ("randint", "integers") else 0
    return any(map(has_size, args[ranged:])) or not args
