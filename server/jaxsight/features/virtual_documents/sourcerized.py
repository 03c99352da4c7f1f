"""Virtual documents that a tracer writes; source is also verified, and cached by question.

A function that could not be verified has no text, only a reason.
"""

from __future__ import annotations

import ast
import asyncio
import base64
import builtins
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePath

from jaxsight.features.findings import failures
from jaxsight.features.model import Linked, VirtualText
from jaxsight.files import reading
from jaxsight.queries.documents import Subject
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces import tracer_requests
from jaxsight.queries.traces.located_answer import Answer, View
from jaxsight.rules.fixing.context import applied
from jaxsight.source.module import Module
from jaxsight.source.statements import tree_of
from jaxsight.source.text import Edit, Position, Range, SourceText, lines_of
from jaxsight.text.names import bound_in, bound_in_scope
from jaxsight.text.parsing import parse
from jaxsight.wire.messages import replies
from jaxsight.wire.messages.replies import Cancelled, Failed
from jaxsight.wire.messages.requests import TransformedSource
from jaxsight.workers.output import real_places
from jaxsight.workers.program_files import NotRead, NotTimely, program_text
from jaxsight_source.options import Style


class NotSourcerized(LookupError):
    """There is no source; the message says why.

    `different` says that source was written, but its program is different.
    """

    def __init__(self, reason: str, *, different: bool = False) -> None:
        super().__init__(reason)
        self.different = different


def label(function: str, transform: str) -> str:
    """Return the name of a function or of its transformation: `f`, `grad(f)`."""
    return f"{transform}({function})" if transform else function


async def source(engine: Engine, view: View, options: TransformedSource) -> VirtualText:
    """Return the source of the function that `view` traced, valid as long as its answer.

    Raises:
        NotSourcerized: it cannot be written or verified.
    """
    answer = view.answer
    key = (answer.question.key, options)
    written = engine.memory.sources.get(key)
    if written is None or written[0] is not answer:
        project = engine.projects.of(answer.question.path)
        reply = await tracer_requests.sourcerize(project, answer.question, options)
        match reply:
            case replies.Listing(files=files) if not answer.agrees_with(files):
                raise NotSourcerized("a file that it imports has changed")
            case replies.Listing():
                written = (answer, reply)
                engine.memory.sources.put(key, written)
            case Failed() if reply.failure.stage == "sourcerize":
                words = real_places(reply.failure.message, engine.projects.locate)
                different = reply.failure.type.endswith(".NotTheSame")
                raise NotSourcerized(words, different=different)
            case Cancelled():
                raise NotSourcerized("interrupted")
            case _:  # a transformation fails, or a function that could be traced before
                name, question = label(view.subject.name, options.transform), answer.question
                failed = View(Answer(question, reply), view.module, question, view.subject)
                (finding,) = failures.findings(failed)
                rest = "".join(f"\n{line}" for line in finding.lines[1:])
                raise NotSourcerized(
                    f"tracing {name} failed: {finding.message} ({finding.code}){rest}"
                )
    title = f"{label(view.subject.name, options.transform)}.{options.style}.py"
    return document(view, title, written[1])


def document(view: View, title: str, shown: replies.Listing) -> VirtualText:
    """Return a tracer's text with its links moved into the module."""
    view.add_texts(shown.reused)
    return VirtualText(
        title,
        view.words(shown.text),
        tuple(
            Linked(link.line, link.path, view.range_of(link.span) if link.span else None)
            for link in shown.links
        ),
        view.stale,
        shown.equations,
        base64.b64decode(shown.companion),
        view.caveats,
        shown.ran,
    )


# The JAX source of a program file that an editor shows: StableHLO, HLO.


ENDINGS = frozenset({".mlir", ".mlirbc", ".stablehlo", ".hlo", ".jaxexport"})
"""The endings of files that editors open as programs."""

_LARGEST = 64 << 20
"""The maximum size of a file in bytes, as in the terminal."""


def is_program_file(path: str) -> bool:
    return PurePath(path).suffix in ENDINGS


async def source_of_file(
    engine: Engine, path: str, options: TransformedSource, text: str | None
) -> VirtualText:
    """Return the source of a program, within the time limit of a compile.

    Args:
        text: the file's text as an editor has it; by default, the file is read.

    Raises:
        NotSourcerized: it cannot be read, written or verified.
    """
    project = engine.projects.of(path)
    if project.interpreter is None or project.held_back:
        raise NotSourcerized(project.problem or project.held_back)
    try:
        if text is None:
            content = await asyncio.to_thread(reading.data, path, _LARGEST)
        else:
            content = text.encode()
        request = {"to": "python", "options": asdict(options.plain), "linked": True}
        limit = project.settings.timeouts.compile
        shown = await program_text(project.interpreter.path, content, request, limit)
    except reading.UnreadableError as error:
        raise NotSourcerized(str(error)) from error
    except NotTimely as error:
        raise NotSourcerized(f"{error}; help: raise `timeouts.compile`") from error
    except NotRead as error:
        raise NotSourcerized(str(error), different=error.different) from error
    title = f"{PurePath(path).stem}.{options.style}.py"
    ran = tuple(proof for proof in shown.proofs if proof not in ("jaxpr", "stablehlo"))
    links = _links(shown.links, content.decode("utf-8", "replace")) if shown.links else ()
    return VirtualText(title, shown.text, links, equations=shown.equations, ran=ran)


def _links(pairs: Sequence[tuple[int, int]], text: str) -> tuple[Linked, ...]:
    """Return links from lines of a source to those of the program, without their indentation."""
    lines = text.split("\n")
    return tuple(Linked(number, "", Range.of_line(at, lines[at])) for number, at in pairs)


# Insert the source of a function into its file, below the original, with the imports it needs.


INSERTED_STYLE: Style = "pretty"
"""The style of inserted source: that of the document that the code lens opens."""

_INSTEAD = "open the source in a new document instead"


def inserted_name(module: Module, function: str) -> str:
    """Return the name of the source of `function`: `f_jax`, or `f_jax_2` if that is taken."""
    words = [part.strip("_") or part for part in function.split(".")]
    return _free("_".join(words) + "_jax", module)


def _free(base: str, module: Module, used: Collection[str] = ()) -> str:
    """Return `base`, with a number appended if the name is in the module or in `taken`."""
    name, count = base, 1
    while name in module.bindings.definers or name in used:
        count += 1
        name = f"{base}_{count}"
    return name


def insertion(module: Module, subject: Subject, text: str, name: str = "") -> tuple[Edit, ...]:
    """Return edits that insert the source of a function after it, and its imports.

    `name` is the module name of the file itself, which needs no import.

    Raises:
        NotSourcerized: the file defines a name that the source reads differently.
    """
    text = _without_own_import(text, name)
    tree = parse(text)
    there: set[_Import] = set()
    first = next(iter(module.chunks), None)
    below = 0
    if first is not None and first.name_effects.is_text:  # the module's docstring
        below = first.first_line + first.statement.lines_used
    for chunk in module.chunks:
        if chunk.name_effects.imports and chunk.first_line < subject.chunk.first_line:
            there.update(import_ for node in tree_of(chunk.text).body for import_ in _imports(node))
            below = chunk.first_line + chunk.statement.lines_used
    needed = dict.fromkeys(import_ for node in tree.body for import_ in _imports(node))
    body = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    if ast.get_docstring(tree) is not None:
        del body[0]
    _check_names(module, needed, tree)
    names = list(dict.fromkeys(name for node in body for name in bound_in_scope(node)))
    definers = module.bindings.definers
    clashing = [name for name in names if name in definers or hasattr(builtins, name)]
    text = _renamed(text, tree, {name: _free(name, module, names) for name in clashing})
    edits = []
    if missing := [import_.line for import_ in needed if import_ not in there]:
        start = Position(below, 0)
        edits.append(Edit(Range(start, start), "".join(f"{line}\n" for line in missing)))
    lines = text.split("\n")
    blocks = ["\n".join(lines[_first_line(node, lines) - 1 : node.end_lineno]) for node in body]
    chunk = subject.chunk
    last = max(chunk.statement.lines_used - 1, 0)
    end = Position(chunk.first_line + last, len(lines_of(chunk.text)[last]))
    edits.append(Edit(Range(end, end), "".join(f"\n\n\n{block}" for block in blocks)))
    return tuple(edits)


def _check_names(module: Module, needed: Iterable[_Import], tree: ast.Module) -> None:
    """Raise `NotSourcerized` if the file redefines imports or builtins that the source uses."""
    bindings = module.bindings
    clashing = {
        import_.name
        for import_ in needed
        if import_.name in bindings.definers
        and bindings.origins.get(import_.name) != import_.origin
    }
    bound = set(bound_in(tree))
    read = bindings.definers.keys() & _read(tree) - bound
    clashing |= {name for name in read if hasattr(builtins, name)}
    if clashing:
        words = ", ".join(sorted(clashing))
        raise NotSourcerized(f"cannot insert: the file already defines {words}; {_INSTEAD}")


def _read(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def _without_own_import(text: str, name: str) -> str:
    """Rewrite the text for the file that is the module called `name`, with the file's own names.

    Raises:
        NotSourcerized: the text redefines one of these names.
    """
    tree = parse(text)
    own = next(
        (node for node in tree.body if _dotted(node) and f".{name}".endswith(f".{_dotted(node)}")),
        None,
    )
    if own is None or not name:
        return text
    path, source = _dotted(own), SourceText(text)
    uses = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == path
    ]
    bound = set(bound_in(tree))
    if clashing := sorted({node.attr for node in uses} & bound):
        words = ", ".join(clashing)
        raise NotSourcerized(f"cannot insert: the source redefines {words}; {_INSTEAD}")
    starts = [source.position(node.lineno, node.col_offset) for node in uses]
    line = Range(Position(own.lineno - 1, 0), Position(own.lineno, 0))
    named = [_from(start, len(path) + 1) for start in starts]
    return applied(text, [Edit(range, "") for range in (line, *named)])


def _from(start: Position, length: int) -> Range:
    return Range(start, Position(start.line, start.column + length))


def _dotted(node: ast.stmt) -> str:
    """Return the module that a statement imports without renaming; empty for other statements."""
    match node:
        case ast.Import(names=[ast.alias(name=name, asname=None)]):
            return name
    return ""


def _renamed(text: str, tree: ast.Module, names: Mapping[str, str]) -> str:
    """Return the text with some names replaced."""
    source, edits = SourceText(text), []
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.FunctionDef(name=name) if name in names:
                column = node.col_offset + len("def ") * isinstance(node, ast.FunctionDef)
                start = source.position(node.lineno, column)
                edits.append(Edit(_from(start, len(name)), names[name]))
    return applied(text, edits)


@dataclass(frozen=True, slots=True)
class _Import:
    """A name that an import binds, with the full name of the imported object.

    `import jax.numpy as jnp` and `from jax import numpy as jnp` are equal.
    """

    name: str
    origin: str
    loads: str
    """The submodule that is also loaded; `name` is its first part."""
    line: str = field(compare=False)


def _imports(node: ast.stmt) -> Iterator[_Import]:
    """Split an import into those of one name each, to compare it with others."""
    match node:
        case ast.Import(names=names):
            for alias in names:
                line = ast.unparse(ast.Import([alias]))
                first = alias.name.partition(".")[0]
                if alias.asname:
                    yield _Import(alias.asname, alias.name, "", line)
                else:
                    yield _Import(first, first, alias.name, line)
        case ast.ImportFrom(module=module, names=names, level=level):
            for alias in names:
                line = ast.unparse(ast.ImportFrom(module, [alias], level))
                origin = f"{'.' * level}{module or ''}.{alias.name}"
                yield _Import(alias.asname or alias.name, origin, "", line)


def _first_line(node: ast.stmt, lines: list[str]) -> int:
    """Return the first line of a statement (from 1), with its decorators and comments above."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1
    return first
