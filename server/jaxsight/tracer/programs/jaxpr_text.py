"""Format jaxprs: folded for a hover, or whole with links to the source for a document.

File names of chunks stay `path§chunk` in every text: only the server knows the current line of a
chunk, so it replaces them (`CHUNK_FILE`).
Folding must be fast for a jaxpr of any length: it prints no more than it shows.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass

from jax.sharding import NamedSharding

from jaxsight.meshes.compat import shardings
from jaxsight.tracer.compat import jaxprs
from jaxsight.tracer.compat.jaxprs import Doc
from jaxsight.tracer.failures import ADDRESS, clean, span_of
from jaxsight.wire.chunks import Span
from jaxsight.wire.messages.replies import FOLDED_LINES, Link, Shown
from jaxsight_source.compat.inner import Inner, equation_count, inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Equation, Jaxpr
from jaxsight_source.compat.locations import places
from jaxsight_source.compat.staging import open_jaxpr

MOST_EQUATIONS = 50_000
"""Equations in an answer, about 1 KiB for each in a frame (`wire.FRAME_LIMIT`): those beyond have
no place in the source, and no rule looks at them."""

_LONG_PARAMETER = 60
"""Maximum length of a parameter's text in a folded jaxpr, of about 100 columns of a hover."""

_MOST_VARIABLES = 6
"""Maximum number of inputs and outputs of a jaxpr or equation in a folded text, for one line."""

_NUMPY = re.compile(r"np\.(?:u?int|float)\d+\((?P<number>[^()]*)\)")
"""NumPy scalars in parameters, whose type is removed."""

_LARGEST_REPEATED = 3
"""A shared inner jaxpr with more equations is printed once, and later refers to its first place."""


@dataclass(frozen=True, slots=True)
class Folded:
    text: str
    folded: bool


def folded(jaxpr: object, equations: int) -> Folded:
    """Return at most `FOLDED_LINES` lines of a jaxpr.

    This is the whole jaxpr if it fits, else its beginning with inner jaxprs as one line each.
    """
    opened = open_jaxpr(jaxpr)
    if equations <= FOLDED_LINES and _least_lines(opened) <= FOLDED_LINES:
        text, _ = jaxprs.render(_Whole(linked=False).document(opened, ""))
        if text.count("\n") < FOLDED_LINES and len(text) < _LONG_TEXT:
            return Folded(clean(text), False)
    # Only its first equations.
    printer = jaxprs.Printer(most=_MOST_VARIABLES)
    constants = _rendered(printer.variables(opened.constvars, binder=True))
    inputs = _rendered(printer.variables(opened.invars, binder=True))
    lines = [f"{{ lambda {constants}; {inputs}. let"]
    shown = 0
    for equation in itertools.islice(opened.eqns, _EQUATION_LINES):
        printed = _rendered(_folded_equation(printer, equation)).split("\n")
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
    return Folded(clean("\n".join(lines)), True)


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


def _folded_equation(printer: jaxprs.Printer, equation: Equation) -> Doc:
    inner: dict[str, list[str]] = {}
    for part in inner_jaxprs(equation):
        count = equation_count(part.jaxpr)
        inner.setdefault(part.parameter, []).append(
            f"{{ lambda … {count} {'equation' if count == 1 else 'equations'} }}"
        )

    def parameter(key: str) -> str:
        texts = inner.get(key)
        if texts is not None:
            return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
        text = _brief(equation.params[key])
        return text if len(text) <= _LONG_PARAMETER else text[: _LONG_PARAMETER - 1] + "…"

    return printer.equation(equation, lambda: [(key, parameter(key)) for key in _order(equation)])


def whole(id: int, jaxpr: object) -> Shown:
    """Return all equations, with lines linked to equations' paths and their place in user code."""
    printing = _Whole(linked=True)
    text, regions = jaxprs.render(printing.document(open_jaxpr(jaxpr), ""))
    links: list[Link] = []
    for line, paths in enumerate(regions):
        if paths:
            # The innermost of the equations that the line belongs to.
            path = max(paths, key=lambda marked_path: marked_path.count("/"))
            links.append(Link(line, path, printing.spans.get(path)))
    return Shown(id, clean(text), tuple(links))


class _Whole:
    """Prints all equations, marked with their paths if `linked`."""

    def __init__(self, *, linked: bool) -> None:
        self.linked = linked
        self.printer = jaxprs.Printer()
        self.spans: dict[str, Span | None] = {}
        self.first: dict[int, str] = {}

    def document(self, opened: Jaxpr, path: str) -> Doc:
        def equations() -> list[Doc]:
            return [
                self.equation(equation, f"{path}{index}")
                for index, equation in enumerate(opened.eqns)
            ]

        return self.printer.jaxpr(opened, equations)

    def equation(self, equation: Equation, path: str) -> Doc:
        def parameters() -> list[tuple[str, str | Doc]]:
            inner: dict[str, list[Doc]] = {}
            for part in inner_jaxprs(equation):
                document = self.inner(equation, part, f"{path}/{part.name}")
                inner.setdefault(part.parameter, []).append(document)
            return [
                (
                    key,
                    (parameter_text if self.linked else _brief)(value)
                    if key not in inner
                    else jaxprs.one_or_listed(value, inner[key]),
                )
                for key, value in ((key, equation.params[key]) for key in _order(equation))
            ]

        document = self.printer.equation(equation, parameters)
        if not self.linked:
            return document
        self.spans[path] = span(equation)
        return jaxprs.mark(document, path)

    def inner(self, equation: Equation, part: Inner, path: str) -> Doc:
        first = self.first.get(id(part.jaxpr))
        if first is not None and len(part.jaxpr.eqns) > _LARGEST_REPEATED:
            return jaxprs.line(f"{{ lambda … as in {first} }}")
        self.first[id(part.jaxpr)] = path
        if equation.primitive.name in ("jit", "pjit"):
            self.printer.same_names(equation, part.jaxpr)
        return self.document(part.jaxpr, f"{path}/")


def span(
    equation: Equation, span_in: Callable[[str, int, int, int, int], Span | None] = span_of
) -> Span | None:
    """Return the place of an equation: that of the innermost frame in a chunk, if any.

    Args:
        equation: the equation.
        span_in: returns the span of a place in a file, `None` if it is in no chunk.
    """
    spans = (span_in(file, *place) for file, place in places(equation))
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
