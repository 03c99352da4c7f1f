"""Choose an example for a parameter, by what its uses, its annotation and its name show."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from jaxsight.examples.notation.meshes import NAME as MESH
from jaxsight.examples.notation.values import Array, Key, Node
from jaxsight.examples.proposals import names
from jaxsight.examples.proposals.construction import construct
from jaxsight.examples.proposals.interpreting.evidence import Evidence
from jaxsight.examples.proposals.proposal import (
    ArrayGuess,
    DictGuess,
    ExpressionGuess,
    Guess,
    KeyGuess,
    ListGuess,
    LiteralGuess,
)
from jaxsight.examples.proposals.prose import Described
from jaxsight.examples.proposals.sizing import Sizing
from jaxsight.source.functions import Parameter

_NUMPY = ("jax.numpy", "numpy")
_COUNTS = re.compile(r"^(?:n|num)_?|_?(?:heads|groups|layers)$")


@dataclass(frozen=True, slots=True)
class Known:
    """What is known outside of a function's body."""

    aliases: Mapping[str, str]
    static: tuple[str, ...]
    """Parameters that a `jax.jit` makes static."""
    words: Mapping[str, Described]
    classes: Mapping[str, ast.ClassDef]

    def module(self, *dotted: str) -> str:
        """Return the name under which the module has imported one of these modules."""
        for wanted in dotted:
            for alias, name in self.aliases.items():
                if name == wanted or (wanted == "jax.numpy" and name.endswith("lax_numpy")):
                    return alias
        return ""


def kind(parameter: Parameter, evidence: Evidence, known: Known) -> str:
    """Return the kind of a parameter, in a word; a literal is `literal SOURCE`.

    The uses in the body come first, then the annotation, then the name.
    """
    annotated = names.kind_of(parameter.annotation)
    name = parameter.name
    if example := _by_use(evidence, annotated):
        return example
    if name in known.static:
        return _static(evidence, annotated, name)
    if annotated.startswith("literal ") or annotated in (
        "callable",
        "callables",
        "dtype",
        "shape",
        "arrays",
    ):
        return annotated
    said = known.words.get(name)
    has_axes = evidence.shape.find().least > 0 or evidence.integer
    if said is not None and said.count and not has_axes:
        return "count"
    if (by_name := _by_name(evidence, annotated, name)) is not None:
        return by_name
    if annotated.startswith("class ") and not evidence.array:
        return annotated
    return _array_kind(evidence, annotated, name, known.words.get(name))


def _by_use(evidence: Evidence, annotated: str) -> str:
    if evidence.called is not None or (annotated == "callable" and not evidence.array):
        return "callable"
    if evidence.choices and not evidence.array:
        return f"literal {evidence.choices[0]}"
    if evidence.key and annotated != "literal 2":
        return "key"
    if evidence.dtype and not evidence.array:
        return "dtype"
    if evidence.shape_like and not evidence.array:
        return "shape"
    if evidence.keys and not evidence.shape.find().least:
        return "dict"
    if evidence.tree and not evidence.array:
        return "tree"
    has_axes = evidence.shape.find().least > 0 or evidence.integer
    if evidence.axis and not has_axes:
        return "axis"
    if evidence.static and not has_axes:
        return "count"
    return ""


def _static(evidence: Evidence, annotated: str, name: str) -> str:
    if annotated.startswith("literal "):
        return annotated
    for pattern, guess in (
        (names.AXIS, "axis"),
        (names.SHAPE, "shape"),
        (names.DTYPE, "dtype"),
        (names.FUNCTION, "callable"),
        (names.BOOLEAN, "literal True"),
        (names.STRING, "literal 'name'"),
    ):
        if pattern.fullmatch(name):
            return guess
    return annotated if annotated == "callable" else "count"


def _by_name(evidence: Evidence, annotated: str, name: str) -> str | None:
    """Return what the name says, where the body does not use the parameter as an array."""
    if evidence.shape.find().least <= 1 and not evidence.integer and annotated != "array":
        for pattern, guess in (
            (names.SHAPE, "shape"),
            (names.DTYPE, "dtype"),
            (names.FUNCTIONS, "callables"),
        ):
            if pattern.fullmatch(name):
                return guess
    if evidence.array:
        return None
    if name == MESH:
        return "mesh"
    if names.KEY.fullmatch(name) and not evidence.number:
        return "key"
    if annotated in ("array", "scalar"):
        return None
    if names.AXIS.fullmatch(name) and not evidence.number:
        return "axis"
    if annotated == "tree" or names.TREE.fullmatch(name):
        return "tree"
    if names.COUNTS.fullmatch(name) and evidence.sequence:
        return "shape"
    if evidence.sequence and not evidence.number:
        return "arrays"
    if names.FUNCTION.fullmatch(name) and not evidence.number:
        return "callable"
    if names.BOOLEAN.fullmatch(name) and (evidence.tested or not evidence.number):
        return "literal True"
    if names.STRING.fullmatch(name) and not evidence.number:
        return "literal 'name'"
    if names.COUNT.fullmatch(name) and not annotated.startswith("class "):
        return "count"
    return None


def _array_kind(evidence: Evidence, annotated: str, name: str, said: Described | None) -> str:
    root = evidence.shape.find()
    if root.rank is not None or root.least or root.likely is not None:
        return "array"
    described = said is not None and (said.shape is not None or said.rank is not None)
    by_name = names.SCALAR.fullmatch(name) and evidence.array <= 1
    if annotated == "scalar" or (not described and ((said is not None and said.scalar) or by_name)):
        return "scalar"
    if annotated == "tree":
        return "tree"
    return "array"


def guess(
    parameter: Parameter,
    kind: str,
    evidence: Evidence,
    declared: Node | None,
    known: Known,
    sizing: Sizing,
) -> Guess:
    """Return the example of a parameter of a kind."""
    name = parameter.name
    match declared:
        case Key():
            return KeyGuess()
        case Array(dtype):
            return (
                ArrayGuess(sizing.shape(name), dtype) if kind == "array" else ArrayGuess((), dtype)
            )
    match kind:
        case "callable":
            return ExpressionGuess(_function(evidence))
        case "callables":
            return ExpressionGuess("[lambda x: x, lambda x: x]")
        case "key":
            return KeyGuess()
        case "dtype":
            return _dtype(known)
        case "shape":
            return LiteralGuess(f"({', '.join(map(str, _numbers(sizing, sizing.usual())))})")
        case "axis":
            return LiteralGuess("-1")
        case "count":
            return LiteralGuess("2" if _COUNTS.search(name) else "4")
        case "mesh":
            return LiteralGuess("data=2")
        case "scalar":
            return ArrayGuess((), _dtype_of(evidence, name, known))
        case "dict":
            return DictGuess(
                tuple((key, ArrayGuess(sizing.shape(f"{name}[{key}]"))) for key in evidence.keys)
            )
        case "tree":
            first, last = sizing.usual()
            return DictGuess((("'w'", ArrayGuess((first, last))), ("'b'", ArrayGuess((last,)))))
        case "arrays":
            count = max(min(evidence.sequence, 8), 2)
            return ListGuess((ArrayGuess(sizing.shape(name)),) * count)
    if kind.startswith("literal "):
        return LiteralGuess(kind.removeprefix("literal "))
    if kind.startswith("class "):
        return ExpressionGuess(construct(kind.removeprefix("class "), known.classes, known.aliases))
    return ArrayGuess(sizing.shape(name), _dtype_of(evidence, name, known))


def _numbers(sizing: Sizing, shape: tuple[int | str, ...]) -> list[int]:
    return [sizing.sizes[size] if isinstance(size, str) else size for size in shape]


def _dtype_of(evidence: Evidence, name: str, known: Known) -> str:
    said = known.words.get(name)
    if evidence.integer or names.INTEGERS.fullmatch(name):
        return "int32"
    if evidence.boolean or (names.MASK.fullmatch(name) and not evidence.inexact):
        return "bool"
    if said is not None and said.integer and not evidence.inexact:
        return "int32"
    return "float32"


def _dtype(known: Known) -> Guess:
    numpy = known.module(*_NUMPY)
    return ExpressionGuess(f"{numpy}.float32") if numpy else LiteralGuess("'float32'")


def _function(evidence: Evidence) -> str:
    """Return a function that takes what the parameter is called with."""
    if evidence.scanned:
        return "lambda carry, x: (carry, x)"
    called = evidence.called or ("",)
    parameters = [
        name if name.isidentifier() and name != "_" else f"x{i}" for i, name in enumerate(called)
    ]
    if len(set(parameters)) < len(parameters):
        parameters = [f"x{i}" for i in range(len(parameters))]
    if parameters == ["x0"]:
        parameters = ["x"]
    if evidence.returned > 1:
        values = (parameters * evidence.returned)[: evidence.returned]
        return f"lambda {', '.join(parameters)}: ({', '.join(values)})"
    if evidence.differentiated:
        return f"lambda {', '.join(parameters)}: ({parameters[0]} ** 2).sum()"
    return f"lambda {', '.join(parameters)}: {parameters[0] if parameters else '0.0'}"
