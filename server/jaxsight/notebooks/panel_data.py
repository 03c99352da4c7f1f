"""What the panel's page shows of a live function: `Entry` of the panel's `messages.ts`."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from jaxsight.figures.call_chains import Trees
from jaxsight.figures.drawn import Drawn, PanelEquation, PanelTimes
from jaxsight.figures.drawn_record import Json, drawn_record
from jaxsight.figures.groups import GroupedSource, grouped
from jaxsight.figures.hlo_text import lines_of_equations, without_metadata
from jaxsight.figures.summary import headline, origin
from jaxsight.library.kernels import Kernels
from jaxsight.library.measuring import Timings
from jaxsight.library.written import editor_range, expression
from jaxsight.targets.roofline import estimate
from jaxsight.targets.target import parse, recognized
from jaxsight.text.layout import cut
from jaxsight.text.parsing import module_in
from jaxsight.wire.messages.replies import Call, Equation
from jaxsight.wire.spans import Span
from jaxsight_source import units

if TYPE_CHECKING:
    from jaxsight_source.compat.locations import Location

_LONGEST = 200
"""Characters of a user's expression, a choice: the panel cuts a line; a whole loop may be one."""


def entry(kernels: Kernels, timings: Timings | None) -> Json:
    """Return a function with its texts, and what was measured of it.

    Raises:
        LookupError: the kernels are not those of a compiled program.
    """
    if kernels.compiled is None:
        raise LookupError("these kernels have no compiled program")
    places = kernels.places
    texts = dict(_texts(kernels, places))
    target = recognized(parse(kernels.target), kernels.device_kind)
    graph = kernels.graph
    compiled = kernels.compiled
    equations, calls = _described(kernels)
    groups, group_of = grouped(
        graph.kernels, GroupedSource(equations, calls, _trees(), _location, expression)
    )
    drawn = Drawn(
        compiled,
        headline(compiled, target),
        "; ".join((origin(compiled, target), *target.facts)),
        tuple(kernel.ends_because for kernel in graph.kernels),
        tuple(estimate(kernel, target) for kernel in graph.kernels),
        tuple(_equations(kernels, equations, places)),
        mesh="; ".join(dict.fromkeys(mesh.text for mesh in kernels.meshes if mesh.axes)),
        notes=tuple(map(str, kernels.donations)),
        groups=groups,
        group_of=group_of,
        inputs=kernels.parameters if len(kernels.parameters) == len(graph.parameters) else (),
        measured=None if timings is None else _times(kernels, timings),
    )
    shown = {
        "function": kernels.function,
        "uri": f"jaxsight:{kernels.function}",
        "range": None,
        "set": "",
        "sets": [""],
        "target": kernels.target,
        "targets": [kernels.target],
        "stale": False,
        "assumed": "",
        "measurable": False,
        "trouble": "",
        "documents": {name: f"jaxsight:{kernels.function}.{name}" for name in texts},
        "drawn": drawn_record(drawn, _located),
    }
    return {"shown": shown, "contents": texts, "swept": None}


def _described(kernels: Kernels) -> tuple[Mapping[str, Equation], Sequence[Call]]:
    """Return the equations by path, and the calls that created them; nothing if not known."""
    from jaxsight.tracer.handlers.lower import live_equations

    if kernels.traced is None:
        return {}, ()
    equations, calls = live_equations(kernels.traced.jaxpr)
    return {each.path: each for each in equations}, calls


def _trees() -> Trees:
    """Return what parses files and cells as they are now, each once."""
    return functools.cache(lambda file: module_in("".join(linecache.getlines(file))))


def _location(span: Span) -> Location:
    from jaxsight_source.compat.locations import Location

    return Location(span.chunk, span.line, span.column, span.end_line, span.end_column)


def _equations(
    kernels: Kernels, equations: Mapping[str, Equation], places: Mapping[str, Location]
) -> Iterator[PanelEquation[Location]]:
    """Yield the equations of the program with their source."""
    if kernels.traced is None:
        for path, text in kernels.expressions.items():
            yield PanelEquation(path, kernels.operations[path], (), text, places.get(path))
        return
    for each in equations.values():
        text = cut(kernels.expressions.get(each.path, ""), _LONGEST)
        yield PanelEquation(
            each.path,
            each.primitive,
            each.outputs,
            text,
            places.get(each.path),
            scope=each.scope,
            backward=each.backward,
        )


def _texts(kernels: Kernels, places: Mapping[str, Location]) -> Iterator[tuple[str, Json]]:
    """Yield the texts that the page offers, with links from lines to equations."""
    from jaxsight.tracer.compat import lowering
    from jaxsight.tracer.handlers import lower
    from jaxsight.tracer.programs import jaxpr_text
    from jaxsight_source.compat.inner import walk

    content = partial(_content, places)
    if kernels.traced is not None:
        jaxpr = jaxpr_text.whole(0, kernels.traced.jaxpr)
        yield "jaxpr", content(jaxpr.text, ((link.line, link.path) for link in jaxpr.links))
        module = lowering.text(kernels.traced, parse(kernels.target).platform)
        links = lower.links(module, {path: None for path, _ in walk(kernels.traced.jaxpr)})
        yield "stablehlo", content(module.text, ((link.line, link.path) for link in links))
    of_lines = list(lines_of_equations(kernels.hlo.split("\n")))
    yield "hlo", content(without_metadata(kernels.hlo), of_lines)
    yield "hlo-metadata", content(kernels.hlo, of_lines)


def _content(places: Mapping[str, Location], text: str, links: Iterable[tuple[int, str]]) -> Json:
    return {
        "text": text,
        "stale": False,
        "links": [
            {"line": line, "path": path, **(located or {"uri": "", "range": None})}
            for line, path in links
            for located in [_located(places[path]) if path in places else None]
        ],
    }


def _located(at: Location) -> Json:
    path = PurePath(at.file)
    uri = path.as_uri() if path.is_absolute() else f"cell:{at.file}"
    return {"uri": uri, "range": editor_range(at)}


def _times(kernels: Kernels, timings: Timings) -> PanelTimes:
    """Return a measurement as the panel shows it."""
    seconds = {row.index: row.seconds for row in timings.kernels if row.index is not None}
    estimated = timings.estimate_seconds
    beside = f" (≈ {units.time(estimated)})" if estimated is not None else ""
    return PanelTimes(
        f"{units.time(timings.wall_seconds)} measured{beside}",
        False,
        timings.wall_seconds,
        timings.device_seconds if timings.device_seconds >= 0 else None,
        sum(row.seconds for row in timings.kernels if row.index is None),
        tuple(map(seconds.get, range(len(kernels.graph.kernels)))),
        timings.notes,
    )
