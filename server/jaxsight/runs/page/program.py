"""One program on the page: figures, signature, why it was compiled, kernels and texts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jaxsight.figures.figures import AnyFigures
from jaxsight.figures.program_notes import notes
from jaxsight.figures.rows import table
from jaxsight.figures.summary import kernel_figure, launch_figure
from jaxsight.profiles.places import CodePlace
from jaxsight.recording.programs.record import RunProgram
from jaxsight.runs.compiled_hlo import figures_of
from jaxsight.runs.merging import CompiledFunction, MergedProgram, Recompilation
from jaxsight.runs.page.markup import Markup, PageTexts, element, html_table, joined, prose
from jaxsight.text.units import count, size, some, time

_KERNELS = 200
"""Kernels that are listed, a choice: a row is about 200 bytes, and a page of 2 MB has room for a
few long lists."""
_ARGUMENTS = 40
"""Arguments that are listed, a choice: a screen or two."""
_IN_SIGNATURE, _RESULTS = 8, 3
"""Arguments and results in a signature, a choice: about a line."""
_ROOT = re.compile(r"[.\[]")


def place(of: CodePlace | None) -> str:
    """Return a line as `train.py:12`: the file's name is enough to know it by."""
    if of is None:
        return ""
    return f"{of.file.replace(chr(92), '/').rpartition('/')[2]}:{of.line}"


def placed(of: CodePlace | None) -> Markup | None:
    """Return a line as `train.py:12`, with the whole path to be read on hover."""
    if of is None:
        return None
    return element("code", place(of), title=f"{of.file}:{of.line}", class_="place")


def signature(program: RunProgram) -> str:
    """Return what a program takes and returns, on one line of limited length.

    An argument that is a pytree is shown as the number of its arrays.
    """
    leaves: dict[str, list[str]] = {}
    for index, (name, type_) in enumerate(program.arguments):
        leaves.setdefault(_ROOT.split(name, maxsplit=1)[0] or f"argument {index}", []).append(type_)
    arguments = [
        f"{name}: {types[0] if len(types) == 1 else count(len(types), 'array')}"
        for name, types in leaves.items()
    ]
    arguments += [f"{name}={value}" for name, value in program.static]
    results = ", ".join(program.results) or "()"
    if len(program.results) > _RESULTS:
        results = count(len(program.results), "array")
    return f"({some(arguments, _IN_SIGNATURE)}) → {results}"


def why(reason: Recompilation) -> Markup:
    """Return the reason of a recompilation as a list, with what to do."""
    items = [element("li", prose(str(each))) for each in reason.changes]
    if reason.more:
        items.append(element("li", f"and {count(reason.more, 'more difference')}"))
    remedies = dict.fromkeys(each.remedy for each in reason.changes if each.remedy)
    helps = [element("p", element("b", "help: "), prose(each), class_="help") for each in remedies]
    return joined(element("ul", *items, class_="why"), *helps)


def program_part(function: CompiledFunction, program: MergedProgram, texts: PageTexts) -> Markup:
    """Return the part of a program, closed until it is opened."""
    first = program.first
    figures = figures_of(first)
    facts = [
        time(program.seconds),
        figures.headline if figures is not None else "",
        f"{len(program.compilations)} times" if len(program.compilations) > 1 else "",
        "failed" if first.error else "",
    ]
    summary = element(
        "summary",
        element("code", function.name, class_="name"),
        " ",
        element("code", signature(first), class_="signature"),
        element("span", " · ".join(filter(None, facts)), class_="facts"),
    )
    link = element(
        "a", "#", href=f"#{program.key}", class_="permalink", aria_label="Link to this program"
    )
    return element(
        "details",
        summary,
        element(
            "div",
            link,
            element("pre", first.error, class_="error") if first.error else None,
            _figures(program, figures),
            _arguments(first),
            _kernel_table(figures),
            _text_buttons(first, texts),
            class_="body",
        ),
        id=program.key,
        class_="program failed" if first.error else "program",
    )


def definitions(pairs: Iterable[tuple[str, Markup | str | None]]) -> Markup:
    """Return terms with what they are; those of nothing are left out."""
    return element(
        "dl",
        *(
            element("div", element("dt", term), element("dd", value))
            for term, value in pairs
            if value
        ),
    )


def _figures(program: MergedProgram, figures: AnyFigures | None) -> Markup:
    first, saved = program.first, program.compilations[-1].program.saved
    devices = f"{count(first.devices, 'device')}, " if first.devices > 1 else ""
    graph = figures.graph if figures is not None else None
    callers = [each for of in first.called for each in (", called from ", placed(of))]
    memory = {
        "temporaries": first.memory.temporaries,
        "arguments": first.memory.arguments,
        "results": first.memory.outputs,
        "results in donated buffers": first.memory.aliased or -1,
        "peak": first.memory.peak,
    }
    return definitions(
        [
            ("defined at", placed(first.defined)),
            ("called at", joined(*callers[1:])),
            ("device", f"{devices}{first.device or first.platform}"),
            ("tracing", time(first.trace) if first.trace is not None else "not known"),
            ("lowering", time(first.lower) if first.lower is not None else "not known"),
            ("read from the cache" if first.is_cached else "compiling", time(first.compile)),
            ("saved by the cache", time(saved) if first.is_cached and saved > 0 else None),
            ("kernels", kernel_figure(graph) if graph is not None else None),
            ("launches", launch_figure(graph) if graph is not None else None),
            *((name, size(amount)) for name, amount in memory.items() if amount >= 0),
            ("equations", str(first.equations or "")),
        ]
    )


def _arguments(program: RunProgram) -> Markup | None:
    shown: list[tuple[str, str, str]] = []
    for index, (name, type_) in enumerate(program.arguments[:_ARGUMENTS]):
        weak = "weakly typed, as of a Python scalar" if type_.endswith("*") else ""
        sharding = "".join(program.shardings[index : index + 1])
        about = "; ".join(filter(None, (weak, sharding)))
        shown.append((name or f"argument {index}", type_.removesuffix("*"), about))
    shown += [(name, value, "static") for name, value in program.static]
    if not shown:
        return None
    rows = ((element("code", name), element("code", type_), about) for name, type_, about in shown)
    more = len(program.arguments) - _ARGUMENTS
    return joined(
        element("h4", "Arguments"),
        html_table(("argument", "type", ""), rows),
        element("p", f"and {count(more, 'more argument')}") if more > 0 else None,
    )


def _kernel_table(figures: AnyFigures | None) -> Markup | None:
    if figures is None or not figures.graph.kernels:
        return None
    titles, sides, shown = table(figures, _KERNELS, "\u2003")
    numbers = [column for column, side in enumerate(sides) if side == "r"]
    more = figures.graph.kernel_count - len(shown)
    return joined(
        element("h4", "Kernels"),
        html_table(titles, shown, numbers, class_="kernels"),
        element("p", f"and {count(more, 'more kernel')}") if more else None,
        *(element("p", element("b", "note: "), note) for note in notes(figures)),
    )


def _text_buttons(program: RunProgram, texts: PageTexts) -> Markup | None:
    parts = []
    for title, text in (("jaxpr", program.jaxpr), ("optimized HLO", program.hlo)):
        if not text:
            continue
        if (number := texts.keep(text)) is None:
            parts.append(element("p", f"The {title} is left out, as the page would be too large."))
            continue
        parts.append(
            element(
                "details",
                element("summary", title),
                element("pre", tabindex="0"),
                class_="text",
                data_text=str(number),
            )
        )
    return joined(*parts) if parts else None
