"""One function on one target, as an entry of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from jaxsight.features.caveats import commented
from jaxsight.features.findings import inputs
from jaxsight.features.findings.findings import findings
from jaxsight.features.measuring import words
from jaxsight.features.measuring.shown import shown_times
from jaxsight.features.model import VirtualText
from jaxsight.features.panel.panel import panel_about
from jaxsight.features.panel.record import record
from jaxsight.features.proposals.assumptions import header
from jaxsight.features.stale_marks import marked
from jaxsight.features.virtual_documents import kernels as compiled_documents
from jaxsight.features.virtual_documents.show import show
from jaxsight.figures.panel import Json
from jaxsight.figures.summary import estimated_time, kernel_figure, launch_figure, temporary_memory
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import Compilation, LocatedFigures, Refused
from jaxsight.queries.traces.located_answer import View
from jaxsight.source.module import Module
from jaxsight.source.text import Range
from jaxsight.text import units
from jaxsight.text.inert import one_line, visible
from jaxsight.wire.messages.requests import JAXPR, STABLEHLO, TransformedSource


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
                "message": finding.message,
                "help": finding.help,
                "notes": list(finding.notes),
                "url": finding.url,
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
        for at, chunk in enumerate(module.chunks):
            first = chunk.first_line
            end = module.chunks[at + 1].first_line if at + 1 < len(module.chunks) else len(lines)
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
        kernels = self.kernels
        if kernels is None:
            return
        compiled, graph, memory = kernels.compiled, kernels.graph, kernels.compiled.memory
        yield "device", kernels.origin
        yield "jaxlib", compiled.jaxlib
        yield "kernels", kernel_figure(graph)
        yield "launches", launch_figure(graph)
        yield "time (estimate)", estimated_time(graph, kernels.target)
        times = shown_times(self.engine, self.view, self.result.target, kernels)
        if times is not None:
            yield "time (measured)", words.headline(times.measurement.times)
        yield "temporaries", temporary_memory(compiled)
        for name, amount in (
            ("arguments", memory.arguments),
            ("outputs", memory.outputs),
            ("peak", memory.peak),
        ):
            yield name, units.size(amount) if amount >= 0 else ""
        collectives = len(graph.collectives)
        yield "collectives", str(collectives) if collectives else ""
        yield "host callbacks", str(graph.callback_count) if graph.callback_count else ""
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
            hlo = compiled_documents.document(self.engine, self.view, self.result, "hlo")
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
    files: dict[str, dict[int, str]] = {}
    names: dict[str, str] = {}
    for source in sources:
        names[source["uri"]] = source["name"]
        lines = zip(source["numbers"], source["text"].split("\n"), strict=True)
        files.setdefault(source["uri"], {}).update(lines)
    return [
        {
            "uri": uri,
            "name": names[uri],
            "numbers": sorted(lines),
            "text": "\n".join(lines[number] for number in sorted(lines)),
        }
        for uri, lines in files.items()
    ]
