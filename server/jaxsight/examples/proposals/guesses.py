"""Choose an example for a parameter, by what its uses, its annotation and its name show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from jaxsight.examples.notation.meshes import NAME as MESH
from jaxsight.examples.notation.values import Array, Key, Node
from jaxsight.examples.proposals import functions, names
from jaxsight.examples.proposals.construction import Builder
from jaxsight.examples.proposals.interpreting.evidence import Evidence
from jaxsight.examples.proposals.interpreting.uses import words
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

_LONGEST = 16
"""Items of a list of arrays."""
_NUMPY = ("jax.numpy", "numpy")
_PLAIN = words(
    """
    get pop setdefault items keys values append extend insert index count format split join
    startswith endswith tolist addressable_shards block_until_ready get_value replace to
    """
)
"""Methods that dicts, lists, strings and arrays have."""
_COUNTS = re.compile(r"^(?:n|num)_?|_?(?:heads|groups|layers)$")


@dataclass(frozen=True, slots=True)
class Known:
    """What is known outside of a function's body."""

    aliases: Mapping[str, str]
    static: tuple[str, ...]
    """Parameters that a `jax.jit` makes static."""
    words: Mapping[str, Described]
    builder: Builder
    parameters: frozenset[str]
    """The names of all parameters."""
    kinds: dict[str, str] = field(default_factory=dict)
    """The kinds of the parameters, once they are known."""

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
    annotated = known.builder.kind_of(parameter.annotation)
    name = parameter.name
    if name in ("key", "keys") and any(map(names.QUERY.fullmatch, known.parameters)):
        return "array"
    is_array = evidence.array or annotated == "array"
    if names.AXES.fullmatch(name) and not is_array and parameter.annotation != "int":
        return "literal 0" if names.MAPPED_AXES.fullmatch(name) else "literal (-1,)"
    if annotated in ("", "tree") and not evidence.array and (like := _state(evidence, name, known)):
        return f"class {like}"
    if example := _by_use(evidence, annotated):
        return example
    if names.DIMENSION_NUMBERS.fullmatch(name):
        return "dimension numbers"
    if names.UNSET.fullmatch(name) and not annotated.startswith("literal "):
        return "literal None"
    if name in known.static:
        return _static(evidence, annotated, name)
    if annotated == "literal 2" and names.AXIS.fullmatch(name) and not evidence.number:
        return "axis"
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
    if names.MODEL_ARGUMENTS.fullmatch(name) and not annotated:
        return "literal ()"
    if said is not None and said.is_function and not (has_axes or evidence.array):
        return "callable"
    if said is not None and said.count and not has_axes:
        return "count"
    if (by_name := _by_name(evidence, annotated, name)) is not None:
        return by_name
    if annotated.startswith("class ") and not evidence.array:
        return annotated
    if not annotated and not evidence.array and (like := _like(evidence, name, known)):
        return f"class {like}"
    if not annotated and _is_object(evidence):
        return "stub"
    return _array_kind(evidence, annotated, name, known.words.get(name))


def _like(evidence: Evidence, name: str, known: Known) -> str:
    """Return the class whose attributes a parameter is asked for; empty for an array."""
    return known.builder.like(name, evidence.attributes) if evidence.attributes else ""


def _state(evidence: Evidence, name: str, known: Known) -> str:
    """Return the class of the module that has the attributes of a pytree; empty for others."""
    asked = {a for a, facts in evidence.members.items() if facts.called is None}
    if len(asked) < 2 and not (asked and evidence.attributes == asked and name == "state"):
        return ""
    return known.builder.with_fields(asked)


def _is_object(evidence: Evidence) -> bool:
    """Return whether a parameter has methods that arrays and pytrees do not have."""
    if evidence.array or evidence.keys or evidence.tree or evidence.sequence:
        return False
    is_called = any(facts.called is not None for facts in evidence.members.values())
    return is_called and not _PLAIN & evidence.attributes


def _by_use(evidence: Evidence, annotated: str) -> str:
    if annotated.startswith("class ") and evidence.called is not None:
        return annotated
    if evidence.called is not None or (annotated == "callable" and not evidence.array):
        return "callable"
    if evidence.choices and not evidence.array:
        return f"literal {evidence.choices[0]}"
    if evidence.key and annotated != "literal 2":
        return "key"
    if evidence.dtype and not evidence.array:
        return "dtype"
    if evidence.shape_like and not evidence.array:
        return "count" if evidence.number else "shape"
    if evidence.item is not None and evidence.item.parts and not evidence.array:
        return "arrays"
    if evidence.keys and not evidence.shape.find().least:
        return "dict"
    if evidence.tree and not evidence.array:
        return annotated if annotated.startswith("class ") else "tree"
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
        (names.COUNTS, "shape"),
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
            (names.PADDING, "literal 'SAME'"),
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
    if names.STEP.fullmatch(name):
        return "scalar"
    if annotated == "tree" or names.TREE.fullmatch(name):
        return "tree"
    if names.COUNTS.fullmatch(name) and evidence.sequence:
        return "shape"
    if evidence.sequence and not evidence.number:
        return "arrays"
    if names.FUNCTION.fullmatch(name) and not evidence.number and not evidence.attributes:
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
    by_name = evidence.array <= 1 and (
        names.SCALAR.fullmatch(name) or (annotated == "array" and names.COUNT.fullmatch(name))
    )
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
    place: str = "",
) -> Guess:
    """Return the example of a parameter of a kind; `sizing` has its shape under `place`."""
    name = parameter.name
    place = place or name
    match declared:
        case Key():
            return KeyGuess()
        case Array(dtype):
            return (
                ArrayGuess(sizing.shape(place), dtype) if kind == "array" else ArrayGuess((), dtype)
            )
    match kind:
        case "callable" | "stub":
            return _function(kind, parameter, evidence, known) or ArrayGuess(sizing.usual())
        case "callables":
            return ExpressionGuess("[lambda x: x, lambda x: x]")
        case "key":
            return KeyGuess()
        case "dtype":
            return _dtype(known, evidence)
        case "shape":
            return LiteralGuess(f"({', '.join(map(str, _numbers(sizing, sizing.usual())))})")
        case "axis":
            return LiteralGuess("-1")
        case "count":
            return LiteralGuess("2" if _COUNTS.search(name) else "4")
        case "mesh":
            return LiteralGuess("data=2")
        case "dimension numbers":
            return LiteralGuess("(((1,), (0,)), ((), ()))")
        case "scalar":
            return ArrayGuess((), _dtype_of(evidence, name, known))
        case "dict":
            return _dict(evidence, sizing, place)
        case "tree":
            return _tree(name, evidence, known, sizing)
        case "arrays":
            return _list(parameter, evidence, known, sizing, place)
    if kind.startswith("literal "):
        return LiteralGuess(kind.removeprefix("literal "))
    if kind.startswith("class "):
        written = kind.removeprefix("class ")
        return ExpressionGuess(known.builder.expressions(written, evidence.members)[0])
    return ArrayGuess(sizing.shape(place), _dtype_of(evidence, name, known))


def _function(
    kind: str, parameter: Parameter, evidence: Evidence, known: Known
) -> ExpressionGuess | None:
    """Return a function, or an object with methods; `None` if it cannot be written."""
    if kind == "stub":
        numpy = known.module(*_NUMPY)
        made = functions.stub(parameter.name, evidence, known.builder.key(), numpy)
        return ExpressionGuess(made) if made else None
    if model := _model(parameter.name, evidence, known):
        return ExpressionGuess(model)
    trees = [n for n, k in known.kinds.items() if k in ("tree", "dict")]
    leaves = f"{jax}.tree.leaves" if (jax := known.module("jax")) else ""
    annotation = parameter.annotation or ""
    return ExpressionGuess(functions.function(parameter.name, evidence, annotation, trees, leaves))


def _tree(name: str, evidence: Evidence, known: Known, sizing: Sizing) -> Guess:
    if names.MODEL_KEYWORDS.fullmatch(name):
        return LiteralGuess("{}")
    if any(_model(n, evidence, known) for n in known.parameters):
        return DictGuess((("'x'", ArrayGuess(())),))
    first, last = sizing.usual()
    return DictGuess((("'w'", ArrayGuess((first, last))), ("'b'", ArrayGuess((last,)))))


def _list(
    parameter: Parameter, evidence: Evidence, known: Known, sizing: Sizing, place: str
) -> ListGuess:
    """Return a tuple of what it is unpacked into, or a list of what a loop unpacks."""
    listed = evidence.item.parts if evidence.item is not None and not evidence.parts else ()
    items = (_part(parameter, p, known, sizing) for p in evidence.parts or listed)
    parts = ListGuess(tuple(items), is_tuple=True)
    if parts.items:
        return ListGuess((parts,) * 2) if listed else parts
    count = min(evidence.sequence or 2, _LONGEST)
    return ListGuess((ArrayGuess(sizing.shape(place)),) * count)


def kind_of_part(parameter: Parameter, part: Evidence, known: Known) -> str:
    """Return the kind of an item of a list that is unpacked."""
    return kind(replace(parameter, name=part.name, annotation=None), part, known)


def _part(
    parameter: Parameter, part: Evidence, known: Known, sizing: Sizing
) -> ArrayGuess | KeyGuess | LiteralGuess | DictGuess:
    """Return the example of an item of a list that is unpacked, in most cases an array."""
    guessed = guess(
        replace(parameter, name=part.name, annotation=None),
        kind_of_part(parameter, part, known),
        part,
        None,
        known,
        sizing,
        f"{parameter.name}/{part.name}",
    )
    if isinstance(guessed, ArrayGuess | KeyGuess | LiteralGuess | DictGuess):
        return guessed
    return ArrayGuess(sizing.shape(f"{parameter.name}/{part.name}"))


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


def _dict(evidence: Evidence, sizing: Sizing, place: str) -> DictGuess:
    """Return a dict of arrays, and of dicts if its items have keys."""
    items: list[tuple[str, ArrayGuess | DictGuess]] = []
    for key in evidence.keys:
        facts = evidence.labelled.get(key)
        inside = f"{place}[{key}]"
        if facts is not None and facts.keys:
            items.append((key, _dict(facts, sizing, inside)))
        else:
            items.append((key, ArrayGuess(sizing.shape(inside), _of_item(evidence, key))))
    return DictGuess(tuple(items))


def _of_item(evidence: Evidence, key: str) -> str:
    facts = evidence.labelled.get(key)
    return "int32" if facts is not None and facts.integer else "float32"


def _model(name: str, evidence: Evidence, known: Known) -> str:
    """Return a probabilistic program for a `model` in a module that imports NumPyro."""
    numpyro = known.module("numpyro")
    if not numpyro or not names.MODEL.fullmatch(name) or (evidence.called or evidence.array):
        return ""
    normal = f"{known.module('numpyro.distributions') or f'{numpyro}.distributions'}.Normal"
    return f"lambda *args, **kwargs: {numpyro}.sample('x', {normal}(0.0, 1.0))"


def _dtype(known: Known, evidence: Evidence) -> Guess:
    numpy = known.module(*_NUMPY)
    if evidence.dtypes and numpy:
        return ExpressionGuess(f"{numpy}.{evidence.dtypes[0]}")
    return ExpressionGuess(f"{numpy}.float32") if numpy else LiteralGuess("'float32'")
