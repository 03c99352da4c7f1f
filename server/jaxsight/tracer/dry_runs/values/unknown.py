"""The value of what failed in a dry run, or depends on something that did."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import jax
import jax.numpy as jnp

from jaxsight.text import unknown_sizes
from jaxsight.tracer.calls.leaves import is_array
from jaxsight.tracer.dry_runs.values.partial_types import ANY, PartialType, agreed
from jaxsight.tracer.importing.placeholders import MissingObject
from jaxsight.tracer.isolation import code_origins
from jaxsight_source.compat.jaxpr_types import DType


class UnknownValueError(TypeError):
    """Code needs a value that is unknown."""


class Unknown:
    """An object of which nothing or only a part of its type as an array is known.

    Nobody can compute with it: arrays, numbers and conditions cannot be made of it. Its attributes
    and items are the same objects each time, as one size may be taken from them twice.
    """

    __slots__ = ("_method_of", "_parts", "_type")
    # Operators of NumPy's arrays then ask this class.
    __array_ufunc__ = None
    _parts: dict[object, Unknown]
    _type: PartialType | None
    _method_of: tuple[Unknown, str] | None

    def __init__(
        self, known: PartialType | None = None, method_of: tuple[Unknown, str] | None = None
    ) -> None:
        """Create an object.

        Args:
            known: what is known of its type, if it is an array.
            method_of: the object whose attribute of a name it is.
        """
        # By `object`, as `__setattr__` ignores values.
        object.__setattr__(self, "_parts", {})
        object.__setattr__(self, "_type", known)
        object.__setattr__(self, "_method_of", method_of)
        self.at_least(0)

    def __getattr__(self, name: str) -> object:
        is_special = name.startswith("__") and name.endswith("__")
        if is_special or name in (*Unknown.__slots__, *self.__slots__):
            raise AttributeError(name)
        if name in ("shape", "dtype") and (known := getattr(self._type, name, None)) is not None:
            return known
        if name == "values" and self._type is not None:
            return self
        if name == "T" and self._type is not None:
            return typed(_Method("transpose"), (self,), {})
        kind = UnknownShape if name == "shape" else Unknown
        return self._parts.setdefault(name, kind(method_of=(self, name)))

    def __getitem__(self, key: object) -> object:
        if self._type is not None and not isinstance(key, str) and not has_unknown(key):
            axes = key if isinstance(key, tuple) else (key,)
            self.at_least(sum(axis is not None and axis is not ... for axis in axes))
            return typed(operator.getitem, (self, key), {})
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

    def __iter__(self) -> Iterator[object]:
        if self._type is not None:
            yield self[0]
        yield Unknown()  # so that a loop counts as left early

    def __exit__(self, *error: object) -> None:
        """Let errors pass."""

    def __format__(self, spec: str) -> str:
        return "?"

    def __repr__(self) -> str:
        return "<unknown>"

    def __bool__(self) -> NoReturn:
        raise UnknownValueError("its value is unknown")

    __hash__ = object.__hash__

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        raise UnknownValueError("its value is unknown")

    def __call__(self, *args: object, **kwargs: object) -> object:
        owner, name = self._method_of or (None, "")
        if owner is None:
            return Unknown()
        if name in _KEEPING and not args:
            return owner
        if name not in _OF_ARRAYS and (owner._type is None or not hasattr(jax.Array, name)):
            return Unknown()
        name = "reshape" if name == "view" and isinstance(args[0], int) else name
        return typed(_Method(name), (owner, *args), kwargs)

    def _operated(self, *others: object, **named: object) -> Unknown:
        return Unknown()

    __next__ = __enter__ = __copy__ = __deepcopy__ = _operated

    def unpacked(self, count: int) -> list[object]:
        """Return the items that an assignment gives so many targets."""
        return [self[index] for index in range(count)]

    def axis_size(self, axis: int) -> object:
        """Return the size of an axis: a number that stands for it, if there is one left."""
        return self.shape[axis]  # type: ignore[index]

    def at_least(self, rank: int) -> None:
        """Note that it has so many axes, if it is one of few ranks; sizes of the only one left."""
        known = self._type
        if known is None or known.shape is not None or not known.ranks:
            return
        ranks = tuple(each for each in known.ranks if each >= rank)
        shape = None
        if len(ranks) == 1:
            shape = numbers(self.axis_size(axis) for axis in range(*ranks))
        object.__setattr__(self, "_type", replace(known, shape=shape, ranks=ranks))

    def has_rank(self, rank: int) -> None:
        """Note that it is an array with so many axes."""
        if self._type is None:
            object.__setattr__(self, "_type", PartialType(ranks=(rank,)))
            self.at_least(rank)


@dataclass(frozen=True, slots=True)
class _Method:
    """A method of an array, as a function."""

    __name__: str

    def __call__(self, array: object, *args: object, **kwargs: object) -> object:
        return getattr(array, self.__name__)(*args, **kwargs)


def _operator(name: str) -> Callable[..., object]:
    reflected = name[1:] if name.startswith("r") and name != "rshift" else ""
    function = getattr(operator, f"__{reflected or name}__")

    def operate(*operands: object) -> object:
        operands = operands[::-1] if reflected else operands
        is_array = any(isinstance(each, Unknown) and each._type is not None for each in operands)
        return typed(function, operands, {}) if is_array or name == "truediv" else Unknown()

    return operate


_OPERATORS = """
    add sub mul truediv floordiv mod pow matmul and or xor lshift rshift
    radd rsub rmul rtruediv rfloordiv rmod rpow rmatmul rand ror rxor
    lt le gt ge eq ne neg pos abs invert
"""
for _name in _OPERATORS.split():
    setattr(Unknown, f"__{_name}__", _operator(_name))

_KEEPING = frozenset({"numpy", "to_numpy", "cpu", "detach", "copy", "clone", "contiguous"})
"""Methods of arrays and tensors that keep the type."""
_OF_ARRAYS = frozenset({"reshape", "view", "astype", "ravel", "flatten"})
"""Methods that only arrays have, or data of which this is the array."""


class UnknownShape(Unknown):
    """The shape of something unknown: its items are sizes."""

    __slots__ = ()

    def __getitem__(self, key: object) -> object:
        part = super().__getitem__(key)
        return sizes.of(part) if isinstance(key, int) else part

    def unpacked(self, count: int) -> list[object]:
        """Return as many sizes as an assignment has targets, which tells the rank."""
        if self._method_of is not None:
            self._method_of[0].has_rank(count)
        return super().unpacked(count)


def typed(
    function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> object:
    """Return the result of a function of arrays, of which some are unknown, as far as it is known.

    It is an array if its type is.
    """
    leaves, structure = jax.tree.flatten((args, kwargs), is_leaf=is_unknown)
    places = [place for place, leaf in enumerate(leaves) if is_unknown(leaf)]

    def of_arrays(*arrays: object) -> object:
        given = dict(enumerate(leaves)) | dict(zip(places, arrays, strict=True))
        args, kwargs = jax.tree.unflatten(structure, given.values())
        return function(*args, **kwargs)

    known = [getattr(leaves[place], "_type", None) or ANY for place in places]
    frames = [*code_origins.outwards(sys._getframe(1))]
    own = [frame for frame in frames if code_origins.is_users_file(frame.f_code.co_filename)]
    origin = tuple((frame.f_code, frame.f_lasti) for frame in own)
    others = (each for place, each in enumerate(leaves) if place not in places)
    texts = (str(jax.typeof(each)) if is_array(each) else repr(each) for each in others)
    key = (origin, function.__name__, *known, *texts)
    if key not in sizes.types:
        is_reshaped = function.__name__ == "reshape" and known[0].shape is None
        types = None if is_reshaped else agreed(of_arrays, known)
        if function.__name__ == "reshape" and types is None:
            types = _reshaped((*args[1:], *kwargs.values()), known[0].dtype)
        sizes.types[key] = types
    types = sizes.types[key]
    parts, structure = jax.tree.flatten(types)
    made = [of_type(part, *origin, number) for number, part in enumerate(parts)]
    return jax.tree.unflatten(structure, made) if made else Unknown()


def _reshaped(sizes_: tuple[object, ...], dtype: DType | None) -> PartialType | None:
    """Return the type of what is reshaped, whatever it was."""
    flat = jax.tree.leaves(sizes_)
    if not flat or not all(isinstance(size, int) for size in flat):
        return PartialType(None, dtype)
    return PartialType(tuple(size if size >= 0 else None for size in flat), dtype)


def of_type(known: PartialType, *origin: object) -> object:
    """Return an unknown value of a type, an array if it is complete."""
    shape = known.shape
    if shape is not None:
        shape = numbers(sizes.from_(*origin, at) if n is None else n for at, n in enumerate(shape))
    if shape is None or known.dtype is None:
        return Unknown(replace(known, shape=shape))
    return jnp.zeros(shape, known.dtype)


class UnknownSizes:
    """The numbers that stand for unknown sizes in one dry run, by what they are sizes of."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[object, int]] = {}
        """By the ids of objects, which stay alive."""
        self._origins: dict[tuple[object, ...], object] = {}
        """What has a size that code makes, by the place and the operands."""
        self.types: dict[object, object] = {}
        """What is known of the results of operations, by their places and operands."""
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
        self._origins.clear()
        self.types.clear()
        self.places.clear()
        self._keys.clear()
        self.has_changed = False

    def of(self, value: object) -> object:
        """Return the number of an unknown value or its length; the value if none is left."""
        known = self._of.get(id(value))
        if known is not None:
            return known[1]
        place = code_origins.caller(sys._getframe(1))
        key = (*place, sum(each[:2] == place for each in self._keys.values()))
        other = self._equal.get(key, (None,))[0]
        name = next((name for name, each in self._keys.items() if each == other), "")
        if not name:
            if len(self._keys) == len(unknown_sizes.NAMES):
                return value
            name = f"?{unknown_sizes.NAMES[len(self._keys)]}"
            self._keys[name] = key
        number = unknown_sizes.number(name, self._divisors.get(self._keys[name], 1))
        if number is None:
            return value
        self._of[id(value)] = value, number
        self.places.setdefault(name, (*place, number))
        return number

    def of_length(self, number: int) -> Unknown:
        """Return something unknown that has so many items."""
        made, length = Unknown(), Unknown()
        made.shape._parts[0,] = length  # type: ignore[attr-defined]
        self._of[id(length)] = length, number
        return made

    def from_(self, *origin: object) -> int | None:
        """Return the number of a size that code makes, the same each time, if one is left."""
        number = self.of(self._origins.setdefault(origin, Unknown()))
        return number if isinstance(number, int) else None

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

    def with_sizes(
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
            text = annotation.__name__ if isinstance(annotation, type) else annotation
            text = text if isinstance(text, str) else repr(text)  # something missing has no text
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


def some_items(items: Any) -> Any:
    """Return what stands for the items of an array of unknown length; other items as they are."""
    return SomeItems([items[0]]) if is_sized(items) else items


def numbers(values: Iterable[object]) -> tuple[int, ...] | None:
    """Return sizes, if all of them have a number."""
    every = [*values]
    known = tuple(each for each in every if isinstance(each, int))
    return known if len(known) == len(every) else None


def is_unknown(value: object) -> bool:
    """Return whether a value is unknown, or stands for something that is missing."""
    return isinstance(value, Unknown | MissingObject)


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


def is_sized(value: object) -> bool:
    """Return whether a value is an array, and it is unknown how many items it has."""
    length = value.shape[0] if isinstance(value, jax.Array) and value.shape else 0
    return is_size(length) or length in unknown_sizes.TRIED


def is_countless(value: object) -> bool:
    """Return whether it is unknown how many items there are in something."""
    return is_unknown(value) or is_sized(value)


def refuse_to_iterate() -> None:
    """Let no array of unknown length be iterated over: JAX would make millions of arrays."""
    iterate: Callable[..., Iterator[object]] = jax.core.Tracer.__iter__

    @functools.wraps(iterate)
    def refusing(self: object) -> Iterator[object]:
        if is_sized(self):
            raise UnknownValueError("its length is unknown")
        return iterate(self)

    jax.core.Tracer.__iter__ = refusing  # type: ignore[method-assign]


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
