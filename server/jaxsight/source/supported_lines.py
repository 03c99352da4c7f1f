"""Which lines an earlier trace still describes after an edit that cannot be traced.

The last successful trace of a function is shown while its newest one fails, but only where it can
still be valid: not at the failing expression, at a changed statement, or at anything computed from
either. Names are followed through the text, within functions and between them; if the text does not
decide, the line is dropped.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from jaxsight.source.module import ModuleChunk
from jaxsight.source.statements import tree_of

_PASSES = 20
"""Maximum number of passes over the text to propagate errors; chains of functions are shorter."""
_CHUNKS_KEPT = 256
_DEEPEST = 100
"""Nesting depth of statements from which their chunk is analyzed as one statement.

Such a statement reads and binds all words in it.
"""
_WORD = re.compile(r"[^\W\d]\w*")

Names = Mapping[str, Collection[str]]
"""Names by the scope that binds them.

A scope is `f.<locals>.` for a function, `C.` for a class, and empty for the module.
"""


def lost_lines(
    chunks: Iterable[ModuleChunk],
    traced: str,
    failing: Collection[int],
    stands: Callable[[int], bool],
    lost: Names,
) -> frozenset[int]:
    """Return the lines of `chunks` that an earlier trace no longer describes.

    Args:
        traced: the name of the traced function, which need not be called in the text.
        failing: lines at which the newest trace failed, and of the calls that led there.
        stands: returns whether a line of the text is unchanged since it was traced.
        lost: names whose earlier values are gone: of removed statements and changed arguments.
    """
    valid = [chunk for chunk in chunks if chunk.broken is None]
    read = [(chunk.first_line, _statements(chunk.text)) for chunk in valid]
    lines = (line for chunk in valid for line in range(chunk.first_line, chunk.last_line + 1))
    flow = _Flow({*failing, *(line for line in lines if not stands(line))}, lost)
    for _ in range(_PASSES):
        before = flow.size()
        flow.mentioned, flow.relied_on = set(), set()
        scopes = [_Scope("", first_line, flow.globals, None) for first_line, _ in read]
        for scope, (_, statements) in zip(scopes, read, strict=True):
            flow.body(statements, scope)
        for scope in scopes:
            flow.functions(scope)
        flow.uncalled |= flow.mentioned - flow.relied_on - {traced}
        if flow.size() == before:
            break
    return frozenset(flow.lines)


def names_bound(
    chunks: Iterable[ModuleChunk], stands: Callable[[int], bool]
) -> dict[str, set[str]]:
    """Return the names, by scope, that statements bind with a line for which `stands` is false."""
    names: dict[str, set[str]] = {}
    for chunk in chunks:
        if chunk.broken is None:
            for scope, statement in _all(_statements(chunk.text), ""):
                if not all(stands(line + chunk.first_line) for line in statement.head):
                    names.setdefault(scope, set()).update(statement.bound)
    return names


@dataclass(frozen=True, slots=True)
class _Statement:
    """The properties of a statement that matter here.

    Those of a compound statement, except `blocks`, describe the text before its first block.
    """

    head: range
    """Its lines, from 0 in the chunk."""
    bound: frozenset[str]
    """The names that it binds or changes in place."""
    replaced: frozenset[str]
    """Those of them that get a new value, regardless of the earlier one."""
    names: frozenset[str]
    attributes: frozenset[str]
    """Names of the attributes that it reads, which identify methods."""
    blocks: tuple[tuple[_Statement, ...], ...] = ()
    scope: str = ""
    """What a function or class adds to the scope's name: `f.<locals>.`, `C.`."""
    function: str = ""
    parameters: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    """Its parameters and all names that its body binds."""
    returns: bool = False
    loops: bool = False
    decides: bool = False
    """Whether it determines if its blocks run."""


@functools.lru_cache(maxsize=_CHUNKS_KEPT)
def _statements(text: str) -> tuple[_Statement, ...]:
    try:
        return tuple(_read(statement, 0) for statement in tree_of(text).body)
    except RecursionError:
        words = frozenset(_WORD.findall(text))
        return (_Statement(range(text.count("\n") + 1), words, frozenset(), words, words),)


def _read(statement: ast.stmt, depth: int) -> _Statement:
    """Return the properties of a statement.

    Raises:
        RecursionError: it is nested too deeply, such as hundreds of `elif`.
    """
    if depth > _DEEPEST:
        raise RecursionError
    parts = _parts(statement)
    names, attributes = _names_read(parts)
    bound = _bound(parts)
    blocks = tuple(
        tuple(_read(inner, depth + 1) for inner in block) for block in _blocks(statement)
    )
    scope = function = ""
    parameters: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    match statement:
        case (
            ast.FunctionDef(name=name, args=arguments)
            | ast.AsyncFunctionDef(name=name, args=arguments)
        ):
            bound.add(name)
            scope, function, parameters = f"{name}.<locals>.", name, _parameters(arguments)
            own = parameters.union(*(inner.bound for _, inner in _all(blocks[0], "", into=False)))
        case ast.ClassDef(name=name):
            bound.add(name)
            scope = f"{name}."
    yields = isinstance(statement, ast.Expr) and isinstance(
        statement.value, ast.Yield | ast.YieldFrom
    )
    return _Statement(
        _head(statement),
        frozenset(bound),
        frozenset(_replaced(statement)),
        frozenset(names),
        frozenset(attributes),
        blocks,
        scope,
        function,
        parameters,
        own,
        returns=isinstance(statement, ast.Return) or yields,
        loops=isinstance(statement, ast.For | ast.AsyncFor | ast.While),
        decides=not scope and not isinstance(statement, ast.With | ast.AsyncWith),
    )


def _all(
    statements: Iterable[_Statement], scope: str, *, into: bool = True
) -> Iterator[tuple[str, _Statement]]:
    """Yield statements and the statements inside them, with the scope of each.

    Those inside functions and classes are omitted unless `into`.
    """
    for statement in statements:
        yield scope, statement
        if into or not statement.scope:
            for block in statement.blocks:
                yield from _all(block, scope + statement.scope, into=into)


@dataclass(slots=True)
class _Scope:
    """A scope: `own` names are bound here, the values of `lost` names depend on an error."""

    name: str
    first_line: int
    lost: set[str]
    outer: _Scope | None
    own: frozenset[str] = frozenset()
    sure: bool = True
    """Whether its statements always run with the scope, so that a binding replaces the value."""
    looping: bool = False
    """Whether an enclosing loop is already visited twice."""
    functions: dict[int, _Statement] = field(default_factory=dict)
    """Functions defined here, by line: in their calls captured names have their last values."""

    def has_lost(self, name: str) -> bool:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.lost:
                return True
            if name in scope.own:
                return False
            scope = scope.outer
        return False


@dataclass(slots=True)
class _Flow:
    """The lines, names and functions known so far to depend on an error."""

    wrong: set[int]
    """Lines that fail or were changed."""
    gone: Names
    globals: set[str] = field(default_factory=set)
    lines: set[int] = field(default_factory=set)
    results: set[str] = field(default_factory=set)
    """Functions whose results depend on an error."""
    uncalled: set[str] = field(default_factory=set)
    """Functions that are only called with arguments that depend on an error."""
    mentioned: set[str] = field(default_factory=set)
    relied_on: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.globals |= set(self.gone.get("", ()))

    def size(self) -> tuple[int, ...]:
        """Return sizes that grow until nothing new is found."""
        return len(self.globals), len(self.lines), len(self.results), len(self.uncalled)

    def body(self, statements: Iterable[_Statement], scope: _Scope) -> None:
        for statement in statements:
            self._statement(statement, scope)

    def _statement(self, statement: _Statement, scope: _Scope) -> None:
        read = statement.names | statement.attributes
        by_itself = any(line + scope.first_line in self.wrong for line in statement.head) or any(
            scope.has_lost(name) for name in statement.names
        )
        by_calls = self.results & read
        is_lost = by_itself or bool(by_calls)
        if not is_lost:
            self.relied_on |= read
        elif by_itself:
            self.mentioned |= read
        else:
            # A function whose result is lost may still be called with valid arguments.
            self.relied_on |= by_calls
            self.mentioned |= read - by_calls
        if is_lost:
            self._give_up(statement, scope)
        elif scope.sure:
            scope.lost.difference_update(statement.replaced)
        if statement.function:
            scope.functions[statement.head.start] = statement
        elif statement.scope:
            inner = _Scope(scope.name + statement.scope, scope.first_line, set(), scope)
            self.body(statement.blocks[0], inner)
            self.functions(inner)
        elif statement.blocks:
            self._nested(statement, scope, is_lost)

    def _give_up(self, statement: _Statement, scope: _Scope) -> None:
        """Mark a statement and the names that it binds as lost."""
        self.lines.update(line + scope.first_line for line in statement.head)
        scope.lost.update(statement.bound)
        if statement.returns:
            self.results.add(_function_name(scope.name))

    def functions(self, scope: _Scope) -> None:
        """Visit the bodies of a scope's functions, after all of its own statements."""
        for function in scope.functions.values():
            self._function(function, scope)

    def _function(self, statement: _Statement, scope: _Scope) -> None:
        name = scope.name + statement.scope
        lost = {*self.gone.get(name, ())}
        if statement.function in self.uncalled:
            lost |= statement.parameters
            self.lines.update(line + scope.first_line for line in statement.head)
        inner = _Scope(name, scope.first_line, lost, scope, statement.own)
        self.body(statement.blocks[0], inner)
        self.functions(inner)

    def _nested(self, statement: _Statement, scope: _Scope, is_lost: bool) -> None:
        """Visit the blocks of a compound statement; lose them with its condition or iterable."""
        inner = _Scope(
            scope.name,
            scope.first_line,
            scope.lost,
            scope.outer,
            scope.own,
            scope.sure and not statement.decides,
            scope.looping or statement.loops,
            scope.functions,
        )
        for _ in range(2 if statement.loops and not scope.looping else 1):
            for block in statement.blocks:
                self.body(block, inner)
        if is_lost and statement.decides:
            for block in statement.blocks:
                for _, decided in _all(block, ""):
                    self._give_up(decided, inner)


def _head(statement: ast.stmt) -> range:
    """Return the lines of a statement (from 0), of a compound one those before its first block."""
    start = statement.lineno
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        start = min([start, *(decorator.lineno for decorator in statement.decorator_list)])
    end = statement.end_lineno or start
    if blocks := _blocks(statement):
        end = max(statement.lineno, min(end, blocks[0][0].lineno - 1))
    return range(start - 1, end)


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Return the blocks of a compound statement."""
    blocks: list[list[ast.stmt]] = [
        block for name in ("body", "orelse", "finalbody") if (block := getattr(statement, name, []))
    ]
    if isinstance(statement, ast.Try | ast.TryStar):
        blocks[1:1] = [handler.body for handler in statement.handlers]
    if isinstance(statement, ast.Match):
        blocks += [case.body for case in statement.cases]
    return blocks


def _parts(statement: ast.stmt) -> list[ast.expr | ast.pattern | ast.stmt]:
    """Return the parts of a statement besides its blocks; a simple statement is its own part."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            arguments = statement.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            notes = [arg.annotation for arg in every if arg.annotation is not None]
            defaults = [default for default in arguments.kw_defaults if default is not None]
            returns = [statement.returns] if statement.returns is not None else []
            return [*statement.decorator_list, *notes, *arguments.defaults, *defaults, *returns]
        case ast.ClassDef():
            keywords = [keyword.value for keyword in statement.keywords]
            return [*statement.decorator_list, *statement.bases, *keywords]
        case ast.For() | ast.AsyncFor():
            return [statement.target, statement.iter]
        case ast.While() | ast.If():
            return [statement.test]
        case ast.With() | ast.AsyncWith():
            targets = [item.optional_vars for item in statement.items if item.optional_vars]
            return [*(item.context_expr for item in statement.items), *targets]
        case ast.Try() | ast.TryStar():
            return [handler.type for handler in statement.handlers if handler.type is not None]
        case ast.Match():
            patterns = [case.pattern for case in statement.cases]
            return [statement.subject, *patterns, *(c.guard for c in statement.cases if c.guard)]
        case _:
            return [statement]


def _bound(parts: Iterable[ast.AST]) -> set[str]:
    """Return the names that are bound, or whose values are changed in place."""
    names: set[str] = set()
    for part in parts:
        for node in ast.walk(part):
            match node:
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                    names.add(name)
                case (
                    ast.Subscript(ctx=ast.Store() | ast.Del())
                    | ast.Attribute(ctx=ast.Store() | ast.Del())
                ):
                    names.update(_root(node))
                case ast.alias(name=name, asname=asname):
                    names.add(asname or name.partition(".")[0])
                case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    names.add(name)
    return names


def _root(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _names_read(parts: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """Return the names that are read, and the names of attributes."""
    names: set[str] = set()
    attributes: set[str] = set()
    for part in parts:
        for node in ast.walk(part):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                names.add(node.id)
            elif isinstance(node, ast.Attribute):
                attributes.add(node.attr)
            elif isinstance(node, ast.AugAssign):
                names.update(_root(node.target))
    return names, attributes


def _replaced(statement: ast.stmt) -> set[str]:
    """Return the names that a simple statement gives new values, regardless of the earlier ones."""
    if isinstance(statement, ast.Assign):
        targets: list[ast.expr] = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    else:
        return set()
    return {
        node.id
        for target in targets
        if not isinstance(target, ast.Subscript | ast.Attribute)
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _parameters(arguments: ast.arguments) -> frozenset[str]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]
    return frozenset(arg.arg for arg in every)


def _function_name(scope: str) -> str:
    """Return `layer` for `Model.layer.<locals>.`."""
    return scope.removesuffix(".").removesuffix(".<locals>").rpartition(".")[2]
