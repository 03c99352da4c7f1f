"""The finding that a fix is context for, with the syntax around it.

Edits that it makes leave all other text unchanged.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeVar

from jaxsight.meshes.divided import ArrayType, array_type
from jaxsight.rules.finding import Finding
from jaxsight.rules.fixing.module_names import NamesOfModule
from jaxsight.rules.text.expressions import FunctionNode, free_names, only_value
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.statements import tree_of
from jaxsight.source.text import Edit, Position, Range, SourceText
from jaxsight.text.names import bound_in
from jaxsight.wire.observations import ExprValue, Observation

Node = TypeVar("Node", bound=ast.AST)

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
_APART = (
    ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
"""Expressions whose parts are evaluated later, repeatedly or never: they are not hoisted."""
_BOUND = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.Tuple, ast.List)
"""Expressions that need no brackets anywhere."""
_NOWHERE = Range(Position(0, 0), Position(0, 0))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed change.

    `title` describes it; a `safe` one is meant to leave every value unchanged.
    """

    title: str
    edits: tuple[Edit, ...]
    safe: bool = True
    same: bool = True
    """Whether values must be equal; otherwise only types and shapes are compared."""


class TracedText(Protocol):
    """A traced function in the current text."""

    @property
    def module(self) -> Module: ...

    @property
    def subject_range(self) -> Range: ...

    @property
    def example_places(self) -> Sequence[tuple[str, Range]]: ...

    @property
    def observed(self) -> Mapping[Range, Observation]: ...

    def values(self, observation: Observation) -> tuple[ExprValue, ...]: ...


@dataclass(frozen=True, slots=True)
class UntracedText:
    """A text, for fixes of what does not depend on a trace."""

    module: Module
    subject_range: Range = _NOWHERE
    example_places: Sequence[tuple[str, Range]] = ()
    observed: Mapping[Range, Observation] = field(default_factory=dict)

    def values(self, observation: Observation) -> tuple[ExprValue, ...]:
        """Return no values."""
        return ()


class FixContext(NamesOfModule):
    """A finding of a view that is not stale, in its chunk."""

    def __init__(self, view: TracedText, finding: Finding, chunk: ModuleChunk) -> None:
        self.view = view
        self.finding = finding
        self.chunk = chunk
        super().__init__(view.module, tree_of(chunk.text))
        self.source = SourceText(chunk.text)

    @staticmethod
    def of(view: TracedText, finding: Finding) -> FixContext | None:
        """Return the finding with its syntax; `None` if its text cannot be parsed."""
        chunk = view.module.chunk_at(finding.range.start)
        if chunk is None or chunk.broken is not None or finding.stale:
            return None
        return FixContext(view, finding, chunk)

    def elsewhere(self) -> Iterator[FixContext]:
        """Yield the same finding in each chunk of the module."""
        for chunk in self.module.chunks:
            if chunk.broken is None:
                yield self if chunk is self.chunk else FixContext(self.view, self.finding, chunk)

    def of_subject(self) -> FixContext:
        """Return the same finding in the chunk of the traced function.

        A finding may be in a helper that the function calls.
        """
        chunk = self.module.chunk_at(self.view.subject_range.start)
        if chunk is None or chunk is self.chunk or chunk.broken is not None:
            return self
        return FixContext(self.view, self.finding, chunk)

    def on_its_own(self, node: ast.expr) -> str:
        """Return a node's text as it can be written outside of the brackets around it."""
        text = self.text(node)
        return f"({text})" if "\n" in text and not isinstance(node, _BOUND) else text

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The parent of each node of the chunk."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        """The nodes within the finding's range, largest first.

        If there are none, it is the smallest node around the range.
        """
        extent = self.finding.range
        within, around = [], []
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.expr | ast.stmt):
                continue
            at = self.range(node)
            if extent.start <= at.start and at.end <= extent.end:
                within.append(node)
            elif at.start <= extent.start and extent.end <= at.end:
                around.append(node)
        return within or around[-1:]

    @property
    def node(self) -> ast.AST | None:
        """The first of these nodes."""
        return next(iter(self.nodes), None)

    def find(self, kind: type[Node]) -> Iterator[Node]:
        """Return the nodes of a kind in the finding's range, largest first."""
        return (node for node in self.nodes if isinstance(node, kind))

    def ancestors(self, node: ast.AST | None) -> Iterator[ast.AST]:
        """Yield the ancestors of a node, innermost first."""
        while node is not None and (node := self.parents.get(node)) is not None:
            yield node

    def function(self, node: ast.AST | None) -> FunctionNode | None:
        """Return the `def` around a node."""
        functions = (node for node in self.ancestors(node) if isinstance(node, FunctionNode))
        return next(functions, None)

    def array_call(self, call: ast.Call) -> tuple[str, ast.expr, list[ast.expr]] | None:
        """Return the function of `jax.numpy` or `jax.lax`, or the method, that a call is of.

        Return its name, its array and its other positional arguments; `None` for other functions.
        """
        function = self.called(call.func)
        if function.startswith(("jax.numpy.", "jax.lax.")):
            name = function.rpartition(".")[2]
            return (name, call.args[0], call.args[1:]) if call.args else None
        if isinstance(call.func, ast.Attribute) and not function.startswith(("jax.", "numpy.")):
            return call.func.attr, call.func.value, call.args
        return None

    def value_of(self, node: ast.expr) -> ast.expr:
        """Return the expression that a name stands for, if the function assigns it once."""
        function = self.function(node)
        if not isinstance(node, ast.Name) or function is None:
            return node
        return only_value(node.id, function) or node

    def only_use(self, assigned: ast.Assign) -> ast.Name | None:
        """Return the one place that reads the name that a line of its own assigns."""
        function = self.function(assigned)
        match assigned.targets:
            case [ast.Name(id=name) as target] if function is not None:
                names = (node for node in ast.walk(function) if isinstance(node, ast.Name))
                uses = [node for node in names if node.id == name and node is not target]
                return uses[0] if len(uses) == 1 and self.is_alone(assigned) else None
            case _:
                return None

    @cached_property
    def subject(self) -> FunctionNode | None:
        """The `def` of the traced function, if it is in this chunk."""
        end = self.view.subject_range.end
        functions = (node for node in ast.walk(self.tree) if isinstance(node, FunctionNode))
        return next((node for node in functions if self.range(node).end == end), None)

    def range(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword | ast.alias) -> Range:
        """Return the range of a node in the module."""
        return self.source.range(node).shifted(self.chunk.first_line)

    def text(self, node: ast.expr | ast.stmt) -> str:
        """Return the text of a node."""
        return self.source.between(self.source.range(node))

    def aval_of(self, node: ast.expr) -> ArrayType | None:
        """Return the type of an expression in the trace, if it always had the same.

        Types that say how an array is divided are not read.
        """
        observation = self.view.observed.get(self.range(node))
        if observation is None or observation.more or not observation.values:
            return None
        texts = {value.text for value in self.view.values(observation)}
        text = texts.pop() if len(texts) == 1 else ""
        return array_type(text) if "@" not in text else None

    def replace(self, node: ast.expr | ast.stmt | ast.keyword, text: str) -> Edit:
        """Return the edit that replaces a node."""
        return Edit(self.range(node), text)

    def replaced(
        self, node: ast.expr | ast.stmt, text: str, title: str, *, safe: bool = True, same: bool
    ) -> Candidate:
        """Return the change that replaces a node, and nothing else."""
        return Candidate(title, (self.replace(node, text),), safe, same)

    def appended(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword, text: str) -> Edit:
        """Return the edit that inserts a text right after a node."""
        end = self.range(node).end
        return Edit(Range(end, end), text)

    def without(self, statement: ast.stmt) -> Edit:
        """Return the edit that deletes the lines of a statement."""
        return Edit(self.lines(statement), "")

    def with_keyword(self, call: ast.Call, text: str) -> Edit:
        """Return the edit that adds a keyword to a call: `unroll=True`."""
        given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        if given:
            return self.appended(max(given, key=self.range), f", {text}")
        end = self.range(call).end
        last = Position(end.line, end.column - 1)
        return Edit(Range(last, last), text)

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """Yield the calls in the finding's range of functions with one of some full names."""
        return (call for call in self.find(ast.Call) if self.called(call.func) in names)

    def arguments(self, call: ast.Call) -> list[Range]:
        """Return the ranges of a call's arguments, in order."""
        return sorted([*map(self.range, call.args), *map(self.range, call.keywords)])

    def bracketed(self, node: ast.expr, text: str) -> str:
        """Return an expression with operators, in brackets if a node's place requires them."""
        parent = self.parents.get(node)
        alone = isinstance(parent, (*_SIMPLE, ast.Lambda, ast.keyword, ast.Tuple, ast.List)) or (
            isinstance(parent, ast.Call) and node in parent.args
        )
        return text if alone else f"({text})"

    def operand(self, node: ast.expr) -> str:
        """Return a node's text as an operand, in brackets if they are necessary."""
        return self.text(node) if isinstance(node, _BOUND) else f"({self.text(node)})"

    def statement(self, node: ast.AST | None) -> ast.stmt | None:
        """Return the simple statement around a node, if parts of the node can precede it.

        Returns `None` inside lambdas and the like.
        """
        for part in self.ancestors(node):
            if isinstance(part, _APART):
                return None
            if isinstance(part, ast.stmt):
                return part if isinstance(part, _SIMPLE) and self.begins_line(part) else None
        return None

    def text_of_parameters(self, node: ast.Lambda) -> str:
        """Return the text between `lambda` and its colon."""
        start, body = self.source.range(node), self.source.range(node.body)
        head = self.source.between(Range(start.start, body.start))
        return head.removeprefix("lambda").rstrip(" (\n").removesuffix(":").strip()

    def begins_line(self, node: ast.stmt) -> bool:
        """Return whether a statement is the first on its line."""
        return not self.indent(node).strip()

    def is_alone(self, node: ast.stmt) -> bool:
        """Return whether a statement shares its lines with no other code and no comment."""
        end = self.range(node).end
        return self.begins_line(node) and not self.module.line(end.line)[end.column :].strip()

    def indent(self, node: ast.stmt) -> str:
        """Return the white space before a statement."""
        start = self.range(node).start
        return self.module.line(start.line)[: start.column]

    def before(self, statement: ast.stmt, line: str) -> Edit:
        """Return the edit that inserts a line before a statement that begins its own."""
        start = self.range(statement).start
        return Edit(Range(start, start), f"{line}\n{self.indent(statement)}")

    def after(self, statement: ast.stmt, line: str) -> Edit:
        """Return the edit that inserts a line after a statement."""
        return self.appended(statement, f"\n{self.indent(statement)}{line}")

    def lines(self, statement: ast.stmt) -> Range:
        """Return the whole lines of a statement, with the end of the last one."""
        extent = self.range(statement)
        return Range(Position(extent.start.line, 0), Position(extent.end.line + 1, 0))

    def hoisted(self, node: ast.expr, name: str, title: str) -> Iterator[Candidate]:
        """Yield the candidate that hoists an expression of a function to a module-level name.

        There is none if the expression needs names that functions bind.
        """
        around = [node for node in self.ancestors(node) if isinstance(node, ast.stmt)]
        if not around or not isinstance(top := around[-1], FunctionNode | ast.ClassDef):
            return
        if not free_names(node).isdisjoint(bound_in(top)):
            return
        first = min([top.lineno, *(decorator.lineno for decorator in top.decorator_list)])
        start = Position(self.chunk.first_line + first - 1, 0)
        text = f"{name} = {self.text(node)}\n\n\n"
        yield Candidate(title, (Edit(Range(start, start), text), self.replace(node, name)))


def applied(text: str, edits: Sequence[Edit]) -> str:
    """Return a text with edits that do not overlap; its line ends stay.

    Raises:
        ValueError: two edits overlap.
    """
    starts = [0, *(line_end.end() for line_end in re.finditer(r"\r\n|\r|\n", text))]

    def offset(position: Position) -> int:
        return min(starts[min(position.line, len(starts) - 1)] + position.column, len(text))

    end = "\r\n" if "\r\n" in text else "\n"
    spans = sorted(
        (offset(edit.range.start), offset(edit.range.end), edit.text.replace("\n", end))
        for edit in edits
    )
    parts, last = [], 0
    for start, stop, new in spans:
        if start < last:
            raise ValueError("edits overlap")
        parts += [text[last:start], new]
        last = stop
    return "".join((*parts, text[last:]))
