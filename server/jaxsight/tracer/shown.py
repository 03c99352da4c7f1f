"""Jaxprs as texts: folded for a hover, whole with links to the source for a document.

Files of chunks are left as `path§chunk` in every text: only the server knows at which line a chunk
stands now, so it words them (`protocol.CHUNK_FILE`). The folded text must stay cheap for a jaxpr of
any length: it prints no more than it shows.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxsight.interpreters.compat.locations import Location, locations
from jaxsight.tracer import protocol
from jaxsight.tracer.compat import jaxprs
from jaxsight.tracer.failures import clean, span_of

_LONG_PARAMETER = 60
"""Characters of one parameter's text in a folded jaxpr."""

_MANY = 6
"""Inputs and outputs of a jaxpr or equation beyond which a folded text elides them."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

_NUMPY = re.compile(r"np\.(?:u?int|float)\d+\((?P<number>[^()]*)\)")
"""NumPy scalars among the parameters print their type; it says nothing here."""

_REPEATED = 3
"""A shared inner jaxpr of more equations than this is printed once; afterwards its first place is
named.
"""


@dataclass(frozen=True, slots=True)
class Folded:
    text: str
    folded: bool


def folded(jaxpr: Any, equations: int) -> Folded:
    """At most `protocol.FOLDED_LINES` lines: the whole when it fits, else inner jaxprs as one line
    each, else the beginning.
    """
    opened = jaxprs.open_jaxpr(jaxpr)
    if equations <= protocol.FOLDED_LINES and _least_lines(opened) <= protocol.FOLDED_LINES:
        text, _ = jaxprs.render(_Whole().document(opened, ""))
        if text.count("\n") < protocol.FOLDED_LINES and len(text) < _LONG_TEXT:
            return Folded(clean(text), False)
    lines = _beginning(opened)
    if len(lines) > protocol.FOLDED_LINES:
        # Inputs or results that take many lines by themselves.
        lines = [*lines[: protocol.FOLDED_LINES - 1], "…"]
    return Folded(clean("\n".join(lines)), True)


_LONG_TEXT = protocol.FOLDED_LINES * 100

_AROUND = 4
"""Lines that an inner jaxpr takes besides its equations, at least."""


def _least_lines(opened: Any) -> int:
    inner = [part.jaxpr for equation in opened.eqns for part in jaxprs.inner(equation)]
    return len(opened.eqns) + sum(_AROUND + _least_lines(part) for part in inner)


def _beginning(opened: Any) -> list[str]:
    """The lines of a jaxpr, only the first of its equations printed."""
    printer = jaxprs.Printer(most=_MANY)
    constants = _rendered(printer.variables(opened.constvars, binder=True))
    inputs = _rendered(printer.variables(opened.invars, binder=True))
    lines = [f"{{ lambda {constants}; {inputs}. let"]
    shown = 0
    for equation in itertools.islice(opened.eqns, _ROOM):
        printed = _rendered(_folded_equation(printer, equation)).split("\n")
        if len(lines) + len(printed) > _ROOM:
            break
        lines += [f"    {line}" for line in printed]
        shown += 1
    left = len(opened.eqns) - shown
    if left:
        lines.append(f"    … {left} more {'equation' if left == 1 else 'equations'}")
    lines.append(f"  in {_rendered(printer.results(opened))} }}")
    return "\n".join(lines).split("\n")


def _rendered(document: Any) -> str:
    return jaxprs.render(document)[0]


_ROOM = protocol.FOLDED_LINES - 4
"""Lines for equations: the inputs, what was left out and the results take the others."""


def _folded_equation(printer: jaxprs.Printer, equation: Any) -> Any:
    inner: dict[str, list[str]] = {}
    for part in jaxprs.inner(equation):
        inner.setdefault(part.parameter, []).append(_one_line(part.jaxpr))

    def parameter(key: str) -> str:
        texts = inner.get(key)
        if texts is not None:
            return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
        text = parameter_text(equation.params[key])
        return text if len(text) <= _LONG_PARAMETER else text[: _LONG_PARAMETER - 1] + "…"

    return printer.equation(equation, lambda: [(key, parameter(key)) for key in _order(equation)])


def _one_line(opened: Any) -> str:
    count = jaxprs.count(opened)
    return f"{{ lambda … {count} {'equation' if count == 1 else 'equations'} }}"


def whole(request: protocol.Show, jaxpr: Any) -> protocol.Shown:
    """All equations, each line linked to its equation's path and to where user code made it."""
    printing = _Whole()
    text, regions = jaxprs.render(printing.document(jaxprs.open_jaxpr(jaxpr), ""))
    links: list[protocol.Link] = []
    for line, paths in enumerate(regions):
        if paths:
            path = max(paths, key=lambda found: found.count("/"))
            links.append(protocol.Link(line, path, printing.spans.get(path)))
    return protocol.Shown(request.id, clean(text), tuple(links))


class _Whole:
    """Prints everything, naming each equation's path."""

    def __init__(self) -> None:
        self.printer = jaxprs.Printer()
        self.spans: dict[str, protocol.Span | None] = {}
        self.first: dict[int, str] = {}

    def document(self, opened: Any, path: str) -> Any:
        def equations() -> list[Any]:
            return [
                self.equation(equation, f"{path}{index}")
                for index, equation in enumerate(opened.eqns)
            ]

        return self.printer.jaxpr(opened, equations)

    def equation(self, equation: Any, path: str) -> Any:
        self.spans[path] = span(equation)

        def parameters() -> list[tuple[str, Any]]:
            inner: dict[str, list[Any]] = {}
            for part in jaxprs.inner(equation):
                document = self.inner(equation, part, f"{path}/{part.name}")
                inner.setdefault(part.parameter, []).append(document)
            return [
                (
                    key,
                    parameter_text(value)
                    if key not in inner
                    else jaxprs.one_or_listed(value, inner[key]),
                )
                for key, value in ((key, equation.params[key]) for key in _order(equation))
            ]

        return jaxprs.mark(self.printer.equation(equation, parameters), path)

    def inner(self, equation: Any, part: jaxprs.Inner, path: str) -> Any:
        first = self.first.get(id(part.jaxpr))
        if first is not None and len(part.jaxpr.eqns) > _REPEATED:
            return jaxprs.line(f"{{ lambda … as in {first} }}")
        self.first[id(part.jaxpr)] = path
        if equation.primitive.name in ("jit", "pjit"):
            self.printer.same_names(equation, part.jaxpr)
        return self.document(part.jaxpr, f"{path}/")


def span(equation: Any) -> protocol.Span | None:
    """Where in a chunk an equation was made: the innermost frame that lies in one."""
    locate: Callable[[Location], protocol.Span | None] = lambda at: span_of(
        at.file, at.line, at.column, at.end_line, at.end_column
    )
    return next((found for at in locations(equation) if (found := locate(at)) is not None), None)


def _order(equation: Any) -> list[str]:
    """The parameters worth showing, a name first, as JAX's printer orders them."""
    keys = sorted(equation.params.keys() - jaxprs.defaults(equation))
    return sorted(keys, key=lambda key: key != "name")


def parameter_text(value: Any) -> str:
    """A parameter's text, without addresses, on one line."""
    if callable(value) and isinstance(name := getattr(value, "__name__", None), str):
        return name
    try:
        told = str(value)
    except Exception as error:  # noqa: BLE001 - user code: a class among the parameters
        told = f"<{type(value).__name__}: its str raised {type(error).__name__}>"
    return _NUMPY.sub(r"\g<number>", _ADDRESS.sub("", told)).replace("\n", " ")
