"""What is known of a parameter, a constructor's argument, a field, or an item of a tuple."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property

from jaxsight.examples.annotations import example_of
from jaxsight.examples.proposals.interpreting.evidence import Evidence
from jaxsight.examples.proposals.prose import Described
from jaxsight.examples.proposals.sources import ModuleScope
from jaxsight.text.parsing import expression_in

# What a parameter can be.
#
# `ROWS` decides it from clues, and `writing` writes an example of each kind. To add a kind: a
# member here, a row in `ROWS`, a case in `writing.ExampleWriter`.


class ParameterKind(Enum):
    """A kind of parameter, constructor argument or field."""

    UNKNOWN = auto()
    ARRAY = auto()
    SCALAR = auto()
    """An array without axes: a hyperparameter that may be traced."""
    KEY = auto()
    DICT = auto()
    """A dict whose keys are known."""
    OBJECT = auto()
    """An object of a class; the detail is the name of the class."""
    DTYPE = auto()
    AXIS = auto()
    INTEGER = auto()
    FLOAT = auto()
    FLAG = auto()
    STRING = auto()
    LITERAL = auto()
    """A Python literal; the detail is its source."""
    NONE = auto()
    RNGS = auto()
    """The random number streams of flax.nnx."""
    OTHER = auto()
    """Something that the text does not tell enough of: a function, a pytree, a shape."""


@dataclass(frozen=True, slots=True)
class Inferred:
    """A kind, and its detail: the name of a class, the source of a literal."""

    kind: ParameterKind
    detail: str = ""

    def __bool__(self) -> bool:
        return self.kind is not ParameterKind.UNKNOWN


UNKNOWN = Inferred(ParameterKind.UNKNOWN)
PLAIN = frozenset(
    (
        ParameterKind.INTEGER,
        ParameterKind.FLOAT,
        ParameterKind.FLAG,
        ParameterKind.STRING,
        ParameterKind.LITERAL,
        ParameterKind.NONE,
    )
)
"""Kinds whose examples are Python literals."""

# The kind of parameter that an annotation names.

_DEEPEST = 2
"""Definitions of types that are followed from one to the next, a choice: an alias of an alias."""
_ARRAYS = r"\b(?:\w+\.)*(?:Array|ArrayLike|ndarray|Tensor|Numeric|Scalar\w*)\b"
_LIST = r"^(?:\w+\.)*(?:Sequence|list|List|tuple|Tuple|Iterable|Collection)"
_CLASS = re.compile(r"(?:\w+\.)*[A-Z]\w*(?:\[.*\])?", re.DOTALL)
_UNION = re.compile(r"^(?:\w+\.)*(?:Union|Annotated|Final)\[(.*)\]$", re.DOTALL)
_ANYTHING = frozenset(("", "Any", "object", "typing.Any", "tp.Any", "t.Any"))
_BUILT_IN = {
    "int": Inferred(ParameterKind.INTEGER),
    "float": Inferred(ParameterKind.FLOAT),
    "bool": Inferred(ParameterKind.FLAG),
    "str": Inferred(ParameterKind.STRING),
    "complex": Inferred(ParameterKind.LITERAL, "1j"),
    "bytes": Inferred(ParameterKind.LITERAL, "b''"),
    "None": Inferred(ParameterKind.NONE),
}
_ROWS = tuple(
    (re.compile(pattern, re.DOTALL), kind)
    for pattern, kind in (
        (r"^(?:\w+\.)*(?:Mapping|MutableMapping|dict|Dict)\b", ParameterKind.OTHER),
        (r"^(?:\w+\.)*(?:Callable\b|\w*(?:Fn|Fun|Function)(?:\[.*\])?$)", ParameterKind.OTHER),
        (r"(?i:^(?:\w+\.)*(?:DType\w*|dtype)(?:\s*\|.*)?$)", ParameterKind.DTYPE),
        (rf"^(?:\w+\.)*Shape(?:\s*\|.*)?$|{_LIST}\[int\b", ParameterKind.OTHER),
        (r"^(?:\w+\.)*(?:PRNGKey|KeyArray|PRNGKeyArray|RandomKey)\b", ParameterKind.KEY),
        (rf"^(?!.*tuple)(?!.*Tuple){_LIST}\[.*(?:Array|ndarray)", ParameterKind.OTHER),
        (
            r"\b(?:\w*PyTree\w*|\w*Params|\w*Updates|\w*ArrayTree|\w*Pytree|Gradients?)\b",
            ParameterKind.OTHER,
        ),
        (r"^(?!.*\bArray(?:Like)?\b).*\b(?:\w*ScalarLike|\w*Scalar|float)\b", ParameterKind.SCALAR),
        (_ARRAYS, ParameterKind.ARRAY),
    )
)
"""The first row whose pattern is found decides."""


def kind_in(annotation: str | None, names: ModuleScope, depth: int = 0) -> Inferred:
    """Return what an annotation says, with the definitions of the names in it."""
    what = _kind_written(annotation)
    if what.kind is not ParameterKind.OBJECT or depth > _DEEPEST:
        return what
    definition = names.find(what.detail)
    match definition.node if definition is not None else None:
        case None | ast.ClassDef():
            return what
        case ast.Call(func=func, args=[_, first, *_]) if ast.unparse(func).endswith("NewType"):
            value: ast.expr = first
        case ast.FunctionDef() | ast.Call():
            return UNKNOWN
        case ast.expr() as value:
            pass
    assert definition is not None
    return kind_in(ast.unparse(value), ModuleScope(definition.source, names.library), depth + 1)


def _kind_written(annotation: str | None) -> Inferred:
    """Return what the words of an annotation say; another name is a class."""
    text = (annotation or "").strip("'\" ")
    if optional := re.match(r"^(?:\w+\.)*Optional\[(.*)\]$", text, re.DOTALL):
        text = optional.group(1).strip()
    first = text.partition(" |")[0].strip()
    if text in _ANYTHING:
        return UNKNOWN
    if first in _BUILT_IN and not re.search(_ARRAYS, text):
        return _BUILT_IN[first]
    if (choice := _first_choice(first)) is not None:
        return Inferred(ParameterKind.LITERAL, choice)
    if (union := _UNION.match(text)) is not None:
        return _of_union(union.group(1))
    for pattern, kind in _ROWS:
        if pattern.search(text):
            return Inferred(kind)
    if _CLASS.fullmatch(first):
        return Inferred(ParameterKind.OBJECT, first.partition("[")[0])
    return UNKNOWN


def is_optional(annotation: str | None) -> bool:
    """Return whether an annotation allows `None`."""
    return bool(re.search(r"\bOptional\[|\| None\b|\bNone \|", annotation or ""))


def _of_union(inside: str) -> Inferred:
    """Return the kind of the first of several annotations that says something, arrays first."""
    tree = expression_in(inside)
    parts = tree.elts if isinstance(tree, ast.Tuple) else [tree] if tree is not None else []
    every = [what for part in parts if (what := _kind_written(ast.unparse(part)))]
    every = [what for what in every if what.kind is not ParameterKind.NONE]
    arrays = [what for what in every if what.kind in (ParameterKind.ARRAY, ParameterKind.SCALAR)]
    plain = [what for what in every if what.kind is not ParameterKind.OBJECT]
    return next(iter((*arrays, *plain, *every)), UNKNOWN)


def _first_choice(annotation: str) -> str | None:
    """Return the source of the first value of a `Literal[...]`."""
    match expression_in(annotation):
        case ast.Subscript(
            value=ast.Name(id="Literal") | ast.Attribute(attr="Literal"), slice=inside
        ):
            first = inside.elts[0] if isinstance(inside, ast.Tuple) and inside.elts else inside
            return repr(first.value) if isinstance(first, ast.Constant) else None
    return None


@dataclass(frozen=True)
class Clues:
    """The evidence about one parameter; `table.ROWS` reads it."""

    name: str
    names: ModuleScope
    """The names of the function's module, which evaluates expressions."""
    siblings: frozenset[str] = frozenset()
    """The names of all parameters."""
    annotation: str = ""
    scope: ModuleScope | None = None
    """The module of the annotation, if it is another one."""
    uses: Evidence = field(default_factory=lambda: Evidence(""))
    said: Described = field(default_factory=Described)
    static: bool = False
    """A `jax.jit` makes it static."""
    is_argument: bool = False
    """It is an argument of a constructor."""
    prefix: str = ""
    """What the name of the constructor's class has before its last dot."""

    @property
    def numpy(self) -> str:
        """How the module writes `jax.numpy`, or NumPy."""
        return self.names.alias("jax.numpy") or self.names.alias("numpy")

    @cached_property
    def annotated(self) -> Inferred:
        """The kind that the annotation names."""
        return kind_in(self.annotation, self.scope or self.names)

    def named(self, pattern: re.Pattern[str]) -> bool:
        """Return whether a pattern of `names` matches the whole name."""
        return pattern.fullmatch(self.name) is not None

    def is_annotated(self, *kinds: ParameterKind) -> bool:
        return self.annotated.kind in kinds

    @property
    def is_unneeded(self) -> bool:
        """It is an argument that may be `None`, of which nothing else is known."""
        uses = self.uses
        is_used = self.has_rank or uses.array or uses.number or uses.integer
        return self.is_argument and is_optional(self.annotation) and not is_used

    @property
    def has_axes(self) -> bool:
        """It is indexed, or used as an index."""
        return self.uses.shape.find().least > 0 or self.uses.integer

    @property
    def has_rank(self) -> bool:
        """The body, the docstring or the annotation tells its rank."""
        root = self.uses.shape.find()
        is_told = root.rank is not None or root.likely is not None
        return is_told or example_of(self.annotation) is not None

    @cached_property
    def is_class(self) -> bool:
        """The annotation is a class whose definition is known."""
        definition = (self.scope or self.names).find(self.annotated.detail)
        return definition is not None and isinstance(definition.node, ast.ClassDef)


# The ordered table of evidence: the first row whose condition holds decides what a parameter is.
#
# The uses in the body come first, then the annotation, the docstring, and the name. Constructor
# arguments, fields and the items of tuples are decided by the same rows.

# What the names of parameters suggest: the patterns that the rows of `table` match.

KEY = re.compile(r"(?:.*_)?(?:key|rng|prng|rng_key|prng_key)")
RNGS = re.compile(r"rngs")
"""The random number streams of flax.nnx."""
QUERY = re.compile(r"q|query|queries|v|value|values")
"""Parameters beside which `key` is an array."""
SCALAR = re.compile(
    r"(?:\w+_)?(?:rate|lr|scale|alpha|beta|gamma|lambda|lambd|lam|lmbda|lambda_|decay|eps|epsilon|"
    r"temperature|temp|momentum|threshold|delta|tol|rtol|atol|rcond|coefficient|coef|factor|radius|"
    r"clip|norm|noise|std|sigma|tau|eta|nu|rho|omega|lower|upper|strength|"
    r"multiplier|step_size|weight_decay|margin|prob|probability|power|ratio|offset|smoothing|"
    r"cutoff)|(?:min|max)_\w+|b1|b2|dt|dt0|t|t0|t1|time|a_min|a_max|limit"
)


Row = tuple[Callable[[Clues], object], ParameterKind | Inferred | Callable[[Clues], Inferred]]


def kind_of(clues: Clues) -> Inferred:
    """Return what a parameter is."""
    for holds, kind in ROWS:
        if holds(clues):
            if isinstance(kind, ParameterKind):
                return Inferred(kind)
            return kind if isinstance(kind, Inferred) else kind(clues)
    return Inferred(ParameterKind.ARRAY)


def _annotated(clues: Clues) -> Inferred:
    return clues.annotated


_SAID = PLAIN | {ParameterKind.DTYPE, ParameterKind.KEY}
"""Annotations that names do not change."""

ROWS: tuple[Row, ...] = (
    # An attention's key is an array.
    (
        lambda c: (
            c.name in ("key", "keys")
            and not c.is_argument
            and any(map(QUERY.fullmatch, c.siblings))
        ),
        ParameterKind.ARRAY,
    ),
    (lambda c: c.is_argument and c.named(RNGS), ParameterKind.RNGS),
    (lambda c: c.is_unneeded, ParameterKind.NONE),
    # Uses in the body.
    (lambda c: c.is_annotated(ParameterKind.OBJECT) and c.uses.called, _annotated),
    (lambda c: c.uses.called, ParameterKind.OTHER),
    (
        lambda c: c.uses.choices and not c.uses.array,
        lambda c: Inferred(ParameterKind.LITERAL, c.uses.choices[0]),
    ),
    (lambda c: c.uses.random and not c.is_annotated(ParameterKind.INTEGER), ParameterKind.KEY),
    (lambda c: c.uses.dtype and not c.uses.array, ParameterKind.DTYPE),
    (lambda c: c.uses.shape_like and c.is_annotated(ParameterKind.INTEGER), ParameterKind.INTEGER),
    (lambda c: c.uses.shape_like and not c.uses.array, ParameterKind.OTHER),
    (lambda c: c.uses.keys and not c.uses.shape.find().least, ParameterKind.DICT),
    (lambda c: c.uses.axis and not c.has_axes, ParameterKind.AXIS),
    (lambda c: c.uses.static and not c.has_axes, ParameterKind.INTEGER),
    # The annotation, and the docstring.
    (lambda c: c.annotated.kind in _SAID, _annotated),
    (lambda c: c.said.count and not c.has_axes, ParameterKind.INTEGER),
    # Names and tests, where the body does not use the parameter as an array.
    (lambda c: c.named(KEY) and not c.uses.array and not c.uses.number, ParameterKind.KEY),
    (lambda c: c.uses.tested and not c.uses.array and not c.uses.number, ParameterKind.FLAG),
    (lambda c: c.static, ParameterKind.OTHER),
    # Objects.
    (
        lambda c: c.is_annotated(ParameterKind.OBJECT) and (not c.uses.array or c.is_class),
        _annotated,
    ),
    # Arrays.
    (lambda c: c.has_rank, ParameterKind.ARRAY),
    (lambda c: c.is_annotated(ParameterKind.SCALAR, ParameterKind.OTHER), _annotated),
    (lambda c: c.said.scalar, ParameterKind.SCALAR),
    # At most one use as an array, seen in both passes of `inference`.
    (lambda c: c.named(SCALAR) and not c.has_axes and c.uses.array <= 2, ParameterKind.SCALAR),
)
