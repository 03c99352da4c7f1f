"""The table from a kind to an example, and examples as expressions for constructors."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from jaxsight.examples.annotations import example_of
from jaxsight.examples.notation.values import Array, Key
from jaxsight.examples.proposals import functions, names
from jaxsight.examples.proposals.clues import Clues
from jaxsight.examples.proposals.construction import Builder
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
from jaxsight.examples.proposals.table import kind_of

_LONGEST = 16
"""Items of a list of arrays."""
_DEEPEST = 2
_SIDE = 8
"""The sizes of the arrays of an object: that of the last axis of other arrays."""
_FEW = re.compile(r"^(?:n|num)_?|_?(?:heads|groups|layers|depth|blocks)$")
_FEW_INSIDE = re.compile(r"head|layer|depth|block|group|spatial")


@dataclass(frozen=True, slots=True)
class ExampleWriter:
    """Writes examples; `sizing` has the shapes, `place` names the one that is written."""

    clues: Clues
    sizing: Sizing
    place: str

    def example(self, what: What) -> Guess:
        """Return an example of a kind."""
        return EXAMPLES.get(what.kind, _array)(self, what)

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

    def items(self, clues: Clues) -> ExampleWriter:
        """Return the writer of an item."""
        return ExampleWriter(clues, self.sizing, f"{self.place}/{clues.name}")


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
    return Builder(clues.around, argument, clues.uses.members).expressions(written)


def argument(clues: Clues, depth: int = 0) -> str:
    """Return the source of an argument of a constructor."""
    what = kind_of(clues)
    if what.kind is Kind.OBJECT:
        for written in (what.detail, f"{clues.prefix}.{what.detail}"):
            builder = Builder(clues.around, argument, {})
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


# The examples of the kinds


def _array(writer: ExampleWriter, what: What) -> Guess:
    return ArrayGuess(writer.shape, _dtype_of(writer.clues))


def _scalar(writer: ExampleWriter, what: What) -> Guess:
    numpy = writer.clues.around.numpy
    if not writer.clues.is_argument:
        return ArrayGuess((), _dtype_of(writer.clues))
    if numpy and "float" not in writer.clues.annotation:
        return ExpressionGuess(f"{numpy}.asarray(0.5)")
    return LiteralGuess("0.5")


def _size(writer: ExampleWriter, what: What) -> Guess:
    if writer.clues.is_argument:
        return LiteralGuess("2" if _FEW_INSIDE.search(writer.clues.name) else str(_SIDE))
    few = what.kind is Kind.INTEGER or _FEW.search(writer.clues.name)
    return LiteralGuess("2" if few else "4")


def _shape(writer: ExampleWriter, what: What) -> Guess:
    shape = (_SIDE, _SIDE) if writer.clues.is_argument else writer.sizing.usual()
    return LiteralGuess(f"({', '.join(map(str, writer.sizing.numbers(shape)))})")


def _function(writer: ExampleWriter, what: What) -> Guess:
    clues = writer.clues
    trees = [n for n, k in clues.around.kinds.items() if k.kind in (Kind.TREE, Kind.DICT)]
    jax = clues.around.names.alias("jax")
    leaves = f"{jax}.tree.leaves" if jax else ""
    return ExpressionGuess(
        functions.function(clues.name, clues.uses, clues.annotation, trees, leaves)
    )


def _program(writer: ExampleWriter, what: What) -> Guess:
    names_around = writer.clues.around.names
    numpyro = names_around.alias("numpyro")
    distributions = names_around.alias("numpyro.distributions")
    return ExpressionGuess(
        f"lambda *args, **kwargs: {numpyro}.sample('x', {distributions}.Normal(0.0, 1.0))"
    )


def _stub(writer: ExampleWriter, what: What) -> Guess:
    clues = writer.clues
    made = functions.stub(clues.name, clues.uses, clues.around.key, clues.around.numpy)
    return ExpressionGuess(made) if made else ArrayGuess(writer.sizing.usual())


def _object(writer: ExampleWriter, what: What) -> Guess:
    clues = writer.clues
    made = objects(clues, what.detail)
    return ExpressionGuess(made[0] if made else f"{what.detail}()")


def _dtype(writer: ExampleWriter, what: What) -> Guess:
    numpy = writer.clues.around.numpy
    dtype = next(iter(writer.clues.uses.dtypes), "float32")
    return ExpressionGuess(f"{numpy}.{dtype}") if numpy else LiteralGuess("'float32'")


def _tree(writer: ExampleWriter, what: What) -> Guess:
    clues = writer.clues
    if names.MODEL_KEYWORDS.fullmatch(clues.name):
        return LiteralGuess("{}")
    if Kind.PROGRAM in {kind.kind for kind in clues.around.kinds.values()}:
        return DictGuess((("'x'", ArrayGuess(())),))
    if clues.is_argument and not re.match(
        r"(?:\w+\.)*\w*(?:[dD]ict|Mapping|Params)", clues.annotation
    ):
        return ArrayGuess((_SIDE,))
    first, last = (4, _SIDE) if clues.is_argument else writer.sizing.usual()
    return DictGuess((("'w'", ArrayGuess((first, last))), ("'b'", ArrayGuess((last,)))))


def _keyed(evidence: Evidence, sizing: Sizing, place: str) -> DictGuess:
    """Return a dict of arrays, and of dicts if its items have keys."""
    items: list[tuple[str, ArrayGuess | DictGuess]] = []
    for key in evidence.keys:
        facts = evidence.labelled.get(key) or Evidence(key)
        inside = f"{place}[{key}]"
        if facts.keys:
            items.append((key, _keyed(facts, sizing, inside)))
        else:
            dtype = "int32" if facts.integer else "float32"
            items.append((key, ArrayGuess(sizing.shape(inside), dtype)))
    return DictGuess(tuple(items))


def _list(writer: ExampleWriter, what: What) -> Guess:
    """Return a tuple of what it is unpacked into, or a list of what a loop unpacks."""
    uses = writer.clues.uses
    listed = uses.item.parts if uses.item is not None and not uses.parts else ()
    parts: list[ArrayGuess | KeyGuess | LiteralGuess | DictGuess | ListGuess] = []
    for part in uses.parts or listed:
        clues = replace(writer.clues, name=part.name, annotation="", uses=part)
        guessed = writer.items(clues).example(kind_of(clues))
        if isinstance(guessed, ExpressionGuess):
            guessed = ArrayGuess(writer.sizing.shape(f"{writer.place}/{part.name}"))
        parts.append(guessed)
    if parts:
        unpacked = ListGuess(tuple(parts), is_tuple=True)
        return ListGuess((unpacked,) * 2) if listed else unpacked
    return ListGuess((ArrayGuess(writer.shape),) * min(uses.sequence or 2, _LONGEST))


def _optimizer_state(writer: ExampleWriter, what: What) -> Guess:
    """Return the state that an optimizer of the module begins with."""
    clues = writer.clues
    optax = clues.around.names.alias("optax")
    examples = clues.around.examples.items()
    tree = next((g for n, g in examples if names.TREE.fullmatch(n)), _tree(writer, what))
    if not optax:
        return tree
    optimizer = next(
        (
            name
            for name, value in clues.around.names.source.types.items()
            if ast.unparse(value).startswith(f"{optax}.")
        ),
        f"{optax}.sgd(0.1)",
    )
    return ExpressionGuess(f"{optimizer}.init({source(writer.sizing.numbered(tree), clues)})")


def _shape_and_dtype(writer: ExampleWriter, what: What) -> Guess:
    jax, numpy = writer.clues.around.names.alias("jax"), writer.clues.around.numpy
    if not (jax and numpy):
        return LiteralGuess("None")
    return ExpressionGuess(f"{jax}.ShapeDtypeStruct(({_SIDE},), {numpy}.float32)")


def _mesh(writer: ExampleWriter, what: What) -> Guess:
    jax = writer.clues.around.names.alias("jax")
    if writer.clues.is_argument and jax:
        return ExpressionGuess(f"{jax}.make_mesh((1,), ('data',))")
    return LiteralGuess("data=2")


def _rngs(writer: ExampleWriter, what: What) -> Guess:
    nnx = writer.clues.around.names.alias("flax.nnx")
    return ExpressionGuess(f"{nnx}.Rngs(0)") if nnx else LiteralGuess("None")


def _dtype_of(clues: Clues) -> str:
    uses = clues.uses
    if uses.integer or clues.named(names.INTEGERS):
        return "int32"
    if uses.boolean or (clues.named(names.MASK) and not uses.inexact):
        return "bool"
    return "int32" if clues.said.integer and not uses.inexact else "float32"


def _literal(text: str) -> Callable[[ExampleWriter, What], Guess]:
    return lambda writer, what: LiteralGuess(text)


EXAMPLES: Mapping[Kind, Callable[[ExampleWriter, What], Guess]] = {
    Kind.ARRAY: _array,
    Kind.SCALAR: _scalar,
    Kind.KEY: lambda writer, what: KeyGuess(),
    Kind.TREE: _tree,
    Kind.DICT: lambda writer, what: _keyed(writer.clues.uses, writer.sizing, writer.place),
    Kind.LIST: _list,
    Kind.WIDTHS: _literal("[8, 16, 8]"),
    Kind.OBJECT: _object,
    Kind.STUB: _stub,
    Kind.OPTIMIZER_STATE: _optimizer_state,
    Kind.FUNCTION: _function,
    Kind.FUNCTIONS: lambda writer, what: ExpressionGuess("[lambda x: x, lambda x: x]"),
    Kind.PROGRAM: _program,
    Kind.DTYPE: _dtype,
    Kind.SHAPE: _shape,
    Kind.AXIS: _literal("-1"),
    Kind.AXES: _literal("(-1,)"),
    Kind.INTEGER: _size,
    Kind.SIZE: _size,
    Kind.FLOAT: lambda writer, what: LiteralGuess("0.5" if writer.clues.is_argument else "1.0"),
    Kind.FLAG: _literal("True"),
    Kind.STRING: _literal("'name'"),
    Kind.LITERAL: lambda writer, what: LiteralGuess(what.detail),
    Kind.NONE: _literal("None"),
    Kind.MESH: _mesh,
    Kind.SIZES: _literal("{'batch': 4, 'features': 8}"),
    Kind.RNGS: _rngs,
    Kind.SHAPE_AND_DTYPE: _shape_and_dtype,
}
