"""A program of a dataset: the text of a module, and what its function is called with."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Array:
    """An array argument: its type, and the rule that makes its values.

    Attributes:
        dtype: as NumPy and ml_dtypes name it, such as `float32` or `bfloat16`; `key` for a typed
            PRNG key.
        shape: the sizes of its dimensions.
        values: `normal`, `uniform` (in [0, 1)), `positive` (in [0.5, 2)), `unit` (in (-0.9, 0.9)),
            `integers:N` (in [0, N)), `booleans`, `permutation` (of the last dimension),
            `definite` (symmetric positive definite matrices), `triangular` (lower, with a positive
            diagonal), or `key`.
    """

    dtype: str
    shape: tuple[int, ...]
    values: str = "normal"


Record: TypeAlias = dict[str, Any]
"""An object of JSON: a program, a row, a request to a worker, or its answer."""

Argument: TypeAlias = "Array | tuple[Argument, ...] | list[Argument] | dict[str, Argument]"


@dataclass(frozen=True, slots=True)
class RowProgram:
    """A module that defines a function, with the arguments of one call.

    Attributes:
        number: its position among the programs of a specification.
        text: the module, as a person would write it; `Example inputs:` in the function's docstring
            agree with `arguments`.
        function: the name of the function.
        arguments: by the names of the parameters, in their order.
        category: one of `spec.CATEGORIES`.
        template: the family of the generator that wrote it; no family is in two splits.
        transformations: those of JAX that it uses, such as `grad` and `vmap`, sorted.
        is_differentiable: whether it is differentiated with respect to its inexact arguments, if
            JAX can do that.
        labels: what a reader should know: `non-finite`, where results are so; `own-derivative`,
            where a rule says that the derivative is another than the limit of differences.
        provenance: where a mined function is from: `package`, `version`, `path`, `licence`,
            and `source`, its own text.
    """

    number: int
    text: str
    function: str
    arguments: dict[str, Argument]
    category: str
    template: str
    transformations: tuple[str, ...] = ()
    is_differentiable: bool = False
    labels: tuple[str, ...] = ()
    provenance: dict[str, str] = field(default_factory=dict)

    def record(self) -> Record:
        """Return the program as JSON."""
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**plain, "arguments": {name: _record(it) for name, it in self.arguments.items()}}

    @classmethod
    def of_record(cls, record: Record) -> RowProgram:
        """Return the program of a record."""
        arguments = {name: _argument(value) for name, value in record["arguments"].items()}
        parts = {name: tuple(record[name]) for name in ("transformations", "labels")}
        return cls(**{**record, "arguments": arguments, **parts})


def _record(argument: Argument) -> Any:
    match argument:
        case Array():
            return asdict(argument)
        case dict():
            return {name: _record(item) for name, item in argument.items()}
        case tuple():
            return {"(": [_record(item) for item in argument]}
    return [_record(item) for item in argument]


def _argument(record: Any) -> Argument:
    if isinstance(record, list):
        return [_argument(item) for item in record]
    if set(record) == {"dtype", "shape", "values"}:
        return Array(record["dtype"], tuple(record["shape"]), record["values"])
    if "(" in record:
        return tuple(_argument(item) for item in record["("])
    return {name: _argument(value) for name, value in record.items()}


def leaves(argument: Argument) -> list[Array]:
    """Return the arrays of an argument, in the order of `jax.tree.leaves`."""
    if isinstance(argument, Array):
        return [argument]
    if isinstance(argument, dict):
        return [leaf for name in sorted(argument) for leaf in leaves(argument[name])]
    return [leaf for item in argument for leaf in leaves(item)]
