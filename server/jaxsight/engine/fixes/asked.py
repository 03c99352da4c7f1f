"""What a fix is asked about: a finding in the text, with the syntax around it.

Makes edits that leave all other text as it is.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from jaxsight.engine.answers import Finding
from jaxsight.engine.definitions import Source
from jaxsight.engine.module import Module, ModuleChunk
from jaxsight.engine.pieces import tree_of
from jaxsight.engine.text import Edit, Position, Range
from jaxsight.engine.views import View

_AVAL = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d,]*)\]")
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
_APART = (
    ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
"""What is evaluated later, more than once, or perhaps never: nothing is taken out of it."""
_METHODS = frozenset(
    {
        "all", "any", "argmax", "argmin", "astype", "conj", "cumsum", "dot", "flatten", "max",
        "mean", "min", "prod", "ravel", "repeat", "reshape", "round", "squeeze", "std", "sum",
        "swapaxes", "take", "transpose", "var", "view", "set", "add", "multiply", "get",
    }
)  # fmt: skip
"""Of arrays. `add` is one of sets too, but what it gives there is nothing."""
_BUILTINS = frozenset(
    {"abs", "len", "max", "min", "range", "round", "sum", "float", "int", "tuple"}
)
_BOUND = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.Tuple, ast.List)
"""Expressions that need no brackets anywhere."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed change.

    `title` says what it does; a `safe` one is meant to leave every value as it is.
    """

    title: str
    edits: tuple[Edit, ...]
    safe: bool = True
    same: bool = True
    """Whether the values are to be the same; where not, types and shapes are all that is compared.
    """
    adapted: tuple[Edit, ...] = ()
    """Where another form of arguments and results is what is changed: the same change with what
    takes and gives the old form around it. It is compared in place of the change, and never
    offered.
    """


@dataclass(frozen=True)
class Aval:
    """The type of an array, as a trace saw it."""

    dtype: str
    shape: tuple[int, ...]


class Asked:
    """A finding of a view whose text is not stale, in the chunk that it stands in."""

    def __init__(self, view: View, finding: Finding, chunk: ModuleChunk) -> None:
        self.view = view
        self.finding = finding
        self.chunk = chunk
        self.module: Module = view.module
        self.tree = tree_of(chunk.text)
        self.source = Source(chunk.text)

    @staticmethod
    def of(view: View, finding: Finding) -> Asked | None:
        """Nothing where the text cannot be read."""
        chunk = view.module.chunk_at(finding.range.start)
        if chunk is None or chunk.broken is not None or finding.stale:
            return None
        return Asked(view, finding, chunk)

    def elsewhere(self) -> Iterator[Asked]:
        """The same finding asked about in each chunk of the module."""
        for chunk in self.module.chunks:
            if chunk.broken is None:
                yield self if chunk is self.chunk else Asked(self.view, self.finding, chunk)

    def of_subject(self) -> Asked:
        """The same asked about where the traced function stands: a finding may be in a helper that
        it calls.
        """
        chunk = self.module.chunk_at(self.view.subject.range.start)
        if chunk is None or chunk is self.chunk or chunk.broken is not None:
            return self
        return Asked(self.view, self.finding, chunk)

    def on_its_own(self, node: ast.expr) -> str:
        """A node's text as it can stand outside of the brackets around it."""
        text = self.text(node)
        return f"({text})" if "\n" in text and not isinstance(node, _BOUND) else text

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """What each node of the chunk stands in."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        """The nodes within the finding's range, the largest first; the smallest one around it where
        it holds none.
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
        """The nodes of some kinds in the finding's range, the largest first."""
        return (node for node in self.nodes if isinstance(node, kinds))

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, the innermost first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The `def` around a node."""
        found = (each for each in self.around(node) if isinstance(each, FunctionNode))
        return next(found, None)

    @cached_property
    def subject(self) -> FunctionNode | None:
        """The `def` of the function that was traced, where it stands in this chunk."""
        place = self.view.subject.range
        for node in ast.walk(self.tree):
            if isinstance(node, FunctionNode) and self.range(node).end == place.end:
                return node
        return None

    def range(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> Range:
        """Where a node stands in the module."""
        return self.source.range(node).shifted(self.chunk.first_line)

    def text(self, node: ast.expr | ast.stmt) -> str:
        """A node as it is written."""
        return self.source.between(self.source.range(node))

    def seen(self, node: ast.expr) -> Aval | None:
        """The one type that a trace saw an expression have."""
        observation = self.view.observed.get(self.range(node))
        if observation is None or observation.more or not observation.values:
            return None
        texts = {each.text for each in self.view.seen(observation)}
        found = _AVAL.fullmatch(texts.pop()) if len(texts) == 1 else None
        if found is None:
            return None
        return Aval(found["dtype"], tuple(map(int, filter(None, found["shape"].split(",")))))

    def replace(self, node: ast.expr | ast.stmt | ast.keyword, text: str) -> Edit:
        """Put a text in a node's place."""
        return Edit(self.range(node), text)

    def arguments(self, call: ast.Call) -> list[Range]:
        """Where the arguments of a call stand, in order."""
        places = [*map(self.range, call.args), *map(self.range, call.keywords)]
        return sorted(places)

    def bracketed(self, node: ast.expr, text: str) -> str:
        """A text of operators as it must stand where a node stands."""
        parent = self.parents.get(node)
        alone = isinstance(parent, (*_SIMPLE, ast.Lambda, ast.keyword, ast.Tuple, ast.List)) or (
            isinstance(parent, ast.Call) and node in parent.args
        )
        return text if alone else f"({text})"

    def operand(self, node: ast.expr) -> str:
        """A node's text, in brackets where something may follow it."""
        return self.text(node) if isinstance(node, _BOUND) else f"({self.text(node)})"

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The simple statement around a node before which something of it can be computed; none
        inside lambdas and the like.
        """
        for each in self.around(node):
            if isinstance(each, _APART):
                return None
            if isinstance(each, ast.stmt):
                return each if isinstance(each, _SIMPLE) and self.begins_line(each) else None
        return None

    def begins_statement(self, node: ast.expr) -> bool:
        """Whether lines can be put before the statement that an expression stands in."""
        return self.statement(node) is not None

    def text_of_parameters(self, node: ast.Lambda) -> str:
        """What stands between `lambda` and its colon."""
        start, body = self.source.range(node), self.source.range(node.body)
        head = self.source.between(Range(start.start, body.start))
        return head.removeprefix("lambda").rstrip(" (\n").removesuffix(":").strip()

    def begins_line(self, node: ast.stmt) -> bool:
        """Whether nothing stands before a statement on its line."""
        place = self.range(node)
        return not self.module.line(place.start.line)[: place.start.column].strip()

    def ends_line(self, node: ast.stmt) -> bool:
        """Whether nothing stands behind a statement on its line, comments included."""
        place = self.range(node)
        return not self.module.line(place.end.line)[place.end.column :].strip()

    def indent(self, node: ast.stmt) -> str:
        """The white space before a statement."""
        place = self.range(node)
        return self.module.line(place.start.line)[: place.start.column]

    def before(self, statement: ast.stmt, line: str) -> Edit:
        """Put a line before a statement that begins its own."""
        start = self.range(statement).start
        return Edit(Range(start, start), f"{line}\n{self.indent(statement)}")

    def lines(self, statement: ast.stmt) -> Range:
        """The whole lines of a statement, with the end of the last one."""
        place = self.range(statement)
        return Range(Position(place.start.line, 0), Position(place.end.line + 1, 0))

    def hoisted(self, node: ast.expr, name: str, title: str) -> Iterator[Candidate]:
        """An expression inside a function as a name of the module's, bound before the function;
        nothing where it needs what functions bind.
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
        """A name that is not in use."""
        candidates = (name, *(f"{name}_{number}" for number in range(2, 100)))
        return next(each for each in candidates if each not in self.names)

    @cached_property
    def imports(self) -> dict[str, str]:
        """By module or function (`jax.numpy`, `jax.jit`): what it is called here."""
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
        """What `jax.numpy` is called here; empty where it has no name."""
        named = self.imports.get("jax.numpy", "")
        return named or (f"{self.imports['jax']}.numpy" if "jax" in self.imports else "")

    @property
    def np(self) -> str:
        """What `numpy` is called here; empty where it has no name."""
        return self.imports.get("numpy", "")

    @property
    def lax(self) -> str:
        """What `jax.lax` is called here; `jax.lax` where it has no name, which `jax_import` then
        gives.
        """
        return self.imports.get("jax.lax", f"{self.imports.get('jax', 'jax')}.lax")

    @property
    def partial(self) -> str:
        """What `functools.partial` is called here; `functools_import` gives it where it has no
        name.
        """
        module = self.imports.get("functools", "functools")
        return self.imports.get("functools.partial", f"{module}.partial")

    def functools_import(self) -> tuple[Edit, ...]:
        """What `partial` needs: an import of `functools` before the first one."""
        known = {"functools", "functools.partial"} & self.imports.keys()
        return () if known else self._imported("functools")

    def jax_import(self) -> tuple[Edit, ...]:
        """What `lax` needs: an import of `jax` before the first one."""
        known = {"jax", "jax.lax"} & self.imports.keys()
        return () if known else self._imported("jax")

    def _imported(self, module: str) -> tuple[Edit, ...]:
        """An import before the first one; nothing where there is none."""
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
        """Whether an expression calls nothing but functions of JAX and NumPy and methods of arrays:
        it may run more often, or never.
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
        """The full name of what a call calls, `jax.numpy.sum`, as far as imports tell; empty
        otherwise.
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
    """The names that an expression reads and does not bind."""
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    bound = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    bound |= {each.id for each in names if isinstance(each.ctx, ast.Store)}
    return {each.id for each in names} - bound - set(dir(builtins))


def _bound(scopes: Sequence[ast.AST]) -> set[str]:
    """The names that functions and classes bind in themselves."""
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
    """An argument given by name."""
    return next((each for each in call.keywords if each.arg == name), None)


def integer(node: ast.expr | None) -> int | None:
    """The whole number that an expression is written as."""
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
    """Whether two expressions are written alike."""
    return ast.dump(one) == ast.dump(other)


def applied(text: str, edits: Sequence[Edit]) -> str:
    """A text with edits that do not overlap; its line ends stay.

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
