"""The data of a panel about one function.

It has the kernel graph on the target, the current place of each equation, and the program of the
saved file, all in one piece, so that data drawn together is consistent. The texts (jaxpr, HLO…) are
documents of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from jaxsight.features import caveats, inputs
from jaxsight.features.caveats import commented, marked
from jaxsight.features.findings.findings import findings
from jaxsight.features.inputs import header
from jaxsight.features.measuring import timing
from jaxsight.features.measuring.timing import LastTimes, last_times
from jaxsight.features.model import Panel, VirtualText
from jaxsight.features.named_function import compiled_function
from jaxsight.features.virtual_documents.show import compiled_document, show
from jaxsight.figures.panel import Json, PanelTimes, panel_record
from jaxsight.figures.record import fields
from jaxsight.figures.summary import estimated_time, kernel_figure, launch_figure, temporary_memory
from jaxsight.queries.documents import subject_at
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import Compilation, LocatedFigures, Refused
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.traces import named
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range
from jaxsight.text import units
from jaxsight.text.inert import one_line, visible
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.wire.messages.requests import JAXPR, STABLEHLO, TransformedSource
from jaxsight.workers.request_queue import Priority


async def panel(engine: Engine, path: str, where: Position | str) -> Panel | None:
    """Return the panel's data for the function at a position or with a name.

    Returns `None` if there is no function with example inputs.
    """
    if (document := await engine.documents.read(path)) is None:
        return None
    subjects = engine.documents.subjects(document)
    subject = named(subjects, where) if isinstance(where, str) else subject_at(subjects, where)
    if subject is None or (chosen := engine.choices.set_of(document, subject)) is None:
        return None
    sets = tuple(example_set.name for example_set in subject.examples.sets)
    try:
        view, result = await compiled_function(engine, path, subject.id)
    except LookupError as error:
        target = engine.choices.target(path).name
        return Panel(
            path, subject.name, subject.range, chosen.name, sets, target, trouble=str(error)
        )
    if not result.is_complete:
        completing = engine.programs.result(
            view, result.target, complete=True, urgency=Priority.PERSON
        )
        engine.waiting.go_on(asyncio.ensure_future(completing), view)
    return panel_about(engine, view, result, engine.programs.before(view))


def panel_about(
    engine: Engine, view: View, result: Compilation, before: Compiled | None = None
) -> Panel:
    """Return the panel's data for a compiled function.

    Args:
        engine: the engine.
        view: the function.
        result: what it was compiled to.
        before: the program that it is compared with.
    """
    figures = result if isinstance(result, LocatedFigures) else None
    times = last_times(engine, view, result.target, figures)
    return Panel(
        view.answer.question.path,
        view.subject.name,
        view.subject_range,
        view.answer.question.set.name,
        tuple(each.name for each in view.subject.examples.sets),
        result.target.name,
        view.stale,
        figures,
        before if figures is not None else None,
        _times(times, figures.graph.kernel_count) if figures and times else None,
        result.trouble.message if isinstance(result, Refused) else "",
        view.caveats,
        header(view.answer.question, view.size_names) if view.assumed else "",
        result.target.is_own,
    )


def _times(times: LastTimes, kernels: int) -> PanelTimes:
    """Return a measurement as a panel shows it, beside a number of kernels."""
    known, matched = times.measurement.times, times.matched
    rows = map(matched.by_kernel.get, range(kernels)) if matched is not None else ()
    others = [row for row in matched.rows if row.index is None] if matched is not None else []
    return PanelTimes(
        times.headline,
        times.stale,
        known.wall.median,
        known.device_seconds if known.device_seconds >= 0 else None,
        sum(row.seconds for row in others),
        tuple(row.seconds if row is not None else None for row in rows),
        tuple(times.facts),
    )


# A panel as JSON: the answer of `jaxsight/panel`, for editors and for pages.


Locate = Callable[[Range | None], Json | None]
"""Returns `{"uri", "range"}` of a place in the panel's file; `None` where nobody shows it."""


def record(
    panel: Panel, locate: Locate, targets: Sequence[str], documents: Mapping[str, str]
) -> Json:
    """Return a panel as JSON.

    Args:
        panel: the panel.
        locate: says where a place of its file is shown.
        targets: the targets that can be chosen.
        documents: the URIs of its texts, by kind.
    """
    drawn, first_notes = None, caveats.lines(panel.caveats)
    if panel.figures is not None:
        drawn = panel_record(
            panel.figures,
            locate,
            before=panel.before,
            measured=panel.measured,
            marks=caveats.marks(panel.caveats),
            first_notes=first_notes,
            above=len(first_notes) + panel.stale + bool(panel.assumed),
        )
    return {
        "function": panel.function,
        **(locate(panel.range) or {"uri": "", "range": None}),
        "set": panel.chosen,
        "sets": list(panel.sets),
        "target": panel.target,
        "targets": list(targets),
        "stale": panel.stale,
        "assumed": panel.assumed,
        "measurable": panel.measurable,
        "trouble": panel.trouble,
        "documents": dict(documents),
        "drawn": drawn,
        **caveats.record(panel.caveats),
    }


# One function on one target, as an entry of a report.


@dataclass(frozen=True, slots=True)
class ReportedFunction:
    """A function that was compiled for a target, and the file that a report shows it in."""

    engine: Engine
    view: View
    result: Compilation
    file: str
    """The name of its file in the report."""
    remarks: list[str] = field(default_factory=list)
    """Which texts it does not have, and why."""

    @property
    def kernels(self) -> LocatedFigures | None:
        """Its kernels; `None` if it was not compiled."""
        return None if isinstance(self.result, Refused) else self.result

    async def entry(self) -> Json:
        """Return `Entry` of the panel's `messages.ts`, without a sweep.

        Its StableHLO is that for the chosen target of its file.
        """
        panel = panel_about(self.engine, self.view, self.result)
        contents = {kind: self._content(text) for kind, text in (await self._texts()).items()}
        documents: dict[str, str] = {kind: f"#{kind}" for kind in contents}
        return {
            "shown": record(panel, self._place, [panel.target], documents),
            "contents": contents,
            "swept": None,
        }

    async def findings(self) -> list[Json]:
        """Return what rules report of the function, with kernels on the chosen target."""
        question = self.view.answer.question
        found = await findings(self.engine, question.path, kernels=True, only=self.view.subject.id)
        own = self.view.subject_range
        return [
            {
                "code": finding.code,
                "severity": finding.severity.value,
                "function": self.view.subject.name,
                "place": self._place(finding.range),
                **fields(finding, "message help notes url"),
            }
            for finding in found.reported
            if own.start.line <= finding.range.start.line <= own.end.line
        ]

    def source(self, text: str) -> Json:
        """Return the statements of the file that kernels belong to, as lines with their numbers.

        Args:
            text: of the file.
        """
        module, lines = Module.parse(text), text.split("\n")
        kernels = self.kernels
        places = map(kernels.place, kernels.equations) if kernels is not None else ()
        wanted = {self.view.subject_range.start.line}
        wanted.update(place.start.line for place in places if place is not None)
        shown: list[int] = []
        for first, end in pairwise((*(chunk.first_line for chunk in module.chunks), len(lines))):
            if any(first <= line < end for line in wanted):
                shown += range(first, end)
        while shown and not lines[shown[-1]].strip():
            shown.pop()
        return {
            "uri": self._uri,
            "name": self.file,
            "numbers": [line + 1 for line in shown],
            "text": "\n".join(visible(lines[line].rstrip("\r")) for line in shown),
        }

    def figures(self) -> list[tuple[str, str]]:
        """Return its figures in words, each with its name; what is not known is left out."""
        return [(name, text) for name, text in self._figures() if text]

    def _figures(self) -> Iterator[tuple[str, str]]:
        assumed = "assumed: " if self.view.assumed else ""
        yield "inputs", f"{assumed}{inputs.described(self.view)}"
        if (kernels := self.kernels) is None:
            return
        compiled, graph, memory = kernels.compiled, kernels.graph, kernels.compiled.memory
        yield "device", kernels.origin
        yield "jaxlib", compiled.jaxlib
        yield "kernels", kernel_figure(graph)
        yield "launches", launch_figure(graph)
        yield "time (estimate)", estimated_time(graph, kernels.target)
        if (times := last_times(self.engine, self.view, self.result.target, kernels)) is not None:
            yield "time (measured)", timing.headline(times.measurement.times)
        yield "temporaries", temporary_memory(compiled)
        for name in ("arguments", "outputs", "peak"):
            amount: int = getattr(memory, name)
            yield name, units.size(amount) if amount >= 0 else ""
        yield "collectives", str(len(graph.collectives) or "")
        yield "host callbacks", str(graph.callback_count or "")
        yield "compiled in", units.seconds(compiled.compile_seconds)

    async def _texts(self) -> dict[str, VirtualText]:
        """Return the jaxpr, StableHLO and source, and the HLO of a function that was compiled."""
        question, name = self.view.answer.question, self.view.subject.name
        asked: dict[str, tuple[str, str | TransformedSource]] = {
            "jaxpr": ("jaxpr", JAXPR),
            "stablehlo": (f"StableHLO for {self.result.target.short}", STABLEHLO),
            "pretty": ("source", TransformedSource(style="pretty")),
        }
        texts: dict[str, VirtualText] = {}
        for kind, (called, what) in asked.items():
            try:
                shown = await show(self.engine, question.path, self.view.subject.id, what)
            except LookupError as error:
                self.remarks.append(one_line(f"{name} has no {called}: {error}"))
            else:
                texts[kind] = commented(shown, kind)
        if self.kernels is not None:
            assumed = header(question, self.view.size_names) if self.view.assumed else ""
            hlo = compiled_document(self.engine, self.view, self.result, "hlo")
            texts["hlo"] = commented(marked(hlo, "//", assumed), "hlo")
        return texts

    def _content(self, shown: VirtualText) -> Json:
        links = [
            {"line": link.line, "path": link.path, **(self._place(link.range) or {})}
            for link in shown.links
            if link.range is not None
        ]
        return {"text": visible(shown.text), "stale": shown.stale, "links": links}

    @property
    def _uri(self) -> str:
        return f"source:{self.file}"

    def _place(self, range: Range | None) -> Json | None:
        if range is None:
            return None
        start, end = (
            {"line": position.line, "character": position.column}
            for position in (range.start, range.end)
        )
        return {"uri": self._uri, "range": {"start": start, "end": end}}


def merged(sources: Sequence[Json]) -> list[Json]:
    """Return sources with each file once, with the lines of all of its functions."""
    files: dict[tuple[str, str], dict[int, str]] = {}
    for source in sources:
        lines = zip(source["numbers"], source["text"].split("\n"), strict=True)
        files.setdefault((source["uri"], source["name"]), {}).update(lines)
    return [
        {
            "uri": uri,
            "name": name,
            "numbers": sorted(lines),
            "text": "\n".join(lines[number] for number in sorted(lines)),
        }
        for (uri, name), lines in files.items()
    ]
