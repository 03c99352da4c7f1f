"""A compiled program as a panel shows it: `Drawn` of `docs/protocol.md`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxsight.figures.collectives import described
from jaxsight.figures.figures import AnyFigures, At, Figures
from jaxsight.figures.groups import PanelGroup, grouped
from jaxsight.figures.program_notes import change, meshes, notable_lines, notes
from jaxsight.figures.shardings import layout, local_type, mesh_of, of_single_results, sharded_type
from jaxsight.figures.summary import scope
from jaxsight.targets.roofline import estimate
from jaxsight.text.layout import camel, cut
from jaxsight.wire.kernel_graph import (
    Branch,
    Collective,
    Constant,
    Edge,
    End,
    Graph,
    Kernel,
    Loop,
    Temporary,
    Value,
)
from jaxsight.wire.meshes import Sharding
from jaxsight.wire.messages.compiling import Compiled, Memory
from jaxsight.wire.messages.replies import LoweredEquation

Json = dict[str, Any]

_LONGEST = 200
"""Characters of a user's expression, a choice: the panel cuts a line; a whole loop may be one."""


@dataclass(frozen=True, slots=True)
class PanelTimes:
    """What was measured of a function.

    `stale`: of another program than the one that is shown. Then `kernels` is empty, otherwise it
    has the measured seconds of each kernel, or `None`.
    """

    headline: str
    """`412 µs measured (≈ 380)`"""
    stale: bool
    seconds: float
    """The median of a call."""
    device_seconds: float | None
    unmatched_seconds: float
    """Device time of what is no kernel of the graph."""
    kernels: Sequence[float | None]
    notes: Sequence[str]


def panel_record(
    figures: Figures[At],
    located: Callable[[At], Json | None],
    *,
    before: Compiled | None = None,
    measured: PanelTimes | None = None,
    marks: Sequence[str] = (),
    first_notes: Sequence[str] = (),
    above: int = 0,
) -> Json:
    """Return what a panel shows of a program as JSON.

    Args:
        figures: the program.
        located: returns a place as JSON, `{"uri", "range"}`.
        before: the program of the saved file.
        measured: the last measurement, if the user had one made.
        marks: what the headline ends with.
        first_notes: those before the others.
        above: comment lines at the top of the HLO document.
    """

    def place(at: At | None) -> Json | None:
        return None if at is None else located(at)

    compiled, graph, target = figures.compiled, figures.graph, figures.target
    if before is not None and before.target != compiled.target:
        before = None
    difference = change(before, compiled) if before is not None else ""
    if before is compiled:
        before = None
    knows_temporaries, divided = compiled.knows_temporaries, _divided(figures)
    groups, group_of = grouped(figures)
    return {
        **_figures(compiled),
        "headline": " · ".join([figures.headline, *marks]),
        "device": "; ".join((figures.origin, *target.facts)),
        "assigned": compiled.temporaries if knows_temporaries else None,
        "assignedAtMost": compiled.temporaries_at_most if knows_temporaries else None,
        "devices": compiled.devices,
        "mesh": meshes(figures),
        "kernels": [
            {
                **_kernel(kernel, graph, above),
                "endsBecause": figures.reason(kernel),
                "seconds": estimate(kernel, target),
                "measured": measured.kernels[index] if measured and measured.kernels else None,
                "group": group_of[index],
                "description": described(figures, index),
            }
            for index, kernel in enumerate(graph.kernels)
        ],
        "edges": as_json(graph.edges),
        "loops": as_json(graph.loops),
        "branches": as_json(graph.branches),
        "groups": [{**as_json(group), "place": place(group.place)} for group in groups],
        "parameters": [
            {**as_json(value), "name": name}
            for value, name in zip(
                graph.parameters, figures.inputs or ("",) * len(graph.parameters), strict=True
            )
        ],
        "outputs": as_json(graph.outputs),
        "temporaries": as_json(graph.temporaries),
        "constants": as_json(graph.constants),
        "equations": [
            {
                **as_json(equation),
                "text": cut(figures.places.text(path), _LONGEST),
                "place": place(figures.place(path)),
                "divided": divided.get(path),
            }
            for path, equation in figures.equations.items()
        ],
        "notes": [*first_notes, *notes(figures), *notable_lines(figures)],
        "change": difference,
        "before": _before(before) if before is not None else None,
        "measured": as_json(measured),
    }


def _divided(figures: AnyFigures) -> dict[str, Json]:
    """Return how the results of equations are divided, of those with a single known result."""
    divided = {}
    for path, chosen in of_single_results(figures).items():
        mesh = mesh_of(figures, chosen)
        grid = layout(mesh, chosen.spec) if mesh is not None else None
        divided[path] = {
            "text": sharded_type(chosen),
            "local": local_type(chosen.type, Sharding(mesh, chosen.spec))
            if mesh is not None
            else "",
            "cells": as_json(grid) if grid is not None else [],
        }
    return divided


def _figures(compiled: Compiled) -> Json:
    graph: Graph = compiled.graph
    most = graph.launches_at_most
    return {
        "launches": graph.launch_count if most is None else most,
        "launchesAtLeast": graph.launches_at_least,
        "launchesKnown": graph.launches_known,
        "memory": as_json(compiled.memory) if compiled.is_complete else None,
    }


def _before(compiled: Compiled) -> Json:
    graph = compiled.graph
    return {
        **_figures(compiled),
        "kernels": [
            {**_kernel(kernel, graph), "endsBecause": kernel.ends_because}
            for kernel in graph.kernels
        ],
    }


def _kernel(kernel: Kernel, graph: Graph, above: int = 0) -> Json:
    """Convert a kernel; `above` counts the comment lines at the top of the HLO document."""
    most, collective = kernel.launches_at_most, kernel.collective
    runs_known = all(graph.loops[index].trips is not None for index in kernel.loops)
    return {
        **as_json(kernel),
        "what": kernel.title,
        "launches": kernel.launches if most is None else most,
        "launchesAtLeast": kernel.at_least,
        "launchesKnown": runs_known and most is not None,
        "runsKnown": runs_known,
        "line": kernel.instruction + above,
        "collective": {
            **as_json(collective),
            "async": collective.is_async,
            "scope": scope(collective),
        }
        if collective is not None
        else None,
    }


_SENT: dict[type, str] = {
    Value: "text bytes",
    End: "what index",
    Edge: "source target value",
    Loop: "name trips waits parent equation branch carried",
    Branch: "name arm arms equation loop parent",
    Temporary: "value producer consumers equation",
    Constant: "name value folded",
    Memory: "arguments outputs temporaries aliased code peak",
    Collective: "kind bytes axes groups inserted",
    Kernel: "name kind equations ends_at feeds inputs outputs flops loops branch runs recomputes",
    PanelGroup: "title parent",
    PanelTimes: "headline stale seconds device_seconds unmatched_seconds notes",
    LoweredEquation: "path primitive outputs scope backward",
}
"""The fields that the client gets as they are, in camel case; most other fields are for rules."""


def as_json(value: object) -> Any:
    """Return plain data as JSON, of what panels show the fields that they need."""
    if isinstance(value, tuple | list):
        return [as_json(each) for each in value]
    if (sent := _SENT.get(type(value))) is None:
        return value
    return {camel(name): as_json(getattr(value, name)) for name in sent.split()}
