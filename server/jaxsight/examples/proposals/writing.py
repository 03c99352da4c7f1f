"""An example of each kind, and expressions that make objects of a module's classes."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from jaxsight.examples.annotations import example_of
from jaxsight.examples.notation.values import Array
from jaxsight.examples.proposals import classes
from jaxsight.examples.proposals.clues import Clues
from jaxsight.examples.proposals.interpreting.evidence import Evidence
from jaxsight.examples.proposals.interpreting.interpretation import uses_in
from jaxsight.examples.proposals.kinds import Kind, What
from jaxsight.examples.proposals.proposal import (
    ArrayGuess,
    DictGuess,
    ExpressionGuess,
    Guess,
    LiteralGuess,
)
from jaxsight.examples.proposals.sizing import Sizing
from jaxsight.examples.proposals.table import kind_of

_DEEPEST = 2
"""Objects that are made for the arguments of others, a choice: deeper ones rarely trace."""
_SIDE = 8
"""The sizes of the arrays of an object: that of the last axis of other arrays."""
_FEW = re.compile(r"head|layer|depth|block|group|spatial")
_LITERALS = {
    Kind.AXIS: "-1",
    Kind.FLAG: "True",
    Kind.STRING: "'name'",
    Kind.NONE: "None",
}
"""The kinds with one example."""


@dataclass(eq=False, slots=True)
class ExampleWriter:
    """Writes an example of a kind; `sizing` has the shapes, `place` names its own."""

    clues: Clues
    what: What
    sizing: Sizing
    place: str
    is_guess: bool = False
    """The text does not tell a rank, a structure or a function's result in the example."""

    def settle(self) -> None:
        """Find out whether the text tells all ranks, before arrays that meet get the same ones."""
        uses = self.clues.uses
        match self.what.kind:
            case Kind.SCALAR:
                uses.shape.set_rank(0)
            case Kind.ARRAY:
                self.is_guess = not self.clues.has_rank
            case Kind.DICT:
                self.is_guess = any(map(_is_unranked, uses.keys.values()))
            case Kind.OTHER:
                self.is_guess = True

    def take_shapes(self) -> None:
        """Add the shapes of the example to those that sizes are chosen for."""
        if self.what.kind in (Kind.ARRAY, Kind.DICT):
            self.sizing.add(self.clues.name, self.clues.uses)

    def example(self) -> Guess:
        """Return the example; one of a kind that is not named here is an array."""
        clues, kind = self.clues, self.what.kind
        match kind:
            case _ if kind in _LITERALS:
                return LiteralGuess(_LITERALS[kind])
            case Kind.OTHER if clues.static:
                return LiteralGuess("2")
            case Kind.LITERAL:
                return LiteralGuess(self.what.detail)
            case Kind.KEY:
                return LiteralGuess("key<fry>[]")
            case Kind.SCALAR if not clues.is_argument:
                return ArrayGuess((), self._dtype)
            case Kind.SCALAR | Kind.FLOAT:
                return LiteralGuess("0.5" if clues.is_argument else "1.0")
            case Kind.INTEGER:
                is_few = not clues.is_argument or _FEW.search(clues.name)
                return LiteralGuess("2" if is_few else str(_SIDE))
            case Kind.DICT:
                return _keyed(clues.uses, self.sizing, self.place)
            case Kind.OBJECT:
                made = Constructor(clues, clues.uses.members).expression(self.what.detail)
                self.is_guess |= not made
                return ExpressionGuess(made or f"{self.what.detail}()")
            case Kind.DTYPE:
                numpy = clues.numpy
                return ExpressionGuess(f"{numpy}.float32") if numpy else LiteralGuess("'float32'")
            case Kind.RNGS:
                nnx = clues.names.alias("flax.nnx")
                return ExpressionGuess(f"{nnx}.Rngs(0)") if nnx else LiteralGuess("None")
        return self._array()

    def _array(self) -> ArrayGuess:
        declared = example_of(self.clues.annotation)
        dtype = declared.dtype if isinstance(declared, Array) else self._dtype
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
        if member := classes.first_member(definition.node):
            return f"{written}.{member}"
        if classes.is_abstract(definition.node) or depth > _DEEPEST:
            return ""
        values: list[str] = []
        made = classes.constructor(definition.node)
        shown = uses_in(made, definition.source.aliases) if made is not None else {}
        uses = {**shown, **self.members}
        for argument in classes.arguments_of(definition, scope):
            clues = Clues(
                argument.name,
                scope,
                annotation=argument.annotation,
                scope=replace(scope, source=definition.source),
                uses=uses.get(argument.name, Evidence(argument.name)),
                is_argument=True,
                prefix=written.rpartition(".")[0],
            )
            value = _argument(clues, depth)
            if not value:
                return ""
            values.append(f"{argument.name}={value}")
        return f"{written}({', '.join(values)})"


def _argument(clues: Clues, depth: int) -> str:
    """Return the source of an argument of a constructor; empty if the text does not tell it."""
    what = kind_of(clues)
    match what.kind:
        case Kind.OBJECT:
            within = (what.detail, f"{clues.prefix}.{what.detail}")
            made = (Constructor(clues, {}).expression(each, depth + 1) for each in within)
            return next(filter(None, made), "")
        case Kind.KEY:
            random = clues.names.alias("jax.random")
            return f"{random}.key(0)" if random else ""
        case Kind.ARRAY:
            declared = example_of(clues.annotation)
            root = clues.uses.shape.find()
            rank = root.rank if root.rank is not None else root.likely
            rank = len(declared.shape) if isinstance(declared, Array) else rank
            if rank is None or not clues.numpy:
                return ""
            rest = ", dtype=int" if clues.uses.integer else ""
            return f"{clues.numpy}.ones({(_SIDE,) * rank}{rest})"
    writer = ExampleWriter(clues, what, Sizing(set()), clues.name)
    writer.settle()
    guess = writer.example()
    is_source = isinstance(guess, LiteralGuess | ExpressionGuess)
    return guess.text if is_source and not writer.is_guess else ""
