"""What is known of a function, as rows for an agent: shapes, kernels, memory, findings, edits.

Rows quote the workspace, so their texts are without hidden characters (`text/inert.py`).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jaxsight.features.findings.examined import Examination
from jaxsight.features.findings.locked import facts_of_kernels
from jaxsight.features.fixes.scheduler import edit_records, fix_record
from jaxsight.features.fixes.verifier import Fix
from jaxsight.features.hover.text import shortened
from jaxsight.features.inlay_hints.shapes import line_shapes
from jaxsight.figures import program_notes
from jaxsight.figures.metrics import collectives_of
from jaxsight.figures.program_notes import memory_lines, undecided
from jaxsight.figures.record import fields, kernel_record
from jaxsight.figures.rows import row, sentence
from jaxsight.locks.differences import differences as compare
from jaxsight.locks.facts import ProgramFacts
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.queries.traces.located_answer import View
from jaxsight.rules.finding import Finding
from jaxsight.rules.fixing.context import applied
from jaxsight.source.module import Module
from jaxsight.source.text import Edit
from jaxsight.targets.chips import Gpu
from jaxsight.targets.roofline import bounds
from jaxsight.text import pytree_display as trees
from jaxsight.text import units
from jaxsight.text.inert import one_line
from jaxsight.text.layout import cut
from jaxsight.wire.messages.replies import Traced

LEAST_BUDGET = 400
"""The fewest characters of an answer: what it is about, and a command for more."""
_FLOORS = (3, 1, 0)
"""Rows that the parts keep, round after round: each keeps some before one loses all."""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """A row: its text, of one line or several, and the same as JSON."""

    text: str
    record: Mapping[str, object] | str


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """Rows about one thing, the most important first; without any, there are none of it."""

    name: str
    """The key of the rows in JSON, and their title as text, unless there is another one."""
    rows: tuple[AnswerRow, ...]
    title: str = ""
    is_inline: bool = False
    """Whether the rows are written on the line of the title."""
    rest: int = 0
    """Further rows that were not even offered."""


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """An answer: what it is about, and its parts, the most important first."""

    headline: str
    head: Mapping[str, object]
    """The same as JSON."""
    parts: tuple[AnswerPart, ...]

    def text(self, budget: int) -> str:
        """Return the answer as text of at most so many characters."""
        shown = self._fitted(budget, lambda counts: len(self._text(counts)))
        return cut(self._text(shown), budget) if shown else self._text(shown)

    def record(self, budget: int, length: Callable[[object], int]) -> dict[str, object]:
        """Return the answer as JSON, which `length` says the characters of.

        `left_out` has the number of rows that are not there, for each part that is cut.
        """
        return self._record(self._fitted(budget, lambda counts: length(self._record(counts))))

    def _fitted(self, budget: int, length: Callable[[Sequence[int]], int]) -> Sequence[int]:
        """Return how many rows of each part are shown."""
        counts = [len(part.rows) for part in self.parts]
        for floor in _FLOORS:
            for index in reversed(range(len(counts))):
                while counts[index] > floor and length(counts) > budget:
                    counts[index] -= 1
        return counts

    def _text(self, counts: Sequence[int]) -> str:
        lines = [self.headline]
        for part, count in zip(self.parts, counts, strict=True):
            title, texts = part.title or part.name, [row.text for row in part.rows[:count]]
            left = len(part.rows) - count + part.rest
            if not texts:
                lines.append(f"{title}: {f'{left} not shown' if left else 'none'}")
            elif part.is_inline:
                more = [f"and {left} more"] if left else []
                lines.append(f"{title}: {', '.join([*texts, *more])}")
            else:
                lines.append(f"{title}:")
                lines += [f"  {line}" for text in texts for line in text.split("\n")]
                lines += [f"  and {left} more"] if left else []
        return "\n".join(lines)

    def _record(self, counts: Sequence[int]) -> dict[str, object]:
        parts = list(zip(self.parts, counts, strict=True))
        left = {part.name: len(part.rows) - count + part.rest for part, count in parts}
        return {
            **self.head,
            **{part.name: [row.record for row in part.rows[:count]] for part, count in parts},
            "left_out": {name: count for name, count in left.items() if count},
        }


_RECORDED = "what launches bytes_in bytes_out estimate_seconds lines feeds_lines ends_because"
"""The fields of a kernel in an answer, of those that `jaxsight kernels --json` prints."""
_LINES = 6
"""Lines of a kernel that a row lists, a choice: more would not help to find it."""
_LONGEST = 160
"""Characters of a type in a row, a choice: a tree of parameters would be the whole answer."""
_DIFF_LINES = 24
"""Lines of an edit in a row, a choice: the JSON has all of it."""
_NOTES = 2
"""Notes of a finding in a row, a choice: the rule's page has more."""


def signature(view: View, traced: Traced) -> list[AnswerPart]:
    """Return the parameters and the result, with names of sizes where they are known."""
    shown = view.with_sizes(traced)
    parameters = tuple(
        short({"name": name, "value": value}, f"{name}: {value}")
        for name, value in shown.parameters
    )
    result = short(shown.outputs, shown.outputs)
    return [
        AnswerPart("parameters", parameters, is_inline=True),
        AnswerPart("outputs", (result,), is_inline=True),
    ]


def short(record: Mapping[str, object] | str, text: str) -> AnswerRow:
    """Return a row whose text is cut, as types may be long."""
    return AnswerRow(cut(one_line(text), _LONGEST), record)


def _row(record: Mapping[str, object], *texts: str) -> AnswerRow:
    """Return a row of the texts that are not empty."""
    return AnswerRow(one_line(" · ".join(filter(None, texts))), record)


def shapes(view: View) -> AnswerPart:
    """Return what each line binds."""
    rows = []
    for line, bound in line_shapes(view).items():
        values = [{"name": name, "value": shape} for name, shape in bound]
        text = ", ".join(f"{name}: {shape}" for name, shape in bound)
        rows.append(_row({"row": line + 1, "values": values}, f"{line + 1}: {text}"))
    return AnswerPart("shapes", tuple(rows))


def values_at(view: View, line: int) -> AnswerPart:
    """Return the values of the expressions that begin on a line (from 0), the widest first."""
    found = sorted(
        (place for place in view.observed if place.start.line == line),
        key=lambda place: (place.start, -place.end.line, -place.end.column),
    )
    rows: dict[str, AnswerRow] = {}
    for place in found:
        observation = view.observed[place]
        values = [value.text for value in view.values(observation)]
        known = [text for text in dict.fromkeys(view.named(observation)) if trees.has_array(text)]
        if not known or not any(map(trees.has_array, values)):
            continue
        source = shortened(view.module.slice_text(place))
        value = " | ".join(known)
        row = {"row": place.start.line + 1, "name": source, "value": value}
        rows.setdefault(source, short(row, f"{source}: {value}"))
    return AnswerPart("values", tuple(rows.values()), f"values on line {line + 1}")


def kernels(found: LocatedFigures, most: int | None = None) -> AnswerPart:
    """Return a row for each kernel, the dearest first: by time, or by bytes without estimates."""
    order = _dearest(found)
    rows = [_kernel_row(found, index) for index in order[:most]]
    has_times = any(bounds(each, found.target) is not None for each in found.graph.kernels)
    measure = "estimated time" if has_times else "bytes read and written"
    title, rest = f"kernels, dearest first by {measure}", len(order) - len(rows)
    return AnswerPart("kernels", tuple(rows), title, rest=rest)


def _dearest(found: LocatedFigures) -> list[int]:
    """Return the indices of kernels, the dearest first."""

    def cost(index: int) -> tuple[float, float]:
        kernel = found.graph.kernels[index]
        seconds = bounds(kernel, found.target)
        moved = kernel.runs * (kernel.bytes_in + kernel.bytes_out)
        return -(seconds.least if seconds is not None else 0.0), -moved

    return sorted(range(len(found.graph.kernels)), key=cost)


def _kernel_row(found: LocatedFigures, index: int) -> AnswerRow:
    """Return a kernel: its time, bytes and lines, and why it ends."""
    shown, kernel = row(found, index), found.graph.kernels[index]
    own = kernel_record(found, kernel)
    return _row(
        {"number": index + 1, **{name: own[name] for name in _RECORDED.split()}},
        f"#{shown.number} {shown.title}",
        shown.time if shown.time.startswith("≥") else f"≈ {shown.time}" if shown.time else "",
        f"{shown.launches} launches" if shown.launches != "1" else "",
        f"{shown.read} in, {shown.written} out",
        f"line {shown.lines}" if shown.lines else "",
        f"ends: {shown.boundary}" if shown.boundary else "",
    )


def boundaries(found: LocatedFigures, line: int | None = None) -> AnswerPart:
    """Return why kernels end where they do, the dearest first.

    Args:
        found: the kernels.
        line: the line (from 0) that they compute, feed or end on; all without one.
    """
    rows = []
    for index in _dearest(found):
        kernel = found.graph.kernels[index]
        end = found.ending(kernel)
        at = end.start.line + 1 if end is not None else None
        lines = [at, *found.lines(kernel), *found.fed_lines(kernel)]
        if line is None or line + 1 in lines:
            where = f"line {at}: " if at is not None else ""
            record = {"kernel": index + 1, "row": at, "reason": found.reason(kernel)}
            rows.append(_row(record, f"{where}{sentence(found, index)}"))
    title = f"kernels of line {line + 1}" if line is not None else "fusion boundaries"
    return AnswerPart("boundaries", tuple(rows), title)


def differences(found: LocatedFigures, before: ProgramFacts, name: str) -> AnswerPart:
    """Return how the program differs from an earlier one, with causes at lines."""
    rows = []
    for each in compare(before, facts_of_kernels(found)):
        record = {
            "aspect": each.figure.value,
            "words": each.words,
            "row": each.line or None,
            "worse": each.is_worse,
        }
        rows.append(_row(record, f"{'✗' if each.is_worse else '✓'} {each.words}"))
    return AnswerPart("differences", tuple(rows), f"differences from {name} (✗ worse)")


def notes(found: LocatedFigures) -> AnswerPart:
    """Return what takes long to compile, and what is only known when the program runs."""
    lines = [*program_notes.notable_lines(found), *undecided(found), *found.compiled.notes]
    return AnswerPart("notes", tuple(short(line, line) for line in lines))


def collectives(found: LocatedFigures) -> AnswerPart:
    """Return what devices send to each other, the largest first."""
    rows = []
    for kernel, each in sorted(
        collectives_of(found.graph, "collectives"), key=lambda pair: -pair[1].bytes
    ):
        lines = found.lines(kernel) or found.fed_lines(kernel)
        over = f" over {', '.join(each.axes)}" if each.axes else ""
        inserted = "inserted by the partitioner" if each.inserted else ""
        own = fields(each, "kind bytes axes")
        record = {**own, "lines": lines, "inserted": each.inserted}
        text = f"{each.kind} of {units.size(each.bytes)}{over}"
        rows.append(_row(record, text, _at("line", lines), inserted))
    return AnswerPart("collectives", tuple(rows))


def memory(found: LocatedFigures) -> AnswerPart:
    """Return the amounts of memory."""
    compiled, chip = found.compiled, found.target.chip
    sizes = compiled.memory
    amounts = {
        "arguments": sizes.arguments,
        "outputs": sizes.outputs,
        "temporaries": compiled.temporaries,
        "shared by arguments and outputs": sizes.aliased,
        "memory of the device": chip.memory if isinstance(chip, Gpu) else -1,
    }
    known = {what: amount for what, amount in amounts.items() if amount >= 0}
    rows = [
        AnswerRow(f"{what} {units.size(amount)}", {"what": what, "bytes": amount})
        for what, amount in known.items()
    ]
    rows += [short({"what": line, "bytes": None}, line) for line in memory_lines(found)]
    return AnswerPart("memory", tuple(rows), "memory of one device" if compiled.devices > 1 else "")


def temporaries(found: LocatedFigures) -> AnswerPart:
    """Return the values that a kernel writes for others, the largest first."""
    graph, rows = found.graph, []
    for each in sorted(graph.temporaries, key=lambda each: -each.value.bytes):
        written = found.lines(graph.kernels[each.producer])
        read = sorted({at for index in each.consumers for at in found.lines(graph.kernels[index])})
        type, size = each.value.text, each.value.bytes
        record = {"type": type, "bytes": size, "lines": written, "read_lines": read}
        places = _at("written at line", written), _at("read at line", read)
        rows.append(_row(record, f"{units.size(size)} {type}", *places))
    return AnswerPart("temporaries", tuple(rows), "written by a kernel for others, largest first")


def _at(words: str, lines: Sequence[int]) -> str:
    return f"{words} {', '.join(map(str, lines[:_LINES]))}" if lines else ""


def findings(found: Sequence[Finding], fixes: Mapping[Finding, Fix], module: Module) -> AnswerPart:
    """Return what rules report, with a verified fix as an edit."""
    rows = tuple(_finding_row(each, fixes.get(each), module) for each in found)
    return AnswerPart("findings", rows)


def _finding_row(finding: Finding, fix: Fix | None, module: Module) -> AnswerRow:
    """Return a finding with its help, and with the lines that its fix changes."""
    line = finding.range.start.line + 1
    texts = [f"{line}: {finding.severity.value}[{finding.code}] {finding.message}"]
    texts += [f"   help: {finding.help}"] if finding.help else []
    texts += [f"   note: {note}" for note in finding.notes[:_NOTES]]
    texts += [
        f"   {related.range.start.line + 1}: {related.message}" for related in finding.related
    ]
    lines = [one_line(text) for text in texts]
    record: dict[str, object] = {
        "code": finding.code,
        "severity": finding.severity.value,
        "row": line,
        "message": finding.message,
        "help": finding.help or None,
        "notes": list(finding.notes),
        "fix": None,
    }
    if fix is not None:
        is_safe = "safe" if fix.safe else "unsafe: may change values or signatures"
        lines.append(one_line(f"   fix ({is_safe}): {fix.title}"))
        lines += [f"   {line}" for line in _diff(module.text, fix.edits)]
        record["fix"] = fix_record(fix)
    return AnswerRow("\n".join(lines), record)


def functions(found: Sequence[Examination]) -> AnswerPart:
    """Return the functions of a file: the inputs that they have, or why they have none."""
    rows = []
    for each in found:
        said = f"inputs {each.inputs}" if each.origin else f"not examined: {each.reason}"
        row, is_examined = each.range.start.line + 1, bool(each.origin)
        record = {"function": each.function, "row": row, "examined": is_examined, "about": said}
        rows.append(_row(record, f"{row}: {each.function}, {said}"))
    return AnswerPart("functions", tuple(rows))


def proposal(title: str, of_action: Sequence[Edit], module: Module) -> AnswerPart:
    """Return the edit that writes example inputs."""
    lines = [one_line(title), *_diff(module.text, of_action)]
    record = {"message": title, "edits": edit_records(of_action)}
    return AnswerPart("edit", (AnswerRow("\n".join(lines), record),))


def _diff(text: str, of_fix: Sequence[Edit]) -> list[str]:
    """Return the lines that edits replace and those that they write: `12- …`, `12+ …`."""
    old, new = text.splitlines(), applied(text, of_fix).splitlines()
    lines: list[str] = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            lines += [f"{at + 1}- {old[at]}" for at in range(old_start, old_end)]
            lines += [f"{at + 1}+ {new[at]}" for at in range(new_start, new_end)]
    more = len(lines) - _DIFF_LINES
    shown = [*map(one_line, lines[:_DIFF_LINES])]
    return [*shown, f"and {more} more lines"] if more > 0 else shown
