"""Describe kernels: a function's launches on a target, its fusion boundaries, and its expressions.

This joins a kernel graph, whose kernels know the paths of their equations, with the current places
of these equations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jaxsight.features import caveats
from jaxsight.features import stale_marks as stale
from jaxsight.features.model import Hint, Linked, Shown
from jaxsight.queries.compile_cache import Result
from jaxsight.queries.equation_ranges import Places
from jaxsight.queries.located_answer import View
from jaxsight.source.text import Position, Range, lines_of
from jaxsight.targets.roofline import estimate, total
from jaxsight.targets.target import CPU, Target
from jaxsight.text import units
from jaxsight.text.markdown import escaped, prose
from jaxsight.wire.chunks import equation_path
from jaxsight.wire.donation import Donation, donations
from jaxsight.wire.kernel_graph import Graph, Kernel
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.wire.messages.replies import Equation, Lowered, Traced
from jaxsight.wire.spans import Span
from jaxsight.workers.compilers import Trouble

SIGN = "▣"
BARRIER = "⊣"

_SAME = "the same"

_UNSAID = frozenset({"output", "XLA's choice"})
"""Reasons that are not fusion boundaries, or that are unknown."""

_UPDATED = 3
"""Number of names of updated state that a line lists."""

_NAMED = 5
"""Number of equations or kernels that a line names; further ones are counted."""


@dataclass(slots=True, eq=False)
class Kernels:
    """A function's kernels on one target, at their current places in the text."""

    view: View
    target: Target
    compiled: Compiled
    lowered: Lowered
    equations: Mapping[str, Equation]
    places: Places

    @staticmethod
    def of(view: View, result: Result) -> Kernels | None:
        """Return the kernels of a result; `None` if it was not compiled."""
        if not isinstance(result.outcome, Compiled) or result.lowered is None:
            return None
        equations = {each.path: each for each in result.lowered.equations}
        places = Places(view, {path: each.span for path, each in equations.items()})
        return Kernels(view, result.target, result.outcome, result.lowered, equations, places)

    @property
    def graph(self) -> Graph:
        """The kernel graph."""
        return self.compiled.graph

    @property
    def donations(self) -> tuple[Donation, ...]:
        """The donated inputs, each with the result that takes its buffer."""
        lowered = self.lowered
        return donations(
            self.compiled.aliases,
            len(self.graph.parameters),
            lowered.parameters,
            lowered.results,
            lowered.donated,
        )

    def place(self, path: str) -> Range | None:
        """Return the current range of an equation; without one, that of the enclosing equation."""
        return self.places.of(path)

    def source(self, path: str) -> str:
        """Return the user's text of an equation on one line; without one, its primitive."""
        equation = self.equations.get(path)
        return self.places.text(path) or (equation.primitive if equation is not None else path)

    def lines(self, kernel: Kernel) -> list[int]:
        """Return the lines (from 1) of a kernel's equations."""
        places = (self.place(path) for path in kernel.equations)
        return sorted({place.start.line + 1 for place in places if place is not None})

    def fed_lines(self, kernel: Kernel) -> list[int]:
        """Return the lines (from 1) that a kernel without lines of its own feeds."""
        places = (self.place(path) for path in kernel.feeds)
        return sorted({place.start.line + 1 for place in places if place is not None})

    def feeding(self, kernel: Kernel) -> str:
        """Return `for scan at line 274`; empty for a kernel with lines of its own."""
        if not kernel.feeds:
            return ""
        equation = self.equations.get(kernel.feeds[0])
        what = equation.primitive if equation is not None else "what follows"
        lines = self.fed_lines(kernel)
        where = f" at line {lines[0]}" if lines else ""
        more = f" and {len(kernel.feeds) - 1} more" if len(kernel.feeds) > 1 else ""
        return f"for {what}{where}{more}"

    def ending(self, kernel: Kernel) -> Range | None:
        """Return the range of a kernel's fusion boundary; its start while it is being edited."""
        paths = [kernel.ends_at, *reversed(kernel.equations)]
        span = next((found for path in paths if path and (found := self.places.span(path))), None)
        if span is None:
            return None
        start = Span(span.chunk, span.line, span.column, span.line, span.column)
        return self.view.range_of(span) or self.view.range_of(start)

    def holding(self, place: Range) -> list[int]:
        """Return the kernels that compute an equation within a range."""
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
        """Return the reason of a kernel's fusion boundary; `scan` for a loop written as one."""
        if kernel.ends_because == "while":
            for index in reversed(kernel.loops):
                equation = self.equations.get(self.graph.loops[index].equation)
                if equation is not None and equation.primitive == "scan":
                    return "scan"
        return kernel.ends_because


def headline(compiled: Compiled, target: Target) -> str:
    """Return `2 kernels · 2 launches · temp 512 KiB · h100`."""
    graph = compiled.graph
    parts = [count(graph.kernel_count, "kernel"), launches(graph)]
    if graph.callback_count:
        parts.append(count(graph.callback_count, "host callback"))
    if compiled.memory.temporaries >= 0:
        parts.append(f"temp {units.size(compiled.memory.temporaries)}")
    return " · ".join([*parts, target.short])


def launches(graph: Graph) -> str:
    """Return `3 launches`; `3–7 launches` if values decide; `≥ 3 launches` with unknown loops."""
    one = graph.launches_known and graph.launch_count == graph.launches_at_least == 1
    return f"{launch_figure(graph)} {'launch' if one else 'launches'}"


def launch_figure(graph: Graph) -> str:
    """Return `3`, `3–7` or `≥ 3`."""
    least, most = graph.launches_at_least, graph.launch_count
    if not graph.launches_known:
        return f"≥ {least}"
    return f"{most}" if least == most else f"{least}–{most}"


def undecided(kernels: Kernels) -> Iterator[str]:
    """Yield what is unknown until the program runs: trip counts of loops, arms of conditionals.

    On a GPU each iteration of a loop whose trip count the HLO does not state, and each conditional,
    copies its predicate to the host and waits (`xla/backends/gpu/runtime/while_thunk.cc`,
    `conditional_thunk.cc`).
    """
    graph = kernels.graph
    for index, loop in enumerate(graph.loops):
        at = _at(kernels, "loop", loop.equation)
        if loop.trips is None:
            yield f"{at}: unknown number of iterations{_each(kernels, index)}"
        if loop.waits:
            yield f"{at}: each iteration copies its condition to the host and waits"
    on_host = kernels.target.platform in ("cuda", "rocm")
    for first, branch in enumerate(graph.branches):
        if branch.arm:
            continue
        arms = range(first, first + branch.arms)
        inside = [i for i, k in enumerate(graph.kernels) if graph.is_within(k.branch, arms)]
        figure = _once(graph, inside, branch.loop)
        words = f"{_at(kernels, 'conditional', branch.equation)}: one of {branch.arms} arms runs"
        words += f" (up to {figure})" if figure else ""
        yield f"{words}; the host reads its predicate first" if on_host else words


def iterations(kernels: Kernels) -> Iterator[str]:
    """Yield `loop at line 12: 7 iterations`, once per line, for loops with known trip counts."""
    counted = dict.fromkeys(
        f"{_at(kernels, 'loop', loop.equation)}: {count(loop.trips, 'iteration')}"
        for loop in kernels.graph.loops
        if loop.trips is not None
    )
    yield from counted


def _each(kernels: Kernels, index: int) -> str:
    """Return `, 3 launches, ≈ 9 µs each` for a loop; empty if unknown.

    In a loop with a conditional it is `, up to 3 launches each`.
    """
    graph = kernels.graph
    inside = [i for i, kernel in enumerate(graph.kernels) if index in kernel.loops]
    figure = _once(graph, inside, index)
    if not figure:
        return ""
    if any(graph.kernels[i].branch != graph.loops[index].branch for i in inside):
        return f", up to {figure} each"
    times = [estimate(graph.kernels[i], kernels.target) for i in inside]
    known = [seconds for seconds in times if seconds is not None]
    if len(known) < len(times):
        return f", {figure} each"
    time = sum(known) / graph.iterations(index)
    return f", {figure}, {'≈ ' if time >= units.SHORTEST else ''}{units.time(time)} each"


def _once(graph: Graph, inside: Sequence[int], loop: int) -> str:
    """Return `3 launches` for some kernels in one iteration of the loop around them all.

    `loop` is -1 if there is no such loop. Empty if a loop within it has an unknown trip count.
    """
    chains = (graph.kernels[index].loops for index in inside)
    within = {
        each for chain in chains for each in chain[chain.index(loop) + 1 if loop >= 0 else 0 :]
    }
    if any(graph.loops[each].trips is None for each in within):
        return ""
    return count(graph.launches_of(inside) // graph.iterations(loop), "launch", "launches")


def _at(kernels: Kernels, what: str, equation: str) -> str:
    """Return `loop at line 12`; `loop` if its place is unknown."""
    place = kernels.place(equation) if equation else None
    return what if place is None else f"{what} at line {place.start.line + 1}"


def hints(
    kernels: Kernels, before: Compiled | None, *, totals: bool, barriers: bool
) -> Iterator[Hint]:
    """Yield the hints of a function: totals after its signature, fusion boundaries on its lines.

    Args:
        before: the program of the saved file; the totals show what changed since.
    """
    view = kernels.view
    mark, notice = stale.mark(view), stale.notice(view)
    if totals and (view.failed is None or view.supports_any()):
        changed = change(before, kernels.compiled) if before is not None else _SAME
        since = f" ({changed})" if changed != _SAME else ""
        yield Hint(
            head(view),
            f"{SIGN} {mark}{headline(kernels.compiled, kernels.target)}{since}{_updates(view)}",
            "\n\n".join(filter(None, (notice, table(kernels)))),
            view.stale,
        )
    if not barriers:
        return
    ends: dict[int, list[tuple[int, Kernel]]] = {}
    for index, kernel in enumerate(kernels.graph.kernels):
        place = kernels.ending(kernel)
        if kernel.ends_because not in _UNSAID and place is not None and view.supports(place):
            ends.setdefault(place.end.line, []).append((index, kernel))
    own = view.subject_range
    for line, ended in ends.items():
        at = _line_end(view.module.text, line)
        sentences = [_sentence(kernels, index, kernel) for index, kernel in ended[:_NAMED]]
        # A hint in a helper names the traced function.
        of = "" if own.start <= at.start <= own.end else f" · {view.subject.name}"
        yield Hint(
            at,
            f"{BARRIER} {mark}{_barrier(kernels, ended)}{of}",
            "\n\n".join([*filter(None, [notice]), *map(prose, sentences)]),
            view.stale,
        )


def _updates(view: View) -> str:
    """Return ` · updates: model, optimizer`, with the first names."""
    reply = view.answer.reply
    if not isinstance(reply, Traced) or not reply.updates:
        return ""
    more = ["…"] if len(reply.updates) > _UPDATED else []
    return f" · updates: {', '.join([*reply.updates[:_UPDATED], *more])}"


def _barrier(kernels: Kernels, ended: Sequence[tuple[int, Kernel]]) -> str:
    """Return the reasons of fusion boundaries on a line, each once: `fft, layout change`."""
    reasons = list(dict.fromkeys(kernels.reason(kernel) for _, kernel in ended))
    return ", ".join(reasons[:3]) + (" …" if len(reasons) > 3 else "")


def _numbers(numbers: Sequence[int]) -> str:
    """Return `1`, `1, 2` or `1–4`; a long list is written by its ends."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}–{numbers[-1]}"
    if len(numbers) > 4:
        return f"{numbers[0]}, {numbers[1]}, … {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _sentence(kernels: Kernels, index: int, kernel: Kernel) -> str:
    flow = f"{units.size(kernel.bytes_in)} in, {units.size(kernel.bytes_out)} out"
    times = f", launched {kernel.launches} times" if kernel.launches > 1 else ""
    if kernel.launches == 0:
        times = ", never launched as the number of iterations is known"
    feeding = f" {purpose}" if (purpose := kernels.feeding(kernel)) else ""
    return (
        f"kernel {index + 1}: {kernel.what}{feeding}{times}, {flow}; fusion boundary: "
        f"{kernels.reason(kernel)}"
    )


def head(view: View) -> Range:
    """Return the place of a function's totals: the end of the last line of its signature."""
    return head_of(view.module.text, view.name_range, view.subject_range)


def head_of(text: str, name: Range, function: Range) -> Range:
    """Return the end of the last line of a function's signature, given its name and whole range."""
    return _line_end(text, _head_end(text, name, function))


def _head_end(text: str, name: Range, function: Range) -> int:
    """Return the line on which the signature of a function ends, judged by brackets."""
    lines = lines_of(text)
    line, depth = name.start.line, 0
    while line < len(lines) and line < function.end.line:
        code = lines[line].split("#")[0]
        depth += sum(code.count(each) for each in "([{") - sum(code.count(each) for each in ")]}")
        if depth <= 0:
            break
        line += 1
    return line


def _line_end(text: str, line: int) -> Range:
    end = Position(line, len(lines_of(text)[line].rstrip()))
    return Range(end, end)


def expression_words(kernels: Kernels, place: Range) -> str:
    """Return how an expression was compiled; empty if unknown.

    The text is `fused into kernel 2 of 2 with …` or `in kernels 1, 2 of 3; recomputed in kernel 4`.
    """
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
        words += f"; fusion boundary: {kernels.reason(kernel)}"
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
    """Return a Markdown table with a row for each target, for a hover."""
    rows = ["| target | kernels | launches | temporaries | compiled |", "|---|---|---|---|---|"]
    troubles = []
    for result in results:
        match result.outcome:
            case Compiled() as compiled:
                graph = compiled.graph
                rows.append(
                    f"| {escaped(result.target.name)} | {graph.kernel_count} | "
                    f"{launch_figure(graph)} | "
                    f"{units.size(compiled.memory.temporaries)} | {how(compiled)} |"
                )
            case Trouble(message=message):
                troubles.append(f"**{escaped(result.target.name)}**: {prose(message)}")
    parts = ["\n".join(rows)] if len(rows) > 2 else []
    return "\n\n".join([*parts, *troubles])


def how(compiled: Compiled) -> str:
    """Return how figures were obtained."""
    return "on the device" if compiled.how == "device" else "ahead of time (no device)"


def memory_lines(kernels: Kernels) -> list[str]:
    """Return what a headline does not show of memory: constants, workspaces, donated buffers."""
    graph = kernels.graph
    lines = []
    if size := sum(constant.value.bytes for constant in graph.constants):
        of_it = folded(kernels.compiled)
        parts = f", of which {units.size(of_it)} folded" if of_it else ""
        lines.append(f"constants: {units.size(size)} {_where(kernels.target)}{parts}")
    if most := max((kernel.workspace for kernel in graph.kernels), default=0):
        lines.append(f"workspace: up to {units.size(most)} per library call, in the temporaries")
    return [*lines, *map(str, kernels.donations)]


def _where(target: Target) -> str:
    """Return where constants are stored: on GPUs and TPUs in device memory too."""
    executable = "embedded in the executable"
    return executable if target.platform == CPU else f"{executable} and in device memory"


def table(kernels: Kernels) -> str:
    """Return a Markdown table of all kernels, for a tooltip."""
    rows = ["| | kernel | launches | in | out | fusion boundary |", "|---|---|---|---|---|---|"]
    shown = kernels.graph.kernels[:20]
    for index, kernel in enumerate(shown):
        what = f"{kernel.what} {kernels.feeding(kernel)}".rstrip()
        rows.append(
            f"| {index + 1} | {escaped(what)} | {kernel.launches} | "
            f"{units.size(kernel.bytes_in)} | "
            f"{units.size(kernel.bytes_out)} | {escaped(kernels.reason(kernel))} |"
        )
    more = kernels.graph.kernel_count - len(shown)
    end = [f"and {more} more"] if more else []
    facts = [f"{escaped(kernels.target.title)}, compiled {how(kernels.compiled)}"]
    facts += map(prose, memory_lines(kernels))
    left_out = caveats.markdown(kernels.view.caveats)
    said = (*undecided(kernels), *kernels.compiled.notes)
    notes = [*map(prose, said), *([left_out] if left_out else [])]
    return "\n\n".join(["\n".join(rows), *end, *facts, *notes])


def record(kernels: Kernels, function: str) -> dict[str, object]:
    """Return all figures as JSON.

    Sizes are in bytes and times in seconds; `estimate_seconds` is a roofline estimate, not a
    measurement.
    """
    compiled, graph = kernels.compiled, kernels.graph
    estimated = total(graph, kernels.target)
    reply = kernels.view.answer.reply
    return {
        "function": function,
        "updates": list(reply.updates) if isinstance(reply, Traced) else [],
        "target": kernels.target.name,
        "compiled": compiled.how,
        "jaxlib": compiled.jaxlib,
        "kernel_count": graph.kernel_count,
        "launch_count": graph.launch_count,
        "launches_at_least": graph.launches_at_least,
        "launches_known": graph.launches_known,
        "temp_bytes": compiled.memory.temporaries,
        "argument_bytes": compiled.memory.arguments,
        "output_bytes": compiled.memory.outputs,
        "code_bytes": compiled.memory.code,
        "aliased_bytes": compiled.memory.aliased,
        "folded_bytes": folded(compiled),
        "constant_bytes": sum(constant.value.bytes for constant in graph.constants),
        "donations": [
            {"input": each.name, "result": each.result or None} for each in kernels.donations
        ],
        "flops": compiled.flops,
        "transfers": graph.transfers,
        "callback_count": graph.callback_count,
        "compile_seconds": compiled.seconds,
        "estimate_seconds": estimated.seconds if estimated else None,
        "estimate_is_lower_bound": estimated.is_lower_bound if estimated else None,
        "kernels": [
            {
                "name": kernel.name,
                "kind": kernel.kind,
                "what": kernel.what,
                "ends_because": kernels.reason(kernel),
                "equations": list(kernel.equations),
                "lines": kernels.lines(kernel),
                "feeds": list(kernel.feeds),
                "feeds_lines": kernels.fed_lines(kernel),
                "launches": kernel.launches,
                "loops": list(kernel.loops),
                "bytes_in": kernel.bytes_in,
                "bytes_out": kernel.bytes_out,
                "workspace_bytes": kernel.workspace,
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
                "waits": loop.waits,
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
        **caveats.record(kernels.view.caveats),
    }


def change(before: Compiled, after: Compiled) -> str:
    """Return the differences as `kernels 7 → 5 · temp 1 MiB → 0 B`, or `the same`."""
    pairs = [
        ("kernels", str(before.graph.kernel_count), str(after.graph.kernel_count)),
        ("launches", launch_figure(before.graph), launch_figure(after.graph)),
        ("temp", units.size(before.memory.temporaries), units.size(after.memory.temporaries)),
        ("folded", units.size(folded(before)), units.size(folded(after))),
    ]
    parts = [f"{what} {was} → {now}" for what, was, now in pairs if was != now]
    return " · ".join(parts) if parts else _SAME


def folded(compiled: Compiled) -> int:
    """Return the size in bytes of the constants that XLA folded into the executable."""
    return sum(each.value.bytes for each in compiled.graph.constants if each.folded)


DOCUMENTS = ("hlo", "kernels")
"""Texts of a compiled function that are shown as documents."""


def document(view: View, result: Result, what: str) -> Shown:
    """Return one of `DOCUMENTS`.

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
    """Return the list of kernels, each line linked to the kernel's equations."""
    lines = [f"{kernels.view.subject.name}: {headline(kernels.compiled, kernels.target)}"]
    lines += [f"{kernels.target.title}, compiled {how(kernels.compiled)}"]
    lines += [*memory_lines(kernels), ""]
    links: list[Linked] = []
    for index, kernel in enumerate(kernels.graph.kernels):
        indent = "  " * len(kernel.loops)
        paths = kernel.equations or kernel.feeds
        links += [Linked(len(lines), path, kernels.place(path)) for path in paths]
        lines.append(indent + _sentence(kernels, index, kernel))
    view = kernels.view
    text = "\n".join(lines) + "\n"
    return Shown(title, text, tuple(links), view.stale, caveats=view.caveats)


def _hlo(kernels: Kernels, title: str) -> Shown:
    """Return the optimized HLO, each line linked to its equation."""
    links = []
    for number, line in enumerate(kernels.compiled.hlo.split("\n")):
        start = line.find('op_name="')
        if start < 0:
            continue
        path = equation_path(line[start + 9 : line.find('"', start + 9)])
        if path:
            links.append(Linked(number, path, kernels.place(path)))
    view = kernels.view
    return Shown(title, kernels.compiled.hlo, tuple(links), view.stale, caveats=view.caveats)


def count(number: int, one: str, many: str = "") -> str:
    """Return `1 kernel` or `2 kernels`."""
    return f"{number} {one if number == 1 else many or one + 's'}"
