"""An example of each kind, and expressions that make objects: of the module, or imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from jaxsight.examples.annotations import example_of
from jaxsight.examples.notation.values import Array, Key
from jaxsight.examples.proposals import classes, functions, names
from jaxsight.examples.proposals.classes import RequiredArgument
from jaxsight.examples.proposals.clues import Clues, Surroundings
from jaxsight.examples.proposals.interpreting.evidence import Evidence
from jaxsight.examples.proposals.kinds import Kind, What
from jaxsight.examples.proposals.proposal import (
    ArrayGuess,
    DictGuess,
    ExpressionGuess,
    Guess,
    KeyGuess,
    Length,
    ListGuess,
    LiteralGuess,
)
from jaxsight.examples.proposals.sizing import Sizing
from jaxsight.examples.proposals.sources import DefinedName, Definitions, ModuleScope
from jaxsight.examples.proposals.table import kind_of

_LONGEST = 16
"""Items of a list of arrays, as `errors._MOST_ITEMS`."""
_DEEPEST = 2
"""Objects that are made for the arguments of others, a choice: deeper ones rarely trace."""
_MOST_BESIDE = 120
"""Names that are looked up to find the subclasses of a class, a choice: each may parse a file."""
_MOST = 4
"""Expressions of objects of a class: a choice. Each further one may cost a trace that fails."""
_SIDE = 8
"""The sizes of the arrays of an object: that of the last axis of other arrays."""
_FEW = re.compile(r"^(?:n|num)_?|_?(?:heads|groups|layers|depth|blocks)$")
_FEW_INSIDE = re.compile(r"head|layer|depth|block|group|spatial")
_LITERALS = {
    Kind.WIDTHS: "[8, 16, 8]",
    Kind.SIZES: "{'batch': 4, 'features': 8}",
    Kind.AXIS: "-1",
    Kind.AXES: "(-1,)",
    Kind.FLAG: "True",
    Kind.STRING: "'name'",
    Kind.NONE: "None",
}
"""The kinds with one example."""

Made = tuple[int, str]
"""An expression, after its cost: arguments, and values that are not known."""


@dataclass(frozen=True, slots=True)
class ExampleWriter:
    """Writes examples; `sizing` has the shapes, `place` names the one that is written."""

    clues: Clues
    sizing: Sizing
    place: str

    def example(self, what: What) -> Guess:
        """Return an example of a kind; one that is not named here is an array."""
        clues, kind = self.clues, what.kind
        match kind:
            case _ if kind in _LITERALS:
                return LiteralGuess(_LITERALS[kind])
            case Kind.LITERAL:
                return LiteralGuess(what.detail)
            case Kind.KEY:
                return KeyGuess()
            case Kind.SCALAR if not clues.is_argument:
                return ArrayGuess((), self.dtype)
            case Kind.SCALAR if clues.around.numpy and "float" not in clues.annotation:
                return ExpressionGuess(f"{clues.around.numpy}.asarray(0.5)")
            case Kind.SCALAR | Kind.FLOAT:
                return LiteralGuess("0.5" if clues.is_argument else "1.0")
            case Kind.INTEGER | Kind.SIZE if clues.is_argument:
                return LiteralGuess("2" if _FEW_INSIDE.search(clues.name) else str(_SIDE))
            case Kind.INTEGER | Kind.SIZE:
                is_few = kind is Kind.INTEGER or _FEW.search(clues.name)
                return LiteralGuess("2" if is_few else "4")
            case Kind.SHAPE:
                shape = (_SIDE, _SIDE) if clues.is_argument else self.sizing.usual()
                return LiteralGuess(f"({', '.join(map(str, self.sizing.numbers(shape)))})")
            case Kind.TREE:
                return self._tree()
            case Kind.DICT:
                return _keyed(clues.uses, self.sizing, self.place)
            case Kind.LIST:
                return self._list()
        return self._expression(what) or ArrayGuess(self.shape, self.dtype)

    def _expression(self, what: What) -> Guess | None:
        """Return an example of a kind that the names of the module are needed for."""
        clues, numpy, alias = self.clues, self.clues.around.numpy, self.clues.around.names.alias
        match what.kind:
            case Kind.FUNCTION:
                kinds = clues.around.kinds.items()
                trees = [name for name, of in kinds if of.kind in (Kind.TREE, Kind.DICT)]
                leaves = f"{jax}.tree.leaves" if (jax := alias("jax")) else ""
                return ExpressionGuess(
                    functions.function(clues.name, clues.uses, clues.annotation, trees, leaves)
                )
            case Kind.FUNCTIONS:
                return ExpressionGuess("[lambda x: x, lambda x: x]")
            case Kind.PROGRAM:
                normal = f"{alias('numpyro.distributions')}.Normal(0.0, 1.0)"
                sample = f"{alias('numpyro')}.sample('x', {normal})"
                return ExpressionGuess(f"lambda *args, **kwargs: {sample}")
            case Kind.STUB:
                made = functions.stub(clues.name, clues.uses, clues.around.key, numpy)
                return ExpressionGuess(made) if made else ArrayGuess(self.sizing.usual())
            case Kind.OBJECT:
                return ExpressionGuess(next(iter(objects(clues, what.detail)), f"{what.detail}()"))
            case Kind.OPTIMIZER_STATE:
                return self._optimizer_state()
            case Kind.DTYPE:
                dtype = next(iter(clues.uses.dtypes), "float32")
                return ExpressionGuess(f"{numpy}.{dtype}") if numpy else LiteralGuess("'float32'")
            case Kind.MESH:
                if clues.is_argument and (jax := alias("jax")):
                    return ExpressionGuess(f"{jax}.make_mesh((1,), ('data',))")
                return LiteralGuess("data=2")
            case Kind.RNGS:
                nnx = alias("flax.nnx")
                return ExpressionGuess(f"{nnx}.Rngs(0)") if nnx else LiteralGuess("None")
            case Kind.SHAPE_AND_DTYPE:
                if numpy and (jax := alias("jax")):
                    return ExpressionGuess(f"{jax}.ShapeDtypeStruct(({_SIDE},), {numpy}.float32)")
                return LiteralGuess("None")
        return None

    def _tree(self) -> Guess:
        clues = self.clues
        if names.MODEL_KEYWORDS.fullmatch(clues.name):
            return LiteralGuess("{}")
        if Kind.PROGRAM in {kind.kind for kind in clues.around.kinds.values()}:
            return DictGuess((("'x'", ArrayGuess(())),))
        if clues.is_argument and not re.match(
            r"(?:\w+\.)*\w*(?:[dD]ict|Mapping|Params)", clues.annotation
        ):
            return ArrayGuess((_SIDE,))
        first, last = (4, _SIDE) if clues.is_argument else self.sizing.usual()
        return DictGuess((("'w'", ArrayGuess((first, last))), ("'b'", ArrayGuess((last,)))))

    def _list(self) -> Guess:
        """Return a tuple of what it is unpacked into, or a list of what a loop unpacks."""
        uses = self.clues.uses
        listed = uses.item.parts if uses.item is not None and not uses.parts else ()
        parts: list[ArrayGuess | KeyGuess | LiteralGuess | DictGuess | ListGuess] = []
        for part in uses.parts or listed:
            clues = replace(self.clues, name=part.name, annotation="", uses=part)
            place = f"{self.place}/{part.name}"
            guessed = ExampleWriter(clues, self.sizing, place).example(kind_of(clues))
            if isinstance(guessed, ExpressionGuess):
                guessed = ArrayGuess(self.sizing.shape(place))
            parts.append(guessed)
        if parts:
            unpacked = ListGuess(tuple(parts), is_tuple=True)
            return ListGuess((unpacked,) * 2) if listed else unpacked
        return ListGuess((ArrayGuess(self.shape),) * min(uses.sequence or 2, _LONGEST))

    def _optimizer_state(self) -> Guess:
        """Return the state that an optimizer of the module begins with."""
        around = self.clues.around
        optax = around.names.alias("optax")
        examples = around.examples.items()
        tree = next((g for n, g in examples if names.TREE.fullmatch(n)), self._tree())
        if not optax:
            return tree
        assigned = around.names.source.types.items()
        made = (name for name, value in assigned if ast.unparse(value).startswith(f"{optax}."))
        optimizer = next(made, f"{optax}.sgd(0.1)")
        inside = source(self.sizing.numbered(tree), self.clues)
        return ExpressionGuess(f"{optimizer}.init({inside})")

    @property
    def dtype(self) -> str:
        """The dtype of the parameter, if it is an array."""
        clues, uses = self.clues, self.clues.uses
        if uses.integer or clues.named(names.INTEGERS):
            return "int32"
        if uses.boolean or (clues.named(names.MASK) and not uses.inexact):
            return "bool"
        return "int32" if clues.said.integer and not uses.inexact else "float32"

    @property
    def shape(self) -> tuple[Length, ...]:
        """The shape of the parameter."""
        if self.clues.is_argument:
            declared = example_of(self.clues.annotation.partition(" |")[0])
            root = self.clues.uses.shape.find()
            rank = root.rank if root.rank is not None else root.likely
            if isinstance(declared, Array):
                rank = len(declared.shape)
            if rank is None:
                flat = self.clues.uses.integer or self.clues.named(names.INTEGERS)
                is_generic = self.clues.annotation and not self.clues.annotated
                rank = 1 if flat or is_generic or self.clues.is_annotated(Kind.TREE) else 2
            return (_SIDE,) * rank
        return self.sizing.shape(self.place)


def example(clues: Clues, what: What, sizing: Sizing) -> Guess:
    """Return the example of a parameter of a kind."""
    match example_of(clues.annotation):
        case Key():
            return KeyGuess()
        case Array(dtype):
            shape = sizing.shape(clues.name) if what.kind is Kind.ARRAY else ()
            return ArrayGuess(shape, dtype)
    return ExampleWriter(clues, sizing, clues.name).example(what)


def objects(clues: Clues, written: str) -> tuple[str, ...]:
    """Return expressions of objects of a class, the best first."""
    return Builder(clues.around, clues.uses.members).expressions(written)


def argument(clues: Clues, depth: int = 0) -> str:
    """Return the source of an argument of a constructor."""
    what = kind_of(clues)
    if what.kind is Kind.OBJECT:
        for written in (what.detail, f"{clues.prefix}.{what.detail}"):
            builder = Builder(clues.around, {})
            if depth < _DEEPEST and (made := builder.expressions(written, depth + 1)):
                return made[0]
        return "None"
    return source(ExampleWriter(clues, Sizing(set()), clues.name).example(what), clues)


def source(guess: Guess, clues: Clues) -> str:
    """Return the Python expression of an example; `None` if the module cannot write it."""
    numpy = clues.around.numpy
    match guess:
        case ArrayGuess(shape, dtype):
            if not numpy:
                return "None"
            sizes = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
            rest = {"float32": "", "int32": ", dtype=int"}.get(dtype, f", dtype={dtype!r}")
            return f"{numpy}.ones(({sizes}){rest})"
        case KeyGuess():
            return clues.around.key or "None"
        case DictGuess(items):
            inside = ", ".join(f"{key}: {source(item, clues)}" for key, item in items)
            return f"{{{inside}}}"
        case ListGuess(items, is_tuple):
            inside = ", ".join(source(item, clues) for item in items)
            return f"({inside},)" if is_tuple else f"[{inside}]"
        case LiteralGuess(text) | ExpressionGuess(text):
            return text


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
class Builder:
    """Writes expressions that the module can evaluate."""

    around: Surroundings
    members: Mapping[str, Evidence]
    """What is known of the fields of the object that is made."""

    def expressions(self, written: str, depth: int = 0) -> tuple[str, ...]:
        """Return expressions such as `Linear(8, 8, key=jax.random.key(0))`, the best first."""
        best = sorted(self._made(written, depth), key=lambda pair: pair[0])
        return tuple(dict.fromkeys(text for _, text in best))[:_MOST]

    @property
    def _names(self) -> ModuleScope:
        return self.around.names

    def _made(self, written: str, depth: int) -> Iterator[Made]:
        definition = self._names.find(written)
        if definition is None:
            if usual := self._usual(written, written.rpartition(".")[2]):
                yield 0, usual
            return
        node = definition.node
        if not isinstance(node, ast.ClassDef):
            return
        usual = self._usual(written, node.name)
        is_plain = any("NamedTuple" in ast.unparse(base) for base in node.bases)
        if usual and not (is_plain and usual.startswith(f"{written}.")):
            yield -9, usual
        if member := classes.first_member(node):
            yield 0, f"{written}.{member}"
            return
        is_abstract, is_unfinished = classes.is_abstract(node), classes.is_unfinished(node)
        if not is_abstract:
            cost, constructed = self._constructed(written, definition, depth)
            # Above all costs of complete classes; costs only order the expressions that are tried.
            yield cost + (20 if is_unfinished else 0), constructed
        if depth < _DEEPEST and (is_abstract or is_unfinished or classes.has_functions(node)):
            yield from self._by_functions(written, node.name)
            yield from self._by_subclasses(written, node.name, depth)
            for other in classes.implementing(node, self._names):
                if (implementing := self._names.find(other)) is not None:
                    yield self._constructed(other, implementing, depth + 1)

    def _usual(self, written: str, name: str) -> str:
        """Return how objects of a library's class are usually made; empty if that is not known."""
        prefix = written.rpartition(".")[0]
        origin = self._names.module(prefix) if prefix else ""
        if name == "Module" and origin in classes.MODULES:
            module, usual = origin, classes.MODULES[origin]
        elif name in classes.USUAL:
            module, usual = classes.USUAL[name]
        else:
            return ""
        if module and origin != module:
            prefix = self._names.alias(module)
        values = {
            "PREFIX": prefix,
            "CLASS": written,
            "KEY": self.around.key,
            "NUMPY": self._names.alias("jax.numpy"),
        }
        for value, text in values.items():
            if value in usual and not text:
                return ""
            usual = usual.replace(value, text)
        return usual

    def _constructed(self, written: str, definition: DefinedName, depth: int) -> Made:
        assert isinstance(definition.node, ast.ClassDef)
        needed = classes.arguments_of(definition, self._names)
        values, call = self._call(written, needed, definition.source, depth)
        cost = len(values) + 9 * values.count("None") - sum(".ones(" in v for v in values)
        return cost + 5 * classes.takes_any(definition.node), call

    def _call(
        self, written: str, needed: Iterable[RequiredArgument], source: Definitions, depth: int
    ) -> tuple[list[str], str]:
        """Return the arguments of a call of a class or function, and the call."""
        scope = ModuleScope(source, self._names.library)
        members = self.members if not depth else {}
        values: dict[str, str] = {}
        for parameter in needed:
            clues = Clues(
                parameter.name,
                self.around,
                parameter.annotation,
                scope,
                members.get(parameter.name, Evidence(parameter.name)),
                is_argument=True,
                prefix=written.rpartition(".")[0],
            )
            values[parameter.name] = argument(clues, depth)
        inside = ", ".join(f"{name}={value}" for name, value in values.items())
        return list(values.values()), f"{written}({inside})"

    def _by_functions(self, written: str, name: str) -> Iterator[Made]:
        """Yield calls of functions that return such an object."""
        for maker, node in self._names.functions_beside(written).items():
            returned = ast.unparse(node.returns) if node.returns is not None else ""
            is_maker = returned.strip("'\"").rpartition(".")[2] == name
            if not is_maker or maker.rpartition(".")[2].startswith("_"):
                continue
            needed = classes.required(node.args, 0)
            values, call = self._call(maker, needed, self._names.source, 1)
            is_generator = any(isinstance(n, ast.Yield) for n in ast.walk(node))
            if "None" not in values and not is_generator:
                yield 1 + len(values), call

    def _by_subclasses(self, written: str, name: str, depth: int) -> Iterator[Made]:
        library = self._names.library
        for other, origin in islice(self._names.beside(written), _MOST_BESIDE):
            definition = library.find(origin) if origin else self._names.find(other)
            if (
                other != written
                and definition is not None
                and isinstance(definition.node, ast.ClassDef)
                and not definition.node.name.startswith("_")
                and not classes.is_abstract(definition.node)
                and classes.inherits(definition, name, self._names)
            ):
                cost, made = self._constructed(other, definition, depth + 1)
                is_usual = re.match(r"Auto|Default", definition.node.name)
                yield (0 if is_usual else cost + 1), made
