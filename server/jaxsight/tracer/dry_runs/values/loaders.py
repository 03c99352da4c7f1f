"""What functions return whose data is not there: the usual form of known loaders.

A data set is rarely there when a program is looked at, and its loader often is not installed. The
elements of some have fixed shapes, which are facts of the data set: the feature tables of
https://www.tensorflow.org/datasets/catalog. What a program does between loading and using them is
its own code, which runs; anything else is unknown.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.tracer.dry_runs.values.partial_types import PartialType
from jaxsight.tracer.dry_runs.values.united import Value
from jaxsight.tracer.dry_runs.values.unknown import (
    Unknown,
    UnknownValueError,
    is_unknown,
    numbers,
    of_type,
    typed,
)
from jaxsight.tracer.importing import placeholders
from jaxsight_source.compat import avals

_Args = tuple[object, ...]
_Kwargs = dict[str, object]

_OF_JAX = re.compile(r"jax(?:\._src)?\.(?:numpy|nn|lax|scipy|image|ops)\b")
"""Modules of JAX whose functions take arrays and return arrays."""
_READERS = {"fromfile": 1, "frombuffer": 1, "memmap": 1, "loadtxt": 2, "genfromtxt": 2}
"""Functions of NumPy that read numbers, with the most axes of what they return."""
_KEEPING = frozenset({"copy", "dropna", "drop_duplicates", "fillna", "sample", "reset_index"})
"""Methods of pandas' frames that return frames with the same columns."""

Tree = Value
"""Arrays or their types in tuples and dictionaries."""

_ITEMS = 2
"""Elements that a data set yields: all are alike."""


def of_missing(function: Callable[..., object], args: _Args, kwargs: _Kwargs) -> object:
    """Return the result of a function that is not there, or whose data is not."""
    *modules, name = placeholders.name_of(function)
    if modules[:1] == ["numpy"] and name in _READERS:
        return _read(name, args, kwargs)
    if modules[:1] == ["pandas"] and name.startswith("read_"):
        return PandasTable(None)
    # It may be a method of data, as in `project_data.images.reshape(-1, 784)`.
    return getattr(Unknown(), name)(*args, **kwargs) if name else Unknown()


def of_arrays(function: Callable[..., object], args: _Args, kwargs: _Kwargs) -> object:
    """Return the result of a function for unknown arrays, and of NumPy's for any without values.

    It is `None` for all other calls.
    """
    *modules, name = placeholders.name_of(function)
    is_numpy = modules[:1] == ["numpy"]
    if not is_numpy and not _OF_JAX.match(".".join(modules)):
        return None
    leaves = jax.tree.leaves((args, kwargs), is_leaf=is_unknown)
    needs_unknown = any(map(is_unknown, leaves))
    if needs_unknown and is_numpy and name in _READERS:
        return _read(name, args, kwargs)
    # `print` stands for what JAX lacks.
    function = getattr(jnp, name, print) if is_numpy else function
    # Functions of functions call code of the user; a dtype is called, too.
    if function is print or any(callable(each) and not _is_dtype(each) for each in leaves):
        return None
    if needs_unknown:
        return typed(function, args, kwargs)
    if not is_numpy or not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return None
    try:
        return function(*args, **kwargs)
    except Exception:  # noqa: BLE001 - NumPy has another function of this name
        return None


def _read(name: str, args: _Args, kwargs: _Kwargs) -> object:
    """Return the numbers that a function of NumPy would read."""
    default = np.uint8 if name == "memmap" else float
    given = kwargs.get("dtype", args[1] if len(args) > 1 else default)
    try:
        dtype = jax.dtypes.canonicalize_dtype(given)
    except TypeError:  # it is unknown, or of texts
        return Unknown()
    if given is None or {"shape", "names"} & kwargs.keys():
        return Unknown()
    if _READERS[name] == 1:
        return of_type(PartialType((None,), dtype), name, *map(str, args[:1]), dtype)
    return Unknown(PartialType(None, dtype, (2,) if kwargs.get("unpack") is True else (1, 2)))


class PandasTable(Unknown):
    """A table of pandas: its columns have one axis, its values two."""

    __slots__ = ("_columns", "_whole")
    _columns: int | None
    _whole: Unknown

    def __init__(self, columns: int | None, whole: Unknown | None = None) -> None:
        """Create a table.

        Args:
            columns: their number, if it is known.
            whole: another table with the same rows.
        """
        super().__init__()
        # By `object`, as `Unknown` ignores values.
        object.__setattr__(self, "_columns", columns)
        object.__setattr__(self, "_whole", self if whole is None else whole)

    def __getattr__(self, name: str) -> object:
        if name in ("values", "iloc", "to_numpy"):
            values = _of_shape(self._whole.axis_size(0), self._columns or self.axis_size(1))
            return (lambda *_, **__: values) if name == "to_numpy" else values
        if name in _KEEPING:
            return lambda *_, **__: PandasTable(self._columns)
        return super().__getattr__(name)

    def __getitem__(self, key: object) -> object:
        if isinstance(key, str):
            return _of_shape(self._whole.axis_size(0))
        if isinstance(key, list):
            return PandasTable(len(key), self._whole)
        return PandasTable(self._columns)


def _of_shape(*shape: object) -> Unknown:
    return Unknown(PartialType(numbers(shape), None, (len(shape),)))


def _is_dtype(value: object) -> bool:
    return is_unknown(value) or isinstance(value, type) or hasattr(value, "dtype")


@dataclass(frozen=True, slots=True)
class _Known:
    """A data set: pictures of `shape`, a label unless it has none, and the sizes of its splits."""

    shape: tuple[int, int, int]
    splits: tuple[tuple[str, int], ...]
    has_label: bool = True


_SPLITS = (("train", 60_000), ("test", 10_000))
_OF_CIFAR = (("train", 50_000), ("test", 10_000))
_OF_BINARIZED = (("train", 50_000), ("validation", 10_000), ("test", 10_000))
_BY_NAME = {
    "mnist": _Known((28, 28, 1), _SPLITS),
    "fashion_mnist": _Known((28, 28, 1), _SPLITS),
    "kmnist": _Known((28, 28, 1), _SPLITS),
    "binarized_mnist": _Known((28, 28, 1), _OF_BINARIZED, has_label=False),
    "cifar10": _Known((32, 32, 3), _OF_CIFAR),
    "svhn_cropped": _Known((32, 32, 3), (("train", 73_257), ("test", 26_032), ("extra", 531_131))),
}


def loader(function: object) -> Callable[..., object] | None:
    """Return what takes the place of a loader of data sets, installed or missing; else `None`."""
    *modules, name = placeholders.name_of(function)
    if name == "load_data" and "keras" in modules:
        return functools.partial(_arrays, modules[-1])
    return _OF_TENSORFLOW.get(name) if modules[:1] == ["tensorflow_datasets"] else None


class Dataset:
    """A data set, or an iterator of one, with elements that are alike."""

    def __init__(self, element: Tree, size: int | None) -> None:
        self._element, self._size = element, size

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name.startswith("_"):
            raise AttributeError(name)
        result = self if name in _KEEPING_ELEMENTS else Unknown()
        return lambda *args, **kwargs: result

    def batch(self, batch_size: object, drop_remainder: bool = False) -> object:
        """Return the data set of batches."""
        if not isinstance(batch_size, int):
            return Unknown()
        rest = 0 if drop_remainder else batch_size - 1
        size = (self._size + rest) // batch_size if self._size is not None else None
        return Dataset(_batched(self._element, batch_size), size)

    def map(self, function: Callable[..., object], *args: object, **kwargs: object) -> object:
        """Return the data set of results; unknown if the function cannot run here."""
        try:
            is_tuple = type(self._element) is tuple
            result = function(*self._item()) if is_tuple else function(self._item())
            return Dataset(jax.eval_shape(lambda: result), self._size)
        except Exception:  # noqa: BLE001 - user code
            return Unknown()

    def repeat(self, count: object = None) -> object:
        """Return the elements several times, or for ever."""
        return Dataset(self._element, None)

    take = repeat  # of the first elements there may be fewer

    def _item(self) -> Tree:
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), self._element)

    def __iter__(self) -> Iterator[object]:
        for _ in range(_ITEMS):
            yield self._item()
        yield Unknown()  # so that a loop counts as left early

    def __next__(self) -> object:
        return self._item()

    def __len__(self) -> int:
        if self._size is None:
            raise UnknownValueError("its length is unknown")
        return self._size


_KEEPING_ELEMENTS = (
    "as_numpy_iterator", "cache", "prefetch", "shuffle", "with_options", "apply_options",
)  # fmt: skip
"""Methods of `tf.data.Dataset` that leave the elements as they are."""


def _batched(element: Tree, count: int) -> Tree:
    return jax.tree.map(lambda leaf: leaf.update(shape=(count, *leaf.shape)), element)


class _Builder:
    """A builder of TensorFlow Datasets."""

    def __init__(self, name: str) -> None:
        self.as_dataset = self.as_data_source = functools.partial(_load, name)
        self.info = Unknown()  # of each data set, as sizes may be taken from it

    def download_and_prepare(self, *args: object, **kwargs: object) -> None:
        """Download nothing."""


def _load(
    name: object,
    split: object = None,
    *args: object,
    batch_size: object = None,
    as_supervised: bool = False,
    with_info: bool = False,
    **kwargs: object,
) -> object:
    """Return what `tfds.load` does for a data set of a known name."""
    known = _of(name)
    if known is None:
        return Unknown()
    sizes = dict(known.splits)

    def of(part: object) -> object:
        if not isinstance(part, str) or part.partition("[")[0] not in sizes:
            return Unknown()
        size = sizes.get(part)  # unknown of a part, such as `train[:80%]`
        image = avals.struct(known.shape, jnp.uint8)
        fields = {"image": image}
        if known.has_label:
            fields["label"] = avals.struct((), jnp.int32)  # int64, that JAX truncates
        element = tuple(fields.values()) if as_supervised else fields
        if batch_size is None:
            return Dataset(element, size)
        if batch_size == -1:
            return Dataset(_batched(element, size), None)._item() if size else Unknown()
        return Dataset(element, size).batch(batch_size)

    match split:
        case None:
            result: object = {part: of(part) for part in sizes}
        case list() | tuple():
            result = type(split)(map(of, split))
        case _:
            result = of(split)
    return (result, Unknown()) if with_info else result


def _of(name: object) -> _Known | None:
    first = name.partition(":")[0].partition("/")[0] if isinstance(name, str) else ""
    return _BY_NAME.get(first)


def _arrays(name: str, *args: object, **kwargs: object) -> object:
    """Return Keras' `load_data` of a data set: pictures without their only channel, and labels."""
    known = _BY_NAME.get(name)
    if known is None:
        return Unknown()
    shape = known.shape[:2] if known.shape[2] == 1 else known.shape
    label = (1,) if name.startswith("cifar") else ()
    shapes = [((size, *shape), (size, *label)) for _, size in known.splits]
    return tuple((jnp.zeros(x, jnp.uint8), jnp.zeros(y, jnp.uint8)) for x, y in shapes)


def _as_numpy(data: object) -> object:
    return data if isinstance(data, Dataset | jax.Array | dict | tuple) else Unknown()


_OF_TENSORFLOW: dict[str, Callable[..., object]] = {
    "load": _load,
    "builder": lambda name, **_: _Builder(name) if _of(name) is not None else Unknown(),
    "data_source": _load,
    "as_numpy": _as_numpy,
}
"""Functions of TensorFlow Datasets."""
