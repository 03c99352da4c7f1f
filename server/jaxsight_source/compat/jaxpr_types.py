"""Types of the parts of a jaxpr, with the attributes that jaxsight uses. JAX 0.8 to 0.12.

Private API used: `source_info_util.NameStack`, which is the same in all these versions.

The types are for annotations: an object is recognized by `staging.is_jaxpr` and
`staging.is_literal`, and `staging.opened` returns a jaxpr as a `Program`. JAX's own classes
(`jax.extend.core`) differ between versions: from 0.11 on a `ClosedJaxpr` is a `Jaxpr` with
`consts`. They also declare each `aval` as an `AbstractValue`, which has neither `shape` nor
`dtype`, although all abstract values but those of tokens have them.

An equation's `params` have the type that JAX declares: which parameters there are, and of which
types, depends on the primitive. `control_flow`, `derivative_rules` and `parameters` read the
parameters of the primitives that differ between versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

import numpy as np
from jax._src.source_info_util import NameStack

DType: TypeAlias = np.dtype[np.generic]
"""A dtype. JAX declares its extended dtypes, such as those of typed PRNG keys, as such too."""

Params: TypeAlias = dict[str, Any]
"""The parameters of an equation, as `jax.core.JaxprEqn` declares them."""


class Aval(Protocol):
    """An abstract value: a type of arrays (`ShapedArray`), or of references to arrays."""

    shape: tuple[int, ...]
    dtype: DType
    ndim: int

    def to_tangent_aval(self) -> Aval: ...


class Atom(Protocol):
    """An operand of an equation, or a result of a jaxpr: a variable or a literal."""

    aval: Aval


class Var(Atom, Protocol):
    """A variable. Variables are the same only if they are identical."""


class Literal(Atom, Protocol):
    """A constant scalar, written in place of a variable."""

    val: Any


class Primitive(Protocol):
    """A primitive operation."""

    name: str
    multiple_results: bool

    def bind(self, *operands: object, **params: object) -> Any:
        """Return one array, or a list of arrays if there are `multiple_results`."""

    def get_bind_params(self, params: Params) -> Params | tuple[Sequence[object], Params]:
        """Return the parameters for `bind`, up to JAX 0.11 after the functions to bind."""


class TracebackFrame(Protocol):
    """A frame of a traceback: a function that was running, and where."""

    file_name: str
    function_name: str


class Traceback(Protocol):
    """The Python frames that created an equation, innermost first (`xla_client.Traceback`).

    Those of the same frames are equal.
    """

    def __hash__(self) -> int: ...

    frames: Sequence[TracebackFrame]


class SourceInfo(Protocol):
    """Where an equation comes from; the text of `name_stack` holds its named scopes."""

    @property
    def traceback(self) -> Traceback | None: ...

    name_stack: NameStack


class Context(Protocol):
    """The configuration under which an equation was traced (`JaxprEqnContext`)."""

    manager: AbstractContextManager[object]


class Equation(Protocol):
    """An equation of a jaxpr: the application of a primitive to operands."""

    primitive: Primitive
    invars: Sequence[Atom]
    outvars: Sequence[Var]
    params: Params
    effects: AbstractSet[object]
    source_info: SourceInfo
    ctx: Context

    def replace(self, **parts: object) -> Equation:
        """Return the equation with other parts, as `dataclasses.replace` does."""


class DebugInfo(Protocol):
    """The function that a jaxpr was traced from, and by which transformation."""

    traced_for: str
    func_name: str
    func_src_info: str
    arg_names: Sequence[str | None] | None

    def _replace(self, **parts: object) -> DebugInfo:
        """Return the information with other parts, as a named tuple does."""


class Jaxpr(Protocol):
    """A jaxpr without the values of its constants; `staging.Program` has both."""

    constvars: Sequence[Var]
    invars: Sequence[Var]
    outvars: Sequence[Atom]
    eqns: Sequence[Equation]
    effects: AbstractSet[object]
    debug_info: DebugInfo | None

    def replace(self, **parts: object) -> Jaxpr:
        """Return the jaxpr with other parts, as `dataclasses.replace` does."""
