"""Kernels as people are told of them: what a function launches on a target, where each kernel ends and why, and what an expression became.

Joins a kernel graph, whose kernels know the paths of their equations, with where those equations are written now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxsight.compiler.graph import Graph, Kernel
from jaxsight.compiler.protocol import Compiled
from jaxsight.compiler.roofline import estimate
from jaxsight.compiler.targets import Target
from jaxsight.engine.answers import Hint, Linked, Shown
from jaxsight.engine.compiling import Result
from jaxsight.engine.hover import byte_size
from jaxsight.engine.places import Places
from jaxsight.engine.text import Position, Range, lines_of
from jaxsight.engine.views import View
from jaxsight.tracer import protocol
from jaxsight.tracer.protocol import Equation, equation_path
from jaxsight.workers.compilers import Trouble

SIGN = "▣"
BARRIER = "⊣"

_SAME = "the same"

_UNSAID = frozenset({"output", "other"})
"""Reasons that are no barriers, or that nobody knows."""

_NAMED = 5
"""Equations or kernels that a line names before it counts the rest."""


@dataclass(slots=True, eq=False)
class Kernels:
    """A function's kernels on one target, seen in the text as it stands."""

    view: View
    target: Target
    compiled: Compiled
    equations: Mapping[str, Equation]
    places: Places

    @staticmethod
    def of(view: View, result: Result) -> Kernels | None:
        """`None` when nothing was compiled."""
        if not isinstance(result.outcome, Compiled) or result.lowered is None:
            return None
        equations = {each.path: each for each in result.lowered.equations}
        places = Places(view, {path: each.span for path, each in equations.items()})
        return Kernels(view, result.target, result.outcome, equations, places)

    @property
    def graph(self) -> Graph:
        """The kernel graph."""
        return self.compiled.graph

    def place(self, path: str) -> Range | None:
        """Where an equation is written now; of one that has no place, where the one around it is."""
        return self.places.of(path)

    def source(self, path: str) -> str:
        """What the user wrote there, on one line; the primitive where they wrote nothing."""
        equation = self.equations.get(path)
        return self.places.text(path) or (equation.primitive if equation is not None else path)

    def lines(self, kernel: Kernel) -> list[int]:
        """The lines (from 1) that a kernel computes something of."""
        places = (self.place(path) for path in kernel.equations)
        return sorted({place.start.line + 1 for place in places if place is not None})

    def ending(self, kernel: Kernel) -> Range | None:
        """Where what ends a kernel is written; where it begins when it is just being edited."""
        paths = [kernel.ends_at, *reversed(kernel.equations)]
        span = next((found for path in paths if path and (found := self.places.span(path))), None)
        if span is None:
            return None
        start = protocol.Span(span.chunk, span.line, span.column, span.line, span.column)
        return self.view.range_of(span) or self.view.range_of(start)

    def holding(self, place: Range) -> list[int]:
        """The kernels that compute something written within a range."""
        return [
            index
            for index, kernel in enumerate(self.graph.kernels)
            if any(
                (at := self.place(path)) is not None
                and place.start <= at.start
                and at.end <= place.end
                for path in kernel.equations
            )
        ]

    def reason(self, kernel: Kernel) -> str:
        """Why a kernel ends, a loop by what the user wrote."""
        if kernel.ends_because == "while":
            for index in reversed(kernel.loops):
                equation = self.equations.get(self.graph.loops[index].equation)
                if equation is not None and equation.primitive == "scan":
                    return "scan"
        return kernel.ends_because


def headline(compiled: Compiled, target: Target) -> str:
    """`2 kernels · 2 launches · temp 512 KiB · h100`"""
    graph = compiled.graph
    parts = [count(graph.kernel_count, "kernel"), launches(graph)]
    if compiled.memory.temporaries >= 0:
        parts.append(f"temp {short_size(compiled.memory.temporaries)}")
    return " · ".join([*parts, target.short])


def launches(graph: Graph) -> str:
    """`3 launches`; `≥ 3 launches` where a loop's trips are not known."""
    words = count(graph.launch_count, "launch", "launches")
    return words if graph.launches_known else f"≥ {words}"


def hints(
    kernels: Kernels, before: Compiled | None, *, totals: bool, barriers: bool
) -> Iterator[Hint]:
    """What is shown inside the text: totals behind the head, barriers at the ends of lines.

    Args:
        before: what the function was when its file was saved; what changed since is told.
    """
    view, stale = kernels.view, kernels.view.stale
    if totals:
        changed = change(before, kernels.compiled) if before is not None else _SAME
        since = f" ({changed})" if changed != _SAME else ""
        yield Hint(
            _line_end(view, _head_end(view)),
            f"{SIGN} {headline(kernels.compiled, kernels.target)}{since}",
            table(kernels),
            stale,
        )
    if not barriers:
        return
    ends: dict[int, list[tuple[int, Kernel]]] = {}
    for index, kernel in enumerate(kernels.graph.kernels):
        place = kernels.ending(kernel)
        if kernel.ends_because not in _UNSAID and place is not None:
            ends.setdefault(place.end.line, []).append((index, kernel))
    own = view.subject_range
    for line, ended in ends.items():
        at = _line_end(view, line)
        # A helper's line speaks of the function that calls it.
        of = "" if own.start <= at.start <= own.end else f" of {view.subject.name}"
        yield Hint(
            at,
            f"{BARRIER} {_barrier(kernels, ended)}{of}",
            "\n\n".join(_sentence(kernels, index, kernel) for index, kernel in ended[:_NAMED]),
            stale,
        )


def _barrier(kernels: Kernels, ended: Sequence[tuple[int, Kernel]]) -> str:
    """`reduction ends kernel 1`; of several the reasons, each once."""
    reasons: dict[str, list[int]] = {}
    for index, kernel in ended:
        reasons.setdefault(kernels.reason(kernel), []).append(index + 1)
    parts = []
    for reason, numbers in reasons.items():
        word = "kernel" if len(numbers) == 1 else "kernels"
        parts.append(f"{reason} ends {word} {_numbers(numbers)}")
    return ", ".join(parts[:3]) + (" …" if len(parts) > 3 else "")


def _numbers(numbers: Sequence[int]) -> str:
    """`1`, `1, 2`, `1–4`; long lists by their ends."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}–{numbers[-1]}"
    if len(numbers) > 4:
        return f"{numbers[0]}, {numbers[1]}, … {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _sentence(kernels: Kernels, index: int, kernel: Kernel) -> str:
    flow = f"{byte_size(kernel.bytes_in)} in, {byte_size(kernel.bytes_out)} out"
    times = f", launched {kernel.launches} times" if kernel.launches > 1 else ""
    return f"kernel {index + 1}: {kernel.what}{times}, {flow}; ends because of {kernels.reason(kernel)}"


def _head_end(view: View) -> int:
    """The line on which the head of a function ends: the one with the colon, as far as brackets tell."""
    lines = lines_of(view.module.text)
    line, depth = view.name_range.start.line, 0
    while line < len(lines) and line < view.subject_range.end.line:
        text = lines[line].split("#")[0]
        depth += sum(text.count(each) for each in "([{") - sum(text.count(each) for each in ")]}")
        if depth <= 0:
            break
        line += 1
    return line


def _line_end(view: View, line: int) -> Range:
    text = lines_of(view.module.text)[line]
    end = Position(line, len(text.rstrip()))
    return Range(end, end)


def expression_words(kernels: Kernels, place: Range) -> str:
    """What became of an expression: `fused into kernel 2 of 2 with …; recomputed in kernel 1`; empty when nothing is known."""
    found = kernels.holding(place)
    total = kernels.graph.kernel_count
    if not found:
        return ""
    here = kernels.target.short
    if len(found) > 1:
        again = {
            index
            for index in found
            for path in kernels.graph.kernels[index].recomputes
            if (at := kernels.place(path)) is not None
            and place.start <= at.start
            and at.end <= place.end
        }
        first = [index + 1 for index in found if index not in again]
        words = f"in kernel{'s' if len(first) > 1 else ''} {_numbers(first)} of {total}"
        if again:
            words += f"; recomputed in kernel {_numbers([i + 1 for i in sorted(again)])}"
        return f"{words} · {here}"
    (index,) = found
    kernel = kernels.graph.kernels[index]
    others = _others(kernels, kernel, place)
    alone = f"kernel {index + 1} of {total}, {kernel.what}"
    words = f"fused into kernel {index + 1} of {total} with {others}" if others else alone
    if kernel.launches > 1:
        words += f", launched {kernel.launches} times"
    end = kernels.ending(kernel)
    if (
        end is not None
        and place.start <= end.start
        and end.end <= place.end
        and kernel.ends_because != "output"
    ):
        words += f"; {kernels.reason(kernel)} ends it"
    return f"{words} · {here}"


def _others(kernels: Kernels, kernel: Kernel, place: Range) -> str:
    sources: dict[str, None] = {}
    for path in kernel.equations:
        at = kernels.place(path)
        if at is not None and not (place.start <= at.start and at.end <= place.end):
            text = " ".join(kernels.source(path).split())
            if len(text) <= 40:
                sources[f"`{text}`"] = None
    names = list(sources)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def target_rows(results: Sequence[Result]) -> str:
    """A table on hover: what the function is on each target."""
    rows = ["| target | kernels | launches | temporaries | compiled |", "|---|---|---|---|---|"]
    troubles = []
    for result in results:
        match result.outcome:
            case Compiled() as compiled:
                graph = compiled.graph
                known = "" if graph.launches_known else "≥ "
                rows.append(
                    f"| {result.target.name} | {graph.kernel_count} | {known}{graph.launch_count} | "
                    f"{short_size(compiled.memory.temporaries)} | {how(compiled)} |"
                )
            case Trouble(message=message):
                troubles.append(f"**{result.target.name}**: {message}")
    parts = ["\n".join(rows)] if len(rows) > 2 else []
    return "\n\n".join([*parts, *troubles])


def how(compiled: Compiled) -> str:
    """How figures came about."""
    return "on the device" if compiled.how == "device" else "ahead of time, for its specification"


def table(kernels: Kernels) -> str:
    """All kernels in Markdown, for a tooltip."""
    rows = ["| | kernel | launches | in | out | ends because of |", "|---|---|---|---|---|---|"]
    shown = kernels.graph.kernels[:20]
    for index, kernel in enumerate(shown):
        rows.append(
            f"| {index + 1} | {kernel.what} | {kernel.launches} | {short_size(kernel.bytes_in)} | "
            f"{short_size(kernel.bytes_out)} | {kernels.reason(kernel)} |"
        )
    more = kernels.graph.kernel_count - len(shown)
    end = [f"and {more} more"] if more else []
    facts = [f"{kernels.target.title}, compiled {how(kernels.compiled)}"]
    return "\n\n".join(["\n".join(rows), *end, *facts, *kernels.compiled.notes])


def record(kernels: Kernels, function: str) -> dict[str, object]:
    """All of it as JSON has it. Sizes in bytes, times in seconds; `estimate_seconds` is a roofline, not a measurement."""
    compiled, graph = kernels.compiled, kernels.graph
    return {
        "function": function,
        "target": kernels.target.name,
        "compiled": compiled.how,
        "jaxlib": compiled.jaxlib,
        "kernel_count": graph.kernel_count,
        "launch_count": graph.launch_count,
        "launches_known": graph.launches_known,
        "temp_bytes": compiled.memory.temporaries,
        "argument_bytes": compiled.memory.arguments,
        "output_bytes": compiled.memory.outputs,
        "code_bytes": compiled.memory.code,
        "folded_bytes": folded(compiled),
        "flops": compiled.flops,
        "transfers": graph.transfers,
        "compile_seconds": compiled.seconds,
        "kernels": [
            {
                "name": kernel.name,
                "kind": kernel.kind,
                "what": kernel.what,
                "ends_because": kernels.reason(kernel),
                "equations": list(kernel.equations),
                "lines": kernels.lines(kernel),
                "launches": kernel.launches,
                "loops": list(kernel.loops),
                "bytes_in": kernel.bytes_in,
                "bytes_out": kernel.bytes_out,
                "flops": kernel.flops,
                "estimate_seconds": estimate(kernel, kernels.target),
                "recomputes": list(kernel.recomputes),
            }
            for kernel in graph.kernels
        ],
        "loops": [
            {
                "name": loop.name,
                "trips": loop.trips,
                "parent": loop.parent,
                "equation": loop.equation,
            }
            for loop in graph.loops
        ],
        "temporaries": [
            {
                "type": each.value.text,
                "bytes": each.value.bytes,
                "producer": each.producer,
                "consumers": list(each.consumers),
            }
            for each in graph.temporaries
        ],
        "notes": [*compiled.notes, *graph.notes],
    }


def change(before: Compiled, after: Compiled) -> str:
    """What differs, as `kernels 7 → 5 · temp 1 MiB → 0 B`; `the same` when nothing does."""
    pairs = [
        ("kernels", str(before.graph.kernel_count), str(after.graph.kernel_count)),
        ("launches", str(before.graph.launch_count), str(after.graph.launch_count)),
        ("temp", short_size(before.memory.temporaries), short_size(after.memory.temporaries)),
        ("folded", short_size(folded(before)), short_size(folded(after))),
    ]
    parts = [f"{what} {was} → {now}" for what, was, now in pairs if was != now]
    return " · ".join(parts) if parts else _SAME


def folded(compiled: Compiled) -> int:
    """Bytes of the constants that XLA computed and put into the executable."""
    return sum(each.value.bytes for each in compiled.graph.constants if each.folded)


DOCUMENTS = ("hlo", "kernels")
"""What of a compiled function can be shown as a document of its own."""


def document(view: View, result: Result, what: str) -> Shown:
    """One of `DOCUMENTS`.

    Raises:
        LookupError: it could not be lowered or compiled; the message says why.
    """
    title = f"{view.subject.name}.{what}"
    kernels = Kernels.of(view, result)
    if kernels is None:
        assert isinstance(result.outcome, Trouble)
        raise LookupError(result.outcome.message)
    if what == "hlo":
        return _hlo(kernels, title)
    return _listed(kernels, title)


def _listed(kernels: Kernels, title: str) -> Shown:
    """All kernels, one a line, each linked to what it computes."""
    lines = [f"{kernels.view.subject.name}: {headline(kernels.compiled, kernels.target)}"]
    lines += [f"{kernels.target.title}, compiled {how(kernels.compiled)}", ""]
    links: list[Linked] = []
    for index, kernel in enumerate(kernels.graph.kernels):
        indent = "  " * len(kernel.loops)
        links += [Linked(len(lines), path, kernels.place(path)) for path in kernel.equations]
        lines.append(indent + _sentence(kernels, index, kernel))
    return Shown(title, "\n".join(lines) + "\n", tuple(links), kernels.view.stale)


def _hlo(kernels: Kernels, title: str) -> Shown:
    """The optimized HLO, each line linked to what it came from."""
    links = []
    for number, line in enumerate(kernels.compiled.hlo.split("\n")):
        start = line.find('op_name="')
        if start < 0:
            continue
        path = equation_path(line[start + 9 : line.find('"', start + 9)])
        if path:
            links.append(Linked(number, path, kernels.place(path)))
    return Shown(title, kernels.compiled.hlo, tuple(links), kernels.view.stale)


def count(number: int, one: str, many: str = "") -> str:
    """`1 kernel`, `2 kernels`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def short_size(size: int) -> str:
    """`512 KiB`, `1.5 MiB`, `513 B`; `?` for what nobody knows."""
    if size < 0:
        return "?"
    words = byte_size(size)
    return words.replace(".0 ", " ")
