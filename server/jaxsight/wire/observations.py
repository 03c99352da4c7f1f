"""What a tracer observed while it traced a function: values, failures, warnings, caveats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from jaxsight.wire.chunks import Span
from jaxsight.wire.meshes import Sharding


@dataclass(frozen=True, slots=True)
class Row:
    """A part of a tree of arrays: a module, a container or an array, at a depth below the root.

    `name` is relative to the row around it: `attn`, `blocks[0..11]`; `text` is its class, or its
    type as in jaxprs. The figures are those of one of `times` equal parts.
    """

    depth: int
    name: str
    text: str
    times: int = 1
    arrays: int = 0
    elements: int = 0
    """Elements of its parameters: of arrays of floating point numbers, in NNX of `nnx.Param`s."""
    bytes: int = 0
    """Bytes of all its arrays."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A module, an optimizer state or another large tree of arrays.

    The first row is the root; the deepest rows are left out of a large tree.
    """

    rows: tuple[Row, ...]
    is_module: bool = False
    """Whether it is a module, whose `elements` are parameters."""
    is_complete: bool = True
    """Whether all its parts were visited; if not, the figures are too low."""


@dataclass(frozen=True, slots=True)
class ExprValue:
    """A value of an expression: `text` as in jaxprs; a pytree in Python's notation.

    An array over several devices has its sharding there too: `f32[8@data,16]`.
    `inside` lists the stages around the value, outermost first, beyond the plain trace: `scan
    body`,
    `while cond`, `cond branch`, `vmap over 32 (axis 0)`, `grad`…
    """

    text: str
    weak: bool = False
    sharding: Sharding | None = None
    """The array's sharding; `None` if it is the same on all devices, or on one."""
    inside: tuple[str, ...] = ()
    tree: Tree | None = None
    """Set for modules, and for trees of more than a few arrays."""


ObservedKind: TypeAlias = Literal["expression", "target", "parameter"]


@dataclass(frozen=True, slots=True)
class Observation:
    """Values of an expression, assignment target or parameter, as indices of `Traced.seen`.

    At most `OBSERVED_VALUES` distinct values are kept; `more` counts the others.
    """

    span: Span
    kind: ObservedKind
    values: tuple[int, ...]
    more: int = 0


OBSERVED_VALUES = 4  # as many as a hint has room for


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of a traceback.

    `span` is set if it is in a chunk; else `file` and `line` are.
    """

    function: str
    file: str
    line: int
    span: Span | None = None


DRY_RUN = "dry run"
"""The stage of a `Failure` that only comes with the observations of a dry run."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception of user code.

    `type` is the class's qualified name, `bases` the names of its superclasses.
    `stage`: `execute` (a chunk), `whole` (another module imports names of this one that were not
    sent:
    repeat the request with the whole module), `find` (the function does not exist or cannot be
    traced:
    `async`, generator), `inputs` (an example input cannot be evaluated: `argument` names it),
    `trace`,
    `sourcerize` (the trace cannot be written as source, or the source is not the same program: the
    message says where), `view` (one of the user's jaxpr interpreters), `dry run` (no failure: the
    observations of a dry run, of which there is no trace).
    Frames are ordered from outermost to innermost, without those of JAX and of the tracer itself.
    """

    stage: str
    type: str
    message: str
    bases: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    cause: Failure | None = None
    notes: tuple[str, ...] = ()
    argument: str = ""
    operands: tuple[tuple[str, str], ...] = ()
    """The sources and types of what the innermost expression is made of.

    The server adds them: a tracer does not know the current text.
    """

    @property
    def was_refused(self) -> bool:
        """Whether an effect outside of the process was refused."""
        return self.type == _REFUSED or (self.cause is not None and self.cause.was_refused)


_REFUSED = "jaxsight.RefusedError"


@dataclass(frozen=True, slots=True)
class ProgramError:
    """An exception that ended a statement of a file's own program."""

    failure: Failure
    is_certain: bool
    """Whether nothing unknown took part, so that each run of the program ends with it."""


@dataclass(frozen=True, slots=True)
class Warned:
    """A Python warning raised while running (64-bit truncation, unusable donation…)."""

    category: str
    message: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Caveat:
    """A statement that was not run as an import would run it, so that the answer may differ.

    `reason` is one clause about chunk `chunk`: `raised ValueError: …`, `was stopped after 5 s`.
    """

    chunk: str
    reason: str
    line: int = 1
    """The line in the chunk that it is about."""


@dataclass(frozen=True, slots=True)
class Reused:
    """A chunk of the slice that was not executed, because one with the same meaning had been.

    Spans refer to that one, `executed`, whose text is `text`; `asked` is the id in the request.
    """

    asked: str
    executed: str
    text: str
