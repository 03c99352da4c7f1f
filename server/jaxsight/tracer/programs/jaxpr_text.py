"""Format jaxprs: folded for a hover, or whole with links to the source for a document.

File names of chunks stay `path§chunk` in every text: only the server knows the current line of a
chunk, so it replaces them (`CHUNK_FILE`).
Folding must be fast for a jaxpr of any length: it prints no more than it shows.

A long jaxpr is divided into sections, by the functions and modules of its equations. A section
begins with a comment, `# loss/model/blocks[0]/attn`, before its first equation; a module with
modules of its own has one for each level. Editors fold them.

A program's fingerprint is text that is equal for equal programs in all processes. It has the whole
jaxpr and digests of its captured arrays, whose values a jaxpr does not show. It has no line
numbers: these differ between a slice and the imported file.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from jaxsight.meshes.compat import shardings
from jaxsight.text.inert import one_line
from jaxsight.tracer.compat import jaxprs
from jaxsight.tracer.compat.jaxprs import Doc
from jaxsight.tracer.failures import ADDRESS, clean, span_of
from jaxsight.tracer.observation import scopes
from jaxsight.tracer.observation.scopes import Scope
from jaxsight.wire.chunks import CHUNK_FILE, Span
from jaxsight.wire.messages.replies import FOLDED_LINES, Link, Listing
from jaxsight.wire.messages.requests import CONSTANT
from jaxsight_source.compat import avals
from jaxsight_source.compat.inner import Inner, all_jaxprs, equation_count, inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Equation, Jaxpr
from jaxsight_source.compat.locations import places
from jaxsight_source.compat.staging import is_literal, open_jaxpr

MOST_EQUATIONS = 50_000
"""Equations in an answer, about 1 KiB for each in a frame (`wire.FRAME_LIMIT`): those beyond have
no place in the source, and no rule looks at them."""

_LONG_PARAMETER = 60
"""Maximum length of a parameter's text in a folded jaxpr, of about 100 columns of a hover."""

_MOST_VARIABLES = 6
"""Maximum number of inputs and outputs of a jaxpr or equation in a folded text, for one line."""

_NUMPY = re.compile(r"np\.(?:u?int|float)\d+\((?P<number>[^()]*)\)")
"""NumPy scalars in parameters, whose type is removed."""

_PARAMETER = re.compile(r"\w+=|\{ lambda|\(")
"""How a line begins that is not the first one of an equation."""

_CHUNK = re.compile(rf"{CHUNK_FILE.pattern}(?::\d+)?")
_LINE = re.compile(r"(\.py):\d+")

_LARGEST_REPEATED = 3
"""A shared inner jaxpr with more equations is printed once, and later refers to its first place."""


def folded(jaxpr: object, equations: int) -> tuple[str, bool]:
    """Return at most `FOLDED_LINES` lines of a jaxpr, and whether it has more.

    This is the whole jaxpr if it fits, else its beginning with inner jaxprs as one line each.
    """
    opened = open_jaxpr(jaxpr)
    if equations <= FOLDED_LINES and _least_lines(opened) <= FOLDED_LINES:
        text, _ = jaxprs.render(_Whole(linked=False).document(opened, ""))
        if text.count("\n") < FOLDED_LINES and len(text) < _LONG_TEXT:
            return clean(text), False
    # Only its first equations.
    printer = jaxprs.EquationPrinter(most=_MOST_VARIABLES)
    constants = _rendered(printer.variables(opened.constvars, binder=True))
    inputs = _rendered(printer.variables(opened.invars, binder=True))
    lines = [f"{{ lambda {constants}; {inputs}. let"]
    shown = 0
    for equation in itertools.islice(opened.eqns, _EQUATION_LINES):
        document = printer.equation(equation, _folded_parameters(equation))
        printed = _rendered(document).split("\n")
        if len(lines) + len(printed) > _EQUATION_LINES:
            break
        lines += [f"    {line}" for line in printed]
        shown += 1
    remaining = len(opened.eqns) - shown
    if remaining:
        lines.append(f"    … {remaining} more {'equation' if remaining == 1 else 'equations'}")
    lines.append(f"  in {_rendered(printer.results(opened))} }}")
    # The first and the last entry may have several lines.
    lines = "\n".join(lines).split("\n")
    if len(lines) > FOLDED_LINES:
        # Inputs or results that take many lines.
        lines = [*lines[: FOLDED_LINES - 1], "…"]
    return clean("\n".join(lines)), True


_LONG_TEXT = FOLDED_LINES * 100

_EXTRA_LINES = 4
"""Minimum number of lines of an inner jaxpr besides its equations."""


def _least_lines(opened: Jaxpr) -> int:
    inner = [part.jaxpr for equation in opened.eqns for part in inner_jaxprs(equation)]
    return len(opened.eqns) + sum(_EXTRA_LINES + _least_lines(part) for part in inner)


def _rendered(document: Doc) -> str:
    return jaxprs.render(document)[0]


_EQUATION_LINES = FOLDED_LINES - 4
"""Lines for equations, besides those for inputs, the elision and results."""


def _folded_parameters(equation: Equation) -> Iterator[tuple[str, str]]:
    inner: dict[str, list[str]] = {}
    for part in inner_jaxprs(equation):
        count = equation_count(part.jaxpr)
        inner.setdefault(part.parameter, []).append(
            f"{{ lambda … {count} {'equation' if count == 1 else 'equations'} }}"
        )

    for key in _order(equation):
        if texts := inner.get(key):
            yield key, texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
        else:
            text = _brief(equation.params[key])
            yield key, text if len(text) <= _LONG_PARAMETER else f"{text[: _LONG_PARAMETER - 1]}…"


def whole(id: int, jaxpr: object) -> Listing:
    """Return all equations, with lines linked to equations' paths and their place in user code."""
    printing = _Whole(linked=True)
    text, regions = jaxprs.render(printing.document(open_jaxpr(jaxpr), ""))
    links: list[Link] = []
    for line, paths in enumerate(regions):
        if paths:
            # The innermost of the equations that the line belongs to.
            path = max(paths, key=lambda marked_path: marked_path.count("/"))
            links.append(Link(line, path, printing.spans.get(path)))
    return Listing(id, clean(text), tuple(links))


class _Whole:
    """Prints all equations, marked with their paths if `linked`."""

    def __init__(self, *, linked: bool) -> None:
        self.linked = linked
        self.printer = jaxprs.EquationPrinter()
        self.spans: dict[str, Span | None] = {}
        self.first: dict[int, str] = {}

    def document(self, opened: Jaxpr, path: str) -> Doc:
        equations = enumerate(opened.eqns)
        return self.printer.jaxpr(opened, (self.equation(e, f"{path}{at}") for at, e in equations))

    def equation(self, equation: Equation, path: str) -> Doc:
        document = self.printer.equation(equation, self.parameters(equation, path))
        if not self.linked:
            return document
        self.spans[path] = span(equation)
        return jaxprs.mark(document, path)

    def parameters(self, equation: Equation, path: str) -> Iterator[tuple[str, str | Doc]]:
        inner: dict[str, list[Doc]] = {}
        for part in inner_jaxprs(equation):
            document = self.inner(equation, part, f"{path}/{part.name}")
            inner.setdefault(part.parameter, []).append(document)
        text_of = parameter_text if self.linked else _brief
        for key in _order(equation):
            value, documents = equation.params[key], inner.get(key)
            yield key, jaxprs.one_or_listed(value, documents) if documents else text_of(value)

    def inner(self, equation: Equation, part: Inner, path: str) -> Doc:
        first = self.first.get(id(part.jaxpr))
        if first is not None and len(part.jaxpr.eqns) > _LARGEST_REPEATED:
            return jaxprs.line(f"{{ lambda … as in {first} }}")
        self.first[id(part.jaxpr)] = path
        if equation.primitive.name in ("jit", "pjit"):
            self.printer.same_names(equation, part.jaxpr)
        return self.document(part.jaxpr, f"{path}/")


def span(equation: Equation) -> Span | None:
    """Return the place of an equation: that of the innermost frame in a chunk, if any."""
    spans = (span_of(file, *place) for file, place in places(equation))
    return next((place_span for place_span in spans if place_span is not None), None)


def _order(equation: Equation) -> list[str]:
    """Return the parameters to show, with a name first, in the order of JAX's printer."""
    keys = sorted(equation.params.keys() - jaxprs.defaults(equation))
    return sorted(keys, key=lambda key: key != "name")


def _brief(value: object) -> str:
    """Return a parameter's text for a hover, where a sharding has only its spec and its axes."""
    if isinstance(value, NamedSharding):
        spec = str(value.spec).removeprefix("PartitionSpec").removeprefix("P")
        return f"NamedSharding(P{spec}, {shardings.mesh(value.mesh).text})"
    if type(value) is tuple and any(isinstance(part, NamedSharding) for part in value):
        return f"({', '.join(map(_brief, value))}{',' if len(value) == 1 else ''})"
    return parameter_text(value)


def parameter_text(value: object) -> str:
    """Return a parameter's text on one line, without addresses."""
    if callable(value) and isinstance(name := getattr(value, "__name__", None), str):
        return name
    try:
        text = str(value)
    except Exception as error:  # noqa: BLE001 - user code: a class among the parameters
        text = f"<{type(value).__name__}: its str raised {type(error).__name__}>"
    return _NUMPY.sub(r"\g<number>", ADDRESS.sub("", text)).replace("\n", " ")


def divided(shown: Listing, jaxpr: object) -> Listing:
    """Return the text of a long jaxpr of several functions or modules with its sections."""
    by_path = dict(_scopes(jaxpr, "", None))
    if len(by_path) <= FOLDED_LINES or len(set(by_path.values())) < 2:
        return shown
    info = open_jaxpr(jaxpr).debug_info
    words = str(info.func_src_info).split() if info is not None else []
    added = _comments(shown, by_path, words[0] if words and words[0].isidentifier() else "function")
    lines: list[str] = []
    moved: dict[int, int] = {}
    for number, line in enumerate(shown.text.split("\n")):
        lines += added.get(number, ())
        moved[number] = len(lines)
        lines.append(line)
    links = tuple(Link(moved[link.line], link.path, link.span) for link in shown.links)
    return replace(shown, text="\n".join(lines), links=links)


def _scopes(jaxpr: object, prefix: str, around: Scope | None) -> Iterator[tuple[str, Scope]]:
    for index, equation in enumerate(open_jaxpr(jaxpr).eqns):
        path = f"{prefix}{index}"
        scope = scopes.scope(equation, around)
        yield path, scope
        for part in inner_jaxprs(equation):
            yield from _scopes(part.jaxpr, f"{path}/{part.name}/", scope)


def _comments(shown: Listing, by_path: Mapping[str, Scope], name: str) -> dict[int, list[str]]:
    """Return the comments before each line."""
    lines = shown.text.split("\n")
    current: dict[str, Scope] = {}
    begun: set[str] = set()
    added: dict[int, list[str]] = {}
    for link in shown.links:
        path, line = link.path, lines[link.line]
        if path in begun or path not in by_path:
            continue
        begun.add(path)
        if _PARAMETER.match(line.lstrip()):
            continue
        around, _, _ = path.rpartition("/")
        outer = by_path.get(around.rpartition("/")[0], ())
        before, after = current.get(around, outer), by_path[path]
        if before == after:
            continue
        current[around] = after
        indent = line[: len(line) - len(line.lstrip())]
        added[link.line] = [f"{indent}# {text}" for text in _headings(before, after, name)]
    return added


def _headings(before: Scope, after: Scope, name: str) -> Iterator[str]:
    """Yield a heading for each level that begins, or that of the level that is returned to."""
    pairs = zip(before, after, strict=False)
    common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    for level in range(common + 1, len(after) + 1):
        yield one_line("/".join(after[:level]))
    if common == len(after):
        yield one_line("/".join(after) or name)


def fingerprint(jaxpr: object) -> str:
    """Return the jaxpr's text, and a line for each array that it captures."""
    text = whole(0, jaxpr).text
    text = _LINE.sub(r"\1", _CHUNK.sub(lambda match: match["path"], text))
    return "\n".join([text, *map(_digest, _constants(jaxpr))])


def _constants(jaxpr: object) -> Iterator[object]:
    """Yield the arrays in a jaxpr and its inner jaxprs, in the order of the equations."""
    for part in all_jaxprs(jaxpr):
        yield from getattr(part, "consts", ())
        for equation in open_jaxpr(part).eqns:
            for var in equation.invars:
                if is_literal(var) and getattr(var.val, "ndim", 0) > 0:
                    yield var.val


def _digest(value: Any) -> str:
    """Return the array's type and a digest of its values; only the type if unreadable."""
    aval = avals.of(value)
    try:
        # JAX raises where a key array is converted to NumPy.
        if jnp.issubdtype(aval.dtype, jax.dtypes.prng_key):
            value = jax.random.key_data(value)
        data = np.ascontiguousarray(np.asarray(value)).tobytes()
    except Exception:  # noqa: BLE001 - a reference, an array that was deleted or lives elsewhere
        return f"{CONSTANT}{avals.text(aval)}"
    return f"{CONSTANT}{avals.text(aval)} {hashlib.blake2b(data, digest_size=16).hexdigest()}"
