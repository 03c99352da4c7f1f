"""Sourcerized functions: cached by question, named, and inserted into a file after the original.

A function that could not be verified has no text, only a reason.
"""

from __future__ import annotations

import ast
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping

from jaxsight.engine import failures, meaning
from jaxsight.engine.answers import Shown
from jaxsight.engine.cache import Recent
from jaxsight.engine.documents import Subject
from jaxsight.engine.module import Module
from jaxsight.engine.pieces import tree_of
from jaxsight.engine.questions import Question
from jaxsight.engine.text import Edit, Position, Range, lines_of
from jaxsight.engine.views import Answer, View
from jaxsight.tracer import protocol
from jaxsight.tracer.protocol import Cancelled, Failed, Sourcerize
from jaxsight.workers.outcomes import Died
from jaxsight.workers.output import Locate, real_places

_KEPT = 64

Writing = Callable[[Question, Sourcerize], Awaitable[protocol.Shown | Failed | Cancelled | Died]]
"""Writes the function of a question as source, in a tracer."""


class NotSourcerized(LookupError):
    """There is no source, for the reason in the message.

    `different`: source was written, but its program is different.
    """

    def __init__(self, reason: str, *, different: bool = False) -> None:
        super().__init__(reason)
        self.different = different


def label(function: str, transform: str) -> str:
    """Return the name of a function or of its transformation: `f`, `grad(f)`."""
    return f"{transform}({function})" if transform else function


class Sources:
    """The sourcerized texts of a session; one is valid as long as the answer it was written from."""

    def __init__(self, locate: Locate) -> None:
        """`locate` returns the current first line of a chunk, for places in messages."""
        self._locate = locate
        self._known: Recent[tuple[str, Sourcerize], tuple[Answer, protocol.Shown]] = Recent(_KEPT)

    async def get(self, view: View, wanted: Sourcerize, write: Writing) -> Shown:
        """Return the source of the function that `view` traced.

        Raises:
            NotSourcerized: it cannot be written or verified.
        """
        answer = view.answer
        key = (answer.question.key, wanted)
        known = self._known.get(key)
        if known is None or known[0] is not answer:
            reply = await write(answer.question, wanted)
            match reply:
                case protocol.Shown():
                    known = (answer, reply)
                    self._known.put(key, known)
                case Failed() if reply.failure.stage == "sourcerize":
                    words = real_places(reply.failure.message, self._locate)
                    different = reply.failure.type.endswith(".NotTheSame")
                    raise NotSourcerized(words, different=different)
                case Cancelled():
                    raise NotSourcerized("interrupted")
                case _:
                    raise NotSourcerized(_failed(view, wanted, reply))
        title = f"{label(view.subject.name, wanted.transform)}.{wanted.style}.py"
        return view.shown(title, known[1])


def _failed(view: View, wanted: Sourcerize, reply: Failed | Died) -> str:
    """Return the error of a transformation, or of a function that could be traced before."""
    name = label(view.subject.name, wanted.transform)
    question = view.answer.question
    seen = View(Answer(question, reply), view.module, question, view.subject)
    (found,) = failures.findings(seen)
    return f"tracing {name} failed: {found.message} ({found.code})"


def inserted_name(module: Module, function: str) -> str:
    """Return the name of the source of `function`: `f_lax`, or `f_lax_2` if that is taken."""
    words = [part.strip("_") or part for part in function.split(".")]
    return _free("_".join(words) + "_lax", module)


def _free(base: str, module: Module, taken: Collection[str] = ()) -> str:
    """Return `base`, with a number appended if the name is in the module or in `taken`."""
    name, count = base, 1
    while name in module.bindings.definers or name in taken:
        count += 1
        name = f"{base}_{count}"
    return name


def insertion(module: Module, subject: Subject, text: str, name: str = "") -> tuple[Edit, ...]:
    """Return edits that insert the source of a function after it, and its imports.

    Statements that the file already has, such as from an earlier insertion, are not inserted again.
    `name` is the module name of the file itself, which needs no import.

    Raises:
        NotSourcerized: the file already defines a name that the source imports.
    """
    text = _without_own_import(text, name, module.bindings.definers.keys())
    tree = ast.parse(text)
    there: set[str] = set()
    meanings: set[str] = set()
    below = 0
    for chunk in module.chunks:
        meanings.add(chunk.meaning)
        if chunk.surface.imports and chunk.first_line < subject.chunk.first_line:
            there.update(line for node in tree_of(chunk.text).body for line in _imports(node))
            below = chunk.first_line + chunk.piece.lines_used
    needed = dict.fromkeys(line for node in tree.body for line in _imports(node))
    missing = [line for line in needed if line not in there]
    body = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    if ast.get_docstring(tree) is not None:
        del body[0]
    body = [node for node in body if _meaning(node) not in meanings]
    known = module.bindings.definers.keys()
    if clashing := sorted(known & {n for line in missing for n in _bound(ast.parse(line))}):
        words = ", ".join(clashing)
        raise NotSourcerized(
            f"cannot insert: the file already defines {words}; "
            "open the source in a new document instead"
        )
    names = list(dict.fromkeys(name for node in body for name in _bound(node)))
    text = _renamed(text, tree, {n: _free(n, module, names) for n in names if n in known})
    edits = []
    if missing:
        start = Position(below, 0)
        edits.append(Edit(Range(start, start), "".join(f"{line}\n" for line in missing)))
    lines = text.split("\n")
    blocks = ["\n".join(lines[_first_line(node, lines) - 1 : node.end_lineno]) for node in body]
    edits.append(Edit(_end(subject), "".join(f"\n\n\n{block}" for block in blocks)))
    return tuple(edits)


def _without_own_import(text: str, name: str, defined: Collection[str]) -> str:
    """Return the text for insertion into the module `name`, whose names need no prefix there."""
    tree = ast.parse(text)
    own = next(
        (node for node in tree.body if _dotted(node) and f".{name}".endswith(f".{_dotted(node)}")),
        None,
    )
    if own is None or not name:
        return text
    path = _dotted(own)
    lines = text.split("\n")
    uses = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == path
    ]
    if not all(node.attr in defined for node in uses):
        return text
    for node in sorted(uses, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        row = lines[node.lineno - 1].encode()
        rest = row[node.col_offset + len(path) + 1 :]
        lines[node.lineno - 1] = (row[: node.col_offset] + rest).decode()
    del lines[own.lineno - 1]
    return "\n".join(lines)


def _dotted(node: ast.stmt) -> str:
    """Return the module that a statement imports without renaming; empty for other statements."""
    match node:
        case ast.Import(names=[ast.alias(name=name, asname=None)]):
            return name
        case _:
            return ""


def _renamed(text: str, tree: ast.Module, names: Mapping[str, str]) -> str:
    """Return the text with some names replaced."""
    lines = text.split("\n")
    places = []
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name in names:
                places.append((node.lineno - 1, node.col_offset, name))
            case ast.FunctionDef(name=name) if name in names:
                places.append((node.lineno - 1, node.col_offset + len("def "), name))
    for line, column, name in sorted(places, reverse=True):
        row = lines[line].encode()
        lines[line] = (row[:column] + names[name].encode() + row[column + len(name) :]).decode()
    return "\n".join(lines)


def _meaning(node: ast.stmt) -> str:
    return meaning.digest(ast.Module([node], []), docstrings=False)


def _end(subject: Subject) -> Range:
    """Return the position after the subject's chunk."""
    chunk = subject.chunk
    last = max(chunk.piece.lines_used - 1, 0)
    end = Position(chunk.first_line + last, len(lines_of(chunk.text)[last]))
    return Range(end, end)


def _imports(node: ast.stmt) -> Iterator[str]:
    """Yield an import as lines of one name each, for comparison."""
    match node:
        case ast.Import(names=names):
            for alias in names:
                yield ast.unparse(ast.Import([alias]))
        case ast.ImportFrom(module=module, names=names, level=level):
            for alias in names:
                yield ast.unparse(ast.ImportFrom(module, [alias], level))


def _bound(tree: ast.AST) -> Iterator[str]:
    """Yield the names that module-level statements bind."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name
                continue
            case ast.Lambda():
                continue
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
        waiting.extend(ast.iter_child_nodes(node))


def _first_line(node: ast.stmt, lines: list[str]) -> int:
    """Return the first line of a statement (from 1), with its decorators and comments above."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1
    return first
