"""Virtual documents of a compiled function: its kernels, and its optimized HLO."""

from __future__ import annotations

from dataclasses import replace

from jaxsight.features.measuring.shown import ShownTimes, seconds_words, shown_times
from jaxsight.features.model import CompiledKind, Linked, VirtualText
from jaxsight.figures import compile_time, host_transfers, modules
from jaxsight.figures.distributed.collectives import SIGN, collective_text
from jaxsight.figures.program_notes import memory_lines
from jaxsight.figures.rows import sentence
from jaxsight.hlo.metadata import lines_of_equations, without_metadata
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import Compilation, LocatedFigures, Refused
from jaxsight.queries.traces.located_answer import View
from jaxsight.text import units


def document(engine: Engine, view: View, result: Compilation, kind: CompiledKind) -> VirtualText:
    """Return a text of a compiled function.

    Raises:
        LookupError: it could not be lowered or compiled; the message says why.
    """
    title = f"{view.subject.name}.{kind}"
    if isinstance(result, Refused):
        raise LookupError(result.trouble.message)  # noqa: TRY004
    match kind:
        case "hlo-metadata":
            return _hlo(result, f"{view.subject.name}.metadata.hlo")
        case "hlo":
            shown = _hlo(result, title)
            return replace(shown, text=without_metadata(shown.text))
        case "kernels":
            return _listed(result, title, shown_times(engine, view, result.target, result))


def _listed(kernels: LocatedFigures, title: str, times: ShownTimes | None) -> VirtualText:
    """Return the list of kernels, each line linked to the kernel's equations.

    Successive kernels of one function or module have a comment with their figures before them.

    Args:
        kernels: of the function.
        title: of the document.
        times: what the function took, if the user had it measured.
    """
    matched = times.matched if times is not None else None
    view = kernels.view
    lines = [f"{view.subject.name}: {kernels.headline}", kernels.origin, *kernels.target.facts]
    lines += [times.headline, *times.facts] if times is not None else []
    lines += [*memory_lines(kernels), *compile_time.lines(kernels), ""]
    links: list[Linked] = []
    sections = modules.runs(kernels)
    for section in sections:
        if len(sections) > 1:
            name = modules.title(section, view.subject.name)
            lines.append(f"# {' · '.join([name, *modules.figures(section)])}")
        for index in section.kernels:
            kernel = kernels.graph.kernels[index]
            indent = "  " * (len(kernel.loops) + (len(sections) > 1))
            paths = kernel.equations or kernel.feeds
            links += [Linked(len(lines), path, kernels.place(path)) for path in paths]
            row = matched.by_kernel.get(index) if matched is not None else None
            took = ""
            if row is not None:
                time = seconds_words(row.seconds, row.estimate_seconds)
                took = f"; measured {time}, {units.percent(row.share)}"
            lines.append(f"{indent}{sentence(kernels, index)}{took}")
    if kernels.graph.host_transfers:
        lines += ["", "# transfers between host and device"]
    for transfer in kernels.graph.host_transfers:
        paths = host_transfers.paths(kernels, transfer)
        links += [Linked(len(lines), path, kernels.place(path)) for path in paths]
        lines.append("  " * len(transfer.loops) + host_transfers.sentence(kernels, transfer))
    text = "\n".join(lines) + "\n"
    return VirtualText(title, text, tuple(links), view.stale, caveats=view.caveats)


def _hlo(kernels: LocatedFigures, title: str) -> VirtualText:
    """Return the optimized HLO, each line linked to its equation.

    Comments mark collectives, and transfers between host and device.

    Links are read from the metadata, so it is removed afterwards.
    """
    lines = kernels.compiled.hlo.split("\n")
    links = [
        Linked(number, path, kernels.place(path))
        for number, path in lines_of_equations(kernels.compiled.hlo).items()
    ]
    for kernel in kernels.graph.collectives:
        if kernel.instruction < len(lines):
            lines[kernel.instruction] += f"  // {SIGN} {collective_text(kernel)}"
    for transfer in kernels.graph.host_transfers:
        if transfer.instruction < len(lines):
            mark = f"{host_transfers.SIGN} {host_transfers.text(transfer)}"
            lines[transfer.instruction] += f"  // {mark}"
    view, text = kernels.view, "\n".join(lines)
    return VirtualText(title, text, tuple(links), view.stale, caveats=view.caveats)
