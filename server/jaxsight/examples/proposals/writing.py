"""An example of each kind, and expressions that make objects of a module's classes."""

from __future__ import annotations

import ast
import keyword
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, count

from jaxsight.examples.annotations import example_of
from jaxsight.examples.notation.values import ArrayNode
from jaxsight.examples.proposals.clues import Clues, Inferred, ParameterKind, kind_of
from jaxsight.examples.proposals.interpreting.evidence import Dim, Evidence, Shape
from jaxsight.examples.proposals.interpreting.interpretation import uses_in
from jaxsight.examples.proposals.proposal import (
    ArrayGuess,
    Demanded,
    DictGuess,
    ExpressionGuess,
    Guess,
    Length,
    LiteralGuess,
)
from jaxsight.examples.proposals.sources import DefinedName, ModuleScope
from jaxsight.text.names import with_defaults

# Choose sizes for shapes, different ones where nothing says that they are equal.

_POOL = (4, 8, 16, 32, 64, 24, 48, 12, 40)
"""Each divides most of those after it, so that what a body divides is likely divisible."""
USUAL_RANK = 2
"""The rank of arrays about which nothing is known: rows of features, as most functions take."""
_HIGHEST_RANK = 8
"""Axes of an array: a choice. Code that seems to ask for more was misread."""


class Sizing:
    """The shapes of a function's arrays: numbers, and the names that the code gives to sizes."""

    def __init__(self, taken: set[str]) -> None:
        """Begin without shapes; `taken` names cannot be names of sizes."""
        self.sizes: dict[str, int] = {}
        self._taken = taken
        self._shapes: dict[str, Shape] = {}
        self._usual = [Dim() for _ in range(_HIGHEST_RANK)]
        """The last sizes of arrays about which nothing is known, from the end."""
        self._written: dict[int, Length] = {}
        self._numbers: Iterator[int] = chain(_POOL, count(56, 8))
        self._is_laid_out = False

    def add(self, name: str, evidence: Evidence) -> None:
        """Take the shape of a parameter, and those of its items."""
        self._is_laid_out = False
        self._shapes[name] = evidence.shape
        for key, facts in evidence.keys.items():
            if facts.keys:
                self.add(f"{name}[{key}]", facts)
            else:
                self._shapes[f"{name}[{key}]"] = facts.shape

    def shape(self, name: str) -> tuple[Length, ...]:
        """Return the shape of a parameter that was added, the usual one of another."""
        self._lay_out()
        if name not in self._shapes:
            return self.usual()
        dims = self._shapes[name].dims or []
        return tuple(self._written[id(dim.find())] for dim in dims)

    def usual(self) -> tuple[Length, ...]:
        """Return the shape of arrays about which nothing is known."""
        self._lay_out()
        return tuple(self._written[id(dim.find())] for dim in reversed(self._usual[:USUAL_RANK]))

    def _lay_out(self) -> None:
        """Fix all ranks, and choose all sizes."""
        if self._is_laid_out:
            return
        self._is_laid_out = True
        for shape in self._shapes.values():
            root = shape.find()
            if root.rank is None:
                rank = root.likely if root.likely is not None else USUAL_RANK
                extent = max([i + 1 for i in (*root.front, *root.back)], default=0)
                shape.set_rank(min(max(rank, root.least, extent), _HIGHEST_RANK))
        self._share({id(s.find()): s.find() for s in self._shapes.values()})
        for shape in self._shapes.values():
            for dim in shape.dims or ():
                self._write(dim.find())
        for dim in (*reversed(self._usual[:USUAL_RANK]), *self._usual[USUAL_RANK:]):
            self._write(dim.find())

    def _share(self, roots: dict[int, Shape]) -> None:
        """Give sizes that nothing is known about to all arrays alike, so that they broadcast."""
        dims = {key: [dim.find() for dim in shape.dims or ()] for key, shape in roots.items()}
        uses = Counter(key for every in dims.values() for key in {id(dim) for dim in every})
        derived = (dim for every in dims.values() for dim in every if dim.base is not None)
        origins = {id(dim.origin[0]) for dim in derived}
        for every in dims.values():
            for distance, dim in enumerate(reversed(every)):
                root = dim.find()
                is_free = uses[id(dim)] == 1 and not root.name and root.number is None
                is_free = is_free and root.base is None and id(root) not in origins
                occurs_once = sum(other.find() is root for other in every) == 1
                if is_free and occurs_once and id(root) not in self._written:
                    usual = self._usual[distance]
                    if id(usual.find()) in self._written:
                        usual.unify(root)
                    else:
                        root.unify(usual)

    def _write(self, dim: Dim) -> None:
        if (key := id(dim)) in self._written:
            return
        if dim.number is not None:
            self._written[key] = Demanded(dim.number)
            return
        origin, more = dim.origin
        if origin is not dim:
            self._write(origin)
            size = self._written[id(origin)]
            number = self.sizes[size] if isinstance(size, str) else size
            self._written[key] = max(number + more, 1)
            return
        number = next(self._numbers)
        if name := self._name(dim.name):
            self.sizes[name] = number
        self._written[key] = name or number

    def _name(self, wanted: str) -> str:
        """Return a name for a size that no parameter and no other size has; else an empty one."""
        name = wanted.strip("_")
        if not re.fullmatch(r"[A-Za-z]\w{0,23}", name) or keyword.iskeyword(name):
            return ""
        if name in self._taken:
            name = name.upper()
        return "" if name in self._taken or name in self.sizes or name == "where" else name


# What the classes of a module and of its imports look like: fields, arguments, methods.

_NOT_A_FIELD = re.compile(r"\b(?:ClassVar|InitVar)\b")
_HIGHEST = 3
"""Classes above a class that are searched for fields, a choice: higher ones rarely have any."""


def first_member(node: ast.ClassDef) -> str:
    """Return the first member of an enumeration; empty for other classes."""
    if not any(re.search(r"(?:Enum|Flag)$", base) for base in _bases(node)):
        return ""
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) if not name.startswith("_"):
                return name
    return ""


def is_abstract(node: ast.ClassDef) -> bool:
    """Return whether a class is not meant to be instantiated."""
    return any(base.rpartition(".")[2] in ("ABC", "Protocol") for base in _bases(node)) or any(
        "abstractmethod" in ast.unparse(decorator)
        for method in _methods(node)
        for decorator in method.decorator_list
    )


def constructor(node: ast.ClassDef) -> ast.FunctionDef | None:
    """Return the `__init__` of a class."""
    return next((m for m in _methods(node) if m.name == "__init__"), None)


def _methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    return (statement for statement in node.body if isinstance(statement, ast.FunctionDef))


def _bases(node: ast.ClassDef) -> list[str]:
    """Return the names of the bases of a class: `Generic` for `Generic[T]`."""
    return [ast.unparse(base).partition("[")[0] for base in node.bases]


def arguments_of(
    definition: DefinedName, names: ModuleScope, depth: int = 0
) -> Iterator[tuple[str, str]]:
    """Yield what making an object needs, of `__init__` or its fields: names and annotations."""
    node = definition.node
    if not isinstance(node, ast.ClassDef):
        return
    if (made := constructor(node)) is not None:
        for each, default in with_defaults(made.args)[1:]:
            if default is None:
                yield each.arg, ast.unparse(each.annotation) if each.annotation else ""
        return
    given: set[str] = set()
    defaults = {
        s.target.id
        for s in node.body
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name) and _has_default(s.value)
    }
    for written in _bases(node):
        above = ModuleScope(definition.source, names.library).find(written)
        if above is not None and depth < _HIGHEST and above.node is not node:
            for name, annotation in arguments_of(above, names, depth + 1):
                given.add(name)
                if name not in defaults:
                    yield name, annotation
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind):
                text = ast.unparse(kind)
                is_field = name not in given and not _NOT_A_FIELD.search(text)
                if is_field and name not in defaults:
                    yield name, text


def _has_default(value: ast.expr | None) -> bool:
    match value:
        case None:
            return False
        case ast.Call(func=func, keywords=keywords) if ast.unparse(func).endswith("field"):
            named = {keyword.arg for keyword in keywords}
            return bool(named & {"default", "default_factory", "init"})
    return True


_DEEPEST = 2
"""Objects that are made for the arguments of others, a choice: deeper ones rarely trace."""
_SIDE = 8
"""The sizes of the arrays of an object: that of the last axis of other arrays."""
_FEW = re.compile(r"head|layer|depth|block|group|spatial")
_LITERALS = {
    ParameterKind.AXIS: "-1",
    ParameterKind.FLAG: "True",
    ParameterKind.STRING: "'name'",
    ParameterKind.NONE: "None",
}
"""The kinds with one example."""


@dataclass(eq=False, slots=True)
class ExampleWriter:
    """Writes an example of a kind; `sizing` has the shapes, `place` names its own."""

    clues: Clues
    what: Inferred
    sizing: Sizing
    place: str
    is_guess: bool = False
    """The text does not tell a rank, a structure or a function's result in the example."""

    def settle(self) -> None:
        """Find out whether the text tells all ranks, before arrays that meet get the same ones."""
        uses = self.clues.uses
        match self.what.kind:
            case ParameterKind.SCALAR:
                uses.shape.set_rank(0)
            case ParameterKind.ARRAY:
                self.is_guess = not self.clues.has_rank
            case ParameterKind.DICT:
                self.is_guess = any(map(_is_unranked, uses.keys.values()))
            case ParameterKind.OTHER:
                self.is_guess = True

    def take_shapes(self) -> None:
        """Add the shapes of the example to those that sizes are chosen for."""
        if self.what.kind in (ParameterKind.ARRAY, ParameterKind.DICT):
            self.sizing.add(self.clues.name, self.clues.uses)

    def example(self) -> Guess:
        """Return the example; one of a kind that is not named here is an array."""
        clues, kind = self.clues, self.what.kind
        match kind:
            case _ if kind in _LITERALS:
                return LiteralGuess(_LITERALS[kind])
            case ParameterKind.OTHER if clues.static:
                return LiteralGuess("2")
            case ParameterKind.LITERAL:
                return LiteralGuess(self.what.detail)
            case ParameterKind.KEY:
                return LiteralGuess("key<fry>[]")
            case ParameterKind.SCALAR if not clues.is_argument:
                return ArrayGuess((), self._dtype)
            case ParameterKind.SCALAR | ParameterKind.FLOAT:
                return LiteralGuess("0.5" if clues.is_argument else "1.0")
            case ParameterKind.INTEGER:
                is_few = not clues.is_argument or _FEW.search(clues.name)
                return LiteralGuess("2" if is_few else str(_SIDE))
            case ParameterKind.DICT:
                return _keyed(clues.uses, self.sizing, self.place)
            case ParameterKind.OBJECT:
                made = Constructor(clues, clues.uses.members).expression(self.what.detail)
                self.is_guess |= not made
                return ExpressionGuess(made or f"{self.what.detail}()")
            case ParameterKind.DTYPE:
                numpy = clues.numpy
                return ExpressionGuess(f"{numpy}.float32") if numpy else LiteralGuess("'float32'")
            case ParameterKind.RNGS:
                nnx = clues.names.alias("flax.nnx")
                return ExpressionGuess(f"{nnx}.Rngs(0)") if nnx else LiteralGuess("None")
        return self._array()

    def _array(self) -> ArrayGuess:
        declared = example_of(self.clues.annotation)
        dtype = declared.dtype if isinstance(declared, ArrayNode) else self._dtype
        return ArrayGuess(self.sizing.shape(self.place), dtype)

    @property
    def _dtype(self) -> str:
        """The dtype of the parameter, if it is an array."""
        uses = self.clues.uses
        if uses.boolean:
            return "bool"
        return "int32" if uses.integer or self.clues.said.integer else "float32"


def _is_unranked(evidence: Evidence) -> bool:
    """Return whether nothing tells the rank of an item, or of one in it."""
    if evidence.keys:
        return any(map(_is_unranked, evidence.keys.values()))
    root = evidence.shape.find()
    return root.rank is None and root.likely is None


def _keyed(evidence: Evidence, sizing: Sizing, place: str) -> DictGuess:
    """Return a dict of arrays, and of dicts if its items have keys."""
    items: list[tuple[str, ArrayGuess | DictGuess]] = []
    for key, facts in evidence.keys.items():
        inside = f"{place}[{key}]"
        if facts.keys:
            items.append((key, _keyed(facts, sizing, inside)))
        else:
            dtype = "int32" if facts.integer else "float32"
            items.append((key, ArrayGuess(sizing.shape(inside), dtype)))
    return DictGuess(tuple(items))


@dataclass(frozen=True, slots=True)
class Constructor:
    """Writes expressions of objects that the module of a parameter can evaluate."""

    clues: Clues
    members: Mapping[str, Evidence]
    """What is known of the fields of the object that is made."""

    def expression(self, written: str, depth: int = 0) -> str:
        """Return a call such as `Linear(8, 8, key=jax.random.key(0))`; empty if none is known."""
        scope = self.clues.names
        definition = scope.find(written)
        if definition is None or not isinstance(definition.node, ast.ClassDef):
            return ""
        if member := first_member(definition.node):
            return f"{written}.{member}"
        if is_abstract(definition.node) or depth > _DEEPEST:
            return ""
        values: list[str] = []
        made = constructor(definition.node)
        shown = uses_in(made, definition.source.aliases) if made is not None else {}
        uses = {**shown, **self.members}
        for name, annotation in arguments_of(definition, scope):
            clues = Clues(
                name,
                scope,
                annotation=annotation,
                scope=replace(scope, source=definition.source),
                uses=uses.get(name, Evidence(name)),
                is_argument=True,
                prefix=written.rpartition(".")[0],
            )
            if not (value := _argument(clues, depth)):
                return ""
            values.append(f"{name}={value}")
        return f"{written}({', '.join(values)})"


def _argument(clues: Clues, depth: int) -> str:
    """Return the source of an argument of a constructor; empty if the text does not tell it."""
    what = kind_of(clues)
    match what.kind:
        case ParameterKind.OBJECT:
            within = (what.detail, f"{clues.prefix}.{what.detail}")
            made = (Constructor(clues, {}).expression(each, depth + 1) for each in within)
            return next(filter(None, made), "")
        case ParameterKind.KEY:
            random = clues.names.alias("jax.random")
            return f"{random}.key(0)" if random else ""
        case ParameterKind.ARRAY:
            declared = example_of(clues.annotation)
            root = clues.uses.shape.find()
            rank = root.rank if root.rank is not None else root.likely
            rank = len(declared.shape) if isinstance(declared, ArrayNode) else rank
            if rank is None or not clues.numpy:
                return ""
            rest = ", dtype=int" if clues.uses.integer else ""
            return f"{clues.numpy}.ones({(_SIDE,) * rank}{rest})"
    writer = ExampleWriter(clues, what, Sizing(set()), clues.name)
    writer.settle()
    guess = writer.example()
    is_source = isinstance(guess, LiteralGuess | ExpressionGuess)
    return guess.text if is_source and not writer.is_guess else ""
