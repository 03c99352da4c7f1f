"""A tree of calls as plain data: no tracers, no functions, no frames."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np

from jaxsight_repro.failures import Raised

if TYPE_CHECKING:  # JAX is not imported before the program imports it
    from jaxsight_source.compat.jaxpr_types import Aval, Context, Primitive


Ref: TypeAlias = int
"""A value that was traced or computed, or an array, by its number.

The garbage collector visits neither the many numbers of a tree nor tuples of them.
"""


@dataclass(frozen=True, slots=True)
class PlainValue:
    """Any other value: a Python number, a string, a mesh, a dtype."""

    value: object


@dataclass(frozen=True, slots=True)
class FunctionRef:
    """A function of the user's, by its number."""

    number: int


Operand: TypeAlias = Ref | PlainValue | FunctionRef


Container: TypeAlias = Literal["leaf", "none", "tuple", "list", "dict", "named", "class"]
"""What a node of a pytree is: `named` is a named tuple, `class` any other registered class."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The structure of a pytree.

    Attributes:
        name: the name of the class.
        keys: the keys of the dictionary, or the names of the fields.
        meta: distinguishes classes of the same name with other static parts.
    """

    kind: Container
    children: tuple[Structure, ...] = ()
    name: str = ""
    keys: tuple[object, ...] = ()
    meta: int = 0

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return 1 if self.kind == "leaf" else sum(child.leaves for child in self.children)


LEAF = Structure("leaf")

SIMPLE = (bool, int, float, complex, str, type(None), np.generic)
"""The types of values that are written as they are."""


@dataclass(frozen=True, slots=True)
class Pytree:
    """A pytree of operands."""

    node: Structure
    leaves: tuple[Operand, ...]

    @property
    def numbers(self) -> Iterator[int]:
        """The numbers of its values."""
        return (leaf for leaf in self.leaves if isinstance(leaf, Ref))

    @property
    def children(self) -> list[Pytree]:
        """The pytrees that it consists of."""
        leaves = iter(self.leaves)
        return [
            Pytree(child, tuple(itertools.islice(leaves, child.leaves)))
            for child in self.node.children
        ]


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call."""

    args: tuple[Pytree, ...] = ()
    kwargs: Mapping[str, Pytree] = field(default_factory=dict)

    def operands(self) -> Iterator[Operand]:
        """Yield all leaves, in order."""
        for packed in (*self.args, *self.kwargs.values()):
            yield from packed.leaves


class ErrorMark:
    """Recognizes an exception without keeping it alive, as its `id` may soon be another's.

    It is an attribute of the exception; copies of that in other processes have none.
    """

    @staticmethod
    def of(error: BaseException) -> ErrorMark:
        """Return the mark of an exception."""
        mark = error.__dict__.get("_jaxsight_mark")
        if mark is None:
            mark = error.__dict__["_jaxsight_mark"] = ErrorMark()
        return mark

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


@dataclass(slots=True)
class Bind:
    """A primitive, bound in the body of a user's function."""

    primitive: Primitive
    params: Mapping[str, object]
    inputs: tuple[Operand, ...]
    results: tuple[Ref, ...] = ()
    context: Context | None = None
    """The settings that it was bound under."""
    failed: bool = False

    def operands(self) -> Iterator[Operand]:
        """Yield what it was bound to."""
        yield from self.inputs


@dataclass(slots=True)
class JaxCall:
    """A call of a function of JAX that takes functions, or of one that a transformation returned.

    `jax.vmap(f, in_axes=0)(x)` has `outer` arguments; `jax.lax.scan(body, init, xs)` has none.
    """

    api: str
    outer: Arguments | None
    inner: Arguments
    method: str = ""
    """The method that is called on the result of the outer call, such as `lower`."""
    users: list[UserCall] = field(default_factory=list)
    """The calls of the user's functions that JAX made meanwhile, in order."""
    result: Pytree | None = None
    failed: bool = False
    error: ErrorMark | None = None
    """That of the exception that it raised."""
    binds: list[Bind] = field(default_factory=list)
    """The primitives that it bound itself, with whole programs in them: a second form of the call.
    """
    bound: Pytree | None = None
    """Its result as these have it."""

    def operands(self) -> Iterator[Operand]:
        """Yield the operands of both argument lists."""
        if self.outer is not None:
            yield from self.outer.operands()
        yield from self.inner.operands()

    @property
    def traced(self) -> Arguments:
        """Its arguments without static ones of `jax.jit` that are no simple values.

        The functions have their values already.
        """
        if self.api != "jax.jit" or not self.users:
            return self.inner

        def replaced(packed: Pytree) -> Pytree:
            static = [leaf.value for leaf in packed.leaves if isinstance(leaf, PlainValue)]
            if len(static) < len(packed.leaves) or all(isinstance(each, SIMPLE) for each in static):
                return packed
            return Pytree(Structure("none"), ())

        kwargs = {name: replaced(packed) for name, packed in self.inner.kwargs.items()}
        return Arguments(tuple(map(replaced, self.inner.args)), kwargs)


StepKind: TypeAlias = Literal[
    "function",  # path(*args)
    "method",  # args[0].path(*args[1:])
    "operator",  # args[0] path args[1]
    "index",  # args[0][args[1]]
    "set",  # args[0][args[1]] = args[2]
    "attribute",  # getattr(args[0], args[1])
    "raise",  # the user's own: raise raised
]


@dataclass(slots=True)
class FailedStep:
    """A call of a public function, or an operator, that raised an error."""

    kind: StepKind
    path: str
    arguments: Arguments
    raised: Raised | None = None
    failed: ClassVar[bool] = True

    def operands(self) -> Iterator[Operand]:
        """Yield its arguments."""
        yield from self.arguments.operands()


Item: TypeAlias = Bind | JaxCall | FailedStep


@dataclass(slots=True)
class UserCall:
    """A call of a user's function by JAX."""

    function: int
    arguments: Arguments
    body: list[Item] = field(default_factory=list)
    result: Pytree | None = None
    failed: bool = False
    context: Context | None = None
    """The settings under which JAX called it, such as the mesh."""
    axes: tuple[tuple[Hashable, int], ...] = ()
    """The sizes of the mapped axes around it, by name."""
    checks_variance: bool = False
    """Whether values vary over some axes of a mesh (`check_vma` of `jax.shard_map`)."""

    @property
    def results(self) -> Iterator[int]:
        """The numbers of the values that it returned."""
        return self.result.numbers if self.result is not None else iter(())


@dataclass(slots=True)
class TrackedFunction:
    """A function of the user's that was passed to JAX."""

    number: int
    name: str
    parameters: tuple[str, ...]
    """The names of its parameters as in its signature, with their stars."""
    made_by: tuple[str, Arguments] | None = None
    """The transformation that returned it, with its arguments."""
    calls: list[UserCall] = field(default_factory=list)


@dataclass(slots=True)
class TrackedTree:
    """The outermost call, or the step that raised an error, and what its values are.

    Attributes:
        avals: abstract values by number.
        arrays: the concrete arrays that were passed or captured, by number.
    """

    root: JaxCall | FailedStep
    functions: dict[int, TrackedFunction] = field(default_factory=dict)
    avals: dict[int, Aval] = field(default_factory=dict)
    arrays: dict[int, object] = field(default_factory=dict)
    message: str = ""
    """The message of the exception that the call raised."""
