"""A tree of calls as plain data: no tracers, no functions, no frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from jaxsight.repro.capturing.raised import Raised


@dataclass(frozen=True, slots=True)
class Ref:
    """A value that was traced or computed, or an array, by its number."""

    number: int


@dataclass(frozen=True, slots=True)
class Constant:
    """Any other value: a Python number, a string, a mesh, a dtype."""

    value: object


@dataclass(frozen=True, slots=True)
class FunctionRef:
    """A function of the user's, by its number."""

    number: int


Operand: TypeAlias = Ref | Constant | FunctionRef


@dataclass(frozen=True, slots=True)
class Node:
    """The structure of a pytree.

    Attributes:
        kind: `leaf`, `none`, `tuple`, `list`, `dict`, `named` (a named tuple), or `class` (any
            other registered class).
        name: the name of the class.
        keys: the keys of the dictionary, or the names of the fields.
        meta: distinguishes classes of the same name with other static parts.
    """

    kind: str
    children: tuple[Node, ...] = ()
    name: str = ""
    keys: tuple[Any, ...] = ()
    meta: int = 0

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return 1 if self.kind == "leaf" else sum(child.leaves for child in self.children)


LEAF = Node("leaf")


@dataclass(frozen=True, slots=True)
class Packed:
    """A pytree of operands."""

    node: Node
    leaves: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call."""

    args: tuple[Packed, ...] = ()
    kwargs: Mapping[str, Packed] = field(default_factory=dict)

    def operands(self) -> Iterator[Operand]:
        """Yield all leaves, in order."""
        for packed in (*self.args, *self.kwargs.values()):
            yield from packed.leaves


@dataclass(slots=True)
class Bind:
    """A primitive, bound in the body of a user's function."""

    primitive: Any
    params: Mapping[str, Any]
    operands: tuple[Operand, ...]
    results: tuple[int, ...] = ()
    context: Any = None
    """The settings that it was bound under."""
    failed: bool = False


@dataclass(slots=True)
class Call:
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
    result: Packed | None = None
    failed: bool = False
    error: int = 0
    """The identity of the exception that it raised."""
    binds: list[Bind] = field(default_factory=list)
    """The primitives that it bound itself, with whole programs in them: a second form of the call.
    """
    bound: Packed | None = None
    """Its result as these have it."""

    def operands(self) -> Iterator[Operand]:
        """Yield the operands of both argument lists."""
        if self.outer is not None:
            yield from self.outer.operands()
        yield from self.inner.operands()


@dataclass(slots=True)
class Step:
    """A call of a public function, or an operator, that raised an error.

    `kind` is `function` (`path(*args)`), `method` (`args[0].path(*args[1:])`), `operator`
    (`args[0] path args[1]`), `index` (`args[0][args[1]]`), `attribute` or `raise` (`raised`).
    """

    kind: str
    path: str
    arguments: Arguments
    raised: Raised | None = None


Item: TypeAlias = Bind | Call | Step


@dataclass(slots=True)
class UserCall:
    """A call of a user's function by JAX."""

    function: int
    arguments: Arguments
    body: list[Item] = field(default_factory=list)
    result: Packed | None = None
    failed: bool = False
    context: Any = None
    """The settings under which JAX called it, such as the mesh."""
    axes: tuple[tuple[Any, int], ...] = ()
    """The sizes of the mapped axes around it, by name."""
    checks_variance: bool = False
    """Whether values vary over some axes of a mesh (`check_vma` of `jax.shard_map`)."""


@dataclass(slots=True)
class Function:
    """A function of the user's that was passed to JAX."""

    number: int
    name: str
    parameters: tuple[str, ...]
    """The names of its parameters as in its signature, with their stars."""
    made_by: tuple[str, Arguments] | None = None
    """The transformation that returned it, with its arguments."""
    calls: list[UserCall] = field(default_factory=list)


@dataclass(slots=True)
class Tree:
    """The outermost call, or the step that raised an error, and what its values are.

    Attributes:
        avals: abstract values by number.
        arrays: the concrete arrays that were passed or captured, by number.
    """

    root: Call | Step
    functions: dict[int, Function] = field(default_factory=dict)
    avals: dict[int, Any] = field(default_factory=dict)
    arrays: dict[int, Any] = field(default_factory=dict)
    message: str = ""
    """The message of the exception that the call raised."""
