"""The finding that a fix is context for, with the syntax around it.

Edits that it makes leave all other text unchanged.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from jaxsight.rules.finding import Finding
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.source_text import SourceText
from jaxsight.source.statements import tree_of
from jaxsight.source.text import Edit, Position, Range
from jaxsight.wire.messages.tracing import Observation, Seen

_AVAL = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d,]*)\]")
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
_APART = (
    ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
"""Expressions whose parts are evaluated later, repeatedly or never: they are not hoisted."""
_METHODS = frozenset(
    {
        "all", "any", "argmax", "argmin", "astype", "conj", "cumsum", "dot", "flatten", "max",
        "mean", "min", "prod", "ravel", "repeat", "reshape", "round", "squeeze", "std", "sum",
        "swapaxes", "take", "transpose", "var", "view", "set", "add", "multiply", "get",
    }
)  # fmt: skip
"""Methods of arrays without side effects. Sets have `add` too, but there it returns `None`."""
_BUILTINS = frozenset(
    {"abs", "len", "max", "min", "range", "round", "sum", "float", "int", "tuple"}
)
_BOUND = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.Tuple, ast.List)
"""Expressions that need no brackets anywhere."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


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
    adapted: tuple[Edit, ...] = ()
    """The same change, for a fix that changes the form of arguments or results.

    It has an adapter from the old form around it. It is compared in place of the change, and never
    offered.
    """


@dataclass(frozen=True)
class Aval:
    """The type of an array in a trace."""

    dtype: str
    shape: tuple[int, ...]


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

    def seen(self, observation: Observation) -> tuple[Seen, ...]: ...


class FixContext:
    """A finding of a view that is not stale, in its chunk."""

    def __init__(self, view: TracedText, finding: Finding, chunk: ModuleChunk) -> None:
        self.view = view
        self.finding = finding
        self.chunk = chunk
        self.module: Module = view.module
        self.tree = tree_of(chunk.text)
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
        place = self.finding.range
        within, around = [], []
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.expr | ast.stmt):
                continue
            at = self.range(node)
            if place.start <= at.start and at.end <= place.end:
                within.append(node)
            elif at.start <= place.start and place.end <= at.end:
                around.append(node)
        return within or around[-1:]

    def find(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """Return the nodes of some kinds in the finding's range, largest first."""
        return (node for node in self.nodes if isinstance(node, kinds))

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the ancestors of a node, innermost first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def function(self, node: ast.AST) -> FunctionNode | None:
        """Return the `def` around a node."""
        found = (each for each in self.around(node) if isinstance(each, FunctionNode))
        return next(found, None)

    @cached_property
    def subject(self) -> FunctionNode | None:
        """The `def` of the traced function, if it is in this chunk."""
        place = self.view.subject_range
        for node in ast.walk(self.tree):
            if isinstance(node, FunctionNode) and self.range(node).end == place.end:
                return node
        return None

    def range(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> Range:
        """Return the range of a node in the module."""
        return self.source.range(node).shifted(self.chunk.first_line)

    def text(self, node: ast.expr | ast.stmt) -> str:
        """Return the text of a node."""
        return self.source.between(self.source.range(node))

    def seen(self, node: ast.expr) -> Aval | None:
        """Return the type of an expression in the trace, if it always had the same."""
        observation = self.view.observed.get(self.range(node))
        if observation is None or observation.more or not observation.values:
            return None
        texts = {each.text for each in self.view.seen(observation)}
        found = _AVAL.fullmatch(texts.pop()) if len(texts) == 1 else None
        if found is None:
            return None
        return Aval(found["dtype"], tuple(map(int, filter(None, found["shape"].split(",")))))

    def replace(self, node: ast.expr | ast.stmt | ast.keyword, text: str) -> Edit:
        """Return the edit that replaces a node."""
        return Edit(self.range(node), text)

    def arguments(self, call: ast.Call) -> list[Range]:
        """Return the ranges of a call's arguments, in order."""
        places = [*map(self.range, call.args), *map(self.range, call.keywords)]
        return sorted(places)

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

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """Return the simple statement around a node, if parts of the node can precede it.

        Returns `None` inside lambdas and the like.
        """
        for each in self.around(node):
            if isinstance(each, _APART):
                return None
            if isinstance(each, ast.stmt):
                return each if isinstance(each, _SIMPLE) and self.begins_line(each) else None
        return None

    def begins_statement(self, node: ast.expr) -> bool:
        """Return whether lines can be inserted before the statement around an expression."""
        return self.statement(node) is not None

    def text_of_parameters(self, node: ast.Lambda) -> str:
        """Return the text between `lambda` and its colon."""
        start, body = self.source.range(node), self.source.range(node.body)
        head = self.source.between(Range(start.start, body.start))
        return head.removeprefix("lambda").rstrip(" (\n").removesuffix(":").strip()

    def begins_line(self, node: ast.stmt) -> bool:
        """Return whether a statement is the first on its line."""
        place = self.range(node)
        return not self.module.line(place.start.line)[: place.start.column].strip()

    def ends_line(self, node: ast.stmt) -> bool:
        """Return whether a statement is the last on its line, without a comment."""
        place = self.range(node)
        return not self.module.line(place.end.line)[place.end.column :].strip()

    def indent(self, node: ast.stmt) -> str:
        """Return the white space before a statement."""
        place = self.range(node)
        return self.module.line(place.start.line)[: place.start.column]

    def before(self, statement: ast.stmt, line: str) -> Edit:
        """Return the edit that inserts a line before a statement that begins its own."""
        start = self.range(statement).start
        return Edit(Range(start, start), f"{line}\n{self.indent(statement)}")

    def lines(self, statement: ast.stmt) -> Range:
        """Return the whole lines of a statement, with the end of the last one."""
        place = self.range(statement)
        return Range(Position(place.start.line, 0), Position(place.end.line + 1, 0))

    def hoisted(self, node: ast.expr, name: str, title: str) -> Iterator[Candidate]:
        """Yield the candidate that hoists an expression of a function to a module-level name.

        There is none if the expression needs names that functions bind.
        """
        around = [each for each in self.around(node) if isinstance(each, ast.stmt)]
        if not around or not isinstance(top := around[-1], FunctionNode | ast.ClassDef):
            return
        if _free(node) & _bound([*self.around(node)]):
            return
        first = min([top.lineno, *(each.lineno for each in top.decorator_list)])
        start = Position(self.chunk.first_line + first - 1, 0)
        text = f"{name} = {self.text(node)}\n\n\n"
        yield Candidate(title, (Edit(Range(start, start), text), self.replace(node, name)))

    @cached_property
    def names(self) -> frozenset[str]:
        """All names of the chunk."""
        found = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        found |= {node.arg for node in ast.walk(self.tree) if isinstance(node, ast.arg)}
        return frozenset(found | {f.qualname.rpartition(".")[2] for _, f in self.module.functions})

    def fresh(self, name: str) -> str:
        """Return a name that is not in use."""
        candidates = (name, *(f"{name}_{number}" for number in range(2, 100)))
        return next(each for each in candidates if each not in self.names)

    @cached_property
    def imports(self) -> dict[str, str]:
        """Local names by the module or function (`jax.numpy`, `jax.jit`) that they refer to."""
        found: dict[str, str] = {}
        for chunk in self.module.chunks:
            if chunk.broken is not None or "import" not in chunk.text:
                continue
            for node in tree_of(chunk.text).body:
                if isinstance(node, ast.Import):
                    for each in node.names:
                        found.setdefault(
                            each.name if each.asname else each.name.partition(".")[0],
                            each.asname or each.name.partition(".")[0],
                        )
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    for each in node.names:
                        found.setdefault(f"{node.module}.{each.name}", each.asname or each.name)
        return found

    @property
    def jnp(self) -> str:
        """The name of `jax.numpy` here; empty if it has none."""
        named = self.imports.get("jax.numpy", "")
        return named or (f"{self.imports['jax']}.numpy" if "jax" in self.imports else "")

    @property
    def np(self) -> str:
        """The name of `numpy` here; empty if it has none."""
        return self.imports.get("numpy", "")

    @property
    def lax(self) -> str:
        """The name of `jax.lax` here; without one, `jax.lax`, which `jax_import` imports."""
        return self.imports.get("jax.lax", f"{self.imports.get('jax', 'jax')}.lax")

    @property
    def partial(self) -> str:
        """The name of `functools.partial` here; without one, `functools_import` imports it."""
        module = self.imports.get("functools", "functools")
        return self.imports.get("functools.partial", f"{module}.partial")

    def functools_import(self) -> tuple[Edit, ...]:
        """Return the edit that imports `functools` before other modules if `partial` needs it."""
        known = {"functools", "functools.partial"} & self.imports.keys()
        return () if known else self._imported("functools")

    def jax_import(self) -> tuple[Edit, ...]:
        """Return the edit that imports `jax` before other modules if `lax` needs it."""
        known = {"jax", "jax.lax"} & self.imports.keys()
        return () if known else self._imported("jax")

    def _imported(self, module: str) -> tuple[Edit, ...]:
        """Return the edit that adds an import before the first one; nothing if there is none."""
        for chunk in self.module.chunks:
            if chunk.broken is not None:
                continue
            for node in tree_of(chunk.text).body:
                future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
                if isinstance(node, ast.Import | ast.ImportFrom) and not future:
                    start = Position(chunk.first_line + node.lineno - 1, 0)
                    return (Edit(Range(start, start), f"import {module}\n"),)
        return ()

    def is_pure(self, node: ast.AST) -> bool:
        """Return whether an expression may run more often, or never.

        It may if it calls only functions of JAX and NumPy and methods of arrays.
        """
        for call in ast.walk(node):
            if isinstance(call, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
                return False
            if not isinstance(call, ast.Call):
                continue
            name = self.called(call.func)
            known = name.startswith(("jax.", "numpy.")) and "debug" not in name
            method = isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS
            if not known and not method and name not in _BUILTINS:
                return False
        return True

    def called(self, node: ast.expr) -> str:
        """Return the full name of a called function, such as `jax.numpy.sum`.

        A name without an import is returned as written; other expressions give the empty string.
        """
        dotted = _dotted(node)
        if not dotted:
            return ""
        for module, name in sorted(self.imports.items(), key=lambda each: -len(each[1])):
            if dotted == name or dotted.startswith(name + "."):
                return module + dotted[len(name) :]
        return dotted


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""


def _free(node: ast.AST) -> set[str]:
    """Return the names that an expression reads and does not bind."""
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    bound = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    bound |= {each.id for each in names if isinstance(each.ctx, ast.Store)}
    return {each.id for each in names} - bound - set(dir(builtins))


def _bound(scopes: Sequence[ast.AST]) -> set[str]:
    """Return the names that functions and classes bind locally."""
    found: set[str] = set()
    for scope in scopes:
        if not isinstance(scope, FunctionNode | ast.Lambda | ast.ClassDef):
            continue
        for each in ast.walk(scope):
            if isinstance(each, ast.arg):
                found.add(each.arg)
            elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                found.add(each.id)
            elif isinstance(each, FunctionNode) and each is not scope:
                found.add(each.name)
    return found


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    """Return a keyword argument."""
    return next((each for each in call.keywords if each.arg == name), None)


def integer(node: ast.expr | None) -> int | None:
    """Return the value of a whole number, as written."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case ast.Tuple(elts=[one]):
            return integer(one)
        case _:
            return None


def same(one: ast.AST, other: ast.AST) -> bool:
    """Return whether two expressions have the same syntax tree."""
    return ast.dump(one) == ast.dump(other)


def applied(text: str, edits: Sequence[Edit]) -> str:
    """Return a text with edits that do not overlap; its line ends stay.

    Raises:
        ValueError: two edits overlap.
    """
    starts = [0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", text))]

    def offset(position: Position) -> int:
        return min(starts[min(position.line, len(starts) - 1)] + position.column, len(text))

    end = "\r\n" if "\r\n" in text else "\n"
    spans = sorted(
        (offset(each.range.start), offset(each.range.end), each.text.replace("\n", end))
        for each in edits
    )
    parts, last = [], 0
    for start, stop, new in spans:
        if start < last:
            raise ValueError("edits overlap")
        parts += [text[last:start], new]
        last = stop
    return "".join((*parts, text[last:]))
