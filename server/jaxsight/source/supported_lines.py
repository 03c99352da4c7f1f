"""Which lines an earlier trace still describes after an edit that cannot be traced.

The last successful trace of a function is shown while its newest one fails, but only where it can
still be valid: not at the failing expression, at a changed statement, or at anything computed from
either. Names are followed through the text, within functions and between them, whatever the order
of statements: lines before an error are those of the failing trace itself.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxsight.source.analysis.syntax_trees import DEFINITIONS, blocks_of, own_nodes, root_name
from jaxsight.source.module import ModuleChunk
from jaxsight.source.statements import tree_of
from jaxsight.text.names import bound_in_scope, parameters_of

_CHUNKS_KEPT = 256
"""Chunks whose statements are kept: those of a file."""
_WORD = re.compile(r"[^\W\d]\w*")

Names = Mapping[str, Collection[str]]
"""Names by the scope that binds them.

A scope is `f.<locals>.` for a function, `C.` for a class, and empty for the module.
"""


@dataclass(frozen=True, slots=True)
class _Part:
    """A simple statement, or the text of a compound one before its first block."""

    scopes: tuple[str, ...]
    """The scopes around it, outermost first."""
    lines: range
    """Its lines, from 0 in the chunk."""
    bound: frozenset[str]
    """The names that it binds or changes in place."""
    names: frozenset[str]
    attributes: frozenset[str] = frozenset()
    """Names of the attributes that it reads, which identify methods."""
    decided_by: int = -1
    """The number of the part that determines whether it runs; -1 if none does."""
    function: str = ""
    """The function that it defines, with these `parameters`."""
    parameters: frozenset[str] = frozenset()
    returns: bool = False


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
    flow = _Flow([(chunk.first_line, _parts(chunk.text)) for chunk in valid], lost)
    lines = (line for chunk in valid for line in range(chunk.first_line, chunk.last_line + 1))
    wrong = {*failing, *(line for line in lines if not stands(line))}
    before = None
    while before != (before := (len(flow.lost), len(flow.lines), len(flow.uncalled))):
        flow.spread(wrong, traced)
    return frozenset(flow.lines)


def names_bound(
    chunks: Iterable[ModuleChunk], stands: Callable[[int], bool]
) -> dict[str, set[str]]:
    """Return the names, by scope, that statements bind with a line for which `stands` is false."""
    names: dict[str, set[str]] = {}
    for chunk in chunks:
        for part in _parts(chunk.text) if chunk.broken is None else ():
            if not all(stands(line + chunk.first_line) for line in part.lines):
                names.setdefault(part.scopes[-1], set()).update(part.bound)
    return names


class _Flow:
    """The lines, names and functions known so far to depend on an error."""

    def __init__(self, read: Sequence[tuple[int, Sequence[_Part]]], gone: Names) -> None:
        self.read = read
        self.bound: dict[str, set[str]] = {}
        for part in (part for _, parts in read for part in parts):
            self.bound.setdefault(part.scopes[-1], set()).update(part.bound)
            if part.function:
                self.bound.setdefault(_inside(part), set()).update(part.parameters)
        self.lost = {(scope, name) for scope, names in gone.items() for name in names}
        self.lines: set[int] = set()
        self.results: set[str] = set()
        """Functions whose results depend on an error."""
        self.uncalled: set[str] = set()
        """Functions that are only called with arguments that depend on an error."""

    def spread(self, wrong: Collection[int], traced: str) -> None:
        """Note what depends on a wrong line, or on what was noted before."""
        mentioned, relied_on = set[str](), set[str]()
        for first_line, parts in self.read:
            lost_parts = set[int]()
            for number, part in enumerate(parts):
                lines = [line + first_line for line in part.lines]
                read = part.names | part.attributes
                by_calls = self.results & read
                by_itself = (
                    part.decided_by in lost_parts
                    or any(line in wrong for line in lines)
                    or any(self._has_lost(part, name) for name in part.names)
                )
                # A function whose result is lost may still be called with valid arguments.
                mentioned |= read if by_itself else read - by_calls if by_calls else set()
                relied_on |= set() if by_itself else by_calls or read
                if by_itself or by_calls:
                    lost_parts.add(number)
                    self._lose(part, lines)
                if part.function in self.uncalled:
                    self.lines.update(lines)
                    self.lost.update((_inside(part), name) for name in part.parameters)
        self.uncalled |= mentioned - relied_on - {traced}

    def _lose(self, part: _Part, lines: Iterable[int]) -> None:
        """Mark a part and the names that it binds as lost."""
        self.lines.update(lines)
        self.lost.update((part.scopes[-1], name) for name in part.bound)
        if part.returns:
            # `layer` for `Model.layer.<locals>.`
            function = part.scopes[-1].removesuffix(".").removesuffix(".<locals>")
            self.results.add(function.rpartition(".")[2])

    def _has_lost(self, part: _Part, name: str) -> bool:
        binding = (scope for scope in reversed(part.scopes) if name in self.bound.get(scope, ()))
        return (next(binding, ""), name) in self.lost


def _inside(part: _Part) -> str:
    return f"{part.scopes[-1]}{part.function}.<locals>."


@functools.lru_cache(maxsize=_CHUNKS_KEPT)
def _parts(text: str) -> tuple[_Part, ...]:
    """Return the parts of a chunk.

    If they are nested too deeply, this is one that reads and binds all words in it.
    """
    parts: list[_Part] = []
    try:
        for statement in tree_of(text).body:
            _add(parts, statement, ("",), -1)
    except RecursionError:
        words = frozenset(_WORD.findall(text))
        return (_Part(("",), range(text.count("\n") + 1), words, words),)
    return tuple(parts)


def _add(parts: list[_Part], statement: ast.stmt, scopes: tuple[str, ...], decided_by: int) -> None:
    is_definition = isinstance(statement, DEFINITIONS)
    blocks = [statement.body] if isinstance(statement, DEFINITIONS) else [*blocks_of(statement)]
    own = list(own_nodes(statement))
    augmented = [statement] if isinstance(statement, ast.AugAssign) else []
    function, inside = "", scopes
    parameters: frozenset[str] = frozenset()
    if isinstance(statement, ast.ClassDef):
        inside = (*scopes, f"{scopes[-1]}{statement.name}.")
    elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        function, parameters = statement.name, frozenset(parameters_of(statement.args))
        inside = (*scopes, f"{scopes[-1]}{function}.<locals>.")
    part = _Part(
        scopes,
        _head(statement, blocks),
        frozenset((*bound_in_scope(statement, blocks=False), *_changed(own))),
        frozenset(name for node in (*own, *augmented) for name in _read_by(node)),
        frozenset(node.attr for node in own if isinstance(node, ast.Attribute)),
        decided_by,
        function,
        parameters,
        # What a generator yields is seen by its caller, as a returned value is.
        any(isinstance(n, ast.Return | ast.Yield | ast.YieldFrom) for n in (statement, *own)),
    )
    if blocks and not is_definition and not isinstance(statement, ast.With | ast.AsyncWith):
        decided_by = len(parts)
    parts.append(part)
    for inner in (inner for block in blocks for inner in block):
        _add(parts, inner, inside, -1 if is_definition else decided_by)


def _head(statement: ast.stmt, blocks: Sequence[Sequence[ast.stmt]]) -> range:
    """Return the lines of a statement (from 0), of a compound one those before its first block."""
    start = statement.lineno
    # Python 3.8 and newer count a definition from `def`, not from its first decorator.
    if isinstance(statement, DEFINITIONS):
        start = min([start, *(decorator.lineno for decorator in statement.decorator_list)])
    end = statement.end_lineno or start
    if blocks:
        end = max(statement.lineno, min(end, blocks[0][0].lineno - 1))
    return range(start - 1, end)


def _read_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Load()) | ast.AugAssign(target=ast.Name(id=name)):
            yield name


def _changed(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names whose values are changed in place: `x` for `x.a[0] = …`."""
    for node in nodes:
        match node:
            case (
                ast.Subscript(ctx=ast.Store() | ast.Del())
                | ast.Attribute(ctx=ast.Store() | ast.Del())
            ):
                yield root_name(node)
