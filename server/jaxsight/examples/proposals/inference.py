"""Propose example inputs of a function from its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jaxsight.examples.annotations import example_of
from jaxsight.examples.docstrings.lines import read_docstring
from jaxsight.examples.notation.values import Array, Named, Node, Number, Size
from jaxsight.examples.proposals import guesses, names
from jaxsight.examples.proposals.construction import Builder
from jaxsight.examples.proposals.guesses import Known
from jaxsight.examples.proposals.interpreting.evidence import Const, Evidence, Param, Value
from jaxsight.examples.proposals.interpreting.interpretation import Interpreter
from jaxsight.examples.proposals.interpreting.shapes import Dim, Shape
from jaxsight.examples.proposals.proposal import ArrayGuess, Guess, ListGuess, Proposal
from jaxsight.examples.proposals.prose import Described, described
from jaxsight.examples.proposals.sizing import USUAL_RANK, Sizing
from jaxsight.examples.proposals.sources import Library, Names, source_of
from jaxsight.examples.signature import Signature
from jaxsight.source.functions import Function, Parameter
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.statements import tree_of

_LONGEST_DOCSTRING = 20_000
_NULLABLE = re.compile(r"\bOptional\[|\| None\b|\bNone \|")
_KEYS = re.compile(r"prng_key|key_data|wrap_key")
_PASSES = 2
"""Times that a body is interpreted: the second time with the ranks that the first one found."""


@dataclass(eq=False, slots=True)
class Inferred:
    """What is known of a function, and the proposal that follows from it."""

    proposal: Proposal
    evidence: Mapping[str, Evidence]
    optional: Mapping[str, Guess]
    """Examples of the parameters whose default is `None`."""
    known: Known
    kinds: Mapping[str, str]
    """The kinds of the parameters, as `guesses.kind` returns them."""
    nullable: tuple[str, ...]
    """Parameters without a default whose annotation allows `None`."""
    converts_keys: bool
    """The body asks whether an array has keys, or for their data."""


def infer(
    module: Module, chunk: ModuleChunk, function: Function, library: Library | None = None
) -> Inferred | None:
    """Return a proposal for a function; `None` if its text cannot be read.

    Definitions of imported names are read from the files of `library`.
    """
    node = _definition(chunk, function)
    if node is None:
        return None
    signature = Signature(function)
    library = library or Library()
    source = source_of(module, library.package)
    evidence = {
        p.name: Evidence(p.name, optional=p.default == "None") for p in signature.parameters
    }
    interpreter = Interpreter(source.functions, source.aliases)
    declared = {p.name: example_of(p.annotation) for p in signature.parameters}
    words = _described(function)
    _interpret(interpreter, node, signature, evidence, declared, words)
    builder = Builder(Names(source, library))
    known = Known(source.aliases, function.static_names, words, builder, frozenset(evidence))
    needed = _needed(signature, function)
    optional = [p for p in signature.parameters if p.default == "None"]
    kinds = known.kinds
    kinds |= {p.name: guesses.kind(p, evidence[p.name], known) for p in (*needed, *optional)}
    if signature.self_name in kinds:
        kinds[signature.self_name] = f"class {signature.class_name}"
    for p in (*needed, *optional):
        _fix_scalars(p, kinds[p.name], evidence[p.name], known)
    _flatten_biases(evidence)
    _link(interpreter.links)
    sizing = Sizing({p.name for p in function.parameters})

    def guessed(parameters: list[Parameter]) -> dict[str, Guess]:
        for p in parameters:
            if kinds[p.name] in ("array", "arrays", "tree", "dict"):
                sizing.add(p.name, evidence[p.name], kinds[p.name])
        return {
            p.name: guesses.guess(
                p, kinds[p.name], evidence[p.name], declared[p.name], known, sizing
            )
            for p in parameters
        }

    examples = guessed(needed)
    stars = signature.variadic
    if stars and (not examples or any(kind.startswith("callable") for kind in kinds.values())):
        arrays = (ArrayGuess(sizing.usual()),) * (1 if examples else 2)
        examples[f"*{stars}"] = ListGuess(arrays, is_tuple=True)
    extras = guessed(optional)
    return Inferred(
        Proposal(examples, sizing.sizes),
        evidence,
        extras,
        known,
        kinds,
        tuple(p.name for p in needed if _NULLABLE.search(p.annotation or "")),
        bool(_KEYS.search(chunk.text)),
    )


def _interpret(
    interpreter: Interpreter,
    node: ast.FunctionDef,
    signature: Signature,
    evidence: Mapping[str, Evidence],
    declared: Mapping[str, Node | None],
    words: Mapping[str, Described],
) -> None:
    """Collect what annotations, the body and the docstring say, in this order."""
    sized: dict[str, Dim] = {}
    for name, array in declared.items():
        if isinstance(array, Array):
            _declare(evidence[name].shape, array, sized)
    for i in range(_PASSES):
        interpreter.links.clear()
        interpreter.run(node, _values(signature, evidence))
        if i == 0:
            for name, said in words.items():
                if name in evidence and not isinstance(declared[name], Array):
                    _say(evidence[name].shape, said, sized)
            _settle(evidence, interpreter.links)


def _settle(evidence: Mapping[str, Evidence], links: list[tuple[Shape, Shape]]) -> None:
    """Give arrays of unknown rank the rank that is likely for them or for what comes of them."""
    for name, facts in evidence.items():
        shape = facts.shape.find()
        if shape.rank is not None or not facts.array or facts.keys or facts.tree:
            continue
        likely = shape.likely
        if likely is None:
            ranks = [
                (tied.rank if tied.rank is not None else tied.likely, more)
                for other, more in shape.ties
                for tied in (other.find(),)
            ]
            likely = next((rank - more for rank, more in ranks if rank is not None), None)
        if likely is None and names.VECTOR.fullmatch(name) and shape.least <= 1:
            likely = 1
        if likely is None and shape.ties and not names.SCALAR.fullmatch(name):
            likely = next(iter(_linked(shape, links)), USUAL_RANK)
        if likely is not None:
            shape.set_rank(max(likely, shape.least))


def _linked(shape: Shape, links: list[tuple[Shape, Shape]]) -> Iterator[int]:
    """Yield the ranks of the arrays that one is broadcast with."""
    for one, two in links:
        for mine, other in ((one.find(), two.find()), (two.find(), one.find())):
            if mine is shape and other.rank:
                yield other.rank


def _fix_scalars(parameter: Parameter, kind: str, evidence: Evidence, known: Known) -> None:
    """Give scalars rank 0, also those in a list."""
    if kind == "scalar":
        evidence.shape.set_rank(0)
    for part in evidence.parts:
        if guesses.kind_of_part(parameter, part, known) == "scalar":
            part.shape.set_rank(0)


def _definition(chunk: ModuleChunk, function: Function) -> ast.FunctionDef | None:
    """Return the syntax tree of a function, found by its place."""
    try:
        tree = tree_of(chunk.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    name = function.qualname.rpartition(".")[2]
    end = function.range.end.line + 1
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name and node.end_lineno == end:
            return node
    return None


def _values(signature: Signature, evidence: Mapping[str, Evidence]) -> dict[str, Value]:
    """Return the parameters' values: those with a simple default are that default."""
    values: dict[str, Value] = {}
    for p in signature.parameters:
        values[p.name] = Param(evidence[p.name])
        if p.default is not None and p.default != "None":
            try:
                values[p.name] = Const(ast.literal_eval(p.default))
            except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
                continue
    return values


def _needed(signature: Signature, function: Function) -> list[Parameter]:
    """Return the parameters that need an example: not `self`, if the class gives it."""
    shared = read_docstring(function.class_docstring).sets[:1]
    covered = {line.name for declared in shared for line in declared.examples}
    return [p for p in signature.required if p.name not in covered]


def _described(function: Function) -> Mapping[str, Described]:
    if function.docstring is None:
        return {}
    text = function.docstring.text[:_LONGEST_DOCSTRING]
    return described(text, [p.name for p in function.parameters])


def _declare(shape: Shape, array: Array, sized: dict[str, Dim]) -> None:
    """Give a shape the sizes of a jaxtyping annotation."""
    shape.set_rank(len(array.shape))
    for i, size in enumerate(array.shape):
        shape.dim(i).unify(_dim(size, sized))


def _dim(size: Size, sized: dict[str, Dim]) -> Dim:
    match size:
        case Number(value):
            return Dim(number=value)
        case Named(name):
            return sized.setdefault(name, Dim(name=name))
    return Dim()


def _say(shape: Shape, said: Described, sized: dict[str, Dim]) -> None:
    """Give a shape what the docstring says of it, unless the body says otherwise."""
    root = shape.find()
    if said.shape is not None:
        sizes = [size for size in said.shape if size != "..."]
        if len(sizes) == len(said.shape) and not shape.set_rank(len(sizes)):
            return
        if len(sizes) < len(said.shape):
            likely = len(sizes) + (0 if len(sizes) > 1 else 1)
            root.likely = likely if root.likely is None else root.likely
            sizes = sizes[said.shape.index("...") :] if said.shape[0] == "..." else []
        for i, size in enumerate(reversed(sizes), start=1):
            number = int(size) if size.isdigit() else None
            dim = (
                Dim(number=number) if number is not None else sized.setdefault(size, Dim(name=size))
            )
            shape.dim(-i).unify(dim)
    elif said.rank is not None and root.rank is None and root.likely is None:
        root.likely = said.rank
        if said.square:
            shape.dim(-1).unify(shape.dim(-2))


def _flatten_biases(evidence: Mapping[str, Evidence]) -> None:
    """Give biases one axis, if the body does not say otherwise."""
    shapes = {name: facts.shape for name, facts in evidence.items() if len(name) > 2}
    for facts in evidence.values():
        shapes |= {key.strip("'"): shape for key, shape in facts.keys.items()}
    for name, shape in shapes.items():
        if names.BIAS.fullmatch(name) and shape.find().likely is None:
            shape.set_rank(1)


def _link(links: list[tuple[Shape, Shape]]) -> None:
    """Make shapes that are broadcast with each other the same, known ranks first."""
    for known in (True, True, False):
        for one, two in links:
            first, second = one.find(), two.find()
            if 0 in (first.rank, second.rank):
                continue
            if 1 in (first.rank, second.rank) and None in (first.rank, second.rank):
                first.dim(-1).unify(second.dim(-1))
                continue
            if not known or first.rank is not None or second.rank is not None:
                one.unify(two)
