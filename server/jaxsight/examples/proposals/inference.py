"""Propose example inputs of a function from its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType

from jaxsight.examples.annotations import example_of
from jaxsight.examples.binding import Signature
from jaxsight.examples.docstrings.lines import read_docstring
from jaxsight.examples.notation.parser import parse_example
from jaxsight.examples.notation.values import (
    ArrayNode,
    Key,
    LiteralNode,
    NamedSize,
    Node,
    Number,
    Size,
    TreeNode,
)
from jaxsight.examples.problems import Malformed
from jaxsight.examples.proposals.clues import Clues, Inferred, ParameterKind, kind_of
from jaxsight.examples.proposals.interpreting.evidence import (
    Const,
    Dim,
    Evidence,
    Param,
    Shape,
    Value,
)
from jaxsight.examples.proposals.interpreting.interpretation import BodyInterpreter
from jaxsight.examples.proposals.proposal import Guess, Proposal
from jaxsight.examples.proposals.prose import Described, described
from jaxsight.examples.proposals.sources import Definitions, Library, ModuleScope, source_of
from jaxsight.examples.proposals.writing import ExampleWriter, Sizing
from jaxsight.source.definitions import Function
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.statements import tree_of
from jaxsight.text.parsing import literal_in

_PASSES = 2
"""Times that a body is interpreted: the second time with the ranks that the first one found."""
_NOTHING: Mapping[str, str] = MappingProxyType({})
_NO_NUMBERS: Mapping[str, int] = MappingProxyType({})


def infer(
    module: Module,
    chunk: ModuleChunk,
    function: Function,
    library: Library | None = None,
    known: Mapping[str, str] = _NOTHING,
) -> Proposal | None:
    """Return a proposal for a function; `None` if its text cannot be read.

    Definitions of imported names are read from the files of `library`. `known` are examples of
    some parameters in the notation, such as `f32[8, 28, 28, 1]`, or the names of their classes: the
    proposal has the others, and sizes that agree with them.
    """
    if (node := _definition(chunk, function)) is None:
        return None
    signature = Signature(function)
    library = library or Library()
    source = source_of(module, library.package)
    facts = _Facts(signature, known)
    words = described(_documented(chunk, function), [p.name for p in function.parameters])
    interpreter = facts.interpret(node, source, words)
    scope = ModuleScope(source, library)
    shared = read_docstring(function.class_docstring).sets[:1]
    covered = {*known, *(line.name for declared in shared for line in declared.examples)}
    writers: dict[str, ExampleWriter] = {}
    sizing = Sizing({p.name for p in function.parameters})
    for p in signature.required:
        if p.name in covered:
            continue
        is_self = p.name == signature.self_name
        clues = Clues(
            p.name,
            scope,
            frozenset(facts.evidence),
            signature.class_name if is_self else p.annotation or "",
            uses=facts.evidence[p.name],
            said=words.get(p.name, Described()),
            static=p.name in function.static_names,
        )
        what = Inferred(ParameterKind.OBJECT, signature.class_name) if is_self else kind_of(clues)
        writers[p.name] = ExampleWriter(clues, what, sizing, p.name)
    for writer in writers.values():
        writer.settle()
    _link(interpreter.links)
    for writer in writers.values():
        writer.take_shapes()
    examples: dict[str, Guess] = {name: writer.example() for name, writer in writers.items()}
    unproved = frozenset(name for name, writer in writers.items() if writer.is_guess)
    return Proposal(examples, sizing.sizes, facts.names, unproved)


class _Facts:
    """The evidence about each parameter, from annotations, known examples, words and the body."""

    def __init__(self, signature: Signature, known: Mapping[str, str]) -> None:
        self.evidence = {
            p.name: Evidence(
                p.name, optional=p.default == "None", instance=p.name == signature.self_name
            )
            for p in signature.parameters
        }
        self._declared = {p.name: example_of(p.annotation) for p in signature.parameters}
        for name, text in known.items():
            self._declared[name] = None  # an expression, or the name of a class
            with suppress(Malformed):
                self._declared[name] = parse_example(text)
        self._values: dict[str, Value] = {n: Param(facts) for n, facts in self.evidence.items()}
        self._values |= {
            p.name: Const(value.value)
            for p in signature.parameters
            if p.default not in (None, "None") and (value := _constant(p.default or "")) is not None
        }
        self._sized: dict[str, Dim] = {}
        self._constants: Mapping[str, int] = _NO_NUMBERS

    @property
    def names(self) -> frozenset[str]:
        """The names that new sizes cannot have."""
        return frozenset((*self.evidence, *self._sized))

    def interpret(
        self, node: ast.FunctionDef, source: Definitions, words: Mapping[str, Described]
    ) -> BodyInterpreter:
        """Collect what annotations, the body and the docstring say, in this order."""
        self._constants = {
            name: node.value
            for name, node in source.types.items()
            if isinstance(node, ast.Constant) and type(node.value) is int
        }
        for name, declared in self._declared.items():
            if name in self.evidence and declared is not None:
                self._declare(name, self.evidence[name], declared)
        interpreter = BodyInterpreter(source.aliases, source.types)
        for name, said in words.items():
            if said.scalar and not said.has_rank and self._declared.get(name) is None:
                self.evidence[name].shape.set_rank(0)
        for _ in range(_PASSES):
            interpreter.interpret(node, self._values)
            for name, said in words.items():
                if name in self.evidence and not isinstance(self._declared.get(name), ArrayNode):
                    self._say(self.evidence[name].shape, said)
            for facts in self.evidence.values():
                for each in (facts, *facts.keys.values()):
                    each.shape.settle()
        return interpreter

    def _declare(self, name: str, facts: Evidence, declared: Node) -> None:
        """Take an example that is given, or that a jaxtyping annotation describes."""
        match declared:
            case ArrayNode(dtype, sizes):
                facts.shape.set_rank(len(sizes))
                facts.integer = facts.integer or dtype.startswith(("int", "uint"))
                for i, size in enumerate(sizes):
                    facts.shape.fix(i, self._dim(size))
            case Key():
                facts.random = True
            case TreeNode("dict", children, keys):
                for key, child in zip(keys, children, strict=True):
                    self._declare(key, facts.key(key), child)
            case LiteralNode(text) if (constant := _constant(text)) is not None:
                self._values[name] = constant

    def _dim(self, size: Size) -> Dim:
        match size:
            case Number(value):
                return Dim(number=value, is_one=value == 1)
            case NamedSize(name):
                number = self._constants.get(name)
                return self._sized.setdefault(name, Dim(name=name, number=number))
        return Dim()

    def _say(self, shape: Shape, said: Described) -> None:
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
                name = Number(int(size)) if size.isdigit() else NamedSize(size)
                shape.fix(-i, self._dim(name))
        elif said.rank is not None and root.rank is None and root.likely is None:
            root.likely = said.rank
            if said.square:
                shape.dim(-1).unify(shape.dim(-2))


def _constant(text: str) -> Const | None:
    try:
        return Const(literal_in(text))
    except ValueError:
        return None


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


_LONGEST_TEXT = 20_000
"""Characters of documentation that patterns search: a choice. Longer texts take noticeable time."""
_COMMENT = re.compile(r"^(?P<code>[^#\n]*?)#(?P<text>.*)$", re.MULTILINE)


def _documented(chunk: ModuleChunk, function: Function) -> str:
    """Return the docstring, and comments as lines of it."""
    lines = chunk.text.split("\n")[function.range.start.line : function.range.end.line + 1]
    head = function.body_start.line - function.range.start.line
    entries: list[str] = []
    for i, line in enumerate(lines):
        if (comment := _COMMENT.match(line)) is None:
            continue
        text = comment["text"].strip()
        named = re.match(r"\W*(\w+)\s*[:=,)]", comment["code"].removeprefix("def "))
        if i < head and named is not None:
            entries.append(f"{named[1]}: {text}")
        entries.append(text)
    docstring = function.docstring.text if function.docstring is not None else ""
    return "\n\n".join((docstring, *entries))[:_LONGEST_TEXT]


def _link(links: Iterable[tuple[Shape, Shape]]) -> None:
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
